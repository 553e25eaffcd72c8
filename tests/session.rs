//! Sessions in virtual time: the states of both ends, loss and duplication of every packet, how long it takes
//! to connect, how a session ends.

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, client_address, client_config, in_packets, on, server_config};
use std::time::Duration;
use whitewater::channel::{ChannelError, SendError};
use whitewater::machine::Machine as _;
use whitewater::session::{ClientState, Suite, Undelivered};
use whitewater::{Channel, ClientConfig, CloseReason, Event, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss};

fn path(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(120)) }
}

fn config() -> SessionConfig {
    let channels =
        vec![on(0).into(), on(1).into(), in_packets(MESSAGES), Channel::<[u8]>::sequenced(3).into()];
    SessionConfig { channels, ..SessionConfig::default() }
}

const MESSAGES: Channel = on(2);

/// A world that is connected.
fn connected(seed: u64, link: &LinkConfig) -> World {
    let mut world = World::pair(seed, link, &config(), SUITE);
    world.connect();
    world
}

#[test]
fn channels_by_kcp_in_packets_and_datagrams_share_one_session() {
    let mut world = connected(1, &path(0.1));
    let _now = world.now;
    let client = world.client();
    client.send(on(0), b"on KCP").unwrap();
    client.send(on(1), &[5; 3000]).unwrap();
    let datagram = client.send_datagram(b"datagram").unwrap();
    client.send(MESSAGES, b"message").unwrap();
    let missing = ChannelError::Missing { number: 4, count: 4 };
    assert_eq!(client.send(on(4), b"?"), Err(SendError::Channel(missing)));
    world.run(1500);
    let mut buf = [0; 4000];
    let server = world.session();
    assert_eq!(server.recv_into(on(0), &mut buf), Ok(6));
    assert_eq!(&buf[..6], b"on KCP");
    assert_eq!((server.peek_size(on(1)), server.recv_into(on(1), &mut buf)), (Some(3000), Ok(3000)));
    assert_eq!(server.recv(MESSAGES).unwrap(), "message");
    let delivered = server.recv_datagram_into(&mut buf).is_ok();
    let told = world.client().pop_delivered();
    assert!(told.is_none() || (delivered && told == Some(datagram)), "{told:?}");
}

#[test]
fn receipts_report_what_arrived_and_nothing_else() {
    for seed in 1..=20 {
        let mut world = connected(seed, &path(0.3));
        let (mut sent, mut arrived, mut told) = (0u32, Vec::new(), Vec::new());
        let mut buf = [0; 100];
        for _ in 0..300 {
            world.client().send_datagram(&sent.to_le_bytes()).unwrap();
            sent += 1;
            world.drain();
            world.run(16);
            while let Ok(len) = world.session().recv_datagram_into(&mut buf) {
                arrived.push(u32::from_le_bytes(buf[..len].try_into().unwrap()));
            }
            while let Some(id) = world.client().pop_delivered() {
                told.push(u32::try_from(id.0).unwrap());
            }
        }
        assert!(told.iter().all(|id| arrived.contains(id)), "seed {seed}");
        let mut unique = arrived.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), arrived.len(), "seed {seed}: delivered twice");
        assert!(arrived.len() > 180 && told.len() > 170, "seed {seed}: {} {}", arrived.len(), told.len());
    }
}

/// Sorted times to connect over 1000 seeds, ms; failures are left out.
fn handshakes(loss: f64) -> Vec<u64> {
    let mut times = Vec::new();
    for seed in 1..=1000 {
        let mut world = World::pair(seed, &path(loss), &config(), SUITE);
        let start = world.now.as_millis();
        if world.run_until(10_000, |world| world.is_up()) {
            times.push(world.now.as_millis() - start);
        }
    }
    times.sort_unstable();
    times
}

/// The path has 60 ms one way, as in the targets.
#[test]
fn connecting_takes_three_round_trips_and_loss_costs_little() {
    let [clean, third, most] = [0.0, 0.3, 0.6].map(handshakes);
    assert_eq!(clean.len(), 1000);
    assert!(clean[500] <= 400 && clean[990] <= 600, "p50 {} p99 {}", clean[500], clean[990]);
    assert!(third.len() == 1000 && third[990] <= 1700, "{}: p99 {:?}", third.len(), third.get(990));
    assert!(most.len() >= 990, "{} of 1000 in 10 s", most.len());
    println!("p50 {} {} {}", clean[500], third[500], most[500]);
    println!("p99 {} {} {}", clean[990], third[990], most[985]);
}

