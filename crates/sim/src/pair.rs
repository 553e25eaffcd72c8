//! Two peers and the path between them, run from event to event.

use super::link::Link;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::{DatagramQueue, Machine};

/// One end of a path that has no addresses. Every [`Machine`] is one.
pub trait Peer {
    /// Takes a datagram from the other end. It may be damaged.
    fn input(&mut self, now: Time, datagram: &[u8]);

    /// Does what is due at `now`, which is the time that [`next_wake`](Self::next_wake) returned or later.
    fn poll(&mut self, now: Time);

    /// When to poll next if nothing arrives before; `None`: not needed. A time in the past means now.
    fn next_wake(&self, now: Time) -> Option<Time>;

    /// Replaces the content of `datagram` by the next datagram for the other end. Returns `false` if there is
    /// none.
    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool;
}

impl<M: Machine> Peer for M {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.handle_datagram(now, NOWHERE.into(), &mut datagram.to_vec());
    }

    fn poll(&mut self, now: Time) {
        self.handle_timeout(now);
    }

    fn next_wake(&self, _: Time) -> Option<Time> {
        self.poll_timeout()
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        datagram.clear();
        self.poll_transmit(Time::ZERO, datagram).is_some() // it knows the time from the other calls
    }
}

/// Implements [`Peer::pop_datagram`] for datagrams that wait in a queue.
pub fn pop_from(queue: &mut DatagramQueue, datagram: &mut Vec<u8>) -> bool {
    let next = queue.pop();
    if let Some(next) = next {
        datagram.clear();
        datagram.extend_from_slice(next);
    }
    next.is_some()
}

/// Two peers, the links between them, and a virtual clock that jumps from event to event.
///
/// Between two steps, call the peers with the time [`now`](Self::now); whatever they send leaves at that
/// time.
///
/// ```
/// use std::time::Duration;
/// use whitewater_sim::{Drive, KcpEnd, Link, LinkConfig, Pair};
/// use whitewater::Time;
/// use whitewater::kcp::{Config, Conv};
///
/// let end = || KcpEnd::new(Conv(7), &Config::default(), Drive::CHECK, Time::ZERO);
/// let link = |stream| Link::new(LinkConfig::mobile(), 42, stream);
/// let mut pair = Pair::new(end()?, end()?, [link(1)?, link(2)?]);
/// pair.alice.send(pair.now(), b"hello")?;
///
/// let mut message = Vec::new();
/// let arrived = pair.run_until(Duration::from_secs(1), |pair| pair.bob.recv(&mut message));
/// assert!(arrived && message == b"hello");
/// println!("after {}", pair.now());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Pair<A, B> {
    /// One peer.
    pub alice: A,
    /// The other peer.
    pub bob: B,
    /// The links from alice to bob and from bob to alice.
    pub links: [Link; 2],
    now: Time,
    steps: u64,
    /// Steps since the clock last advanced.
    steps_now: u32,
    datagram: Vec<u8>,
}

impl<A: Peer, B: Peer> Pair<A, B> {
    /// Creates a pair at [`Time::ZERO`]. `links` lead from alice to bob and from bob to alice.
    pub const fn new(alice: A, bob: B, links: [Link; 2]) -> Self {
        Self { alice, bob, links, now: Time::ZERO, steps: 0, steps_now: 0, datagram: Vec::new() }
    }

    /// The current virtual time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events processed so far: the cost of a run.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// When something happens next; `None`: never.
    pub fn next_event(&mut self) -> Option<Time> {
        self.collect();
        let Self { alice, bob, links: [there, back], now, .. } = self;
        let wakes = [alice.next_wake(*now), bob.next_wake(*now)];
        wakes.into_iter().chain([there.next_arrival(), back.next_arrival()]).flatten().min()
    }

    /// Advances to the next event and processes it. Returns `false` if there is none up to `until`.
    ///
    /// At equal times, peers are polled before datagrams arrive.
    pub fn step(&mut self, until: Time) -> bool {
        let Some(next) = self.next_event().map(|at| self.unstuck(at)).filter(|at| *at <= until) else {
            return false;
        };
        self.steps += 1;
        self.steps_now = if next > self.now { 0 } else { self.steps_now + 1 };
        self.now = self.now.max(next);
        let now = self.now;
        for peer in [&mut self.alice as &mut dyn Peer, &mut self.bob] {
            if peer.next_wake(now).is_some_and(|at| at <= now) {
                peer.poll(now);
            }
        }
        self.collect();
        let Self { alice, bob, links: [there, back], .. } = self;
        carry(there, bob, now);
        carry(back, alice, now);
        self.collect();
        true
    }

    /// Processes every event up to and including `until`.
    pub fn run_to(&mut self, until: Time) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Lets `duration` pass.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_to(self.now + duration);
    }

    /// Lets time pass until `done`, which is called after each event. Returns `false` if nothing more
    /// happens, or if `limit` passes first.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.now + limit;
        while !done(self) {
            if !self.step(until) {
                return false;
            }
        }
        true
    }

    /// Moves what the peers want to send to the links.
    fn collect(&mut self) {
        let Self { alice, bob, links: [there, back], now, datagram, .. } = self;
        while alice.pop_datagram(datagram) {
            there.send(*now, datagram);
        }
        while bob.pop_datagram(datagram) {
            back.send(*now, datagram);
        }
    }

    /// The time of the next event, delayed once in a while: a peer that always wants to be polled at once
    /// must not stop the clock.
    fn unstuck(&self, next: Time) -> Time {
        if self.steps_now < STEPS_AT_ONCE { next } else { next.max(self.now + Duration::from_micros(1)) }
    }
}

/// Passes what has arrived to `peer`.
fn carry(link: &mut Link, peer: &mut impl Peer, now: Time) {
    while let Some(datagram) = link.arrive(now) {
        peer.input(now, datagram);
    }
}

/// A placeholder for the addresses of machines.
pub(super) const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// Most steps before the clock advances by 1 µs, whatever the peers ask for.
const STEPS_AT_ONCE: u32 = 1000;
