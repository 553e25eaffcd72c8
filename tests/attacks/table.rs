//! The tables of docs/SECURITY-MODEL.md. The first is tested cell by cell: each attack is run against bare KCP and
//! against each kind of session, and its outcome has to be what the cell says.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has found something"
)]

use crate::common;

use common::machine::Whole as _;
use common::sessions::{
    PSK, START, Tapped, Toward, World, client_address, client_config, forger, kind_of, on, server_address,
    server_config,
};
use common::tokens::{NOW, SERVER_ID, by_token, key, order, requiring, verifier};
use common::{Raw, configs, ms};
use std::net::SocketAddr;
use whitewater::inside::compact::Compactor;
use whitewater::inside::session::exchange::{Attempt, Responder};
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::inside::session::wire::{Connect, Frame, FrameWriter, kind};
use whitewater::kcp::{Conv, Kcp, PeerEvent, PeerId, Peers, PeersConfig, Strangers};
use whitewater::machine::DatagramQueue;
use whitewater::session::token::Order;
use whitewater::session::{ClientState, Suite, public_key};
use whitewater::{ClientConfig, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, SimRng};

/// `tests/docs` checks that there are such tests.
#[test]
fn every_attack_in_the_document_names_a_test() {
    let tables = include_str!("../../docs/SECURITY-MODEL.md").split("| attack |").skip(1);
    let rows = tables.flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with("| ")));
    let count = rows.inspect(|row| {
        let cell = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        assert!(cell.contains('`'), "no test: {row}");
    });
    assert!(count.count() >= 11, "too few attacks");
}

/// The columns: bare KCP, and a suite of each kind.
fn columns() -> [Option<Suite>; 6] {
    let [nn, _, nn_psk, _, nk, _, nk_psk, ..] = Suite::ALL;
    [None, Some(Suite::Checked), Some(nn), Some(nn_psk), Some(nk), Some(nk_psk)]
}

/// Compares the row of the document with what `outcome` finds in each column.
pub(super) fn check(row: &str, outcome: impl Fn(Option<Suite>) -> &'static str) {
    let document = include_str!("../../docs/SECURITY-MODEL.md");
    let line =
        document.lines().find(|line| line.strip_prefix("| ").is_some_and(|line| line.starts_with(row)));
    let cells = line.unwrap().split('|').skip(2).map(|cell| cell.trim().trim_start_matches('['));
    let said: Vec<_> = cells.map(|cell| cell.split(']').next().unwrap()).take(6).collect();
    assert_eq!(said, columns().map(outcome), "{row}");
}

const fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

pub(super) const PRIVATE: [u8; 32] = [3; 32];

/// A server of that kind, and a client of it.
pub(super) fn ends(suite: Suite) -> (ServerConfig, ClientConfig) {
    let server_key = suite.needs_server_key().then_some(PRIVATE);
    let private = server_key.map(Into::into);
    let server = ServerConfig { server_key: private, ..server_config(&SessionConfig::default(), suite) };
    (server, ClientConfig { server_key: server_key.as_ref().map(public_key), ..client_config(suite) })
}

fn world(seed: u64, server: &ServerConfig, client: ClientConfig) -> World {
    let path = LinkConfig::with_rtt(ms(40));
    let mut world = World::new(seed, server);
    world.taps = true;
    world.add(&path, &path, &SessionConfig::default(), client);
    world
}

/// A session that is up, and has been recorded from the start.
fn connected(seed: u64, suite: Suite) -> World {
    let (server, client) = ends(suite);
    let mut world = world(seed, &server, client);
    world.connect();
    world.run(500);
    world
}

/// What was sent to the server.
fn recorded(world: &World) -> Vec<Vec<u8>> {
    let of_server = |(.., to, bytes): &Tapped| (*to == server_address()).then(|| bytes.clone());
    world.tap.iter().filter_map(of_server).collect()
}

/// What the server's application reads next.
fn read(world: &mut World) -> Option<Vec<u8>> {
    world.session().recv(on(0)).map(|message| message.to_vec())
}

