//! Which packets arrived, in both directions.

use super::{PacketConfig, ReceiveError};
use crate::pace::{Loss, Reordering, Rtt};
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;
use crate::time::{Time, micros};
use std::time::Duration;

/// The packets that one end reports as received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Acks {
    /// The newest received packet.
    pub(crate) ack: Seq16,
    /// Bit n is set if the packet `ack` - 1 - n was received.
    pub(crate) bits: u32,
}

/// Packets newly known to have arrived. Iterates over their numbers, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    newest: Seq16,
    /// Bit n is set for the packet `newest` - n.
    set: u64,
    /// The same for packets found lost.
    lost: u64,
    /// Their total size as sent, bytes.
    pub(crate) bytes: u64,
    /// When the measured round trip began, and how long it took; `None` if none was measured.
    pub(crate) round_trip: Option<(Time, Duration)>,
}

impl Acked {
    /// Packets that are presumed lost: packets sent later have arrived, and these have not. Each is reported
    /// once, oldest first, and may still turn out to have arrived.
    pub(crate) fn lost(&self) -> impl Iterator<Item = Seq16> + use<> {
        Self { set: self.lost, ..*self }
    }
}

impl Iterator for Acked {
    type Item = Seq16;

    fn next(&mut self) -> Option<Seq16> {
        let age = self.set.checked_ilog2()?;
        self.set &= !(1 << age);
        Some(self.newest.sub(u16::try_from(age).ok()?))
    }
}

/// Tracks which packets were sent and received. Its owner assigns the numbers, +1 for each packet in the
/// order of sending. It knows no wire format: [`Endpoint`](super::Endpoint) has one, sessions have another.
#[derive(Clone, Debug)]
pub(crate) struct AckTracker {
    /// As in [`PacketConfig`].
    lost_after: Duration,
    forget_after: Duration,
    sent: SequenceBuffer<Sent>,
    /// What the peer has reported of the packets up to this one, so that each is looked at once. Bit n is for the packet - n.
    told: (Seq16, u64),
    /// The oldest packet whose outcome has not been counted yet.
    unjudged: Seq16,
    /// How much later a packet may arrive than packets sent after it.
    reordering: Reordering,
    received: SequenceBuffer<()>,
    /// When a packet or a fragment was last received; `None` if never, or so long ago that it was cleared.
    pub(crate) heard: Option<Time>,
    pub(crate) rtt: Rtt,
    /// Packets lost: not acknowledged within `lost_after`, or before `sent` more packets were sent.
    pub(crate) loss: Loss,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    bytes: u32,
    acked: bool,
    /// How long after this packet the latest of those that have overtaken it was sent, µs.
    overtaken_by: u64,
    /// Presumed lost because of that.
    lost: bool,
}

impl AckTracker {
    /// Creates a tracker. It allocates nothing yet.
    pub(crate) fn new(config: &PacketConfig) -> Self {
        let PacketConfig { sent, received, lost_after, forget_after, .. } = *config;
        Self {
            lost_after,
            forget_after,
            sent: SequenceBuffer::new(sent),
            told: (Seq16(0), 0),
            unjudged: Seq16(0),
            reordering: Reordering::default(),
            received: SequenceBuffer::new(received),
            heard: None,
            rtt: Rtt::default(),
            loss: Loss::default(),
        }
    }

    /// Remembers a packet of `bytes` bytes that is sent now.
    pub(crate) fn on_sent(&mut self, now: Time, sequence: Seq16, bytes: u32) {
        if self.sent.newest().is_none() {
            self.unjudged = sequence;
            self.told = (sequence, 0);
        }
        if sequence.distance(self.told.0) >= TOLD_LONG_AGO {
            self.told = (sequence, 0); // or its number would come to lie ahead
        }
        let oldest = sequence.sub(self.sent.size() - 1);
        self.judge(|unjudged, _| unjudged.is_before(oldest));
        let sent = Sent { at: now, bytes, acked: false, overtaken_by: 0, lost: false };
        self.sent.insert(sequence, sent);
    }

    /// Checks that a packet is neither too old nor a duplicate.
    pub(crate) fn check(&self, sequence: Seq16) -> Result<(), ReceiveError> {
        if self.received.is_stale(sequence) {
            Err(ReceiveError::Stale { sequence })
        } else if self.received.get(sequence).is_some() {
            Err(ReceiveError::Duplicate { sequence })
        } else {
            Ok(())
        }
    }

    /// Remembers a received packet that passed the [`check`](Self::check).
    pub(crate) fn on_received(&mut self, now: Time, sequence: Seq16) {
        self.heard = Some(now);
        self.received.insert(sequence, ());
    }

    /// What to report to the peer; `None` if nothing was received, or too long ago.
    pub(crate) fn acks(&self) -> Option<Acks> {
        let ack = self.received.newest()?;
        let has = |age: u16| u32::from(self.received.get(ack.sub(1 + age)).is_some());
        let bits = (0..BITS).fold(0, |bits, age| bits | has(age) << age);
        Some(Acks { ack, bits })
    }

    /// Whether the peer can honestly report this: nothing newer than the newest packet sent.
    pub(crate) fn is_possible(&self, acks: Acks) -> bool {
        self.sent.newest().is_some_and(|newest| !newest.is_before(acks.ack))
    }

