//! A UDP socket of tokio, read and written many datagrams at a time.

use super::super::port::{Fault, SocketStats, Warner};
use ::tokio::net::UdpSocket;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::task::{Context, Poll, ready};

/// The socket, what it has read, and what it is to send.
#[derive(Debug)]
pub(super) struct Socket {
    io: UdpSocket,
    /// Whom it is connected to.
    peer: Option<SocketAddr>,
    read: Box<[u8]>,
    arrived: Vec<(Range<usize>, SocketAddr)>,
    /// Room for datagrams to send, used again and again; the first `leaving` of them are to leave, those before `left` have left.
    out: Vec<(Vec<u8>, SocketAddr)>,
    leaving: usize,
    left: usize,
    warner: Warner,
    pub(super) stats: SocketStats,
}

impl Socket {
    /// Takes over a socket. Connected, it hears its peer only, and sends to nobody else.
    pub(super) fn new(io: UdpSocket) -> Self {
        Self {
            peer: io.peer_addr().ok(),
            io,
            read: vec![0; READ_BUFFER].into_boxed_slice(),
            arrived: Vec::with_capacity(BATCH),
            out: Vec::new(),
            leaving: 0,
            left: 0,
            warner: Warner::default(),
            stats: SocketStats::default(),
        }
    }

    /// Reads what waits, at most a batch; `Pending` when that was all, and then the task is woken for more.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.arrived.clear();
        let mut end = 0;
        let mut faults = 0;
        while self.arrived.len() < BATCH && faults < FAULTS_MAX {
            let Some(room) = self.read.get_mut(end..).filter(|room| room.len() >= DATAGRAM_MAX) else {
                break;
            };
            ready!(self.io.poll_recv_ready(cx))?;
            match self.io.try_recv_from(room) {
                Ok((len, from)) => {
                    self.arrived.push((end..end + len, from));
                    end += len;
                }
                Err(error) => match Fault::of(&error) {
                    Fault::Nothing => {}
                    Fault::Other => return Poll::Ready(Err(error)),
                    fault => {
                        self.stats.count(fault);
                        faults += 1;
                    }
                },
            }
        }
        Poll::Ready(Ok(()))
    }

    /// What was read last.
    pub(super) fn arrived(&self) -> impl Iterator<Item = (&[u8], SocketAddr)> {
        self.arrived.iter().filter_map(|(at, from)| Some((self.read.get(at.clone())?, *from)))
    }

    /// Whether there is room for another datagram to send.
    pub(super) const fn has_room(&self) -> bool {
        self.leaving < BATCH
    }

    /// Takes the datagram that `write` makes, if it makes one; returns whether it does.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Option<SocketAddr>) -> bool {
        if self.leaving == self.out.len() {
            self.out.push((Vec::new(), SocketAddr::from(([0; 4], 0))));
        }
        let Some((datagram, to)) = self.out.get_mut(self.leaving) else { return false };
        let Some(address) = write(datagram) else { return false };
        *to = address;
        self.leaving += 1;
        true
    }

    /// Sends what was taken; `Pending` when the send buffer is full, and then the task is woken when it has room again.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some((datagram, to)) = self.out.get(self.left..self.leaving).and_then(<[_]>::first) {
            let sent = match self.peer {
                Some(_) => self.io.try_send(datagram),
                None => self.io.try_send_to(datagram, *to),
            };
            if let Err(error) = sent {
                let fault = Fault::of(&error);
                if fault == Fault::Nothing {
                    self.stats.send_buffer_full += 1;
                    if self.io.poll_send_ready(cx).is_pending() {
                        return Poll::Pending;
                    }
                    continue;
                }
                self.stats.count(fault);
                self.warner.warn(*to, &error, &self.stats);
            }
            self.left += 1;
        }
        (self.leaving, self.left) = (0, 0);
        Poll::Ready(())
    }
}

/// Datagrams that are read, or sent, while the mutex is free.
const BATCH: usize = 64;
/// Room for any datagram: UDP's length field has 16 bits.
const DATAGRAM_MAX: usize = 1 << 16;
/// Room for a batch of datagrams of a usual size, and for any one more. What is not used is never touched.
const READ_BUFFER: usize = DATAGRAM_MAX + BATCH * 1500;
/// Errors of the network that are taken out of the socket before something else is looked at.
const FAULTS_MAX: usize = 16;
