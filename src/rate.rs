//! Rate limits: token buckets, one for everybody together and one for each address.

use crate::hash::Keyed;
use crate::time::Time;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A token bucket, stored as the time at which it will be full again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    full_at: Time,
    limit: Limit,
}

/// How long one token and how long a whole bucket takes to refill.
#[derive(Clone, Copy, Debug)]
struct Limit {
    token: Duration,
    bucket: Duration,
}

impl Limit {
    fn new(per_second: u32, burst: u32) -> Self {
        let token = Duration::from_secs(1).checked_div(per_second).unwrap_or(NEVER);
        Self { token, bucket: token.saturating_mul(burst) }
    }

    /// Takes a token from the bucket that will be full at `full_at`. Returns `false` if there is none.
    fn spend(&self, now: Time, full_at: &mut Time) -> bool {
        let next = now.max(*full_at) + self.token;
        let is_there = next.since(now) <= self.bucket;
        if is_there {
            *full_at = next;
        }
        is_there
    }
}

impl Rate {
    /// Allows `per_second` on average and `burst` at once.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        Self { full_at: Time::ZERO, limit: Limit::new(per_second, burst) }
    }

    pub(crate) fn spend(&mut self, now: Time) -> bool {
        self.limit.spend(now, &mut self.full_at)
    }
}

/// A token bucket for each address. The table has a fixed size and maps addresses to buckets by a keyed hash.
/// So a flood from many addresses costs no memory; at worst it makes other addresses wait.
#[derive(Debug)]
pub(crate) struct AddressRate {
    full_at: Box<[Time]>,
    hash: Keyed,
    limit: Limit,
}

impl AddressRate {
    pub(crate) fn new(per_second: u32, burst: u32, key: [u64; 2]) -> Self {
        Self {
            full_at: vec![Time::ZERO; BUCKETS].into(),
            hash: Keyed(key),
            limit: Limit::new(per_second, burst),
        }
    }

    /// Takes a token of `host`. Returns `false` if there is none.
    pub(crate) fn spend(&mut self, now: Time, host: IpAddr) -> bool {
        let slot = usize::try_from(self.hash.hash_one(host) % BUCKETS as u64).unwrap_or(0);
        self.full_at.get_mut(slot).is_some_and(|full_at| self.limit.spend(now, full_at))
    }
}

/// What counts as one address: the IPv4 address, or the /64 network that a single IPv6 host may own.
pub(crate) fn host(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Number of buckets in an [`AddressRate`]; they take 32 KiB.
const BUCKETS: usize = 4096;
/// A token that is not refilled.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_burst_is_allowed_and_then_the_rate() {
        let mut rate = Rate::new(4, 3);
        let mut taken = |ms| (0..9).filter(|_| rate.spend(Time::from_millis(ms))).count();
        assert_eq!([taken(0), taken(249), taken(250), taken(60_000)], [3, 0, 1, 3]);
        let mut never = Rate::new(0, 2);
        assert_eq!((0..9).filter(|&s| never.spend(Time::from_millis(s * 1_000_000))).count(), 2);
    }

    #[test]
    fn each_host_has_its_own_bucket() {
        let mut rate = AddressRate::new(4, 3, [1, 2]);
        let mut taken = |text| (0..9).filter(|_| rate.spend(Time::ZERO, host(address(text)))).count();
        assert_eq!(taken("10.0.0.1:1"), 3);
        assert_eq!(taken("[::ffff:10.0.0.1]:9"), 0);
        assert_eq!(taken("10.0.0.2:1"), 3);
        assert_eq!(taken("[2001:db8::1]:1"), 3);
        assert_eq!(taken("[2001:db8::ffff:2]:1"), 0);
        assert_eq!(taken("[2001:db8:0:1::1]:1"), 3);
    }
}
