//! A full server: thousands of sessions that each send 64 bytes both ways 30 times per second, at different
//! times. It runs in virtual time and in memory, so counts and latencies are exact. Only the time of the
//! server's ends is measured; the same applies to the instructions that `callgrind.sh crowd` counts.

mod bare;
mod batch;
mod beat;
#[cfg(target_os = "linux")]
mod enet;
mod nothing;
mod path;
mod quic;
mod renet;
#[cfg(target_os = "linux")]
pub(crate) mod scale;
mod sessions;
#[cfg(target_os = "linux")]
pub(crate) mod still;
#[cfg(target_os = "linux")]
pub(crate) mod udp;

use crate::heap;
use crate::ikcp::Ikcp;
use crate::rust::Rust;
use bare::{Bare, ByTime, Classic};
pub(crate) use bare::{address, random};
use batch::Batch;
use beat::Beat;
use nothing::Nothing;
use path::Path;
use sessions::{By, Clients, Server};

/// All ends of one side. Times are in ms.
trait Side {
    /// Takes a datagram of the session `index`.
    fn input(&mut self, now: u32, index: usize, datagram: &[u8]);
    fn send(&mut self, now: u32, index: usize, message: &[u8]);
    /// Does what is due and passes outgoing datagrams to `out`.
    fn update(&mut self, now: u32, out: impl FnMut(usize, &[u8]));
    /// Passes each received message to `take`.
    fn recv(&mut self, now: u32, take: impl FnMut(&[u8]));
    /// Whether a server that sleeps until its next timer or datagram would wake up for a timer. By default it is
    /// called in each ms.
    fn is_due(&self, _now: u32) -> bool {
        true
    }
}

/// The results of a run.
struct Found {
    /// Datagrams sent by the server's ends, per session and second.
    datagrams: f64,
    bytes: f64,
    /// ms from sending to receiving, in both directions.
    p50: u32,
    p99: u32,
    p999: u32,
    /// ns per session in 1/30 s.
    cpu: f64,
}

pub(crate) fn table(sessions: usize) {
    println!(
        "{sessions} sessions, 30 x 64 B a second both ways, {} ms round trip; the server's ends, a session",
        2 * DELAY
    );
    for loss in [0, 1, 5] {
        println!("loss {loss} %");
        let base = one("ikcp.c", sessions, loss);
        for name in NAMES {
            one(name, sessions, loss).print(name, &base);
        }
    }
}

/// The cost of sessions whose applications send nothing.
pub(crate) fn idle(sessions: usize) {
    let crowd = Crowd { sessions, loss: 0, is_idle: true, seconds: SECONDS };
    let Found { datagrams, bytes, cpu, .. } = crowd.run(Server::new, Clients::new);
    let percent = cpu * 30.0 * 1e6 / 1e9 * 100.0;
    println!(
        "an idle session of {sessions}, with a sign of life each 2 s: {datagrams:.1} datagrams and {bytes:.0} B a second, {:.0} ns of \
         CPU; a million of them {percent:.0} % of a core",
        cpu * 30.0
    );
}

/// One run, for a profiler, that measures `seconds` of the load.
pub(crate) fn profile(name: &str, sessions: usize, loss: u32, seconds: u32) {
    let found = run(name, Crowd { sessions, loss, is_idle: false, seconds });
    found.print(name, &found);
}

const NAMES: [&str; 5] = ["ikcp.c", "kcp", "classic", "by-time", "sessions"];

fn one(name: &str, sessions: usize, loss: u32) -> Found {
    run(name, Crowd { sessions, loss, is_idle: false, seconds: SECONDS })
}

