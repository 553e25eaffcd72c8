//! Acknowledges received packets and answers pings. A ping that came alone is answered at once. Any other answer may
//! ride with data, and then says how long it waited and what had arrived. Packet numbers have 64 bits, so they do not
//! wrap.

use super::Connection;
use super::observe::InUse;
use super::transmit::Out;
use crate::seq::Seq16;
use crate::session::wire::{AckFrame, EcnFrame, Frame};
use crate::time::Time;
use std::time::Duration;

/// The newest packets received, and whether the peer must still be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    newest: Option<Newest>,
    /// When the peer must be told at the latest; never: it has been.
    pub(super) due: Time,
    /// The oldest packet that asks for an acknowledgement and has none yet.
    untold: Option<u64>,
    /// How many datagrams that leave anyway may repeat the ACK: the first may have got lost.
    repeats: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    pn: u64,
    /// Bit n: the packet `pn` - 1 - n has been received as well.
    bits: u32,
    at: Time,
}

impl Newest {
    fn frame(self, now: Time) -> AckFrame {
        let age = now.micros_since(self.at) / DELAY_UNIT;
        AckFrame { ack: low(self.pn), bits: self.bits, delay: u16::try_from(age).unwrap_or(u16::MAX) }
    }
}

impl Default for Received {
    fn default() -> Self {
        Self { newest: None, due: Time::NEVER, untold: None, repeats: 0 }
    }
}

impl Received {
    /// Notes a packet that was accepted. `due`: when the peer wants to know at the latest.
    pub(super) fn add(&mut self, now: Time, pn: u64, due: Option<Time>) {
        match &mut self.newest {
            Some(newest) if pn <= newest.pn => {
                let age = u32::try_from(newest.pn - pn).unwrap_or(u32::MAX);
                newest.bits |= age.checked_sub(1).and_then(|bit| 1u32.checked_shl(bit)).unwrap_or(0);
            }
            newest => {
                let bits = newest.map_or(0, |newest| {
                    let ahead = u32::try_from(pn - newest.pn).unwrap_or(u32::MAX);
                    let known = u64::from(newest.bits) << 1 | 1; // bit n: the packet newest - n
                    let shifted = known.checked_shl(ahead - 1).unwrap_or(0) & u64::from(u32::MAX);
                    u32::try_from(shifted).unwrap_or(0)
                });
                *newest = Some(Newest { pn, bits, at: now });
            }
        }
        if let Some(due) = due {
            let oldest = self.untold.map_or(pn, |untold| untold.min(pn));
            let newest = self.newest.map_or(pn, |newest| newest.pn);
            // While the bits still reach the oldest packet, whatever else arrives in the meantime.
            let due = if newest - oldest >= REACH { now } else { due };
            self.due = self.due.min(due);
            self.untold = Some(oldest);
            self.repeats = REPEATS;
        }
    }

    /// Lets the ACK of a packet ride with what leaves anyway.
    pub(super) const fn rides(&mut self) {
        self.repeats = REPEATS;
    }

    /// The ACK of a datagram that leaves now, if there is one.
    pub(super) fn peek(&self, now: Time) -> Option<AckFrame> {
        self.newest(now).filter(|_| self.due != Time::NEVER || self.repeats > 0)
    }

    /// The same, even if it is not news.
    pub(super) fn newest(&self, now: Time) -> Option<AckFrame> {
        self.newest.map(|newest| newest.frame(now))
    }

    pub(super) fn told(&mut self) {
        self.untold = None;
        if std::mem::replace(&mut self.due, Time::NEVER) == Time::NEVER {
            self.repeats = self.repeats.saturating_sub(1);
        }
    }
}

/// The low 16 bits of a packet number, which is what an ACK has.
#[expect(clippy::cast_possible_truncation, reason = "the low half")]
pub(super) const fn low(pn: u64) -> Seq16 {
    Seq16(pn as u16)
}

