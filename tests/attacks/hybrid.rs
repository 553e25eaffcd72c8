//! Hybrid suites: what somebody with a quantum computer reads later, and what others do to the handshake meanwhile.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use super::table::{PRIVATE, check, ends};
use crate::common;

use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use common::machine::Whole as _;
use common::ms;
use common::sessions::{
    PSK, START, World, client_address, client_config, kind_of, on, random, server_address,
};
use rand::Rng as _;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use std::net::SocketAddr;
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::inside::session::wire::{
    Accept, Connect, KEM_KEY_LEN, KEM_SEALED_LEN, KemCiphertext, KemKey, kind,
};
use whitewater::machine::Machine as _;
use whitewater::session::{Cipher, Client, ClientState, DenyReason, Pattern, Server, Suite, public_key};
use whitewater::{CloseReason, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::{LinkConfig, Loss};

const HYBRID: Suite = Suite::HYBRID_TOKEN;

/// A client and a server whose datagrams pass through the test's hands.
struct Hands {
    now: Time,
    client: Client,
    server: Server,
    events: Vec<(SessionId, Event)>,
}

impl Hands {
    fn new(seed: u64, server: &ServerConfig) -> Self {
        let mut client = Client::new(&client_config(server.suites[0]), random(seed, 1)).unwrap();
        client.connect(START, &[server_address()]).unwrap();
        let server = Server::new(server, random(seed, 2)).unwrap();
        Self { now: START, client, server, events: Vec::new() }
    }

    fn home() -> SocketAddr {
        client_address(1, 1)
    }

    /// What the client and the server send now, in which `hand` may change, drop or add something.
    fn step(&mut self, hand: &mut impl FnMut(&mut Vec<Vec<u8>>)) {
        self.now = self.now + ms(10);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        let mut up: Vec<_> =
            std::iter::from_fn(|| self.client.emit(self.now)).map(|(sent, _)| sent).collect();
        hand(&mut up);
        up.iter().for_each(|datagram| self.server.give(self.now, Self::home(), datagram));
        let mut down: Vec<_> =
            std::iter::from_fn(|| self.server.emit(self.now)).map(|(sent, _)| sent).collect();
        hand(&mut down);
        down.iter().for_each(|datagram| self.client.give(self.now, server_address(), datagram));
        self.events.extend(std::iter::from_fn(|| self.server.poll_event()));
    }

    /// Runs for that many ms, until both ends are up. Returns whether they are.
    fn run(&mut self, span: u64, mut hand: impl FnMut(&mut Vec<Vec<u8>>)) -> bool {
        for _ in 0..span / 10 {
            if self.is_up() {
                return true;
            }
            self.step(&mut hand);
        }
        self.is_up()
    }

    fn is_up(&self) -> bool {
        self.events.iter().any(|(_, event)| *event == Event::Connected)
            && self.client.state() == ClientState::Up
    }
}

fn of_kind(datagrams: &[Vec<u8>], kind: u8) -> Option<&Vec<u8>> {
    datagrams.iter().find(|datagram| datagram[0] == kind)
}

/// 30 % of the datagrams get lost each way, others come twice or late.
#[test]
fn hybrid_sessions_come_up_on_the_worst_paths() {
    let path = LinkConfig {
        loss: Loss::Random(0.3),
        duplicate: 0.1,
        jitter: ms(60),
        in_order: false,
        ..LinkConfig::with_rtt(ms(80))
    };
    let (mut took, seeds) = ([0, 0], 60);
    for seed in 1..=seeds {
        for (index, suite) in [HYBRID, Suite::TOKEN].into_iter().enumerate() {
            let mut world = World::pair(seed, &path, &SessionConfig::default(), suite);
            world.connect();
            took[index] += world.now.since(START).as_millis();
            world.client().send(on(0), b"to the server").unwrap();
            world.session().send(on(0), b"to the client").unwrap();
            let both = |world: &mut World| {
                world.session().peek_size(on(0)).is_some() && world.client().peek_size(on(0)).is_some()
            };
            assert!(world.run_until(10_000, both), "seed {seed}, {suite:?}");
            assert_eq!(world.session().recv(on(0)).unwrap(), "to the server", "seed {seed}");
            assert_eq!(world.client().recv(on(0)).unwrap(), "to the client", "seed {seed}");
            let rejected = [world.client().stats(), world.session().stats()].map(|stats| stats.rejected);
            assert_eq!(rejected.map(|rejected| rejected.forged), [0, 0], "seed {seed}");
        }
    }
    let [hybrid, noise] = took.map(|took| took / u128::from(seeds));
    assert!(hybrid < 2 * noise, "{hybrid} ms, {noise} without a KEM");
}

/// On a good path: two datagrams more, and no round trip more.
#[test]
fn a_hybrid_handshake_takes_two_datagrams_more_and_no_round_trip_more() {
    let mut seen = Vec::new();
    for pattern in [Pattern::Nn, Pattern::NnPsk0, Pattern::Nk, Pattern::NkPsk0] {
        let [mut before, mut after] = [Suite::Noise, Suite::Hybrid].map(|family| {
            let (server, client) = ends(family(pattern, Cipher::ChaChaPoly));
            let path = LinkConfig::with_rtt(ms(40));
            let mut world = World::new(1, &server);
            world.taps = true;
            world.add(&path, &path, &SessionConfig::default(), client);
            world.run_until(1_000, |world| !world.sessions.is_empty());
            world
        });
        assert_eq!(before.now, after.now, "{pattern:?}");
        assert_eq!(before.clients[0].events[0].0, after.clients[0].events[0].0, "{pattern:?}");
        let lens = |world: &mut World| -> Vec<_> {
            std::mem::take(&mut world.tap).iter().map(|(.., bytes)| (kind_of(bytes), bytes.len())).collect()
        };
        let [before, after] = [lens(&mut before), lens(&mut after)];
        let kinds = |of: &[(u8, usize)]| of.iter().map(|(kind, _)| *kind).collect::<Vec<_>>();
        let mut expected = kinds(&before);
        expected.insert(4, kind::KEM_CIPHERTEXT);
        expected.insert(4, kind::KEM_KEY);
        assert_eq!(kinds(&after), expected, "{pattern:?}");
        assert_eq!((after[2].1, after[3].1, after[4].1, after[5].1), (1200, before[3].1 + 32, 1194, 1109));
        seen.push((before, after));
    }
    for (before, after) in seen {
        let bytes = |of: &[(u8, usize)]| of.iter().map(|(_, len)| len).sum::<usize>();
        println!(
            "{} datagrams, {} bytes; hybrid {}, {}",
            before.len(),
            bytes(&before),
            after.len(),
            bytes(&after)
        );
    }
}

/// snow's own primitives, with these random bytes.
struct Known([u8; 32]);

impl CryptoResolver for Known {
    fn resolve_rng(&self) -> Option<Box<dyn snow::types::Random>> {
        Some(Box::new(Self(self.0)))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn snow::types::Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn snow::types::Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn snow::types::Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl snow::types::Random for Known {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        bytes.copy_from_slice(&self.0);
        Ok(())
    }
}

/// What a quantum computer finds out: the private halves of all X25519 keys. This one gets them from the random bytes
/// of the client. Returns the keys of packets to the server and to the client as the two messages give them.
fn broken(suite: Suite, world: &World, psk: Option<&[u8; 32]>) -> Option<([u8; 32], [u8; 32])> {
    let find = |kind| world.tap.iter().find(|(.., bytes)| bytes[0] == kind).map(|(.., bytes)| bytes.clone());
    let (connect, accept) = (find(kind::CONNECT).unwrap(), find(kind::ACCEPT).unwrap());
    let Connect { protocol_id, cid, client_sid, token, .. } = Connect::decode(&connect).unwrap();
    let attempt =
        whitewater::inside::session::exchange::Attempt { suite, protocol_id, cid, client_sid, token };
    let mut drawn = random(1, 2000);
    let mut secret = [0; 32];
    drawn.fill_bytes(&mut secret[..8]);
    drawn.fill_bytes(&mut secret[..4]);
    drawn.fill_bytes(&mut secret);
    if suite.is_hybrid() {
        let mut mac = Blake2sMac256::new(&secret.into());
        mac.update(b"ww/1 x25519");
        secret = mac.finalize_fixed().into();
    }
    let name = ["NN", "NNpsk0", "NK", "NKpsk0"][usize::from(suite.code() >> 8 & 0x7f) - 1];
    let params = format!("Noise_{name}_25519_ChaChaPoly_BLAKE2s").parse().unwrap();
    let prologue = attempt.prologue();
    let mut builder =
        snow::Builder::with_resolver(params, Box::new(Known(secret))).prologue(&prologue).unwrap();
    let public = public_key(&PRIVATE);
    if suite.needs_psk() {
        builder = builder.psk(0, psk.unwrap_or(&[0; 32])).unwrap();
    }
    if suite.needs_server_key() {
        builder = builder.remote_public_key(&public).unwrap();
    }
    let mut initiator = builder.build_initiator().unwrap();
    let (mut msg1, mut said) = ([0; 600], [0; 600]);
    let payload = world_payload(world);
    initiator.write_message(&payload, &mut msg1).unwrap();
    initiator.read_message(Accept::decode(&accept).unwrap().msg2, &mut said).ok()?;
    Some(initiator.dangerously_get_raw_split())
}

/// What the client says in its first message; with NN it is in clear there, and it is the same with all suites.
fn world_payload(_: &World) -> Vec<u8> {
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(40)), &SessionConfig::default(), Suite::ALL[0]);
    world.taps = true;
    world.run(200);
    let connect = world.tap.iter().find(|(.., bytes)| bytes[0] == kind::CONNECT).unwrap();
    Connect::decode(&connect.3).unwrap().msg1[32..].to_vec()
}

