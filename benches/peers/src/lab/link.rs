//! What joins the two namespaces. A packet passes a bottleneck with a queue that drops what does not fit, then may get
//! lost, then takes its time. Packet number n of a direction is lost or not by the seed alone.

use super::spaces::{CLIENT, SERVER, Space, hurry};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The same in both directions.
#[derive(Clone, Copy)]
pub(super) struct Path {
    pub(super) one_way: Duration,
    /// Share of the packets.
    pub(super) loss: f64,
    /// Bits of IP packets a second, and bytes of the queue before that.
    pub(super) bottleneck: Option<(u64, u64)>,
}

/// Two namespaces and the link between them, which ends with this.
pub(super) struct Lab {
    pub(super) client: Arc<Space>,
    pub(super) server: Arc<Space>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Counters {
    /// Whether the receiver has everything, or has given up.
    done: AtomicBool,
    stop: AtomicBool,
    bytes: AtomicU64,
    latest: AtomicU64,
}

impl Lab {
    pub(super) fn new(path: Path, seed: u64) -> io::Result<Self> {
        let client = Arc::new(Space::new(CLIENT, SERVER)?);
        let server = Arc::new(Space::new(SERVER, CLIENT)?);
        let counters = Arc::new(Counters::default());
        let (tuns, shared) = ([client.tun.try_clone()?, server.tun.try_clone()?], Arc::clone(&counters));
        let forward = move || {
            hurry(10).expect("root may");
            run(&tuns, [Way::new(path, seed, 0), Way::new(path, seed, 1)], &shared);
        };
        Ok(Self { client, server, counters, thread: Some(thread::spawn(forward)) })
    }

    /// Bytes of IP packets that both ends have sent, lost ones included.
    pub(super) fn bytes(&self) -> u64 {
        self.counters.bytes.load(Relaxed)
    }

    /// Tells the sender that it can stop.
    pub(super) fn done(&self) {
        self.counters.done.store(true, Relaxed);
    }

    pub(super) fn is_done(&self) -> bool {
        self.counters.done.load(Relaxed)
    }

    /// How much too late the latest packet was delivered, ms.
    pub(super) fn latest(&self) -> f64 {
        self.counters.latest.load(Relaxed) as f64 / 1e6
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.counters.stop.store(true, Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// `ways[i]` carries what comes out of `tuns[i]` to the other one.
fn run(tuns: &[File; 2], mut ways: [Way; 2], counters: &Counters) {
    let mut buf = vec![0; 1 << 16];
    let mut fds = [0, 1].map(|i| libc::pollfd { fd: tuns[i].as_raw_fd(), events: libc::POLLIN, revents: 0 });
    while !counters.stop.load(Relaxed) {
        for (way, mut to) in ways.iter_mut().zip([&tuns[1], &tuns[0]]) {
            while let Some((due, packet)) = way.pop(Instant::now()) {
                let late = due.elapsed().as_nanos().try_into().unwrap_or(u64::MAX);
                counters.latest.fetch_max(late, Relaxed);
                to.write_all(&packet).ok();
            }
        }
        let due = ways.iter().filter_map(Way::due).min();
        let left = due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
        // Waking up takes about 50 µs: before that, this only looks.
        let wait = libc::timespec { tv_sec: 0, tv_nsec: left.saturating_sub(SPIN).as_nanos() as i64 };
        // SAFETY: both outlive the call, and there is no signal mask.
        unsafe { libc::ppoll(fds.as_mut_ptr(), 2, &raw const wait, std::ptr::null()) };
        for (way, mut from) in ways.iter_mut().zip(tuns) {
            for _ in 0..BATCH {
                let Ok(len) = from.read(&mut buf) else { break };
                counters.bytes.fetch_add(len as u64, Relaxed);
                way.push(Instant::now(), &buf[..len]);
            }
        }
    }
}

/// One direction.
struct Way {
    path: Path,
    random: u64,
    /// In order, with the time when each arrives.
    flying: VecDeque<(Instant, Vec<u8>)>,
    /// When the bottleneck has sent all that it has accepted.
    busy_until: Instant,
}

impl Way {
    fn new(path: Path, seed: u64, direction: u64) -> Self {
        let random = seed.wrapping_mul(2).wrapping_add(direction).wrapping_mul(0xd1b5_4a32_d192_ed03);
        Self { path, random, flying: VecDeque::new(), busy_until: Instant::now() }
    }

    fn push(&mut self, now: Instant, packet: &[u8]) {
        let is_lost = self.random() < self.path.loss;
        let mut at = now;
        if let Some((rate, queue)) = self.path.bottleneck {
            let wait = self.busy_until.saturating_duration_since(now);
            let waiting = wait.as_secs_f64() * rate as f64 / 8.0;
            if !wait.is_zero() && waiting + packet.len() as f64 > queue as f64 {
                return; // an idle bottleneck takes any packet
            }
            at = now + wait + Duration::from_secs_f64(packet.len() as f64 * 8.0 / rate as f64);
            self.busy_until = at;
        }
        if !is_lost {
            self.flying.push_back((at + self.path.one_way, packet.to_vec()));
        }
    }

    fn due(&self) -> Option<Instant> {
        self.flying.front().map(|(due, _)| *due)
    }

    fn pop(&mut self, now: Instant) -> Option<(Instant, Vec<u8>)> {
        if self.due()? > now { None } else { self.flying.pop_front() }
    }

    /// From 0 up to 1. Source: `SplitMix64`, <https://prng.di.unimi.it/splitmix64.c>.
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Packets read from one side before due ones are delivered again.
const BATCH: usize = 64;
/// How long to look, without a pause, for the next packet that is due.
const SPIN: Duration = Duration::from_micros(80);
/// How often to look whether it is over.
const LOOK: Duration = Duration::from_millis(20);
