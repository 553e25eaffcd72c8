//! The application decides which clients get in: yes, no, or later, whatever the network does to the request
//! and the answer.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::machine::Whole as _;

use common::ms;
use common::sessions::{SUITE, Tapped, World, client_address, client_config, connect_of, server_config};
use std::collections::BTreeSet;
use whitewater::inside::session::wire::kind;
use whitewater::session::{DecisionError, Suite, Undelivered};
use whitewater::{ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId};
use whitewater_sim::{LinkConfig, Loss};

fn path(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(80)) }
}

fn asking() -> ServerConfig {
    ServerConfig { ask: true, user: b"to all".to_vec(), ..server_config(&SessionConfig::default(), SUITE) }
}

fn world(seed: u64) -> World {
    let mut world = World::new(seed, &asking());
    world.taps = true;
    world
}

fn enter(world: &mut World, link: &LinkConfig, user: &[u8]) -> usize {
    let config = ClientConfig { user: user.to_vec(), ..client_config(SUITE) };
    world.add(link, link, &SessionConfig::default(), config)
}

/// The requests so far.
fn requests(world: &World) -> Vec<SessionId> {
    let asked = |(_, id, event): &_| (*event == Event::Requested).then_some(*id);
    world.events.iter().filter_map(asked).collect()
}

/// The first request, once it has come.
fn first(world: &mut World) -> SessionId {
    assert!(world.run_until(9_000, |world| !requests(world).is_empty()), "no request came");
    requests(world)[0]
}

/// The events that the server's application got for a request.
fn told(world: &World, id: SessionId) -> Vec<Event> {
    world.events.iter().filter(|(_, of, _)| *of == id).map(|(.., event)| *event).collect()
}

/// The event for a client that does not follow up.
fn given_up() -> Event {
    Event::Closed { reason: CloseReason::ConnectTimeout, undelivered: Undelivered::default() }
}

fn accepts(world: &World) -> BTreeSet<Vec<u8>> {
    let is = |(.., bytes): &&Tapped| bytes[0] == kind::ACCEPT;
    world.tap.iter().filter(is).map(|(.., bytes)| bytes.clone()).collect()
}

#[test]
fn the_application_sees_each_request_and_both_ends_get_each_others_data() {
    let mut world = world(1);
    enter(&mut world, &path(0.0), b"red team");
    let id = first(&mut world);
    let request = world.server.request(id).unwrap();
    assert_eq!(
        (request.address, request.suite, request.user),
        (client_address(1, 1000), SUITE, &b"red team"[..])
    );
    assert_eq!((world.server.len(), world.server.stats().requested), (1, 1));
    assert!(world.server.connection(id).is_none(), "there is no session yet");
    let now = world.now;
    world.server.admit(now, id, b"you are blue").unwrap();
    assert!(world.server.request(id).is_none());
    world.connect();
    assert_eq!((world.sessions[0], world.client().user()), (id, &b"you are blue"[..]));
    assert_eq!(world.session().user(), b"red team");
    assert_eq!(told(&world, id), [Event::Requested, Event::Connected]);
}

/// The client keeps asking while the application takes its time.
#[test]
fn a_late_acceptance_works_under_loss_and_duplication() {
    let bad = LinkConfig { duplicate: 0.3, jitter: ms(50), ..path(0.3) };
    for seed in 1..=50 {
        let mut world = world(seed);
        enter(&mut world, &bad, b"");
        let id = first(&mut world);
        world.run(1_000 + 100 * seed);
        let asked = world.tap.iter().filter(|(.., bytes)| bytes[0] == kind::CONNECT).count();
        assert!(asked > 5 && accepts(&world).is_empty() && world.server.len() == 1);
        let now = world.now;
        world.server.admit(now, id, b"").unwrap();
        world.connect();
        world.run(1_000);
        assert_eq!((requests(&world), accepts(&world).len()), (vec![id], 1), "seed {seed}");
    }
}

