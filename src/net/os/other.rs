//! What there is where [`linux`](super) is not: std's calls.

use crate::net::batch::Socket;
use std::io;
use std::net::{SocketAddr, UdpSocket};

pub(in crate::net) use super::by_std::Waiter;

/// There is one socket on a port here, and nobody to ring.
#[derive(Debug)]
pub(in crate::net) struct Bell;

impl Bell {
    #[expect(clippy::unnecessary_wraps, reason = "as where there is one")]
    pub(in crate::net) const fn new() -> io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "as where there is one")]
    pub(in crate::net) const fn ring(&self) {}
}

pub(in crate::net) fn shared(_: SocketAddr) -> io::Result<UdpSocket> {
    let why = "sockets share out a port on Linux, with the feature `batch`";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

pub(in crate::net) const fn can_allow_fragments(_: &impl Socket) -> bool {
    false
}

pub(in crate::net) const fn allow_fragments(_: &impl Socket) {}

pub(in crate::net) fn send_each(_: &impl Socket, _: &[(SocketAddr, &[u8])], _: bool) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in crate::net) const MOST_EACH: usize = 1;
