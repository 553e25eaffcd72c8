//! A UDP socket of tokio.

use ::tokio::io::Interest;
use ::tokio::net::UdpSocket;
use std::io;
use std::net::{self, SocketAddr};
use std::task::{Context, Poll, ready};
use whitewater_udp::Port;

/// The calls of the system without tokio's own count of what is ready: they are for inside of `try_io`.
#[derive(Debug)]
pub(super) struct Socket(UdpSocket);

impl Socket {
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Reads what one call of the system gives; returns whether there may be more. If not, the task is woken when there is.
pub(super) fn poll_read(port: &mut Port<Socket>, cx: &mut Context<'_>) -> io::Result<bool> {
    while port.socket().0.poll_recv_ready(cx)?.is_ready() {
        if port.read(usize::MAX)? {
            return Ok(port.socket().0.poll_recv_ready(cx)?.is_ready());
        }
    }
    Ok(false)
}

/// Sends what is gathered; `Pending` when the send buffer is full, and then the task is woken when it has room again.
pub(super) fn poll_write(port: &mut Port<Socket>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    while !port.is_empty() {
        ready!(port.socket().0.poll_send_ready(cx))?;
        port.flush();
    }
    Poll::Ready(Ok(()))
}

impl whitewater_udp::Socket for Socket {
    type Handle = UdpSocket;

    fn over(socket: net::UdpSocket) -> io::Result<Self> {
        Ok(Self(UdpSocket::from_std(socket)?))
    }

    fn handle(&self) -> &UdpSocket {
        &self.0
    }

    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.try_recv_from(buf)
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.0.try_send_to(datagram, to)
    }

    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.0.try_send(datagram)
    }

    fn reading<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.0.try_io(Interest::READABLE, calls)
    }

    fn writing<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.0.try_io(Interest::WRITABLE, calls)
    }
}
