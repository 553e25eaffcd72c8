//! How many bytes may pass.

/// A token bucket that holds what a second brings, stored as the time at which it will be full again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    full_at: u64,
}

impl Bucket {
    /// Takes `bytes` at `now`, µs. Returns `false` if there are not as many.
    pub(crate) fn spend(&mut self, now: u64, bytes: usize, bytes_per_second: u32) -> bool {
        let micros = (bytes as u64).saturating_mul(1_000_000).checked_div(bytes_per_second.into());
        let Some(micros) = micros else { return false };
        let full_at = self.full_at.max(now).saturating_add(micros);
        let is_there = full_at - now <= 1_000_000;
        if is_there {
            self.full_at = full_at;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_brings_what_it_says_and_no_more_is_kept() {
        let mut bucket = Bucket::default();
        for second in [0, 1, 2, 100] {
            let now = second * 1_000_000;
            let passed = (0..100).filter(|_| bucket.spend(now, 100, 5000)).count();
            assert_eq!(passed, 50, "in second {second}");
        }
        assert!(!bucket.spend(0, 1, 0) && !bucket.spend(0, usize::MAX, 1));
    }
}
