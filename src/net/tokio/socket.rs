//! A UDP socket of tokio, read and written many datagrams at a time.

use super::super::batch::{self, Datagram, Fragments, Inbox, Offload, Outbox};
use super::super::buffers::SocketBuffers;
use super::super::port::Purpose;
use super::super::tally::Tally;
use crate::machine::Ecn;
use ::tokio::io::Interest;
use ::tokio::net::UdpSocket;
use std::io;
use std::net::{self, SocketAddr};
use std::task::{Context, Poll, ready};

/// The socket, what came from it and what goes there.
#[derive(Debug)]
pub(super) struct Socket {
    io: Io,
    offload: Offload,
    inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) tally: Tally,
}

impl Socket {
    /// Takes over a socket, of one peer or of many.
    pub(super) fn new(socket: net::UdpSocket, slots: usize, fragments: Fragments) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SocketBuffers::default().grow(&socket);
        let offload = Offload::suited(&socket, socket.peer_addr().is_ok(), fragments);
        Ok(Self {
            io: Io(UdpSocket::from_std(socket)?),
            inbox: Inbox::new(offload.slots(slots)),
            offload,
            outbox: Outbox::default(),
            tally: Tally::default(),
        })
    }

    /// What the inbox needs for many peers, whose datagrams do not arrive joined, and for one.
    pub(super) const fn slots(is_of_many: bool) -> usize {
        if is_of_many { Purpose::MANY_PEERS } else { Purpose::ONE_PEER }
    }

    /// Reads what one call of the system gives; returns whether there may be more. If not, the task is woken when there is.
    pub(super) fn read(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let Self { io, offload, inbox, tally, .. } = self;
        while io.0.poll_recv_ready(cx)?.is_ready() {
            let read = io.0.try_io(Interest::READABLE, || {
                offload.recv(io, inbox, usize::MAX)?;
                // What comes from now on tells of itself: so the socket need not be asked until it says that there is nothing.
                if inbox.is_last() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            tally.traffic.receive_calls += 1;
            match read {
                Ok(()) => return Ok(true),
                Err(_) if !inbox.is_empty() => return Ok(io.0.poll_recv_ready(cx)?.is_ready()),
                Err(error) => match tally.receiving(error) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    _ => {} // the task is woken, or there is something behind an error of the network
                },
            }
        }
        Ok(false)
    }

    /// The next read of the socket reports this.
    #[cfg(test)]
    pub(super) fn fail(&mut self, fault: io::Error) {
        self.inbox.fail(fault);
    }

    /// Whether there is a datagram that was read.
    pub(super) const fn has_read(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The next datagram that was read.
    pub(super) fn pop(&mut self) -> Option<Datagram<'_>> {
        let datagram = self.inbox.pop()?;
        self.tally.traffic.received += 1;
        self.tally.traffic.congestion_marks += u64::from(datagram.ecn == Some(Ecn::Congested));
        Some(datagram)
    }

    /// Sends what is in the outbox; `Pending` when the send buffer is full, and then the task is woken when it has room again.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, offload, outbox, tally, .. } = self;
        while !outbox.is_empty() {
            ready!(io.0.poll_send_ready(cx))?;
            let _ = io.0.try_io(Interest::WRITABLE, || outbox.flush(offload, io, tally)); // an error is no room
        }
        Poll::Ready(Ok(()))
    }
}

/// The calls of the system without tokio's own count of what is ready: they are for inside of `try_io`.
#[derive(Debug)]
struct Io(UdpSocket);

impl batch::Socket for Io {
    type Handle = UdpSocket;

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
}
