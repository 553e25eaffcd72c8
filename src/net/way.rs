//! Watches whether another network leads to the one peer of a client.

use crate::time::Time;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use whitewater_udp::local_ip_for;

/// From which address the system sends to a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    to: Option<SocketAddr>,
    from: Option<IpAddr>,
    /// When to look again.
    due: Time,
}

impl Way {
    /// The peer is at this address. Where it was before, as while the addresses of a name are tried, says nothing of the
    /// networks that lead there.
    pub(super) fn lead_to(&mut self, address: SocketAddr) {
        if self.to != Some(address) {
            *self = Self { to: Some(address), ..Self::default() };
        }
    }

    /// Whether another network leads to the peer than at the last look.
    pub(super) fn has_moved(&mut self, now: Time) -> bool {
        let Some(to) = self.to.filter(|_| now >= self.due) else { return false };
        self.due = now + LOOK_EACH;
        let Ok(ip) = local_ip_for(to) else { return false }; // no network at all, for now
        self.from.replace(ip).is_some_and(|before| before != ip)
    }

    /// Notes the network that leads to the peer now, so that the next look does not find it again. Returns where the peer is.
    pub(super) fn note(&mut self, now: Time) -> Option<SocketAddr> {
        let to = self.to?;
        (self.from, self.due) = (local_ip_for(to).ok(), now + LOOK_EACH);
        Some(to)
    }

    #[cfg(test)]
    pub(super) const fn comes_from(&mut self, ip: IpAddr) {
        self.from = Some(ip);
    }
}

/// How often a client looks which network leads to its server.
const LOOK_EACH: Duration = Duration::from_millis(250);
