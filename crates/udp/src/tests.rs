//! Tests over real loopback sockets: batched calls deliver the same datagrams as std's.

#[cfg(all(feature = "batch", target_os = "linux"))]
mod linux;

use super::*;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn bound(mode: Mode) -> Port {
    Port::new(UdpSocket::bind("127.0.0.1:0").unwrap(), mode, 8).unwrap()
}

fn address<S: Socket>(port: &Port<S>) -> SocketAddr {
    let handle = socket2::SockRef::from(port.socket().handle());
    handle.local_addr().unwrap().as_socket().unwrap()
}

fn push<S: Socket>(port: &mut Port<S>, datagram: &[u8], to: SocketAddr) {
    port.stage().extend_from_slice(datagram);
    port.commit(to, 0);
}

/// The next `count` datagrams.
fn take(port: &mut Port, count: usize) -> Vec<(Vec<u8>, SocketAddr, u8)> {
    let (start, mut taken) = (Instant::now(), Vec::new());
    while taken.len() < count {
        assert!(start.elapsed() < PATIENCE, "{} of {count} datagrams", taken.len());
        port.read(usize::MAX).unwrap();
        while let Some(datagram) = port.pop() {
            taken.push((datagram.bytes.to_vec(), datagram.from, datagram.ecn));
        }
    }
    taken
}

fn take_lens(port: &mut Port, count: usize) -> Vec<usize> {
    take(port, count).into_iter().map(|(bytes, ..)| bytes.len()).collect()
}

/// Lengths of datagrams in the order of sending, and which of two receivers each goes to.
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
fn all_modes_deliver_the_same_datagrams() {
    const MODES: [Mode; 4] = [Mode::Plain, Mode::Fragments, Mode::Whole, Mode::Unmarked];
    for (from_mode, to_mode) in MODES.into_iter().flat_map(|from| MODES.map(|to| (from, to))) {
        let mut from = bound(from_mode);
        let mut to = [bound(to_mode), bound(to_mode)];
        let mut sent = [Vec::new(), Vec::new()];
        for (seed, (who, len)) in SENT.into_iter().enumerate() {
            let datagram: Vec<u8> = (0..len).map(|at| [0, 1, 9, 200][(at + seed) % 4]).collect();
            push(&mut from, &datagram, address(&to[who]));
            sent[who].push((datagram, address(&from), 0));
        }
        from.flush();
        for (to, sent) in to.iter_mut().zip(&sent) {
            assert!(take(to, sent.len()) == *sent, "{from_mode:?} {to_mode:?}");
        }
        assert_eq!(from.counts().sent, SENT.len() as u64);
    }
}

#[test]
fn a_connected_socket_sends_to_its_peer_in_all_modes() {
    for mode in [Mode::Plain, Mode::Whole] {
        let mut to = bound(mode);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address(&to)).unwrap();
        let mut from: Port = Port::new(socket, mode, 8).unwrap();
        for len in [5, 5, 5, 6, 7, 8] {
            push(&mut from, &vec![len; len.into()], address(&to));
        }
        from.flush();
        assert_eq!(take_lens(&mut to, 6), [5, 5, 5, 6, 7, 8]);
    }
}

/// ICMP reports it to a socket with a peer.
#[test]
fn a_port_without_a_listener_is_loss_and_what_comes_later_arrives() {
    for mode in [Mode::Plain, Mode::Whole] {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(nobody).unwrap();
        meets_nobody_first(Port::new(socket, mode, 8).unwrap(), nobody);
    }
}

/// Windows reports it also to a socket without a peer, whose next read fails for it.
#[cfg(windows)]
#[test]
fn a_port_without_a_listener_is_loss_for_a_socket_with_many_peers() {
    for mode in [Mode::Plain, Mode::Whole] {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        meets_nobody_first(bound(mode), nobody);
    }
}

fn meets_nobody_first(mut from: Port, nobody: SocketAddr) {
    let start = Instant::now();
    while from.counts().unreachable == 0 {
        assert!(start.elapsed() < PATIENCE, "{:?}", from.counts());
        push(&mut from, b"anyone?", nobody);
        from.flush();
        assert!(!from.read(usize::MAX).unwrap());
    }
    let somebody = UdpSocket::bind(nobody).unwrap();
    somebody.send_to(b"here", address(&from)).unwrap();
    assert_eq!(take_lens(&mut from, 1), [4]);
}

#[test]
fn a_port_has_no_less_room_than_its_socket_had_unless_it_is_told_to() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let had = SocketBuffers::of(&socket).unwrap();
    let port: Port = Port::new(socket, Mode::Whole, 8).unwrap();
    let has = port.buffers().unwrap();
    assert!(has.receive >= had.receive && has.send >= had.send, "{had:?} {has:?}");
    let less = port.set_buffers(SocketBuffers { receive: 64 << 10, send: 64 << 10 }).unwrap();
    let expected = 64 << 10..=128 << 10; // Linux doubles it
    assert!(expected.contains(&less.receive) && expected.contains(&less.send), "{less:?}");
    assert_eq!(port.buffers().unwrap(), less);
}

#[test]
fn only_the_datagram_that_is_too_long_is_lost() {
    let (mut from, mut to) = (bound(Mode::Whole), bound(Mode::Whole));
    for len in [100, 100, 70_000, 100] {
        push(&mut from, &vec![0; len], address(&to));
    }
    from.flush();
    assert_eq!(take(&mut to, 3).len(), 3);
    assert_eq!((from.counts().too_long, from.counts().sent), (1, 3));
}

#[test]
fn datagrams_wait_while_the_send_buffer_is_full() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut from, mut to) = (Port::<Narrow>::new(socket, Mode::Plain, 8).unwrap(), bound(Mode::Whole));
    for len in [5, 5, 5, 6, 7] {
        push(&mut from, &vec![len; len.into()], address(&to));
    }
    from.flush();
    assert_eq!((from.is_full(), from.is_empty(), from.counts().sent), (true, false, 2));
    from.socket().1.store(9, Relaxed);
    from.flush();
    assert_eq!(take_lens(&mut to, 5), [5, 5, 5, 6, 7]);
    assert_eq!((from.is_full(), from.counts().sent, from.counts().send_buffer_full), (false, 5, 1));
}

/// A socket that has room for this many datagrams.
struct Narrow(UdpSocket, AtomicU32);

impl Socket for Narrow {
    type Handle = UdpSocket;

    fn over(socket: UdpSocket) -> io::Result<Self> {
        Ok(Self(socket, 2.into()))
    }

    fn handle(&self) -> &UdpSocket {
        &self.0
    }

    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buf)
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        let room = self.1.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(1));
        room.map_err(|_| ErrorKind::WouldBlock)?;
        self.0.send_to(datagram, to)
    }

    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.0.send(datagram)
    }
}