#[test]
fn a_rejection_reaches_the_client_whatever_is_lost_and_is_always_the_same() {
    let bad = LinkConfig { duplicate: 0.3, jitter: ms(50), ..path(0.5) };
    let mut slowest = 0;
    for seed in 1..=100 {
        let mut world = world(seed);
        let client = enter(&mut world, &bad, b"");
        let id = first(&mut world);
        world.run(500);
        let now = world.now;
        world.server.reject(now, id, 42, b"the team is full").unwrap();
        assert!(world.run_until(9_000, |world| world.clients[client].closed().is_some()), "seed {seed}");
        slowest = slowest.max(world.now.since(now).as_millis());
        assert_eq!(world.clients[client].closed(), Some(CloseReason::Rejected(42)), "seed {seed}");
        assert_eq!(world.clients[client].session.rejection(), b"the team is full");
        world.run(2_000);
        assert_eq!((requests(&world), accepts(&world).len()), (vec![id], 1), "seed {seed}");
        assert_eq!((told(&world, id), world.server.len()), (vec![Event::Requested], 0), "seed {seed}");
        assert_eq!(world.server.stats().rejected.declined, 1);
    }
    assert!(slowest <= 4_000, "{slowest} ms for a no through 50 % loss");
}

/// For as long as the cookie is valid, and at most every 50 ms.
#[test]
fn duplicates_of_a_request_get_the_same_rejection_and_are_not_new_requests() {
    let mut world = world(1);
    enter(&mut world, &path(0.0), b"");
    let id = first(&mut world);
    let (_, from, _, connect) =
        world.tap.iter().find(|(.., bytes)| bytes[0] == kind::CONNECT).unwrap().clone();
    let now = world.now;
    world.server.reject(now, id, 1, b"").unwrap();
    let before = world.server.stats();
    world.set_links(0, &path(1.0), &path(1.0)); // the client hears nothing and is not heard
    let mut answers = 0;
    for _ in 0..100 {
        world.run(20);
        let seen = world.tap.len();
        world.inject(from, &connect);
        answers += world.tap[seen..].iter().filter(|(.., bytes)| bytes[0] == kind::ACCEPT).count();
    }
    assert!((20..=40).contains(&answers), "{answers} in 2 s");
    assert_eq!(accepts(&world).len(), 1);
    let mut other = connect.clone();
    *other.last_mut().unwrap() ^= 1;
    world.run(100);
    let seen = world.tap.len();
    world.inject(from, &other);
    assert!(world.tap[seen..].iter().all(|(.., bytes)| bytes[0] != kind::ACCEPT), "another question");
    for _ in 0..20 {
        world.run(1_000);
        world.inject(from, &connect);
    }
    let after = world.server.stats();
    assert_eq!((after.requested, after.accepted, world.server.len()), (before.requested, 0, 0), "no ghost");
}

#[test]
fn an_unanswered_request_is_dropped_after_ten_seconds() {
    let mut world = world(1);
    let client = enter(&mut world, &path(0.0), b"");
    let id = first(&mut world);
    world.run(11_000);
    let times: Vec<_> = world.events.iter().map(|(at, ..)| *at).collect();
    let waited = times[1].since(times[0]);
    assert!((ms(10_000)..ms(10_010)).contains(&waited), "{waited:?}");
    assert_eq!(told(&world, id), [Event::Requested, given_up()]);
    assert_eq!((world.server.len(), world.server.stats().rejected.unanswered), (0, 1));
    world.run(1_000);
    assert_eq!(world.clients[client].closed(), Some(CloseReason::ConnectTimeout));
}

#[test]
fn answering_too_late_or_twice_or_with_too_much_data_is_an_error() {
    let mut world = world(1);
    enter(&mut world, &path(0.0), b"");
    let id = first(&mut world);
    let now = world.now;
    let too_long = Err(DecisionError::TooLong { len: 257, max: 256 });
    assert_eq!(world.server.admit(now, id, &[0; 257]), too_long);
    assert_eq!(world.server.reject(now, id, 1, &[0; 257]), too_long);
    let code = whitewater::session::code::RESERVED;
    assert_eq!(world.server.reject(now, id, code, b""), Err(DecisionError::Reserved { code }));
    assert!(world.server.request(id).is_some(), "it can still be answered");
    world.server.admit(now, id, &[0; 256]).unwrap();
    assert_eq!(world.server.admit(now, id, b""), Err(DecisionError::NoRequest));
    assert_eq!(world.server.reject(now, id, 1, b""), Err(DecisionError::NoRequest));
    world.connect();
    assert_eq!(world.client().user().len(), 256);
    assert_eq!(world.server.reject(now, id, 1, b""), Err(DecisionError::NoRequest), "it was accepted");

    enter(&mut world, &path(0.0), b"");
    assert!(world.run_until(1_000, |world| requests(world).len() == 2));
    let id = requests(&world)[1];
    let late = world.now + ms(10_000);
    assert_eq!(
        world.server.admit(late, id, b""),
        Err(DecisionError::NoRequest),
        "before the timer has fired"
    );
    world.now = late;
    world.run(100);
    assert_eq!(told(&world, id), [Event::Requested, given_up()]);
}

