//! How long the peer holds acknowledgements back, as they tell.

use crate::kcp::rtt::Rtt;
use crate::time::Time;

/// How much longer than its last transmission the first one had waited that a datagram acknowledges.
///
/// Many KCPs acknowledge on a beat: one datagram acknowledges all that has come since the last beat, and kcp-go names only the newest of it, which
/// has waited least. That one measures the round trip, so a timeout has to allow for this on top.
///
/// A lost acknowledgement looks the same, so it counts only while most datagrams that acknowledge show it.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// Those of the last datagrams, the newest last, µs.
    spreads: [u32; DATAGRAMS],
    /// How many of them there were; the first are still missing.
    seen: usize,
    /// Whether most of them show a beat: the peer holds acknowledgements back. And the longest of them if so, µs.
    pub(super) is_there: bool,
    spread: u32,
    /// When something was last lost for sure.
    lost: Option<Time>,
}

impl Hold {
    /// A datagram acknowledged transmissions, the first of which had waited so many µs longer than the last; or many that had waited as long.
    #[inline]
    pub(super) fn saw(&mut self, now: Time, spread: u32, is_many: bool) {
        let spread = spread.max(is_many.into()).min(LONGEST);
        if spread == 0 && self.spreads == [0; DATAGRAMS] {
            self.seen = (self.seen + 1).min(DATAGRAMS); // the peer acknowledges at once
        } else {
            self.note(now, spread);
        }
    }

    /// What a timeout has to allow for, µs; of many segments more until it is known, since all of them would leave again.
    pub(super) fn get(&self, of_many: bool) -> u64 {
        let least = if of_many && self.seen < FEW { UNKNOWN } else { 0 };
        self.spread.max(least).into()
    }

    /// The longest timeout of what is sent one by one to such a peer once some of it gets lost, µs; `None`: any. To wait for the peer's beat then
    /// costs more latency than some small resends cost bytes.
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
        // Where acknowledgements get lost, the longest tells of that.
        let counts = if self.is_lossy(now) { known.len() * 3 / 4 } else { known.len() - 1 };
        self.spread = known.get(counts).copied().filter(|_| self.is_there).unwrap_or(0);
    }
}

/// The longest that counts, µs: what waited longer has waited for the path.
const LONGEST: u32 = 1_000_000;
/// Datagrams that must have told before nothing is assumed, and what is assumed, µs: most KCPs have a beat of up to that.
const FEW: usize = 4;
const UNKNOWN: u32 = 40_000;
/// Datagrams that are looked back on.
const DATAGRAMS: usize = 8;
/// What is waited for beside a round trip and a quarter, µs.
const IMPATIENCE: u64 = 10_000;
/// How often a segment leaves until the peer acknowledges, at most.
const RESENDS: u64 = 3;
/// How long a loss counts, µs.
const LOSSY: u64 = 30_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a timeout allows for after datagrams that freed transmissions so many ms apart, ms.
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
