//! Two control blocks on a simulated path: what they send, and checks that everything arrives.

use super::wire::CONV;
use bytes::Bytes;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{self, Config, Conv, Kcp, Sn};
use whitewater::machine::DatagramQueue;
use whitewater_sim::{Clock, Drive, Link, LinkConfig, Loss, Peer, pop_from};

/// A clean path with a round trip of 60 ms.
pub(crate) fn clean() -> LinkConfig {
    LinkConfig::with_rtt(Duration::from_millis(60))
}

/// The same with loss.
pub(crate) fn lossy(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..clean() }
}

/// The same with a bit of everything.
pub(crate) fn rough() -> LinkConfig {
    LinkConfig {
        jitter: Duration::from_millis(15),
        reorder: 0.03,
        late: Duration::from_millis(25),
        duplicate: 0.02,
        ..lossy(0.05)
    }
}

/// Two ends and their path. A test that fails prints how they were set up.
pub(crate) type Pair = whitewater_sim::Pair<End, End>;

/// Two equal ends; see [`Setup`] for more.
pub(crate) fn pair(config: Config, link: LinkConfig, seed: u64) -> Pair {
    Setup::new(config, link, seed).pair()
}

/// The setup of a [`Pair`]. Arrays have alice's value first, then bob's.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) configs: [Config; 2],
    pub(crate) links: [LinkConfig; 2],
    pub(crate) seed: u64,
    pub(crate) drive: Drive,
    /// The number of each end's first segment.
    pub(crate) starts: [Sn; 2],
    /// The initial time on each end's clock.
    pub(crate) clocks: [Time; 2],
    /// Whether to use the calls that share buffers.
    pub(crate) shares: bool,
}

impl Setup {
    /// Two equal ends, and the same link in both directions.
    pub(crate) fn new(config: Config, link: LinkConfig, seed: u64) -> Self {
        Self {
            configs: [config; 2],
            links: [link.clone(), link],
            seed,
            drive: Drive::CHECK,
            starts: [Sn(0); 2],
            clocks: [Time::ZERO; 2],
            shares: false,
        }
    }

    pub(crate) fn pair(&self) -> Pair {
        let end = |own: usize, other: usize| End {
            kcp: kcp_starting_at(&self.configs[own], self.starts[own], self.starts[other]),
            reads: true,
            sent: Vec::new(),
            received: Vec::new(),
            received_at: Vec::new(),
            updates: 0,
            next_beat: Time::ZERO,
            clock: self.clocks[own],
            setup: self.clone(),
        };
        let link = |way: usize| Link::new(self.links[way].clone(), self.seed, way as u64 + 1).unwrap();
        Pair::new(end(0, 1), end(1, 0), [link(0), link(1)])
    }
}

/// A single control block, with numbers from 0.
pub(crate) fn kcp(config: &Config) -> Kcp<DatagramQueue> {
    kcp_starting_at(config, Sn(0), Sn(0))
}

fn kcp_starting_at(config: &Config, snd: Sn, rcv: Sn) -> Kcp<DatagramQueue> {
    Kcp::starting_at(Conv(CONV), config, DatagramQueue::with_limit(usize::MAX), snd, rcv).unwrap()
}

/// One end, with a record of what it did.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) kcp: Kcp<DatagramQueue>,
    /// Whether messages are read as soon as they are complete.
    pub(crate) reads: bool,
    /// The messages sent; in a stream, what each send accepted.
    pub(crate) sent: Vec<Vec<u8>>,
    /// The messages read.
    pub(crate) received: Vec<Vec<u8>>,
    /// When they were read.
    pub(crate) received_at: Vec<Time>,
    /// Calls of `update`.
    pub(crate) updates: u32,
    next_beat: Time,
    clock: Time,
    setup: Setup,
}

impl End {
    /// The time on this end's clock.
    pub(crate) fn time(&self, now: Time) -> Time {
        self.clock + now.since(Time::ZERO)
    }

    /// Sends a message and records what was accepted.
    pub(crate) fn send(&mut self, mut message: Vec<u8>) -> Result<usize, kcp::SendError> {
        let taken = if self.setup.shares {
            self.kcp.send_bytes(Bytes::copy_from_slice(&message))?
        } else {
            self.kcp.send(&message)?
        };
        message.truncate(taken);
        self.sent.push(message);
        Ok(taken)
    }

    /// Reads up to `count` messages.
    pub(crate) fn read(&mut self, now: Time, count: usize) {
        for _ in 0..count {
            let Some(len) = self.kcp.peek_size() else { return };
            let mut message = vec![0; len];
            if self.setup.shares {
                message.copy_from_slice(&self.kcp.recv().unwrap());
            } else {
                assert_eq!(self.kcp.recv_into(&mut message), Ok(len));
            }
            self.received.push(message);
            self.received_at.push(now);
        }
    }

    /// Number of segments that were resent.
    pub(crate) fn resends(&self) -> u32 {
        let stats = self.kcp.stats();
        stats.resends_timeout + stats.resends_fast
    }

