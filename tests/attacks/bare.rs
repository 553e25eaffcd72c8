//! Strangers of bare KCP, whose addresses may be forged, and hostile peers whose addresses are not. Figures are bytes,
//! heap bytes and virtual time.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::machine::Whole as _;

use common::{configs, ms};
use rand::Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::{Command, Header, Segment};
use whitewater::kcp::{Config, Conv, Kcp, Millis, PeerEvent, Peers, PeersConfig, Sn, Strangers};
use whitewater::machine::{DatagramQueue, Machine as _};
use whitewater_sim::SimRng;

fn modes() -> [Config; 3] {
    [Config::default(), configs::classic_fast(), configs::classic_normal()]
}

fn config(kcp: Config) -> PeersConfig {
    PeersConfig { kcp, ..PeersConfig::default() }
}

/// One byte of data: the shortest datagram with which a conversation can begin.
fn spoofed(conv: u32) -> Vec<u8> {
    push(conv, 0, b"x")
}

fn push(conv: u32, sn: u32, data: &[u8]) -> Vec<u8> {
    segment(conv, Command::Push, Sn(sn), Millis(0), data)
}

fn segment(conv: u32, cmd: Command, sn: Sn, ts: Millis, data: &[u8]) -> Vec<u8> {
    let header = Header { conv: Conv(conv), cmd, frg: 0, wnd: 128, ts, sn, una: Sn(0) };
    let mut bytes = Vec::new();
    Segment { header, data }.encode(&mut bytes);
    bytes
}

/// An address that answers nothing: whoever has it did not ask.
fn victim(rng: &mut SimRng) -> SocketAddr {
    let [a, b, c, d, e, f, ..] = rng.next_u64().to_le_bytes();
    SocketAddr::from(([100 | a, b, c, d], u16::from_le_bytes([e, f])))
}

/// A program with bare KCP peers: it answers each message with the message and `extra` bytes.
struct Program {
    peers: Peers,
    extra: usize,
    now: Time,
}

impl Program {
    fn new(config: &PeersConfig) -> Self {
        Self {
            peers: Peers::new(config, &mut SimRng::new(1, 1)).unwrap(),
            extra: 0,
            now: Time::from_millis(1),
        }
    }

    fn give(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.peers.give(self.now, from, datagram);
        while let Some(event) = self.peers.poll_event() {
            let PeerEvent::Readable(id) = event else { continue };
            while let Some(peer) = self.peers.peer(id)
                && let Some(message) = peer.recv()
            {
                let answer = [&message[..], &vec![7; self.extra]].concat();
                if peer.send(&answer).is_err() {
                    self.peers.close(self.now, id);
                }
            }
        }
    }

    fn drain(&mut self, mut each: impl FnMut(SocketAddr, &[u8])) {
        self.peers.handle_timeout(self.now);
        let mut datagram = Vec::with_capacity(1500);
        while let Some(to) = self.peers.emit_to(self.now, &mut datagram) {
            each(to, &datagram);
        }
        while self.peers.poll_event().is_some() {}
    }
}

#[test]
fn a_spoofed_datagram_is_never_answered_with_more_than_three_times_its_bytes() {
    for kcp in modes() {
        for eager in [false, true] {
            let mut program = Program::new(&PeersConfig { eager, ..config(kcp) });
            program.extra = 100_000;
            let from = victim(&mut SimRng::new(1, 1));
            let (datagram, mut sent) = (spoofed(1), 0);
            program.give(from, &datagram);
            for _ in 0..60_000 {
                program.drain(|_, bytes| sent += bytes.len());
                program.now = program.now + ms(1);
            }
            assert!(sent <= 3 * datagram.len(), "{sent} bytes for {}", datagram.len());
        }
    }
}

