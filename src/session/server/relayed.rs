//! The relay by which guests reach a server that nobody can reach directly. The server registers there from its own socket, so that the NAT before it keeps
//! that port open, and the relay sees which one it is.
//!
//! A guest that comes by the relay has an address of its own in the tables: its IP address and port, and a scope id with the link. It is answered by the
//! relay. Where it asks for a cookie it gets another one straight from here, to the address that the relay sees: that opens the NAT before this server for
//! what the guest sends to it, and whichever cookie comes first decides how the guest connects.

use super::stats::Refusal;
use super::{Arrival, Server};
use crate::machine::{Transmit, is_beside_udp};
use crate::session::HostTicket;
use crate::session::wire::relayed::{FromRelay, Head, LINKS_MAX, Register, address_bytes};
use crate::time::Time;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Relayed {
    relay: SocketAddr,
    ticket: HostTicket,
    cookie: [u8; 16],
    /// When it registered last, and when it will next.
    asked: Option<Time>,
    due: Time,
    /// Registrations since the relay answered one.
    unanswered: u32,
    /// When the relay last said that it knows this server, and where it sees it.
    registered: Option<(Time, SocketAddr)>,
}

impl Relayed {
    pub(super) fn new((relay, ticket): (SocketAddr, HostTicket)) -> Self {
        let relay = SocketAddr::new(relay.ip().to_canonical(), relay.port());
        Self { relay, ticket, cookie: [0; 16], asked: None, due: Time::ZERO, unanswered: 0, registered: None }
    }

    /// Where the relay sees this server, if guests can come.
    pub(super) fn public(&self, now: Time) -> Option<SocketAddr> {
        self.registered.filter(|(when, _)| now.since(*when) <= VALID_FOR).map(|(_, address)| address)
    }

    /// Takes the head off what the relay has sent for a guest. `None`: it was for this server, or is nothing.
    fn open<'a>(
        &mut self,
        now: Time,
        datagram: &'a mut [u8],
    ) -> Result<Option<(SocketAddr, &'a mut [u8])>, Refusal> {
        match FromRelay::decode(datagram).ok_or(Refusal::Malformed)? {
            FromRelay::Guest(link, guest, datagram) => return Ok(Some((relayed(guest, link), datagram))),
            FromRelay::Cookie(cookie) => {
                (self.cookie, self.unanswered) = (cookie, 0);
                self.due = self.asked.map_or(now, |asked| asked + REGISTER_SOONEST).min(self.due);
            }
            FromRelay::Registered(address) => {
                self.registered = Some((now, address));
                (self.unanswered, self.due) = (0, now + REGISTER_EACH);
            }
            FromRelay::Gone(_) => {} // its guest will open another
        }
        Ok(None)
    }

    pub(super) const fn due(&self) -> Time {
        self.due
    }

    pub(super) fn append_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if now < self.due {
            return None;
        }
        let wait = (REGISTER_AGAIN * (1 << (self.unanswered / 4).min(8))).min(REGISTER_EACH);
        (self.asked, self.due) = (Some(now), now + wait);
        self.unanswered = self.unanswered.saturating_add(1);
        let Self { ticket, cookie, relay, .. } = self;
        let register = Register { ticket: *ticket.ticket(), cookie: *cookie, proof: ticket.proof(cookie) };
        out.extend_from_slice(&register.encode());
        Some((*relay).into())
    }

    /// Sends a datagram that is at the end of `out` by the relay, if it is for one of its guests.
    pub(super) fn wrap(&self, transmit: Transmit, out: &mut Vec<u8>, start: usize) -> Transmit {
        let Some(link) = link_of(transmit.address) else { return transmit };
        let head = Head::of_host(link);
        out.splice(start..start, head.as_ref().iter().copied());
        Transmit { address: self.relay, ..transmit }
    }
}

impl Server {
    /// Whose datagram it is, and what is left of it without the head of a relay. `None`: nobody's.
    pub(super) fn open_relayed<'a>(
        &mut self,
        now: Time,
        from: Arrival,
        datagram: &'a mut [u8],
    ) -> Option<(Arrival, &'a mut [u8])> {
        let Some(relayed) = self.relayed.as_mut().filter(|relayed| relayed.relay == from.address) else {
            return Some((from, datagram));
        };
        match relayed.open(now, datagram) {
            Ok(Some((address, datagram))) => Some((Arrival { address, ..from }, datagram)),
            Ok(None) => {
                self.stats.datagrams += 1;
                None
            }
            Err(refusal) => {
                self.stats.datagrams += 1;
                self.count(now, from.address, refusal);
                None
            }
        }
    }
}

/// The address of a guest in the tables: its own, and a scope id that no interface has and no other transport gives.
fn relayed(guest: SocketAddr, link: u32) -> SocketAddr {
    let [ip @ .., _, _] = address_bytes(guest);
    SocketAddrV6::new(Ipv6Addr::from(ip), guest.port(), 0, MARK | link).into()
}

/// The link of such an address.
fn link_of(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if is_beside_udp(address) && v6.scope_id() >= MARK => Some(v6.scope_id() - MARK),
        _ => None,
    }
}

/// Where the guest of such an address is, as the relay sees it.
pub(super) fn direct(address: SocketAddr) -> Option<SocketAddr> {
    link_of(address)?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// In the scope ids of guests. Those of other transports have only the highest bit.
const MARK: u32 = 3 << 30;
const _: () = assert!(MARK.count_zeros() == LINKS_MAX.ilog2(), "a link fits beside the mark");
/// The relay forgets a host after 60 s, and a NAT on the way forgets its port after 30 s.
const REGISTER_EACH: Duration = Duration::from_secs(5);
/// Time between registrations that are not answered; twice as long after each four.
const REGISTER_AGAIN: Duration = Duration::from_millis(200);
/// Whoever forges cookies makes a host send no more often than that.
const REGISTER_SOONEST: Duration = Duration::from_millis(20);
/// Three registrations.
const VALID_FOR: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_known_by_its_address_and_its_link_and_nobody_else_looks_like_one() {
        for guest in ["192.0.2.1:77", "[2001:db8::1]:77"] {
            let guest = guest.parse().unwrap();
            for link in [0, 5, LINKS_MAX - 1] {
                let address = relayed(guest, link);
                assert!(is_beside_udp(address));
                assert_eq!((link_of(address), direct(address)), (Some(link), Some(guest)));
            }
            assert_eq!((link_of(guest), direct(guest)), (None, None));
        }
        let browser = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 77, 0, 1 << 31 | 5).into();
        assert_eq!((link_of(browser), direct(browser)), (None, None));
    }
}