#[test]
fn a_client_goes_through_its_states_and_gives_up_after_ten_seconds() {
    let dead = LinkConfig { loss: Loss::Random(1.0), ..path(0.0) };
    let mut world = World::pair(1, &dead, &config(), SUITE);
    assert_eq!(world.clients[0].session.state(), ClientState::Hello);
    world.taps = true;
    world.run(9_990);
    assert_eq!(world.clients[0].session.state(), ClientState::Hello);
    world.run(20);
    assert_eq!(world.clients[0].session.state(), ClientState::Closed);
    let [(_, Event::Closed { reason, undelivered })] = world.clients[0].events[..] else { panic!() };
    assert_eq!((reason, undelivered), (CloseReason::ConnectTimeout, Undelivered::default()));
    assert!((45..60).contains(&world.tap.len()), "{} HELLOs: 20, then 4 per second", world.tap.len());
    assert!(world.tap.iter().all(|(.., hello)| hello.len() == 1200));
}

#[test]
fn printing_an_end_shows_no_keys_and_no_tokens() {
    let world = connected(1, &path(0.0));
    let printed = format!("{:?} {:?}", world.server, world.clients[0].session);
    for secret in ["hash_key", "reset_token", "cookies"] {
        assert!(!printed.contains(secret), "{secret}: {printed}");
    }
}

#[test]
fn an_idle_session_sends_little_and_stays_up() {
    let mut world = connected(1, &path(0.0));
    world.run(1000);
    world.taps = true;
    world.run(60_000);
    let bytes: usize = world.tap.iter().map(|(.., datagram)| datagram.len() + 28).sum();
    assert!(bytes * 8 / 60 <= 2 * 300, "{} bit/s in both directions", bytes * 8 / 60);
    assert!(world.client().is_connected() && world.session().is_connected());
}

#[test]
fn twenty_seconds_of_silence_end_both_ends() {
    let mut world = connected(1, &path(0.0));
    let cut = world.now;
    let dead = LinkConfig { loss: Loss::Random(1.0), ..path(0.0) };
    world.set_links(0, &dead, &dead);
    world.run(17_500);
    assert!(world.client().is_connected() && world.session().is_connected());
    world.run(3_500);
    let (client, Event::Closed { reason, .. }) = *world.clients[0].events.last().unwrap() else { panic!() };
    let (server, _, event) = *world.events.last().unwrap();
    assert_eq!(reason, CloseReason::Timeout);
    assert!(matches!(event, Event::Closed { reason: CloseReason::Timeout, .. }), "{event:?}");
    for at in [client, server] {
        assert!((17_500..=20_600).contains(&(at.since(cut).as_millis())), "{at}");
    }
    world.run(12_000);
    assert!(world.server.is_empty(), "nothing is left");
}

/// An end that was not running to hear the peer does not time it out at once.
#[test]
fn an_end_that_was_frozen_gives_the_other_two_seconds() {
    let slow = SessionConfig { timeout: Duration::from_secs(60), ..config() };
    let mut world = World::new(1, &server_config(&slow, SUITE));
    world.add(&path(0.0), &path(0.0), &config(), client_config(SUITE)); // the client's timeout is 20 s
    world.connect();
    world.clients[0].frozen = true;
    world.run(30_000);
    world.clients[0].frozen = false;
    world.run(1_000);
    assert!(world.client().is_connected(), "the server still was there");
    world.run(30_000);
    assert!(world.client().is_connected() && world.session().is_connected());
    world.clients[0].frozen = true;
    world.run(70_000);
    world.set_links(0, &path(1.0), &path(1.0)); // or the server, which has given up, says so
    world.clients[0].frozen = false;
    world.run(1_900);
    assert!(world.client().is_connected());
    world.run(200);
    assert!(!world.client().is_connected(), "two seconds of grace");
}

/// Also if it was frozen for less than two and a half keepalive intervals, after a silence as between two pings.
#[test]
fn an_end_that_was_frozen_while_its_time_ran_out_gives_the_other_two_seconds() {
    let rare = SessionConfig { keepalive: Duration::from_secs(6), ..config() };
    let slow = SessionConfig { timeout: Duration::from_secs(60), ..rare.clone() };
    let mut world = World::new(1, &server_config(&slow, SUITE));
    world.add(&path(0.0), &path(0.0), &rare, client_config(SUITE));
    world.connect();
    for silence in (0..6_000).step_by(500) {
        world.run(24_000 + silence);
        world.clients[0].frozen = true;
        world.run(14_900);
        world.clients[0].frozen = false;
        world.run(1_000);
        assert!(world.client().is_connected(), "after {silence} ms");
    }
}

