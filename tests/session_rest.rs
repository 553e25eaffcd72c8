//! Sessions that rest: what signs of life cost a server with many, and what is still noticed, and when.

use crate::common;

use common::ms;
#[cfg(feature = "crypto")]
use common::sessions::client_address;
use common::sessions::{SUITE, World, client_config, on, server_address, server_config};
use std::collections::{BTreeMap, BTreeSet};
use whitewater::{CloseReason, Event, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss};

/// Sessions that have said nothing for a while.
fn at_rest(seed: u64, sessions: u16, path: &LinkConfig) -> World {
    let config = ServerConfig {
        max_sessions: 2 * sessions + 16, // all are of one network
        accepts_per_second: 10_000,
        accept_burst: 10_000,
        ..server_config(&SessionConfig::default(), SUITE)
    };
    let mut world = World::new(seed, &config);
    for _ in 0..sessions {
        world.add(path, path, &config.session, client_config(SUITE));
    }
    assert!(world.run_until(20_000, |world| world.sessions.len() == usize::from(sessions)));
    world.run(6_000);
    world.taps = true;
    world
}

/// When a datagram left this end or reached it, in the order of time.
fn times(world: &World, is_ours: impl Fn(&World, std::net::SocketAddr) -> bool) -> Vec<Time> {
    world.tap.iter().filter(|(_, from, ..)| is_ours(world, *from)).map(|(at, ..)| *at).collect()
}

#[test]
fn a_server_pings_a_session_at_rest_each_two_seconds_and_its_client_only_answers() {
    let mut world = at_rest(1, 1, &LinkConfig::with_rtt(ms(50)));
    let before = (world.client().stats().pings, world.session().stats().pings);
    world.run(60_000);
    assert_eq!(world.client().stats().pings, before.0);
    assert_eq!(world.session().stats().pings, before.1 + 30);
    let sent = times(&world, |_, from| from == server_address());
    assert!(sent.windows(2).all(|two| two[1].since(two[0]) == ms(2_000)), "{sent:?}");
    assert_eq!(times(&world, |_, from| from != server_address()).len(), 30, "the price");
}

/// Each of them has its turn, whenever it came and whatever it had to say.
#[test]
fn sessions_at_rest_wake_their_server_ten_times_a_second_at_most_and_a_few_at_a_time() {
    let mut world = at_rest(2, 200, &LinkConfig::with_rtt(ms(50)));
    // All of them have something to say in the same moment.
    for client in 0..200 {
        world.clients[client].session.connection_mut().unwrap().send(on(0), b"hello").unwrap();
    }
    world.run(6_000);
    world.tap.clear();
    world.run(20_000);
    let mut turns = BTreeMap::<_, usize>::new();
    times(&world, |_, from| from == server_address())
        .iter()
        .for_each(|at| *turns.entry(*at).or_default() += 1);
    let off: BTreeSet<_> = turns.keys().filter(|at| at.as_micros() % 100_000 != 0).collect();
    assert!(off.is_empty(), "{off:?}");
    assert_eq!(turns.values().sum::<usize>(), 200 * 10, "the price");
    let most = turns.values().max();
    assert!(most <= Some(&30), "{most:?} of 200 in one of 20 turns");
}

#[test]
fn a_lost_sign_of_life_is_repeated_after_half_a_second_and_the_session_rests_again() {
    let path = LinkConfig::with_rtt(ms(50));
    let mut world = at_rest(3, 1, &path);
    let dead = LinkConfig { loss: Loss::Random(1.0), ..path.clone() };
    world.set_links(0, &path, &dead);
    world.run(2_000);
    world.set_links(0, &path, &path);
    world.run(30_000);
    let sent = times(&world, |_, from| from == server_address());
    let gaps: Vec<_> = sent.windows(2).map(|two| two[1].since(two[0]).as_millis()).collect();
    assert!(gaps.iter().any(|gap| (500..=600).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().skip(7).all(|gap| *gap == 2_000), "{gaps:?}");
}

/// The silence of one lost sign of life is far from `timeout`, and so is that of many.
#[test]
fn a_session_at_rest_survives_the_loss_of_half_of_its_datagrams() {
    for seed in 0..20 {
        let path = LinkConfig { loss: Loss::Random(0.5), ..LinkConfig::with_rtt(ms(80)) };
        let mut world = at_rest(seed, 1, &path);
        world.run(120_000);
        assert!(world.client().is_connected() && world.session().is_connected(), "seed {seed}");
        // Twice a second for an end that waits, as for one that does not rest.
        assert!(world.tap.len() <= 120 * 8, "seed {seed}: {} datagrams", world.tap.len());
    }
}

/// Either end, if the other is gone without a word. It was last heard up to two seconds before.
#[test]
fn a_dead_peer_is_found_out_after_the_timeout_and_asked_twice_a_second_until_then() {
    let path = LinkConfig::with_rtt(ms(50));
    let dead = LinkConfig { loss: Loss::Random(1.0), ..path.clone() };
    for seed in 0..10 {
        let mut world = at_rest(seed, 1, &path);
        world.run(100 * seed);
        let cut = world.now;
        world.set_links(0, &dead, &dead);
        world.run(21_000);
        let (client, _) = world.clients[0].events.last().unwrap();
        let (server, _, event) = world.events.last().unwrap();
        assert!(matches!(event, Event::Closed { reason: CloseReason::Timeout, .. }), "{event:?}");
        assert_eq!(world.clients[0].closed(), Some(CloseReason::Timeout));
        for at in [client, server] {
            assert!((17_500..=20_600).contains(&at.since(cut).as_millis()), "seed {seed}: {at}");
        }
        assert!(world.tap.len() <= 2 * 40 + 50, "seed {seed}: {} datagrams", world.tap.len());
    }
}

/// Its mapping in a NAT is another one, which nobody has told it.
#[cfg(feature = "crypto")]
#[test]
fn a_client_at_rest_that_has_another_address_unawares_is_followed_within_three_seconds() {
    for seed in 0..20 {
        let mut world = at_rest(seed, 1, &LinkConfig::with_rtt(ms(50)));
        world.run(100 * seed);
        let start = world.now;
        world.rebind(0, client_address(77, 7));
        let is_there = |world: &mut World| world.session().peer_addr() == client_address(77, 7);
        assert!(world.run_until(3_000, is_there), "seed {seed}");
        println!("{:?}", world.now.since(start));
        world.run(10_000);
        assert!(world.client().is_connected() && world.session().is_connected());
    }
}

#[test]
fn a_quarter_of_a_long_keepalive_is_the_silence_of_a_session_that_does_not_rest() {
    let session = SessionConfig { keepalive: ms(10_000), timeout: ms(40_000), ..SessionConfig::default() };
    let path = LinkConfig::with_rtt(ms(50));
    let mut world = World::pair(1, &path, &session, SUITE);
    world.connect();
    world.run(20_000);
    world.client().send(on(0), b"hello").unwrap();
    world.drain();
    world.run(1_000);
    world.taps = true;
    world.run(60_000);
    let sent = times(&world, |_, from| from == server_address());
    let gaps: Vec<_> = sent.windows(2).map(|two| two[1].since(two[0]).as_millis()).collect();
    assert!(gaps.iter().skip(2).all(|gap| *gap == 10_000), "{gaps:?}");
    assert!(world.tap.len() <= 18, "{} datagrams", world.tap.len());
}
