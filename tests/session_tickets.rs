//! A client that was there before brings a ticket, and is up after one round trip.

#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, client_address, client_config, on, server_config};
use std::time::Duration;
use whitewater::{ClientConfig, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss};

/// A server that a client has left, with its ticket: for the address of the next client.
fn left(seed: u64, path: &LinkConfig, config: &ServerConfig) -> (World, Vec<u8>) {
    let mut world = World::new(seed, config);
    world.add(path, path, &SessionConfig::default(), client_config(SUITE));
    world.rebind(0, client_address(2, 999));
    world.connect();
    let ticket = world.client().ticket().to_vec();
    assert_eq!(ticket.len(), 20);
    let now = world.now;
    world.clients[0].session.close(now, 0);
    world.run(2_000);
    (world, ticket)
}

/// Adds a client with a ticket, and returns how long it takes to be up.
fn join(world: &mut World, path: &LinkConfig, ticket: Vec<u8>) -> Option<Duration> {
    let (start, config) = (world.now, ClientConfig { ticket, ..client_config(SUITE) });
    let index = world.add(path, path, &SessionConfig::default(), config);
    let is_up = world.run_until(12_000, |world| world.clients[index].session.is_connected());
    is_up.then(|| world.now.since(start))
}

fn default() -> ServerConfig {
    server_config(&SessionConfig::default(), SUITE)
}

#[test]
fn a_client_with_a_ticket_is_up_after_one_round_trip_and_can_send() {
    let path = LinkConfig::with_rtt(ms(60));
    let (mut world, ticket) = left(1, &path, &default());
    world.taps = true;
    let (challenges, sessions) = (world.server.stats().challenges, world.sessions.len());
    let took = join(&mut world, &path, ticket.clone()).unwrap();
    assert!(took <= ms(61), "{took:?}");
    let lens: Vec<_> = world.tap.iter().map(|(.., bytes)| bytes.len()).collect();
    assert!(lens[0] == 512 && lens.len() == 3, "a CONNECT, an ACCEPT and the first packet: {lens:?}");
    let (sent, mut buf) = (world.now, [0; 5]);
    world.clients[1].session.connection_mut().unwrap().send(on(0), b"first").unwrap();
    let came = world.run_until(1_000, |world| {
        let Some(&id) = world.sessions.get(sessions) else { return false };
        world.server.connection_mut(id).unwrap().recv_into(on(0), &mut buf) == Ok(5)
    });
    assert!(came && world.now.since(sent) <= ms(31), "right behind the ACCEPT");
    let stats = world.server.stats();
    assert_eq!((stats.challenges, stats.tickets, stats.rejected.ticket), (challenges, 1, 0));
    let next = world.clients[1].session.connection().unwrap().ticket();
    assert!(next.len() == 20 && next != ticket, "each session brings another one");
}

#[test]
fn a_ticket_that_is_not_good_costs_no_time() {
    let path = LinkConfig::with_rtt(ms(60));
    type Spoils = fn(&mut World, &mut Vec<u8>);
    let cases: [(&str, Spoils, u64); 7] = [
        ("another address", |world, _| _ = join(world, &LinkConfig::with_rtt(ms(60)), Vec::new()), 1),
        ("another server", |world, _| *world = World::new(2, &default()), 1),
        ("expired", |world, _| world.now = Time::from_millis(25 * 3_600_000), 1),
        ("damaged", |_, ticket| ticket[19] ^= 1, 1),
        ("of another time", |_, ticket| ticket[0] ^= 1, 1),
        ("no ticket", |_, ticket| ticket[3] = 0, 0),
        ("too long", |_, ticket| ticket.push(0), 0),
    ];
    for (what, spoil, refused) in cases {
        let (mut world, mut ticket) = left(1, &path, &default());
        spoil(&mut world, &mut ticket);
        if world.clients.is_empty() {
            world.add(&path, &path, &SessionConfig::default(), client_config(SUITE));
        }
        let took = join(&mut world, &path, ticket).unwrap();
        assert!(took <= ms(122), "{what}: {took:?}");
        let stats = world.server.stats();
        assert_eq!((stats.tickets, stats.rejected.ticket), (0, refused), "{what}");
    }
}

#[test]
fn a_ticket_serves_once() {
    let path = LinkConfig::with_rtt(ms(60));
    let (mut world, ticket) = left(1, &path, &default());
    join(&mut world, &path, ticket.clone()).unwrap();
    world.run(20_000);
    let config = ClientConfig { ticket, ..client_config(SUITE) };
    let index = world.add(&path, &path, &SessionConfig::default(), config);
    world.rebind(index, client_address(2, 1001));
    assert!(world.run_until(1_000, |world| world.clients[index].session.is_connected()));
    let stats = world.server.stats();
    assert!(stats.tickets == 1 && stats.rejected.ticket >= 1, "{:?}", stats.rejected);
}

#[test]
fn loss_keeps_no_client_with_a_ticket_out() {
    let clean = LinkConfig::with_rtt(ms(60));
    let lossy = LinkConfig { loss: Loss::Random(0.3), ..clean.clone() };
    let mut all: Vec<_> = (1..=200)
        .map(|seed| {
            let (mut world, ticket) = left(seed, &clean, &default());
            let took = join(&mut world, &lossy, ticket);
            took.unwrap_or_else(|| panic!("seed {seed}: not within 12 s"))
        })
        .collect();
    all.sort_unstable();
    println!("p50 {:?}, p99 {:?}", all[100], all[198]);
    assert!(all[100] <= ms(171) && all[198] <= ms(1_500));
}

#[test]
fn an_application_that_decides_later_is_asked_about_clients_with_tickets_too() {
    let path = LinkConfig::with_rtt(ms(60));
    let (mut world, ticket) = left(1, &path, &default());
    let ask = ServerConfig { ask: true, ..default() };
    let mut asking = World::new(1, &ask);
    std::mem::swap(&mut world, &mut asking);
    // The same random numbers make the same key.
    let config = ClientConfig { ticket, ..client_config(SUITE) };
    world.add(&path, &path, &SessionConfig::default(), client_config(SUITE));
    let index = world.add(&path, &path, &SessionConfig::default(), config);
    world.run(31);
    let id = world
        .events
        .iter()
        .find_map(|(_, id, event)| (*event == whitewater::Event::Requested).then_some(*id));
    let now = world.now;
    world.server.admit(now, id.unwrap(), b"welcome").unwrap();
    world.run(31);
    assert!(world.clients[index].session.is_connected());
    assert_eq!(world.server.stats().tickets, 1);
}
