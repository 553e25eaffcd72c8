//! What clients were told that are not let in: kept while they may ask again, because the answer may have got lost.

use super::seat::{ACCEPT_EACH, TIME_WAIT};
use crate::rate::host;
use crate::session::seats::Name;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Rejections by attempt, the newest ones: so many in all, and so many of one address.
#[derive(Debug)]
pub(super) struct Rejections {
    said: BTreeMap<Name, Said>,
    /// The oldest first.
    by_age: BTreeSet<(Time, Name)>,
    by_host: BTreeMap<IpAddr, BTreeSet<(Time, Name)>>,
    limit: usize,
    per_host: usize,
}

#[derive(Debug)]
struct Said {
    /// An ACCEPT that says no.
    accept: Box<[u8]>,
    msg1_hash: u128,
    until: Time,
    again_from: Time,
}

impl Rejections {
    pub(super) const fn new(limit: usize, per_host: usize) -> Self {
        Self { said: BTreeMap::new(), by_age: BTreeSet::new(), by_host: BTreeMap::new(), limit, per_host }
    }

    pub(super) fn insert(&mut self, now: Time, attempt: Name, msg1_hash: u128, accept: Box<[u8]>) {
        self.remove(attempt); // its grave may have made room for others
        while let Some(&(until, oldest)) = self.by_age.first()
            && (until <= now || self.said.len() >= self.limit)
        {
            self.remove(oldest);
        }
        let host = host(attempt.0);
        let of_host = self.by_host.get(&host).filter(|of_host| of_host.len() >= self.per_host);
        if let Some(&(_, oldest)) = of_host.and_then(BTreeSet::first) {
            self.remove(oldest);
        }
        let until = now + TIME_WAIT;
        let said = Said { accept, msg1_hash, until, again_from: now + ACCEPT_EACH };
        self.said.insert(attempt, said);
        self.by_age.insert((until, attempt));
        self.by_host.entry(host).or_default().insert((until, attempt));
    }

    /// Whether an attempt that asks again, by the same message, is to be told again.
    pub(super) fn again(&mut self, now: Time, attempt: Name, msg1_hash: u128) -> bool {
        let is_due =
            |said: &&mut Said| said.msg1_hash == msg1_hash && said.again_from <= now && said.until > now;
        let Some(said) = self.said.get_mut(&attempt).filter(is_due) else { return false };
        said.again_from = now + ACCEPT_EACH;
        true
    }

    pub(super) fn get(&self, attempt: &Name) -> Option<&[u8]> {
        self.said.get(attempt).map(|said| &*said.accept)
    }

    fn remove(&mut self, attempt: Name) {
        let Some(Said { until, .. }) = self.said.remove(&attempt) else { return };
        let host = host(attempt.0);
        self.by_age.remove(&(until, attempt));
        if let Some(of_host) = self.by_host.get_mut(&host) {
            of_host.remove(&(until, attempt));
            if of_host.is_empty() {
                self.by_host.remove(&host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn attempt(host: u8, cid: u64) -> Name {
        (SocketAddr::from(([10, 0, 0, host], 9)), cid)
    }

    fn insert(rejections: &mut Rejections, ms: u64, host: u8, cid: u64) {
        rejections.insert(Time::from_millis(ms), attempt(host, cid), 7, Box::new([1]));
    }

    #[test]
    fn the_oldest_of_an_address_goes_and_then_the_oldest_of_all() {
        let mut rejections = Rejections::new(4, 2);
        let held = |rejections: &Rejections, host| {
            (0..20).filter(|cid| rejections.get(&attempt(host, *cid)).is_some()).collect::<Vec<_>>()
        };
        for cid in 0..9 {
            insert(&mut rejections, cid, 1, cid);
        }
        assert_eq!(held(&rejections, 1), [7, 8]);
        insert(&mut rejections, 9, 2, 1);
        insert(&mut rejections, 9, 3, 1);
        insert(&mut rejections, 9, 4, 1);
        assert_eq!(
            [held(&rejections, 1), held(&rejections, 2), held(&rejections, 4)],
            [vec![8], vec![1], vec![1]]
        );
        insert(&mut rejections, 10_009, 5, 1);
        assert_eq!((rejections.said.len(), rejections.by_age.len(), rejections.by_host.len()), (1, 1, 1));
    }
}