    /// Changes settings at run time.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = *self.kcp.config();
        change(&mut config);
        self.kcp.configure(&config).unwrap();
    }

    /// What the drive does after a call from outside.
    fn after_call(&mut self, now: Time) {
        if self.setup.drive.flush {
            self.kcp.flush(self.time(now));
        }
    }
}

impl Peer for End {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        let at = self.time(now);
        let taken = if self.setup.shares {
            self.kcp.input_bytes(at, &Bytes::copy_from_slice(datagram))
        } else {
            self.kcp.input(at, datagram)
        };
        assert_eq!(taken, Ok(()), "an honest datagram");
        if self.reads {
            self.read(now, usize::MAX);
        }
        self.after_call(now);
    }

    fn poll(&mut self, now: Time) {
        let time = self.time(now);
        self.kcp.update(time);
        self.updates += 1;
        self.next_beat = now + Duration::from_millis(self.kcp.config().interval.into());
        assert!(self.kcp.check(time).is_none_or(|at| at > time), "wants to be updated at once again");
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        let time = self.time(now);
        match self.setup.drive.clock {
            Clock::Beat => Some(self.next_beat),
            _ => Some(now + self.kcp.check(time)?.since(time)),
        }
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        pop_from(self.kcp.output_mut(), datagram)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("an end of {:?}\n{:?}", self.setup, self.kcp.stats());
        }
    }
}

/// What a test tells the two ends, and what it asks of them.
pub(crate) trait Talk {
    /// Alice sends the next `count` messages of [`numbered`], of various lengths.
    fn send_numbered(&mut self, count: usize);
    /// Alice sends a message.
    fn send(&mut self, message: Vec<u8>);
    /// Bob sends a message.
    fn reply(&mut self, message: Vec<u8>);
    /// Bob reads up to `count` messages.
    fn read(&mut self, count: usize);
    /// Runs until nothing is left to be sent, resent or acknowledged, and nothing is in flight. Returns
    /// `false` if that takes longer than `limit`.
    fn run_until_idle(&mut self, limit: Duration) -> bool;
    fn is_idle(&self) -> bool;
    /// Number of segments that both ends resent.
    fn resends(&self) -> u32;
    /// Checks that every message arrived once, in order and intact, in both directions.
    fn assert_delivered(&self);
    /// The same for streams: compares the bytes, however they were split.
    fn assert_streamed(&self);
}

impl Talk for Pair {
    fn send_numbered(&mut self, count: usize) {
        for number in self.alice.sent.len()..self.alice.sent.len() + count {
            self.send(numbered(number, 8 + number * 37 % 500));
        }
    }

    fn send(&mut self, message: Vec<u8>) {
        self.alice.send(message).unwrap();
        self.alice.after_call(self.now());
    }

    fn reply(&mut self, message: Vec<u8>) {
        self.bob.send(message).unwrap();
        self.bob.after_call(self.now());
    }

    fn read(&mut self, count: usize) {
        let now = self.now();
        self.bob.read(now, count);
        self.bob.after_call(now);
    }

    fn run_until_idle(&mut self, limit: Duration) -> bool {
        self.run_until(limit, |pair| pair.is_idle())
    }

    fn is_idle(&self) -> bool {
        let is_quiet = |end: &End| end.kcp.is_idle() && end.kcp.output().is_empty();
        is_quiet(&self.alice) && is_quiet(&self.bob) && self.links.iter().all(Link::is_empty)
    }

    fn resends(&self) -> u32 {
        self.alice.resends() + self.bob.resends()
    }

    fn assert_delivered(&self) {
        for (from, to, name) in [(&self.alice, &self.bob, "alice"), (&self.bob, &self.alice, "bob")] {
            for (number, (sent, received)) in from.sent.iter().zip(&to.received).enumerate() {
                let (have, want) = (received.len(), sent.len());
                assert!(sent == received, "{name}'s message {number} of {want} bytes came as other {have}");
            }
            assert_eq!(to.received.len(), from.sent.len(), "count of {name}'s messages that came");
            assert_eq!(to.kcp.peek_size(), None, "{name}'s");
        }
    }

    fn assert_streamed(&self) {
        for (from, to, name) in [(&self.alice, &self.bob, "alice"), (&self.bob, &self.alice, "bob")] {
            let (sent, received) = (from.sent.concat(), to.received.concat());
            let same = sent.iter().zip(&received).take_while(|(sent, received)| sent == received).count();
            let (want, have) = (sent.len(), received.len());
            assert!(sent == received, "{same} bytes of {name}'s {want} came as sent, {have} in all");
        }
    }
}

/// Message `number`: no two are alike, and no part of one is like a part of another.
pub(crate) fn numbered(number: usize, len: usize) -> Vec<u8> {
    let seed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..len as u64 / 8 + 1)
        .flat_map(|word| (seed ^ word.wrapping_mul(0xd1b5_4a32_d192_ed03)).rotate_left(17).to_le_bytes())
        .take(len)
        .collect()
}
