//! What a socket must be able to do.

use crate::os::AsHandle;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// A non-blocking UDP socket, std's or a runtime's. Its calls fail with the system's errors, and with
/// `WouldBlock` if there is nothing to receive or no room to send.
pub trait Socket: Sized {
    /// A type that lends the handle of the socket.
    type Handle: AsHandle;

    /// Takes over a std socket.
    fn over(socket: UdpSocket) -> io::Result<Self>;

    /// The handle for system calls.
    fn handle(&self) -> &Self::Handle;

    /// Receives one datagram.
    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends one datagram.
    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Sends one datagram to the address that the socket is connected to.
    fn send(&self, datagram: &[u8]) -> io::Result<usize>;

    /// Makes receiving calls. If they fail with `WouldBlock`, a runtime knows that nothing is left to read.
    fn reading<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        calls()
    }

    /// Makes sending calls. If they fail with `WouldBlock`, a runtime knows that there is no room.
    fn writing<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        calls()
    }
}

impl Socket for UdpSocket {
    type Handle = Self;

    fn over(socket: UdpSocket) -> io::Result<Self> {
        Ok(socket)
    }

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
