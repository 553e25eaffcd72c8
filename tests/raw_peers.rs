//! Bare KCP peers in virtual time: no socket, no sleep.

use crate::common::machine::Whole as _;
use crate::common::{Raw, configs};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{
    Conv, Kcp, PeerCloseReason, PeerEvent, PeerId, Peers, PeersConfig, RegisterError, Strangers,
};
use whitewater::machine::{DatagramQueue, Machine as _};
use whitewater_sim::SimRng;

/// Limits that a test reaches quickly, and a rate that only its own test reaches. How strangers prove their addresses
/// has tests of its own, among the attacks.
fn config() -> PeersConfig {
    PeersConfig {
        kcp: configs::classic_fast(),
        max_peers: 4,
        max_peers_per_address: 2,
        accept_burst: 1000,
        strangers: Strangers::Trusted,
        ..PeersConfig::default()
    }
}

fn peers(config: &PeersConfig) -> Peers {
    Peers::new(config, &mut SimRng::new(1, 1)).unwrap()
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// The datagrams that a client sends for its first message.
fn hello(conv: u32) -> Vec<u8> {
    let mut kcp = client(conv);
    kcp.send(b"hello").unwrap();
    flushed(&mut kcp, Time::from_millis(1))
}

fn client(conv: u32) -> Kcp<DatagramQueue> {
    Kcp::new(Conv(conv), &configs::classic_fast(), DatagramQueue::new()).unwrap()
}

fn flushed(kcp: &mut Kcp<DatagramQueue>, now: Time) -> Vec<u8> {
    kcp.flush(now);
    kcp.output_mut().pop().unwrap().to_vec()
}

fn segment(cmd: Command, sn: u32, una: u32) -> Vec<u8> {
    Raw { cmd, una, ..Raw::push(sn, b"data") }.of(1)
}

fn events(peers: &mut Peers) -> Vec<PeerEvent> {
    std::iter::from_fn(|| peers.poll_event()).collect()
}

fn accepted(peers: &mut Peers) -> Vec<PeerId> {
    let ids = events(peers).into_iter().filter_map(|event| match event {
        PeerEvent::Accepted(id) => Some(id),
        _ => None,
    });
    ids.collect()
}

/// Runs the timers up to `end`. Returns how often there was something to do.
fn run(peers: &mut Peers, end: Time) -> usize {
    let mut wakes = 0;
    while let Some(at) = peers.poll_timeout().filter(|at| *at <= end) {
        peers.handle_timeout(at);
        while peers.emit(at).is_some() {}
        wakes += 1;
    }
    wakes
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
        let mut peers = peers(&config());
        peers.give(Time::ZERO, address(1, 1), &datagram);
        assert_eq!(
            (peers.len(), peers.stats().garbage, peers.stats().strays),
            (0, garbage, 1 - garbage),
            "{datagram:?}"
        );
        assert_eq!((events(&mut peers), peers.poll_timeout()), (Vec::new(), None));
    }
    let mut peers = peers(&config());
    peers.give(Time::ZERO, address(1, 1), &segment(Command::Push, 127, 0));
    assert_eq!(peers.len(), 1, "the first datagrams may have been lost");
}

#[test]
fn an_address_over_its_rate_has_to_wait() {
    let mut peers = peers(&PeersConfig { accepts_per_second: 1, accept_burst: 2, ..config() });
    for round in 0..6 {
        peers.give(Time::ZERO, address(1, round), &hello(1));
        if let Some(&id) = accepted(&mut peers).first() {
            peers.close(Time::ZERO, id);
        }
    }
    assert_eq!((peers.stats().accepted, peers.stats().refused_rate), (2, 4));
    peers.give(Time::from_millis(1000), address(1, 100), &hello(1));
    assert_eq!(peers.stats().accepted, 3);
}

#[test]
fn nobody_is_accepted_while_the_events_are_not_read() {
    let mut peers = peers(&PeersConfig { idle_timeout: Duration::from_millis(1), ..config() });
    for round in 0..100 {
        let now = Time::from_millis(round * 100);
        run(&mut peers, now);
        peers.give(now, address(1, 1), &hello(1));
        while peers.emit(now).is_some() {}
    }
    assert!(peers.stats().accepted <= 8 && peers.stats().refused_full >= 90, "{:?}", peers.stats());
    events(&mut peers);
    peers.give(Time::from_millis(20_000), address(1, 1), &hello(1));
    assert_eq!(accepted(&mut peers).len(), 1);
}

