//! A budget of bytes that fills with time.

use crate::time::Time;
use std::time::Duration;

/// Longest time whose budget is kept.
pub const PACING_BURST: Duration = Duration::from_millis(20);

/// Token bucket. A segment leaves when the budget is above zero and may overdraw it, so that no
/// rate is too small for a segment; the debt is paid before the next one.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// Bytes that may leave, negative after an overdraft, in units of 1/1,000,000 byte.
    budget: i64,
    /// When it was filled last, with which rate; `None`: not paced.
    filled: Option<Time>,
}

impl Pacer {
    /// Adds what `rate` bytes/s are worth since the last call.
    pub(super) fn refill(&mut self, now: Time, rate: Option<u64>) {
        let Some(rate) = rate else {
            self.filled = None;
            return;
        };
        let rate = i64::try_from(rate).unwrap_or(i64::MAX);
        let burst = rate.saturating_mul(micros(PACING_BURST));
        self.budget = match self.filled {
            None => burst,
            Some(last) => self.budget.saturating_add(rate.saturating_mul(micros(now.since(last)))).min(burst),
        };
        self.filled = Some(now);
    }

    /// Whether a segment may leave.
    pub(super) fn allows(&self) -> bool {
        self.filled.is_none() || self.budget > 0
    }

    /// When a segment may leave at `rate`; `None`: not at this rate.
    pub(super) fn allows_at(&self, now: Time, rate: Option<u64>) -> Option<Time> {
        match (self.filled, rate) {
            (Some(_), Some(0)) if !self.allows() => None,
            (Some(filled), Some(rate)) if !self.allows() => {
                let wait = self.budget.unsigned_abs() / rate + 1;
                Some((filled + Duration::from_micros(wait)).max(now))
            }
            _ => Some(now),
        }
    }

    /// Takes the bytes of a segment that leaves.
    pub(super) fn spend(&mut self, len: u16) {
        self.budget = self.budget.saturating_sub(i64::from(len) * 1_000_000);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_rate_gets_its_bytes_out_and_no_more() {
        for (rate, len) in [(1000, 600), (100, 1376), (1_000_000, 1376), (7, 1)] {
            let (mut pacer, mut sent, mut now) = (Pacer::default(), 0u64, Time::ZERO);
            let end = Time::from_millis(1_000_000);
            while now < end {
                pacer.refill(now, Some(rate));
                assert!(pacer.allows(), "woken too early at {now}");
                pacer.spend(len);
                sent += u64::from(len);
                now = pacer.allows_at(now, Some(rate)).unwrap();
            }
            let want = rate * 1000;
            assert!((want..=want + want / 20 + u64::from(len)).contains(&sent), "{sent} at {rate}");
        }
    }

    #[test]
    fn what_is_saved_up_is_at_most_a_burst() {
        let mut pacer = Pacer::default();
        pacer.refill(Time::ZERO, Some(100_000));
        pacer.refill(Time::from_millis(3_600_000), Some(100_000));
        let mut sent = 0;
        while pacer.allows() {
            pacer.spend(100);
            sent += 100;
        }
        assert_eq!(sent, 2000); // 20 ms of it
        assert_eq!(pacer.allows_at(Time::ZERO, Some(0)), Some(Time::ZERO).filter(|_| pacer.allows()));
    }
}