/// The application has reserved a seat for it, and learns that it is free again.
#[test]
fn an_accepted_client_that_does_not_follow_up_is_reported() {
    let mut world = world(1);
    enter(&mut world, &path(0.0), b"");
    let id = first(&mut world);
    world.run(9_000);
    world.set_links(0, &path(1.0), &path(1.0));
    let now = world.now;
    world.server.admit(now, id, b"").unwrap();
    world.drain();
    world.run(9_900);
    assert_eq!((world.server.len(), told(&world, id).len()), (1, 1), "it has 10 s again");
    world.run(200);
    assert_eq!((world.server.len(), told(&world, id)), (0, vec![Event::Requested, given_up()]));
    assert_eq!(world.server.stats().unconfirmed, 1);
}

#[test]
fn unanswered_requests_take_no_room_from_answered_ones() {
    let mut world = world(1);
    world.taps = false;
    for number in 0..10_000u32 {
        let [.., high, low] = number.to_be_bytes();
        let from = ([60 + high, low, 0, 1], 9).into(); // each of another network
        let connect = connect_of(&mut world, from, number.into(), client_config(SUITE));
        world.inject(from, &connect);
        assert!(world.server.len() <= 256);
    }
    let stats = world.server.stats();
    assert_eq!((stats.requested, stats.rejected.unanswered), (400, 400 - 256), "so many handshakes at once");
    world.events.clear();
    let client = enter(&mut world, &path(0.0), b"honest");
    let start = world.now;
    let up = world.run_until(3_000, |world| {
        for id in requests(world) {
            if world.server.request(id).is_some_and(|request| request.user == b"honest") {
                let now = world.now;
                world.server.admit(now, id, b"").unwrap();
            }
        }
        world.clients[client].session.connection().is_some()
    });
    assert!(up && world.now.since(start) <= ms(500), "{:?}", world.now.since(start));
    world.run(11_000);
    assert_eq!((world.server.len(), world.server.stats().rejected.unanswered), (1, 400));
}

/// A stranger with a cookie but without the secret.
#[test]
#[cfg(feature = "crypto")] // there is no secret without it
fn a_stranger_without_the_secret_displaces_nobody() {
    let config = ServerConfig { half_open: 10, half_open_per_address: 1, ..asking() };
    let mut world = World::new(1, &config);
    let from = |number: u8, port: u16| ([20, number, 0, 1], port).into();
    for number in 0..10 {
        let connect = connect_of(&mut world, from(number, 1), number.into(), client_config(SUITE));
        world.inject(from(number, 1), &connect);
    }
    for number in 0..30 {
        let garbage = ClientConfig { psk: Some([9; 32].into()), ..client_config(SUITE) };
        let connect = connect_of(&mut world, from(100 + number, 2), 100 + u64::from(number), garbage);
        world.inject(from(100 + number, 2), &connect);
    }
    let stats = world.server.stats();
    assert_eq!((stats.rejected.handshake, stats.rejected.unanswered, world.server.len()), (30, 0, 10));
    world.run(500); // its network has just had its turn
    let connect = connect_of(&mut world, from(3, 3), 200, client_config(SUITE));
    world.inject(from(3, 3), &connect);
    assert_eq!(
        (world.server.stats().rejected.unanswered, world.server.len()),
        (1, 10),
        "its own oldest is dropped"
    );
    let gone = requests(&world)[3];
    assert!(world.server.request(gone).is_none() && told(&world, gone) == [Event::Requested, given_up()]);
}

