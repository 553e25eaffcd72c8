//! Two ends of ours with kcp-go's wrapping, in virtual time. The crate `interop` tests the real programs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "../examples/kcp_go/limits.rs"]
mod example;
#[path = "../../../tests/common/machine.rs"]
mod machine;

use machine::Whole as _;
use rand::Rng;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{self, Conv, Kcp, PeerEvent, PeerId, Peers, PeersConfig, Recovery, Strangers};
use whitewater::machine::{DatagramQueue, Machine as _};
use whitewater_kcp_go::{Config as Wire, Crypt, Key, Mode, Shards, Stats};
use whitewater_sim::{Link, LinkConfig, Loss, SimRng};

const CONV: Conv = Conv(0x1122_3344);

fn client_address() -> SocketAddr {
    "10.0.0.1:1000".parse().unwrap()
}

fn server_address() -> SocketAddr {
    "10.0.0.9:4000".parse().unwrap()
}

fn wire(crypt: Crypt, shards: Option<(u8, u8)>) -> Wire {
    let shards = shards.map(|(data, parity)| Shards { data, parity });
    Wire { crypt, shards, ..Wire::kcptun(Key::kcptun("interop key")) }
}

fn limits(kcp: kcp::Config, wire: Wire) -> PeersConfig {
    PeersConfig { kcp, envelope: Some(Arc::new(wire)), ..PeersConfig::default() }
}

fn peers(config: &PeersConfig, seed: u64) -> Peers {
    Peers::new(config, &mut SimRng::new(seed, 9)).unwrap()
}

/// A client, a server, and a path between them.
struct World {
    now: Time,
    client: Peers,
    server: Peers,
    /// The server, as the client knows it.
    to: PeerId,
    there: Link,
    back: Link,
    accepted: Vec<PeerId>,
    /// Datagrams and bytes that left each end, the client's first.
    sent: [(u64, u64); 2],
    buf: Vec<u8>,
}

impl World {
    fn new(client: &PeersConfig, server: &PeersConfig, path: LinkConfig, seed: u64) -> Self {
        let (now, mut client) = (Time::from_millis(1), peers(client, seed));
        let to = client.register(now, server_address(), CONV).unwrap();
        Self {
            now,
            client,
            server: peers(server, seed + 1),
            to,
            there: Link::new(path.clone(), seed, 1).unwrap(),
            back: Link::new(path, seed, 2).unwrap(),
            accepted: Vec::new(),
            sent: [(0, 0); 2],
            buf: Vec::new(),
        }
    }

    /// Both ends have the same settings.
    fn both(kcp: kcp::Config, wire: Wire, path: LinkConfig, seed: u64) -> Self {
        let limits = limits(kcp, wire);
        Self::new(&limits, &limits, path, seed)
    }

    fn step(&mut self) {
        while let Some(datagram) = self.there.arrive(self.now) {
            self.buf.clear();
            self.buf.extend_from_slice(datagram);
            self.server.handle_datagram(self.now, client_address().into(), &mut self.buf);
        }
        while let Some(datagram) = self.back.arrive(self.now) {
            self.buf.clear();
            self.buf.extend_from_slice(datagram);
            self.client.handle_datagram(self.now, server_address().into(), &mut self.buf);
        }
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        while self.client.emit_to(self.now, &mut self.buf).is_some() {
            self.sent[0] = (self.sent[0].0 + 1, self.sent[0].1 + self.buf.len() as u64);
            self.there.send(self.now, &self.buf);
        }
        while self.server.emit_to(self.now, &mut self.buf).is_some() {
            self.sent[1] = (self.sent[1].0 + 1, self.sent[1].1 + self.buf.len() as u64);
            self.back.send(self.now, &self.buf);
        }
        while let Some(event) = self.server.poll_event() {
            if let PeerEvent::Accepted(id) = event {
                self.accepted.push(id);
            }
        }
        while self.client.poll_event().is_some() {}
    }