/// All that both ends sent of a session in which both said something.
fn recording(suite: Suite) -> World {
    let (server, client) = ends(suite);
    let path = LinkConfig::with_rtt(ms(40));
    let mut world = World::new(1, &server);
    world.taps = true;
    world.add(&path, &path, &SessionConfig::default(), client);
    world.connect();
    world.client().send(on(0), b"a secret").unwrap();
    world.session().send(on(0), b"another secret").unwrap();
    world.run(500);
    world
}

/// How many packets of a recording, of how many, open with these keys.
fn opened(world: &World, (to_server, to_client): ([u8; 32], [u8; 32])) -> (usize, usize) {
    let (mut opened, mut all) = (0, 0);
    for at_client in [false, true] {
        let keys = if at_client { Keys::of_client } else { Keys::of_server };
        let mut seal = Seal::new(Time::ZERO, keys(Cipher::ChaChaPoly, to_server, to_client));
        seal.mask();
        for (.., to, bytes) in world.tap.iter().map(|(_, from, to, bytes)| (from, to, bytes)) {
            if kind_of(bytes) == kind::DATA && (*to != server_address()) == at_client {
                all += 1;
                opened += usize::from(seal.open(Time::ZERO, &mut bytes.clone()).is_ok());
            }
        }
    }
    (opened, all)
}

