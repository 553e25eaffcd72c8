//! No key is in memory that is freed: each secret is looked for in every block that a session frees, until configs, ends and tokens are dropped.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[cfg(test)]
mod common;

use common::tokens;
use rand::{Rng as _, TryCryptoRng, TryRng};
use snow::params::HashChoice;
use snow::resolvers::{CryptoResolver as _, DefaultResolver};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use whitewater::inside::session::exchange::{Attempt, Initiator, Responder};
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::machine::{Arrival, Machine};
use whitewater::session::token::{FleetKey, PublicToken, ServerKey};
use whitewater::session::{Cipher, Client, Secret, Server, Suite, public_key};
use whitewater::{ClientConfig, ServerConfig, SessionConfig, Time};
use whitewater_freed::{Freed, Watch};
use whitewater_sim::SimRng;
use zeroize::zeroize_stack;

#[global_allocator]
static ALLOCATOR: Freed = Freed;

/// Secrets by name.
#[derive(Clone, Default)]
struct Watched(Arc<Mutex<Vec<(String, Watch)>>>);

/// One test at a time has secrets.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    fn add(&self, name: &str, secret: &[u8; 32]) {
        self.0.lock().unwrap().push((name.to_owned(), Watch::new(secret)));
    }

    /// The secrets that were in memory that was freed, with the sizes of the blocks.
    fn found(&self) -> Vec<(String, Vec<usize>)> {
        let all = self.0.lock().unwrap();
        let found = all.iter().map(|(name, watch)| (name.clone(), watch.found()));
        found.filter(|(_, sizes)| !sizes.is_empty()).collect()
    }
}

/// 32 bytes that are nowhere else.
fn secret(number: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    SimRng::new(number, 77).fill_bytes(&mut bytes);
    bytes
}

/// Random bytes, of which each draw of 32 is the private key of a handshake.
struct Draws {
    rng: SimRng,
    watched: Watched,
    name: &'static str,
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.rng.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.rng.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.rng.try_fill_bytes(bytes)?;
        if let Ok(secret) = <&[u8; 32]>::try_from(&*bytes) {
            self.watched.add(self.name, secret);
        }
        Ok(())
    }
}

impl TryCryptoRng for Draws {}

/// Both ends on the heap, without a network.
struct Pair {
    server: Box<Server>,
    client: Box<Client>,
    now: Time,
}

impl Pair {
    fn new(server: &ServerConfig, client: &ClientConfig, watched: &Watched) -> Self {
        let draws = |name, stream| Draws { rng: SimRng::new(stream, stream), watched: watched.clone(), name };
        let mut server = Box::new(Server::new(server, draws("the server's ephemeral key", 1)).unwrap());
        let mut client = Box::new(Client::new(client, draws("the client's ephemeral key", 2)).unwrap());
        let now = Time::from_millis(1000);
        server.set_unix_time(now, Duration::from_secs(tokens::NOW));
        client.connect(now, &[address(1)]).unwrap();
        Self { server, client, now }
    }

    fn run(&mut self, ms: u64) {
        let (mut up, mut down) = (VecDeque::new(), VecDeque::new());
        for _ in 0..ms / 5 {
            self.now = self.now + Duration::from_millis(5);
            let mut datagram = Vec::new();
            while self.client.poll_transmit(self.now, &mut datagram).is_some() {
                up.push_back(std::mem::take(&mut datagram));
            }
            while self.server.poll_transmit(self.now, &mut datagram).is_some() {
                down.push_back(std::mem::take(&mut datagram));
            }
            for mut datagram in up.drain(..) {
                self.server.handle_datagram(self.now, Arrival::from(address(2)), &mut datagram);
            }
            for mut datagram in down.drain(..) {
                self.client.handle_datagram(self.now, Arrival::from(address(1)), &mut datagram);
            }
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000))
}

