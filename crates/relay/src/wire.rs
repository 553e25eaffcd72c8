//! What goes between a relay and its hosts. What guests send and get is theirs, but for the ticket at the end of what they send.
//!
//! | first byte | from | then |
//! |---|---|---|
//! | 0xb0 REGISTER | host | its ticket, 30 bytes; the cookie, 16, or zeros; the proof, 16 |
//! | 0xb1 COOKIE | relay | a cookie, 16: register with it |
//! | 0xb2 REGISTERED | relay | nothing |
//! | 0xb3 RELAYED | relay | the link, 4; its guest's IP address, 16, with IPv4 mapped into it, and port, 2; the datagram |
//! | 0xb3 RELAYED | host | the link, 4; the datagram |
//! | 0xb4 GONE | relay | a link that is no longer there, 4 |
//!
//! Numbers are big-endian.

use crate::ticket::HOST_LEN;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub(crate) const REGISTER: u8 = 0xb0;
pub(crate) const COOKIE: u8 = 0xb1;
pub(crate) const REGISTERED: u8 = 0xb2;
pub(crate) const RELAYED: u8 = 0xb3;
pub(crate) const GONE: u8 = 0xb4;

pub(crate) type Cookie = [u8; 16];

/// What a host asks with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Register {
    pub(crate) ticket: [u8; HOST_LEN],
    pub(crate) cookie: Cookie,
    pub(crate) proof: [u8; 16],
}

pub(crate) const REGISTER_LEN: usize = 1 + HOST_LEN + 16 + 16;

impl Register {
    pub(crate) fn encode(&self) -> [u8; REGISTER_LEN] {
        let mut bytes = [REGISTER; REGISTER_LEN];
        let parts = self.ticket.iter().chain(&self.cookie).chain(&self.proof);
        bytes.iter_mut().skip(1).zip(parts).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// `body` follows the first byte.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let (ticket, rest) = body.split_first_chunk()?;
        let (cookie, proof) = rest.split_first_chunk()?;
        Some(Self { ticket: *ticket, cookie: *cookie, proof: proof.try_into().ok()? })
    }
}

/// What precedes a datagram: at most 23 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; HEAD_MAX],
    len: usize,
}

const HEAD_MAX: usize = 23;

impl Head {
    pub(crate) const EMPTY: Self = Self { bytes: [0; HEAD_MAX], len: 0 };

    fn new<'a>(parts: impl IntoIterator<Item = &'a u8>) -> Self {
        let mut head = Self::EMPTY;
        for (to, from) in head.bytes.iter_mut().zip(parts) {
            *to = *from;
            head.len += 1;
        }
        head
    }

    pub(crate) fn cookie(cookie: &Cookie) -> Self {
        Self::new([COOKIE].iter().chain(cookie))
    }

    pub(crate) fn registered() -> Self {
        Self::new(&[REGISTERED])
    }

    pub(crate) fn gone(link: u32) -> Self {
        Self::new([GONE].iter().chain(&link.to_be_bytes()))
    }

    /// Before what a guest has sent.
    pub(crate) fn of_guest(link: u32, guest: SocketAddr) -> Self {
        let ip = match guest.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let parts = (link.to_be_bytes(), ip.octets(), guest.port().to_be_bytes());
        Self::new([RELAYED].iter().chain(&parts.0).chain(&parts.1).chain(&parts.2))
    }

    /// Before what a host sends.
    pub(crate) fn of_host(link: u32) -> Self {
        Self::new([RELAYED].iter().chain(&link.to_be_bytes()))
    }
}

impl AsRef<[u8]> for Head {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// The link and the datagram in what a host sends, after the first byte.
pub(crate) fn of_host(body: &[u8]) -> Option<(u32, &[u8])> {
    let (link, datagram) = body.split_first_chunk()?;
    Some((u32::from_be_bytes(*link), datagram))
}

/// The link, its guest and the datagram in what a host gets, after the first byte.
pub(crate) fn of_guest(body: &[u8]) -> Option<(u32, SocketAddr, &[u8])> {
    let (link, rest) = body.split_first_chunk()?;
    let (ip, rest) = rest.split_first_chunk::<16>()?;
    let (port, datagram) = rest.split_first_chunk()?;
    let ip = Ipv6Addr::from(*ip).to_canonical();
    Some((u32::from_be_bytes(*link), SocketAddr::new(ip, u16::from_be_bytes(*port)), datagram))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_shorter() {
        let register = Register { ticket: [1; HOST_LEN], cookie: [2; 16], proof: [3; 16] };
        let bytes = register.encode();
        assert_eq!((bytes[0], Register::decode(&bytes[1..])), (REGISTER, Some(register)));
        assert!((1..bytes.len()).all(|end| Register::decode(&bytes[1..end]).is_none()));
        for guest in ["192.0.2.1:77", "[2001:db8::1]:77"] {
            let guest = guest.parse().unwrap();
            let bytes = [Head::of_guest(5, guest).as_ref(), b"sealed"].concat();
            assert_eq!((bytes[0], bytes.len()), (RELAYED, HEAD_MAX + 6));
            assert_eq!(of_guest(&bytes[1..]), Some((5, guest, &b"sealed"[..])));
            assert!((1..HEAD_MAX).all(|end| of_guest(&bytes[1..end]).is_none()));
        }
        let bytes = [Head::of_host(9).as_ref(), b"sealed"].concat();
        assert_eq!(of_host(&bytes[1..]), Some((9, &b"sealed"[..])));
        assert_eq!(Head::gone(9).as_ref(), [GONE, 0, 0, 0, 9]);
        assert_eq!(Head::cookie(&[4; 16]).as_ref().len(), 17);
    }
}