    /// Runs for so many milliseconds.
    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.step();
            self.now = self.now + Duration::from_millis(1);
        }
    }

    fn send(&mut self, message: &[u8]) {
        self.client.peer(self.to).unwrap().send(message).unwrap();
    }

    /// The messages that the server received from its first peer.
    fn received(&mut self) -> Vec<Vec<u8>> {
        let Some(&id) = self.accepted.first() else { return Vec::new() };
        let (mut buf, peer) = ([0; 4096], self.server.peer(id).unwrap());
        std::iter::from_fn(|| peer.recv_into(&mut buf).ok().map(|len| buf[..len].to_vec())).collect()
    }

    fn stats(&self) -> [Stats; 2] {
        [Stats::of(self.client.envelope()).unwrap(), Stats::of(self.server.envelope()).unwrap()]
    }
}

fn path(rtt: u64, loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(Duration::from_millis(rtt)) }
}

/// By time, with ikcp.c's windows.
fn turbo() -> kcp::Config {
    kcp::Config { snd_wnd: 32, snd_queue: 4096, ..kcp::Config::default() }
}

#[test]
fn every_cipher_works_both_ways_through_loss_with_and_without_parity() {
    for crypt in Crypt::ALL {
        for shards in [None, Some((10, 3))] {
            let mut world = World::both(Mode::Fast3.config(), wire(crypt, shards), path(20, 0.1), 3);
            let sent: Vec<u8> = (0..30_000u32).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
            let (mut there, mut back, mut buf) = (Vec::new(), Vec::new(), [0; 4096]);
            world.send(&sent);
            for _ in 0..2000 {
                world.run(1);
                for part in world.received() {
                    world.server.peer(world.accepted[0]).unwrap().send(&part).unwrap();
                    there.extend(part);
                }
                while let Ok(len) = world.client.peer(world.to).unwrap().recv_into(&mut buf) {
                    back.extend_from_slice(&buf[..len]);
                }
            }
            assert!(
                there == sent && back == sent,
                "{crypt}, {shards:?}: {} and {} bytes",
                there.len(),
                back.len()
            );
            let stats = world.stats();
            let lost: u64 =
                stats.iter().map(|stats| stats.unreadable + stats.malformed + stats.misplaced).sum();
            assert_eq!(lost, 0, "{crypt}, {shards:?}: {stats:?}");
            assert_eq!(stats.iter().any(|stats| stats.recovered > 0), shards.is_some(), "{crypt}: {stats:?}");
        }
    }
}

/// Latencies of messages of 200 bytes sent every 5 ms, in ms and in order; resends; bytes sent by the client.
fn latencies(shards: Option<(u8, u8)>, seed: u64) -> (Vec<u64>, u64, u64) {
    let kcp = kcp::Config { mtu: 1350, ..turbo() };
    let mut world = World::both(kcp, wire(Crypt::Aes, shards), path(60, 0.05), seed);
    let mut latencies = Vec::new();
    for tick in 0..12_000u64 {
        if tick % 5 == 0 && tick < 10_000 {
            let message = [world.now.as_micros().to_le_bytes().to_vec(), vec![7; 192]].concat();
            world.send(&message);
        }
        world.run(1);
        for message in world.received() {
            let sent = u64::from_le_bytes(message[..8].try_into().unwrap());
            latencies.push((world.now.as_micros() - sent) / 1000);
        }
    }
    let stats = world.client.peer(world.to).unwrap().stats();
    let resends = u64::from(stats.resends_timeout + stats.resends_fast);
    latencies.sort_unstable();
    (latencies, resends, world.sent[0].1)
}

#[test]
fn parity_saves_most_losses_a_round_trip_at_its_share_of_bytes() {
    for seed in 1..=3 {
        let ((plain, plain_resends, plain_bytes), (fec, fec_resends, fec_bytes)) =
            (latencies(None, seed), latencies(Some((5, 2)), seed));
        assert_eq!((plain.len(), fec.len()), (2000, 2000), "seed {seed}");
        let p99 = |latencies: &[u64]| latencies[latencies.len() * 99 / 100];
        let over_a_trip = |latencies: &[u64]| latencies.iter().filter(|ms| **ms > 70).count();
        let told = format!(
            "seed {seed}: p99 {} and {} ms, {} and {} of 2000 above 70 ms, {plain_resends} and {fec_resends} resends, {:.2} of the bytes",
            p99(&plain),
            p99(&fec),
            over_a_trip(&plain),
            over_a_trip(&fec),
            fec_bytes as f64 / plain_bytes as f64,
        );
        println!("{told}");
        assert!(over_a_trip(&fec) * 3 < over_a_trip(&plain), "{told}");
        assert!(fec_bytes * 100 < plain_bytes * 160, "{told}");
    }
}

