//! How much queue a delay-aware controller tolerates.

/// The delay in the queue to aim for, learned from how often the queue is empty.
///
/// On a steady path a queue of a few segments is enough, and it is never empty. On a path whose rate varies, as of a
/// cellular link, such a queue is empty whenever the rate has risen, and the path idles until the window follows. So
/// the tolerance rises while the queue is empty, and falls while it is not: it settles where the queue is empty for a
/// seventh of the time. This finds a quantile as in Robbins, Monro, "A Stochastic Approximation Method", 1951.
///
/// Round trips that vary for other reasons look like a queue that never empties. A queue changes little between two
/// packets, so what round trips differ by from one to the next is not a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance {
    /// What is learned from empty queues, ns.
    learned: u64,
    /// Median difference of a round trip to the one before, µs.
    noise: u64,
    /// The last round trip, µs; 0: none.
    last: u64,
}

impl Tolerance {
    pub(super) const NEW: Self = Self { learned: 0, noise: 0, last: 0 };

    /// µs.
    pub(super) fn get(&self) -> u64 {
        (self.learned / 1000 + NOISE * self.noise).min(MOST)
    }

    /// A round trip of `rtt` µs was measured; the shortest is `base`.
    ///
    /// The median is found like the rest: by a step towards each difference. One long pause does not change it.
    pub(super) fn on_rtt(&mut self, rtt: u64, base: u64) {
        if self.last > 0 {
            let (differs, step) = (rtt.abs_diff(self.last).min(base), self.noise / 16 + 20);
            self.noise =
                if differs > self.noise { self.noise + step } else { self.noise.saturating_sub(step) };
        }
        self.last = rtt;
    }

    /// The queue was empty for these µs, or was not.
    pub(super) fn passed(&mut self, time: u64, is_empty: bool) {
        let learned =
            if is_empty { self.learned + RISE * time } else { self.learned.saturating_sub(FALL * time) };
        self.learned = learned.min(1000 * MOST);
    }

    /// The rate of the path is measured for the first time: `passed` has not seen it full.
    pub(super) fn begin(&mut self) {
        self.learned = FIRST;
    }

    /// Something was lost in this round trip: a queue that is too short, or that does not let it grow (CoDel).
    pub(super) fn lost(&mut self) {
        self.learned = self.learned / 10 * 9;
    }
}

/// Median differences that are tolerated.
const NOISE: u64 = 3;
/// How fast it rises and falls, ms per second.
const RISE: u64 = 40;
const FALL: u64 = 7;
/// What it is first, ns: fills a path whose rate was measured a little too low.
const FIRST: u64 = 5_000_000;
/// The longest, µs.
const MOST: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_where_the_queue_is_empty_for_a_seventh_of_the_time() {
        for (full, rises) in [(5, true), (6, false)] {
            let mut tolerance = Tolerance { learned: 30_000_000, ..Tolerance::NEW };
            for ms in 0..5000 {
                tolerance.passed(1000, ms % (full + 1) == 0);
            }
            let differs = tolerance.get().abs_diff(30_000);
            assert_eq!((tolerance.get() > 30_000, differs > 1000), (rises, true), "{tolerance:?}");
        }
    }

    #[test]
    fn it_allows_for_jitter_but_not_for_a_queue_or_a_pause() {
        let after = |rtt: fn(u64) -> u64| {
            let mut tolerance = Tolerance::NEW;
            (0..1000).for_each(|packet| tolerance.on_rtt(rtt(packet), 60_000));
            tolerance.get()
        };
        assert!(after(|packet| 60_000 + 100 * (packet % 300)) < 1000, "a queue that grows and empties");
        assert!(after(|packet| if packet % 50 == 0 { 400_000 } else { 60_000 }) < 1000, "pauses");
        let jitter = after(|packet| 60_000 + 7919 * packet % 12_000);
        assert!((6000..18_000).contains(&jitter), "jitter of 12 ms: {jitter}");
    }
}
