//! How many seats each address has.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// HostSeats by address. An address without any is not in it, so its size is that of the table.
#[derive(Debug, Default)]
pub(in crate::session) struct Hosts(BTreeMap<IpAddr, HostSeats>);

/// The seats of one address.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::session) struct HostSeats {
    pub(in crate::session) all: usize,
    /// Those that are not confirmed.
    pub(in crate::session) half_open: usize,
}

impl Hosts {
    /// A seat of `host` is taken.
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
