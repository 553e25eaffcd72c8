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
use thiserror::Error;
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

/// Why a cookie is none.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CookieError {
    /// It is not of this period or the one before. The client has to ask for another one.
    #[error("a cookie of period {found}, in period {now}")]
    Epoch {
        /// The period that it says it is of.
        found: u32,
        /// The period that it is.
        now: u32,
    },
    /// It was not made by us, or for something else.
    #[error("the cookie is not ours, or not for this")]
    Wrong,
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

    /// Whether `cookie`, which says that it is of the period `epoch`, is one of ours for `claim`, and not older than that
    /// of the last period.
    ///
    /// # Errors
    ///
    /// When it is not. How far it agrees does not show in the time that this takes.
    pub fn verify(
        &self,
        now: Time,
        epoch: u32,
        cookie: &[u8; COOKIE_LEN],
        claim: &Claim,
    ) -> Result<(), CookieError> {
        let this = epoch_of(now);
        if epoch != this && epoch != this.wrapping_sub(1) {
            return Err(CookieError::Epoch { found: epoch, now: this });
        }
        let equal = self.mint(epoch, claim).ct_eq(cookie);
        if bool::from(equal) { Ok(()) } else { Err(CookieError::Wrong) }
    }
}

impl std::fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieKey(..)")
    }
}

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
/// Bytes that are hashed.
const CLAIM_LEN: usize = 1 + 16 + 2 + 1 + 2 + 8 + 8 + 4;