/// Configs for a suite, with secrets that are watched.
fn configs(suite: Suite, watched: &Watched) -> (Box<ServerConfig>, Box<ClientConfig>) {
    let (psk, private, public) = secrets(watched);
    zeroize_stack::<65_536>(); // or else bytes of it may be in what the configs leave uninitialised
    let session = SessionConfig::default();
    let psk = suite.needs_psk().then_some(psk);
    let (private, public) = (Some(private), Some(public));
    let with_key = suite.needs_server_key();
    let server = ServerConfig {
        suites: vec![suite],
        psk: psk.clone(),
        server_key: private.filter(|_| with_key),
        ..ServerConfig::insecure(session.clone())
    };
    let server_key = public.filter(|_| with_key);
    let client = ClientConfig { suite, psk, server_key, ..ClientConfig::insecure(session) };
    (Box::new(server), Box::new(client))
}

#[inline(never)]
fn secrets(watched: &Watched) -> (Secret, Secret, [u8; 32]) {
    let (psk, private) = (secret(1), secret(2));
    watched.add("the pre-shared key", &psk);
    watched.add("the server's private key", &private);
    (psk.into(), private.into(), public_key(&private))
}

#[test]
fn keys_of_configs_and_handshakes_are_in_no_freed_memory() {
    let _turn = turn();
    let mut all = Vec::new();
    for suite in Suite::ALL.into_iter().filter(|suite| suite.is_built_in()) {
        let watched = Watched::default();
        let (server, client) = configs(suite, &watched);
        let mut pair = Pair::new(&server, &client, &watched);
        drop((server, client));
        pair.run(500);
        assert!(pair.client.is_connected());
        while let Some((id, _)) = pair.server.poll_event() {
            pair.server.connection_mut(id).unwrap().send_datagram(b"hello").unwrap();
        }
        pair.run(3_000);
        pair.client.close(pair.now, 1);
        pair.run(3_000);
        while pair.server.poll_event().is_some() {}
        drop(pair);
        all.extend(watched.found().into_iter().map(|found| (suite, found)));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn keys_of_attempts_that_fail_are_in_no_freed_memory() {
    let _turn = turn();
    let watched = Watched::default();
    let (server, mut client) = configs(Suite::TOKEN, &watched);
    client.psk = Some(secret(3).into());
    watched.add("another secret", &secret(3));
    let mut pair = Pair::new(&server, &client, &watched);
    pair.run(10_000);
    assert!(!pair.client.is_connected() && pair.server.stats().rejected.handshake > 0);
    drop((pair, server, client));
    let (server, client) = configs(Suite::TOKEN, &watched);
    let server = ServerConfig { ask: true, ..*server };
    let mut pair = Pair::new(&server, &client, &watched);
    pair.run(20_000); // nobody decides
    assert!(pair.server.stats().requested > 0);
    drop((pair, server, client));
    assert_eq!(watched.found(), []);
}

#[test]
fn keys_of_traffic_are_in_no_freed_memory() {
    let _turn = turn();
    for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
        let (watched, keys, halves) = (Watched::default(), [secret(4), secret(5)], [secret(10), secret(11)]);
        let of_exchange = renewed(&keys, halves);
        for key in &keys {
            watched.add("a traffic key", key);
        }
        for secret in halves.into_iter().chain(of_exchange) {
            watched.add("a key of an exchange", &secret);
        }
        for renewal in [None, Some(false), Some(true)] {
            let ends = [Keys::of_client(cipher, keys[0], keys[1]), Keys::of_server(cipher, keys[0], keys[1])];
            let mut ends = ends.map(|keys| Box::new(Seal::new(Time::ZERO, keys)));
            let mut now = Time::ZERO;
            for turn in 0..1000 {
                now = now + Duration::from_secs(1);
                if let Some(answers) = renewal.filter(|_| turn % 200 == 100) {
                    ends[0].draw(now, &halves[0]);
                    let offer = ends[0].half().unwrap();
                    if answers {
                        ends[1].on_half(now, &offer);
                        ends[1].draw(now, &halves[1]);
                        let answer = ends[1].half().unwrap();
                        ends[0].on_half(now, &answer);
                    }
                }
                let mut datagram = Vec::new();
                Seal::begin(&mut datagram);
                datagram.extend_from_slice(b"to the other end");
                ends[turn % 2].seal(now, 1, &mut datagram, 0).unwrap();
                ends[1 - turn % 2].open(now, &mut datagram).unwrap();
            }
            assert!(renewal.is_none() || ends[0].updates().0 >= 5);
            drop(ends);
        }
        assert_eq!(watched.found(), [], "{cipher:?}");
    }
}

/// The shared secret of an exchange, then the keys that it makes of these.
fn renewed(keys: &[[u8; 32]; 2], [client, server]: [[u8; 32]; 2]) -> [[u8; 32]; 3] {
    let halves = [public_key(&client), public_key(&server)];
    let mut hash = DefaultResolver.resolve_hash(&HashChoice::Blake2s).unwrap();
    let mut dh = DefaultResolver.resolve_dh(&snow::params::DHChoice::Curve25519).unwrap();
    let (mut shared, mut first, mut second) = ([0; 32], [0; 32], [0; 32]);
    dh.set(&client);
    dh.dh(&halves[1], &mut shared).unwrap();
    let input = [keys[1], shared, halves[0], halves[1]].concat();
    hash.hkdf(&keys[0], &input, 2, &mut first, &mut second, &mut []);
    [shared, first, second]
}

/// What a handshake computes: the keys of its messages, the chaining keys, the keys of the session.
#[test]
fn keys_that_a_handshake_derives_are_in_no_freed_memory() {
    let _turn = turn();
    let watched = Watched::default();
    let attempt = Attempt { suite: Suite::ALL[0], protocol_id: 1, cid: 2, client_sid: 3, token: b"" };
    let randoms = [secret(6), secret(7)];
    let (mut msg1, mut msg2, mut payload) = (Vec::new(), Vec::new(), Vec::with_capacity(100));
    for key in derived(randoms) {
        watched.add("a derived key", &key);
    }
    let mut client = Initiator::new(&attempt, None, None, randoms[0], b"hello", &mut msg1).unwrap();
    let server = Responder::read_msg1(&attempt, None, None, randoms[1], &msg1, &mut payload).unwrap();
    let of_server = server.write_msg2(b"welcome", &mut msg2).unwrap();
    let of_client = client.read_msg2(&msg2, &mut payload).unwrap();
    let mut ends = [of_client, of_server].map(|keys| Box::new(Seal::new(Time::ZERO, keys)));
    let mut datagram = Vec::new();
    Seal::begin(&mut datagram);
    ends[0].seal(Time::ZERO, 1, &mut datagram, 0).unwrap();
    assert!(ends[1].open(Time::ZERO, &mut datagram).is_ok());
    drop((client, ends));
    assert_eq!(watched.found(), []);
}

/// The random bytes of both ends of a hybrid handshake, all that is derived from them, and the secret of the KEM.
#[test]
#[cfg(feature = "pq")]
fn keys_of_a_hybrid_handshake_are_in_no_freed_memory() {
    use blake2::Blake2sMac256;
    use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
    use whitewater::inside::session::wire::KemKey;
    use whitewater::session::Pattern;
    let _turn = turn();
    let watched = Watched::default();
    let randoms = [secret(12), secret(13)];
    let part = |random: &[u8; 32], label: &str| {
        let mut mac = Blake2sMac256::new(random.into());
        mac.update(label.as_bytes());
        <[u8; 32]>::from(mac.finalize_fixed())
    };
    // Of the ChaCha20-Poly1305 suite, and before anything is watched: what computes it wipes nothing.
    for key in derived(randoms.map(|random| part(&random, "ww/1 x25519"))) {
        watched.add("a derived key", &key);
    }
    for (random, label) in
        randoms.iter().flat_map(|random| ["x25519", "kem d", "kem z", "kem m"].map(|label| (random, label)))
    {
        watched.add("random bytes of an end", random);
        watched.add(label, &part(random, &format!("ww/1 {label}")));
    }
    for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
        let suite = Suite::Hybrid(Pattern::Nn, cipher);
        let attempt = Attempt { suite, protocol_id: 1, cid: 2, client_sid: 3, token: b"" };
        let (mut msg1, mut msg2, mut payload) = (Vec::new(), Vec::new(), Vec::with_capacity(100));
        for is_finished in [false, true] {
            msg1.clear();
            msg2.clear();
            let mut client = Initiator::new(&attempt, None, None, randoms[0], b"hello", &mut msg1).unwrap();
            let server = Responder::read_msg1(&attempt, None, None, randoms[1], &msg1, &mut payload).unwrap();
            let of_server = server.write_msg2(b"welcome", &mut msg2).unwrap();
            let mut of_client = client.read_msg2(&msg2, &mut payload).unwrap();
            let mut server = Box::new(Seal::new(Time::ZERO, of_server));
            let key = *KemKey::decode(server.kem_key().unwrap()).unwrap().key;
            if is_finished {
                assert!(of_client.encapsulate(1, &key));
            }
            let mut client = Box::new(Seal::new(Time::ZERO, of_client));
            if let Some(ciphertext) = client.kem_ciphertext(Time::ZERO).map(<[u8]>::to_vec) {
                assert!(server.decapsulate(Time::ZERO, &mut ciphertext.clone()));
            }
            let mut datagram = Vec::new();
            Seal::begin(&mut datagram);
            let is_sealed = client.seal(Time::ZERO, 1, &mut datagram, 0).is_ok();
            assert_eq!(
                (is_sealed, server.open(Time::ZERO, &mut datagram).is_ok()),
                (is_finished, is_finished)
            );
        }
        assert_eq!(watched.found(), [], "{cipher:?}");
    }
}

