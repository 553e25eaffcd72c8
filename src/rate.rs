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
        let token = Duration::from_secs(1).checked_div(per_second).unwrap_or(NEVER).max(TICK);
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

    /// How much of the bucket's second half is spent, in 256ths of that half.
    pub(crate) fn strain(&self, now: Time) -> u32 {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        strain(micros(self.full_at.since(now)), micros(self.limit.bucket))
    }
}

/// How much of the second half of `all` is used, in 256ths of that half.
pub(crate) fn strain(used: u64, all: u64) -> u32 {
    let beyond = used.saturating_mul(2).saturating_sub(all).saturating_mul(256);
    u32::try_from(beyond.checked_div(all).unwrap_or(256).min(256)).unwrap_or(256)
}

/// A time for each address, or for each network. The tables have a fixed size and map addresses to times by a
/// keyed hash, so a flood from many addresses costs no memory. An address has a time in each of two tables,
/// and the earlier one counts: a flood from n addresses affects one in (entries / n)² others. Source: Estan
/// and Varghese, New Directions in Traffic Measurement and Accounting, 2002, multistage filters with
/// conservative update.
#[derive(Clone, Debug)]
struct Times {
    tables: [Box<[Time]>; 2],
    hash: Keyed,
}

impl Times {
    fn new(entries: usize, key: [u64; 2]) -> Self {
        Self { tables: [(); 2].map(|()| vec![Time::ZERO; entries].into()), hash: Keyed(key) }
    }

    fn of(&mut self, host: IpAddr) -> Option<[&mut Time; 2]> {
        let hash = self.hash.hash_one(host);
        let [first, second] = &mut self.tables;
        let slot = |hash: u64| usize::try_from(hash % first.len().max(1) as u64).unwrap_or(0);
        let slots = [slot(hash), slot(hash >> 32)];
        Some([first.get_mut(slots[0])?, second.get_mut(slots[1])?])
    }
}

/// When each address or network had its last turn.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Times);

impl Turns {
    /// For about so many that have had one lately.
    pub(crate) fn new(entries: usize, key: [u64; 2]) -> Self {
        Self(Times::new(entries, key))
    }

    /// Whether the last turn of `host` was at least `wait` ago, or it has had none.
    pub(crate) fn is_due(&mut self, now: Time, host: IpAddr, wait: Duration) -> bool {
        self.0.of(host).is_some_and(|[first, second]| {
            let last = (*first).min(*second);
            last == Time::ZERO || now.since(last) >= wait
        })
    }

    pub(crate) fn take(&mut self, now: Time, host: IpAddr) {
        for time in self.0.of(host).into_iter().flatten() {
            *time = now;
        }
    }
}

/// A token bucket for each address, or for each network.
#[derive(Clone, Debug)]
pub(crate) struct AddressRate {
    /// When each is full.
    full_at: Times,
    limit: Limit,
}

impl AddressRate {
    pub(crate) fn new(per_second: u32, burst: u32, key: [u64; 2]) -> Self {
        Self { full_at: Times::new(BUCKETS, key), limit: Limit::new(per_second, burst) }
    }

    /// Takes a token of `host`. Returns `false` if there is none.
    pub(crate) fn spend(&mut self, now: Time, host: IpAddr) -> bool {
        let limit = self.limit;
        let Some([first, second]) = self.full_at.of(host) else { return false };
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
        self.full_at.of(host).is_some_and(|[first, second]| limit.spend(now, &mut (*first).min(*second)))
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

/// The addresses usually allocated to one provider: the /16 network of an IPv4 address, or the /32 of an IPv6
/// address. It is represented by its last address, so that it never equals a [`network`].
pub(crate) fn region(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() | u128::MAX >> 32).into(),
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            [a, b, 255, 255].into()
        }
    }
}

/// Number of buckets in each table of an [`AddressRate`]; they take 32 KiB.
const BUCKETS: usize = 4096;
/// The shortest time that counts, so a rate of more than a million a second is one of a million.
const TICK: Duration = Duration::from_micros(1);
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
        let mut most = Rate::new(u32::MAX, 2);
        let mut taken = |us| (0..9).filter(|_| most.spend(Time::from_micros(us))).count();
        assert_eq!([taken(0), taken(1), taken(9)], [2, 1, 2], "a million a second");
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

    #[test]
    fn whoever_had_a_turn_waits_and_whoever_is_new_does_not() {
        let (mut turns, second) = (Turns::new(1 << 10, [1, 2]), Duration::from_secs(1));
        let [old, new] = ["10.0.0.1:1", "10.0.1.1:1"].map(|text| network(address(text)));
        turns.take(Time::from_millis(5), old);
        let due = |ms, host, wait| turns.clone().is_due(Time::from_millis(ms), host, wait);
        assert!(due(5, old, Duration::ZERO) && due(5, new, second * 64));
        assert!(!due(1_004, old, second) && due(1_005, old, second));
    }

    #[test]
    fn half_of_what_there_is_costs_no_strain() {
        assert_eq!(
            [(0, 8), (4, 8), (5, 8), (8, 8), (9, 8)].map(|(used, all)| strain(used, all)),
            [0, 0, 64, 256, 256]
        );
        assert_eq!(strain(1, 0), 256);
        let mut rate = Rate::new(4, 4);
        let strains = [(); 4].map(|()| (rate.spend(Time::ZERO), rate.strain(Time::ZERO)).1);
        assert_eq!(strains, [0, 0, 128, 256]);
    }

    #[test]
    fn a_region_is_a_16_or_a_32_and_no_network() {
        let of = |text| region(address(text));
        assert!(of("10.0.0.1:1") == of("[::ffff:10.0.255.7]:9") && of("10.0.0.1:1") != of("10.1.0.1:1"));
        assert!(
            of("[2001:db8:5::]:1") == of("[2001:db8:6::]:1") && of("[2001:db8::]:1") != of("[2001:db9::]:1")
        );
        assert!(["10.0.255.0:1", "[2001:db8::]:1"].iter().all(|text| of(text) != network(address(text))));
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
