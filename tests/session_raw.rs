//! Bare KCP peers on the socket of a session server: who is registered is served, nobody else, and sessions do not notice.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, client_address, server_config, target};
use whitewater::session::{ServerConfig, SessionConfig, raw};
use whitewater::sim::LinkConfig;
use whitewater::{Config, Conv, DatagramQueue, Kcp, Time};

const CONV: Conv = Conv(0x00c0_ff07);

fn world(seed: u64) -> World {
    let session = SessionConfig::default();
    let limits = raw::Config { kcp: Config::turbo(), ..raw::Config::registered() };
    let mut world = World::new(seed, &ServerConfig { raw: Some(limits), ..server_config(&session, SUITE) });
    let link = LinkConfig::with_rtt(ms(40));
    world.add(&link, &link, &session, target(SUITE));
    world
}

fn peers(world: &mut World) -> &mut raw::Peers {
    world.server.raw_mut().unwrap()
}

/// A stock KCP at an address of its own, 1 ms from the server.
struct Stock {
    kcp: Kcp<DatagramQueue>,
    address: std::net::SocketAddr,
    received: Vec<Vec<u8>>,
}

impl Stock {
    fn new(host: u8) -> Self {
        let kcp = Kcp::new(CONV, &Config::fast().classic(), DatagramQueue::new()).unwrap();
        Self { kcp, address: client_address(host, 7), received: Vec::new() }
    }

    /// Runs the world for a while, and this peer with it.
    fn run(&mut self, world: &mut World, millis: u64) {
        let mut buf = [0; 4000];
        for _ in 0..millis {
            world.run(1);
            for (to, datagram) in std::mem::take(&mut world.strangers) {
                if to == self.address {
                    self.kcp.input(world.now, &datagram).unwrap();
                }
            }
            self.kcp.update(world.now);
            while let Some(datagram) = self.kcp.output_mut().pop() {
                world.inject(self.address, datagram);
            }
            while let Ok(len) = self.kcp.recv(&mut buf) {
                self.received.push(buf[..len].to_vec());
            }
        }
    }
}

#[test]
fn a_registered_peer_and_a_session_share_a_socket() {
    let (mut world, mut stock) = (world(1), Stock::new(200));
    let (now, address) = (world.now, stock.address);
    let id = peers(&mut world).register(now, address, CONV).unwrap();
    stock.kcp.send(&[1; 3000]).unwrap();
    stock.run(&mut world, 500);
    let mut buf = [0; 4000];
    let peer = peers(&mut world).peer(id).unwrap();
    assert_eq!(peer.recv(&mut buf), Ok(3000));
    peer.send(&[2; 2000]).unwrap();
    world.client().send(0, b"from the session").unwrap();
    stock.run(&mut world, 500);
    assert_eq!(stock.received, [vec![2; 2000]]);
    assert_eq!(world.session().recv(0, &mut buf), Ok(16));
    let stats = world.server.raw().unwrap().stats();
    assert_eq!((stats.rejected, world.server.stats().rejected.malformed), (0, 0));
}

#[test]
fn who_is_not_registered_gets_no_answer_and_no_memory() {
    let (mut world, mut stock) = (world(2), Stock::new(200));
    let (now, other) = (world.now, client_address(201, 7));
    peers(&mut world).register(now, other, CONV).unwrap();
    stock.kcp.send(b"hello").unwrap();
    stock.run(&mut world, 1000);
    let raw = world.server.raw().unwrap();
    assert_eq!((stock.received.len(), raw.len(), stock.kcp.stats().segments_received), (0, 1, 0));
    assert!(raw.stats().refused_strangers >= 3, "{:?}", raw.stats());
}

#[test]
fn a_silent_peer_is_gone_at_its_time_and_the_server_wakes_for_it() {
    let mut world = World::new(
        3,
        &ServerConfig {
            raw: Some(raw::Config::registered()),
            ..server_config(&SessionConfig::default(), SUITE)
        },
    );
    let now = world.now;
    let id = peers(&mut world).register(now, client_address(200, 7), CONV).unwrap();
    let mut buf = Vec::new();
    while let Some((at, _)) = world.server.poll_timeout().filter(|(at, _)| *at <= Time::from_millis(60_000)) {
        world.server.handle_timeout(at);
        assert!(world.server.poll_transmit(at, &mut buf).is_none());
    }
    let closed = raw::Event::Closed { id, reason: raw::CloseReason::Idle };
    assert_eq!((peers(&mut world).poll_event(), peers(&mut world).len()), (Some(closed), 0));
}

#[test]
fn strangers_take_no_room_from_who_is_registered_and_their_convs_look_like_no_session() {
    let strangers = raw::Strangers::Proven;
    let limits = raw::Config { kcp: Config::turbo(), strangers, max_peers: 20, ..raw::Config::registered() };
    let config = server_config(&SessionConfig::default(), SUITE);
    let mut world = World::new(4, &ServerConfig { raw: Some(limits), ..config });
    let knock = |world: &mut World, host: u8, conv: u32| {
        let mut kcp = Kcp::new(Conv(conv), &Config::turbo(), DatagramQueue::new()).unwrap();
        kcp.send(b"hello").unwrap();
        kcp.flush(world.now);
        let datagram = kcp.output_mut().pop().unwrap().to_vec();
        world.inject(client_address(host, 7), &datagram);
        while peers(world).poll_event().is_some() {}
    };
    for conv in [0xa0, 0xa9, 0xbf] {
        knock(&mut world, 1, conv);
    }
    assert_eq!((peers(&mut world).len(), world.server.stats().rejected.malformed), (0, 3));
    for host in 1..=30 {
        knock(&mut world, host, 7);
    }
    assert_eq!(peers(&mut world).len(), 20);
    let now = world.now;
    for host in 1..=20 {
        peers(&mut world).register(now, client_address(host, 9), CONV).unwrap();
    }
    let full = peers(&mut world).register(now, client_address(21, 9), CONV);
    assert_eq!(full, Err(raw::RegisterError::Full { max: 20 }));
}
