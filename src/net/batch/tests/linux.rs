//! The price, and what only Linux tells.

use super::*;
use crate::machine::Ecn;

/// The price: of a bulk to one address, and of many small ones to several.
#[test]
fn calls_are_far_fewer_than_datagrams() {
    let (mut from, mut to) = (End::bound(false), End::bound(false));
    let address = to.address();
    for _ in 0..100 {
        from.outbox.push(&[3; 1200], address);
    }
    from.flush();
    assert_eq!(to.take(100).len(), 100);
    let (sends, receives) = (from.tally.traffic.send_calls, to.tally.traffic.receive_calls);
    assert!(sends <= 2 && receives <= 2, "{sends} to send, {receives} to receive"); // 54 of them are 64 KiB
    let mut others: Vec<_> = (0..64).map(|_| End::bound(false)).collect();
    for other in &others {
        from.outbox.push(&[4; 64], other.address());
    }
    from.flush();
    assert_eq!(from.tally.traffic.send_calls - sends, 2);
    assert!(others.iter_mut().all(|other| other.take(1).len() == 1));
}

/// ICMP tells of a datagram with a later call, that sends nothing then.
#[test]
fn what_icmp_tells_of_one_datagram_is_no_loss_of_others() {
    let mut to = End::bound(false);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = to.address();
    socket.connect("127.0.0.1:1").unwrap(); // nobody
    let _ = socket.send(b"");
    let mut from = End::new(socket, false, false);
    for _ in 0..3 {
        from.outbox.push(b"joined", address);
    }
    from.flush();
    let traffic = from.tally.traffic;
    assert_eq!((from.tally.stats.unreachable, traffic.not_joined, traffic.sent), (1, 1, 3));
    from.socket.connect(address).unwrap();
    assert_eq!(to.take(3).len(), 3);
}

#[test]
fn fragments_are_forbidden_where_they_are_not_allowed() {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery as Discovery, ip_mtu_discover};
    for (fragments, expected) in
        [(Fragments::Forbidden, Discovery::PROBE), (Fragments::Allowed, Discovery::WANT)]
    {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut offload = Offload::suited(&socket, false, fragments);
        offload.moves(&socket, 100);
        assert_eq!(ip_mtu_discover(&socket), Ok(expected));
        assert_eq!(offload.slots(8), 8, "batched all the same");
    }
}

#[test]
fn what_goes_one_at_a_time_takes_plain_calls_until_many_come_or_leave_together() {
    let late = || {
        let mut end = End::bound(true);
        end.offload = Offload::suited(&end.socket, false, Fragments::Allowed);
        end.inbox = Inbox::new(end.offload.slots(8));
        end
    };
    let (mut near, mut far) = (late(), late());
    let (to_near, to_far) = (near.address(), far.address());
    for _ in 0..100 {
        let say = |from: &mut End, to: &mut End, address| {
            (0..2).for_each(|_| from.outbox.push(b"asked or answered, and acknowledged", address));
            from.flush();
            assert_eq!(to.take(2).len(), 2);
        };
        say(&mut near, &mut far, to_far);
        say(&mut far, &mut near, to_near);
    }
    assert_eq!((near.offload.most_joined(), far.offload.most_joined()), (1, 1));
    (0..9).for_each(|_| near.outbox.push(b"many", to_far));
    near.flush();
    assert!(near.offload.most_joined() > 1, "for they left together");
    assert_eq!(far.take(9).len(), 9);
    assert!(far.offload.most_joined() > 1, "for they were there together");
    assert_eq!((near.tally.traffic.sent, near.tally.traffic.send_calls), (209, 201));
}

/// What a socket of another program says is told, and what one of ours says, datagram by datagram.
#[test]
fn marks_of_the_path_are_told() {
    let mut to = End::bound(false);
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (bits, expected) in [(0b10, Ecn::Capable), (0b01, Ecn::Scalable), (0b11, Ecn::Congested)] {
        rustix::net::sockopt::set_ip_tos(&from, bits).unwrap();
        from.send_to(b"marked", to.address()).unwrap();
        let start = Instant::now();
        while to.offload.recv(&to.socket, &mut to.inbox, usize::MAX).is_err() {
            assert!(start.elapsed() < PATIENCE);
        }
        assert_eq!(to.inbox.pop().map(|datagram| datagram.ecn), Some(Some(expected)));
    }
    let mut from = End::bound(false);
    let marked = Some(Ecn::Capable);
    for (len, ecn) in [(500, marked), (500, marked), (500, None), (7, marked), (9, None)] {
        from.outbox.stage().extend(std::iter::repeat_n(0, len));
        from.outbox.commit(to.address(), ecn);
    }
    from.outbox.flush(&mut from.offload, &from.socket, &mut from.tally).unwrap();
    let (mut came, start) = (Vec::new(), Instant::now());
    while came.len() < 5 {
        assert!(start.elapsed() < PATIENCE);
        if to.offload.recv(&to.socket, &mut to.inbox, usize::MAX).is_ok() {
            while let Some(datagram) = to.inbox.pop() {
                came.push((datagram.bytes.len(), datagram.ecn.is_some()));
            }
        }
    }
    assert_eq!(came, [(500, true), (500, true), (500, false), (7, true), (9, false)]);
}
