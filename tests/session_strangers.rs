//! What strangers with a valid cookie cost and get: datagrams, bytes and counters, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::machine::Whole as _;

use common::sessions::{SUITE, World, server_config};
use std::net::SocketAddr;
use whitewater::inside::session::wire::{Connect, MESSAGE_MIN, RESET_LEN, kind};
use whitewater::session::Suite;
use whitewater::{ServerConfig, SessionConfig};

fn stranger(number: u32) -> SocketAddr {
    let [a, b, c, d] = number.to_be_bytes();
    ([100 | a, b, c, d], 9).into()
}

fn world(suite: Suite) -> World {
    World::new(1, &server_config(&SessionConfig::default(), suite))
}

/// The shortest possible CONNECT, with a cookie of zeros.
fn connect(suite: u16, protocol_id: u64) -> Vec<u8> {
    let mut datagram = Vec::new();
    let (cookie, token, msg1) = ([0; 16], &[][..], &[0; MESSAGE_MIN][..]);
    let packet = Connect { suite, protocol_id, cid: 1, epoch: 0, cookie, client_sid: 1, token, msg1 };
    packet.encode(&mut datagram).unwrap();
    datagram
}

#[test]
fn a_connect_without_a_valid_cookie_gets_no_answer() {
    let config = ServerConfig { deny_protocol: true, ..server_config(&SessionConfig::default(), SUITE) };
    let mut world = World::new(1, &config);
    for datagram in [connect(0x402, 0), connect(SUITE.code(), 1), connect(SUITE.code(), 0)] {
        world.inject(stranger(1), &datagram);
    }
    let rejected = world.server.stats().rejected;
    assert_eq!((rejected.suite, rejected.protocol, rejected.cookie), (1, 1, 1));
    assert!(world.strangers.is_empty(), "{:?}", world.strangers);
}

#[test]
fn a_reset_is_shorter_than_what_it_answers() {
    let config = ServerConfig { reset_key: Some([3; 16]), ..server_config(&SessionConfig::default(), SUITE) };
    let mut world = World::new(1, &config);
    for len in 9..=40 {
        world.run(1_000);
        world.inject(stranger(1), &[&[kind::DATA][..], &vec![0; len - 1]].concat());
    }
    let longer = 40 - RESET_LEN;
    assert!(world.strangers.iter().all(|(_, bytes)| bytes.len() == RESET_LEN));
    assert_eq!(world.strangers.len(), longer);
}

#[test]
fn a_flood_from_many_addresses_costs_no_memory_and_no_session() {
    let mut world = world(SUITE);
    let flood: Vec<_> = (0..1000).map(|number| (stranger(number), connect(SUITE.code(), 0))).collect();
    let now = world.now;
    let mut strike = || {
        for (from, datagram) in &flood {
            world.server.give(now, *from, datagram);
        }
    };
    // A server has one buffer for opening packets; the first packet allocates it.
    let (first, later) = (allocation_counter::measure(&mut strike), allocation_counter::measure(&mut strike));
    let rejected = world.server.stats().rejected.cookie;
    assert!(first.count_total <= 1 && first.bytes_max <= 2048, "{first:?}");
    assert_eq!((later.count_total, rejected), (0, 2000));
}

#[cfg(feature = "crypto")]
#[expect(clippy::indexing_slicing, reason = "a test that panics has found something")]
mod secrets {
    use super::*;
    use common::ms;
    use common::sessions::{client_config, connect_of, first_of, server_address};
    use common::tokens::{NOW, by_token, key, order, strict, verifier};
    use whitewater::inside::session::wire::DenyReason;
    use whitewater::session::public_key;
    use whitewater::session::token::{Order, PublicToken};
    use whitewater::{ClientConfig, CloseReason};
    use whitewater_sim::LinkConfig;

    /// An honest client connects.
    fn enter(world: &mut World, config: ClientConfig) {
        let path = LinkConfig::with_rtt(ms(40));
        world.add(&path, &path, &SessionConfig::default(), config);
        world.connect();
    }