fn run(name: &str, crowd: Crowd) -> Found {
    match name {
        "nothing" => crowd.run(Nothing::new, Nothing::new),
        "ikcp.c" => crowd.run(Beat::<Ikcp>::new, Beat::<Ikcp>::new),
        "kcp" => crowd.run(Beat::<Rust>::new, Beat::<Rust>::new),
        "classic" => crowd.run(Bare::<Classic>::new, Bare::<Classic>::new),
        "by-time" => crowd.run(Bare::<ByTime>::new, Bare::<ByTime>::new),
        "sessions" => crowd.run(Server::new, Clients::new),
        "encrypted" => crowd.run(Server::encrypted, Clients::encrypted),
        "datagrams" => {
            let by = By::Datagrams;
            crowd.run(|count, seed| Server::by(by, count, seed), |count, seed| Clients::by(by, count, seed))
        }
        _ => panic!("{name}: none of {NAMES:?}"),
    }
}

/// One implementation under the load.
struct Crowd {
    sessions: usize,
    loss: u32,
    /// Whether nobody sends anything.
    is_idle: bool,
    /// How long the measured part of the load is.
    seconds: u32,
}

impl Crowd {
    fn run<S: Side, C: Side>(
        &self,
        server: impl Fn(usize, u32) -> S,
        clients: impl Fn(usize, u32) -> C,
    ) -> Found {
        let (count, end) = (self.sessions, WARM + 1000 * self.seconds);
        let start = if self.is_idle { u32::MAX } else { START };
        let mut world = World::new(count, self.loss, start, server, clients);
        (0..WARM).for_each(|now| world.tick(now));
        let (sent, bytes, cpu) = (world.down.datagrams, world.down.bytes, world.cpu);
        world.latencies.fill(0);
        (WARM..end).for_each(|now| world.tick(now));
        let each = count as f64 * f64::from(self.seconds);
        let total: u64 = world.latencies.iter().sum();
        let expected = 2 * (count as u64) * u64::from(self.seconds) * 30;
        assert!(self.is_idle || total * 100 > expected * 99, "{total} of {expected} messages");
        Found {
            datagrams: (world.down.datagrams - sent) as f64 / each,
            bytes: (world.down.bytes - bytes) as f64 / each,
            p50: world.quantile(total / 2),
            p99: world.quantile(total / 100 * 99),
            p999: world.quantile(total / 1000 * 999),
            cpu: (world.cpu - cpu) * 1e9 / each / 30.0,
        }
    }
}

impl Found {
    fn print(&self, name: &str, base: &Self) {
        let Self { datagrams, bytes, p50, p99, p999, cpu } = self;
        println!(
            "  {:12}{datagrams:6.1} datagrams, {bytes:5.0} B per second; {p50:3}, {p99:3}, {p999:3} ms p50, p99, p99.9; \
             {cpu:5.0} ns per tick of 1/30 s ({:.2}x)",
            name,
            cpu / base.cpu
        );
    }
}

/// Both sides and the path between them.
struct World<S, C> {
    server: S,
    clients: C,
    up: Path,
    down: Path,
    /// Who sends when, on each side, and from which ms on.
    sends: [Agenda; 2],
    start: u32,
    /// Number of messages by their latency in ms.
    latencies: Vec<u64>,
    /// What the server receives in one ms, and what it sends.
    arrived: Batch,
    leaving: Batch,
    /// CPU seconds of the server's side.
    cpu: f64,
    /// What the server's side has on the heap, if that is counted, bytes.
    heap: usize,
    /// In how many ms a timer of the server's side was due.
    wakes: u64,
}

impl<S: Side, C: Side> World<S, C> {
    /// Both sides of `count` sessions, which send messages from the ms `start` on.
    fn new(
        count: usize,
        loss: u32,
        start: u32,
        server: impl Fn(usize, u32) -> S,
        clients: impl Fn(usize, u32) -> C,
    ) -> Self {
        let before = heap::live();
        let server = server(count, 0);
        Self {
            server,
            heap: heap::live() - before,
            clients: clients(count, 1),
            up: Path::new(DELAY, loss, 1),
            down: Path::new(DELAY, loss, 2),
            sends: [3, 5].map(|seed| Agenda::new(count, seed)),
            start,
            latencies: vec![0; LONGEST],
            arrived: Batch::default(),
            leaving: Batch::default(),
            cpu: 0.0,
            wakes: 0,
        }
    }