#[test]
fn time_that_goes_backwards_counts_as_standing_still() {
    let mut world = connected(1, &path(0.0));
    let now = world.now;
    for back in [1, 5_000, 3_600_000] {
        let earlier = Time::from_millis(now.as_millis().saturating_sub(back));
        world.clients[0].session.handle_timeout(earlier);
        world.server.handle_timeout(earlier);
        assert!(world.clients[0].session.poll_timeout().unwrap() >= now);
    }
    world.run(30_000);
    assert!(world.client().is_connected() && world.session().is_connected());
}

#[test]
fn a_close_delivers_what_was_sent_and_tells_the_peer_why() {
    for (seed, loss) in (1..=20).flat_map(|seed| [(seed, 0.0), (seed, 0.3)]) {
        let mut world = connected(seed, &path(loss));
        for number in 0..100u32 {
            world.client().send(on(0), &[&number.to_le_bytes()[..], &[7; 500]].concat()).unwrap();
        }
        let now = world.now;
        world.client().send(MESSAGES, b"last words").unwrap();
        world.clients[0].session.close(now, 42);
        world.drain();
        assert_eq!(world.client().send(on(0), b"late"), Err(SendError::Closed));
        let is_over = |world: &mut World| {
            world.clients[0].session.state() == ClientState::Closed && world.events.len() > 1
        };
        assert!(world.run_until(8_000, is_over), "seed {seed}");
        let (_, Event::Closed { reason, undelivered }) = *world.clients[0].events.last().unwrap() else {
            panic!()
        };
        let Some(server_reason) = world.closed().or_else(|| {
            world.run(22_000);
            None
        }) else {
            continue; // all four CLOSEs were lost, and so were the answers to later packets
        };
        assert_eq!((reason, server_reason), (CloseReason::Local(42), CloseReason::Peer(42)), "seed {seed}");
        assert!(undelivered.is_empty(), "seed {seed}: {undelivered:?}");
        let mut buf = [0; 600];
        for number in 0..100u32 {
            assert_eq!(world.session().recv_into(on(0), &mut buf), Ok(504), "seed {seed}");
            assert_eq!(buf[..4], number.to_le_bytes(), "seed {seed}");
        }
        assert_eq!(world.session().recv(MESSAGES).unwrap(), "last words");
    }
}

#[test]
fn a_close_that_cannot_deliver_reports_what_was_not_delivered() {
    let mut world = connected(1, &path(0.0));
    let dead = LinkConfig { loss: Loss::Random(1.0), ..path(0.0) };
    world.set_links(0, &dead, &dead);
    let now = world.now;
    for _ in 0..3 {
        world.client().send(on(1), &[1; 100]).unwrap();
    }
    world.client().send(MESSAGES, &[1; 10]).unwrap();
    world.clients[0].session.close(now, 1);
    world.drain();
    world.run(5_900);
    assert_eq!(world.clients[0].session.state(), ClientState::Closing);
    world.run(200);
    let (at, Event::Closed { reason, undelivered }) = *world.clients[0].events.last().unwrap() else {
        panic!()
    };
    assert_eq!(at.since(now), Duration::from_secs(6), "5 s of draining, 1 s of closing");
    assert_eq!((reason, undelivered.segments, undelivered.messages), (CloseReason::Local(1), 3, 1));
}

#[test]
fn both_ends_may_close_at_once() {
    for seed in 1..=10 {
        let mut world = connected(seed, &path(0.1));
        let (now, id) = (world.now, world.sessions[0]);
        world.clients[0].session.close(now, 1);
        world.server.close(now, id, 2);
        world.drain();
        world.run(3_000);
        assert_eq!(world.clients[0].session.state(), ClientState::Closed, "seed {seed}");
        assert!(world.server.connection(id).is_none(), "seed {seed}");
        let closes = world.events.iter().filter(|(_, _, event)| matches!(event, Event::Closed { .. }));
        assert_eq!(closes.count(), 1, "seed {seed}");
    }
}

#[test]
fn a_server_that_closes_frees_the_slot_once_its_data_was_read() {
    let mut world = connected(1, &path(0.0));
    let (now, id) = (world.now, world.sessions[0]);
    world.client().send(on(0), b"unread").unwrap();
    world.drain();
    world.run(100);
    world.server.close(now, id, 9);
    world.drain();
    world.run(500);
    let (_, Event::Closed { reason, .. }) = *world.clients[0].events.last().unwrap() else { panic!() };
    assert_eq!(reason, CloseReason::Peer(9));
    let mut buf = [0; 10];
    assert_eq!(world.session().recv_into(on(0), &mut buf), Ok(6), "what arrived can be read");
    world.run(2_000);
    assert!(world.server.connection(id).is_none() && world.server.is_empty());
}

