//! Cookies: a server answers a stranger, remembers nothing, and knows by the cookie that comes back that the stranger receives what
//! is sent to his address.
//!
//! A cookie is a keyed hash of what it stands for, under a key that holds for one period of 5 s. Every thread can derive that key
//! from the master key. The idea is that of RFC 9147 section 5.1 (DTLS) and of RFC 4987 (SYN cookies).

use super::wire::COOKIE_LEN;
use crate::time::Time;
use siphasher::sip128::SipHasher24;
use std::net::SocketAddr;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// The master key of a process, 16 random bytes which nobody else has.
pub struct CookieKey(Zeroizing<[u8; 16]>);

/// What a cookie stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the cookie is a hash of these and no others")]
pub struct Claim {
    /// Who asked.
    pub address: SocketAddr,
    /// For which suite, its number on the wire.
    pub suite: u16,
    /// For which protocol.
    pub protocol_id: u64,
    /// In which attempt.
    pub cid: u64,
}

impl CookieKey {
    /// The master key of these random bytes.
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

    /// Whether `cookie`, which says that it is of the period `epoch`, is one of ours for `claim`, and not older than that of the last
    /// period. How far it agrees does not show in the time that this takes.
    #[must_use]
    pub fn verify(&self, now: Time, epoch: u32, cookie: &[u8; COOKIE_LEN], claim: &Claim) -> bool {
        let this = epoch_of(now);
        (epoch == this || epoch == this.wrapping_sub(1)) && self.mint(epoch, claim).ct_eq(cookie).into()
    }
}

printed_without_secrets! { CookieKey {} }

impl Claim {
    /// What is hashed: family, address (zeros behind one of IPv4), port, version, suite, protocol, attempt, period.
    fn bytes(&self, epoch: u32) -> [u8; CLAIM_LEN] {
        let (family, ip) = match self.address {
            SocketAddr::V4(address) => {
                let [a, b, c, d] = address.ip().octets();
                (4, [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            }
            SocketAddr::V6(address) => (6, address.ip().octets()),
        };
        let mut bytes = [0; CLAIM_LEN];
        let parts: [&[u8]; 8] = [
            &[family],
            &ip,
            &self.address.port().to_le_bytes(),
            &[super::wire::VERSION],
            &self.suite.to_le_bytes(),
            &self.protocol_id.to_le_bytes(),
            &self.cid.to_le_bytes(),
            &epoch.to_le_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }
}

/// The period that `now` is in. It comes round after 680 years.
#[must_use]
pub fn epoch_of(now: Time) -> u32 {
    let periods = now.as_micros() / EPOCH_US;
    u32::try_from(periods & u64::from(u32::MAX)).unwrap_or_default()
}

/// Length of a period, µs: a cookie lives for 5 to 10 s.
const EPOCH_US: u64 = 5_000_000;
const CLAIM_LEN: usize = 1 + 16 + 2 + 1 + 2 + 8 + 8 + 4;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> CookieKey {
        CookieKey::new(*b"sixteen bytes ok")
    }

    fn claim() -> impl Strategy<Value = Claim> {
        let v4 = any::<([u8; 4], u16)>().prop_map(SocketAddr::from);
        let v6 = any::<([u8; 16], u16)>().prop_map(SocketAddr::from);
        (prop_oneof![v4, v6], any::<u16>(), any::<u64>(), any::<u64>())
            .prop_map(|(address, suite, protocol_id, cid)| Claim { address, suite, protocol_id, cid })
    }

    #[test]
    fn a_cookie_holds_for_5_to_10_s_whichever_period_it_is_and_none_from_the_future() {
        let address = SocketAddr::from(([192, 0, 2, 1], 5));
        let claim = Claim { address, suite: 0x201, protocol_id: 1, cid: 2 };
        for made_at in [0, 1, 4_999_999, 5_000_000, 12_345_678, (EPOCH_US << 32) - 1] {
            let cookie_epoch = epoch_of(Time::from_micros(made_at));
            let cookie = key().mint(cookie_epoch, &claim);
            let last = (made_at / EPOCH_US + 2) * EPOCH_US - 1;
            assert!((5_000_000..10_000_000).contains(&(last - made_at)), "holds for {} us", last - made_at);
            let at = |micros| key().verify(Time::from_micros(micros), cookie_epoch, &cookie, &claim);
            assert_eq!([at(made_at), at(last), at(last + 1)], [true, true, false]);
            assert!(made_at < EPOCH_US || !at(made_at - EPOCH_US), "from the future");
        }
    }

    proptest! {
        #[test]
        fn a_cookie_is_for_one_claim_alone(claim in claim(), other in claim(), bit in 0..128_usize, epoch in 1..9_u32) {
            let now = Time::from_micros(u64::from(epoch) * EPOCH_US);
            let cookie = key().mint(epoch, &claim);
            prop_assert!(key().verify(now, epoch, &cookie, &claim));
            let (ip, port) = (claim.address.ip(), claim.address.port());
            let others = [
                Claim { address: other.address, ..claim },
                Claim { address: SocketAddr::from((ip, port ^ 1)), ..claim },
                Claim { suite: claim.suite ^ 0x100, ..claim },
                Claim { protocol_id: !claim.protocol_id, ..claim },
                Claim { cid: claim.cid ^ 1 << 63, ..claim },
                other,
            ];
            for other in others.into_iter().filter(|other| *other != claim) {
                prop_assert!(!key().verify(now, epoch, &cookie, &other));
            }
            prop_assert!(!key().verify(now, epoch - 1, &cookie, &claim));
            let mut forged = cookie;
            forged[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!key().verify(now, epoch, &forged, &claim));
            prop_assert!(!CookieKey::new(*b"another sixteen!").verify(now, epoch, &cookie, &claim));
        }
    }

    #[test]
    fn an_address_of_ipv4_is_none_of_ipv6() {
        let bytes = |address: SocketAddr| Claim { address, suite: 0, protocol_id: 0, cid: 0 }.bytes(0);
        let mut same = [0; 16];
        same[..4].copy_from_slice(&[1; 4]);
        assert_ne!(bytes(SocketAddr::from(([1; 4], 5))), bytes(SocketAddr::from((same, 5))));
    }
}