#[test]
fn an_end_without_parity_accepts_data_shards() {
    let kcp = Mode::Fast3.config();
    for (there, back) in [(Some((10, 3)), None), (None, Some((10, 3)))] {
        let mut world = World::new(
            &limits(kcp, wire(Crypt::Aes, there)),
            &limits(kcp, wire(Crypt::Aes, back)),
            path(20, 0.05),
            5,
        );
        world.send(&[9; 60_000]);
        world.run(2000);
        assert_eq!(world.received().concat().len(), 60_000, "{there:?} and {back:?}");
        let [client, server] = world.stats();
        let has_parity = |shards: Option<(u8, u8)>| shards.is_some();
        assert_eq!(server.parity_unused > 0, has_parity(there), "{server:?}");
        assert_eq!((client.recovered, server.recovered), (0, 0));
    }
}

#[test]
fn another_conv_from_the_same_address_opens_and_ends_no_session() {
    let mut world = World::both(turbo(), wire(Crypt::Null, None), path(20, 0.0), 1);
    world.send(b"first");
    world.run(50);
    // What ends a session of kcp-go: one datagram with the number 0 from the client's address.
    let mut forger = Kcp::new(Conv(99), &turbo(), DatagramQueue::new()).unwrap();
    forger.send(b"forged").unwrap();
    forger.flush(world.now);
    world.server.give(world.now, client_address(), forger.output_mut().pop().unwrap());
    world.run(10);
    assert_eq!(world.accepted.len(), 1, "the client answers no question about it");
    world.send(b"second");
    world.run(50);
    assert_eq!(world.received(), [b"first".to_vec(), b"second".to_vec()]);
}

#[test]
fn a_stranger_is_sent_no_more_than_it_sent_and_no_parity() {
    for crypt in [Crypt::Null, Crypt::Aes, Crypt::Aes128Gcm] {
        let limits = limits(turbo(), wire(crypt, Some((1, 3))));
        let server = PeersConfig { strangers: Strangers::Proven, ..limits.clone() };
        let mut world = World::new(&limits, &server, path(20, 0.0), 1);
        world.send(&[1]);
        world.run(25); // the question is there, and no answer has arrived
        let [from_client, to_client] = world.sent.map(|(_, bytes)| bytes);
        assert!(to_client > 0 && to_client <= from_client, "{crypt}: {:?}", world.sent);
        assert_eq!((world.stats()[1].parity_sent, world.accepted.len()), (0, 0));
        world.run(20);
        let id = world.accepted[0];
        for _ in 0..20 {
            world.server.peer(id).unwrap().send(&[2; 1000]).unwrap();
        }
        world.run(200);
        assert!(world.sent[1].1 > 20_000, "{:?}", world.sent);
        assert!(world.stats()[1].parity_sent > 0);
    }
}

/// The datagrams of three messages with parity of 2 + 1, and a server with this policy that knows nobody.
fn shards_for(strangers: Strangers) -> (Vec<Vec<u8>>, Peers) {
    let limits = limits(turbo(), wire(Crypt::Null, Some((2, 1))));
    let (now, mut client, mut sent) = (Time::from_millis(1), peers(&limits, 1), Vec::new());
    let to = client.register(now, server_address(), CONV).unwrap();
    for message in [b"one", b"two"] {
        client.peer(to).unwrap().send(message).unwrap();
        while let Some((datagram, _)) = client.emit(now) {
            sent.push(datagram.to_vec());
        }
    }
    assert_eq!(sent.len(), 3);
    (sent, peers(&PeersConfig { strangers, ..limits }, 2))
}

