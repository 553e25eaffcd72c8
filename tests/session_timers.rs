//! What a server does when nothing comes: no session is forgotten, however its timers were moved, and however it is called.

#[cfg(test)]
mod common;

use common::sessions::{SUITE, World, server_config, target};
use whitewater::session::{CloseReason, Event, ServerConfig, SessionConfig};
use whitewater::sim::LinkConfig;

/// Datagrams bring a session's timer forward, to acknowledge them, and put it off when that is done.
#[test]
fn each_session_of_a_crowd_that_falls_silent_ends_after_twenty_seconds() {
    let config = ServerConfig { max_sessions: 200, ..server_config(&SessionConfig::default(), SUITE) };
    let (mut world, link) = (World::new(31, &config), LinkConfig::default());
    for _ in 0..100 {
        world.add(&link, &link, &config.session, target(SUITE));
    }
    assert!(world.run_until(12_000, |world| world.sessions.len() == 100));
    for round in 0..300 {
        world.clients[round % 100].session.connection_mut().unwrap().send_datagram(&[7; 20]).unwrap();
        world.run(7);
    }
    world.clients.iter_mut().for_each(|client| client.frozen = true);
    world.run(21_000);
    let is_end = |event: &Event| matches!(event, Event::Closed { reason: CloseReason::Timeout, .. });
    assert_eq!(world.events.iter().filter(|(_, _, event)| is_end(event)).count(), 100);
    world.run(2_000);
    assert!(world.server.is_empty(), "{} are left", world.server.len());
}