#[test]
fn a_silent_session_costs_a_few_wakes_ends_at_its_time_and_can_be_read() {
    let mut peers = peers(&config());
    peers.give(Time::ZERO, address(1, 1), &hello(1));
    while peers.emit(Time::ZERO).is_some() {}
    let id = accepted(&mut peers)[0];
    let wakes = run(&mut peers, Time::from_millis(29_999));
    assert!(wakes <= 5, "{wakes} wakes for an acknowledgement and half a minute of nothing");
    assert_eq!((peers.len(), events(&mut peers)), (1, vec![]));
    assert!(peers.pop_ended().is_none());
    run(&mut peers, Time::from_millis(30_000));
    assert_eq!(peers.poll_event(), Some(PeerEvent::Closed { id, reason: PeerCloseReason::Idle }));
    assert_eq!((peers.len(), peers.stats().closed_idle, peers.poll_timeout()), (0, 1, None));
    assert_eq!(peers.pop_ended().unwrap().recv_into(&mut [0; 16]), Ok(5), "what it sent can still be read");
    assert!(peers.pop_ended().is_none() && peers.poll_event().is_none());
}

#[test]
fn delivery_is_reported_once_everything_has_arrived() {
    let mut peers = peers(&PeersConfig { eager: true, ..config() });
    let (mut kcp, now) = (client(1), Time::from_millis(1));
    kcp.send(b"hello").unwrap();
    peers.give(now, address(1, 1), &flushed(&mut kcp, now));
    let id = accepted(&mut peers)[0];
    let peer = peers.peer(id).unwrap();
    assert_eq!(peer.recv_into(&mut [0; 16]), Ok(5));
    assert!(peer.is_delivered(), "nothing was sent");
    peer.send(b"welcome").unwrap();
    assert!(!peer.is_delivered());
    while let Some((datagram, _)) = peers.emit(now) {
        kcp.input(now, &datagram).unwrap();
    }
    assert_eq!(peers.poll_event(), None);
    peers.give(now, address(1, 1), &flushed(&mut kcp, now));
    assert!(peers.emit(now).is_none());
    assert_eq!(events(&mut peers), [PeerEvent::Writable(id)]);
    assert!(peers.peer(id).unwrap().is_delivered());
    assert!(peers.emit(now).is_none() && events(&mut peers).is_empty(), "reported once");
}

#[test]
fn readable_is_reported_once_until_the_data_is_read() {
    let mut peers = peers(&config());
    let mut kcp = client(1);
    for _ in 0..3 {
        kcp.send(b"hello").unwrap();
        let datagram = flushed(&mut kcp, Time::ZERO);
        peers.give(Time::ZERO, address(1, 1), &datagram);
        peers.give(Time::ZERO, address(1, 1), &datagram);
    }
    let [PeerEvent::Accepted(id), PeerEvent::Readable(_)] = events(&mut peers)[..] else { panic!() };
    kcp.send(b"hello").unwrap();
    peers.give(Time::ZERO, address(1, 1), &flushed(&mut kcp, Time::ZERO));
    assert_eq!(events(&mut peers), [PeerEvent::Readable(id)]);
    let peer = peers.peer(id).unwrap();
    let messages = std::iter::from_fn(|| peer.recv_into(&mut [0; 16]).ok()).count();
    assert_eq!(messages, 4);
}

#[test]
fn only_registered_peers_are_served_and_only_once() {
    let mut peers = peers(&PeersConfig { strangers: Strangers::Refused, ..config() });
    peers.give(Time::ZERO, address(1, 1), &hello(7));
    assert_eq!((peers.len(), peers.stats().refused_strangers), (0, 1));
    let id = peers.register(Time::ZERO, address(1, 1), Conv(7)).unwrap();
    let taken = RegisterError::Taken { address: address(1, 1), conv: Conv(7) };
    assert_eq!(peers.register(Time::ZERO, address(1, 1), Conv(7)), Err(taken));
    for other in [(address(1, 2), 7), (address(2, 1), 7), (address(1, 1), 8)] {
        peers.give(Time::ZERO, other.0, &hello(other.1));
    }
    assert_eq!((events(&mut peers), peers.stats().refused_strangers), (vec![], 4));
    peers.give(Time::ZERO, address(1, 1), &hello(7));
    assert_eq!(events(&mut peers), [PeerEvent::Readable(id)]);
    for conv in 1..=3 {
        peers.register(Time::ZERO, address(1, 1), Conv(conv)).unwrap();
    }
    let full = peers.register(Time::ZERO, address(1, 1), Conv(4));
    assert_eq!((full, peers.len()), (Err(RegisterError::Full { max: 4 }), 4));
    run(&mut peers, Time::from_millis(60_000));
    assert!(peers.is_empty() && peers.poll_timeout().is_none());
    peers.register(Time::from_millis(60_000), address(1, 1), Conv(7)).unwrap();
}

#[test]
fn strangers_take_no_room_from_registered_peers() {
    let mut peers = peers(&config());
    for network in 1..=6 {
        peers.give(Time::ZERO, ([10, 0, network, 1], 1).into(), &hello(7));
        events(&mut peers);
    }
    assert_eq!(peers.len(), 4);
    for host in 1..=4 {
        peers.register(Time::ZERO, address(host, 2), Conv(7)).unwrap();
    }
    let full = peers.register(Time::ZERO, address(5, 2), Conv(7));
    assert_eq!((full, peers.len()), (Err(RegisterError::Full { max: 4 }), 8));
}