fn roomy(suite: Suite) -> ServerConfig {
    let limits = server_config(&SessionConfig::default(), suite);
    let limits = ServerConfig { ask: true, half_open_per_address: 200, sessions_per_address: 200, ..limits };
    ServerConfig { half_open: 400, accept_burst: 200, ..limits }
}

/// Bytes that a server keeps for each of 200 requests, and for each rejection.
fn kept(world: &mut World, config: impl Fn(u8) -> ClientConfig) -> [i64; 2] {
    let connects = (1..=200).map(|number| {
        let from = ([30, 0, 0, 1], number.into()).into();
        let config = ClientConfig { user: vec![1; 256], ..config(number) };
        (from, connect_of(world, from, number.into(), config))
    });
    let connects: Vec<_> = connects.collect();
    let (now, mut buf) = (world.now, Vec::with_capacity(2000));
    let requests = allocation_counter::measure(|| {
        for (from, connect) in &connects {
            world.server.give(now, *from, connect);
        }
    });
    let mut ids = Vec::with_capacity(200);
    while let Some((id, event)) = world.server.poll_event() {
        assert_eq!(event, Event::Requested);
        ids.push(id);
    }
    assert_eq!((world.server.len(), ids.len()), (200, 200));
    let answers = allocation_counter::measure(|| {
        for id in &ids {
            world.server.reject(now, *id, 1, &[1; 256]).unwrap();
            while world.server.emit_to(now, &mut buf).is_some() {}
        }
    });
    assert!(world.server.is_empty());
    [requests.bytes_current, requests.bytes_current + answers.bytes_current].map(|all| all / 200)
}

#[test]
fn a_request_and_a_rejection_take_at_most_2_kib_each() {
    for suite in [SUITE, Suite::Checked] {
        let each = kept(&mut World::new(1, &roomy(suite)), |_| client_config(suite));
        println!("{suite:?}: {each:?} bytes for a request, for a rejection");
        assert!(each.iter().all(|each| *each <= 2048), "{suite:?}: {each:?}");
    }
}

/// A request means that the client may come in, once: its token is used up.
#[cfg(feature = "crypto")]
mod tokens {
    use super::*;
    use common::sessions::server_address;
    use common::tokens::{NOW, SERVER_ID, by_token, mint, order, requiring, strict, token, verifier};
    use whitewater::session::DenyReason;
    use whitewater::session::code;
    use whitewater::session::token::{Order, PublicToken};

    fn world() -> World {
        let mut world = World::new(1, &requiring(verifier(SERVER_ID), asking()));
        world.taps = true;
        world
    }

    fn enter(world: &mut World, token: &PublicToken) -> usize {
        world.add(&path(0.0), &path(0.0), &SessionConfig::default(), by_token(token))
    }

    #[test]
    fn the_application_sees_the_claims_of_the_token() {
        let mut world = world();
        enter(&mut world, &token(99, NOW, 2));
        let id = first(&mut world);
        let pass = world.server.request(id).unwrap().pass.unwrap().clone();
        assert_eq!((pass.client_id, pass.match_id, pass.user.as_slice()), (99, [2; 16], &b"red team"[..]));
        assert_eq!(world.server.pass(id), Some(&pass));
        let now = world.now;
        world.server.admit(now, id, b"").unwrap();
        world.connect();
        assert_eq!(world.server.pass(id), Some(&pass));
    }

    #[test]
    fn a_request_with_the_longest_token_also_takes_at_most_2_kib() {
        let mut world = World::new(1, &requiring(verifier(SERVER_ID), roomy(SUITE)));
        let (addresses, user) = ([server_address()], &[7; 256]);
        let longest = |number: u8| Order { user, ..order(number.into(), NOW, &addresses) };
        let each = kept(&mut world, |number| by_token(&mint(SERVER_ID, number, &longest(number))));
        println!("{each:?} bytes for a request, for a rejection, with tokens");
        assert!(each.iter().all(|each| *each <= 2048), "{each:?}");
    }

