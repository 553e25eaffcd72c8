//! Stateless proofs by keyed hashes.
//!
//! Cookies: the server answers a stranger with a cookie. When the cookie comes back, the server knows that
//! the stranger receives packets at their address. A cookie uses a key that is valid for one period of 5 s
//! and derived from the master key. The idea is from RFC 9147 section 5.1 (DTLS) and RFC 4987 (SYN cookies).
//!
//! Tickets: a client that was let in takes a ticket with it. When it comes back from the same IP address, the ticket
//! stands in for a cookie, which saves a round trip. It takes the place of a cookie in a CONNECT, and is used once. The
//! idea is from RFC 9000 section 8.1.3.
//!
//! Reset tokens: the server ends a session that it no longer knows with a token that it can recompute and
//! that only the client also knows. The idea is from RFC 9000 section 10.3.

use super::concat;
use super::wire::{COOKIE_LEN, TICKET, TICKET_LEN};
use crate::machine::is_beside_udp;
use crate::time::Time;
use siphasher::sip128::SipHasher24;
use std::net::{IpAddr, SocketAddr};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// The master key of a process: 16 random bytes that nobody else has.
pub struct CookieKey(Zeroizing<[u8; 16]>);

/// What a cookie is valid for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the cookie is a hash of these and no others")]
pub struct Claim {
    /// The address that asked.
    pub address: SocketAddr,
    /// The suite, by its number on the wire.
    pub suite: u16,
    /// The protocol.
    pub protocol_id: u64,
    /// The connection attempt.
    pub cid: u64,
}

impl CookieKey {
    /// Makes a master key from random bytes.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        Self(Zeroizing::new(random))
    }

    /// The cookie for `claim` in the period `epoch`.
    #[must_use]
    pub fn mint(&self, epoch: u32, claim: &Claim) -> [u8; COOKIE_LEN] {
        let mut key = SipHasher24::new_with_key(&self.0).hash(&epoch.to_le_bytes()).as_bytes();
        let cookie = SipHasher24::new_with_key(&key).hash(&claim.bytes(epoch)).as_bytes();
        key.zeroize();
        cookie
    }

    /// Whether `cookie`, which claims to be from the period `epoch`, is one of ours for `claim` and from the
    /// current or the previous period. The time this takes does not reveal how much of it matches.
    #[must_use]
    pub fn verify(&self, now: Time, epoch: u32, cookie: &[u8; COOKIE_LEN], claim: &Claim) -> bool {
        let this = epoch_of(now);
        is_recent(epoch, this) && self.mint(epoch, claim).ct_eq(cookie).into()
    }

    /// A ticket for a client at `ip`: what stands in for the epoch of a CONNECT, then what stands in for its cookie.
    /// `number` must not repeat within a period.
    #[must_use]
    pub fn ticket(&self, now: Time, ip: IpAddr, protocol_id: u64, number: [u8; 8]) -> [u8; TICKET_LEN] {
        let epoch = TICKET | period_of(now);
        concat(&[&epoch.to_le_bytes(), &number, &self.tag(epoch, ip, protocol_id, &number)])
    }

    /// The number of a ticket of ours for `ip`, from the current or the previous period. The time this takes does not
    /// reveal how much of it matches.
    #[must_use]
    pub fn open_ticket(
        &self,
        now: Time,
        epoch: u32,
        ticket: &[u8; COOKIE_LEN],
        ip: IpAddr,
        protocol_id: u64,
    ) -> Option<[u8; 8]> {
        let (number, tag) = ticket.split_first_chunk()?;
        let is_ours = is_recent(epoch & !TICKET, period_of(now))
            && self.tag(epoch, ip, protocol_id, number).as_slice().ct_eq(tag).into();
        is_ours.then_some(*number)
    }

    fn tag(&self, epoch: u32, ip: IpAddr, protocol_id: u64, number: &[u8; 8]) -> [u8; 8] {
        let ip = match ip.to_canonical() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut key = SipHasher24::new_with_key(&self.0).hash(&epoch.to_le_bytes()).as_bytes();
        let version = [super::wire::VERSION];
        let input: [u8; 33] = concat(&[&ip.octets(), &version, &protocol_id.to_le_bytes(), number]);
        let hash = SipHasher24::new_with_key(&key).hash(&input).as_bytes();
        key.zeroize();
        concat(&[&hash])
    }
}

