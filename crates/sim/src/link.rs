//! One direction of a path.

use super::bottleneck::Queue;
use super::config::{EcnPath, LinkConfig, LinkError};
use super::loss::LossState;
use super::playback::{Fate, Station};
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
    station: Station<Packet>,
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

/// A datagram at the bottleneck, with its random numbers.
#[derive(Debug)]
struct Packet {
    datagram: Vec<u8>,
    ecn: Option<Ecn>,
    is_damaged: bool,
    is_cut_off: bool,
    loses: f64,
    delays: f64,
    reorders: f64,
    doubles: f64,
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
            station: Station::default(),
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
        self.play(now);
        self.note(now, datagram);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(datagram);
        let is_damaged = self.config.corruption.apply(&mut self.damage, &mut bytes);
        let ecn = self.mark(now, ecn);
        let is_cut_off = self.config.is_out(now);
        let packet =
            Packet { datagram: bytes, ecn, is_damaged, is_cut_off, loses, delays, reorders, doubles };
        self.enter(now, datagram.len().saturating_add(IP_AND_UDP), packet);
    }

    /// When the next datagram arrives, or before that when one leaves the queue of a [`Playback`](super::Playback).
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        let leaves = self.config.playback.as_ref().and_then(|playback| self.station.next_at(&playback.trace));
        self.under_way.peek().map(|Reverse(next)| next.at).into_iter().chain(leaves).min()
    }

    /// Returns the next datagram if it has arrived.
    pub fn arrive(&mut self, now: Time) -> Option<&[u8]> {
        self.play(now);
        let Reverse(next) = self.under_way.peek()?;
        if next.at > now {
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
        self.under_way.is_empty() && self.station.is_empty()
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
        let backlog = match (&self.config.playback, self.config.bottleneck) {
            (Some(_), _) => self.station.bytes as u64,
            (None, Some(bottleneck)) => self.queue.backlog(now, bottleneck.rate),
            (None, None) => 0,
        };
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

    /// A packet of `size` bytes comes to the bottleneck.
    fn enter(&mut self, now: Time, size: usize, packet: Packet) {
        let Self { config, stats, .. } = self;
        if config.mtu.is_some_and(|mtu| size > mtu) {
            stats.too_large += 1;
            return self.spare.push(packet.datagram);
        }
        if let Some(playback) = &config.playback {
            if let Some(packet) = self.station.push(now, size, packet, playback.queue) {
                stats.dropped += 1;
                self.spare.push(packet.datagram);
            }
            return;
        }
        let Some(bottleneck) = config.bottleneck else { return self.leave(now, packet) };
        let Some(left) = self.queue.depart(now, size, bottleneck) else {
            stats.dropped += 1;
            return self.spare.push(packet.datagram);
        };
        stats.count_queued(left.since(now));
        self.leave(left, packet);
    }

    /// Plays the trace of the bottleneck, if it has one, up to and including `now`. If it no longer has one, everything
    /// that waits leaves now.
    fn play(&mut self, now: Time) {
        let fates = match &self.config.playback {
            Some(playback) => self.station.play(now, playback),
            None if self.station.is_empty() => return,
            None => std::mem::take(&mut self.station).clear(now),
        };
        for fate in fates {
            match fate {
                Fate::Left(entered, at, packet) => {
                    self.stats.count_queued(at.since(entered));
                    self.leave(at, packet);
                }
                Fate::Dropped(packet) => {
                    self.stats.dropped += 1;
                    self.spare.push(packet.datagram);
                }
            }
        }
    }

    /// A packet leaves the bottleneck.
    fn leave(&mut self, departure: Time, packet: Packet) {
        let Packet { datagram, ecn, is_damaged, is_cut_off, loses, delays, reorders, doubles } = packet;
        let is_lost = self.loss.loses(&self.config.loss, departure, loses);
        let is_dropped = ecn.is_some() && self.config.ecn == EcnPath::Drops;
        if is_cut_off || is_lost || is_dropped {
            self.stats.cut_off += u64::from(is_cut_off);
            self.stats.lost += u64::from(is_lost && !is_cut_off);
            return self.spare.push(datagram);
        }
        let arrival = self.arrival(departure, delays, reorders);
        self.stats.corrupted += u64::from(is_damaged);
        if doubles < self.config.duplicate {
            self.stats.duplicated += 1;
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clone_from(&datagram);
            self.push(arrival, datagram, ecn);
            self.push(arrival + Duration::from_micros(1) + self.config.jitter, copy, ecn);
        } else {
            self.push(arrival, datagram, ecn);
        }
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
