//! The datagrams of a round trip over real sockets, one thread for both ends. No test depends on the speed of
//! the machine, unless it stands still most of the time.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::configs;
use std::net::UdpSocket;
use std::time::Duration;
use whitewater::kcp::{self, Conv};

const TRIPS: u64 = 100;

fn ends(late_acks: bool) -> [kcp::Socket; 2] {
    let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    [near, far].map(|socket| {
        let peer = socket.peer_addr().unwrap();
        let mut socket = kcp::Socket::from_socket(socket, peer, Conv(7), &configs::turbo()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20)));
        socket.set_late_acks(late_acks);
        socket
    })
}

/// Datagrams used for `TRIPS` questions and answers.
fn datagrams(late_acks: bool) -> u64 {
    let [mut near, mut far] = ends(late_acks);
    let mut buf = [0; 64];
    for trip in 0..TRIPS {
        let message = [u8::try_from(trip).unwrap(); 64];
        near.send_blocking(&message).unwrap();
        assert_eq!(far.recv_blocking(&mut buf).unwrap(), 64);
        far.send_blocking(&buf).unwrap();
        assert_eq!(near.recv_blocking(&mut buf).unwrap(), 64);
        assert_eq!(buf, message);
    }
    near.drain(Duration::from_secs(20)).unwrap();
    let drained = near.socket_traffic().sent + far.socket_traffic().sent;
    assert_eq!(near.stats().rejected, far.stats().rejected);
    drained
}

#[test]
fn with_late_acks_an_answer_carries_the_acknowledgement_of_the_question() {
    let (late, at_once) = (datagrams(true), datagrams(false));
    assert!((2 * TRIPS..=2 * TRIPS + TRIPS / 2).contains(&late), "{late} datagrams");
    assert!(at_once >= 4 * TRIPS - 2, "{at_once} datagrams");
}

#[test]
fn the_last_message_received_is_acknowledged_by_the_next_call() {
    let [mut near, mut far] = ends(true);
    near.send_blocking(b"once").unwrap();
    let mut buf = [0; 64];
    assert_eq!(far.recv_blocking(&mut buf).unwrap(), 4);
    assert_eq!(far.socket_traffic().sent, 0);
    far.pump().unwrap();
    assert_eq!(far.socket_traffic().sent, 1);
    near.drain(Duration::from_secs(20)).unwrap();
}

#[test]
fn a_message_is_acknowledged_even_if_the_next_one_is_already_there() {
    const MESSAGES: u64 = 20;
    let [mut near, mut far] = ends(true);
    let mut buf = [0; 64];
    for _ in 0..MESSAGES {
        near.send_blocking(b"something").unwrap();
        near.pump().unwrap();
        assert_eq!(far.recv_blocking(&mut buf).unwrap(), 9);
    }
    let sent = far.socket_traffic().sent;
    assert!((MESSAGES - 1..=MESSAGES).contains(&sent), "{sent} datagrams");
    near.pump().unwrap();
    assert!(near.kcp().wait_snd() <= 1, "{} wait", near.kcp().wait_snd());
    far.pump().unwrap();
    near.drain(Duration::from_secs(20)).unwrap();
}
