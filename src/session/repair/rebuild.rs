//! Incoming repairs: measures and reports losses, and rebuilds lost packets.

use super::{MEMORY, PacketRepairs, REACH, low};
use crate::code::budget::{LossShare, WHOLE};
use crate::code::{Decoder, DecoderConfig};
use crate::seq::{Seq16, Sn};
use crate::session::wire::LossFrame;
use crate::time::{Millis, Time};
use std::time::Duration;

impl PacketRepairs {
    /// Notes that the packet `pn` arrived. Returns whether repairs are wanted. If they are, packets must be
    /// remembered, and acknowledged so that the peer knows what to cover.
    pub(in crate::session) fn arrived(&mut self, pn: u64) -> bool {
        self.losses.arrived(pn);
        if !self.losses.is_on && self.decoder.is_some() {
            self.shrink_decoder();
        }
        self.losses.is_on
    }

    /// A packet came, which pays for the work that it may cause.
    pub(in crate::session) fn earn(&mut self, now: Time, bytes: usize) {
        if let Some(decoder) = &mut self.decoder {
            decoder.earn(now, bytes);
        }
    }

    /// Remembers the frames of the received packet `pn`, except its REPAIR.
    pub(in crate::session) fn remember(&mut self, pn: u64, body: &[u8]) {
        let config = DecoderConfig { segments: REACH, bytes: MEMORY, mss: self.packet_max };
        let decoder = self.decoder.get_or_insert_with(|| Box::new(Decoder::new(&config)));
        decoder.received(low(pn), 0, body);
    }

    /// Takes a repair that came in the packet `carrier`.
    pub(in crate::session) fn repair(&mut self, carrier: u64, first: u32, payload: &[u8]) {
        let Some(decoder) = &mut self.decoder else {
            self.stats.needless += 1; // we no longer ask for any
            return;
        };
        let oldest = low(carrier).sub(REACH.into());
        decoder.give_up_before(oldest);
        if let Err(error) = decoder.repair(Sn(first), Millis(0), payload, oldest, REACH) {
            log::trace!("refused a repair in packet {carrier}: {error}");
        }
    }

    /// Rebuilds a packet if possible. Returns its frames, and its number if it lies before the newest. A
    /// packet that comes late may make it possible to rebuild one sent after it.
    pub(in crate::session) fn recover(&mut self) -> Option<(Option<u64>, &[u8])> {
        let newest = self.losses.end.checked_sub(1)?;
        let lost = self.decoder.as_mut()?.recover()?;
        let age = low(newest).0.wrapping_sub(lost.sn.0);
        let pn = newest.checked_sub(age.into()).filter(|_| lost.frg == 0 && age > 0);
        Some((pn, lost.data))
    }

    /// The report that a datagram which leaves now should carry.
    pub(in crate::session) fn peek(&self, now: Time) -> Option<LossFrame> {
        self.tells.peek(now, self.losses.told())
    }

    pub(in crate::session) fn told(&mut self, now: Time) {
        self.tells.told(now, self.losses.told());
    }

    pub(super) fn shrink_decoder(&mut self) {
        self.stats = self.stats();
        self.decoder = None;
    }
}

/// Settles the outcome of each number once three higher ones have arrived. A packet that comes later than
/// that counts as lost, since a repair would have been faster; so does one that was rebuilt. Of each [`BLOCK`], the
/// first missing number does not count: the peer has skipped one of them, and whichever it was, the count is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    /// The number after the highest that arrived; 0 if none did.
    end: u64,
    /// Bit i: `end` - 1 - i arrived, or precedes the first number that counts.
    came: u64,
    /// Whether a missing number of the block was excused.
    has_excused: bool,
    share: LossShare,
    /// Whether the loss is high enough for repairs to help.
    is_on: bool,
}

impl Default for Losses {
    fn default() -> Self {
        Self { end: 0, came: u64::MAX, has_excused: false, share: LossShare::assumed(0), is_on: false }
    }
}

impl Losses {
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    fn arrived(&mut self, pn: u64) {
        if self.end == 0 {
            self.end = pn; // earlier packets do not matter
        }
        if let Some(age) = self.end.checked_sub(pn + 1) {
            let bit = u32::try_from(age).ok().and_then(|age| 1_u64.checked_shl(age)).unwrap_or(0);
            self.came |= bit;
            return;
        }
        for number in self.end.max(pn.saturating_sub(BLOCK - 1))..=pn {
            self.came <<= 1;
            self.judge(number.wrapping_sub(JUDGED_AT));
        }
        self.came |= 1;
        self.end = pn + 1;
        self.is_on = self.share.get() >= if self.is_on { MIN_LOSS / 2 } else { MIN_LOSS };
    }

    fn judge(&mut self, number: u64) {
        let is_missing = self.came >> JUDGED_AT & 1 == 0;
        self.has_excused &= !number.is_multiple_of(BLOCK);
        if !is_missing || std::mem::replace(&mut self.has_excused, true) {
            self.share.judge(is_missing);
        }
    }

    /// What the peer is told: the share in 1/255, or 0 if no repairs are wanted.
    fn told(&self) -> u8 {
        let of_255 = u8::try_from((self.share.get() + 128) / 257).unwrap_or(u8::MAX);
        if self.is_on { of_255.max(1) } else { 0 }
    }
}

