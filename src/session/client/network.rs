//! The networks of a client: by which one datagrams leave, and what the second one is for.

use std::net::SocketAddr;

/// What the second network of a client is for: a phone has Wi-Fi and LTE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SecondNetwork {
    /// It is used while the server is silent by the first. Until then only a HELLO leaves by it now and then.
    Spare,
    /// The session uses the one by which the server answers sooner, and moves when that has changed for a second.
    Best,
    /// As `Best`, and what is urgent leaves by both networks, in both directions: messages and acknowledgements, but not a channel that has more than
    /// 16 segments under way or waiting, and no messages of more than 60 kB. What arrives first counts. A full datagram is doubled if
    /// [`path_mtu`](crate::SessionConfig::path_mtu) allows a longer one, and no longer ones are looked for meanwhile.
    Double,
}

/// One way to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Hop {
    /// The network that it leaves by: 0 or 1.
    pub(super) network: u8,
    pub(super) address: SocketAddr,
}

/// The other network.
pub(super) const fn other(network: u8) -> u8 {
    1 - network
}