/// How many of 300 sessions of one host that start together are served within two seconds, over a path of 20
/// ms.
fn served_of_300(server: &PeersConfig) -> usize {
    let mut server = peers(server, 1);
    let client_limits = limits(turbo(), wire(Crypt::Salsa20, Some((10, 3))));
    let (mut now, mut there, mut back) = (Time::from_millis(1), VecDeque::new(), VecDeque::new());
    let mut clients: Vec<_> = (0..300u16)
        .map(|number| {
            let mut client = peers(&client_limits, 2 + u64::from(number));
            let to = client.register(now, server_address(), Conv(1 + 256 * u32::from(number))).unwrap();
            client.peer(to).unwrap().send(b"hello").unwrap();
            (client, to, SocketAddr::from(([10, 0, 0, 1], 1000 + number)), false)
        })
        .collect();
    while now < Time::from_millis(2000) {
        for (client, to, address, served) in &mut clients {
            client.handle_timeout(now);
            while let Some((datagram, _)) = client.emit(now) {
                there.push_back((now, *address, datagram.to_vec()));
            }
            *served |= client.peer(*to).unwrap().recv_into(&mut [0; 16]) == Ok(5);
        }
        while there.front().is_some_and(|(sent, ..)| now.since(*sent) >= DELAY) {
            let (_, from, datagram) = there.pop_front().unwrap();
            server.give(now, from, &datagram);
        }
        while let Some(event) = server.poll_event() {
            if let PeerEvent::Readable(id) = event
                && let Some(peer) = server.peer(id)
            {
                let mut buf = [0; 16];
                let len = peer.recv_into(&mut buf).unwrap();
                peer.send(&buf[..len]).unwrap();
            }
        }
        server.handle_timeout(now);
        while let Some((datagram, to)) = server.emit(now) {
            back.push_back((now, to, datagram.to_vec()));
        }
        while back.front().is_some_and(|(sent, ..)| now.since(*sent) >= DELAY) {
            let (_, to, datagram) = back.pop_front().unwrap();
            let (client, ..) = &mut clients[usize::from(to.port() - 1000)];
            client.give(now, server_address(), &datagram);
        }
        now = now + Duration::from_millis(1);
    }
    clients.iter().filter(|(.., served)| *served).count()
}

/// Delay in one direction.
const DELAY: Duration = Duration::from_millis(20);

#[test]
fn a_server_of_kcptun_serves_300_sessions_of_one_host_within_two_seconds() {
    let (kcp, wire) = (turbo(), wire(Crypt::Salsa20, Some((10, 3))));
    assert_eq!(served_of_300(&example::limits(kcp, wire.clone())), 300, "with the limits of the example");
    assert_eq!(served_of_300(&limits(kcp, wire)), 16, "limits for players");
}

#[test]
fn the_guide_has_the_limits_of_the_example() {
    let example = include_str!("../examples/kcp_go/limits.rs");
    let knobs = example.lines().map(str::trim).filter(|line| line.ends_with("1024,"));
    let knobs: Vec<_> = knobs.collect();
    assert_eq!(knobs.len(), 4);
    let guide = include_str!("../../../docs/migrate/kcp-go.md");
    assert!(knobs.iter().all(|knob| guide.contains(knob)), "{knobs:?}");
}

#[test]
fn nothing_is_rebuilt_for_a_stranger() {
    for (strangers, expected) in [(Strangers::Trusted, (1, [1, 0])), (Strangers::Proven, (0, [0, 1]))] {
        let (sent, mut server) = shards_for(strangers);
        for datagram in [&sent[0], &sent[2]] {
            server.give(Time::from_millis(2), client_address(), datagram);
        }
        let stats = Stats::of(server.envelope()).unwrap();
        assert_eq!((server.len(), [stats.recovered, stats.parity_unused]), expected, "{strangers:?}");
    }
}

#[test]
fn a_stranger_takes_no_parity_from_a_peer_at_the_same_address() {
    let (sent, mut server) = shards_for(Strangers::Proven);
    let now = Time::from_millis(2);
    server.register(now, client_address(), CONV).unwrap();
    let mut forged = sent[0].clone();
    forged[8] ^= 1; // in the conv
    for datagram in [&sent[0], &forged, &sent[2]] {
        server.give(now, client_address(), datagram);
    }
    assert_eq!((server.len(), Stats::of(server.envelope()).unwrap().recovered), (1, 1));
}