/// A first message on the first channel, as frames.
fn forged(world: &World) -> Vec<u8> {
    let mut body = Vec::new();
    let mut segment = Raw::push(0, b"forged").of(world.sessions[0].to_bits());
    let len = Compactor::default().compact(0, &mut segment);
    FrameWriter::new(&mut body, 1400).push(&Frame::Kcp(&segment[..len])).unwrap();
    body
}

/// A listener for bare KCP, and a peer of it that has said hello.
struct Bare {
    peers: Peers,
    id: PeerId,
    client: Kcp<DatagramQueue>,
    hello: Vec<u8>,
}

const CONV: u32 = 77;

impl Bare {
    fn new() -> Self {
        let kcp = configs::classic_fast();
        let config = PeersConfig { kcp, strangers: Strangers::Trusted, ..PeersConfig::default() };
        let mut peers = Peers::new(&config, &mut SimRng::new(1, 1)).unwrap();
        let mut client = Kcp::new(Conv(CONV), &config.kcp, DatagramQueue::new()).unwrap();
        client.send(b"a plain hello").unwrap();
        client.flush(START);
        let hello = client.output_mut().pop().unwrap().to_vec();
        peers.give(START, Self::address(), &hello);
        let Some(PeerEvent::Accepted(id)) = peers.poll_event() else { panic!("not accepted") };
        Self { peers, id, client, hello }
    }

    fn address() -> SocketAddr {
        client_address(1, 1000)
    }

    /// What the listener's application reads next, once it has received this.
    fn reads(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let peer = self.peers.peer(self.id).unwrap();
        while peer.recv().is_some() {}
        self.peers.give(START, from, datagram);
        self.peers.peer(self.id).unwrap().recv().map(|message| message.to_vec())
    }
}

#[test]
fn an_off_path_attacker_impersonates_only_peers_of_bare_kcp() {
    check("an off-path attacker cannot impersonate a peer", |suite| {
        let Some(suite) = suite else {
            return yes(Bare::new().reads(Bare::address(), &Raw::push(1, b"forged").of(CONV)).is_none());
        };
        // The attacker knows everything but what crossed the network, even the session's number.
        let mut world = connected(1, suite);
        let (sid, body, from) = (world.sessions[0].to_bits(), forged(&world), world.address(0));
        for guess in 0..=255 {
            let mut seal = Seal::new(Time::ZERO, Keys::checked([guess; 8], [guess; 8], 0));
            let mut datagram = Vec::new();
            for _ in 0..100 {
                datagram.clear();
                Seal::begin(&mut datagram);
                datagram.extend_from_slice(&body);
                seal.seal(Time::ZERO, sid, &mut datagram, 0).unwrap();
            }
            world.inject(from, &datagram);
        }
        yes(read(&mut world).is_none())
    });
}

#[test]
fn an_eavesdropper_finds_no_text_in_encrypted_sessions() {
    const TEXT: &[u8] = b"the secret plan of the red team";
    check("an eavesdropper reads nothing", |suite| {
        let contains = |datagram: &[u8]| datagram.windows(TEXT.len()).any(|part| part == TEXT);
        let Some(suite) = suite else {
            let mut bare = Bare::new();
            bare.client.send(TEXT).unwrap();
            bare.client.flush(START + ms(100));
            return yes(!contains(bare.client.output_mut().pop().unwrap()));
        };
        let mut world = connected(1, suite);
        world.client().send(on(0), TEXT).unwrap();
        world.session().send(on(0), TEXT).unwrap();
        world.run(500);
        assert_eq!(read(&mut world).unwrap(), TEXT);
        yes(!world.tap.iter().any(|(.., datagram)| contains(datagram)))
    });
}

