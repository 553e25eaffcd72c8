//! What it costs to protect a packet and to check a stranger: sealing and opening 1200 bytes with each
//! cipher, a cookie, a token; and what a server does for a client that gets in, and for one that does not.

use criterion::{BatchSize, Criterion, Throughput};
use std::cell::RefCell;
use std::hint::black_box;
use std::net::SocketAddr;
use whitewater::inside::session::cookie::{Claim, CookieKey, epoch_of};
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::machine::Machine as _;
use whitewater::session::{Client, Server, Suite};
use whitewater::{ClientConfig, ServerConfig, SessionConfig, Time};
use whitewater_sim::SimRng;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    seals(&mut criterion);
    cookies(&mut criterion);
    #[cfg(feature = "crypto")]
    tokens(&mut criterion);
    strangers(&mut criterion);
    handshakes(&mut criterion);
    criterion.final_summary();
}

fn seals(criterion: &mut Criterion) {
    let mut kinds = vec!["checked"];
    if cfg!(feature = "crypto") {
        kinds.extend(["ChaChaPoly", "AESGCM"]);
    }
    let mut group = criterion.benchmark_group("seal and open 1200 B");
    group.throughput(Throughput::Bytes(1200));
    for name in kinds {
        let (mut client, mut server) = ends(name);
        let body = vec![0x5a; 1200 - client.overhead()];
        let mut datagram = Vec::with_capacity(1200);
        let mut sealed = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                if sealed == (1 << 20) - 1 {
                    sealed = 0; // before the keys are updated
                    (client, server) = ends(name);
                }
                sealed += 1;
                datagram.clear();
                Seal::begin(&mut datagram);
                datagram.extend_from_slice(black_box(&body));
                let pn = client.seal(Time::ZERO, 7, &mut datagram, 0);
                assert!(pn.is_ok() && black_box(server.open(Time::ZERO, &mut datagram)).is_ok());
            });
        });
    }
    group.finish();
}

/// Both ends of a fresh session.
fn ends(name: &str) -> (Seal, Seal) {
    let (client, server) = match name {
        #[cfg(feature = "crypto")]
        "ChaChaPoly" | "AESGCM" => {
            use whitewater::session::Cipher;
            let cipher = if name == "AESGCM" { Cipher::AesGcm } else { Cipher::ChaChaPoly };
            let client = Keys::of_client(cipher, [1; 32], [2; 32]);
            (client, Keys::of_server(cipher, [1; 32], [2; 32]))
        }
        _ => (Keys::checked([1; 8], [2; 8], 3), Keys::checked([1; 8], [2; 8], 3)),
    };
    let mut ends = [client, server].map(|keys| Seal::new(Time::ZERO, keys));
    ends.iter_mut().for_each(Seal::mask);
    ends.into()
}

fn cookies(criterion: &mut Criterion) {
    let key = CookieKey::new([7; 16]);
    let address = SocketAddr::from(([192, 0, 2, 1], 4000));
    let claim = Claim { address, suite: 0x201, protocol_id: 3, cid: 9 };
    let epoch = epoch_of(Time::ZERO);
    let cookie = key.mint(epoch, &claim);
    criterion.bench_function("cookie made", |bencher| bencher.iter(|| key.mint(epoch, black_box(&claim))));
    criterion.bench_function("cookie verified", |bencher| {
        bencher.iter(|| key.verify(Time::ZERO, epoch, black_box(&cookie), black_box(&claim)));
    });
}

#[cfg(feature = "crypto")]
fn tokens(criterion: &mut Criterion) {
    use whitewater::session::Suite;
    use whitewater::session::token::{Order, ServerKey, Verifier};
    let key = || ServerKey::new(5, 0, [7; 32]);
    let addresses = [SocketAddr::from(([192, 0, 2, 1], 4000))];
    let order = Order {
        protocol_id: 3,
        suite: Suite::TOKEN,
        client_id: 9,
        match_id: [0; 16],
        created: 1_900_000_000,
        expires: 1_900_000_045,
        addresses: &addresses,
        server_key: None,
        routing_token: b"",
        user: b"",
    };
    let Ok(token) = key().mint(&order, [1; 32], [2; 24]) else { unreachable!("the order is good") };
    let verifier = Verifier::new(key());
    criterion.bench_function("token verified", |bencher| {
        bencher.iter(|| {
            let grant = verifier.open(1_900_000_001, 3, Suite::TOKEN, black_box(&token.sealed));
            assert!(black_box(grant).is_ok());
        });
    });
}

/// A server with generous limits, and clients that connect.
struct Door {
    server: Server,
    config: ClientConfig,
    clients: u64,
    /// Advances with each client, so that the rate limit on cookies is not reached.
    now: Time,
    buf: Vec<u8>,
}

const HERE: ([u8; 4], u16) = ([192, 0, 2, 1], 4000);

fn random(seed: u64) -> SimRng {
    SimRng::new(seed, 1)
}

