//! A server redirects a client to another one. The client is connected to both for a moment, so nothing is
//! lost.

#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, Toward, World, forger};
use whitewater::session::{RedirectError, Suite};
use whitewater::{CloseReason, Event, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

fn path(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(80)) }
}

fn connected(seed: u64, loss: f64, suite: Suite) -> World {
    let mut world = World::pair(seed, &path(loss), &SessionConfig::default(), suite);
    world.taps = true;
    world.connect();
    world.run(500);
    world
}

/// Where the client is sent: a token, or without encryption any bytes of the application.
fn token(number: u8, suite: Suite) -> Vec<u8> {
    #[cfg(feature = "crypto")]
    if suite != Suite::Checked {
        return tokens::mint(number, 1).encode().to_vec();
    }
    vec![number; usize::from(suite == Suite::Checked) * 100]
}

fn redirect(world: &mut World, token: &[u8]) -> Result<(), RedirectError> {
    let (now, id) = (world.now, world.sessions[0]);
    let result = world.server.redirect(now, id, token);
    world.drain();
    result
}

fn told(world: &World) -> usize {
    world.clients[0].events.iter().filter(|(_, event)| *event == Event::Redirected).count()
}

/// Number of datagrams that the server sent since `from` that are long enough for a token.
fn long(world: &World, from: usize, client: std::net::SocketAddr) -> usize {
    world.tap[from..].iter().filter(|(_, _, to, bytes)| *to == client && bytes.len() > 100).count()
}

#[test]
fn a_client_is_redirected_exactly_once_despite_loss() {
    for (suite, loss) in [(SUITE, 0.0), (SUITE, 0.3), (Suite::Checked, 0.3)] {
        let (mut times, mut copies) = (Vec::new(), 0);
        for seed in 1..=100 {
            let mut world = connected(seed, loss, suite);
            let (start, from, token) = (world.now, world.tap.len(), token(9, suite));
            redirect(&mut world, &token).unwrap();
            assert!(world.run_until(10_000, |world| told(world) > 0), "seed {seed}");
            times.push(world.now.since(start));
            world.run(5_000);
            assert_eq!(told(&world), 1, "seed {seed}");
            let client = world.address(0);
            copies += long(&world, from, client);
            assert_eq!(*world.clients[0].session.take_redirect().unwrap(), token);
            assert_eq!(world.clients[0].session.take_redirect(), None);
            let stats = world.client().stats();
            assert_eq!((stats.redirects, stats.redirects_refused), (1, 0));
            assert!(world.session().is_connected() && world.client().is_connected());
        }
        times.sort_unstable();
        let (most, mean) = if loss == 0.0 { (ms(41), 1) } else { (ms(3_000), 3) };
        assert!(times[98] <= most, "{loss}: {:?}", times[98]);
        assert!(copies <= mean * 100, "{loss}: {copies} copies for 100 clients");
    }
}

#[test]
fn an_unanswered_redirect_is_repeated_and_then_reported() {
    let mut world = connected(1, 0.0, SUITE);
    let (from, client) = (world.tap.len(), world.address(0));
    world.set_links(0, &path(0.0), &path(1.0));
    redirect(&mut world, &token(9, SUITE)).unwrap();
    world.set_links(0, &path(1.0), &path(1.0));
    world.run(30_000);
    let copies = long(&world, from, client);
    assert!((15..=25).contains(&copies), "{copies}");
    let (.., event) = *world.events.last().unwrap();
    let Event::Closed { reason: CloseReason::Timeout, undelivered } = event else { panic!("{event:?}") };
    assert!(undelivered.redirect && undelivered.segments == 0, "{undelivered:?}");
}

#[test]
fn a_close_waits_until_the_client_has_its_redirect() {
    for seed in 1..=30 {
        let mut world = connected(seed, 0.3, SUITE);
        let (now, id) = (world.now, world.sessions[0]);
        redirect(&mut world, &token(9, SUITE)).unwrap();
        world.server.close(now, id, 3);
        assert_eq!(world.server.redirect(now, id, &token(8, SUITE)), Err(RedirectError::Closed));
        world.run(30_000);
        assert_eq!(told(&world), 1, "seed {seed}");
        assert!(world.clients[0].session.take_redirect().is_some(), "seed {seed}: even after the close");
    }
}

