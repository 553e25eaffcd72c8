//! Which packets arrived: what one end is told by the other, and tells it.

use super::{PacketConfig, ReceiveError};
use crate::pace::{Loss, Reordering, Rtt};
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;
use crate::time::{Time, micros};
use std::time::Duration;

/// The packets that one end says it has received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Acks {
    /// The newest of them.
    pub(crate) ack: Seq16,
    /// Bit n is set when the packet `ack` - 1 - n is one of them.
    pub(crate) bits: u32,
}

/// Packets that became known to have arrived; iterates over their numbers, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    newest: Seq16,
    /// Bit n is set for the packet `newest` - n.
    set: u64,
    /// The same, for packets found lost.
    lost: u64,
    /// Their bytes, as they were sent.
    pub(crate) bytes: u64,
    /// The round trip that was measured, if one was, and when it began.
    pub(crate) round_trip: Option<(Time, Duration)>,
}

impl Acked {
    /// Packets that have not arrived, where packets sent later have: evidently lost. Each is told once, oldest first, and may
    /// become known to have arrived all the same.
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

/// Keeps which packets were sent and received, by numbers that its owner counts: +1 for each packet
/// sent, in the order of sending. Knows no wire format: [`Endpoint`](super::Endpoint) has one, sessions have another.
#[derive(Clone, Debug)]
pub(crate) struct AckTracker {
    /// As in [`PacketConfig`].
    lost_after: Duration,
    forget_after: Duration,
    sent: SequenceBuffer<Sent>,
    /// The oldest packet not yet counted as lost or not.
    unjudged: Seq16,
    /// How much later a packet is told of than later ones.
    reordering: Reordering,
    received: SequenceBuffer<()>,
    /// When a packet or a part of one was last received; `None`: none was, or that is forgotten.
    pub(crate) heard: Option<Time>,
    pub(crate) rtt: Rtt,
    /// What was lost: not acknowledged within `lost_after`, or before `sent` more packets were sent.
    pub(crate) loss: Loss,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    bytes: u32,
    acked: bool,
    /// How much later, µs, a packet left that is known to have arrived, where this one had not.
    overtaken_by: u64,
    /// Found lost by that.
    lost: bool,
}

impl AckTracker {
    /// A tracker that owns no memory yet.
    pub(crate) fn new(config: &PacketConfig) -> Self {
        let PacketConfig { sent, received, lost_after, forget_after, .. } = *config;
        Self {
            lost_after,
            forget_after,
            sent: SequenceBuffer::new(sent),
            unjudged: Seq16(0),
            reordering: Reordering::default(),
            received: SequenceBuffer::new(received),
            heard: None,
            rtt: Rtt::default(),
            loss: Loss::default(),
        }
    }

    /// Remembers a packet that is sent now, of so many bytes.
    pub(crate) fn on_sent(&mut self, now: Time, sequence: Seq16, bytes: u32) {
        if self.sent.newest().is_none() {
            self.unjudged = sequence;
        }
        let oldest = sequence.sub(self.sent.size() - 1);
        self.judge(|unjudged, _| unjudged.is_before(oldest));
        let sent = Sent { at: now, bytes, acked: false, overtaken_by: 0, lost: false };
        self.sent.insert(sequence, sent);
    }

    /// Whether a packet is to be taken: it is not too old, and did not come before.
    pub(crate) fn check(&self, sequence: Seq16) -> Result<(), ReceiveError> {
        if self.received.is_stale(sequence) {
            Err(ReceiveError::Stale { sequence })
        } else if self.received.get(sequence).is_some() {
            Err(ReceiveError::Duplicate { sequence })
        } else {
            Ok(())
        }
    }

    /// Remembers a packet that has arrived, and that [`check`](Self::check) takes.
    pub(crate) fn on_received(&mut self, now: Time, sequence: Seq16) {
        self.heard = Some(now);
        self.received.insert(sequence, ());
    }

