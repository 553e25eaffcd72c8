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

    /// Whether more than half of the bucket is spent.
    pub(crate) fn is_low(&self, now: Time) -> bool {
        self.full_at.since(now) * 2 > self.limit.bucket
    }
}

/// A token bucket for each address, or for each network. The tables have a fixed size and map addresses to buckets by a
/// keyed hash, so a flood from many addresses costs no memory. An address has a bucket in each of two tables, and the
/// fuller one counts: a flood from n addresses makes one of (4096 / n)² others wait. Source: Estan and Varghese, New
/// Directions in Traffic Measurement and Accounting, 2002, multistage filters with conservative update.
#[derive(Clone, Debug)]
pub(crate) struct AddressRate {
    full_at: [Box<[Time]>; 2],
    hash: Keyed,
    limit: Limit,
}

impl AddressRate {
    pub(crate) fn new(per_second: u32, burst: u32, key: [u64; 2]) -> Self {
        Self {
            full_at: [(); 2].map(|()| vec![Time::ZERO; BUCKETS].into()),
            hash: Keyed(key),
            limit: Limit::new(per_second, burst),
        }
    }

    /// Takes a token of `host`. Returns `false` if there is none.
    pub(crate) fn spend(&mut self, now: Time, host: IpAddr) -> bool {
        let limit = self.limit;
        let Some([first, second]) = self.buckets(host) else { return false };
        let mut full_at = (*first).min(*second);
        let is_there = limit.spend(now, &mut full_at);
        if is_there {
            (*first, *second) = ((*first).max(full_at), (*second).max(full_at));
        }
        is_there
    }

    /// Whether there is a token of `host`.
    pub(crate) fn has(&mut self, now: Time, host: IpAddr) -> bool {
        let limit = self.limit;
        self.buckets(host).is_some_and(|[first, second]| limit.spend(now, &mut (*first).min(*second)))
    }

    fn buckets(&mut self, host: IpAddr) -> Option<[&mut Time; 2]> {
        let hash = self.hash.hash_one(host);
        let slot = |hash: u64| usize::try_from(hash % BUCKETS as u64).unwrap_or(0);
        let [first, second] = &mut self.full_at;
        Some([first.get_mut(slot(hash))?, second.get_mut(slot(hash >> 32))?])
    }
}

/// What counts as one address: the IPv4 address, or the /64 network that a single IPv6 host may own.
pub(crate) fn host(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// What usually belongs to one operator: the /24 network of an IPv4 address, or the /48 that a site gets with IPv6.
pub(crate) fn network(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !(u128::MAX >> 48)).into(),
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            [a, b, c, 0].into()
        }
    }
}

/// Number of buckets in each table of an [`AddressRate`]; they take 32 KiB.
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

    #[test]
    fn a_network_is_a_24_or_a_48() {
        let same = |one, other| network(address(one)) == network(address(other));
        assert!(same("10.0.0.1:1", "[::ffff:10.0.0.255]:9") && !same("10.0.0.1:1", "10.0.1.1:1"));
        assert!(same("[2001:db8:5:1::]:1", "[2001:db8:5:ffff::9]:1"));
        assert!(!same("[2001:db8:5::]:1", "[2001:db8:6::]:1"));
    }

    /// And they are others at another server, or at the same one after a restart.
    #[test]
    fn a_flood_from_many_addresses_makes_few_others_wait() {
        let host = |number: u32| IpAddr::from(number.to_be_bytes());
        let waiting = |key| {
            let mut rate = AddressRate::new(1, 1, key);
            (0..400).for_each(|number| _ = rate.spend(Time::ZERO, host(number)));
            let waits = |number: &u32| !rate.clone().spend(Time::ZERO, host(*number));
            (1000..3000).filter(waits).collect::<Vec<_>>()
        };
        let [here, there] = [[1, 2], [3, 4]].map(waiting);
        assert!((1..=40).contains(&here.len()), "{} of 2000: a hundredth", here.len());
        assert!(here.iter().filter(|number| there.contains(number)).count() <= 5);
    }
}