#[test]
fn spoofed_peers_hold_no_memory() {
    for (count, most) in [(1024u32, 300_000), (100_000, 300_000)] {
        let mut program = Program::new(&config(Config::default()));
        let (datagram, mut rng) = (spoofed(1), SimRng::new(2, 2));
        program.extra = 100_000;
        let heap = allocation_counter::measure(|| {
            for _ in 0..count {
                program.give(victim(&mut rng), &datagram);
                program.drain(|_, _| {});
            }
        });
        assert!(heap.bytes_max < most, "{} bytes of {count} spoofed peers", heap.bytes_max);
    }
}

/// Clients as other KCP implementations are: they send, and send again until they are answered.
struct World {
    program: Program,
    clients: BTreeMap<SocketAddr, Client>,
    wire: BinaryHeap<Reverse<OnTheWay>>,
    rng: SimRng,
    /// Spoofed datagrams a second.
    flood: u64,
    /// The share of datagrams that are lost, %.
    loss: u32,
    spoofed: u64,
    number: u64,
}

/// A datagram: when it arrives, its number, whose it is, whether it goes to the server, and its bytes.
type OnTheWay = (Time, u64, SocketAddr, bool, Vec<u8>);

struct Client {
    kcp: Kcp<DatagramQueue>,
    rtt: Duration,
    /// How long each answer took.
    answered: Vec<Duration>,
    asked: Vec<Time>,
}

impl World {
    fn new(config: &PeersConfig, flood: u64, seed: u64) -> Self {
        Self {
            program: Program::new(config),
            clients: BTreeMap::new(),
            wire: BinaryHeap::new(),
            rng: SimRng::new(seed, 1),
            flood,
            loss: 0,
            spoofed: 0,
            number: 0,
        }
    }

    fn add(&mut self, config: &Config, rtt: Duration) -> SocketAddr {
        let number = u32::try_from(self.clients.len()).unwrap();
        let [_, a, b, c] = number.to_be_bytes();
        let address = SocketAddr::from(([10, a, b, c], 1000));
        let kcp = Kcp::new(Conv(number), config, DatagramQueue::new()).unwrap();
        let began = self.program.now;
        let mut client = Client { kcp, rtt, answered: vec![], asked: vec![] };
        client.ask(began);
        self.clients.insert(address, client);
        address
    }

    fn send(&mut self, at: Time, address: SocketAddr, to_server: bool, bytes: &[u8]) {
        if self.rng.next_u32() % 100 >= self.loss {
            self.number += 1;
            self.wire.push(Reverse((at, self.number, address, to_server, bytes.to_vec())));
        }
    }

    /// One millisecond.
    fn step(&mut self) {
        self.program.now = self.program.now + ms(1);
        let now = self.program.now;
        let due = self.flood * now.as_millis() / 1000;
        while self.spoofed < due {
            self.spoofed += 1;
            let from = victim(&mut self.rng);
            self.program.give(from, &spoofed(self.rng.next_u32()));
        }
        while self.wire.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Reverse((_, _, address, to_server, bytes)) = self.wire.pop().unwrap();
            if to_server {
                self.program.give(address, &bytes);
            } else if let Some(client) = self.clients.get_mut(&address) {
                client.kcp.input(now, &bytes).unwrap();
                while client.kcp.recv().is_some() {
                    client.answered.push(now.since(client.asked[client.answered.len()]));
                }
            }
        }
        let mut out = Vec::new();
        self.program.drain(|to, bytes| out.push((to, false, bytes.to_vec())));
        for (address, client) in &mut self.clients {
            client.kcp.update(now);
            while let Some(datagram) = client.kcp.output_mut().pop() {
                out.push((*address, true, datagram.to_vec()));
            }
        }
        for (address, to_server, bytes) in out {
            if let Some(client) = self.clients.get(&address) {
                self.send(now + client.rtt / 2, address, to_server, &bytes);
            }
        }
    }

    fn run(&mut self, millis: u64) {
        (0..millis).for_each(|_| self.step());
    }
}

impl Client {
    fn ask(&mut self, now: Time) {
        self.kcp.send(b"question").unwrap();
        self.asked.push(now);
    }

    /// How long it took until the first answer.
    fn took(&self) -> Option<Duration> {
        self.answered.first().copied()
    }
}

