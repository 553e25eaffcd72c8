//! The datagrams received by one system call.

use crate::one::{BATCH_SIZE, Many};
use crate::{NOWHERE, SLOT, Socket};
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Datagrams that were received and not read yet. They stay where the system wrote them, and are read without
/// a copy.
pub(crate) struct Inbox {
    /// One [`SLOT`] per arrival. A slot that was never written to takes no physical memory.
    bytes: Box<[u8]>,
    arrivals: Box<[Arrival]>,
    /// Arrivals of the last call, and how many it had room for.
    filled: usize,
    asked: usize,
    /// An error to report at the next call.
    fault: Option<io::Error>,
    /// The next datagram: its arrival, and the offset in it.
    slot: usize,
    offset: usize,
}

/// Without the bytes, which are many, and old.
impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("filled", &self.filled)
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

/// A received datagram.
#[derive(Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// Its bytes, in place; they may be decrypted there.
    pub bytes: &'a mut [u8],
    /// The sender. IPv4 senders have IPv4 addresses, even on an IPv6 socket.
    pub from: SocketAddr,
    /// The two ECN bits of its IP header (RFC 3168, 5); also 0 if the system does not report them.
    pub ecn: u8,
}

/// One datagram, or several of one sender that the system has joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) from: SocketAddr,
    pub(crate) len: usize,
    /// The length of each datagram but the last, which may be shorter.
    pub(crate) stride: usize,
    pub(crate) ecn: u8,
}

impl Inbox {
    /// Room for this many arrivals per call, at least one.
    pub(crate) fn new(slots: usize) -> Self {
        let slots = slots.clamp(1, BATCH_SIZE);
        let nothing = Arrival { from: NOWHERE, len: 0, stride: 0, ecn: 0 };
        Self {
            bytes: vec![0; slots * SLOT].into_boxed_slice(),
            arrivals: vec![nothing; slots].into_boxed_slice(),
            filled: 0,
            asked: 0,
            fault: None,
            slot: 0,
            offset: 0,
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Datagram<'_>> {
        let Arrival { from, len, stride, ecn } = *self.arrivals.get(self.slot..self.filled)?.first()?;
        let start = self.slot * SLOT + self.offset;
        let len_here = stride.min(len - self.offset);
        self.offset += len_here;
        if self.offset == len || len_here == 0 {
            (self.slot, self.offset) = (self.slot + 1, 0);
        }
        let bytes = self.bytes.get_mut(start..start + len_here)?;
        Some(Datagram { bytes, from, ecn })
    }

    /// The sender of the oldest datagram, if that is empty.
    pub(crate) fn next_if_empty(&self) -> Option<SocketAddr> {
        let next = self.arrivals.get(self.slot..self.filled)?.first()?;
        Some(next.from).filter(|_| next.len == 0)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.slot == self.filled
    }

    /// Whether the last call found fewer datagrams than it had room for, so that another call right after it
    /// would find none.
    pub(crate) fn is_last(&self) -> bool {
        (1..self.asked).contains(&self.filled)
    }

    /// Like [`is_last`](Self::is_last), but `true` only once per call.
    pub(crate) fn take_last(&mut self) -> bool {
        let is_last = self.is_last();
        self.clear();
        is_last
    }

    /// A buffer with room for one datagram, for peeking. Empties the inbox.
    pub(crate) fn scratch(&mut self) -> &mut [u8] {
        self.clear();
        self.bytes.get_mut(..SLOT).unwrap_or_default()
    }

    pub(crate) fn fail(&mut self, fault: io::Error) {
        self.fault = Some(fault);
    }

    /// Drops what was not read.
    pub(crate) const fn clear(&mut self) {
        (self.filled, self.slot, self.offset) = (0, 0, 0);
    }

    /// Fills the empty inbox by up to `most` calls of `recv`, each of which writes one datagram. Returns how
    /// many datagrams that are.
    pub(crate) fn fill_each(
        &mut self,
        most: usize,
        mut recv: impl FnMut(&mut [u8]) -> io::Result<(usize, SocketAddr)>,
    ) -> io::Result<usize> {
        self.clear();
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.asked = most.min(self.arrivals.len());
        let slots = self.arrivals.iter_mut().zip(self.bytes.chunks_exact_mut(SLOT));
        for (arrival, bytes) in slots.take(self.asked) {
            let (len, from) = match recv(bytes) {
                Ok(received) => received,
                Err(error) if self.filled == 0 => return Err(error),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(fault) => {
                    (self.asked, self.fault) = (self.filled, Some(fault)); // another datagram may follow it
                    break;
                }
            };
            *arrival = Arrival { from, len, stride: len, ecn: 0 };
            self.filled += 1;
        }
        Ok(self.filled)
    }

    /// Like [`fill_each`](Self::fill_each), with one call that fills as many slots as it can.
    pub(crate) fn fill(&mut self, many: &mut Many, socket: &impl Socket) -> io::Result<()> {
        self.clear();
        self.asked = self.arrivals.len();
        self.filled = many.recv(socket, &mut self.bytes, &mut self.arrivals)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_after_datagrams_is_reported_by_the_next_call() {
        let mut inbox = Inbox::new(4);
        let mut results =
            [Ok(3), Err(io::ErrorKind::ConnectionRefused), Ok(1), Err(io::ErrorKind::WouldBlock)].into_iter();
        let from = SocketAddr::from(([10, 0, 0, 1], 1));
        let mut fill = |inbox: &mut Inbox| {
            inbox.fill_each(4, |_| results.next().unwrap().map(|len| (len, from)).map_err(io::Error::from))
        };
        assert_eq!((fill(&mut inbox).unwrap(), inbox.is_last()), (1, false));
        assert_eq!(fill(&mut inbox).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        // With room for one only, that one says nothing about others.
        assert_eq!((fill(&mut inbox).unwrap(), inbox.is_last()), (1, BATCH_SIZE > 1));
    }

    #[test]
    fn a_call_that_fails_leaves_nothing() {
        let mut inbox = Inbox::new(2);
        assert_eq!(inbox.fill_each(1, |_| Ok((9, NOWHERE))).unwrap(), 1);
        assert!(inbox.fill_each(2, |_| Err(io::ErrorKind::WouldBlock.into())).is_err());
        assert_eq!(inbox.pop(), None);
        assert!(inbox.is_empty());
    }
}
