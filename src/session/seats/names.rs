//! How many seats each address has, and the names of what is over and must not come back to life: a late copy of a first datagram would
//! open what nobody is in.

use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What a stranger asks by: where it is, and the number of its attempt or conversation.
pub(in crate::session) type Name = (SocketAddr, u64);

/// Names of seats that were given back, each for a while. It keeps the newest.
#[derive(Debug)]
pub(in crate::session) struct Graves {
    names: BTreeSet<Name>,
    /// When each of them may go, soonest first.
    until: VecDeque<(Time, Name)>,
    stay: Duration,
    limit: usize,
}

impl Graves {
    pub(in crate::session) const fn new(stay: Duration, limit: usize) -> Self {
        Self { names: BTreeSet::new(), until: VecDeque::new(), stay, limit }
    }

    pub(in crate::session) fn insert(&mut self, now: Time, name: Name) {
        self.update(now);
        if self.until.len() >= self.limit
            && let Some((_, oldest)) = self.until.pop_front()
        {
            self.names.remove(&oldest);
        }
        if self.limit > 0 && self.names.insert(name) {
            self.until.push_back((now + self.stay, name));
        }
    }

    pub(in crate::session) fn holds(&mut self, now: Time, name: Name) -> bool {
        self.update(now);
        self.names.contains(&name)
    }

    fn update(&mut self, now: Time) {
        while let Some((until, name)) = self.until.front()
            && *until <= now
        {
            self.names.remove(name);
            self.until.pop_front();
        }
    }
}

/// HostSeats by address. An address without any is not in it, so its size is that of the table.
#[derive(Debug, Default)]
pub(in crate::session) struct Hosts(BTreeMap<IpAddr, HostSeats>);

/// The seats of one address.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::session) struct HostSeats {
    pub(in crate::session) all: usize,
    pub(in crate::session) half_open: usize,
}

impl Hosts {
    pub(in crate::session) fn enter(&mut self, host: IpAddr, is_half_open: bool) {
        let seats = self.0.entry(host).or_default();
        seats.all += 1;
        seats.half_open += usize::from(is_half_open);
    }

    /// One of those that were not confirmed is.
    pub(in crate::session) fn confirm(&mut self, host: IpAddr) {
        if let Some(seats) = self.0.get_mut(&host) {
            seats.half_open = seats.half_open.saturating_sub(1);
        }
    }

    /// A confirmed one is given back.
    pub(in crate::session) fn leave(&mut self, host: IpAddr) {
        let Some(seats) = self.0.get_mut(&host) else { return };
        seats.all -= 1;
        if seats.all == 0 {
            self.0.remove(&host);
        }
    }

    pub(in crate::session) fn of(&self, host: IpAddr) -> HostSeats {
        self.0.get(&host).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_for_its_time_and_the_list_has_a_limit() {
        let mut graves = Graves::new(Duration::from_secs(10), 2);
        let name = |number| (SocketAddr::from(([10, 0, 0, 1], 1)), number);
        for number in 1..=3 {
            graves.insert(Time::ZERO, name(number));
        }
        let mut held = |ms| [1, 2, 3].map(|number| graves.holds(Time::from_millis(ms), name(number)));
        assert_eq!(held(9_999), [false, true, true]);
        assert_eq!(held(10_000), [false; 3]);
        let mut none = Graves::new(Duration::from_secs(10), 0);
        none.insert(Time::ZERO, name(1));
        assert!(!none.holds(Time::ZERO, name(1)));
    }
}