#[test]
fn shards_with_bad_kcp_are_ignored_and_bad_rebuilt_kcp_is_counted() {
    let (sent, mut server) = shards_for(Strangers::Trusted);
    let mut take = |datagram: &[u8]| {
        server.give(Time::from_millis(2), client_address(), datagram);
        (server.stats().rejected, Stats::of(server.envelope()).unwrap())
    };
    take(&sent[0]);
    let mut forged = sent[1].clone();
    forged[8 + 4] = 82; // an ACK of a segment that was never sent
    forged[8 + 12] = 200;
    assert_eq!(take(&forged).0, 1);
    let (_, stats) = take(&sent[2]);
    assert_eq!((stats.recovered, stats.refused), (1, 0), "rebuilt from the two good ones");
    let (_, stats) = take(&sent[1]);
    assert_eq!(stats.duplicates, 0, "more than enough arrived, and this one was not there before");

    let (sent, mut server) = shards_for(Strangers::Trusted);
    let mut parity = sent[2].clone();
    parity[8] ^= 1; // in the conv
    for datagram in [&sent[0], &parity] {
        server.give(Time::from_millis(2), client_address(), datagram);
    }
    let stats = Stats::of(server.envelope()).unwrap();
    assert_eq!((stats.recovered, stats.refused), (1, 1));
}

#[test]
fn a_parity_shard_counts_as_heard_only_if_it_rebuilds_something() {
    let (sent, _) = shards_for(Strangers::Trusted);
    let [_, second, parity] = &sent[..] else { panic!("{} datagrams", sent.len()) };
    let wire = wire(Crypt::Null, Some((2, 1)));
    let mut peer =
        kcp::Link::with_envelope(client_address(), CONV, &turbo(), &wire, &mut SimRng::new(1, 9)).unwrap();
    let mut forged = parity.clone();
    forged[0] = 5; // the parity of the next group
    let mut take = |datagram: &[u8]| {
        peer.give(Time::from_millis(2), client_address(), datagram);
        (peer.taken(), Stats::of(peer.envelope()).unwrap().recovered)
    };
    assert_eq!(take(&forged), (0, 0), "anybody can forge one");
    assert_eq!(take(second), (1, 0));
    assert_eq!(take(parity), (2, 1));
    assert_eq!(take(parity), (2, 1), "a duplicate");
}

#[test]
fn an_empty_message_is_refused_because_kcp_go_gets_stuck_on_it() {
    let mut world = World::both(turbo(), wire(Crypt::Null, None), path(20, 0.0), 1);
    let peer = world.client.peer(world.to).unwrap();
    assert_eq!(peer.send(b""), Err(kcp::SendError::Empty));
    assert_eq!(peer.kcp_mut().send_end(), Err(kcp::SendError::Empty));
    assert_eq!(peer.kcp_mut().send_bytes(Vec::new().into()), Err(kcp::SendError::Empty));
    world.run(500);
    assert_eq!(world.sent[0], (0, 0));
}

#[test]
fn delays_are_the_configured_ones() {
    // A message every 10 ms, and an interval of 100 ms: how many datagrams leave the client and the server in
    // a second.
    for (write_delay, ack_no_delay, client, server) in
        [(false, true, 95..=105, 95..=105), (false, false, 95..=105, 9..=11), (true, true, 9..=11, 9..=11)]
    {
        for classic in [false, true] {
            let kcp = kcp::Config { interval: 100, ..turbo() };
            let recovery = if classic { Recovery::Classic } else { kcp.recovery };
            let kcp = kcp::Config { recovery, ..kcp };
            let wire = Wire { write_delay, ack_no_delay, ..wire(Crypt::Aes, None) };
            let mut world = World::both(kcp, wire, path(2, 0.0), 1);
            for round in 0..130 {
                if round == 30 {
                    world.sent = [(0, 0); 2];
                }
                world.send(&[7; 20]);
                world.run(10);
                world.received();
            }
            let told = format!("write_delay {write_delay}, ack_no_delay {ack_no_delay}, classic {classic}");
            assert!(client.contains(&world.sent[0].0), "{told}: {:?}", world.sent);
            assert!(server.contains(&world.sent[1].0), "{told}: {:?}", world.sent);
        }
    }
}