#[test]
#[cfg(feature = "crypto")] // only authentic packets may move a session
fn a_rebound_client_continues_within_two_round_trips_and_a_tenth_of_a_second() {
    for seed in 1..=10 {
        let mut world = connected(seed, &path(0.0));
        world.run(2_000);
        let moved = client_address(1, 2000 + u16::try_from(seed).unwrap());
        world.rebind(0, moved);
        let start = world.now;
        world.session().send(on(0), b"to the new address").unwrap();
        world.client().send(on(0), b"from the new address").unwrap();
        world.drain();
        let mut buf = [0; 30];
        assert!(
            world.run_until(5000, |world| world.client().recv_into(on(0), &mut buf).is_ok()),
            "seed {seed}"
        );
        assert!(world.now.since(start) <= 2 * ms(120) + ms(100), "seed {seed}: {:?}", world.now.since(start));
        assert_eq!(world.session().peer_addr(), moved);
        assert!(
            world.events.iter().any(|(_, _, event)| matches!(event, Event::Moved { to, .. } if *to == moved))
        );
    }
}

#[test]
fn a_session_that_may_not_migrate_stays() {
    let config = server_config(&config(), SUITE);
    let mut world = World::new(1, &whitewater::ServerConfig { migration: false, ..config });
    world.add(&path(0.0), &path(0.0), &self::config(), client_config(SUITE));
    world.connect();
    let old = world.address(0);
    world.rebind(0, client_address(1, 2000));
    world.run(25_000);
    assert_eq!(world.events.last().map(|(_, _, event)| matches!(event, Event::Moved { .. })), Some(false));
    assert!(world.strangers.iter().all(|(to, _)| *to == old), "nothing goes to the new address");
}

#[test]
fn a_server_without_the_suite_says_so_and_the_client_gives_up_after_two_seconds() {
    let mut world = World::new(1, &server_config(&config(), Suite::Checked));
    let other = Suite::ALL[0];
    let start = world.now;
    if cfg!(feature = "crypto") {
        world.add(
            &path(0.0),
            &path(0.0),
            &config(),
            ClientConfig { suite: other, psk: None, ..client_config(Suite::Checked) },
        );
        world.run(3_000);
        let (at, Event::Closed { reason, .. }) = world.clients[0].events[0] else { panic!() };
        assert!(matches!(reason, CloseReason::Denied(_)), "{reason:?}");
        assert!((2_100..2_200).contains(&at.since(start).as_millis()));
        assert!(world.server.stats().rejected.suite > 5);
    }
}

#[test]
#[cfg(feature = "crypto")] // there are no keys without it
fn keys_are_updated_while_data_flows() {
    let config = SessionConfig { key_update: 64, ..config() };
    let mut world =
        World::pair(1, &LinkConfig { jitter: ms(50), in_order: false, ..path(0.2) }, &config, SUITE);
    world.connect();
    let mut buf = [0; 10];
    for number in 0..600u32 {
        world.client().send(on(0), &number.to_le_bytes()).unwrap();
        world.run(20);
        while world.session().recv_into(on(0), &mut buf).is_ok() {}
    }
    let (client, server) = (world.client().stats(), world.session().stats());
    assert!(client.key_updates >= 5 && server.key_updates >= client.key_updates - 1, "{client:?} {server:?}");
    assert_eq!(client.rejected.forged + server.rejected.forged, 0);
    assert!(world.client().is_connected() && world.session().is_connected());
}

#[test]
fn a_peer_that_reads_nothing_is_dropped_after_half_a_minute() {
    let mut world = connected(1, &path(0.0));
    for _ in 0..200 {
        world.client().send(on(0), &[1; 1000]).unwrap();
    }
    world.drain();
    world.run(29_000);
    assert!(world.client().is_connected(), "it just has no room");
    world.run(5_000);
    let (_, Event::Closed { reason, undelivered }) = *world.clients[0].events.last().unwrap() else {
        panic!()
    };
    assert_eq!(reason, CloseReason::SlowPeer);
    assert!(undelivered.segments > 50, "{undelivered:?}");
    let (.., event) = *world.events.last().unwrap();
    let slow = whitewater::session::code::SLOW_PEER;
    assert!(
        matches!(event, Event::Closed { reason: CloseReason::Peer(code), .. } if code == slow),
        "{event:?}"
    );
}

#[test]
fn unread_datagrams_have_a_limit_and_are_not_acknowledged() {
    let small = SessionConfig { datagrams_in: 1500, ..config() };
    let mut world = World::pair(1, &path(0.0), &small, SUITE);
    world.connect();
    for _ in 0..10 {
        world.client().send_datagram(&[1; 1000]).unwrap();
        world.drain();
        world.run(50);
    }
    world.run(500);
    assert_eq!(world.session().stats().datagrams_refused, 9);
    let told = std::iter::from_fn(|| world.client().pop_delivered()).count();
    assert_eq!(told, 1);
}