/// How many higher numbers must arrive before a missing one counts as lost.
const JUDGED_AT: u64 = 3;
/// Of so many numbers, the peer skips one.
const BLOCK: u64 = 64;
/// The share of lost packets from which on to ask for repairs; below half of it they end. A loss in a hundred is what the
/// share can still tell from a single one: it is an average over 128 packets.
const MIN_LOSS: u32 = WHOLE / 100;

/// The LOSS frames of one end. A rebuilt packet is reported soon, and twice more. The share is reported when
/// it changes, and repeated now and then. Reports only ride in datagrams that leave anyway.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::session) struct Tells {
    newest: Option<u64>,
    /// Bit i: `newest` - i was rebuilt.
    rebuilt: u32,
    pub(in crate::session) due: Option<Time>,
    /// How many more datagrams repeat the report.
    repeats: u8,
    /// The share reported last, and when.
    told: u8,
    told_at: Option<Time>,
}

impl Tells {
    /// Whether there is nothing to tell, and the last report said so.
    pub(super) const fn is_silent(&self) -> bool {
        self.told == 0 && self.repeats == 0 && self.due.is_none()
    }

    /// Notes that the packet `pn` was rebuilt and accepted.
    pub(in crate::session) fn rebuilt(&mut self, pn: u64, due: Time) {
        let newest = *self.newest.get_or_insert(pn);
        if let Some(ahead) = pn.checked_sub(newest) {
            let bits = u32::try_from(ahead).ok().and_then(|ahead| self.rebuilt.checked_shl(ahead));
            (self.newest, self.rebuilt) = (Some(pn), bits.unwrap_or(0) | 1);
        } else {
            let age = u32::try_from(newest - pn).ok();
            self.rebuilt |= age.and_then(|age| 1_u32.checked_shl(age)).unwrap_or(0);
        }
        self.due = Some(self.due.map_or(due, |at| at.min(due)));
        self.repeats = REPEATS;
    }

    /// The report for a datagram that leaves now, given a loss of `share` in 1/255.
    fn peek(&self, now: Time, share: u8) -> Option<LossFrame> {
        let is_news = share != self.told || share > 0;
        let pause = if share.abs_diff(self.told) > share / 4 { CHANGES } else { REFRESH };
        if self.repeats == 0 && !(is_news && self.told_at.is_none_or(|at| at + pause <= now)) {
            return None;
        }
        let newest = self.newest.unwrap_or_default();
        let low = Seq16(u16::try_from(newest & 0xffff).unwrap_or_default());
        Some(LossFrame { newest: low, rebuilt: self.rebuilt, share })
    }

    fn told(&mut self, now: Time, share: u8) {
        self.repeats = if self.due.take().is_some() || (share == 0) != (self.told == 0) {
            REPEATS
        } else {
            self.repeats.saturating_sub(1)
        };
        if self.repeats == 0 {
            // A report has only 16 bits of a number: later on they would mean another packet, or one that was
            // never sent.
            (self.newest, self.rebuilt) = (None, 0);
        }
        self.told = share;
        self.told_at = Some(now);
    }
}

const REPEATS: u8 = 2;
/// Shortest time until the share is reported again, if it changed much and if it did not.
const CHANGES: Duration = Duration::from_millis(100);
const REFRESH: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_overtaken_by_two_is_not_lost_and_a_large_jump_costs_little() {
        let mut losses = Losses::default();
        for pn in (0..300).step_by(3) {
            [pn + 2, pn + 1, pn].into_iter().for_each(|pn| losses.arrived(pn));
        }
        assert!(!losses.is_on);
        losses.arrived(1 << 47);
        losses.arrived(5);
        assert!(losses.is_on && losses.end == (1 << 47) + 1);
    }

    /// Whether the number is the one of its block that is skipped.
    const fn is_skipped(pn: u64) -> bool {
        pn % BLOCK == 1 + pn / BLOCK * 37 % 63
    }

    #[test]
    fn a_number_that_is_skipped_counts_neither_as_lost_nor_as_arrived() {
        let mut losses = Losses::default();
        (0..10_000).filter(|pn| !is_skipped(*pn)).for_each(|pn| losses.arrived(pn));
        assert_eq!((losses.share.get(), losses.is_on), (0, false));
        for every in [5, 20, 50] {
            let (mut losses, mut plain, mut sums) = (Losses::default(), LossShare::assumed(0), [0, 0]);
            for (sent, pn) in (0..100_000).filter(|pn| !is_skipped(*pn)).enumerate() {
                plain.judge(sent % every == 0);
                if sent % every > 0 {
                    losses.arrived(pn);
                    sums = [sums[0] + u64::from(losses.share.get()), sums[1] + u64::from(plain.get())];
                }
            }
            assert!(sums[0].abs_diff(sums[1]) <= sums[1] / 100, "1 of {every}: {sums:?}");
        }
    }

    #[test]
    fn a_rebuilt_packet_is_reported_three_times() {
        let (mut tells, now) = (Tells::default(), Time::from_millis(10));
        assert_eq!(tells.peek(now, 0), None);
        [100, 98, 101, 60].into_iter().for_each(|pn| tells.rebuilt(65_536 + pn, now));
        for _ in 0..3 {
            let told = tells.peek(now, 0).unwrap();
            assert_eq!((told.newest, told.rebuilt), (Seq16(101), 0b1011));
            tells.told(now, 0);
        }
        assert_eq!((tells.peek(now, 0), tells.due), (None, None));
    }
}
