//! The beat of a game.

use crate::arq::rtt::Rtt;
use crate::time::Time;

/// The time between packets that come, or go, one after another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    last: Option<Time>,
    /// Average, µs; 0: not known.
    average: u64,
}

impl Gap {
    /// A packet came or went.
    pub(super) fn packet(&mut self, now: Time) {
        let gap = self.last.map_or(0, |last| now.micros_since(last).min(GAP_MAX));
        self.average = if self.average == 0 { gap } else { (7 * self.average + gap) / 8 };
        self.last = Some(now);
    }

    /// The average, µs.
    pub(super) fn average(self) -> u64 {
        self.average
    }

    /// How long it takes, µs, until the next packet has surely come, if not lost; `None`: too long to wait.
    pub(super) fn wait(self) -> Option<u64> {
        let gap = self.average.max(WAIT_MIN);
        (gap <= WAIT_MAX).then_some(gap + gap / 4)
    }

    /// The same where gaps of up to `longest` µs are waited for, and by a smaller margin: what is waited for here is our own beat.
    pub(super) fn wait_up_to(self, longest: u64) -> Option<u64> {
        (1..=longest).contains(&self.average).then_some(self.average + (self.average / 8).max(SLACK))
    }

    /// By when the next packet has surely gone, if they go that often.
    pub(super) fn next(self, longest: u64) -> Option<Time> {
        Some(self.last?.after(self.wait_up_to(longest)?))
    }

    /// How long it takes from `now` on, µs, until the next packet has surely gone, if an acknowledgement may
    /// wait that long at this round trip; else 0.
    pub(super) fn ride(self, now: Time, rtt: &Rtt) -> u64 {
        let Some((wait, last)) = self.wait().zip(self.last) else { return 0 };
        let rest = wait.saturating_sub(now.micros_since(last));
        if rest < patience(rtt) { rest } else { 0 }
    }

    /// For how many packets of this beat an acknowledgement may wait at this round trip.
    pub(super) fn patience(self, rtt: &Rtt) -> u8 {
        let gaps = self.wait().map_or(0, |_| patience(rtt) / self.average.max(WAIT_MIN));
        u8::try_from(gaps).map_or(PATIENCE_MAX, |gaps| gaps.min(PATIENCE_MAX))
    }
}

/// How long an acknowledgement may wait at all, µs: about half a round trip. Longer, and what the wait
/// costs when something is lost outweighs what it saves.
fn patience(rtt: &Rtt) -> u64 {
    u64::from(rtt.srtt) * 11 / 20
}

/// Packets that an acknowledgement waits for at most.
pub(super) const PATIENCE_MAX: u8 = 2;
/// Longest time that an acknowledgement waits, µs.
pub(super) const WAIT_LONGEST: u64 = PATIENCE_MAX as u64 * (WAIT_MAX + WAIT_MAX / 4);
/// Longest gap that counts, µs.
const GAP_MAX: u64 = 50_000;
/// Least margin, µs: who answers in no time is as late as its scheduler now and then.
const SLACK: u64 = 1000;
/// Shortest gap that is waited for, µs.
const WAIT_MIN: u64 = 2000;
/// Longest gap that is waited for, µs: 40 packets a second.
const WAIT_MAX: u64 = 25_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(gap: u64, rtt: u32) -> (u8, Option<u64>) {
        let mut packets = Gap::default();
        (1..100).for_each(|packet| packets.packet(Time::from_micros(packet * gap)));
        let mut round_trips = Rtt::new();
        round_trips.sample(rtt);
        (packets.patience(&round_trips), packets.wait())
    }

    #[test]
    fn an_ack_waits_for_as_many_packets_as_half_a_round_trip_has_and_two_at_most() {
        assert_eq!(of(16_000, 20_000), (0, Some(20_000)));
        assert_eq!(of(16_000, 30_000), (1, Some(20_000)));
        assert_eq!(of(16_000, 60_000), (2, Some(20_000)));
        assert_eq!(of(16_000, 900_000), (2, Some(20_000)));
        assert_eq!(of(100, 60_000), (2, Some(2500)));
        assert_eq!(of(50_000, 900_000), (0, None));
        assert_eq!(of(16_000, 0).0, 0);
    }

    #[test]
    fn our_own_beat_is_waited_for_an_eighth_longer_and_a_millisecond_at_least() {
        let beat = |gap: u64| {
            let mut packets = Gap::default();
            (1..100).for_each(|packet| packets.packet(Time::from_micros(packet * gap)));
            packets.wait_up_to(40_000)
        };
        assert_eq!([10, 8000, 16_000].map(beat), [Some(1010), Some(9000), Some(18_000)]);
        assert_eq!(beat(40_001), None);
    }
}
