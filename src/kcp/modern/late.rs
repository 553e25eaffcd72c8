//! Chooses how long a transmission that later ones have overtaken may still take to arrive.

use std::iter::once;

/// How much later than later transmissions one may arrive before it counts as lost: what would have cost least in the
/// recent past.
///
/// A longer allowance delays the resend of all that is lost. A shorter one resends more of what is only late. An
/// acknowledgement names its transmission, so it is known how late each was, whether it was resent or not, and thus
/// what any allowance would have cost. Only a resend that an acknowledgement names shows a loss. No choice causes more
/// than four needless resends for each loss, because a whole round trip would then cost less.
///
/// Source: RFC 8985 (6.2, step 4) for the allowance. There it grows with each round trip that has needless resends, and
/// lasts for 16 recoveries. Where one packet of a hundred is very late, that delays every resend by up to a round trip
/// for the sake of this one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lateness {
    /// µs; at most the shortest round trip.
    pub(super) allowance: u64,
    /// How many transmissions came late by at least one [mark](mark) and less than the next.
    late: [u16; 16],
    /// How many datagrams acknowledged the resend of what was lost.
    losses: u16,
    /// The shortest round trip, µs; 0: nothing has come late.
    round_trip: u64,
}

impl Lateness {
    /// Notes that a transmission arrived late by this much, µs.
    pub(super) fn came_late(&mut self, by: u64, rtt_min: u64) {
        if by == 0 || rtt_min == 0 {
            return;
        }
        let by = by + by / 8; // the next one may be later than all that were seen
        self.round_trip = rtt_min;
        let below = (by.saturating_mul(mark(MARKS)) / rtt_min).isqrt().min(MARKS - 1);
        if let Some(count) = usize::try_from(below).ok().and_then(|below| self.late.get_mut(below)) {
            *count += ONE;
        }
        if self.late.iter().sum::<u16>() > LATE_MAX * ONE {
            self.forget_half();
        }
        self.choose();
    }

    /// Notes that resends were not needless: they arrived, and what they replaced did not.
    pub(super) fn was_lost(&mut self) {
        self.losses += ONE;
        if self.losses > LOSSES_MAX * ONE {
            self.forget_half();
        }
        if self.round_trip > 0 {
            self.choose();
        }
    }

    fn forget_half(&mut self) {
        self.losses /= 2;
        // Never to nothing: as long as nothing gets lost, the longest counts.
        self.late.iter_mut().for_each(|count| *count = count.div_ceil(2));
    }

    /// Chooses the mark that costs least: every loss waits for it, and what came later was resent. The shortest of
    /// those that cost the same.
    fn choose(&mut self) {
        let (mut later, mut least, mut best) = (0, u64::MAX, 0);
        let counts = once(0).chain(self.late.iter().rev().copied());
        for (mark, count) in (0..=MARKS).rev().map(mark).zip(counts) {
            later += u64::from(count);
            let cost = mark * u64::from(self.losses) + PRICE * later;
            if cost <= least {
                (least, best) = (cost, mark);
            }
        }
        self.allowance = self.round_trip * best / mark(MARKS);
    }
}

/// The allowances to choose from, in 256ths of the round trip: closer to each other where they are short.
const fn mark(number: u64) -> u64 {
    number * number
}

/// Number of marks above 0.
const MARKS: u64 = 16;
/// What a needless resend costs: as much as a loss that waits for this many 256ths of a round trip, a quarter of one.
/// Chosen so that it takes a few bytes to be as fast as KCP where delays have a heavy tail.
const PRICE: u64 = 66;
/// What an event counts.
const ONE: u16 = 64;
/// With more of these, everything counts half.
const LATE_MAX: u16 = 256;
const LOSSES_MAX: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: u64 = 100_000;

    /// One of `of` packets is late by `by` µs, and every 50th is lost. Returns the allowance in the end, µs.
    fn late(lateness: &mut Lateness, (of, by): (u32, u64), packets: u32) -> u64 {
        for packet in 0..packets {
            if packet % 50 == 49 {
                lateness.was_lost();
            } else if packet % of == 0 {
                lateness.came_late(by, RTT);
            }
        }
        lateness.allowance
    }

    #[test]
    fn without_losses_everything_late_is_allowed_for() {
        let mut lateness = Lateness::default();
        lateness.came_late(30_000, RTT);
        (0..10_000).for_each(|_| lateness.came_late(5000, RTT));
        assert!((33_750..40_000).contains(&lateness.allowance), "{lateness:?}");
        lateness.came_late(20 * RTT, RTT);
        assert_eq!(lateness.allowance, RTT, "never more than a round trip");
    }

    #[test]
    fn few_late_ones_do_not_delay_the_resends_of_more_lost_ones() {
        let mut lateness = Lateness::default();
        assert_eq!(late(&mut lateness, (200, 50_000), 1000), 0, "four losses for each");
        assert!(late(&mut lateness, (10, 20_000), 1000) > 20_000, "five for each loss");
        assert_eq!(late(&mut lateness, (10, 90_000), 1000), RTT);
    }

    #[test]
    fn what_was_late_is_forgotten_within_80_losses() {
        let mut lateness = Lateness::default();
        late(&mut lateness, (3, 80_000), 5000);
        let losses = (1..).find(|_| {
            lateness.was_lost();
            lateness.allowance == 0
        });
        assert!(losses.is_some_and(|losses| (16..=80).contains(&losses)), "{losses:?}");
    }

    proptest! {
        #[test]
        fn no_more_than_four_would_have_been_resent_needlessly_for_each_loss(
            events in prop::collection::vec((0..=2 * RTT, 0..10_u8), 1..500),
        ) {
            let mut lateness = Lateness::default();
            for (by, kind) in events {
                if kind == 0 { lateness.was_lost() } else { lateness.came_late(by, RTT) }
                let marks = (1..).map(|next| RTT * mark(next) / mark(MARKS));
                let later = marks.zip(lateness.late).filter(|(next, _)| lateness.allowance < *next);
                let later = later.map(|(_, count)| u64::from(count)).sum::<u64>();
                prop_assert!(later <= 4 * u64::from(lateness.losses), "{lateness:?}");
                prop_assert!(lateness.allowance <= RTT);
            }
        }
    }
}
