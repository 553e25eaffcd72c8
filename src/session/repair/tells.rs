//! What the peer is told of its packets that got lost, and when.

use super::super::wire::LossFrame;
use crate::seq::Seq16;
use crate::time::Time;
use std::time::Duration;

/// The LOSS frames of one end: a packet that was rebuilt is told soon and twice more, the share when it has changed and again now and
/// then, always with what leaves anyway.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tells {
    /// The newest number that was rebuilt.
    newest: Option<u64>,
    /// Bit i: `newest` - i was rebuilt.
    rebuilt: u32,
    /// When the peer is to be told of them.
    due: Option<Time>,
    /// Datagrams that may still tell it again.
    repeats: u8,
    /// The share that was told last, and not before when it is told again.
    told: u8,
    not_before: Time,
}

impl Tells {
    /// The packet `pn` was rebuilt, and taken.
    pub(super) fn rebuilt(&mut self, pn: u64, due: Time) {
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

    pub(super) const fn due(&self) -> Option<Time> {
        self.due
    }

    /// What a datagram that leaves now tells, where so many of 255 get lost.
    pub(super) fn peek(&self, now: Time, share: u8) -> Option<LossFrame> {
        let is_news = share != self.told || share > 0;
        if self.repeats == 0 && !(is_news && self.not_before <= now) {
            return None;
        }
        let newest = self.newest.unwrap_or_default();
        let low = Seq16(u16::try_from(newest & 0xffff).unwrap_or_default());
        Some(LossFrame { newest: low, rebuilt: self.rebuilt, share })
    }

    /// The peer has been told.
    pub(super) fn told(&mut self, now: Time, share: u8) {
        self.repeats = if self.due.take().is_some() || (share == 0) != (self.told == 0) {
            REPEATS
        } else {
            self.repeats.saturating_sub(1)
        };
        if self.repeats == 0 {
            // Only 16 bits of a number are told: later they would be those of another packet, or of one that was never sent.
            (self.newest, self.rebuilt) = (None, 0);
        }
        let changed = share.abs_diff(self.told) > share / 4;
        self.told = share;
        self.not_before = now + if changed { CHANGES } else { REFRESH };
    }
}

/// Times that something is told again.
const REPEATS: u8 = 2;
/// The share is told no sooner again when it changes much, and when it does not.
const CHANGES: Duration = Duration::from_millis(100);
const REFRESH: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rebuilt_is_told_three_times() {
        let (mut tells, now) = (Tells::default(), Time::from_millis(10));
        assert_eq!(tells.peek(now, 0), None);
        [100, 98, 101, 60].into_iter().for_each(|pn| tells.rebuilt(65_536 + pn, now));
        for _ in 0..3 {
            let told = tells.peek(now, 0).unwrap();
            assert_eq!((told.newest, told.rebuilt), (Seq16(101), 0b1011));
            tells.told(now, 0);
        }
        assert_eq!((tells.peek(now, 0), tells.due()), (None, None));
    }

    #[test]
    fn what_was_rebuilt_is_told_no_more_when_its_number_may_be_that_of_another_packet() {
        let mut tells = Tells::default();
        tells.rebuilt(1000, Time::ZERO);
        for told in 0..6 {
            let now = Time::from_millis(500 * told);
            let loss = tells.peek(now, 10).unwrap();
            assert_eq!(
                loss.rebuilt,
                u32::from(told < 3),
                "the share goes on to be told, the packet is told three times"
            );
            tells.told(now, 10);
        }
    }

    #[test]
    fn the_share_is_told_as_it_changes_and_each_half_second_but_not_that_there_is_none() {
        let mut tells = Tells::default();
        let mut told = |from: u64, share: u8| {
            let times = (from..from + 1000).step_by(10).map(Time::from_millis).filter(|now| {
                let is_told = tells.peek(*now, share).is_some();
                if is_told {
                    tells.told(*now, share);
                }
                is_told
            });
            times.count()
        };
        assert_eq!(told(0, 0), 0);
        assert_eq!(told(1000, 10), 4, "three at once, and one 500 ms later");
        assert_eq!(told(2000, 10), 2);
        assert_eq!(told(3000, 0), 3);
        assert_eq!(told(4000, 0), 0);
    }
}
