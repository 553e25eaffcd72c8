//! What a socket has to be able to do.

use crate::os::AsHandle;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// A UDP socket that does not block: std's, or a runtime's. Its calls fail with what the system says, and with `WouldBlock` where there is
/// nothing to receive, or no room to send.
pub trait Socket: Sized {
    /// What lends the handle that the system knows it by.
    type Handle: AsHandle;

    /// Takes over a socket of std.
    fn over(socket: UdpSocket) -> io::Result<Self>;

    /// To make calls of the system with.
    fn handle(&self) -> &Self::Handle;

    /// Takes one datagram.
    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends one.
    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Sends one to the address that the socket is connected to.
    fn send(&self, datagram: &[u8]) -> io::Result<usize>;

    /// Makes calls that receive. `WouldBlock` of them tells a runtime that there is nothing more.
    fn reading<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        calls()
    }

    /// The same with calls that send, and room.
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
