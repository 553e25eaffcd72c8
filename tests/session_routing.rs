//! A routing token follows each datagram of a client, so that a proxy knows where it goes. Here the proxy leaves it there, and the server removes it.

use crate::common;
use crate::common::configs;

use common::ms;
use common::sessions::{SUITE, World, client_config, on, ordered, server_config};
use whitewater::kcp::Config;
use whitewater::{ClientConfig, CloseReason, ServerConfig, SessionConfig};
use whitewater_sim::{Bottleneck, LinkConfig, Loss};

const TOKEN: &[u8] = b"server 7";
const MESSAGE: usize = 20_000;

/// A server that expects tokens of eight bytes, and a client that has this one.
fn world(seed: u64, link: &LinkConfig, session: &SessionConfig, routing_token: &[u8]) -> World {
    let routed = ServerConfig { routing_token: 8, ..server_config(session, SUITE) };
    let mut world = World::new(seed, &routed);
    world.taps = true;
    let routing_token = routing_token.to_vec();
    world.add(link, link, session, ClientConfig { routing_token, ..client_config(SUITE) });
    world
}

/// Datagrams to the server, and those to the client.
fn sent(world: &World) -> [Vec<&[u8]>; 2] {
    let client = world.address(0);
    [true, false].map(|is_up| {
        let of_client = |from| (from == client) == is_up;
        world.tap.iter().filter(|(_, from, ..)| of_client(*from)).map(|(.., bytes)| &**bytes).collect()
    })
}

#[test]
fn every_datagram_of_a_client_ends_with_its_token_from_the_first_to_the_last_and_none_of_the_server_does() {
    for seed in 1..=20 {
        let link = LinkConfig { loss: Loss::Random(0.2), ..LinkConfig::with_rtt(ms(60)) };
        let mut world = world(seed, &link, &SessionConfig::default(), TOKEN);
        world.connect();
        for number in 0..50_u8 {
            world.client().send(on(0), &[number; 100]).unwrap();
            world.session().send(on(0), &[number; 100]).unwrap();
            world.run(20);
        }
        world.run(3000);
        for number in 0..50_u8 {
            assert_eq!(world.session().recv(on(0)).unwrap(), [number; 100][..], "seed {seed}");
            assert_eq!(world.client().recv(on(0)).unwrap(), [number; 100][..], "seed {seed}");
        }
        let now = world.now;
        world.clients[0].session.close(now, 3);
        assert!(world.run_until(30_000, |world| world.closed().is_some()), "seed {seed}");
        assert_eq!(world.closed(), Some(CloseReason::Peer(3)), "seed {seed}");
        let [up, down] = sent(&world);
        assert!(up.iter().all(|datagram| datagram.ends_with(TOKEN)), "seed {seed}");
        assert!(!down.iter().any(|datagram| datagram.ends_with(TOKEN)), "seed {seed}");
        assert_eq!(up.first().unwrap().len(), 1208, "a HELLO is padded to 1200 bytes, and the token follows");
        assert_eq!(world.server.stats().rejected.malformed, 0, "seed {seed}");
    }
}

#[test]
fn the_search_for_longer_datagrams_counts_the_token() {
    let channels = ordered([Config { snd_wnd: 64, snd_queue: 1024, ..configs::turbo() }]);
    let session = SessionConfig { path_mtu: Some(1472), channels, ..SessionConfig::default() };
    for mtu in [1472, 1400, 1208, 1200] {
        let bottleneck = Some(Bottleneck { rate: 8_000_000, queue: 256_000 });
        let link = LinkConfig { mtu: Some(mtu + 28), bottleneck, ..LinkConfig::with_rtt(ms(60)) };
        let mut world = world(1, &link, &session, TOKEN);
        if mtu < 1208 {
            assert!(
                !world.run_until(12_000, |world| world.is_up()),
                "a HELLO is as long as `max_datagram`, and the token"
            );
            continue;
        }
        world.connect();
        let (mut came, mut buf) = (0, vec![0; MESSAGE]);
        world.run_until(8_000, |world| {
            let _ = world.client().send(on(0), &[1; MESSAGE]);
            while world.session().recv_into(on(0), &mut buf).is_ok() {
                came += 1;
            }
            false
        });
        assert!(came > 100, "{mtu}: {came}");
        let (found, passed) = (usize::from(world.client().stats().mtu), world.up_stats(0));
        assert!(found + 8 <= mtu && found + 8 > mtu - 20, "{mtu}: {found}");
        let [up, _] = sent(&world);
        assert!(up.iter().all(|datagram| datagram.len() <= 1472), "{mtu}: longer than `path_mtu`");
        assert!(passed.too_large < 30, "{mtu}: {passed:?}");
    }
}

#[test]
fn a_client_without_a_token_or_with_another_length_is_refused_at_a_server_that_expects_one() {
    for routing_token in [&b""[..], b"7", b"server 77"] {
        let mut world = world(1, &LinkConfig::with_rtt(ms(60)), &SessionConfig::default(), routing_token);
        world.run_until(11_000, |world| world.clients[0].closed().is_some());
        assert_eq!(world.clients[0].closed(), Some(CloseReason::ConnectTimeout), "{routing_token:?}");
        let stats = world.server.stats();
        assert_eq!((stats.accepted, stats.sessions), (0, 0), "{stats:?}");
        // A HELLO says nothing of its length, so one that is too short by a few zeros is answered with a cookie.
        assert_eq!(stats.challenges == 0, routing_token.len() > 8, "{stats:?}");
        assert!(stats.rejected.malformed > 20, "{stats:?}");
    }
}

#[test]
fn datagrams_shorter_than_a_token_are_counted_and_change_nothing() {
    let mut world = world(1, &LinkConfig::with_rtt(ms(60)), &SessionConfig::default(), TOKEN);
    world.connect();
    let (from, before) = (world.address(0), world.server.stats().rejected.malformed);
    for len in 0..=8 {
        world.inject(from, &TOKEN[..len]);
    }
    world.run(1000);
    assert_eq!(world.server.stats().rejected.malformed - before, 9);
    assert!(world.is_up() && world.closed().is_none());
}
