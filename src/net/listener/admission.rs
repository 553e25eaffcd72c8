//! Who may open a session: what the datagram has to look like, how often one address may, and who
//! has just been sent away. Everything here has a fixed bound.

use crate::seq::{Conv, Sn};
use crate::time::Time;
use crate::wire::{self, Command, DecodeError};
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// What a bare KCP session is known by.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) peer: SocketAddr,
    pub(super) conv: Conv,
}

/// Whether a fresh control block would take data from `datagram`: a whole KCP datagram of one
/// conv, from a peer that has acknowledged nothing, with data of the first window. That a first
/// datagram may be lost or late is why it need not be segment 0.
///
/// # Errors
///
/// It is not KCP.
pub(super) fn opens(datagram: &[u8], conv: Conv, rcv_wnd: u32) -> Result<bool, DecodeError> {
    let (mut fresh, mut data) = (true, false);
    for segment in wire::segments(datagram) {
        let header = segment?.header;
        fresh &= header.conv == conv && header.una == Sn(0) && header.cmd != Command::Ack;
        data |= header.cmd == Command::Push && header.sn.offset_in(Sn(0), rcv_wnd).is_some();
    }
    Ok(fresh && data)
}

/// What counts as one address: the IP, or the network that one IPv6 host has to itself.
pub(super) fn host(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// A token bucket for each address, as the time at which it will be full again.
///
/// The table has a fixed size and addresses share buckets by a seeded hash: a flood from many
/// addresses costs no memory, at worst it makes others wait.
#[derive(Debug)]
pub(super) struct AcceptRate {
    full_at: Box<[Time]>,
    hasher: RandomState,
    /// Time that one token takes to come back, and that all of them take.
    token: Duration,
    bucket: Duration,
}

impl AcceptRate {
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        let token = Duration::from_secs(1).checked_div(per_second).unwrap_or(NEVER);
        Self {
            full_at: vec![Time::ZERO; BUCKETS].into_boxed_slice(),
            hasher: RandomState::new(),
            token,
            bucket: token.saturating_mul(burst),
        }
    }

    /// Takes a token of `host`, if there is one.
    pub(super) fn take(&mut self, now: Time, host: IpAddr) -> bool {
        let slot = self.slot(host);
        let Some(full_at) = self.full_at.get_mut(slot) else { return false };
        let next = now.max(*full_at) + self.token;
        let taken = next.since(now) <= self.bucket;
        if taken {
            *full_at = next;
        }
        taken
    }

    fn slot(&self, host: IpAddr) -> usize {
        usize::try_from(self.hasher.hash_one(host) % BUCKETS as u64).unwrap_or(0)
    }
}

/// Sessions that were closed here and must not come back at once. It keeps the newest.
#[derive(Debug)]
pub(super) struct Quarantine {
    keys: HashSet<Key>,
    /// When each of them may come back, soonest first.
    until: VecDeque<(Time, Key)>,
    stay: Duration,
    limit: usize,
}

impl Quarantine {
    pub(super) fn new(stay: Duration, limit: usize) -> Self {
        Self { keys: HashSet::new(), until: VecDeque::new(), stay, limit }
    }

    pub(super) fn insert(&mut self, now: Time, key: Key) {
        self.release(now);
        if self.until.len() >= self.limit
            && let Some((_, oldest)) = self.until.pop_front()
        {
            self.keys.remove(&oldest);
        }
        if self.limit > 0 && self.keys.insert(key) {
            self.until.push_back((now + self.stay, key));
        }
    }

    pub(super) fn holds(&mut self, now: Time, key: Key) -> bool {
        self.release(now);
        self.keys.contains(&key)
    }

    fn release(&mut self, now: Time) {
        while let Some((until, key)) = self.until.front()
            && *until <= now
        {
            self.keys.remove(key);
            self.until.pop_front();
        }
    }
}

/// Buckets of [`AcceptRate`]: 32 KiB of them.
const BUCKETS: usize = 4096;

/// A token that does not come back.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_opens_a_burst_and_then_so_many_a_second() {
        let mut rate = AcceptRate::new(4, 3);
        let here = host(address("10.0.0.1:1"));
        let there =
            (2..=255).map(|d| IpAddr::from([10, 0, 0, d])).find(|&ip| rate.slot(ip) != rate.slot(here));
        let taken =
            |rate: &mut AcceptRate, ms| (0..9).filter(|_| rate.take(Time::from_millis(ms), here)).count();
        assert_eq!(taken(&mut rate, 0), 3);
        assert!(rate.take(Time::ZERO, there.unwrap()));
        assert_eq!(taken(&mut rate, 249), 0);
        assert_eq!(taken(&mut rate, 250), 1);
        assert_eq!(taken(&mut rate, 60_000), 3, "a pause earns no more than a burst");
    }

    #[test]
    fn a_rate_of_zero_leaves_the_burst_only() {
        let mut rate = AcceptRate::new(0, 2);
        let here = host(address("[2001:db8::1]:1"));
        let taken = (0..9).filter(|&s| rate.take(Time::from_millis(s * 1_000_000), here)).count();
        assert_eq!(taken, 2);
    }

    #[test]
    fn one_host_is_one_address_in_either_family() {
        assert_eq!(host(address("10.0.0.1:1")), host(address("[::ffff:10.0.0.1]:9")));
        assert_eq!(host(address("[2001:db8::1]:1")), host(address("[2001:db8::ffff:2]:1")));
        assert_ne!(host(address("[2001:db8::1]:1")), host(address("[2001:db8:0:1::1]:1")));
    }

    #[test]
    fn a_closed_session_stays_away_and_the_list_has_a_limit() {
        let mut quarantine = Quarantine::new(Duration::from_secs(10), 2);
        let key = |conv| Key { peer: address("10.0.0.1:1"), conv: Conv(conv) };
        for conv in 1..=3 {
            quarantine.insert(Time::ZERO, key(conv));
        }
        let held = |quarantine: &mut Quarantine, ms| {
            (1..=3).map(|conv| quarantine.holds(Time::from_millis(ms), key(conv))).collect::<Vec<_>>()
        };
        assert_eq!(held(&mut quarantine, 9_999), [false, true, true]);
        assert_eq!(held(&mut quarantine, 10_000), [false; 3]);
    }
}