#[test]
fn hostile_datagrams_are_counted_and_change_nothing() {
    for (seed, crypt) in [Crypt::Null, Crypt::None, Crypt::Aes, Crypt::Aes128Gcm].into_iter().enumerate() {
        let (mut world, mut rng) =
            (World::both(turbo(), wire(crypt, Some((10, 3))), path(20, 0.0), 1), SimRng::new(seed as u64, 1));
        world.send(b"before");
        world.run(100);
        let recorded = {
            world.send(b"recorded");
            world.client.handle_timeout(world.now);
            world.client.emit(world.now).unwrap().0.to_vec()
        };
        for _ in 0..20_000 {
            let mut datagram = recorded.clone();
            match rng.next_u64() % 3 {
                0 => datagram.truncate(usize::try_from(rng.next_u64() % 100).unwrap()),
                1 => datagram.resize_with(usize::try_from(rng.next_u64() % 1600).unwrap(), || {
                    rng.next_u64().to_le_bytes()[0]
                }),
                _ => datagram.fill_with(|| rng.next_u64().to_le_bytes()[0]),
            }
            let from =
                if rng.next_u64() % 2 == 0 { client_address() } else { "10.6.6.6:666".parse().unwrap() };
            world.server.give(world.now, from, &datagram);
        }
        let stats = world.stats()[1];
        if crypt != Crypt::Null {
            assert!(stats.unreadable + stats.too_long > 15_000, "{crypt}: {stats:?}");
        }
        assert!(world.server.len() <= 1 + 16, "{crypt}: {} peers", world.server.len());
        world.send(b"after");
        world.run(2000);
        let received = world.received();
        assert!(
            received.starts_with(&[b"before".to_vec()]) && received.ends_with(&[b"after".to_vec()]),
            "{crypt}: {received:?}"
        );
    }
}

#[test]
fn a_datagram_without_effect_allocates_nothing() {
    let kcp = kcp::Config { snd_wnd: 256, rcv_wnd: 256, ..Mode::Fast3.config() };
    let mut world = World::both(kcp, wire(Crypt::Aes, Some((10, 3))), path(20, 0.0), 1);
    let mut buf = [0; 4096];
    let mut round = |world: &mut World| {
        world.send(&[7; 4000]);
        world.run(5);
        if let Some(&id) = world.accepted.first() {
            let peer = world.server.peer(id).unwrap();
            while peer.recv_into(&mut buf).is_ok() {}
        }
    };
    (0..500).for_each(|_| round(&mut world));
    let before = world.sent[0].0;
    let counted = allocation_counter::measure(|| (0..200).for_each(|_| round(&mut world)));
    let datagrams = world.sent[0].0 - before;
    assert!(datagrams > 700, "{datagrams}");
    assert_eq!(counted.count_total, 0, "for {datagrams} datagrams");
}

#[test]
fn a_config_out_of_range_names_its_field() {
    let field = |config: PeersConfig| config.check().unwrap_err().field;
    let fits = limits(Mode::Fast.config(), wire(Crypt::Aes, Some((10, 3))));
    assert_eq!(fits.check(), Ok(()));
    assert_eq!(
        field(PeersConfig { kcp: kcp::Config { mtu: 1501, rcv_mtu: 1501, ..fits.kcp }, ..fits.clone() }),
        "mtu"
    );
    assert_eq!(field(PeersConfig { kcp: kcp::Config { mtu: 77, ..fits.kcp }, ..fits.clone() }), "mtu"); // 50 + 28
    for (shards, name) in [((0, 3), "data"), ((3, 0), "parity"), ((200, 57), "data + parity")] {
        assert_eq!(field(limits(fits.kcp, wire(Crypt::Aes, Some(shards)))), name);
    }
}
