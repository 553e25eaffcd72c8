//! The number of system calls, and what only Linux reports.

use super::*;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery as Discovery, ip_mtu_discover, set_ip_tos};

/// In bulk to one address, and in small numbers to several.
#[test]
fn calls_are_far_fewer_than_datagrams() {
    let (mut from, mut to) = (bound(Mode::Whole), bound(Mode::Whole));
    for _ in 0..100 {
        push(&mut from, &[3; 1200], address(&to));
    }
    from.flush();
    assert_eq!(take(&mut to, 100).len(), 100);
    let (sends, receives) = (from.counts().send_calls, to.counts().receive_calls);
    assert!(sends <= 2 && receives <= 2, "{sends} to send, {receives} to receive"); // 54 of them are 64 KiB
    let mut others: Vec<_> = (0..64).map(|_| bound(Mode::Whole)).collect();
    for other in &others {
        push(&mut from, &[4; 64], address(other));
    }
    from.flush();
    assert_eq!(from.counts().send_calls - sends, 2);
    assert!(others.iter_mut().all(|other| take(other, 1).len() == 1));
}

/// ICMP reports a datagram at a later call, which then sends nothing.
#[test]
fn an_icmp_error_for_one_datagram_loses_no_other() {
    let (mut from, mut to) = (bound(Mode::Whole), bound(Mode::Whole));
    from.socket().connect("127.0.0.1:1").unwrap(); // nobody listens there
    let _ = from.socket().send(b"");
    for _ in 0..3 {
        push(&mut from, b"joined", address(&to));
    }
    from.flush();
    let counts = from.counts();
    assert_eq!((counts.unreachable, counts.not_joined, counts.sent), (1, 1, 3));
    from.socket().connect(address(&to)).unwrap();
    assert_eq!(take(&mut to, 3).len(), 3);
}

#[test]
fn dont_fragment_is_set_unless_fragments_are_allowed_and_all_of_these_modes_batch() {
    let modes = [
        (Mode::Whole, Discovery::PROBE),
        (Mode::Unmarked, Discovery::PROBE),
        (Mode::Fragments, Discovery::WANT),
    ];
    for (mode, expected) in modes {
        let (mut from, to) = (bound(mode), bound(Mode::Plain));
        assert_eq!(ip_mtu_discover(from.socket()), Ok(expected), "also before it batches");
        assert_eq!(from.may_fragment(), mode == Mode::Fragments);
        (0..9).for_each(|_| push(&mut from, b"many", address(&to)));
        from.flush();
        assert_eq!(ip_mtu_discover(from.socket()), Ok(expected));
        assert_eq!((from.counts().sent, from.counts().send_calls), (9, 1));
    }
}

#[test]
fn single_datagrams_use_plain_calls_until_there_are_many_at_once() {
    [Mode::Fragments, Mode::Unmarked].into_iter().for_each(begins_with_plain_calls);
}

fn begins_with_plain_calls(mode: Mode) {
    let (mut near, mut far) = (bound(mode), bound(mode));
    for _ in 0..100 {
        let say = |from: &mut Port, to: &mut Port| {
            (0..2).for_each(|_| push(from, b"asked or answered, and acknowledged", address(to)));
            from.flush();
            assert_eq!(take(to, 2).len(), 2);
        };
        say(&mut near, &mut far);
        say(&mut far, &mut near);
    }
    assert_eq!((near.counts().sent, near.counts().send_calls), (200, 200));
    let many = |from: &mut Port, to: &mut Port| {
        let before = from.counts().send_calls;
        (0..9).for_each(|_| push(from, b"many", address(to)));
        from.flush();
        assert_eq!(take(to, 9).len(), 9);
        from.counts().send_calls - before
    };
    assert_eq!(many(&mut near, &mut far), 1, "they leave together");
    (0..2).for_each(|_| push(&mut far, b"two", address(&near)));
    far.flush();
    assert_eq!(far.counts().send_calls, 201, "many were there at once");
}

/// Marks from a socket of another program are reported, and so are ours, datagram by datagram.
#[test]
fn ecn_marks_are_reported() {
    let (mut from, mut to) = (bound(Mode::Whole), bound(Mode::Whole));
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    for bits in [0b10, 0b01, 0b11] {
        set_ip_tos(&other, bits).unwrap();
        other.send_to(b"marked", address(&to)).unwrap();
        assert_eq!(u32::from(take(&mut to, 1)[0].2), u32::from(bits));
    }
    assert_eq!(to.counts().congestion_marks, 1);
    let sent = [(500, 2), (500, 2), (500, 0), (7, 2), (9, 0)];
    for (len, ecn) in sent {
        from.stage().extend(std::iter::repeat_n(0, len));
        from.commit(address(&to), ecn);
    }
    from.flush();
    let came: Vec<_> = take(&mut to, 5).into_iter().map(|(bytes, _, ecn)| (bytes.len(), ecn)).collect();
    assert_eq!(came, sent);
}

/// An earlier port lets the system join what arrives, for all who have the socket.
#[test]
fn a_socket_that_was_batched_before_loses_nothing_in_any_mode() {
    for mode in [Mode::Plain, Mode::Fragments, Mode::Whole, Mode::Unmarked] {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(any).unwrap();
            let _earlier: Port = Port::new(socket.try_clone().unwrap(), Mode::Whole, 8).unwrap();
            let mut to: Port = Port::new(socket, mode, 8).unwrap();
            let mut from: Port = Port::new(UdpSocket::bind(any).unwrap(), Mode::Whole, 8).unwrap();
            for len in [1200, 1200, 1200, 700] {
                push(&mut from, &vec![7; len], address(&to));
            }
            from.flush();
            assert_eq!(take_lens(&mut to, 4), [1200, 1200, 1200, 700], "{mode:?} {any}");
        }
    }
}