/// The share of newcomers who are answered within 3 s, %, and how long the median took. One comes each 50 ms.
fn newcomers(server: &PeersConfig, client: Config, flood: u64, loss: u32) -> (usize, Duration) {
    let mut world = World::new(server, flood, 3);
    world.loss = loss;
    world.run(2_000); // the flood is there first
    for number in 0..200 {
        world.add(&client, ms(100 + number));
        world.run(50);
    }
    world.run(4_000);
    let mut took: Vec<_> =
        world.clients.values().map(|client| client.took().unwrap_or(Duration::MAX)).collect();
    took.sort();
    (took.iter().filter(|took| **took <= ms(3000)).count() * 100 / took.len(), took[took.len() / 2])
}

#[test]
fn newcomers_get_in_beside_a_flood_of_spoofed_datagrams() {
    for kcp in modes() {
        let server = config(Config::default());
        for (flood, loss, least) in [(0, 0, 100), (330, 0, 100), (3_300, 0, 100), (3_300, 20, 80)] {
            let (share, median) = newcomers(&server, kcp, flood, loss);
            assert!(share >= least, "{share} % with {flood} a second and {loss} % loss");
            assert!(loss > 0 || median <= ms(500), "{median:?} where a round trip takes 200 ms");
        }
    }
}

#[test]
fn peers_do_not_notice_a_flood_of_spoofed_datagrams() {
    let [calm, flooded] = [0, 3_300].map(|flood| {
        let mut world = World::new(&config(Config::default()), flood, 5);
        let player = world.add(&Config::default(), ms(60));
        world.run(1_000);
        for _ in 0..200 {
            let now = world.program.now;
            world.clients.get_mut(&player).unwrap().ask(now);
            world.run(20);
        }
        world.run(500);
        let client = &world.clients[&player];
        assert_eq!(client.answered.len(), 201);
        client.answered[1..].iter().max().copied().unwrap()
    });
    assert_eq!((flooded, calm <= ms(100)), (calm, true), "{calm:?} without the flood");
}

/// The question that the listener asks, if it does.
fn question(program: &mut Program, from: SocketAddr, datagram: &[u8]) -> Option<Header> {
    let mut asked = None;
    program.give(from, datagram);
    program.drain(|to, bytes| {
        if to == from {
            assert!(bytes.len() <= datagram.len());
            asked = Some(Segment::decode(bytes).unwrap().0.header);
        }
    });
    asked
}

fn answer(question: &Header) -> Vec<u8> {
    segment(question.conv.0, Command::Ack, question.sn, question.ts, &[])
}

#[test]
fn a_proof_holds_for_one_address_one_conversation_and_a_short_time() {
    let [alice, bob] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 1000)));
    let other_port = SocketAddr::from(([10, 0, 0, 1], 1001));
    let mut program = Program::new(&config(Config::default()));
    let head = question(&mut program, alice, &spoofed(1)).unwrap();
    let other = Header { conv: Conv(2), ..head };
    let [ts, sn] = [Header { ts: Millis(head.ts.0 ^ 1), ..head }, Header { sn: Sn(head.sn.0 ^ 1), ..head }];
    for (from, head) in [(bob, head), (other_port, head), (alice, other), (alice, ts), (alice, sn)] {
        program.give(from, &answer(&head));
    }
    assert_eq!((program.peers.len(), program.peers.stats().strays), (0, 5));
    let mut late = Program::new(&config(Config::default()));
    assert_eq!(question(&mut late, alice, &spoofed(1)), Some(head), "it has no state but its key");
    late.now = late.now + Duration::from_secs(16);
    late.give(alice, &answer(&head));
    assert_eq!(late.peers.len(), 0);
    program.now = program.now + Duration::from_millis(7_900);
    program.give(alice, &answer(&head));
    assert_eq!((program.peers.len(), program.peers.stats().accepted), (1, 1));
    // A datagram is one guess: only its first acknowledgement counts.
    let head = question(&mut program, bob, &spoofed(1)).unwrap();
    let wrong = Header { sn: Sn(head.sn.0 ^ 1), ..head };
    program.give(bob, &[answer(&wrong), answer(&head)].concat());
    assert_eq!(program.peers.len(), 1);
    program.give(bob, &[answer(&head), answer(&wrong)].concat());
    assert_eq!(program.peers.len(), 2);
}

