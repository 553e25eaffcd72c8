//! Who has how many sessions, and which of them are not confirmed.

use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Sessions by address. Only proven addresses are in it, so its size is that of the table of sessions.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    by_host: BTreeMap<IpAddr, Count>,
    /// Sessions that are not confirmed, the oldest first.
    half_open: BTreeSet<(Time, u32)>,
    hosts: BTreeMap<u32, IpAddr>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sessions: u16,
    half_open: u16,
}

impl Crowd {
    /// A session that is not confirmed.
    pub(super) fn enter(&mut self, id: u32, host: IpAddr, until: Time) {
        let count = self.by_host.entry(host).or_default();
        count.sessions += 1;
        count.half_open += 1;
        self.half_open.insert((until, id));
        self.hosts.insert(id, host);
    }

    /// It has been confirmed, or is going.
    pub(super) fn confirm(&mut self, id: u32, until: Time) {
        if self.half_open.remove(&(until, id))
            && let Some(host) = self.hosts.remove(&id)
            && let Some(count) = self.by_host.get_mut(&host)
        {
            count.half_open = count.half_open.saturating_sub(1);
        }
    }

    /// It is confirmed later than it was said.
    pub(super) fn renew(&mut self, id: u32, from: Time, until: Time) {
        if self.half_open.remove(&(from, id)) {
            self.half_open.insert((until, id));
        }
    }

    /// A session that was confirmed, or never will be, has gone.
    pub(super) fn leave(&mut self, host: IpAddr) {
        if let Some(count) = self.by_host.get_mut(&host) {
            count.sessions = count.sessions.saturating_sub(1);
            if count.sessions == 0 {
                self.by_host.remove(&host);
            }
        }
    }

    pub(super) fn sessions_of(&self, host: IpAddr) -> u16 {
        self.by_host.get(&host).map_or(0, |count| count.sessions)
    }

    pub(super) fn half_open(&self) -> usize {
        self.half_open.len()
    }

    pub(super) fn half_open_of(&self, host: IpAddr) -> u16 {
        self.by_host.get(&host).map_or(0, |count| count.half_open)
    }

    /// The one that is given up first, and when.
    pub(super) fn first(&self) -> Option<(Time, u32)> {
        self.half_open.first().copied()
    }

    /// The oldest that is not confirmed, of one address or of all.
    pub(super) fn oldest(&self, host: Option<IpAddr>) -> Option<u32> {
        let is_of = |id: &u32| host.is_none_or(|host| self.hosts.get(id) == Some(&host));
        self.half_open.iter().map(|(_, id)| *id).find(is_of)
    }
}