#[test]
fn the_newest_redirect_wins_and_an_older_late_one_does_not() {
    let mut world = connected(1, 0.0, SUITE);
    world.set_links(0, &path(0.0), &path(1.0));
    redirect(&mut world, &token(8, SUITE)).unwrap();
    let (.., late) = world.tap.last().unwrap().clone();
    world.set_links(0, &path(0.0), &path(0.0));
    redirect(&mut world, &token(9, SUITE)).unwrap();
    world.run(1_000);
    world.inject_client(0, &late);
    let stats = world.client().stats();
    assert_eq!((stats.redirects, stats.redirects_refused), (1, 1));
    assert_eq!(*world.clients[0].session.take_redirect().unwrap(), token(9, SUITE));
    redirect(&mut world, &token(8, SUITE)).unwrap();
    world.run(1_000);
    assert_eq!((told(&world), world.client().stats().redirects), (2, 2));
    assert_eq!(*world.clients[0].session.take_redirect().unwrap(), token(8, SUITE));
}

#[test]
fn an_invalid_token_is_not_sent() {
    let mut world = connected(1, 0.0, SUITE);
    let max = if SUITE == Suite::Checked { 1200 - 13 - 1 } else { 1200 - 25 - 1 };
    let too_long = Err(RedirectError::TooLong { len: max + 1, max });
    assert_eq!(redirect(&mut world, &vec![1; max + 1]), too_long);
    assert_eq!(redirect(&mut world, b""), Err(RedirectError::NoToken));
    if SUITE == Suite::Checked {
        redirect(&mut world, &vec![1; max]).unwrap();
        assert!(world.run_until(100, |world| told(world) == 1));
    } else {
        assert_eq!(redirect(&mut world, b"token"), Err(RedirectError::NoToken));
    }
}

/// Peers that have the keys but break the rules.
#[test]
fn a_redirect_without_a_token_is_counted_and_one_from_a_client_ends_the_session() {
    let mut world = connected(1, 0.0, Suite::Checked);
    let forge = forger(&world);
    world.inject_client(0, &forge(Toward::Client, &[0x89]));
    let stats = world.client().stats();
    assert_eq!((stats.redirects, stats.redirects_refused, told(&world)), (0, 1, 0));
    assert!(world.client().is_connected() && world.clients[0].session.take_redirect().is_none());
    let from = world.address(0);
    world.inject(from, &forge(Toward::Server, b"\x89token"));
    world.run(1_000);
    assert!(
        world
            .events
            .iter()
            .any(|(.., event)| { matches!(event, Event::Closed { reason: CloseReason::Protocol, .. }) })
    );
}

#[cfg(feature = "crypto")]
#[expect(clippy::unwrap_used, reason = "a test that panics has found something")]
mod tokens {
    use super::*;
    use common::sessions::{on, server_address};
    use common::tokens::{self, NOW, by_token, order, strict, verifier};
    use std::net::SocketAddr;
    use whitewater::session::token::{Order, PublicToken};

    /// A token for one of the servers of a fleet, with `addresses` addresses.
    pub(super) fn mint(number: u8, addresses: usize) -> PublicToken {
        let addresses: Vec<SocketAddr> = [server_address()]
            .into_iter()
            .chain(["[2001:db8::1]:4000".parse().unwrap(); 3])
            .take(addresses)
            .collect();
        tokens::mint(number.into(), number, &order(7, NOW, &addresses))
    }

    #[test]
    fn the_longest_token_fits_and_short_datagrams_carry_one_address_less() {
        let longest = |count: usize| {
            let (suite, key) = (Suite::from_code(0x401).unwrap(), Some([3; 32]));
            let addresses = ["[2001:db8::1]:4000".parse().unwrap(); 4];
            let order = Order { suite, server_key: key, ..order(7, NOW, &addresses[..count]) };
            tokens::mint(9, 9, &order).encode()
        };
        let mut world = connected(1, 0.0, SUITE);
        redirect(&mut world, &longest(4)).unwrap();
        world.run(200);
        assert_eq!(*world.clients[0].session.take_redirect().unwrap(), *longest(4));
        let short = SessionConfig { max_datagram: 576, ..SessionConfig::default() };
        let mut world = World::pair(1, &path(0.0), &short, SUITE);
        world.connect();
        let (len, max) = (longest(4).len(), 576 - 25 - 1);
        assert_eq!(redirect(&mut world, &longest(4)), Err(RedirectError::TooLong { len, max }));
        redirect(&mut world, &longest(3)).unwrap();
    }

