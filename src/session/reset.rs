//! Reset tokens: a server that has forgotten a session ends it at the client, by a token that it can compute again and that nobody
//! else knows. The idea is that of RFC 9000 section 10.3.

use siphasher::sip128::SipHasher24;
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

    /// The token of the session that the server calls `sid`.
    #[must_use]
    pub fn token(&self, sid: u32) -> [u8; 16] {
        SipHasher24::new_with_key(&self.0).hash(&sid.to_le_bytes()).as_bytes()
    }
}

impl std::fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

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
    fn a_token_is_of_one_session_and_key() {
        let key = ResetKey::new([7; 16]);
        let token = key.token(5);
        assert!(is_reset(&token, &ResetKey::new([7; 16]).token(5)));
        assert!(!is_reset(&token, &key.token(6)));
        assert!(!is_reset(&token, &ResetKey::new([8; 16]).token(5)));
        for bit in 0..128 {
            let mut forged = token;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_reset(&token, &forged));
        }
        assert!(!is_reset(&[0; 16], &[0; 16]), "zeros reset nothing");
        assert_eq!(format!("{key:?}"), "ResetKey(..)");
    }
}
