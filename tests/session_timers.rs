//! What a server does when nothing arrives: no session is missed, however its timers were moved and however
//! the server is driven.

use crate::common;
use crate::common::machine::Whole as _;

use common::ms;
use common::sessions::{
    SUITE, World, client_address, client_config, on, random, server_address, server_config,
};
use whitewater::machine::Machine as _;
use whitewater::session::{Client, Server};
use whitewater::{ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, Time};
use whitewater_sim::LinkConfig;

/// Datagrams bring a session's timer forward, to acknowledge them, and it moves back once that is done.
#[test]
fn every_session_of_a_crowd_times_out_after_twenty_seconds_of_silence() {
    let config = ServerConfig { max_sessions: 200, ..server_config(&SessionConfig::default(), SUITE) };
    let (mut world, link) = (World::new(31, &config), LinkConfig::default());
    for _ in 0..100 {
        world.add(&link, &link, &config.session, client_config(SUITE));
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

/// Each frame reads, sends, and only then looks at timers, so whatever is due has always just been done.
#[test]
fn a_server_driven_once_per_frame_drops_a_peer_that_never_reads() {
    let config = SessionConfig::default();
    let mut server: Server = Server::new(&server_config(&config, SUITE), random(1, 1)).unwrap();
    let config = ClientConfig { session: config, ..client_config(SUITE) };
    let mut client: Client = Client::new(&config, random(1, 2)).unwrap();
    client.connect(Time::ZERO, &[server_address()]).unwrap();
    let (mut buf, mut id, mut end, address) = (Vec::new(), None, None, client_address(1, 1));
    for frame in 0..4000 {
        let now = Time::from_millis(16 * frame);
        client.handle_timeout(now);
        if let Some(connection) = client.connection_mut()
            && connection.is_connected()
        {
            let _ = connection.send_datagram(&[1]);
        }
        while client.emit_to(now, &mut buf).is_some() {
            server.give(now, address, &buf);
        }
        for timers in [false, true] {
            if timers {
                server.handle_timeout(now);
            }
            while let Some(to) = server.emit_to(now, &mut buf) {
                assert_eq!(to, address);
                client.give(now, server_address(), &buf);
            }
        }
        while let Some((session, event)) = server.poll_event() {
            match event {
                Event::Connected => {
                    let connection = server.connection_mut(session).unwrap();
                    (0..200).for_each(|_| assert_eq!(connection.send(on(0), &[1; 1000]), Ok(())));
                    id = Some(session);
                }
                Event::Closed { reason, .. } => end = Some((reason, now)),
                _ => {}
            }
        }
        if let Some(connection) = id.and_then(|id| server.connection_mut(id)) {
            while connection.recv_datagram_into(&mut [0; 1500]).is_ok() {}
        }
    }
    let (reason, at) = end.unwrap();
    assert_eq!(reason, CloseReason::SlowPeer);
    assert!((30..=34).contains(&at.as_millis().div_euclid(1000)), "{at:?}");
}

#[test]
fn an_unread_end_wakes_a_server_at_most_ten_times_per_second() {
    let mut world = World::pair(1, &LinkConfig::default(), &SessionConfig::default(), SUITE);
    world.connect();
    let (mut now, mut buf, from) = (world.now, Vec::new(), world.address(0));
    world.clients[0].session.close(now, 5);
    for _ in 0..100 {
        now = now + ms(1);
        world.clients[0].session.handle_timeout(now);
        while world.clients[0].session.emit_to(now, &mut buf).is_some() {
            world.server.give(now, from, &buf);
        }
    }
    let (mut wakes, end) = (0, now + ms(5_000));
    loop {
        while world.server.emit_to(now, &mut buf).is_some() {}
        let Some(at) = world.server.poll_timeout().filter(|at| *at < end) else { break };
        now = now.max(at);
        world.server.handle_timeout(now);
        wakes += 1;
        assert!(wakes <= 50, "{wakes} times in {:?}", now.since(world.now));
    }
    let told: Vec<_> = std::iter::from_fn(|| world.server.poll_event()).collect();
    assert!(matches!(told[..], [(_, Event::Closed { reason: CloseReason::Peer(5), .. })]), "{told:?}");
}
