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
    /// There are `max_peers`.
    #[error("there are {max} peers, which is the most")]
    Full {
        /// Most peers.
        max: usize,
    },
}