/// Whether somebody on the path gets anything accepted in a session that is up.
fn is_changed(suite: Suite) -> bool {
    let mut world = connected(1, suite);
    let from = world.address(0);
    if suite == Suite::Checked {
        let datagram = forger(&world)(Toward::Server, &forged(&world));
        world.inject(from, &datagram);
        return read(&mut world).is_some();
    }
    let end_of = |(.., to, bytes): &Tapped, is_server: bool| {
        ((*to == server_address()) == is_server).then(|| bytes.clone())
    };
    world.client().send(on(0), b"true").unwrap();
    world.session().send(on(0), b"true").unwrap();
    world.drain();
    // Both datagrams are under way. Each bit of them is changed, and the changed one is there first.
    let [up, down] = [true, false].map(|up| world.tap.iter().rev().find_map(|it| end_of(it, up)).unwrap());
    let before = [world.session().stats().received, world.client().stats().received];
    for bit in 0..8 * up.len().max(down.len()) {
        let flip = |datagram: &[u8]| {
            let mut changed = datagram.to_vec();
            *changed.get_mut(bit / 8)? ^= 1 << (bit % 8);
            Some(changed)
        };
        flip(&up).inspect(|changed| world.inject(from, changed));
        flip(&down).inspect(|changed| world.inject_client(0, changed));
    }
    let after = [world.session().stats().received, world.client().stats().received];
    let is_read = read(&mut world).is_some();
    world.run(500);
    assert_eq!(read(&mut world).unwrap(), b"true", "the true ones still count");
    is_read || before != after
}

/// Whether a client comes up at somebody else's server, who has this secret and their own private key.
fn is_fooled(suite: Suite, psk: [u8; 32]) -> bool {
    let (server, client) = ends(suite);
    let server = ServerConfig {
        psk: server.psk.map(|_| psk.into()),
        server_key: server.server_key.map(|_| [0xbb; 32].into()),
        ..server
    };
    let mut world = world(1, &server, client);
    world.run(3000);
    world.clients[0].session.state() == ClientState::Up
}

#[test]
fn nobody_on_the_path_changes_what_encrypted_sessions_carry() {
    check("an on-path attacker cannot change or insert anything", |suite| {
        let Some(suite) = suite else {
            let changed = Raw::push(1, b"changed").of(CONV);
            return yes(Bare::new().reads(Bare::address(), &changed).is_none());
        };
        match (is_changed(suite), is_fooled(suite, [0xbb; 32])) {
            (false, false) => "yes",
            (false, true) => "once it is up",
            (true, _) => "no",
        }
    });
}

#[test]
fn only_whoever_has_the_secret_or_the_private_key_passes_for_the_server() {
    check("no man in the middle", |suite| {
        let Some(suite) = suite else {
            let mut bare = Bare::new();
            bare.client.input(START, &Raw::push(0, b"I am the server").of(CONV)).unwrap();
            return yes(bare.client.recv().is_none());
        };
        match (is_fooled(suite, [0xbb; 32]), is_fooled(suite, PSK)) {
            (true, _) => "no",
            (false, true) => "anyone with the secret is",
            (false, false) => "yes",
        }
    });
}

#[test]
fn a_server_knows_its_clients_by_their_tokens() {
    check("the server knows who the client is", |suite| {
        let Some(suite) = suite else { return "no" }; // an address and a conv are all there is
        let server = requiring(verifier(SERVER_ID), ends(suite).0);
        if server.check().is_err() {
            return "no";
        }
        let (addresses, server_key) = ([server_address()], ends(suite).1.server_key);
        let order = Order { suite, server_key, ..order(99, NOW, &addresses) };
        let token = key(SERVER_ID).mint(&order, [2; 32], [2; 24]).unwrap();
        let mut world = world(1, &server, by_token(&token));
        world.connect();
        assert_eq!(world.server.pass(world.sessions[0]).unwrap().client_id, 99);
        "by token"
    });
}

