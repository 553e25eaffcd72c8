//! Secrets that are in one place of memory, and wiped.

use std::ops::Deref;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// 32 secret bytes: a pre-shared key, or the private half of a key.
///
/// They stay in one place on the heap, however this is moved, and are wiped when it is dropped. `Debug` does not show
/// them, and comparing takes the same time wherever they differ. Wipe the bytes that you make it from.
///
/// ```
/// use whitewater::session::Secret;
///
/// let mut bytes = [7; 32]; // from the system's random bytes, or a file
/// let secret = Secret::from(bytes);
/// bytes.fill(0);
/// assert_eq!(format!("{secret:?}"), "Secret { .. }");
/// ```
#[derive(Clone)]
pub struct Secret(Box<Zeroizing<[u8; 32]>>);

printed_without_secrets! { Secret {} }

impl From<[u8; 32]> for Secret {
    fn from(mut bytes: [u8; 32]) -> Self {
        let secret = Self::from(&bytes);
        bytes.zeroize();
        secret
    }
}

impl From<&[u8; 32]> for Secret {
    fn from(bytes: &[u8; 32]) -> Self {
        let mut secret = Box::new(Zeroizing::new([0; 32]));
        secret.copy_from_slice(bytes);
        Self(secret)
    }
}

impl Deref for Secret {
    type Target = [u8; 32];

    fn deref(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(&**other).into()
    }
}

impl Eq for Secret {}
