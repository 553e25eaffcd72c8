//! Datagrams of those who have not proven their address, or who spoof a peer's.

use crate::machine::Whole as _;
use crate::world::*;
use rand::Rng;
use whitewater::Time;
use whitewater::kcp::{self, Conv, Kcp, Peers, PeersConfig, Strangers};
use whitewater::machine::{DatagramQueue, Machine as _};
use whitewater_kcp_go::{Crypt, Stats};
use whitewater_sim::SimRng;

#[test]
fn another_conv_from_the_same_address_opens_and_ends_no_session() {
    let mut world = World::both(turbo(), wire(Crypt::Null, None), path(20, 0.0), 1);
    world.send(b"first");
    world.run(50);
    // What ends a session of kcp-go: one datagram with the number 0 from the client's address.
    let mut forger = Kcp::new(Conv(99), &turbo(), DatagramQueue::new()).unwrap();
    forger.send(b"forged").unwrap();
    forger.flush(world.now);
    world.server.give(world.now, client_address(), forger.output_mut().pop().unwrap());
    world.run(10);
    assert_eq!(world.accepted.len(), 1, "the client answers no question about it");
    world.send(b"second");
    world.run(50);
    assert_eq!(world.received(), [b"first".to_vec(), b"second".to_vec()]);
}

#[test]
fn a_stranger_is_sent_no_more_than_it_sent_and_no_parity() {
    for crypt in [Crypt::Null, Crypt::Aes, Crypt::Aes128Gcm] {
        let limits = limits(turbo(), wire(crypt, Some((1, 3))));
        let server = PeersConfig { strangers: Strangers::Proven, ..limits.clone() };
        let mut world = World::new(&limits, &server, path(20, 0.0), 1);
        world.send(&[1]);
        world.run(25); // the question is there, and no answer has arrived
        let [from_client, to_client] = world.sent.map(|(_, bytes)| bytes);
        assert!(to_client > 0 && to_client <= from_client, "{crypt}: {:?}", world.sent);
        assert_eq!((world.stats()[1].parity_sent, world.accepted.len()), (0, 0));
        world.run(20);
        let id = world.accepted[0];
        for _ in 0..20 {
            world.server.peer(id).unwrap().send(&[2; 1000]).unwrap();
        }
        world.run(200);
        assert!(world.sent[1].1 > 20_000, "{:?}", world.sent);
        assert!(world.stats()[1].parity_sent > 0);
    }
}

/// The datagrams of three messages with parity of 2 + 1, and a server with this policy that knows nobody.
fn shards_for(strangers: Strangers) -> (Vec<Vec<u8>>, Peers) {
    let limits = limits(turbo(), wire(Crypt::Null, Some((2, 1))));
    let (now, mut client, mut sent) = (Time::from_millis(1), peers(&limits, 1), Vec::new());
    let to = client.register(now, server_address(), CONV).unwrap();
    for message in [b"one", b"two"] {
        client.peer(to).unwrap().send(message).unwrap();
        while let Some((datagram, _)) = client.emit(now) {
            sent.push(datagram.to_vec());
        }
    }
    assert_eq!(sent.len(), 3);
    (sent, peers(&PeersConfig { strangers, ..limits }, 2))
}

#[test]
fn nothing_is_rebuilt_for_a_stranger() {
    for (strangers, expected) in [(Strangers::Trusted, (1, [1, 0])), (Strangers::Proven, (0, [0, 1]))] {
        let (sent, mut server) = shards_for(strangers);
        for datagram in [&sent[0], &sent[2]] {
            server.give(Time::from_millis(2), client_address(), datagram);
        }
        let stats = Stats::of(server.envelope()).unwrap();
        assert_eq!((server.len(), [stats.recovered, stats.parity_unused]), expected, "{strangers:?}");
    }
}

#[test]
fn a_stranger_takes_no_parity_from_a_peer_at_the_same_address() {
    let (sent, mut server) = shards_for(Strangers::Proven);
    let now = Time::from_millis(2);
    server.register(now, client_address(), CONV).unwrap();
    let mut forged = sent[0].clone();
    forged[8] ^= 1; // in the conv
    for datagram in [&sent[0], &forged, &sent[2]] {
        server.give(now, client_address(), datagram);
    }
    assert_eq!((server.len(), Stats::of(server.envelope()).unwrap().recovered), (1, 1));
}