/// The network may duplicate or delay an answer until the conversation goes on.
#[test]
fn a_late_answer_measures_no_round_trip() {
    for kcp in modes() {
        let mut program = Program::new(&config(kcp));
        let from = victim(&mut SimRng::new(1, 1));
        let head = question(&mut program, from, &spoofed(1)).unwrap();
        program.give(from, &answer(&head));
        let id = program.peers.ids().next().unwrap();
        let mut sent = Vec::new();
        for _ in 0..100 {
            program.now = program.now + ms(10);
            program.drain(|_, bytes| sent.push(Segment::decode(bytes).unwrap().0.header));
        }
        let echo = sent.iter().find(|head| head.cmd == Command::Push).unwrap();
        program.give(from, &[answer(echo), answer(&head)].concat());
        let stats = |program: &mut Program| program.peers.peer(id).unwrap().kcp().stats();
        let before = stats(&mut program);
        assert_eq!((before.in_flight, before.rejected.total()), (0, 0));
        for ts in [0, 1, 1 << 30, 1 << 31, 3 << 30].map(|age| Millis(program.now.wire().0.wrapping_sub(age)))
        {
            program.give(from, &answer(&Header { ts, ..head }));
        }
        let after = stats(&mut program);
        assert_eq!((after.srtt, after.rejected.total()), (before.srtt, 0));
    }
}

#[test]
fn questions_that_wait_are_bounded() {
    let mut program = Program::new(&config(Config::default()));
    let mut rng = SimRng::new(4, 4);
    let heap = allocation_counter::measure(|| {
        (0..100_000).for_each(|_| program.give(victim(&mut rng), &spoofed(1)));
    });
    let (mut asked, stats) = (0, program.peers.stats());
    program.drain(|_, _| asked += 1);
    assert_eq!((asked, stats.asked, stats.refused_questions), (512, 512, 99_488));
    assert!(heap.bytes_max < 100_000, "{} bytes", heap.bytes_max);
}

/// The first fragments of a message that never ends, each in a datagram as long as the mtu.
fn endless(conv: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..127u8).map(move |sn| {
        let mut datagram = push(conv, sn.into(), &[7; 1376]);
        datagram[5] = 127 - sn;
        datagram
    })
}

fn hostile_address(number: u32) -> SocketAddr {
    let [_, _, a, b] = (number / 16).to_be_bytes();
    SocketAddr::from(([20, a, b, 1], 1000 + u16::try_from(number % 16).unwrap()))
}

/// As little as 1024 peers can have.
const MEMORY: u64 = 128 << 20;

/// 656 peers of 41 addresses hold what the listener gives them, while 20 others play and 20 more come.
fn besieged(memory: u64, hostile: u32) -> (World, u64) {
    let server = PeersConfig { memory, strangers: Strangers::Trusted, ..config(Config::default()) };
    let mut world = World::new(&server, 0, 6);
    world.program.extra = 100;
    let players: Vec<_> = (0..20).map(|number| world.add(&Config::default(), ms(40 + number))).collect();
    let mut newcomers = Vec::new();
    let heap = allocation_counter::measure(|| {
        world.run(300);
        for number in 0..hostile {
            for datagram in endless(number) {
                world.program.give(hostile_address(number), &datagram);
                assert!(world.program.peers.stats().memory <= memory);
            }
            if number % 16 == 0 {
                world.step();
            }
        }
        for round in 0..200 {
            let now = world.program.now;
            for player in &players {
                world.clients.get_mut(player).unwrap().ask(now);
            }
            if round % 10 == 0 {
                newcomers.push(world.add(&Config::default(), ms(100)));
            }
            world.run(20);
        }
        world.run(1_000);
    });
    assert!(world.program.peers.stats().memory <= memory);
    assert!(newcomers.iter().all(|address| world.clients[address].answered.len() == 1));
    (world, heap.bytes_max)
}

