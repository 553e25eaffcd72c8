//! How many bytes may pass.

use std::num::NonZeroU64;

/// A token bucket that holds what a second brings, stored as the time at which it will be full again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    full_at: u64,
}

impl Bucket {
    /// Takes the bytes of a datagram, and those of its headers, at `now`, µs. Returns `false` if there are not as many.
    pub(crate) fn spend(&mut self, now: u64, datagram: &[u8], bytes_per_second: u32) -> bool {
        let bytes = (datagram.len() + HEADERS) as u64;
        let Some(rate) = NonZeroU64::new(bytes_per_second.into()) else { return false };
        let micros = bytes.saturating_mul(1_000_000).div_ceil(rate.get());
        let full_at = self.full_at.max(now).saturating_add(micros);
        let is_there = full_at - now <= 1_000_000;
        if is_there {
            self.full_at = full_at;
        }
        is_there
    }
}

/// An empty datagram costs something as well: IPv6 and UDP.
const HEADERS: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_brings_what_it_says_and_no_more_is_kept() {
        let mut bucket = Bucket::default();
        for second in [0, 1, 2, 100] {
            let now = second * 1_000_000;
            let passed = (0..100).filter(|_| bucket.spend(now, &[7; 152], 10_000)).count();
            assert_eq!(passed, 50, "in second {second}");
        }
        let empty = (0..1000).filter(|_| bucket.spend(200_000_000, &[], 4800)).count();
        assert_eq!(empty, 100);
        assert!(!bucket.spend(300_000_000, b"", 0) && !bucket.spend(300_000_000, b"", 1));
    }
}