#[test]
fn a_recording_of_an_encrypted_session_is_worth_nothing() {
    check("recorded packets cannot be replayed", |suite| {
        let Some(suite) = suite else {
            let mut bare = Bare::new();
            let (hello, elsewhere) = (bare.hello.clone(), client_address(9, 9));
            bare.peers.give(START, elsewhere, &hello);
            let accepted = std::iter::from_fn(|| bare.peers.poll_event()).find_map(|event| match event {
                PeerEvent::Accepted(id) => Some(id),
                _ => None,
            });
            return yes(accepted.and_then(|id| bare.peers.peer(id)?.recv()).is_none());
        };
        let mut world = connected(1, suite);
        world.client().send(on(0), b"once").unwrap();
        world.run(500);
        assert_eq!(read(&mut world).unwrap(), b"once");
        let recording = recorded(&world);
        world.run(100); // all of it has arrived
        let up = world.session().stats().received;
        for datagram in &recording {
            world.inject(world.address(0), datagram);
            world.inject(client_address(9, 9), datagram);
        }
        assert_eq!((world.session().stats().received, world.server.len()), (up, 1), "as they were");
        assert_eq!(world.session().peer_addr(), world.address(0));

        // Another session, of another server with the same secrets.
        let mut fresh = connected(2, suite);
        let heard = fresh.session().stats().received;
        for datagram in &recording {
            fresh.inject(fresh.address(0), datagram);
        }
        assert_eq!((fresh.server.len(), read(&mut fresh)), (1, None));
        let is_heard = fresh.session().stats().received > heard;
        // Without encryption, the number is changed easily.
        let is_renumbered = suite == Suite::Checked && is_changed(suite);
        yes(!is_heard && !is_renumbered)
    });
}

#[test]
fn secrets_that_leak_later_open_no_recording() {
    check("keys that leak later do not decrypt recordings", |suite| {
        let Some(suite) = suite.filter(|suite| *suite != Suite::Checked) else { return "-" }; // it has no keys
        let mut world = connected(1, suite);
        world.client().send(on(0), b"a secret").unwrap();
        world.run(500);
        let recording = recorded(&world);
        // Whoever has all long-term secrets plays the server again, with the recorded first message.
        let connect = recording.iter().find(|datagram| datagram[0] == kind::CONNECT).unwrap();
        let Connect { protocol_id, cid, client_sid, token, msg1, .. } = Connect::decode(connect).unwrap();
        let attempt = Attempt { suite, protocol_id, cid, client_sid, token };
        let (server, _) = ends(suite);
        let (psk, private) = (server.psk.as_deref(), server.server_key.as_deref());
        let (mut said, mut msg2) = (Vec::new(), Vec::new());
        let responder = Responder::read_msg1(&attempt, psk, private, [9; 32], msg1, &mut said).unwrap();
        assert!(!said.is_empty(), "what the client says as it connects is protected less");
        let mut seal = Seal::new(Time::ZERO, responder.write_msg2(&[], &mut msg2).unwrap());
        let mut data = recording.into_iter().filter(|datagram| kind_of(datagram) == kind::DATA).peekable();
        assert!(data.peek().is_some());
        yes(data.all(|mut datagram| seal.open(Time::ZERO, &mut datagram).is_err()))
    });
}

#[test]
fn a_client_with_encryption_may_move() {
    check("the client may change its address", |suite| {
        let Some(suite) = suite else {
            let (mut bare, moved) = (Bare::new(), client_address(1, 1001));
            return yes(bare.reads(moved, &Raw::push(1, b"from elsewhere").of(CONV)).is_some());
        };
        let mut world = connected(1, suite);
        world.rebind(0, client_address(9, 9));
        world.client().send(on(0), b"from elsewhere").unwrap();
        world.run(2000);
        yes(read(&mut world).is_some())
    });
}

#[test]
fn an_address_is_proven_before_a_server_works_for_it() {
    check("an address is proven before the server works for it", |suite| {
        let Some(suite) = suite else {
            let mut peers = Peers::new(&PeersConfig::default(), &mut SimRng::new(1, 1)).unwrap();
            peers.give(START, Bare::address(), &Raw::push(0, b"spoofed").of(CONV));
            return yes(peers.is_empty());
        };
        let (server, client) = ends(suite);
        let mut world = world(1, &server, client);
        world.connect();
        let connect = recorded(&world).into_iter().find(|datagram| datagram[0] == kind::CONNECT).unwrap();
        let (before, spoofed) = (world.server.stats(), client_address(9, 9));
        world.strangers.clear();
        for _ in 0..100 {
            world.inject(spoofed, &connect); // its cookie is another address's
        }
        let after = world.server.stats();
        assert_eq!(after.rejected.cookie, before.rejected.cookie + 100);
        yes(world.strangers.is_empty() && world.server.len() == 1)
    });
}