#[test]
fn whoever_breaks_x25519_reads_no_recording_of_a_hybrid_session() {
    for pattern in [Pattern::Nn, Pattern::NnPsk0, Pattern::Nk, Pattern::NkPsk0] {
        for suite in [Suite::Noise, Suite::Hybrid].map(|family| family(pattern, Cipher::ChaChaPoly)) {
            let world = recording(suite);
            let psk = suite.needs_psk().then_some(&PSK);
            let keys = broken(suite, &world, psk).unwrap();
            let (opened, all) = opened(&world, keys);
            assert!(all >= 6, "{all} packets");
            assert_eq!(opened, if suite.is_hybrid() { 0 } else { all }, "{suite:?}");
            if suite.needs_psk() {
                assert_eq!(broken(suite, &world, None), None, "a secret that stays one is enough");
            }
            if !suite.is_hybrid() {
                continue;
            }
            // All that opens is the ciphertext, which no quantum computer is known to open.
            let (.., bytes) = world.tap.iter().find(|(.., bytes)| bytes[0] == kind::KEM_CIPHERTEXT).unwrap();
            let mut cipher = DefaultResolver.resolve_cipher(&CipherChoice::ChaChaPoly).unwrap();
            cipher.set(&keys.0);
            assert_eq!(cipher.decrypt(0, &bytes[..5], &bytes[5..], &mut [0; 1104]), Ok(1088), "{suite:?}");
        }
    }
}

