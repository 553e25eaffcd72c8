//! How often each address may do something: a token bucket for each, in a table with a limit. Time comes in, us.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Most addresses that are remembered.
const ADDRESSES_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Rate {
    /// From one to the next, us.
    interval: u64,
    /// When the bucket of an address is full again.
    full_at: HashMap<IpAddr, u64>,
}

impl Rate {
    /// That many a second, and as many at once.
    pub(crate) fn new(per_second: u32) -> Self {
        Self { interval: 1_000_000 / u64::from(per_second.max(1)), full_at: HashMap::new() }
    }

    /// Takes one, or returns `false` when there is none.
    pub(crate) fn admit(&mut self, now: u64, address: IpAddr) -> bool {
        if self.full_at.len() >= ADDRESSES_MAX {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        let key = network(address);
        let full_at = self.full_at.get(&key).map_or(now, |full_at| now.max(*full_at)) + self.interval;
        let is_admitted = full_at <= now + 1_000_000
            && (self.full_at.len() < ADDRESSES_MAX || self.full_at.contains_key(&key));
        if is_admitted {
            self.full_at.insert(key, full_at);
        }
        is_admitted
    }
}

/// Whoever has an IPv6 address has all of its /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn an_address_has_its_rate_and_a_second_of_it_at_once() {
        let mut rate = Rate::new(10);
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut taken = |now, address| (0..100).filter(|_| rate.admit(now, address)).count();
        assert_eq!(taken(0, one), 10);
        assert_eq!(taken(0, other), 10, "of its own");
        assert_eq!(taken(SECOND / 2, one), 5);
        assert_eq!(taken(100 * SECOND, one), 10);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_ipv4_is_itself() {
        let mut rate = Rate::new(1);
        assert!(rate.admit(0, "2001:db8::1".parse().unwrap()));
        assert!(!rate.admit(0, "2001:db8::ffff:1".parse().unwrap()));
        assert!(rate.admit(0, "2001:db8:0:1::1".parse().unwrap()));
        assert!(rate.admit(0, "192.0.2.1".parse().unwrap()));
        assert!(!rate.admit(0, "::ffff:192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn a_full_table_refuses_new_addresses_and_forgets_those_that_are_full_again() {
        let mut rate = Rate::new(1);
        let address = |number: u32| IpAddr::V4(number.into());
        let most = u32::try_from(ADDRESSES_MAX).unwrap();
        assert!((0..most).all(|number| rate.admit(0, address(number))));
        assert!(!rate.admit(SECOND / 2, address(most)));
        assert_eq!(rate.full_at.len(), ADDRESSES_MAX);
        assert!(rate.admit(SECOND, address(most)));
        assert_eq!(rate.full_at.len(), 1);
    }
}