#[test]
fn the_memory_of_all_peers_is_limited_and_each_has_its_part() {
    let slowest =
        |world: &World| world.clients.values().flat_map(|client| &client.answered).max().copied().unwrap();
    let (calm, _) = besieged(MEMORY, 0);
    let (world, heap) = besieged(MEMORY, 656);
    assert!(heap <= MEMORY + MEMORY / 8, "{heap} bytes");
    assert!(world.clients.values().take(20).all(|client| client.answered.len() == 201));
    assert_eq!(slowest(&world), slowest(&calm), "honest peers do not notice");
    assert!(world.program.peers.stats().limited > 0);
}

/// The program has much to say to peers that acknowledge nothing.
#[test]
fn what_peers_do_not_acknowledge_is_within_the_memory() {
    let memory = MEMORY;
    let server = PeersConfig { memory, strangers: Strangers::Trusted, ..config(Config::default()) };
    let mut program = Program::new(&server);
    let mut refused = 0;
    let heap = allocation_counter::measure(|| {
        for number in 0..656 {
            program.peers.give(program.now, hostile_address(number), &spoofed(number));
        }
        let ids: Vec<_> = program.peers.ids().collect();
        assert_eq!(ids.len(), 656);
        for round in 0..200 {
            for id in &ids {
                let sent = program.peers.peer(*id).unwrap().send(&[7; 5_000]);
                refused += u64::from(sent.is_err_and(|error| error.is_full()));
            }
            assert!(program.peers.stats().memory <= memory, "{round}");
            if round % 10 == 0 {
                program.drain(|_, _| {});
            }
        }
    });
    assert!(heap.bytes_max <= memory + memory / 8, "{} bytes", heap.bytes_max);
    assert!(refused > 0);
    let id = program.peers.register(program.now, SocketAddr::from(([10, 0, 0, 1], 1)), Conv(1)).unwrap();
    program.peers.peer(id).unwrap().send(&[7; 2_000]).unwrap();
}

#[test]
fn one_network_takes_at_most_half_of_the_places() {
    let (strangers, accept_burst) = (Strangers::Trusted, 1000);
    let mut program = Program::new(&PeersConfig { strangers, accept_burst, ..config(Config::default()) });
    for number in 0..10_000u16 {
        let [a, b] = (number / 16).to_be_bytes();
        let address = [0x20, 0x01, 0xd, 0xb8, 0, 1, a, b, 0, 0, 0, 0, 0, 0, 0, 1];
        program.give(SocketAddr::from((address, number)), &spoofed(1));
    }
    let stats = program.peers.stats();
    assert_eq!((program.peers.len(), stats.refused_per_network), (512, 10_000 - 512));
    for number in 0..200u8 {
        program.give(SocketAddr::from(([10, 0, number, 1], 1)), &spoofed(1));
    }
    assert_eq!(program.peers.len(), 712);
    for number in 0..=255 {
        program.give(SocketAddr::from(([10, 1, 0, number], 1)), &spoofed(1));
    }
    assert_eq!(program.peers.len(), 712 + 128);
}

/// They have 40 addresses in each network, and prove all of them.
#[test]
fn four_networks_of_proven_addresses_leave_an_eighth_of_the_places() {
    let config = PeersConfig { accepts_per_second: 1000, accept_burst: 1000, ..config(Config::default()) };
    let mut program = Program::new(&config);
    let mut prove = |network: u8, host: u8, port: u16| {
        let from = SocketAddr::from(([10, 0, network, host], port));
        if let Some(head) = question(&mut program, from, &spoofed(1)) {
            program.give(from, &answer(&head));
            program.drain(|_, _| {});
        }
        program.peers.len()
    };
    let mut fill = |networks: std::ops::Range<u8>| {
        let mut len = 0;
        for network in networks {
            for (host, port) in (0..40).flat_map(|host| (0..20).map(move |port| (host, 1000 + port))) {
                len = prove(network, host, port);
            }
        }
        len
    };
    assert_eq!([fill(0..1), fill(1..4)], [512, 1024 - 128]);
    assert_eq!([fill(0..4), fill(4..5), fill(5..6)], [1024 - 128, 1024, 1024], "a fifth one");
}