#[test]
fn recordings_are_closed_to_quantum_computers_as_the_table_says() {
    check("recordings stay closed to quantum computers", |suite| {
        let Some(suite) = suite.filter(|suite| *suite != Suite::Checked) else { return "no" }; // it is in clear
        let world = recording(suite);
        let Some(keys) = broken(suite, &world, None) else { return "without the secret" };
        let (opened, all) = opened(&world, keys);
        if opened == all { "no" } else { "yes" }
    });
}

/// Nothing of a session leaves before its keys are complete, whatever gets lost.
#[test]
fn a_client_that_lacks_the_key_of_the_server_only_repeats_its_connect() {
    let mut hands = Hands::new(1, &ends(HYBRID).0);
    let (mut kinds, mut keys) = (Vec::new(), 0);
    let is_up = hands.run(9_000, |datagrams| {
        kinds.extend(datagrams.iter().map(|datagram| kind_of(datagram)));
        keys += datagrams.iter().filter(|datagram| datagram[0] == kind::KEM_KEY).count();
        datagrams.retain(|datagram| datagram[0] != kind::KEM_KEY);
    });
    assert!(!is_up && keys > 20 && hands.events.is_empty());
    assert!(hands.client.connection().is_none() && hands.client.state() == ClientState::Connect);
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, [kind::HELLO, kind::CHALLENGE, kind::CONNECT, kind::ACCEPT, kind::KEM_KEY]);
    assert!(hands.server.stats().bytes_sent <= hands.server.stats().bytes_received);
    assert!(!hands.run(3_000, Vec::clear));
    assert!(matches!(
        hands.client.poll_event(),
        Some(Event::Closed { reason: CloseReason::ConnectTimeout, .. })
    ));
    assert!(hands.run(100, |_| {}) || hands.server.is_empty());
}

#[test]
fn encapsulation_keys_of_others_change_nothing_but_a_counter() {
    let (mut other, mut sent) = (Vec::new(), 0);
    Hands::new(2, &ends(HYBRID).0)
        .run(1_000, |datagrams| other.extend(of_kind(datagrams, kind::KEM_KEY).cloned()));
    let stolen = *KemKey::decode(&other[0]).unwrap().key;
    for early in [false, true] {
        let mut hands = Hands::new(1, &ends(HYBRID).0);
        assert!(hands.run(1_000, |datagrams| {
            let Some(Ok(KemKey { cid, key })) =
                of_kind(datagrams, kind::KEM_KEY).map(|it| KemKey::decode(it))
            else {
                return;
            };
            let mut changed = *key;
            changed[sent % KEM_KEY_LEN] ^= 1;
            for key in [&stolen, &[0; KEM_KEY_LEN], &[0xff; KEM_KEY_LEN], &changed] {
                let mut datagram = Vec::new();
                KemKey { cid, key }.encode(&mut datagram);
                let place = if early { 0 } else { 1 };
                datagrams.insert(place, datagram[..].into());
                datagrams.insert(place, datagram[..1100].into());
                sent += 1;
            }
        }));
        let rejected = hands.client.rejected();
        assert!(rejected.malformed >= 4 && (early || rejected.stranger >= 4), "{rejected:?}");
        assert!(hands.now <= START + ms(60), "up at {}, not at once", hands.now);
    }
}

