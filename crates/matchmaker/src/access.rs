//! Bearer secrets (RFC 6750).

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Fewest characters of a secret.
pub(crate) const SECRET_MIN: usize = 16;

/// A secret that whoever asks has to show.
#[derive(Clone)]
pub struct Bearer(Zeroizing<String>);

impl Bearer {
    /// `None`: it has fewer than 16 characters, or some that a header cannot have.
    #[must_use]
    pub fn new(secret: &str) -> Option<Self> {
        let is_secret = secret.len() >= SECRET_MIN && secret.bytes().all(|byte| byte.is_ascii_graphic());
        is_secret.then(|| Self(secret.to_owned().into()))
    }

    /// Compares in constant time.
    #[must_use]
    pub fn is(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }

    /// The secret itself.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer")
    }
}

/// What the request shows; empty if it shows nothing.
pub(crate) fn shown(headers: &HeaderMap) -> &str {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
}
