//! The bottleneck of a path: a bit rate and a queue of limited length.

use super::config::{LinkError, in_range};
use whitewater::Time;

/// The bottleneck of a path. Packets that come faster wait in a queue. Those that do not fit are dropped, the
/// newest first ("drop-tail").
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "two numbers with names")]
pub struct Bottleneck {
    /// Bits per second, including IP and UDP headers: at least 1.
    pub rate: u64,
    /// Most bytes that may wait, including the packet that is being sent.
    pub queue: u64,
}

impl Bottleneck {
    pub(super) fn check(&self) -> Result<(), LinkError> {
        in_range("bottleneck.rate", self.rate, 1, u64::MAX)
    }
}

/// The waiting packets, stored as the time at which the last of them has left, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    busy: u128,
}

impl Queue {
    /// Bytes waiting when a packet comes now.
    pub(super) fn backlog(&self, now: Time, rate: u64) -> u64 {
        let waits = self.busy.saturating_sub(u128::from(now.as_micros()) * 1000);
        u64::try_from(waits.saturating_mul(rate.into()) / NS_PER_BYTE_BIT).unwrap_or(u64::MAX)
    }

    /// When a packet of `size` bytes that comes now has left; `None`: the queue is full.
    pub(super) fn depart(&mut self, now: Time, size: usize, bottleneck: Bottleneck) -> Option<Time> {
        let Bottleneck { rate, queue } = bottleneck;
        let (now, size, rate) = (u128::from(now.as_micros()) * 1000, size as u128, u128::from(rate));
        let start = now.max(self.busy);
        let backlog = (start - now).saturating_mul(rate) / NS_PER_BYTE_BIT;
        if backlog + size > queue.into() {
            return None;
        }
        self.busy = start + size * NS_PER_BYTE_BIT / rate;
        Some(Time::from_micros(u64::try_from(self.busy.div_ceil(1000)).unwrap_or(u64::MAX)))
    }
}

/// ns per second times bits per byte: converts bytes and bits per second to ns.
const NS_PER_BYTE_BIT: u128 = 8_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_one_after_another_and_the_newest_is_dropped() {
        // 1000 bytes take 1 ms; three such packets fit.
        let bottleneck = Bottleneck { rate: 8_000_000, queue: 3000 };
        let mut queue = Queue::default();
        let mut leave = |at, size| queue.depart(Time::from_micros(at), size, bottleneck).map(Time::as_micros);
        assert_eq!([(); 4].map(|()| leave(0, 1000)), [Some(1000), Some(2000), Some(3000), None]);
        assert_eq!(leave(500, 500), Some(3500), "half of the first has left");
        assert_eq!(leave(500, 1), None);
        assert_eq!(leave(9000, 1000), Some(10_000), "idle in between");
    }

    #[test]
    fn the_rate_is_exact_even_for_fractions_of_a_microsecond() {
        let bottleneck = Bottleneck { rate: 20_000_000_000, queue: 1 << 30 };
        let mut queue = Queue::default();
        let last = (0..100_000).map(|_| queue.depart(Time::ZERO, 1428, bottleneck)).last();
        assert_eq!(last, Some(Some(Time::from_micros(57_100))), "571 ns each: not a whole number of µs");
    }
}
