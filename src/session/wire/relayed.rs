//! What goes between a relay and its hosts. What guests send and get is theirs, but for the ticket at the end of what they send.
//!
//! | first byte | from | then |
//! |---|---|---|
//! | 0xb0 REGISTER | host | its ticket, 30 bytes; the cookie, 16, or zeros; the proof, 16 |
//! | 0xb1 COOKIE | relay | a cookie, 16: register with it |
//! | 0xb2 REGISTERED | relay | the address of the host as the relay sees it: IP address, 16, with IPv4 mapped into it, and port, 2 |
//! | 0xb3 RELAYED | relay | the link, 4; the address of its guest, 18; the datagram |
//! | 0xb3 RELAYED | host | the link, 4; the datagram |
//! | 0xb4 GONE | relay | a link that is no longer there, 4 |
//!
//! Numbers are big-endian. Links are below 2^30.

use super::Reader;
use crate::session::concat;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub const REGISTER: u8 = 0xb0;
pub const COOKIE: u8 = 0xb1;
pub const REGISTERED: u8 = 0xb2;
pub const RELAYED: u8 = 0xb3;
pub const GONE: u8 = 0xb4;

/// Bytes of a host's ticket.
pub const HOST_TICKET_LEN: usize = 30;
/// Bytes of a [`Register`].
pub const REGISTER_LEN: usize = 1 + HOST_TICKET_LEN + 16 + 16;
/// Links that there can be.
pub const LINKS_MAX: u32 = 1 << 30;

/// What a host asks with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Register {
    pub ticket: [u8; HOST_TICKET_LEN],
    pub cookie: [u8; 16],
    pub proof: [u8; 16],
}

impl Register {
    #[must_use]
    pub fn encode(&self) -> [u8; REGISTER_LEN] {
        concat(&[&[REGISTER], &self.ticket, &self.cookie, &self.proof])
    }

    /// `body` follows the first byte.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Self> {
        let (ticket, rest) = body.split_first_chunk()?;
        let (cookie, proof) = rest.split_first_chunk()?;
        Some(Self { ticket: *ticket, cookie: *cookie, proof: proof.try_into().ok()? })
    }
}

/// What a host gets from its relay.
#[derive(Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FromRelay<'a> {
    Cookie([u8; 16]),
    Registered(SocketAddr),
    /// A datagram of a guest, by a link.
    Guest(u32, SocketAddr, &'a mut [u8]),
    Gone(u32),
}

impl<'a> FromRelay<'a> {
    #[must_use]
    pub fn decode(datagram: &'a mut [u8]) -> Option<Self> {
        let (first, body) = datagram.split_first_mut()?;
        let mut reader = Reader::new(body);
        match *first {
            COOKIE => Some(Self::Cookie(body.try_into().ok()?)),
            REGISTERED if body.len() == ADDRESS_LEN => Some(Self::Registered(address(&mut reader)?)),
            RELAYED => {
                let (link, guest) = (link(&mut reader)?, address(&mut reader)?);
                Some(Self::Guest(link, guest, body.get_mut(LINK_LEN + ADDRESS_LEN..)?))
            }
            GONE if body.len() == LINK_LEN => Some(Self::Gone(link(&mut reader)?)),
            _ => None,
        }
    }
}

/// The link and the datagram in what a host sends, after the first byte.
#[must_use]
pub fn of_host(body: &[u8]) -> Option<(u32, &[u8])> {
    Some((link(&mut Reader::new(body))?, body.get(LINK_LEN..)?))
}

/// What precedes a datagram: at most 23 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; HEAD_MAX],
    len: usize,
}

const LINK_LEN: usize = 4;
const ADDRESS_LEN: usize = 18;
const HEAD_MAX: usize = 1 + LINK_LEN + ADDRESS_LEN;

impl Head {
    pub const EMPTY: Self = Self { bytes: [0; HEAD_MAX], len: 0 };

