//! Reset tokens: a server that has forgotten a session ends it at the client, by a token that it can compute again and that nobody
//! else knows. The idea is that of RFC 9000 section 10.3.

use siphasher::sip128::SipHasher24;
use std::net::IpAddr;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The key of the reset tokens: 16 random bytes which nobody else has, and which outlive what is to be reset.
pub struct ResetKey(Zeroizing<[u8; 16]>);

impl ResetKey {
    /// The key of these random bytes.
    #[must_use]
    pub fn new(random: [u8; 16]) -> Self {
        Self(Zeroizing::new(random))
    }

    /// The token of the session that the server calls `sid`, for a client at `ip`. Somebody else who asks for it, by a packet of a session
    /// that is not there, gets his own. Source: RFC 9000 section 21.11, which knows the question.
    #[must_use]
    pub fn token(&self, sid: u32, ip: IpAddr) -> [u8; 16] {
        let ip = match ip.to_canonical() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut input = [0; 20];
        let (head, tail) = input.split_at_mut(4);
        head.copy_from_slice(&sid.to_le_bytes());
        tail.copy_from_slice(&ip.octets());
        SipHasher24::new_with_key(&self.0).hash(&input).as_bytes()
    }
}

printed_without_secrets! { ResetKey {} }

/// Whether `found` is the token that the server gave; never for zeros, by which a server says that it will not reset. How far it
/// agrees does not show in the time that this takes.
#[must_use]
pub fn is_reset(given: &[u8; 16], found: &[u8; 16]) -> bool {
    bool::from(given.ct_eq(found) & !given.ct_eq(&[0; 16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_session_address_and_key() {
        let key = ResetKey::new([7; 16]);
        let [here, mapped, there] = ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().unwrap());
        let token = key.token(5, here);
        assert!(is_reset(&token, &ResetKey::new([7; 16]).token(5, mapped)));
        assert!(!is_reset(&token, &key.token(6, here)) && !is_reset(&token, &key.token(5, there)));
        assert!(!is_reset(&token, &ResetKey::new([8; 16]).token(5, here)));
        for bit in 0..128 {
            let mut forged = token;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_reset(&token, &forged));
        }
        assert!(!is_reset(&[0; 16], &[0; 16]), "zeros reset nothing");
        assert_eq!(format!("{key:?}"), "ResetKey { .. }");
    }
}