    #[test]
    fn a_token_is_used_up_by_the_request_whatever_the_answer() {
        for answer in 0..3 {
            let mut world = world();
            let token = token(99, NOW, 2);
            let client = enter(&mut world, &token);
            let id = first(&mut world);
            let now = world.now;
            match answer {
                0 => world.server.admit(now, id, b"").unwrap(),
                1 => world.server.reject(now, id, 7, b"").unwrap(),
                _ => {}
            }
            let again = enter(&mut world, &token);
            world.run(12_000);
            assert_eq!(requests(&world), [id]);
            assert!(world.server.stats().rejected.token > 0);
            assert_eq!(world.clients[again].closed(), Some(CloseReason::Denied(DenyReason::Token)));
            let first = [None, Some(CloseReason::Rejected(7)), Some(CloseReason::ConnectTimeout)][answer];
            assert_eq!(world.clients[client].closed(), first);
        }
    }

    /// If a client waits while it also connects with a newer token, the older request fails, even if the
    /// application accepts it later.
    #[test]
    fn the_newest_token_of_a_client_wins_however_late_an_older_one_is_accepted() {
        let mut world = world();
        let older = enter(&mut world, &token(99, NOW, 2));
        let old = first(&mut world);
        let newer = enter(&mut world, &token(99, NOW + 1, 3));
        assert!(world.run_until(1_000, |world| requests(world).len() == 2));
        let (now, new) = (world.now, requests(&world)[1]);
        world.server.admit(now, new, b"").unwrap();
        world.run(500);
        let now = world.now;
        world.server.admit(now, old, b"").unwrap();
        world.run(2_000);
        assert_eq!(world.clients[older].closed(), Some(CloseReason::Peer(code::REPLACED)));
        assert_eq!((world.clients[newer].closed(), world.server.pass(new).unwrap().client_id), (None, 99));
    }

    /// If such a rejection were sent only once, its loss would leave the client waiting for 10 s.
    #[test]
    fn a_client_rejected_for_an_older_token_learns_it_despite_loss() {
        for seed in 1..=50 {
            let mut world = strict(seed, verifier(SERVER_ID));
            enter(&mut world, &token(99, NOW + 1, 2));
            world.connect();
            let (start, bad) = (world.now, path(0.5));
            let late = world.add(&bad, &bad, &SessionConfig::default(), by_token(&token(99, NOW, 3)));
            assert!(world.run_until(9_000, |world| world.clients[late].closed().is_some()), "seed {seed}");
            assert_eq!(
                world.clients[late].closed(),
                Some(CloseReason::Rejected(code::REPLACED)),
                "seed {seed}"
            );
            assert!(world.now.since(start) <= ms(5_000), "seed {seed}: {:?}", world.now.since(start));
            assert_eq!(world.server.stats().rejected.outdated, 1);
        }
    }
}

/// Lets a client ask, and rejects it. Returns whether the application was asked.
fn ask_and_reject(world: &mut World, from: std::net::SocketAddr, connect: &[u8]) -> bool {
    let before = world.events.len();
    world.inject(from, connect);
    let Some((_, id, Event::Requested)) = world.events.get(before).copied() else { return false };
    let now = world.now;
    world.server.reject(now, id, 7, b"no").unwrap();
    world.drain();
    true
}

#[test]
fn a_rejection_is_remembered_and_the_application_never_asked_twice() {
    for max_sessions in [1, 16] {
        let session = SessionConfig::default();
        let config = ServerConfig { ask: true, max_sessions, ..server_config(&session, SUITE) };
        let mut world = World::new(1, &config);
        let first = connect_of(&mut world, client_address(1, 1), 1, client_config(SUITE));
        assert!(ask_and_reject(&mut world, client_address(1, 1), &first));
        for number in 0..4 * max_sessions {
            let from = client_address(10 + u8::try_from(number / 8).unwrap(), 1000 + number);
            let connect = connect_of(&mut world, from, 100 + u64::from(number), client_config(SUITE));
            assert!(ask_and_reject(&mut world, from, &connect), "{number}");
        }
        world.run(3_000);
        assert!(!ask_and_reject(&mut world, client_address(1, 1), &first), "it got its answer");
        world.run(7_500);
        let last = connect_of(&mut world, client_address(2, 1), 9999, client_config(SUITE));
        assert!(ask_and_reject(&mut world, client_address(2, 1), &last));
    }
}
