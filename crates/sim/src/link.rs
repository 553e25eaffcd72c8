//! One direction of a path.

use super::bottleneck::Queue;
use super::config::{EcnPath, LinkConfig, LinkError};
use super::loss::LossState;
use super::rng::SimRng;
use super::stats::{IP_AND_UDP, LinkStats};
use rand::RngExt;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::Ecn;

/// One direction of a path: it delays, loses, reorders, duplicates and damages datagrams, driven by a seed.
///
/// Buffers are reused, so a steady state does not allocate.
///
/// ```
/// use std::time::Duration;
/// use whitewater::Time;
/// use whitewater_sim::{Link, LinkConfig};
///
/// let mut link = Link::new(LinkConfig::with_rtt(Duration::from_millis(60)), 7, 1)?;
/// link.send(Time::ZERO, b"hello");
/// assert_eq!(link.next_arrival(), Some(Time::from_millis(30)));
/// assert_eq!(link.arrive(Time::from_millis(29)), None);
/// assert_eq!(link.arrive(Time::from_millis(30)), Some(&b"hello"[..]));
/// # Ok::<(), whitewater_sim::LinkError>(())
/// ```
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    rng: SimRng,
    loss: LossState,
    damage: SimRng,
    queue: Queue,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    /// When the last datagram that was not reordered arrives.
    last: Time,
    /// The datagram that arrived last, and the ECN mark in its IP header.
    arrived: Vec<u8>,
    arrived_ecn: Option<Ecn>,
    spare: Vec<Vec<u8>>,
    stats: LinkStats,
    /// Number of datagrams and copies sent so far; orders those that arrive at the same time.
    count: u64,
    digest: u64,
}

/// Ordered by arrival.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct UnderWay {
    at: Time,
    count: u64,
    datagram: Vec<u8>,
    ecn: Option<Ecn>,
}

impl Link {
    /// Creates a link that uses the random numbers of stream `stream`. Loss bursts and damage use streams of
    /// their own: `stream` + 100 and + 200.
    ///
    /// # Errors
    ///
    /// If a field of `config` is out of range.
    pub fn new(config: LinkConfig, seed: u64, stream: u64) -> Result<Self, LinkError> {
        config.check()?;
        Ok(Self {
            config,
            rng: SimRng::new(seed, stream),
            loss: LossState::new(SimRng::new(seed, stream.wrapping_add(100))),
            damage: SimRng::new(seed, stream.wrapping_add(200)),
            queue: Queue::default(),
            under_way: BinaryHeap::new(),
            last: Time::ZERO,
            arrived: Vec::new(),
            arrived_ecn: None,
            spare: Vec::new(),
            stats: LinkStats::default(),
            count: 0,
            digest: 0,
        })
    }

    /// Changes what happens to datagrams from now on. Those in flight are not affected.
    ///
    /// # Errors
    ///
    /// If a field of `config` is out of range. Nothing has changed then.
    pub fn set(&mut self, config: LinkConfig) -> Result<(), LinkError> {
        config.check()?;
        self.config = config;
        Ok(())
    }

    /// What happens to datagrams.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Sends a datagram; times must not decrease. Always draws four random numbers, lost or not, so that
    /// changing the chance of one thing does not affect the others.
    pub fn send(&mut self, now: Time, datagram: &[u8]) {
        self.send_with(now, None, datagram);
    }

    /// Like [`send`](Self::send), with an ECN mark in the IP header.
    pub fn send_with(&mut self, now: Time, ecn: Option<Ecn>, datagram: &[u8]) {
        let [loses, delays, reorders, doubles] = [(); 4].map(|()| self.rng.random::<f64>());
        self.note(now, datagram);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(datagram);
        let damaged = self.config.corruption.apply(&mut self.damage, &mut bytes);
        let ecn = self.mark(now, ecn);
        let is_dropped = ecn.is_some() && self.config.ecn == EcnPath::Drops;
        let departure = self.pass(now, datagram.len(), loses).filter(|_| !is_dropped);
        let Some(departure) = departure else {
            self.spare.push(bytes);
            return;
        };
        let arrival = self.arrival(departure, delays, reorders);
        self.stats.corrupted += u64::from(damaged);
        if doubles < self.config.duplicate {
            self.stats.duplicated += 1;
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clone_from(&bytes);
            self.push(arrival, bytes, ecn);
            self.push(arrival + Duration::from_micros(1) + self.config.jitter, copy, ecn);
        } else {
            self.push(arrival, bytes, ecn);
        }
    }