/// An address of one /48, of which each /64 counts as an address.
fn of_the_network(number: u32) -> SocketAddr {
    let [a, b, c, d] = number.to_be_bytes();
    SocketAddr::from(([0x20, 0x01, 0xd, 0xb8, 0, 1, c, d, 0, 0, 0, 0, 0, 0, a, b], 1000))
}

/// Whoever has a /48 proves an address of each of its networks again and again, and the program sends them away.
#[test]
fn whoever_comes_and_goes_from_a_whole_network_keeps_nobody_out() {
    let mut program = Program::new(&config(Config::default()));
    let (mut number, mut let_in, mut others, mut refused) = (0, 0, 0, 0);
    for second in 0..3 {
        for tenth in 0..10u8 {
            for _ in 0..3_000 {
                number += 1;
                let from = of_the_network(number % 65_536);
                let conv = 1 + number / 65_536;
                let Some(head) = question(&mut program, from, &spoofed(conv)) else { continue };
                program.peers.give(program.now, from, &answer(&head));
                while let Some(event) = program.peers.poll_event() {
                    let PeerEvent::Accepted(id) = event else { continue };
                    let_in += 1;
                    program.peers.close(program.now, id);
                }
                program.drain(|_, _| {});
            }
            for host in 0..10 {
                let from = SocketAddr::from(([10, second, tenth, host], 1000));
                let head = question(&mut program, from, &spoofed(1)).unwrap();
                program.give(from, &answer(&head));
                others += 1;
            }
            program.now = program.now + ms(100);
        }
        refused = program.peers.stats().refused_rate;
        println!(
            "{second} s: {} of {others} others, {let_in} of the network, {refused} refused",
            program.peers.len()
        );
    }
    assert_eq!(program.peers.len(), others);
    assert!((100..300).contains(&let_in) && refused > 80_000, "{let_in} of the network, {refused} refused");
}

/// The program takes no events while peers fill the memory, fall silent, and others come.
#[test]
fn what_peers_have_left_behind_counts_until_the_program_knows_of_their_end() {
    let strangers = Strangers::Trusted;
    let limits = PeersConfig { memory: MEMORY, strangers, accept_burst: 64, ..config(Config::default()) };
    let mut program = Program::new(&limits);
    let heap = allocation_counter::measure(|| {
        for round in 0..3 {
            for number in 0..656 {
                for datagram in endless(1000 * round + number) {
                    program.peers.give(program.now, hostile_address(number), &datagram);
                }
                program.peers.handle_timeout(program.now);
                while program.peers.emit_to(program.now, &mut Vec::with_capacity(1500)).is_some() {}
            }
            program.now = program.now + Duration::from_secs(31);
        }
    });
    let (stats, limit) = (program.peers.stats(), MEMORY + MEMORY / 8);
    println!("{} bytes, {stats:?}", heap.bytes_max);
    assert!(stats.closed_idle > 600 && heap.bytes_max <= limit, "{} bytes", heap.bytes_max);
    assert!(stats.memory <= MEMORY);
    while program.peers.poll_event().is_some() {}
    assert!(program.peers.stats().memory < MEMORY);
}