    /// With a cookie, a stranger can make a server compute a key agreement, but only as often as the limit
    /// for its address allows.
    #[test]
    fn garbage_is_processed_only_within_the_rate_of_its_address() {
        for suite in [SUITE, Suite::from_code(0x301).unwrap()] {
            let key = [5; 32];
            let public = public_key(&key);
            let server_key = suite.needs_server_key().then(|| key.into());
            let config = ServerConfig { server_key, ..server_config(&SessionConfig::default(), suite) };
            let mut world = World::new(1, &config);
            let public = suite.needs_server_key().then_some(public);
            let honest = ClientConfig { server_key: public, ..client_config(suite) };
            let garbage = ClientConfig {
                psk: honest.psk.as_ref().map(|_| [9; 32].into()),
                server_key: honest.server_key.map(|_| public_key(&[6; 32])),
                ..honest.clone()
            };
            for number in 0..1000 {
                let connect = connect_of(&mut world, stranger(1), number, garbage.clone());
                world.inject(stranger(1), &connect);
                world.run(1);
            }
            let rejected = world.server.stats().rejected;
            assert!((20..=31).contains(&rejected.handshake), "{} in 1 s", rejected.handshake);
            assert_eq!((rejected.accept_rate, world.server.len()), (1000 - rejected.handshake, 0));
            enter(&mut world, honest);
        }
    }

    /// A token sealed by the matchmaker, valid or not.
    fn sealed(server: u64, created: u64, expires: u64, number: u64) -> PublicToken {
        let mut nonce = [0; 24];
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        let addresses = [server_address()];
        let order = Order { expires, ..order(number, created, &addresses) };
        key(server).mint(&order, [1; 32], nonce).unwrap()
    }

    #[test]
    fn each_bad_token_opens_nothing_and_is_answered_by_16_bytes() {
        let mut world = strict(1, verifier(5));
        let good = sealed(5, NOW, NOW + 45, 1);
        let mut bad = vec![
            sealed(6, NOW, NOW + 45, 2),        // for another server
            sealed(5, NOW - 50, NOW - 5, 3),    // expired
            sealed(5, NOW + 100, NOW + 650, 4), // too far in the future
            sealed(5, NOW - 100, NOW + 45, 5),  // from before the server started
        ];
        for bit in (0..384 * 8).step_by(97) {
            let mut flipped = good.clone();
            flipped.sealed[bit / 8] ^= 1 << (bit % 8);
            bad.push(flipped);
        }
        for (number, token) in (1..).zip(&bad) {
            world.inject(stranger(number), &first_of(by_token(token)));
            let challenged = |(_, answer): &(_, Vec<u8>)| answer[0] == kind::CHALLENGE && answer.len() == 36;
            assert!(world.strangers.len() == 1 && world.strangers.iter().all(challenged), "token {number}");
            let connect = connect_of(&mut world, stranger(number), number.into(), by_token(token));
            world.strangers.clear();
            world.inject(stranger(number), &connect);
            let denied = |(_, answer): &(_, Vec<u8>)| answer[0] == kind::DENY && answer.len() == 16;
            assert!(world.strangers.len() <= 1 && world.strangers.iter().all(denied), "token {number}");
            world.strangers.clear();
        }
        let stats = world.server.stats();
        assert!(stats.denials > 0);
        assert_eq!((stats.rejected.token, stats.accepted), (2 * bad.len() as u64, 0));
        enter(&mut world, by_token(&good));
        let connect = connect_of(&mut world, stranger(1), 1, by_token(&good));
        world.inject(stranger(1), &connect);
        assert_eq!(world.server.stats().rejected.token, 2 * bad.len() as u64 + 1, "and each is counted once");
    }

    /// Evicting the oldest used token instead would let an attacker with many tokens use one twice.
    #[test]
    fn when_no_more_used_tokens_can_be_remembered_nobody_gets_in() {
        let verifier = verifier(5);
        let mut used = 0u64;
        loop {
            let token = sealed(5, NOW, NOW + 45, used + 10);
            let grant = verifier.open(NOW, 0, SUITE, &token.sealed).unwrap();
            if verifier.use_up(NOW, &grant).is_err() {
                break;
            }
            used += 1;
        }
        assert_eq!(used, 16_384);
        let mut world = strict(1, verifier);
        let path = LinkConfig::with_rtt(ms(40));
        let config = by_token(&sealed(5, NOW, NOW + 45, 1));
        world.add(&path, &path, &SessionConfig::default(), config);
        world.run(3_000);
        assert_eq!(world.clients[0].closed(), Some(CloseReason::Denied(DenyReason::Busy)));
        assert!(world.server.is_empty() && world.server.stats().rejected.full > 0);
        world.run(50_000);
        enter_again(&mut world);
    }

    /// Once the tokens have expired there is room again.
    fn enter_again(world: &mut World) {
        let later = NOW + 60;
        let path = LinkConfig::with_rtt(ms(40));
        let config = by_token(&sealed(5, later, later + 45, 2));
        let client = world.add(&path, &path, &SessionConfig::default(), config);
        assert!(world.run_until(2_000, |world| world.clients[client].session.connection().is_some()));
    }
}