#[test]
fn ciphertexts_of_others_change_nothing_but_a_counter() {
    let mut hands = Hands::new(1, &ends(HYBRID).0);
    let (mut injected, mut mine) = (0, Vec::new());
    assert!(hands.run(2_000, |datagrams| {
        let Some(genuine) = of_kind(datagrams, kind::KEM_CIPHERTEXT).cloned() else { return };
        let KemCiphertext { sid, sealed } = KemCiphertext::decode(&genuine).unwrap();
        for at in [0, 500, 1087, 1088, 1103] {
            let mut changed = *sealed;
            changed[at] ^= 0x40;
            let mut datagram = Vec::new();
            KemCiphertext { sid, sealed: &changed }.encode(&mut datagram);
            datagrams.insert(0, datagram);
        }
        for (sid, sealed) in [(sid ^ 1, sealed), (0, sealed), (sid, &[0; KEM_SEALED_LEN])] {
            let mut datagram = Vec::new();
            KemCiphertext { sid, sealed }.encode(&mut datagram);
            datagrams.insert(0, datagram);
        }
        injected += 8;
        mine = genuine;
    }));
    assert_eq!(hands.server.stats().rejected.ciphertext, injected);
    // Once there are keys, the same ciphertext is nothing but late.
    let before = hands.server.stats();
    for _ in 0..100 {
        hands.server.give(hands.now, Hands::home(), &mine);
    }
    let after = hands.server.stats();
    assert_eq!(after.rejected.ciphertext, before.rejected.ciphertext + 100);
    assert_eq!((after.datagrams_sent, after.sessions), (before.datagrams_sent, 1));
    for len in [0, 1, 4, 5, 1108, 1110] {
        let mut cut = mine.clone();
        cut.resize(len, 0);
        hands.server.give(hands.now, Hands::home(), &cut);
    }
    assert_eq!(hands.server.stats().rejected.malformed, before.rejected.malformed + 6);
    hands.client.connection_mut().unwrap().send_datagram(b"still there").unwrap();
    (0..5).for_each(|_| hands.step(&mut |_| {}));
    let id = hands.server.clients().next().unwrap();
    assert_eq!(hands.server.connection_mut(id).unwrap().recv_datagram().unwrap(), "still there");
}

/// A client that goes on without its ciphertext is not up, cannot be read, and its seat is free after 10 s. What comes
/// before the ciphertext is lost like any other packet.
#[test]
fn a_server_without_the_ciphertext_opens_nothing_and_gives_the_seat_back() {
    let mut hands = Hands::new(1, &ends(HYBRID).0);
    let mut held = 0;
    let is_up = hands.run(2_000, |datagrams| {
        held += datagrams.iter().filter(|datagram| datagram[0] == kind::KEM_CIPHERTEXT).count();
        datagrams.retain(|datagram| datagram[0] != kind::KEM_CIPHERTEXT);
    });
    let stats = hands.server.stats();
    assert!(!is_up && hands.client.state() == ClientState::Up && (18..=21).contains(&held), "{held}");
    assert!(stats.dropped >= 18 && stats.confirmed == 0 && hands.events.is_empty(), "{stats:?}");
    let memory = stats.memory;
    assert!((1_000..6_000).contains(&memory), "{memory} bytes");
    let mut again = Hands { events: Vec::new(), ..hands };
    assert!(again.run(500, |_| {}), "with the ciphertext it goes on");
    let mut gone = Hands::new(1, &ends(HYBRID).0);
    gone.run(12_000, |datagrams| datagrams.retain(|datagram| datagram[0] != kind::KEM_CIPHERTEXT));
    let stats = gone.server.stats();
    assert_eq!((stats.unconfirmed, stats.sessions, stats.memory), (1, 0, 0), "{stats:?}");
}

/// The server loses all it knows while the client has an ACCEPT without its key.
#[test]
fn a_second_answer_replaces_one_whose_key_got_lost() {
    let config = ends(HYBRID).0;
    let mut hands = Hands::new(1, &config);
    let mut accepts = 0;
    hands.run(500, |datagrams| {
        accepts += datagrams.iter().filter(|datagram| datagram[0] == kind::ACCEPT).count();
        datagrams.retain(|datagram| datagram[0] != kind::KEM_KEY);
    });
    assert!(accepts > 1 && hands.client.state() == ClientState::Connect);
    hands.server = Server::new(&config, random(9, 9)).unwrap();
    assert!(hands.run(1_000, |_| {}), "{:?}", hands.server.stats());
    let rejected = hands.client.rejected();
    assert_eq!(rejected.malformed, 0);
}

