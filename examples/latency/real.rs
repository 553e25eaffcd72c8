//! Real time: both ends of each mode over UDP sockets, with a lossy relay between them. All modes run side by side.
//! Both ends share one clock, so latencies are one-way.

use crate::Outcome;
use crate::args::Args;
use crate::progress::Bar;
use crate::relay::{self, Link};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Conv, PeerEvent, PeerId, Stats};
use whitewater::net::Error;
use whitewater_sim::scenario::{Answer, Mode, Report, Run, Traffic, Workload};

/// Runs every mode at the same time.
pub(crate) fn run(args: &Args) -> io::Result<Vec<Outcome>> {
    let (workload, link) = (args.workload, args.relay);
    let traffic = workload.traffic.at(workload.traffic.count);
    thread::scope(|scope| {
        let modes: Vec<_> =
            args.modes.iter().map(|mode| (mode, scope.spawn(move || one(workload, link, mode)))).collect();
        let (bar, start) = (Bar::new(u64::try_from(traffic.as_millis()).unwrap_or(u64::MAX)), Instant::now());
        while modes.iter().any(|(_, running)| !running.is_finished()) {
            bar.show(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX), "all modes");
            thread::sleep(Duration::from_millis(100));
        }
        let join = |(mode, running): (&Mode, thread::ScopedJoinHandle<'_, io::Result<Report>>)| {
            let report = running.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))?;
            Ok((mode.name.clone(), report))
        };
        modes.into_iter().map(join).collect()
    })
}

fn one(workload: Workload, link: Link, mode: &Mode) -> io::Result<Report> {
    let [alice, bob] = &mode.ends;
    let limits = kcp::PeersConfig { kcp: bob.config, eager: bob.drive.flush, ..kcp::PeersConfig::default() };
    let listener = kcp::Listener::bind((Ipv4Addr::LOCALHOST, 0), &limits)?;
    let network = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut socket = kcp::Socket::connect(network.local_addr()?, Conv(1), &alice.config)?;
    socket.set_eager(alice.drive.flush);
    relay::start(network, listener.local_addr()?, link)?;
    let clock = Clock { start: Instant::now(), workload, done: AtomicBool::new(false) };
    let ends = thread::scope(|scope| {
        let bob = scope.spawn(|| {
            let ended = Bob::new(listener).run(&clock);
            clock.done.store(true, Relaxed); // also if it failed
            ended
        });
        let sent = clock.send(&mut socket);
        clock.done.store(true, Relaxed);
        let received = bob.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        sent.and(received)
    });
    let (run, bob) = ends?;
    let stats = [socket.stats(), bob];
    let mut report = Report::default();
    report.sent = workload.traffic.count.into();
    report.delivered = run.latencies.len() as u64;
    report.resends =
        stats.iter().map(|end| u64::from(end.resends_timeout) + u64::from(end.resends_fast)).sum();
    let mut run = run;
    run.bytes = stats.map(|end| end.bytes_sent);
    report.runs.push(run);
    Ok(report)
}

/// What both ends share.
struct Clock {
    start: Instant,
    workload: Workload,
    done: AtomicBool,
}

impl Clock {
    fn is_done(&self) -> bool {
        let traffic = self.workload.traffic;
        self.done.load(Relaxed) || self.start.elapsed() > traffic.at(traffic.count) + PATIENCE
    }

    fn due(&self, traffic: Traffic, index: u32) -> bool {
        index < traffic.count && traffic.at(index) <= self.start.elapsed()
    }

    /// The time until message `index`, or until it is time to check whether the run is done.
    fn wait(&self, traffic: Traffic, index: u32) -> Duration {
        let due = traffic.at(index).saturating_sub(self.start.elapsed());
        if index < traffic.count { due.min(LOOK) } else { LOOK }
    }

    /// Alice: sends until bob is done. What bob sends is read and dropped.
    fn send(&self, socket: &mut kcp::Socket) -> io::Result<()> {
        let traffic = self.workload.traffic;
        let (mut sent, mut buf) = (0, vec![0; MESSAGE]);
        while !self.is_done() {
            while self.due(traffic, sent) {
                socket.send_blocking(&message(sent, traffic.size))?;
                sent += 1;
            }
            socket.set_read_timeout(Some(self.wait(traffic, sent)));
            blocked(socket.recv_blocking(&mut buf))?;
        }
        Ok(())
    }
}

/// The receiver, which may also send traffic of its own.
struct Bob {
    listener: kcp::Listener,
    peer: Option<PeerId>,
    sent: u32,
    run: Run,
    buf: Vec<u8>,
}

impl Bob {
    fn new(listener: kcp::Listener) -> Self {
        Self { listener, peer: None, sent: 0, run: Run::default(), buf: vec![0; MESSAGE] }
    }

    fn run(mut self, clock: &Clock) -> io::Result<(Run, Stats)> {
        let wanted = clock.workload.traffic.count as usize;
        let own = match clock.workload.answer {
            Answer::Traffic(traffic) => traffic,
            _ => Traffic { count: 0, ..clock.workload.traffic },
        };
        while !clock.is_done() && self.run.latencies.len() < wanted {
            // Bare KCP has no address to send to before something has arrived.
            let wait = if self.peer.is_some() { clock.wait(own, self.sent) } else { LOOK };
            self.listener.poll(Some(wait))?;
            while let Some(event) = self.listener.poll_event() {
                if let PeerEvent::Accepted(id) = event {
                    self.peer = Some(id);
                }
            }
            self.act(clock, own)?;
        }
        let peer = self.peer.and_then(|id| self.listener.peer(id));
        let stats = peer.map(|peer| peer.stats());
        Ok((self.run, stats.ok_or_else(|| io::Error::other("no datagram came"))?))
    }

    /// Reads what has arrived and sends what is due.
    fn act(&mut self, clock: &Clock, own: Traffic) -> io::Result<()> {
        let Some(peer) = self.peer.and_then(|id| self.listener.peer(id)) else { return Ok(()) };
        let traffic = clock.workload.traffic;
        while let Some(len) =
            blocked(peer.recv_into(&mut self.buf).map_err(|error| Error::from(error).into()))?
        {
            let index = u32::try_from(self.run.latencies.len()).unwrap_or(u32::MAX);
            if self.buf.get(..len) != Some(&message(index, traffic.size)) {
                return Err(io::Error::other(format!("what came is not message {index}")));
            }
            self.run.latencies.push(clock.start.elapsed().saturating_sub(traffic.at(index)));
            self.run.payload += len as u64;
            self.run.lasted = clock.start.elapsed();
        }
        while clock.due(own, self.sent) {
            peer.send(&message(self.sent, own.size)).map_err(Error::from)?;
            self.sent += 1;
        }
        Ok(())
    }
}

/// `None` instead of `WouldBlock`.
fn blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        other => other.map(Some),
    }
}

/// Message `index`: its bytes differ from those of every other message.
fn message(index: u32, size: usize) -> Vec<u8> {
    index.to_le_bytes().into_iter().cycle().take(size).collect()
}

/// How long to wait for the last messages.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to check whether the other end is done.
const LOOK: Duration = Duration::from_millis(50);
/// Room for the longest message.
const MESSAGE: usize = 1 << 16;
