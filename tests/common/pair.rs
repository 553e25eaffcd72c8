//! Two control blocks and the path between them, driven from event to event.

use super::link::{Link, LinkConfig};
use super::wire::CONV;
use bytes::Bytes;
use std::time::Duration;
use whitewater::{Config, Conv, DatagramQueue, Kcp, SendError, Sn, Time};

/// What a [`Pair`] is made from; the two of an array are alice's and bob's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) configs: [Config; 2],
    pub(crate) links: [LinkConfig; 2],
    pub(crate) seed: u64,
    pub(crate) drive: Drive,
    /// The number of each end's first segment.
    pub(crate) starts: [Sn; 2],
    /// What each end's clock shows at first.
    pub(crate) clocks: [Time; 2],
    /// The calls that share buffers.
    pub(crate) shares: bool,
}

/// Who says when `update` is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Drive {
    /// `check`, and nobody else.
    Check,
    /// A timer, every interval.
    Tick,
    /// `check`; besides, `flush` is called after every send and every datagram.
    Flush,
}

impl Setup {
    /// Two ends alike, and two directions alike.
    pub(crate) fn new(config: Config, link: LinkConfig, seed: u64) -> Self {
        Self {
            configs: [config; 2],
            links: [link; 2],
            seed,
            drive: Drive::Check,
            starts: [Sn(0); 2],
            clocks: [Time::ZERO; 2],
            shares: false,
        }
    }

    pub(crate) fn pair(self) -> Pair {
        let Self { configs, links, seed, starts, clocks, shares, .. } = self;
        let end = |own: usize, other: usize| End {
            kcp: kcp_starting_at(&configs[own], starts[own], starts[other]),
            link: Link::new(links[own], seed, own as u64 + 1),
            clock: clocks[own],
            reads: true,
            shares,
            sent: Vec::new(),
            received: Vec::new(),
            received_at: Vec::new(),
            updates: 0,
            next_tick: Time::ZERO,
        };
        Pair { alice: end(0, 1), bob: end(1, 0), now: Time::ZERO, setup: self }
    }
}

/// One end on its own, with numbers from 0.
pub(crate) fn kcp(config: &Config) -> Kcp<DatagramQueue> {
    kcp_starting_at(config, Sn(0), Sn(0))
}

fn kcp_starting_at(config: &Config, snd: Sn, rcv: Sn) -> Kcp<DatagramQueue> {
    Kcp::starting_at(Conv(CONV), config, DatagramQueue::with_limit(usize::MAX), snd, rcv).unwrap()
}

/// Two ends in virtual time. A test that fails says with which seed.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) alice: End,
    pub(crate) bob: End,
    now: Time,
    setup: Setup,
}

/// One end, its way to the other, and what it did.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) kcp: Kcp<DatagramQueue>,
    pub(crate) link: Link,
    /// Whether messages are read as soon as they are there.
    pub(crate) reads: bool,
    /// The messages sent; in a stream, what was taken by each send.
    pub(crate) sent: Vec<Vec<u8>>,
    /// The messages read.
    pub(crate) received: Vec<Vec<u8>>,
    /// When they were read.
    pub(crate) received_at: Vec<Time>,
    /// Calls of `update`.
    pub(crate) updates: u32,
    shares: bool,
    clock: Time,
    next_tick: Time,
}

impl Pair {
    /// Two ends alike; see [`Setup`] for the rest.
    pub(crate) fn new(config: Config, link: LinkConfig, seed: u64) -> Self {
        Setup::new(config, link, seed).pair()
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Alice sends `count` messages of many lengths, the next ones of [`numbered`].
    pub(crate) fn send_numbered(&mut self, count: usize) {
        for number in self.alice.sent.len()..self.alice.sent.len() + count {
            self.send(numbered(number, 8 + number * 37 % 500));
        }
    }

    /// Alice sends a message.
    pub(crate) fn send(&mut self, message: Vec<u8>) {
        self.alice.send(message).unwrap();
        self.after_call();
    }

    /// Bob sends a message.
    pub(crate) fn reply(&mut self, message: Vec<u8>) {
        self.bob.send(message).unwrap();
        self.after_call();
    }

    /// Bob reads up to `count` messages.
    pub(crate) fn read(&mut self, count: usize) {
        self.bob.read(self.now, count);
        self.after_call();
    }

    /// Lets `duration` pass.
    pub(crate) fn run_for(&mut self, duration: Duration) {
        let until = self.now + duration;
        while self.step(until) {}
        self.now = until;
    }

    /// Lets time pass until nothing is to be sent, resent, acknowledged or under way. `false`: this
    /// took longer than `limit`.
    pub(crate) fn run_until_idle(&mut self, limit: Duration) -> bool {
        self.run_until(limit, Self::is_idle)
    }

    /// Lets time pass until `done`. `false`: this took longer than `limit`, or nothing happens any more.
    pub(crate) fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let until = self.now + limit;
        while !done(self) {
            if !self.step(until) {
                return false;
            }
        }
        true
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.ends().iter().all(|end| end.kcp.is_idle() && end.link.is_empty())
    }

    /// When something happens next; `None`: never.
    pub(crate) fn next_event(&self) -> Option<Time> {
        let wakes = self.ends().into_iter().filter_map(|end| self.wake(end));
        wakes.chain(self.ends().iter().filter_map(|end| end.link.next_arrival())).min()
    }

    /// Segments that both ends sent again.
    pub(crate) fn resends(&self) -> u32 {
        self.alice.resends() + self.bob.resends()
    }