printed_without_secrets! { CookieKey {}, ResetKey {} }

impl Claim {
    /// The bytes to hash: family, address (IPv4 is followed by zeros), port, version, suite, protocol,
    /// attempt, period.
    fn bytes(&self, epoch: u32) -> [u8; CLAIM_LEN] {
        let (family, ip) = match self.address {
            SocketAddr::V4(address) => (4, concat(&[&address.ip().octets()])),
            SocketAddr::V6(address) => (6, address.ip().octets()),
        };
        concat(&[
            &[family],
            &ip,
            &self.address.port().to_le_bytes(),
            &[super::wire::VERSION],
            &self.suite.to_le_bytes(),
            &self.protocol_id.to_le_bytes(),
            &self.cid.to_le_bytes(),
            &epoch.to_le_bytes(),
        ])
    }
}

/// The key for reset tokens: 16 random bytes that nobody else has. To end sessions from before a restart, it must
/// survive that.
pub struct ResetKey(Zeroizing<[u8; 16]>);

impl ResetKey {
    /// Makes a key from random bytes.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        Self(Zeroizing::new(random))
    }

    /// A key that follows from a secret of the process, for sessions that the process itself gives up.
    #[must_use]
    pub fn derived(secret: &[u8; 16]) -> Self {
        Self::new(SipHasher24::new_with_key(secret).hash(b"ww/1 reset").as_bytes())
    }

    /// The token for the session that the server calls `sid`, for a client at `address`. An attacker who
    /// provokes a reset of somebody else's session gets a token for their own address, and another one for
    /// each port: many clients may share an IP. Source: RFC 9000 section 21.11, which describes the attack.
    ///
    /// Port 0 stands for that of a connection [beside the socket](crate::machine::is_beside_udp): a client that connects
    /// again after a restart of the server has another one, and nobody else can send it anything there.
    #[must_use]
    pub fn token(&self, sid: u32, address: SocketAddr) -> [u8; 16] {
        let ip = match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let port = if is_beside_udp(address) { [0; 2] } else { address.port().to_le_bytes() };
        let input: [u8; 22] = concat(&[&sid.to_le_bytes(), &ip.octets(), &port]);
        SipHasher24::new_with_key(&self.0).hash(&input).as_bytes()
    }
}

/// Whether `found` is the token that the server gave. Never true for zeros, by which a server says that it
/// will not reset. The time this takes does not reveal how much of it matches.
#[must_use]
pub fn is_reset(given: &[u8; 16], found: &[u8; 16]) -> bool {
    bool::from(given.ct_eq(found) & !given.ct_eq(&[0; 16]))
}

/// The period of cookies that `now` lies in. It wraps after 340 years, because the highest bit tells tickets.
#[must_use]
pub fn epoch_of(now: Time) -> u32 {
    periods(now, EPOCH_US)
}

/// The same for tickets.
fn period_of(now: Time) -> u32 {
    periods(now, PERIOD_US)
}

fn periods(now: Time, length: u64) -> u32 {
    u32::try_from((now.as_micros() / length) & u64::from(!TICKET)).unwrap_or_default()
}

/// Whether a period is the current or the previous one.
const fn is_recent(found: u32, this: u32) -> bool {
    found == this || found == this.wrapping_sub(1) & !TICKET
}

/// Length of a period, µs. A cookie is valid for 5 to 10 s.
const EPOCH_US: u64 = 5_000_000;
/// The same for tickets, which are valid for 12 to 24 h.
const PERIOD_US: u64 = 12 * 3600 * 1_000_000;
const CLAIM_LEN: usize = 1 + 16 + 2 + 1 + 2 + 8 + 8 + 4;

#[cfg(test)]
mod tests {
    use super::super::wire::is_ticket;
    use super::*;

