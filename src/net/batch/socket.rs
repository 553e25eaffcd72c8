//! What a socket has to be able to do.

use crate::net::os::AsHandle;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// A UDP socket that does not block: std's, or a runtime's.
pub(in crate::net) trait Socket {
    /// What the system knows it by.
    type Handle: AsHandle;

    fn handle(&self) -> &Self::Handle;

    /// Takes one datagram; `WouldBlock` when there is none.
    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends one; `WouldBlock` when there is no room.
    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Sends one to the address that the socket is connected to.
    fn send(&self, datagram: &[u8]) -> io::Result<usize>;
}

impl Socket for UdpSocket {
    type Handle = Self;

    fn handle(&self) -> &Self {
        self
    }

    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        Self::recv_from(self, buf)
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        Self::send_to(self, datagram, to)
    }

    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        Self::send(self, datagram)
    }
}