    /// When the next datagram arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.under_way.peek().map(|Reverse(next)| next.at)
    }

    /// Returns the next datagram if it has arrived.
    pub fn arrive(&mut self, now: Time) -> Option<&[u8]> {
        if self.next_arrival()? > now {
            return None;
        }
        let Reverse(next) = self.under_way.pop()?;
        self.spare.push(std::mem::replace(&mut self.arrived, next.datagram));
        self.arrived_ecn = next.ecn;
        self.stats.delivered += 1;
        Some(&self.arrived)
    }

    /// The ECN mark in the IP header of the datagram that arrived last.
    #[must_use]
    pub const fn arrived_ecn(&self) -> Option<Ecn> {
        self.arrived_ecn
    }

    /// Whether no datagram is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// What happened to the datagrams so far.
    #[must_use]
    pub const fn stats(&self) -> LinkStats {
        self.stats
    }

    /// A number that depends on every byte sent over the link and its time: equal runs have equal digests.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Counts a datagram and adds it to the digest.
    fn note(&mut self, now: Time, datagram: &[u8]) {
        self.stats.sent += 1;
        self.stats.bytes += datagram.len() as u64;
        let words = datagram.chunks(8).map(|chunk| {
            let bytes = chunk.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
            bytes.wrapping_add(chunk.len() as u64) // makes a trailing zero count
        });
        for word in std::iter::once(now.as_micros()).chain(words) {
            self.digest = (self.digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }

    /// What the path turns an ECN mark into.
    fn mark(&mut self, now: Time, ecn: Option<Ecn>) -> Option<Ecn> {
        let backlog = self.config.bottleneck.map_or(0, |bottleneck| self.queue.backlog(now, bottleneck.rate));
        let is_marked = match self.config.ecn {
            EcnPath::Bleaches => return None,
            EcnPath::MarksAbove(bytes) => backlog > bytes,
            EcnPath::MarksAll => true,
            EcnPath::Passes | EcnPath::Drops => false,
        };
        if !is_marked || ecn.is_none() {
            return ecn;
        }
        self.stats.marked += 1;
        Some(Ecn::Congested)
    }

    /// When a datagram leaves the bottleneck; `None`: it gets lost.
    fn pass(&mut self, now: Time, len: usize, loses: f64) -> Option<Time> {
        let (size, config, stats) = (len.saturating_add(IP_AND_UDP), &self.config, &mut self.stats);
        if config.mtu.is_some_and(|mtu| size > mtu) {
            stats.too_large += 1;
            return None;
        }
        let mut departure = now;
        if let Some(bottleneck) = config.bottleneck {
            let Some(left) = self.queue.depart(now, size, bottleneck) else {
                stats.dropped += 1;
                return None;
            };
            departure = left;
            stats.queued += 1;
            stats.queue_delay = stats.queue_delay.saturating_add(left.since(now));
            stats.queue_delay_max = stats.queue_delay_max.max(left.since(now));
        }
        let lost = self.loss.loses(&config.loss, departure, loses);
        if config.is_out(now) {
            stats.cut_off += 1;
        } else if lost {
            stats.lost += 1;
        } else {
            return Some(departure);
        }
        None
    }

    /// When a datagram arrives that leaves the bottleneck at `departure`.
    fn arrival(&mut self, departure: Time, delays: f64, reorders: f64) -> Time {
        let arrival = departure + self.config.delay + self.config.jitter(delays);
        if reorders < self.config.reorder {
            self.stats.late += 1;
            return arrival + self.config.late;
        }
        if !self.config.in_order {
            return arrival;
        }
        self.last = self.last.max(arrival);
        self.last
    }

    fn push(&mut self, at: Time, datagram: Vec<u8>, ecn: Option<Ecn>) {
        let at = self.config.released(at);
        self.count += 1;
        self.under_way.push(Reverse(UnderWay { at, count: self.count, datagram, ecn }));
    }
}