    fn key() -> CookieKey {
        CookieKey::new(*b"sixteen bytes ok")
    }

    #[test]
    fn a_cookie_is_valid_for_5_to_10_s_in_any_period_and_never_before_it() {
        let address = SocketAddr::from(([192, 0, 2, 1], 5));
        let claim = Claim { address, suite: 0x201, protocol_id: 1, cid: 2 };
        for made_at in [0, 1, 4_999_999, 5_000_000, 12_345_678, (EPOCH_US << 31) - 1] {
            let cookie_epoch = epoch_of(Time::from_micros(made_at));
            let cookie = key().mint(cookie_epoch, &claim);
            let last = (made_at / EPOCH_US + 2) * EPOCH_US - 1;
            assert!((5_000_000..10_000_000).contains(&(last - made_at)), "valid for {} us", last - made_at);
            let at = |micros| key().verify(Time::from_micros(micros), cookie_epoch, &cookie, &claim);
            assert_eq!([at(made_at), at(last), at(last + 1)], [true, true, false]);
            assert!(made_at < EPOCH_US || !at(made_at - EPOCH_US), "from the future");
        }
    }

    #[test]
    fn a_ticket_is_valid_for_12_to_24_h_at_one_ip_and_never_a_cookie() {
        let hour = PERIOD_US / 12;
        let [here, mapped] = ["10.0.0.1", "::ffff:10.0.0.1"].map(|ip| ip.parse().unwrap());
        for made_at in [0, 1, PERIOD_US - 1, PERIOD_US, 30 * hour] {
            let ticket = key().ticket(Time::from_micros(made_at), here, 7, *b"a number");
            let epoch = u32::from_le_bytes(*ticket.first_chunk().unwrap());
            let bytes = ticket.last_chunk().unwrap();
            let last = (made_at / PERIOD_US + 2) * PERIOD_US - 1;
            assert!((12 * hour..24 * hour).contains(&(last - made_at)) && is_ticket(epoch));
            let at = |micros, ip, protocol| {
                key().open_ticket(Time::from_micros(micros), epoch, bytes, ip, protocol)
            };
            assert_eq!([at(made_at, here, 7), at(last, mapped, 7)], [Some(*b"a number"); 2]);
            let other = "10.0.0.2".parse().unwrap();
            assert_eq!([at(last + 1, here, 7), at(last, other, 7), at(last, here, 8)], [None; 3]);
            assert!(made_at < PERIOD_US || at(made_at - PERIOD_US, here, 7).is_none(), "from the future");
            let address = SocketAddr::new(here, 5);
            let claim = Claim { address, suite: 0x201, protocol_id: 7, cid: 2 };
            assert!(!key().verify(Time::from_micros(made_at), epoch, bytes, &claim));
        }
        assert!(!is_ticket(epoch_of(Time::from_micros(u64::MAX))));
    }

    #[test]
    fn a_reset_token_is_the_same_for_a_mapped_address_and_zeros_reset_nothing() {
        let [here, mapped] = ["10.0.0.1:5", "[::ffff:10.0.0.1]:5"].map(|address| address.parse().unwrap());
        let key = ResetKey::new([7; 16]);
        assert!(is_reset(&key.token(5, here), &key.token(5, mapped)) && !is_reset(&[0; 16], &[0; 16]));
    }

    #[test]
    fn a_reset_token_is_for_one_port_of_udp_and_for_all_connections_of_a_browser() {
        let key = ResetKey::new([7; 16]);
        let udp = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let browser = |port, scope: u32| {
            let ip = std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped();
            SocketAddr::V6(std::net::SocketAddrV6::new(ip, port, 0, scope))
        };
        let tokens =
            [udp(5), udp(6), browser(5, 1 << 31), browser(5, 7)].map(|address| key.token(3, address));
        assert!(
            (0..4).all(|one| (0..one).all(|other| tokens[one] != tokens[other] || (one, other) == (3, 0)))
        );
        assert_eq!(key.token(3, browser(6, u32::MAX)), tokens[2]);
        assert_ne!(key.token(4, browser(5, 1 << 31)), tokens[2]);
    }
}