/// Of NN with ChaCha20-Poly1305: the shared secret, then what HKDF makes of it and of the chaining key.
fn derived([client, server]: [[u8; 32]; 2]) -> [[u8; 32]; 5] {
    let public = public_key(&server);
    let mut hash = DefaultResolver.resolve_hash(&HashChoice::Blake2s).unwrap();
    let mut shared = [0; 32];
    let mut dh = DefaultResolver.resolve_dh(&snow::params::DHChoice::Curve25519).unwrap();
    dh.set(&client);
    dh.dh(&public, &mut shared).unwrap();
    let mut chaining = [0; 32];
    hash.reset();
    hash.input(b"Noise_NN_25519_ChaChaPoly_BLAKE2s");
    hash.result(&mut chaining);
    let mut expand = |key: &[u8; 32], input: &[u8]| {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        hash.hkdf(key, input, 2, &mut first, &mut second, &mut []);
        [first, second]
    };
    let mixed = expand(&chaining, &shared);
    let split = expand(&mixed[0], &[]);
    [shared, mixed[0], mixed[1], split[0], split[1]]
}

#[test]
fn keys_of_tokens_are_in_no_freed_memory() {
    let _turn = turn();
    let watched = Watched::default();
    let (fleet, psk) = (secret(8), secret(9));
    let key = *FleetKey::new(fleet).server_key(5, 0).secret();
    watched.add("the fleet key", &fleet);
    watched.add("the server's token key", &key);
    watched.add("the secret of a token", &psk);
    let fleet = Box::new(FleetKey::new(fleet));
    let addresses = [address(1)];
    let order = tokens::order(1, tokens::NOW, &addresses);
    let token = Box::new(fleet.server_key(5, 0).mint(&order, psk, [1; 24]).unwrap());
    let sent = token.encode();
    drop((fleet, token));
    let token = Box::new(PublicToken::decode(&sent).unwrap());
    drop(sent);
    let session = SessionConfig::default;
    let server = Box::new(ServerConfig::tokens(session(), ServerKey::new(5, 0, key)));
    let client = Box::new(ClientConfig::token(session(), &token));
    let mut pair = Pair::new(&server, &client, &watched);
    drop((token, server, client));
    pair.run(500);
    assert!(pair.client.is_connected());
    let (id, _) = pair.server.poll_event().unwrap();
    assert_eq!(pair.server.pass(id).unwrap().client_id, 1);
    drop(pair);
    assert_eq!(watched.found(), []);
}
