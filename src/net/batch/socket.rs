//! What a socket has to be able to do.

use std::io;
use std::net::{SocketAddr, UdpSocket};
#[cfg(not(windows))]
use std::os::fd::AsFd as AsHandle;
#[cfg(windows)]
use std::os::windows::io::AsSocket as AsHandle;

/// A UDP socket that does not block: std's, or a runtime's.
pub(in crate::net) trait Socket: AsHandle {
    /// Takes one datagram; `WouldBlock` when there is none.
    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends one; `WouldBlock` when there is no room.
    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Sends one to the address that the socket is connected to.
    fn send(&self, datagram: &[u8]) -> io::Result<usize>;
}

impl Socket for UdpSocket {
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