    /// What a player sends to each of two servers, and what they received.
    #[derive(Default)]
    struct Talk {
        said: u32,
        heard: Vec<u32>,
    }

    impl Talk {
        fn say(&mut self, world: &mut World) {
            let client = world.clients.first_mut().and_then(|client| client.session.connection_mut());
            if let Some(connection) = client.filter(|connection| connection.is_connected()) {
                connection.send(on(0), &self.said.to_le_bytes()).unwrap();
                self.said += 1;
                world.drain();
            }
        }

        fn hear(&mut self, world: &mut World) {
            let Some(&id) = world.sessions.first() else { return };
            let Some(session) = world.server.connection_mut(id) else { return };
            let mut buf = [0; 4];
            while session.recv_into(on(0), &mut buf).is_ok() {
                self.heard.push(u32::from_le_bytes(buf));
            }
        }
    }

    /// While the player is connected to both, it sends to both, 60 times per second.
    #[test]
    fn a_redirected_player_loses_and_duplicates_nothing_at_either_server() {
        for seed in 1..=20 {
            let (mut old, mut new) = (connected(seed, 0.3, SUITE), strict(seed + 1000, verifier(9)));
            let mut talks = [Talk::default(), Talk::default()];
            let mut moved_at = None;
            for tick in 0..600 {
                if tick == 50 {
                    redirect(&mut old, &mint(9, 2).encode()).unwrap();
                }
                if let Some(token) = old.clients[0].session.take_redirect() {
                    let config = by_token(&PublicToken::decode(&token).unwrap());
                    new.add(&path(0.3), &path(0.3), &SessionConfig::default(), config);
                }
                let is_there =
                    new.clients.first().is_some_and(|client| client.session.connection().is_some());
                if is_there && moved_at.is_none() {
                    moved_at = Some(tick);
                    let now = old.now;
                    old.clients[0].session.close_with(now, 1, "moved").unwrap();
                }
                for (world, talk) in [&mut old, &mut new].into_iter().zip(&mut talks) {
                    if tick < 400 {
                        talk.say(world);
                    }
                    world.run(16);
                    talk.hear(world);
                }
            }
            for Talk { said, heard } in &talks {
                assert!(
                    *said > 50 && heard.iter().copied().eq(0..*said),
                    "seed {seed}: {said} {}",
                    heard.len()
                );
            }
            let ticks = moved_at.unwrap() - 50;
            assert!(ticks * 16 <= 3_000, "seed {seed}: {ticks} ticks from the order to the move");
            let closed = old.events.iter().find_map(|(.., event)| match event {
                Event::Closed { reason, undelivered } => Some((*reason, undelivered.is_empty())),
                _ => None,
            });
            assert_eq!(closed, Some((CloseReason::Peer(1), true)), "seed {seed}");
            assert_eq!(new.server.pass(new.sessions[0]).unwrap().client_id, 7);
        }
    }
}

#[test]
fn an_idle_session_is_redirected_with_one_datagram_and_closes_at_once() {
    for quiet in [1_000, 6_000, 20_000] {
        let path = LinkConfig::with_rtt(ms(80));
        let mut world = World::pair(1, &path, &SessionConfig::default(), Suite::Checked);
        world.taps = true;
        world.connect();
        world.run(quiet);
        let (now, id, from) = (world.now, world.sessions[0], world.tap.len());
        world.server.redirect(now, id, &[9; 100]).unwrap();
        world.drain();
        world.run(5_000);
        let copies = world.tap[from..].iter().filter(|(.., datagram)| datagram.len() > 100).count();
        let now = world.now;
        world.server.close(now, id, 3);
        world.drain();
        let is_closed = |world: &mut World| {
            world.clients[0].events.iter().any(|(_, event)| matches!(event, Event::Closed { .. }))
        };
        assert!(world.run_until(200, is_closed), "after {quiet} ms");
        assert_eq!(copies, 1, "after {quiet} ms");
    }
}