    fn new<'a>(parts: impl IntoIterator<Item = &'a u8>) -> Self {
        let mut head = Self::EMPTY;
        for (to, from) in head.bytes.iter_mut().zip(parts) {
            *to = *from;
            head.len += 1;
        }
        head
    }

    #[must_use]
    pub fn cookie(cookie: &[u8; 16]) -> Self {
        Self::new([COOKIE].iter().chain(cookie))
    }

    #[must_use]
    pub fn registered(host: SocketAddr) -> Self {
        Self::new([REGISTERED].iter().chain(&address_bytes(host)))
    }

    #[must_use]
    pub fn gone(link: u32) -> Self {
        Self::new([GONE].iter().chain(&link.to_be_bytes()))
    }

    /// Before what a guest has sent.
    #[must_use]
    pub fn of_guest(link: u32, guest: SocketAddr) -> Self {
        Self::new([RELAYED].iter().chain(&link.to_be_bytes()).chain(&address_bytes(guest)))
    }

    /// Before what a host sends.
    #[must_use]
    pub fn of_host(link: u32) -> Self {
        Self::new([RELAYED].iter().chain(&link.to_be_bytes()))
    }
}

impl AsRef<[u8]> for Head {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// An address on the wire: with IPv4 mapped into IPv6.
#[must_use]
pub fn address_bytes(address: SocketAddr) -> [u8; ADDRESS_LEN] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    concat(&[&ip.octets(), &address.port().to_be_bytes()])
}

fn address(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    let (ip, port) = (reader.array::<16>().ok()?, u16::from_be_bytes(reader.array().ok()?));
    (port != 0).then(|| SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), port))
}

fn link(reader: &mut Reader<'_>) -> Option<u32> {
    Some(u32::from_be_bytes(reader.array().ok()?)).filter(|link| *link < LINKS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_shorter() {
        let register = Register { ticket: [1; HOST_TICKET_LEN], cookie: [2; 16], proof: [3; 16] };
        let bytes = register.encode();
        assert_eq!((bytes[0], Register::decode(&bytes[1..])), (REGISTER, Some(register)));
        assert!((1..bytes.len()).all(|end| Register::decode(&bytes[1..end]).is_none()));
        for guest in ["192.0.2.1:77", "[2001:db8::1]:77"] {
            let guest = guest.parse().unwrap();
            let mut bytes = [Head::of_guest(5, guest).as_ref(), b"sealed"].concat();
            assert_eq!((bytes[0], bytes.len()), (RELAYED, HEAD_MAX + 6));
            assert!((0..HEAD_MAX).all(|end| FromRelay::decode(&mut bytes[..end].to_vec()).is_none()));
            let FromRelay::Guest(5, from, datagram) = FromRelay::decode(&mut bytes).unwrap() else {
                panic!("not a guest's")
            };
            assert_eq!((from, &*datagram), (guest, &b"sealed"[..]));
            let bytes = Head::registered(guest).as_ref().to_vec();
            assert_eq!(FromRelay::decode(&mut bytes.clone()), Some(FromRelay::Registered(guest)));
            assert!((0..bytes.len()).all(|end| FromRelay::decode(&mut bytes[..end].to_vec()).is_none()));
        }
        let bytes = [Head::of_host(9).as_ref(), b"sealed"].concat();
        assert_eq!(of_host(&bytes[1..]), Some((9, &b"sealed"[..])));
        assert_eq!(FromRelay::decode(&mut [GONE, 0, 0, 0, 9]), Some(FromRelay::Gone(9)));
        assert_eq!(
            FromRelay::decode(&mut Head::cookie(&[4; 16]).as_ref().to_vec()),
            Some(FromRelay::Cookie([4; 16]))
        );
        let too_high = Head::of_guest(LINKS_MAX, "192.0.2.1:77".parse().unwrap());
        assert_eq!(FromRelay::decode(&mut too_high.as_ref().to_vec()), None);
        assert_eq!(FromRelay::decode(&mut [REGISTERED]), None);
    }
}