/// With `ask`, the server has the key pair only once it has decided.
#[test]
fn a_hybrid_client_is_admitted_when_the_application_has_decided_and_a_rejected_one_is_told() {
    for admits in [true, false] {
        let mut hands = Hands::new(1, &ServerConfig { ask: true, ..ends(HYBRID).0 });
        hands.run(700, |_| {});
        let [(id, Event::Requested)] = hands.events[..] else { panic!("{:?}", hands.events) };
        if admits {
            hands.server.admit(hands.now, id, b"welcome").unwrap();
        } else {
            hands.server.reject(hands.now, id, 7, b"no").unwrap();
        }
        assert_eq!(hands.run(300, |_| {}), admits);
        if admits {
            assert_eq!(hands.client.connection().unwrap().user(), b"welcome");
        } else {
            assert_eq!(hands.client.rejection(), b"no");
        }
    }
}

/// The number of the suite is part of the handshake, so nobody who changes it everywhere gets ends that differ in it.
#[test]
fn nobody_downgrades_a_hybrid_client() {
    let config = ServerConfig { suites: vec![Suite::TOKEN], ..ends(HYBRID).0 };
    let mut hands = Hands::new(1, &ServerConfig { suites: vec![HYBRID, Suite::TOKEN], ..config.clone() });
    let mut changed = 0;
    assert!(!hands.run(9_000, |datagrams| {
        for datagram in datagrams.iter_mut().filter(|datagram| (0xa1..=0xa4).contains(&datagram[0])) {
            datagram[3] ^= 0x80;
            if datagram[0] == kind::CONNECT {
                let msg1 = usize::from(u16::from_le_bytes([datagram[46], datagram[47]])); // there is no token
                datagram.truncate(48 + msg1);
                changed += 1;
            }
        }
    }));
    assert!(hands.client.connection().is_none() && hands.events.is_empty());
    let rejected = hands.server.stats().rejected;
    assert!(changed > 10 && rejected.malformed == 0 && rejected.cookie < 5, "{rejected:?}");
    assert_eq!(hands.server.stats().accepted, 0, "its first message is for another suite");
    // A server without the suite says so.
    let mut refused = Hands::new(1, &ServerConfig { suites: vec![HYBRID], ..config.clone() });
    refused.server = Server::new(&config, random(1, 2)).unwrap();
    assert!(!refused.run(3_000, |_| {}));
    assert_eq!(
        std::iter::from_fn(|| refused.client.poll_event()).find_map(|event| common::sessions::reason(&event)),
        Some(CloseReason::Denied(DenyReason::Suite))
    );
}

/// New keys come from those before, so they stay closed to quantum computers as well.
#[test]
fn a_hybrid_session_gets_new_keys_and_survives_a_move() {
    let session = SessionConfig { key_update: 64, ..SessionConfig::default() };
    let path = LinkConfig { loss: Loss::Random(0.1), ..LinkConfig::with_rtt(ms(60)) };
    for seed in 1..=5 {
        let mut world = World::pair(seed, &path, &session, HYBRID);
        world.connect();
        let mut came = 0_u32;
        for number in 0..400_u32 {
            world.client().send(on(0), &number.to_le_bytes()).unwrap();
            if number == 200 {
                world.rebind(0, client_address(1, 2000));
            }
            world.run(20);
            while let Some(message) = world.session().recv(on(0)) {
                assert_eq!(message, came.to_le_bytes()[..], "seed {seed}");
                came += 1;
            }
        }
        assert!(came > 380 && world.client().stats().key_updates >= 3, "seed {seed}: {came}");
        assert!(world.session().stats().moves == 1, "seed {seed}");
    }
}
