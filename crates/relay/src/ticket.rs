//! Who may use the relay, as the matchmaker says: a host, the guests of a host, and how much.
//!
//! The relay and the matchmaker share a key, and nothing else. Nothing here is encrypted: a ticket says what anybody on the way can see.

use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use std::fmt;
use whitewater::inside::session::wire::relayed::HOST_TICKET_LEN;
use whitewater::session::HostTicket;

/// The key of a relay: whoever has it makes tickets.
#[derive(Clone)]
pub struct RelayKey([u8; 32]);

/// What a guest's datagrams end with: [`Order::routing_token`](whitewater::session::token::Order::routing_token) of its connect token.
pub type GuestTicket = [u8; GUEST_LEN];

/// Length of a [`GuestTicket`], bytes: as long as routing tokens may be.
pub const GUEST_LEN: usize = 20;

/// What a host may do. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "these are the fields of a ticket")]
pub struct HostGrant {
    /// Which host: a number of the matchmaker's.
    pub host: u32,
    /// Until when it may register. What is up stays up.
    pub expires: u32,
    /// Most guests at a time.
    pub guests: u16,
    /// Bytes, and 48 for each datagram, that may go each way of each guest's link a second in the long run; a second's worth at once.
    pub bytes_per_second: u32,
}

const HOST_LEN: usize = HOST_TICKET_LEN;
const GRANT_LEN: usize = HOST_LEN - 16;

/// A guest's ticket, as far as anybody can read it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Guest {
    pub(crate) host: u32,
    pub(crate) guest: u32,
    pub(crate) expires: u32,
}

impl fmt::Debug for RelayKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayKey").finish_non_exhaustive()
    }
}

impl RelayKey {
    /// 32 random bytes, which the matchmaker has as well.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// A ticket for a guest of a host: until `expires`, s since 1970, it may begin to send by the relay. `guest` is a number of the matchmaker's.
    #[must_use]
    pub fn guest(&self, host: u32, guest: u32, expires: u32) -> GuestTicket {
        let mut ticket = [0; GUEST_LEN];
        let parts = [host, guest, expires].map(u32::to_be_bytes);
        let tag = self.tag(b"guest", &parts.concat());
        let bytes = parts.iter().flatten().chain(&tag);
        ticket.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        ticket
    }

    /// A ticket for a host.
    #[must_use]
    pub fn host(&self, grant: HostGrant) -> HostTicket {
        let said = grant.encode();
        let tag = self.tag(b"host", &said);
        let mut ticket = [0; HOST_LEN];
        ticket.iter_mut().zip(said.iter().chain(&tag)).for_each(|(to, from)| *to = *from);
        HostTicket::new(ticket, self.tag(b"secret", &said))
    }

    pub(crate) fn opens_guest(&self, ticket: &GuestTicket) -> bool {
        let Guest { host, guest, expires } = Guest::read(ticket);
        is_same(ticket, &self.guest(host, guest, expires))
    }

    /// What a host's ticket grants, and its secret.
    pub(crate) fn open_host(&self, ticket: &[u8; HOST_LEN]) -> Option<(HostGrant, HostTicket)> {
        let grant = HostGrant::read(ticket);
        let own = self.host(grant);
        is_same(ticket, own.ticket()).then_some((grant, own))
    }

    fn tag(&self, purpose: &[u8], said: &[u8]) -> [u8; 32] {
        mac(&self.0, &[purpose, b"\0", said])
    }
}

impl HostGrant {
    fn encode(&self) -> [u8; GRANT_LEN] {
        let Self { host, expires, guests, bytes_per_second } = self;
        let [host, expires, bytes] = [host, expires, bytes_per_second].map(|number| number.to_be_bytes());
        let mut said = [0; GRANT_LEN];
        let parts = host.iter().chain(&expires).chain(&bytes).copied().chain(guests.to_be_bytes());
        said.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        said
    }

    fn read(ticket: &[u8; HOST_LEN]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, ..] = *ticket;
        let [host, expires, bytes_per_second] =
            [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_be_bytes);
        Self { host, expires, guests: u16::from_be_bytes([m, n]), bytes_per_second }
    }
}

impl Guest {
    pub(crate) fn read(ticket: &GuestTicket) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *ticket;
        let [host, guest, expires] = [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_be_bytes);
        Self { host, guest, expires }
    }
}

/// Keyed BLAKE2s (RFC 7693).
pub(crate) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Blake2sMac256::new(key.into());
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize_fixed().into()
}

pub(crate) fn first<const LEN: usize>(mac: [u8; 32]) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.iter_mut().zip(mac).for_each(|(to, from)| *to = from);
    bytes
}

/// Compares in a time that does not depend on where they differ.
pub(crate) fn is_same<const LEN: usize>(one: &[u8; LEN], other: &[u8; LEN]) -> bool {
    std::hint::black_box(one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: HostGrant =
        HostGrant { host: 7, expires: 1_900_000_000, guests: 16, bytes_per_second: 50_000 };

    #[test]
    fn a_ticket_says_what_was_granted_and_no_other_bytes_open() {
        let key = RelayKey::new([5; 32]);
        let guest = key.guest(7, 9, 1_900_000_000);
        assert_eq!(Guest::read(&guest), Guest { host: 7, guest: 9, expires: 1_900_000_000 });
        let host = key.host(GRANT);
        assert_eq!(key.open_host(host.ticket()).unwrap().0, GRANT);
        assert!(key.opens_guest(&guest));
        for at in 0..HOST_LEN {
            let (mut guest, mut host) = (guest, *host.ticket());
            host[at] ^= 1;
            assert!(key.open_host(&host).is_none(), "byte {at}");
            if at < GUEST_LEN {
                guest[at] ^= 1;
                assert!(!key.opens_guest(&guest), "byte {at}");
            }
        }
        let other = RelayKey::new([6; 32]);
        assert!(!other.opens_guest(&guest) && other.open_host(host.ticket()).is_none());
    }

    #[test]
    fn only_the_secret_proves_and_each_cookie_has_its_own_proof() {
        let key = RelayKey::new([5; 32]);
        let host = key.host(GRANT);
        let again = HostTicket::decode(&host.encode()).unwrap();
        assert_eq!(host.proof(&[1; 16]), again.proof(&[1; 16]));
        assert_ne!(host.proof(&[1; 16]), host.proof(&[2; 16]));
        let other = key.host(HostGrant { guests: 17, ..GRANT });
        assert_ne!(host.proof(&[1; 16]), other.proof(&[1; 16]));
        assert!(HostTicket::decode(&host.encode()[1..]).is_none());
    }
}
