//! Random bytes, from the owner.

use std::fmt;

/// Where a session takes random bytes from: numbers of attempts and sessions, and the keys of handshakes. So they must be such that
/// nobody can guess them, and never come again: in a program those of the operating system.
pub struct Random(Fill);

type Fill = Box<dyn FnMut(&mut [u8]) + Send>;

impl Random {
    /// Bytes that `fill` puts into what it is given.
    pub fn new(fill: impl FnMut(&mut [u8]) + Send + 'static) -> Self {
        Self(Box::new(fill))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.0)(&mut bytes);
        bytes
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random(..)")
    }
}
