//! The hub in virtual time: no socket, no sleep.

use super::hub::Hub;
use super::{CloseReason, Event, ListenerConfig, SessionId};
use crate::arq::{Config, Kcp};
use crate::seq::{Conv, Sn};
use crate::time::{Millis, Time};
use crate::wire::{Command, DatagramQueue, Header, Segment};
use std::net::SocketAddr;
use std::time::Duration;

/// Limits that a test reaches soon, and a rate that only its own test meets.
fn config() -> ListenerConfig {
    ListenerConfig {
        kcp: Config::fast().classic(),
        max_sessions: 4,
        max_sessions_per_address: 2,
        accept_burst: 1000,
        ..ListenerConfig::default()
    }
}

fn hub(config: ListenerConfig) -> Hub {
    Hub::new(config).unwrap()
}

fn peer(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// A client's datagrams for its first message.
fn hello(conv: u32) -> Vec<u8> {
    let mut kcp = client(conv);
    kcp.send(b"hello").unwrap();
    flushed(&mut kcp, Time::from_millis(1))
}

fn client(conv: u32) -> Kcp<DatagramQueue> {
    Kcp::new(Conv(conv), &Config::fast().classic(), DatagramQueue::new()).unwrap()
}

fn flushed(kcp: &mut Kcp<DatagramQueue>, now: Time) -> Vec<u8> {
    kcp.flush(now);
    kcp.output_mut().pop().unwrap().to_vec()
}

fn segment(cmd: Command, sn: u32, una: u32) -> Vec<u8> {
    let header = Header { conv: Conv(1), cmd, frg: 0, wnd: 128, ts: Millis(0), sn: Sn(sn), una: Sn(una) };
    let mut bytes = Vec::new();
    Segment { header, data: b"data" }.encode(&mut bytes);
    bytes
}

fn events(hub: &mut Hub) -> Vec<Event> {
    std::iter::from_fn(|| hub.poll_event()).collect()
}

fn accepted(hub: &mut Hub) -> Vec<SessionId> {
    let ids = events(hub).into_iter().filter_map(|event| match event {
        Event::Accepted(id) => Some(id),
        _ => None,
    });
    ids.collect()
}

/// Runs the timers up to `end`; returns how often there was something to do.
fn run(hub: &mut Hub, end: Time) -> usize {
    let mut wakes = 0;
    while let Some(at) = hub.next_timeout().filter(|at| *at <= end) {
        hub.handle_timeout(at);
        hub.service(at);
        while hub.poll_transmit().is_some() {}
        wakes += 1;
    }
    wakes
}

#[test]
fn a_first_message_opens_a_session_and_is_answered() {
    let mut hub = hub(config());
    let mut kcp = client(1);
    kcp.send(b"hello").unwrap();
    let now = Time::from_millis(1);
    hub.handle_datagram(now, peer(1, 1), &flushed(&mut kcp, now));
    let [Event::Accepted(id), Event::Readable(_)] = events(&mut hub)[..] else { panic!() };
    let session = hub.session(id).unwrap();
    let mut message = [0; 16];
    assert_eq!(session.recv(&mut message).unwrap(), 5);
    session.send(b"welcome").unwrap();
    session.flush();
    hub.service(now);
    let (datagram, to) = hub.poll_transmit().unwrap();
    assert_eq!(to, peer(1, 1));
    kcp.input(now, datagram).unwrap();
    assert_eq!((kcp.wait_snd(), kcp.recv(&mut message)), (0, Ok(7)));
    assert!(hub.poll_transmit().is_none());
}

#[test]
fn only_data_of_the_first_window_opens_a_session() {
    for (datagram, garbage) in [
        (segment(Command::Push, 128, 0), 0),
        (segment(Command::Push, 0, 1), 0),
        (segment(Command::Ack, 0, 0), 0),
        (segment(Command::Wask, 0, 0), 0),
        (segment(Command::Wins, 0, 0), 0),
        ([segment(Command::Push, 0, 0), segment(Command::Ack, 0, 0)].concat(), 0),
        (segment(Command::Push, 0, 0)[..27].to_vec(), 1),
        (b"GET / HTTP/1.1\r\nHost: game.example\r\n\r\n".to_vec(), 1),
        (b"short".to_vec(), 1),
        (segment(Command::Push, 0, 0).repeat(100), 1),
        (Vec::new(), 1),
    ] {
        let mut hub = hub(config());
        hub.handle_datagram(Time::ZERO, peer(1, 1), &datagram);
        assert_eq!(
            (hub.len(), hub.stats.garbage, hub.stats.strays),
            (0, garbage, 1 - garbage),
            "{datagram:?}"
        );
        assert_eq!((events(&mut hub), hub.next_timeout()), (Vec::new(), None));
    }
    let mut hub = hub(config());
    hub.handle_datagram(Time::ZERO, peer(1, 1), &segment(Command::Push, 127, 0));
    assert_eq!(hub.len(), 1, "the first datagrams may be lost");
}

#[test]
fn limits_hold_and_a_closed_session_makes_room() {
    let mut hub = hub(config());
    for conv in 1..=3 {
        hub.handle_datagram(Time::ZERO, peer(1, 1), &hello(conv));
    }
    assert_eq!((hub.len(), hub.stats.refused_per_address), (2, 1));
    for host in 2..=4 {
        hub.handle_datagram(Time::ZERO, peer(host, 1), &hello(1));
    }
    assert_eq!((hub.len(), hub.stats.refused_full), (4, 1));
    let ids = accepted(&mut hub);
    assert!(hub.close(Time::ZERO, ids[0]).is_some() && hub.close(Time::ZERO, ids[0]).is_none());
    assert!(hub.session(ids[0]).is_none());
    hub.handle_datagram(Time::ZERO, peer(1, 2), &hello(1));
    assert_eq!(hub.len(), 4);
}

#[test]
fn a_closed_session_is_not_opened_by_what_its_peer_sends_again() {
    let mut hub = hub(config());
    hub.handle_datagram(Time::ZERO, peer(1, 1), &hello(1));
    let id = accepted(&mut hub)[0];
    hub.close(Time::ZERO, id);
    hub.handle_datagram(Time::from_millis(9_999), peer(1, 1), &hello(1));
    assert_eq!((hub.len(), hub.stats.quarantined), (0, 1));
    hub.handle_datagram(Time::from_millis(10_000), peer(1, 1), &hello(1));
    assert_eq!(hub.len(), 1);
}

#[test]
fn an_address_in_a_hurry_has_to_wait() {
    let mut hub = hub(ListenerConfig { accepts_per_second: 1, accept_burst: 2, ..config() });
    for round in 0..6 {
        hub.handle_datagram(Time::ZERO, peer(1, round), &hello(1));
        if let Some(&id) = accepted(&mut hub).first() {
            hub.close(Time::ZERO, id);
        }
    }
    assert_eq!((hub.stats.accepted, hub.stats.refused_rate), (2, 4));
    hub.handle_datagram(Time::from_millis(1000), peer(1, 100), &hello(1));
    assert_eq!(hub.stats.accepted, 3);
}

#[test]
fn nobody_is_accepted_while_nobody_takes_the_events() {
    let mut hub = hub(ListenerConfig { idle_timeout: Duration::from_millis(1), ..config() });
    for round in 0..100 {
        let now = Time::from_millis(round * 100);
        run(&mut hub, now);
        hub.handle_datagram(now, peer(1, 1), &hello(1));
        hub.service(now);
    }
    assert!(hub.stats.accepted <= 8 && hub.stats.refused_full >= 90, "{:?}", hub.stats);
    events(&mut hub);
    hub.handle_datagram(Time::from_millis(20_000), peer(1, 1), &hello(1));
    assert_eq!(accepted(&mut hub).len(), 1);
}

#[test]
fn a_silent_session_costs_a_few_wakes_and_ends_at_its_time() {
    let mut hub = hub(config());
    hub.handle_datagram(Time::ZERO, peer(1, 1), &hello(1));
    hub.service(Time::ZERO);
    let id = accepted(&mut hub)[0];
    let wakes = run(&mut hub, Time::from_millis(29_999));
    assert!(wakes <= 5, "{wakes} wakes for an acknowledgement and half a minute of nothing");
    assert_eq!((hub.len(), events(&mut hub)), (1, vec![]));
    run(&mut hub, Time::from_millis(30_000));
    assert_eq!(events(&mut hub), [Event::Closed { id, reason: CloseReason::Idle }]);
    assert_eq!((hub.len(), hub.stats.closed_idle, hub.next_timeout()), (0, 1, None));
}

#[test]
fn a_dead_link_ends_a_session() {
    let kcp = Config { dead_link: 3, ..Config::fast().classic() };
    let mut hub = hub(ListenerConfig { kcp, ..config() });
    hub.handle_datagram(Time::ZERO, peer(1, 1), &hello(1));
    let id = accepted(&mut hub)[0];
    hub.session(id).unwrap().send(b"anyone?").unwrap();
    hub.service(Time::ZERO);
    run(&mut hub, Time::from_millis(10_000));
    assert_eq!(events(&mut hub), [Event::Closed { id, reason: CloseReason::DeadLink }]);
}

#[test]
fn readable_comes_once_until_it_is_taken() {
    let mut hub = hub(config());
    let mut kcp = client(1);
    for _ in 0..3 {
        kcp.send(b"hello").unwrap();
        let datagram = flushed(&mut kcp, Time::ZERO);
        hub.handle_datagram(Time::ZERO, peer(1, 1), &datagram);
        hub.handle_datagram(Time::ZERO, peer(1, 1), &datagram);
    }
    let [Event::Accepted(id), Event::Readable(_)] = events(&mut hub)[..] else { panic!() };
    kcp.send(b"hello").unwrap();
    hub.handle_datagram(Time::ZERO, peer(1, 1), &flushed(&mut kcp, Time::ZERO));
    assert_eq!(events(&mut hub), [Event::Readable(id)]);
    let session = hub.session(id).unwrap();
    let messages = std::iter::from_fn(|| session.recv(&mut [0; 16]).ok()).count();
    assert_eq!(messages, 4);
}

#[test]
fn writable_comes_when_a_full_queue_has_room_again() {
    let settings = Config { snd_queue: 4, snd_wnd: 2, ..Config::fast().classic() };
    let mut hub = hub(ListenerConfig { kcp: settings, ..config() });
    let mut kcp = client(1);
    kcp.send(b"hello").unwrap();
    let mut now = Time::from_millis(1);
    hub.handle_datagram(now, peer(1, 1), &flushed(&mut kcp, now));
    let id = accepted(&mut hub)[0];
    let session = hub.session(id).unwrap();
    while session.send(b"state").is_ok() {}
    let mut writable = false;
    for _ in 0..20 {
        now = now + Duration::from_millis(20);
        hub.handle_timeout(now);
        hub.service(now);
        while let Some((datagram, _)) = hub.poll_transmit() {
            kcp.input(now, datagram).unwrap();
        }
        kcp.flush(now);
        while let Some(datagram) = kcp.output_mut().pop() {
            hub.handle_datagram(now, peer(1, 1), datagram);
        }
        writable |= events(&mut hub).contains(&Event::Writable(id));
    }
    assert!(writable && hub.session(id).unwrap().send(b"state").is_ok());
}

#[test]
fn a_config_that_cannot_work_is_refused_at_once() {
    assert!(
        Hub::new(ListenerConfig { kcp: Config { mtu: 1, ..Config::fast().classic() }, ..config() }).is_err()
    );
    assert!(ListenerConfig { datagrams_per_pump: 0, ..config() }.check().is_err());
    assert!(ListenerConfig { idle_timeout: Duration::ZERO, ..config() }.check().is_err());
}