    /// Every message arrived, once, in order and as it was sent, in both directions.
    pub(crate) fn assert_delivered(&self) {
        for (from, to, name) in [(&self.alice, &self.bob, "alice"), (&self.bob, &self.alice, "bob")] {
            for (number, (sent, received)) in from.sent.iter().zip(&to.received).enumerate() {
                let (have, want) = (received.len(), sent.len());
                assert!(sent == received, "{name}'s message {number} of {want} bytes came as other {have}");
            }
            assert_eq!(to.received.len(), from.sent.len(), "count of {name}'s messages that came");
            assert_eq!(to.kcp.peek_size(), None, "{name}'s");
        }
    }

    /// The same for streams: the bytes, however they were cut.
    pub(crate) fn assert_streamed(&self) {
        for (from, to, name) in [(&self.alice, &self.bob, "alice"), (&self.bob, &self.alice, "bob")] {
            let (sent, received) = (from.sent.concat(), to.received.concat());
            let same = sent.iter().zip(&received).take_while(|(sent, received)| sent == received).count();
            let (want, have) = (sent.len(), received.len());
            assert!(sent == received, "{same} bytes of {name}'s {want} came as sent, {have} in all");
        }
    }

    fn ends(&self) -> [&End; 2] {
        [&self.alice, &self.bob]
    }

    /// When `end` is to be updated, by the clock of the path.
    fn wake(&self, end: &End) -> Option<Time> {
        if self.setup.drive == Drive::Tick {
            return Some(end.next_tick);
        }
        let local = end.time(self.now);
        Some(self.now + end.kcp.check(local)?.since(local))
    }

    /// Goes on to the next event and lets it happen; `false`: there is none up to `until`.
    fn step(&mut self, until: Time) -> bool {
        let Some(next) = self.next_event().filter(|next| *next <= until) else {
            return false;
        };
        self.now = self.now.max(next);
        let Self { alice, bob, now, setup } = self;
        let flush = setup.drive == Drive::Flush;
        carry(alice, bob, *now, flush);
        carry(bob, alice, *now, flush);
        let wakes = self.ends().map(|end| self.wake(end));
        for (end, wake) in [&mut self.alice, &mut self.bob].into_iter().zip(wakes) {
            if wake.is_some_and(|at| at <= self.now) {
                end.update(self.now);
                let time = end.time(self.now);
                assert!(end.kcp.check(time).is_none_or(|at| at > time), "wants to be updated at once again");
            }
        }
        true
    }

    /// What the drive does after a call from outside.
    fn after_call(&mut self) {
        if self.setup.drive == Drive::Flush {
            for end in [&mut self.alice, &mut self.bob] {
                end.flush(self.now);
            }
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed at {} of {:?}", self.now, self.setup);
            println!("alice {:?}\nbob {:?}", self.alice.kcp.stats(), self.bob.kcp.stats());
        }
    }
}

impl End {
    /// What this end's clock shows.
    pub(crate) fn time(&self, now: Time) -> Time {
        self.clock + now.since(Time::ZERO)
    }

    /// Sends, and notes what was taken.
    pub(crate) fn send(&mut self, mut message: Vec<u8>) -> Result<usize, SendError> {
        let taken = if self.shares {
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
            if self.shares {
                message.copy_from_slice(&self.kcp.recv_bytes().unwrap());
            } else {
                assert_eq!(self.kcp.recv(&mut message), Ok(len));
            }
            self.received.push(message);
            self.received_at.push(now);
        }
    }

    pub(crate) fn update(&mut self, now: Time) {
        self.kcp.update(self.time(now));
        self.updates += 1;
        let interval = self.kcp.config().interval.into();
        self.next_tick = now + Duration::from_millis(interval);
        self.transmit(now);
    }

    pub(crate) fn flush(&mut self, now: Time) {
        self.kcp.flush(self.time(now));
        self.transmit(now);
    }

    /// Segments sent again.
    pub(crate) fn resends(&self) -> u32 {
        let stats = self.kcp.stats();
        stats.resends_timeout + stats.resends_fast
    }

    /// Changes the knobs while running.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = *self.kcp.config();
        change(&mut config);
        self.kcp.configure(&config).unwrap();
    }

    fn transmit(&mut self, now: Time) {
        while let Some(datagram) = self.kcp.output_mut().pop() {
            self.link.send(now, datagram);
        }
    }
}

/// Hands `to` what has arrived on the way from `from`.
fn carry(from: &mut End, to: &mut End, now: Time, flush: bool) {
    while let Some(datagram) = from.link.arrive(now) {
        let at = to.time(now);
        let taken = if to.shares {
            to.kcp.input_bytes(at, &Bytes::copy_from_slice(&datagram))
        } else {
            to.kcp.input(at, &datagram)
        };
        assert_eq!(taken, Ok(()), "an honest datagram");
        from.link.recycle(datagram);
        if to.reads {
            to.read(now, usize::MAX);
        }
        if flush {
            to.flush(now);
        }
    }
}

/// Message `number`: no two of them look alike, and no part of one looks like another.
pub(crate) fn numbered(number: usize, len: usize) -> Vec<u8> {
    let seed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..len as u64 / 8 + 1)
        .flat_map(|word| (seed ^ word.wrapping_mul(0xd1b5_4a32_d192_ed03)).rotate_left(17).to_le_bytes())
        .take(len)
        .collect()
}