/// What had arrived when a ping came, and when the newest of it did. It tells the peer how long the answer has
/// waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived {
    newest: Newest,
    /// How many packets had arrived.
    counts: EcnFrame,
}

impl Connection {
    /// Takes a ping. `rides`: it came with more than signs of life, so its answer may ride as well and say what had
    /// arrived.
    pub(super) fn on_ping(&mut self, pn: u64, stamp: u64, rides: bool) {
        let newest = self.received.newest.filter(|newest| rides && newest.pn == pn);
        self.answer = Some((stamp, newest.is_some()));
        if let Some(newest) = newest {
            self.measured.in_use().arrived = Arrived { newest, counts: self.packets_received() };
        }
    }

    /// When the answer must leave; never: there is none.
    pub(super) fn answer_due(&self, now: Time) -> Time {
        match (self.answer, &self.measured.in_use) {
            (Some((_, true)), Some(in_use)) => in_use.arrived.newest.at + WAIT,
            (Some(_), _) => now,
            (None, _) => Time::NEVER,
        }
    }

    /// Writes the answer if it is due or may ride, and there is room for it.
    pub(super) fn write_answer(&mut self, out: &mut Out<'_>, rides: bool) {
        let leaves = self.answer.is_some() && (rides || self.answer_due(out.now) <= out.now);
        if !leaves || !out.has_room(ANSWER) {
            return;
        }
        let Some((stamp, is_full)) = self.answer.take() else { return };
        if is_full && let Some(InUse { arrived, .. }) = self.measured.in_use.as_deref() {
            let _ = out.frames.push(&Frame::Ack(arrived.newest.frame(out.now)));
            let _ = out.frames.push(&Frame::Ecn(arrived.counts));
        }
        out.push(&Frame::Pong(stamp));
    }
}

/// If the oldest unacknowledged packet is this far behind the newest, the peer is told at once. This is half of what
/// an ACK reaches, so that the owner may take a few datagrams before it polls.
const REACH: u64 = 15;
/// How often an ACK is repeated, each time with a datagram that leaves anyway.
const REPEATS: u8 = 2;
/// How long an answer may wait for something to ride with.
const WAIT: Duration = Duration::from_millis(40);
/// Unit of the delay of an ACK frame, µs.
pub(super) const DELAY_UNIT: u64 = 100;
/// Bytes of the frames of an answer: ACK, ECN, PONG.
const ANSWER: usize = 9 + 13 + 9;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_bits_are_those_of_a_set_model(start in 0..u64::MAX - 5000, steps in prop::collection::vec(0..80u64, 1..100)) {
            let (mut received, mut model) = (Received::default(), BTreeSet::new());
            for (index, step) in steps.into_iter().enumerate() {
                let pn = start + 40 * u64::try_from(index).unwrap() + step;
                received.add(Time::ZERO, pn, Some(Time::ZERO));
                model.insert(pn);
                let newest = *model.last().unwrap();
                let bits = (0..32).filter(|bit| newest.checked_sub(1 + bit).is_some_and(|pn| model.contains(&pn)));
                let bits = bits.fold(0u32, |bits, bit| bits | 1 << bit);
                prop_assert_eq!(received.peek(Time::ZERO), Some(AckFrame { ack: low(newest), bits, delay: 0 }));
            }
        }
    }

    #[test]
    fn an_ack_leaves_when_due_and_rides_twice_more() {
        let mut received = Received::default();
        received.add(Time::ZERO, 7, None);
        assert_eq!((received.due, received.peek(Time::ZERO)), (Time::NEVER, None), "nothing to tell");
        received.add(Time::ZERO, 8, Some(Time::from_millis(10)));
        for tells in 0..3 {
            assert!(received.peek(Time::ZERO).is_some(), "{tells}");
            received.told();
            assert_eq!(received.due, Time::NEVER);
        }
        assert_eq!(received.peek(Time::ZERO), None);
    }
}