    fn tick(&mut self, now: u32) {
        let Self { server, clients, up, down, sends, start, latencies, arrived, leaving, cpu, heap, wakes } =
            self;
        let mut note = |message: &[u8]| {
            let sent = message.first_chunk().map_or(0, |sent| u32::from_le_bytes(*sent));
            latencies[((now - sent) as usize).min(LONGEST - 1)] += 1;
        };
        let mut message = [0x5a; SIZE];
        message[..4].copy_from_slice(&now.to_le_bytes());
        let due = |agenda: &Agenda| if now < *start { Vec::new() } else { agenda.of(now).to_vec() };
        let [for_server, for_clients] = sends;
        let (for_server, for_clients) = (due(for_server), due(for_clients));

        arrived.clear();
        up.arrive(now, |index, datagram| arrived.push(index, datagram));
        leaving.clear();
        *wakes += u64::from(server.is_due(now));
        let (began, live) = (thread_time(), heap::live());
        serve(server, now, arrived, (&for_server, &message), leaving, &mut note);
        *cpu += thread_time() - began;
        *heap = heap.wrapping_add(heap::live().wrapping_sub(live));
        leaving.each(|index, datagram| down.carry(now, index, datagram));

        down.arrive(now, |index, datagram| clients.input(now, index, datagram));
        clients.recv(now, &mut note);
        for_clients.into_iter().for_each(|index| clients.send(now, index, &message));
        clients.update(now, |index, datagram| up.carry(now, index, datagram));
    }

    fn quantile(&self, rank: u64) -> u32 {
        let mut left = rank;
        let at = self.latencies.iter().position(|count| {
            let is_here = *count > left;
            left = left.saturating_sub(*count);
            is_here
        });
        at.map_or(0, |ms| ms as u32)
    }
}

/// What the server's ends do in one ms, which is what is measured. `callgrind.sh` knows its name.
#[inline(never)]
fn serve<S: Side>(
    server: &mut S,
    now: u32,
    arrived: &Batch,
    (senders, message): (&[usize], &[u8]),
    leaving: &mut Batch,
    note: impl FnMut(&[u8]),
) {
    arrived.each(|index, datagram| server.input(now, index, datagram));
    server.recv(now, note);
    senders.iter().for_each(|index| server.send(now, *index, message));
    server.update(now, |index, datagram| leaving.push(index, datagram));
}

/// Who sends in which ms of 100: each three times, with a random start.
struct Agenda([Vec<usize>; 100]);

impl Agenda {
    fn new(count: usize, seed: u64) -> Self {
        let mut agenda = [const { Vec::new() }; 100];
        for index in 0..count {
            let first = anywhere(index, seed) % 100;
            for later in [0, 33, 67] {
                agenda[(first + later) % 100].push(index);
            }
        }
        Self(agenda)
    }

    fn of(&self, now: u32) -> &[usize] {
        &self.0[now as usize % 100]
    }
}

/// A pseudo-random number that depends on both arguments. Source: `SplitMix64`,
/// <https://prng.di.unimi.it/splitmix64.c>.
fn anywhere(index: usize, seed: u64) -> usize {
    let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed << 32);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 32) as usize
}

/// CPU seconds of this thread.
pub(crate) fn thread_time() -> f64 {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time to `used` and nothing else.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut used) };
    assert_eq!(failed, 0, "the thread has a clock");
    used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9
}

/// Size of a message, bytes.
const SIZE: usize = 64;
/// Delay in each direction, ms.
const DELAY: u32 = 25;
/// When the load starts, and when the measurement starts, ms.
const START: u32 = 2000;
const WARM: u32 = 14_000;
/// How long the measurement takes, s.
pub(crate) const SECONDS: u32 = 6;
/// Longest latency that is distinguished, ms.
const LONGEST: usize = 4000;
