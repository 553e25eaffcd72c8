//! What can go wrong with a peer.

use crate::seq::Conv;
use std::net::SocketAddr;
use thiserror::Error;

/// Why a peer is not registered.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RegisterError {
    /// There is one with that address and conv.
    #[error("conv {conv} of {address} is registered already")]
    Taken {
        /// The address.
        address: SocketAddr,
        /// The conv.
        conv: Conv,
    },
    /// A datagram that begins with this conv could be one of a session: the low byte must not be 0xa0 to 0xbf.
    #[error("conv {conv} looks like the first bytes of a session's datagram")]
    Reserved {
        /// The conv.
        conv: Conv,
    },
    /// There are `max_peers`.
    #[error("there are {max} peers, which is the most")]
    Full {
        /// Most peers.
        max: usize,
    },
}
