//! Estimates how long the peer holds acknowledgements back.

use crate::kcp::rtt::Rtt;
use crate::time::Time;

/// For a datagram of acknowledgements: how much longer its first transmission waited than its last.
///
/// Many KCPs acknowledge at intervals: one datagram acknowledges everything that arrived since the last one. kcp-go
/// echoes only the newest, which waited least. That one measures the round trip, so the timeout must allow for this
/// difference.
///
/// A lost acknowledgement looks the same, so it counts only if most acknowledging datagrams show it.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// The differences of the last datagrams, the newest last, µs.
    spreads: [u32; DATAGRAMS],
    /// How many datagrams there were, up to the length of the list.
    seen: usize,
    /// Whether most of them show an interval, so the peer holds acknowledgements back. If so, the longest of them, µs.
    pub(super) is_there: bool,
    spread: u32,
    /// When something was last certainly lost.
    lost: Option<Time>,
}

impl Hold {
    /// A datagram acknowledged transmissions whose first waited this many µs longer than the last; `is_many`: it
    /// acknowledged many that had waited equally long.
    #[inline]
    pub(super) fn saw(&mut self, now: Time, spread: u32, is_many: bool) {
        let spread = spread.max(is_many.into()).min(LONGEST);
        if spread == 0 && self.spreads == [0; DATAGRAMS] {
            self.seen = (self.seen + 1).min(DATAGRAMS); // the peer acknowledges at once
        } else {
            self.note(now, spread);
        }
    }

    /// What a timeout must allow for, µs. More for many segments until it is known, because all of them would be
    /// resent.
    pub(super) fn get(&self, of_many: bool) -> u64 {
        let least = if of_many && self.seen < FEW { UNKNOWN } else { 0 };
        self.spread.max(least).into()
    }

    /// The longest timeout for sparse traffic to such a peer once something gets lost, µs. `None`: unlimited. Waiting
    /// for the peer's interval would then cost more latency than a few small resends cost bytes.
    pub(super) fn impatience(&self, now: Time, rtt: &Rtt) -> Option<u64> {
        if self.spread == 0 || !self.is_lossy(now) {
            return None;
        }
        let path = u64::from(rtt.min().unwrap_or(rtt.srtt));
        Some((path + path / 4 + IMPATIENCE).max((u64::from(rtt.srtt) + self.get(false)) / RESENDS))
    }

    pub(super) fn lost(&mut self, now: Time) {
        self.lost = Some(now);
    }

    fn is_lossy(&self, now: Time) -> bool {
        self.lost.is_some_and(|lost| now.micros_since(lost) < LOSSY)
    }

    fn note(&mut self, now: Time, spread: u32) {
        self.spreads.rotate_left(1);
        if let Some(last) = self.spreads.last_mut() {
            *last = spread;
        }
        self.seen = (self.seen + 1).min(DATAGRAMS);
        let mut sorted = self.spreads;
        let known = sorted.get_mut(DATAGRAMS - self.seen..).unwrap_or_default();
        known.sort_unstable();
        self.is_there = known.get(known.len() / 4).is_some_and(|spread| *spread > 0);
        // If acknowledgements get lost, the longest difference shows that instead.
        let counts = if self.is_lossy(now) { known.len() * 3 / 4 } else { known.len() - 1 };
        self.spread = known.get(counts).copied().filter(|_| self.is_there).unwrap_or(0);
    }
}

/// The longest difference that counts, µs: beyond that, the path was the cause.
const LONGEST: u32 = 1_000_000;
/// Number of datagrams after which nothing is assumed any more, and the assumption until then, µs: most KCPs have an
/// interval of up to that.
const FEW: usize = 4;
const UNKNOWN: u32 = 40_000;
/// Number of datagrams remembered.
const DATAGRAMS: usize = 8;
/// Time to wait beyond a round trip and a quarter, µs.
const IMPATIENCE: u64 = 10_000;
/// Most sends of a segment until the peer acknowledges.
const RESENDS: u64 = 3;
/// How long a loss counts, µs.
const LOSSY: u64 = 30_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a timeout allows for after datagrams with these differences, all in ms.
    fn after(hold: &mut Hold, spreads: &[u32]) -> u64 {
        spreads.iter().for_each(|ms| hold.saw(Time::ZERO, ms * 1000, false));
        hold.get(false) / 1000
    }

    #[test]
    fn a_beat_is_learned_from_most_datagrams_and_forgotten_with_them() {
        let mut hold = Hold::default();
        assert_eq!(after(&mut hold, &[0; 8]), 0, "at once");
        assert_eq!(after(&mut hold, &[30, 0, 20, 0, 0]), 0, "acknowledgements that got lost");
        assert_eq!(after(&mut hold, &[30, 25, 33, 0, 28, 31, 30]), 33);
        assert!(hold.is_there);
        assert_eq!(after(&mut hold, &[0; 3]), 0);
        assert!(!hold.is_there);
    }

    #[test]
    fn nothing_is_held_for_longer_than_a_second() {
        assert_eq!(after(&mut Hold::default(), &[60_000; 8]), 1000);
    }

    #[test]
    fn a_full_window_waits_until_a_few_datagrams_have_told() {
        let mut hold = Hold::default();
        assert_eq!(after(&mut hold, &[0; 3]), 0);
        assert_eq!(hold.get(true), 40_000);
        assert_eq!(after(&mut hold, &[0]), 0);
        assert_eq!(hold.get(true), 0);
    }

    #[test]
    fn where_something_gets_lost_the_longest_does_not_count_and_few_segments_wait_less() {
        let (mut hold, mut rtt) = (Hold::default(), Rtt::new());
        rtt.sample(20_000);
        after(&mut hold, &[40; 8]);
        assert_eq!(hold.impatience(Time::ZERO, &rtt), None);
        hold.lost(Time::ZERO);
        assert_eq!(after(&mut hold, &[900, 40, 40]), 40);
        assert_eq!(hold.impatience(Time::ZERO, &rtt), Some(35_000));
        assert_eq!(hold.impatience(Time::from_micros(LOSSY), &rtt), None);
    }
}