/// 24 bytes each make room for a whole window.
#[test]
fn segments_at_the_edge_of_a_window_count_for_the_places_before_them() {
    for rcv_wnd in [128, 1024, u16::MAX] {
        let limits = PeersConfig { memory: 64 << 20, max_peers: 256, ..PeersConfig::registered() };
        let config = PeersConfig { kcp: Config { rcv_wnd, ..Config::default() }, ..limits };
        let mut peers = Peers::new(&config, &mut SimRng::new(1, 1)).unwrap();
        let (now, mut buf) = (Time::from_millis(1), Vec::new());
        let addresses: Vec<SocketAddr> = (1..=256).map(|port| ([10, 0, 0, 1], port).into()).collect();
        addresses.iter().for_each(|address| _ = peers.register(now, *address, Conv(7)).unwrap());
        let mut drain = |peers: &mut Peers| while peers.poll_transmit(now, &mut buf).is_some() {};
        drain(&mut peers);
        let before = peers.stats().memory;
        let heap = allocation_counter::measure(|| {
            for address in &addresses {
                peers.handle_datagram(now, (*address).into(), &mut push(7, u32::from(rcv_wnd) - 1, &[]));
                drain(&mut peers);
            }
        });
        let (held, counted) = (u64::try_from(heap.bytes_current).unwrap(), peers.stats().memory - before);
        println!("{rcv_wnd}: {held} bytes held, {counted} counted");
        assert!(held <= counted + 256 * 4096, "{rcv_wnd}: {held} bytes held, {counted} counted");
    }
}

/// Nothing shows that it has not received what it acknowledges, since any KCP may.
#[test]
fn a_peer_of_bare_kcp_is_sent_a_window_for_each_acknowledgement_it_makes_up() {
    let mut kcp = Kcp::new(Conv(1), &Config::default(), DatagramQueue::new()).unwrap();
    let (mut sent, mut spent, mut most) = (0, 0, 0);
    for ms in 1..=1000 {
        let now = Time::from_millis(ms);
        while kcp.send(&[1; 1000]).is_ok() {}
        kcp.update(now);
        let mut at_once = 0;
        while let Some(datagram) = kcp.output_mut().pop() {
            at_once += datagram.len();
        }
        (sent, most) = (sent + at_once, most.max(at_once));
        let una = kcp.stats().snd_nxt;
        for said in [una.add(1), una] {
            let (conv, cmd) = (Conv(1), Command::Wins);
            let header = Header { conv, cmd, frg: 0, wnd: 512, ts: Millis(0), sn: Sn(0), una: said };
            let mut lie = Vec::new();
            Segment { header, data: b"" }.encode(&mut lie);
            assert_eq!(kcp.input(now, &lie).is_ok(), said == una);
            spent += if said == una { lie.len() } else { 0 };
        }
    }
    println!("{sent} bytes in a second for {spent}, {most} at once: {} times as much", sent / spent);
    assert!(most <= 128 * 1024 && (5400..=5461).contains(&(sent / spent)), "{}", sent / spent);
}

/// Peers are closed one after the other, with much to say, and nothing leaves in the meantime.
#[test]
fn what_closed_peers_are_still_to_be_sent_counts_and_stays_within_the_memory() {
    let memory = 8 << 20;
    let limits = PeersConfig { memory, max_peers: 64, ..PeersConfig::registered() };
    let mut program = Program::new(&limits);
    let (now, mut queued) = (program.now, 0);
    let heap = allocation_counter::measure(|| {
        for number in 0..256 {
            let id = program.peers.register(now, hostile_address(number), Conv(number)).unwrap();
            let peer = program.peers.peer(id).unwrap();
            while peer.send(&[7; 1_000]).is_ok() {
                queued += 1_000;
            }
            program.peers.close(now, id);
        }
    });
    let (held, counted) = (u64::try_from(heap.bytes_current).unwrap(), program.peers.stats().memory);
    println!("{queued} bytes queued, {held} held, {counted} counted");
    assert!(counted <= memory, "{counted} bytes counted");
    assert!(held <= counted + counted / 8 + (64 << 10), "{held} bytes held, {counted} counted");
    let mut told = Vec::new();
    program.drain(|to, _| told.push(to));
    told.dedup();
    assert!(told.len() >= 8, "{} peers", told.len());
    assert_eq!(told.last(), Some(&hostile_address(255)), "the newest are kept");
    assert_eq!(program.peers.stats().memory, 0);
}
