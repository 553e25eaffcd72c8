//! Round trips of 64 bytes without a runtime: one thread has both ends on loopback, and only waits in a
//! blocking call of the end whose turn it is. Measures how long they take, and how many datagrams each needs.

use crate::table::{Spread, spreads};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;
use whitewater::kcp::{self, Config, Conv};
use whitewater::session::{Cipher, Pattern, Suite};
use whitewater::{
    Channel, ChannelConfig, Client, ClientConfig, Event, Server, ServerConfig, SessionConfig, SessionId,
};

/// Each implementation `rounds` times, in turns.
pub(crate) fn table(rounds: usize) {
    let mut found = NAMES.map(|name| (name, Vec::new(), 0.0));
    for _ in 0..rounds {
        for (name, times, datagrams) in &mut found {
            let run = measure(name, 20_000);
            times.push(run.0);
            *datagrams = run.1;
        }
    }
    let datagrams = found.each_ref().map(|(name, _, datagrams)| format!("{name} {datagrams:.2}"));
    let times = found.map(|(name, times, _)| (name, Spread::of(times)));
    println!("round trip p50     {}", spreads("us", &times));
    println!("  datagrams        {}", datagrams[1..4].join("  "));
}

/// One run, for a profiler.
pub(crate) fn one(name: &str, count: usize) {
    let (p50, datagrams) = measure(name, count);
    println!("{p50:.2} us, {datagrams:.2} datagrams");
}

const NAMES: [&str; 5] = ["udp", "bare", "session", "encrypted", "tcp"];

/// The median round trip in µs, and datagrams per round trip.
fn measure(name: &str, count: usize) -> (f64, f64) {
    match name {
        "udp" => run(&mut Udp::new(), count),
        "bare" => run(&mut Bare::new(), count),
        "session" => run(&mut Sessions::new(Suite::Checked), count),
        "encrypted" => run(&mut Sessions::new(Suite::Noise(Pattern::Nn, Cipher::AesGcm)), count),
        "tcp" => run(&mut Tcp::new(), count),
        _ => panic!("{name}: none of {NAMES:?}"),
    }
}

fn run(pair: &mut impl Pair, count: usize) -> (f64, f64) {
    (0..100).for_each(|_| pair.turn());
    let before = pair.sent();
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let start = Instant::now();
            pair.turn();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    let sent = pair.sent() - before;
    times.sort_by(f64::total_cmp);
    (times[count / 2], sent as f64 / count as f64)
}

/// Two ends.
trait Pair {
    /// One message there and back.
    fn turn(&mut self);

    /// Datagrams sent by both ends, if they count them.
    fn sent(&self) -> u64 {
        0
    }
}

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const MESSAGE: [u8; 64] = [7; 64];
const CHANNEL: Channel = Channel::ordered(0);

struct Udp(UdpSocket, UdpSocket);

impl Udp {
    fn new() -> Self {
        let (near, far) = sockets();
        Self(near, far)
    }
}

impl Pair for Udp {
    fn turn(&mut self) {
        let mut buf = [0; 64];
        self.0.send(&MESSAGE).expect("a peer that is there");
        self.1.recv(&mut buf).expect("a peer that is there");
        self.1.send(&buf).expect("a peer that is there");
        self.0.recv(&mut buf).expect("a peer that is there");
    }
}

struct Tcp(TcpStream, TcpStream);

impl Tcp {
    fn new() -> Self {
        let listener = TcpListener::bind(ANY).expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("a server");
        let far = listener.accept().expect("a client").0;
        near.set_nodelay(true).expect("an option");
        far.set_nodelay(true).expect("an option");
        Self(near, far)
    }
}

impl Pair for Tcp {
    fn turn(&mut self) {
        let mut buf = [0; 64];
        self.0.write_all(&MESSAGE).expect("a peer that is there");
        self.1.read_exact(&mut buf).expect("a peer that is there");
        self.1.write_all(&buf).expect("a peer that is there");
        self.0.read_exact(&mut buf).expect("a peer that is there");
    }
}

struct Bare(kcp::Socket, kcp::Socket);

impl Bare {
    fn new() -> Self {
        let (near, far) = sockets();
        let wrap = |socket: UdpSocket| {
            let peer = socket.peer_addr().expect("it is connected");
            let mut socket =
                kcp::Socket::from_socket(socket, peer, Conv(7), &Config::default()).expect("a config");
            socket.set_late_acks(true); // each message is answered
            socket
        };
        Self(wrap(near), wrap(far))
    }
}

impl Pair for Bare {
    fn turn(&mut self) {
        let mut buf = [0; 64];
        self.0.send_blocking(&MESSAGE).expect("a peer that is there");
        self.1.recv_blocking(&mut buf).expect("a peer that is there");
        self.1.send_blocking(&buf).expect("a peer that is there");
        self.0.recv_blocking(&mut buf).expect("a peer that is there");
    }

    fn sent(&self) -> u64 {
        self.0.socket_traffic().sent + self.1.socket_traffic().sent
    }
}

struct Sessions {
    client: Client,
    server: Server,
    id: Option<SessionId>,
}

impl Sessions {
    fn new(suite: Suite) -> Self {
        let channels = vec![ChannelConfig { kcp: Config::default(), ..CHANNEL.config() }];
        let session = SessionConfig { channels, ..SessionConfig::default() };
        let config = ServerConfig { suites: vec![suite], ..ServerConfig::insecure(session.clone()) };
        let mut server = Server::bind(ANY, &config).expect("a port");
        let target = server.local_addr().expect("an address");
        let config = ClientConfig { suite, ..ClientConfig::insecure(session) };
        let mut client = Client::connect(target, &config).expect("a socket");
        let mut id = None;
        while id.is_none() || client.poll_event() != Some(Event::Connected) {
            client.pump().expect("a socket");
            server.pump().expect("a socket");
            id = server.clients().next();
        }
        Self { client, server, id }
    }
}

impl Pair for Sessions {
    fn turn(&mut self) {
        let Self { client, server, id } = self;
        let (id, mut buf) = (id.expect("a session"), [0; 64]);
        client.send(CHANNEL, &MESSAGE).expect("room");
        client.flush();
        loop {
            server.poll(None).expect("a socket");
            while server.poll_event().is_some() {}
            if server.recv_into(id, CHANNEL, &mut buf).is_ok() {
                break;
            }
        }
        server.send(id, CHANNEL, &buf).expect("room");
        server.flush();
        loop {
            client.poll(None).expect("a socket");
            while client.poll_event().is_some() {}
            if client.recv_into(CHANNEL, &mut buf).is_ok() {
                break;
            }
        }
    }

    fn sent(&self) -> u64 {
        self.client.socket_traffic().sent + self.server.socket_traffic().sent
    }
}

/// Two sockets connected to each other.
fn sockets() -> (UdpSocket, UdpSocket) {
    let (near, far) = (UdpSocket::bind(ANY).expect("a port"), UdpSocket::bind(ANY).expect("a port"));
    near.connect(far.local_addr().expect("an address")).expect("a way");
    far.connect(near.local_addr().expect("an address")).expect("a way");
    (near, far)
}
