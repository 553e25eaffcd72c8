//! Over real sockets on loopback: what the system does for many datagrams gives the same datagrams as std does.

#[cfg(all(feature = "batch", target_os = "linux"))]
mod linux;

use super::*;
use crate::net::tally::Tally;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A socket with its calls, and what came from it.
struct End {
    socket: UdpSocket,
    offload: Offload,
    inbox: Inbox,
    outbox: Outbox,
    tally: Tally,
}

impl End {
    fn new(socket: UdpSocket, is_connected: bool, is_plain: bool) -> Self {
        socket.set_nonblocking(true).unwrap();
        let offload = if is_plain {
            Offload::none(is_connected)
        } else {
            Offload::suited(&socket, is_connected, Fragments::Forbidden)
        };
        let inbox = Inbox::new(offload.slots(8));
        Self { socket, offload, inbox, outbox: Outbox::default(), tally: Tally::default() }
    }

    fn bound(is_plain: bool) -> Self {
        Self::new(UdpSocket::bind("127.0.0.1:0").unwrap(), false, is_plain)
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    fn flush(&mut self) {
        self.outbox.flush(&mut self.offload, &self.socket, &mut self.tally).unwrap();
    }

    /// The next so many datagrams.
    fn take(&mut self, count: usize) -> Vec<(Vec<u8>, SocketAddr)> {
        let (start, mut taken) = (Instant::now(), Vec::new());
        while taken.len() < count {
            assert!(start.elapsed() < PATIENCE, "{} of {count} datagrams", taken.len());
            match self.offload.recv(&self.socket, &mut self.inbox, usize::MAX) {
                Ok(()) => self.tally.traffic.receive_calls += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            while let Some(datagram) = self.inbox.pop() {
                taken.push((datagram.bytes.to_vec(), datagram.from));
            }
        }
        taken
    }
}

/// Lengths of datagrams, in the order in which they are sent, and to which of two.
const SENT: [(usize, usize); 12] = [
    (0, 1200),
    (0, 1200),
    (0, 1200),
    (0, 700),
    (0, 1200),
    (1, 1200),
    (1, 0),
    (0, 64),
    (1, 64),
    (0, 64),
    (1, 64),
    (0, 9000),
];

#[test]
fn the_same_datagrams_arrive_by_all_calls() {
    for (from_plain, to_plain) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut from = End::bound(from_plain);
        let mut to = [End::bound(to_plain), End::bound(to_plain)];
        let mut sent = [Vec::new(), Vec::new()];
        for (seed, (who, len)) in SENT.into_iter().enumerate() {
            let datagram: Vec<u8> = (0..len).map(|at| [0, 1, 9, 200][(at + seed) % 4]).collect();
            from.outbox.push(&datagram, to[who].address());
            sent[who].push((datagram, from.address()));
        }
        from.flush();
        for (to, sent) in to.iter_mut().zip(&sent) {
            assert!(to.take(sent.len()) == *sent, "plain: {from_plain} {to_plain}");
        }
        assert_eq!(from.tally.traffic.sent, SENT.len() as u64);
    }
}

#[test]
fn a_connected_socket_sends_to_its_peer_by_all_calls() {
    for is_plain in [false, true] {
        let mut to = End::bound(is_plain);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(to.address()).unwrap();
        let mut from = End::new(socket, true, is_plain);
        for len in [5, 5, 5, 6, 7, 8] {
            from.outbox.push(&vec![len; len.into()], to.address());
        }
        from.flush();
        let lens: Vec<_> = to.take(6).into_iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lens, [5, 5, 5, 6, 7, 8]);
    }
}

#[test]
fn one_too_long_is_lost_alone() {
    let (mut from, mut to) = (End::bound(false), End::bound(false));
    let address = to.address();
    for len in [100, 100, 70_000, 100] {
        from.outbox.push(&vec![0; len], address);
    }
    from.flush();
    assert_eq!(to.take(3).len(), 3);
    assert_eq!((from.tally.stats.too_long, from.tally.traffic.sent), (1, 3));
}

#[test]
fn what_a_full_send_buffer_did_not_take_leaves_later() {
    for is_plain in [false, true] {
        let (mut from, mut to) = (End::bound(is_plain), End::bound(is_plain));
        let full = Full { socket: &from.socket, room: 2.into() };
        let mut plain = Offload::none(false);
        for len in [5, 5, 5, 6, 7] {
            from.outbox.push(&vec![len; len.into()], to.address());
        }
        let blocked = from.outbox.flush(&mut plain, &full, &mut from.tally).unwrap_err();
        assert_eq!((blocked.kind(), from.tally.traffic.sent), (ErrorKind::WouldBlock, 2));
        assert!(!from.outbox.is_empty());
        from.flush();
        let lens: Vec<_> = to.take(5).into_iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lens, [5, 5, 5, 6, 7]);
        assert_eq!((from.tally.traffic.sent, from.tally.stats.send_buffer_full), (5, 1));
    }
}

/// A socket that has room for so many datagrams.
struct Full<'a> {
    socket: &'a UdpSocket,
    room: std::cell::Cell<u32>,
}

impl Socket for Full<'_> {
    type Handle = UdpSocket;

    fn over(_: UdpSocket) -> std::io::Result<Self> {
        Err(ErrorKind::Unsupported.into())
    }

    fn handle(&self) -> &UdpSocket {
        self.socket
    }

    fn recv_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, SocketAddr)> {
        self.socket.recv_from(buf)
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> std::io::Result<usize> {
        let left = self.room.get().checked_sub(1).ok_or(ErrorKind::WouldBlock)?;
        self.room.set(left);
        self.socket.send_to(datagram, to)
    }

    fn send(&self, datagram: &[u8]) -> std::io::Result<usize> {
        self.socket.send(datagram)
    }
}