    /// Marks the packets that the peer reports as received. Returns those that were not known to have
    /// arrived; each packet is returned once.
    ///
    /// If `acks.ack` is one of them, it yields a round trip. Older ones do not, since their acknowledgement
    /// may have been lost once. `delay` is how long the peer says that it waited before it answered; it makes no round
    /// trip shorter than `least`.
    ///
    /// If `acks.ack` is one of them, earlier packets that have not arrived are [lost](Acked::lost) if they
    /// left earlier by more than the reordering seen so far.
    pub(crate) fn on_acks(&mut self, now: Time, acks: Acks, delay: Duration, least: Duration) -> Acked {
        let told = u64::from(acks.bits) << 1 | 1;
        let mut acked = Acked { newest: acks.ack, set: 0, lost: 0, bytes: 0, round_trip: None };
        let news = self.news(acks.ack, told);
        for sequence in (Acked { set: news, ..acked }) {
            let Some(sent) = self.sent.get_mut(sequence).filter(|sent| !sent.acked) else {
                continue;
            };
            sent.acked = true;
            acked.set |= 1 << acks.ack.0.wrapping_sub(sequence.0);
            acked.bytes += u64::from(sent.bytes);
            if sent.overtaken_by > 0 {
                self.reordering.came_late(sent.overtaken_by, micros(self.rtt.min()));
            }
            if sequence == acks.ack {
                let at = sent.at;
                let took = now.since(at);
                let rtt = took.saturating_sub(delay).max(least.min(took));
                self.rtt.sample(Time::ZERO, rtt); // packets are sent at regular intervals, so each counts the same
                acked.round_trip = Some((at, rtt));
                acked.lost = self.overtaken(at, Acked { set: !told & TOLD, ..acked });
            }
        }
        acked
    }

    /// The part of a report that the peer has not told before. `set`: bit n is for the packet `ack` - n.
    fn news(&mut self, ack: Seq16, set: u64) -> u64 {
        let (newest, known) = self.told;
        let (ahead, behind) = (ack.0.wrapping_sub(newest.0), newest.0.wrapping_sub(ack.0));
        if ack.is_before(newest) {
            let news = set & !known.checked_shr(behind.into()).unwrap_or(0);
            self.told.1 |= set.checked_shl(behind.into()).unwrap_or(0);
            return news;
        }
        let known = known.checked_shl(ahead.into()).unwrap_or(0);
        self.told = (ack, known | set);
        set & !known
    }

    /// Forgets packets that no acknowledgement will name: each names the newest packet that has arrived and some before it.
    /// Returns the oldest that is still remembered. So a table is as long as what is under way and what has no outcome.
    pub(crate) fn forget_settled(&mut self, acks: Acks) -> Seq16 {
        let told = acks.ack.sub(TOLD_LATE);
        let oldest = if told.is_before(self.unjudged) { told } else { self.unjudged };
        self.sent.forget_before(oldest);
        oldest
    }

    /// Given that a packet which left at `newest` has arrived: the subset of `missing` that is presumed lost.
    fn overtaken(&mut self, newest: Time, missing: Acked) -> u64 {
        let mut lost = 0;
        for sequence in missing {
            let Some(sent) = self.sent.get_mut(sequence).filter(|sent| !sent.acked) else {
                continue;
            };
            sent.overtaken_by = sent.overtaken_by.max(newest.micros_since(sent.at));
            if !sent.lost && sent.overtaken_by > self.reordering.allowance {
                sent.lost = true;
                lost |= 1 << missing.newest.0.wrapping_sub(sequence.0);
                self.reordering.found_lost();
            }
        }
        lost
    }

    /// Advances the time; call it before anything else at `now`. Settles the outcome of packets sent
    /// `lost_after` ago or earlier, and clears what was received before a silence of `forget_after`.
    pub(crate) fn update(&mut self, now: Time) {
        let Self { lost_after, forget_after, .. } = *self;
        self.judge(|_, sent| now.since(sent.at) >= lost_after);
        if self.heard.is_some_and(|heard| now.since(heard) >= forget_after) {
            self.heard = None;
            self.received.reset();
        }
    }

    /// When [`update`](Self::update) next has an outcome to settle; `None` if nothing is in flight.
    pub(crate) fn check_loss(&self) -> Option<Time> {
        self.sent.get(self.unjudged).map(|sent| sent.at + self.lost_after)
    }

    /// Size of a sent packet, bytes; 0 if it is no longer remembered.
    pub(crate) fn bytes_sent(&self, sequence: Seq16) -> u32 {
        self.sent.get(sequence).map_or(0, |sent| sent.bytes)
    }

    /// Clears the measurements of the path, since packets now take another one.
    pub(crate) fn path_changed(&mut self) {
        (self.rtt, self.reordering) = (Rtt::default(), Reordering::default());
        self.loss.path_changed();
    }

    pub(crate) const fn memory(&self) -> usize {
        self.sent.memory() + self.received.memory()
    }

    /// Whether any sent packet is remembered.
    pub(crate) const fn remembers_sent(&self) -> bool {
        self.sent.newest().is_some()
    }

    /// Settles the outcome of packets, oldest first, as long as they are `due`.
    fn judge(&mut self, due: impl Fn(Seq16, &Sent) -> bool) {
        while self.sent.newest().is_some_and(|newest| !newest.is_before(self.unjudged)) {
            match self.sent.get(self.unjudged) {
                Some(sent) if due(self.unjudged, sent) => self.loss.sample(!sent.acked),
                Some(_) => break,
                None => {} // a number that was skipped
            }
            self.unjudged = self.unjudged.add(1);
        }
    }
}

/// Packets that one [`Acks`] covers besides the newest.
const BITS: u16 = 32;
/// How far behind the newest packet that has arrived others may be named: by an [`Acks`] that comes out of order.
const TOLD_LATE: u16 = 48;
/// So many packets later, nothing counts as told any more.
const TOLD_LONG_AGO: i16 = 1 << 14;
/// The set of all packets that one [`Acks`] covers.
const TOLD: u64 = (1 << (BITS + 1)) - 1;

#[cfg(test)]
mod tests;