impl Door {
    fn new(suite: Suite) -> Self {
        let psk = suite.needs_psk().then(|| [1; 32].into());
        let key = suite.needs_server_key().then_some([2; 32]);
        let limits = ServerConfig {
            suites: vec![suite],
            psk: psk.clone(),
            server_key: key.map(Into::into),
            ..ServerConfig::insecure(SessionConfig::default())
        };
        let limits = ServerConfig { accepts_per_second: 1_000_000, accept_burst: 1_000_000, ..limits };
        let limits =
            ServerConfig { challenges_per_second: 1_000_000, half_open_per_address: 16_384, ..limits };
        let limits = ServerConfig { sessions_per_address: 16_384, ..limits };
        #[cfg(feature = "crypto")]
        let key = key.map(|key| whitewater::session::public_key(&key));
        let config = ClientConfig::insecure(SessionConfig::default());
        let config = ClientConfig { suite, psk, server_key: key, ..config };
        let Ok(server) = Server::new(&limits, random(1)) else { unreachable!("the config is good") };
        Self { server, config, clients: 0, now: Time::ZERO, buf: Vec::new() }
    }

    /// The next client's address, and the client before its first datagram.
    fn knock(&mut self) -> (SocketAddr, Client) {
        self.clients += 1;
        self.now = Time::from_micros(2 * self.clients);
        let [.., a, b, c] = self.clients.to_be_bytes();
        let mut client = match Client::new(&self.config, random(self.clients << 20)) {
            Ok(client) => client,
            Err(error) => unreachable!("{error}"),
        };
        assert!(client.connect(self.now, &[HERE.into()]).is_ok());
        self.buf.clear();
        client.poll_transmit(self.now, &mut self.buf);
        (([10, a, b, c], 9).into(), client)
    }

    /// A CONNECT with a valid cookie.
    fn connect(&mut self) -> (SocketAddr, Vec<u8>) {
        let (from, mut client) = self.knock();
        let hello = std::mem::take(&mut self.buf);
        assert!(self.give(from, &hello));
        client.handle_datagram(self.now, SocketAddr::from(HERE).into(), &mut self.buf);
        self.buf.clear();
        client.poll_transmit(self.now, &mut self.buf);
        (from, self.buf.clone())
    }

    /// Passes a datagram to the server. Returns whether it answers.
    fn give(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        self.buf.clear();
        self.buf.extend_from_slice(datagram);
        self.server.handle_datagram(self.now, from.into(), &mut self.buf);
        self.buf.clear();
        self.server.poll_transmit(self.now, &mut self.buf).is_some()
    }
}

fn strangers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a stranger");
    let mut door = Door::new(Suite::Checked);
    let from = door.knock().0;
    let hello = door.buf.clone();
    let mut micros = 0;
    group.bench_function("HELLO answered", |bencher| {
        bencher.iter(|| {
            micros += 1; // otherwise the limit is reached
            door.now = Time::from_micros(micros);
            assert!(door.give(from, black_box(&hello)));
        });
    });
    let mut door = Door::new(Suite::Checked);
    let (from, connect) = door.connect();
    let (mut stale, mut forged) = (connect.clone(), connect.clone());
    for (datagram, at) in [(&mut stale, 20), (&mut forged, 30)] {
        if let Some(byte) = datagram.get_mut(at) {
            *byte ^= 64;
        }
    }
    assert!(door.give(from, &connect));
    let elsewhere = SocketAddr::from(([10, 9, 9, 9], 9));
    let refused = [
        ("CONNECT, stale cookie", from, &stale),
        ("CONNECT, forged cookie", from, &forged),
        ("CONNECT, another's cookie", elsewhere, &connect),
        ("CONNECT again", from, &connect),
    ];
    for (name, from, datagram) in refused {
        group.bench_function(name, |bencher| bencher.iter(|| assert!(!door.give(from, black_box(datagram)))));
    }
    group.finish();
}

fn handshakes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a CONNECT with a good cookie");
    for (name, number) in [("Checked", 0), ("NN", 0x101), ("NNpsk0", 0x201), ("NK", 0x301), ("NKpsk0", 0x401)]
    {
        if number != 0 && !cfg!(feature = "crypto") {
            continue;
        }
        let Some(suite) = Suite::from_code(number) else { continue };
        let door = RefCell::new(Door::new(suite));
        group.bench_function(format!("{name}, let in"), |bencher| {
            bencher.iter_batched(
                || door.borrow_mut().connect(),
                |(from, connect)| assert!(door.borrow_mut().give(from, &connect)),
                BatchSize::SmallInput,
            );
        });
        if !suite.needs_psk() && !suite.needs_server_key() {
            continue;
        }
        let mut door = Door::new(suite);
        door.config.psk = door.config.psk.map(|_| [9; 32].into());
        #[cfg(feature = "crypto")]
        if !suite.needs_psk() {
            door.config.server_key = Some(whitewater::session::public_key(&[9; 32]));
        }
        let (from, connect) = door.connect();
        group.bench_function(format!("{name}, garbage"), |bencher| {
            bencher.iter(|| assert!(!door.give(from, black_box(&connect))));
        });
    }
    group.finish();
}
