//! How a program names a session.

use crate::session::shard;
use std::fmt;

/// A session of a server. The id of one that is gone finds nothing.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(pub(super) u32);

impl SessionId {
    /// The id of that number, for what can keep no other: [`to_bits`](Self::to_bits) makes it. Any other number finds nothing, or somebody else.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// A number that no other session of this server has, until a few thousand more have been in its place.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Which of the servers on one port it belongs to: [`ServerConfig::shard`](super::ServerConfig::shard).
    #[must_use]
    pub const fn shard(self) -> u8 {
        shard::of_id(self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}
