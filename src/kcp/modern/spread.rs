//! Spreads new segments over the round trip if the window is the limit.

use crate::time::Time;

/// Paces the new segments of a sender whose window is full. Acknowledgements make room in bursts; filling it at once
/// would overrun the peer's socket and queues on the way. Senders of less than a window per round trip are never
/// delayed.
///
/// Source: A. Aggarwal, S. Savage, T. Anderson, "Understanding the Performance of TCP Pacing", 2000; RFC 9002 (7.7).
#[derive(Debug, Default)]
pub(in crate::kcp) struct Spread {
    /// The window was full less than two round trips before this time.
    until: Time,
    /// When the next segment is sent if segments are sent one by one.
    next: Time,
    /// Time between two segments, µs. 0: they are sent at once.
    gap: u64,
    /// Time between two wake-ups, µs.
    pause: u64,
}

impl Spread {
    /// How many segments may be sent now. `window` may be in flight, and acknowledgements take `cycle` µs (0: not
    /// measured yet). `is_full`: more segments wait than there is room for.
    pub(super) fn most(&mut self, now: Time, is_full: bool, window: u32, cycle: u64) -> u32 {
        let is_on = now < self.until && cycle > 0;
        if is_full {
            self.until = now.after(2 * cycle);
        }
        if !is_on {
            *self = Self { until: self.until, ..Self::default() };
            return u32::MAX;
        }
        self.gap = (cycle * 100 / (u64::from(window.max(1)) * GAIN)).max(1);
        self.pause = (QUANTUM * self.gap).min(cycle / 16).max(self.gap);
        self.next = self.next.max(now.before(BURST * self.gap));
        u32::try_from(now.micros_since(self.next) / self.gap).unwrap_or(u32::MAX)
    }

    pub(super) fn sent(&mut self, segments: u32) {
        self.next = self.next.after(u64::from(segments) * self.gap);
    }

    /// Whether segments are sent at once.
    pub(super) const fn is_off(&self) -> bool {
        self.gap == 0
    }

    pub(in crate::kcp) fn at(&self) -> Time {
        if self.is_off() { Time::ZERO } else { self.next.after(self.pause) }
    }
}

/// Segments sent at once after a pause: about as many datagrams as fit into a peer's socket with the default buffer
/// size.
const BURST: u64 = 96;
/// How much faster than one window per round trip they are sent, percent. A slower rate would never fill the window.
const GAIN: u64 = 150;
/// Number of segments worth a wake-up if they are due within a sixteenth of a round trip.
const QUANTUM: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE: u64 = 20_000;

    /// When each of `segments` is sent, by a sender that always has more, with a window of 512.
    fn times(spread: &mut Spread, mut now: Time, segments: u32) -> Vec<Time> {
        let mut times = Vec::new();
        while times.len() < segments as usize {
            let most = spread.most(now, true, 512, CYCLE).min(512);
            spread.sent(most);
            times.extend((0..most).map(|_| now));
            now = spread.at().max(now.after(1));
        }
        times
    }

    #[test]
    fn the_first_window_leaves_at_once_and_the_next_over_two_thirds_of_a_round_trip() {
        let mut spread = Spread::default();
        assert_eq!(times(&mut spread, Time::ZERO, 512), [Time::ZERO; 512]);
        let start = Time::from_micros(CYCLE);
        let times = times(&mut spread, start, 512);
        assert!(times.iter().filter(|time| **time == start).count() <= 96);
        let last = times[511].since(start).as_micros();
        assert!((10_000..=13_400).contains(&last), "{last} µs");
        let most = times.chunk_by(|one, other| one == other).skip(1).map(<[_]>::len).max().unwrap();
        assert!(most <= 16, "{most} at once");
    }

    #[test]
    fn a_window_that_closes_to_one_segment_lets_it_out_within_a_round_trip() {
        let mut spread = Spread::default();
        times(&mut spread, Time::ZERO, 2000);
        let now = spread.at();
        let most = spread.most(now, true, 512, CYCLE);
        spread.sent(most);
        spread.most(now, true, 1, CYCLE);
        assert!(spread.at() <= now.after(CYCLE), "{spread:?} at {now}");
    }
}