#[test]
fn shards_with_bad_kcp_are_ignored_and_bad_rebuilt_kcp_is_counted() {
    let (sent, mut server) = shards_for(Strangers::Trusted);
    let mut take = |datagram: &[u8]| {
        server.give(Time::from_millis(2), client_address(), datagram);
        (server.stats().rejected, Stats::of(server.envelope()).unwrap())
    };
    take(&sent[0]);
    let mut forged = sent[1].clone();
    forged[8 + 4] = 82; // an ACK of a segment that was never sent
    forged[8 + 12] = 200;
    assert_eq!(take(&forged).0, 1);
    let (_, stats) = take(&sent[2]);
    assert_eq!((stats.recovered, stats.refused), (1, 0), "rebuilt from the two good ones");
    let (_, stats) = take(&sent[1]);
    assert_eq!(stats.duplicates, 0, "more than enough arrived, and this one was not there before");

    let (sent, mut server) = shards_for(Strangers::Trusted);
    let mut parity = sent[2].clone();
    parity[8] ^= 1; // in the conv
    for datagram in [&sent[0], &parity] {
        server.give(Time::from_millis(2), client_address(), datagram);
    }
    let stats = Stats::of(server.envelope()).unwrap();
    assert_eq!((stats.recovered, stats.refused), (1, 1));
}

#[test]
fn a_parity_shard_counts_as_heard_only_if_it_rebuilds_something() {
    let (sent, _) = shards_for(Strangers::Trusted);
    let [_, second, parity] = &sent[..] else { panic!("{} datagrams", sent.len()) };
    let wire = wire(Crypt::Null, Some((2, 1)));
    let mut peer =
        kcp::Link::with_envelope(client_address(), CONV, &turbo(), &wire, &mut SimRng::new(1, 9)).unwrap();
    let mut forged = parity.clone();
    forged[0] = 5; // the parity of the next group
    let mut take = |datagram: &[u8]| {
        peer.give(Time::from_millis(2), client_address(), datagram);
        (peer.taken(), Stats::of(peer.envelope()).unwrap().recovered)
    };
    assert_eq!(take(&forged), (0, 0), "anybody can forge one");
    assert_eq!(take(second), (1, 0));
    assert_eq!(take(parity), (2, 1));
    assert_eq!(take(parity), (2, 1), "a duplicate");
}

#[test]
fn hostile_datagrams_are_counted_and_change_nothing() {
    for (seed, crypt) in [Crypt::Null, Crypt::None, Crypt::Aes, Crypt::Aes128Gcm].into_iter().enumerate() {
        let (mut world, mut rng) =
            (World::both(turbo(), wire(crypt, Some((10, 3))), path(20, 0.0), 1), SimRng::new(seed as u64, 1));
        world.send(b"before");
        world.run(100);
        let recorded = {
            world.send(b"recorded");
            world.client.handle_timeout(world.now);
            world.client.emit(world.now).unwrap().0.to_vec()
        };
        for _ in 0..20_000 {
            let mut datagram = recorded.clone();
            match rng.next_u64() % 3 {
                0 => datagram.truncate(usize::try_from(rng.next_u64() % 100).unwrap()),
                1 => datagram.resize_with(usize::try_from(rng.next_u64() % 1600).unwrap(), || {
                    rng.next_u64().to_le_bytes()[0]
                }),
                _ => datagram.fill_with(|| rng.next_u64().to_le_bytes()[0]),
            }
            let from =
                if rng.next_u64() % 2 == 0 { client_address() } else { "10.6.6.6:666".parse().unwrap() };
            world.server.give(world.now, from, &datagram);
        }
        let stats = world.stats()[1];
        if crypt != Crypt::Null {
            assert!(stats.unreadable + stats.too_long > 15_000, "{crypt}: {stats:?}");
        }
        assert!(world.server.len() <= 1 + 16, "{crypt}: {} peers", world.server.len());
        world.send(b"after");
        world.run(2000);
        let received = world.received();
        assert!(
            received.starts_with(&[b"before".to_vec()]) && received.ends_with(&[b"after".to_vec()]),
            "{crypt}: {received:?}"
        );
    }
}
