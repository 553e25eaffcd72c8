//! What a socket has to be able to do.

use crate::os::AsHandle;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// A UDP socket that does not block: std's, or a runtime's.
pub trait Socket: Sized {
    /// What lends the handle that the system knows it by.
    type Handle: AsHandle;

    /// Takes over a socket of std.
    ///
    /// # Errors
    ///
    /// It cannot be one of these.
    fn over(socket: UdpSocket) -> io::Result<Self>;

    /// To make calls of the system with.
    fn handle(&self) -> &Self::Handle;

    /// Takes one datagram.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none, and what the system says.
    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends one.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is no room, and what the system says.
    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Sends one to the address that the socket is connected to.
    ///
    /// # Errors
    ///
    /// Those of [`send_to`](Self::send_to).
    fn send(&self, datagram: &[u8]) -> io::Result<usize>;

    /// Makes calls that receive. `WouldBlock` of them tells a runtime that there is nothing more.
    ///
    /// # Errors
    ///
    /// Those of `calls`.
    fn reading<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        calls()
    }

    /// The same with calls that send, and room.
    ///
    /// # Errors
    ///
    /// Those of `calls`.
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
