//! What a session costs in memory: next to nothing while it is idle, all in.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[cfg(test)]
mod common;

use allocation_counter::measure;
use common::ms;
use common::sessions::{World, server_config, target};
use whitewater::message::channel::ChannelConfig;
use whitewater::session::{Blob, SessionConfig, Suite, Target};
use whitewater::sim::LinkConfig;

/// Heap bytes that a value owns.
fn heap<T>(value: T) -> i64 {
    -measure(|| drop(value)).bytes_current
}

fn suites() -> impl Iterator<Item = Suite> {
    Suite::ALL
        .into_iter()
        .filter(|suite| !suite.needs_server_key())
        .filter(|suite| cfg!(feature = "crypto") || *suite == Suite::Checked)
}

/// A server and so many clients, all up.
fn crowd(clients: usize, suite: Suite, session: &SessionConfig) -> World {
    let path = LinkConfig::with_rtt(ms(20));
    let mut world = World::new(1, &server_config(session, suite));
    for _ in 0..clients {
        world.add(&path, &path, session, Target { ..target(suite) });
    }
    let all_up = |world: &mut World| world.sessions.len() == clients;
    assert!(world.run_until(5_000, all_up), "{} of {clients}", world.sessions.len());
    world
}

/// Bytes of the server for each of its sessions, and all of a client.
fn each(mut world: World, suite: Suite, session: &SessionConfig) -> (i64, i64) {
    let clients = i64::try_from(world.clients.len()).unwrap();
    let client = world.clients.pop().unwrap().session;
    let client = i64::try_from(size_of_val(&client)).unwrap() + heap(client);
    let (used, empty) = (world.server, World::new(1, &server_config(session, suite)).server);
    ((heap(used) - heap(empty)) / clients, client)
}

#[test]
fn an_idle_session_takes_at_most_4_kib_of_its_server() {
    for suite in suites() {
        let session = SessionConfig::default();
        let mut world = crowd(64, suite, &session);
        world.run(30_000);
        let (server, client) = each(world, suite, &session);
        println!("{suite:?}: {server} bytes of the server, {client} of the client");
        assert!(server <= 4096, "{suite:?}: {server} bytes");
    }
}

#[test]
fn a_session_that_was_busy_takes_as_little_when_it_is_idle_again() {
    for suite in suites() {
        let channels = vec![ChannelConfig::reliable_ordered()];
        let session = SessionConfig { channels, ..SessionConfig::default() };
        let mut world = crowd(64, suite, &session);
        for _ in 0..50 {
            let now = world.now;
            for id in world.sessions.clone() {
                let server = world.server.session_mut(id).unwrap();
                server.send(0, &[1; 2000]).unwrap();
                server.send_datagram(&[2; 500]).unwrap();
                server.send_message(0, now, Blob(vec![3; 50])).unwrap();
            }
            for client in &mut world.clients {
                client.session.connection_mut().unwrap().send(0, &[4; 3000]).unwrap();
            }
            world.drain();
            world.run(50);
            let mut buf = [0; 3000];
            for id in world.sessions.clone() {
                while world.server.session_mut(id).unwrap().recv(0, &mut buf).is_ok() {}
            }
            for client in &mut world.clients {
                let client = client.session.connection_mut().unwrap();
                while client.recv(0, &mut buf).is_ok() {}
                while client.recv_datagram(&mut buf).is_ok() {}
                while client.recv_message(0).is_some() {}
            }
        }
        world.drain();
        world.run(30_000);
        let (server, client) = each(world, suite, &session);
        println!("{suite:?}: {server} bytes of the server, {client} of the client");
        assert!(server <= 4096, "{suite:?}: {server} bytes");
    }
}