    /// What to tell the peer; `None`: nothing was received, or it is too long ago.
    pub(crate) fn acks(&self) -> Option<Acks> {
        let ack = self.received.newest()?;
        let has = |age: u16| u32::from(self.received.get(ack.sub(1 + age)).is_some());
        let bits = (0..BITS).fold(0, |bits, age| bits | has(age) << age);
        Some(Acks { ack, bits })
    }

    /// Whether the peer may tell this: it acknowledges nothing newer than what was sent.
    pub(crate) fn is_possible(&self, acks: Acks) -> bool {
        self.sent.newest().is_some_and(|newest| !newest.is_before(acks.ack))
    }

    /// Marks what the peer says has arrived; returns those that were not known to, which each packet
    /// is once.
    ///
    /// The newest of them is a round trip, if it is `acks.ack`: older ones may have waited for an
    /// acknowledgement that got lost. `delay` is how long the peer says that it waited itself.
    ///
    /// If it is news that `acks.ack` has arrived, those before it that have not are [lost](Acked::lost) when they left earlier by
    /// more than packets have been seen to overtake each other.
    pub(crate) fn on_acks(&mut self, now: Time, acks: Acks, delay: Duration) -> Acked {
        let told = u64::from(acks.bits) << 1 | 1;
        let mut acked = Acked { newest: acks.ack, set: 0, lost: 0, bytes: 0, round_trip: None };
        for sequence in (Acked { set: told, ..acked }) {
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
                let rtt = now.since(at).saturating_sub(delay);
                self.rtt.sample(Time::ZERO, rtt); // packets leave on a beat: each counts the same
                acked.round_trip = Some((at, rtt));
                acked.lost = self.overtaken(at, Acked { set: !told & TOLD, ..acked });
            }
        }
        acked
    }

    /// Of the packets `missing` where one that left at `newest` has arrived: those that are evidently lost, as a set.
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

    /// Lets time pass, before anything else happens at `now`: counts what was sent `lost_after` ago or
    /// earlier as lost or not lost, and forgets what was received before a silence of `forget_after`.
    pub(crate) fn update(&mut self, now: Time) {
        let Self { lost_after, forget_after, .. } = *self;
        self.judge(|_, sent| now.since(sent.at) >= lost_after);
        if self.heard.is_some_and(|heard| now.since(heard) >= forget_after) {
            self.heard = None;
            self.received.reset();
        }
    }

    /// When [`update`](Self::update) has something to count next; `None`: nothing is under way.
    pub(crate) fn check_loss(&self) -> Option<Time> {
        self.sent.get(self.unjudged).map(|sent| sent.at + self.lost_after)
    }

    /// Bytes of a packet that was sent, if it is remembered; else 0.
    pub(crate) fn bytes_sent(&self, sequence: Seq16) -> u32 {
        self.sent.get(sequence).map_or(0, |sent| sent.bytes)
    }

    /// Forgets what is known of the path: packets take another one now.
    pub(crate) fn path_changed(&mut self) {
        (self.rtt, self.reordering) = (Rtt::default(), Reordering::default());
        self.loss.path_changed();
    }

    pub(crate) const fn memory(&self) -> usize {
        self.sent.memory() + self.received.memory()
    }

    /// Whether packets that were sent are remembered.
    pub(crate) const fn remembers_sent(&self) -> bool {
        self.sent.newest().is_some()
    }

    /// Judges packets, oldest first, as long as they are `due`.
    fn judge(&mut self, due: impl Fn(Seq16, &Sent) -> bool) {
        while self.sent.newest().is_some_and(|newest| !newest.is_before(self.unjudged)) {
            match self.sent.get(self.unjudged) {
                Some(sent) if due(self.unjudged, sent) => self.loss.sample(!sent.acked),
                Some(_) => break,
                None => {} // a number that was left out
            }
            self.unjudged = self.unjudged.add(1);
        }
    }
}

/// Packets that one [`Acks`] tells of beside the newest.
const BITS: u16 = 32;
/// The set of all packets that it tells of.
const TOLD: u64 = (1 << (BITS + 1)) - 1;

#[cfg(test)]
mod tests;
