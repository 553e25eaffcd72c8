//! The clients, all in this process: sessions without I/O on sockets of tokio. Native ones and browsers differ only in what carries them.

use super::server::Place;
use super::{INPUT, PROTOCOL, SECRET, TICKS};
use futures_util::{SinkExt, StreamExt};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, UdpSocket};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use whitewater::machine::{Arrival, Machine};
use whitewater::rand_core::UnwrapErr;
use whitewater::session::Client;
use whitewater::{ClientConfig, SessionConfig, Time};
use wtransport::Endpoint;
use wtransport::tls::Sha256Digest;

/// What carries the clients, and how they are encrypted inside of that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Native,
    WebTransport,
    /// Without a second encryption inside of TLS.
    WebTransportChecked,
    /// Without TLS.
    WebSocket,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Native, Self::WebTransport, Self::WebTransportChecked, Self::WebSocket];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::WebTransport => "WebTransport",
            Self::WebTransportChecked => "WebTransport, `checked_in_tls`",
            Self::WebSocket => "WebSocket, without TLS",
        }
    }

    fn config(self) -> ClientConfig {
        let session = SessionConfig::new(PROTOCOL, []);
        // Datagrams that fit into each packet of QUIC.
        let web = SessionConfig { max_datagram: 1150, ..session.clone() };
        match self {
            Self::Native => ClientConfig::secret(session, SECRET),
            Self::WebTransport | Self::WebSocket => {
                ClientConfig { hello: 1150, ..ClientConfig::secret(web, SECRET) }
            }
            Self::WebTransportChecked => ClientConfig { hello: 1150, ..ClientConfig::insecure(web) },
        }
    }
}

/// What all clients have received while it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Played {
    pub(crate) snapshots: u64,
    /// Bytes of the session's datagrams, and of UDP's; of a WebSocket these are not known.
    pub(crate) bytes: u64,
    pub(crate) bytes_on_wire: u64,
}

/// Clients that play.
pub(crate) struct Crowd {
    runtime: Runtime,
    shared: Arc<Shared>,
    clients: u32,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    connected: AtomicU32,
    failed: AtomicU32,
    is_measured: AtomicBool,
    is_over: AtomicBool,
    snapshots: AtomicU64,
    bytes: AtomicU64,
    bytes_on_wire: AtomicU64,
}

impl Crowd {
    pub(crate) fn join(kind: Kind, clients: u32, place: &Place) -> Result<Self, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let shared = Arc::<Shared>::default();
        let tasks = (0..clients).map(|number| {
            let (shared, place) = (Arc::clone(&shared), place.clone());
            runtime.spawn(async move {
                sleep(JOIN_EACH * number).await;
                if let Err(error) = play(kind, &place, &shared).await {
                    shared.failed.fetch_add(1, Relaxed);
                    eprintln!("client {number}: {error}");
                }
            })
        });
        let tasks = tasks.collect();
        Ok(Self { runtime, shared, clients, tasks })
    }

    /// Waits until each session is up or has failed, or for as long as they may take. Returns how many are up.
    pub(crate) fn wait(&self) -> u32 {
        let begun = Instant::now();
        let up = || self.shared.connected.load(Relaxed);
        let failed = || self.shared.failed.load(Relaxed);
        while up() + failed() < self.clients && begun.elapsed() < JOIN {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(1)); // what follows a handshake
        up()
    }

    pub(crate) fn measure(&self, is_measured: bool) {
        self.shared.is_measured.store(is_measured, Relaxed);
    }

    /// Waits until no snapshot comes any more, and ends all. Clients that are late with all they have received share too few cores.
    pub(crate) fn end(self) -> Played {
        let (begun, mut before) = (Instant::now(), u64::MAX);
        while before != self.shared.snapshots.load(Relaxed) {
            before = self.shared.snapshots.load(Relaxed);
            std::thread::sleep(SILENCE);
        }
        let late = begun.elapsed().saturating_sub(SILENCE * 2);
        if late > SILENCE {
            eprintln!(
                "the clients are {late:.1?} late: fewer of them would have measured more than this machine"
            );
        }
        self.measure(false);
        self.shared.is_over.store(true, Relaxed);
        self.runtime.block_on(async {
            for task in self.tasks {
                let _ = task.await; // what a client has to say it has said
            }
        });
        let Shared { snapshots, bytes, bytes_on_wire, .. } = &*self.shared;
        let get = |count: &AtomicU64| count.load(Relaxed);
        Played { snapshots: get(snapshots), bytes: get(bytes), bytes_on_wire: get(bytes_on_wire) }
    }
}

async fn play(kind: Kind, place: &Place, shared: &Shared) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut way = Way::open(kind, place).await?;
    let mut session = Client::new(&kind.config(), UnwrapErr(getrandom::SysRng))?;
    session.connect(Time::ZERO, &[SERVER])?;
    let (begun, mut is_up, mut input_at) = (Instant::now(), false, Time::ZERO);
    let (mut out, mut wire_before) = (Vec::new(), None);
    let now = || Time::ZERO + begun.elapsed();
    while !shared.is_over.load(Relaxed) {
        if !is_up && session.is_connected() {
            shared.connected.fetch_add(1, Relaxed);
            (is_up, input_at) = (true, now());
        }
        if wire_before.is_none() && shared.is_measured.load(Relaxed) {
            wire_before = Some(way.bytes_on_wire());
        }
        while session.poll_event().is_some() {}
        if let Some(connection) = session.connection_mut() {
            while connection.recv_datagram().is_some() {
                shared.snapshots.fetch_add(1, Relaxed);
            }
            if is_up && input_at <= now() {
                input_at = input_at + INPUT_EACH;
                let _ = connection.send_datagram(&[1; INPUT]); // one of many
            }
        }
        session.handle_timeout(now());
        while session.poll_transmit(now(), &mut out).is_some() {
            way.send(&out).await?;
            out.clear();
        }
        let due = session.poll_timeout().map_or(INPUT_EACH, |at| at.since(now()));
        let due = if is_up { due.min(input_at.since(now())) } else { due };
        tokio::select! {
            datagram = way.recv() => {
                let mut datagram = datagram?;
                if shared.is_measured.load(Relaxed) {
                    shared.bytes.fetch_add(datagram.len() as u64, Relaxed);
                }
                session.handle_datagram(now(), Arrival::from(SERVER), &mut datagram);
            }
            () = sleep(due.min(INPUT_EACH)) => {}
        }
    }
    let wire = way.bytes_on_wire().saturating_sub(wire_before.unwrap_or_default());
    shared.bytes_on_wire.fetch_add(wire, Relaxed);
    Ok(())
}

/// Carries datagrams.
enum Way {
    Udp { socket: UdpSocket, received: u64 },
    WebTransport(wtransport::Connection),
    WebSocket(Box<WebSocketStream<TcpStream>>),
}

impl Way {
    async fn open(kind: Kind, place: &Place) -> Result<Self, Box<dyn Error + Send + Sync>> {
        match kind {
            Kind::Native => {
                let socket = UdpSocket::bind("127.0.0.1:0").await?;
                socket.connect(place.udp).await?;
                Ok(Self::Udp { socket, received: 0 })
            }
            Kind::WebTransport | Kind::WebTransportChecked => {
                let config = wtransport::ClientConfig::builder()
                    .with_bind_default()
                    .with_server_certificate_hashes([Sha256Digest::new(place.hash)])
                    .build();
                Ok(Self::WebTransport(Endpoint::client(config)?.connect(&place.url).await?))
            }
            Kind::WebSocket => {
                let stream = TcpStream::connect(place.web).await?;
                stream.set_nodelay(true)?;
                let (socket, _) =
                    tokio_tungstenite::client_async(format!("ws://{}/", place.web), stream).await?;
                Ok(Self::WebSocket(Box::new(socket)))
            }
        }
    }

    async fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp { socket, .. } => socket.send(datagram).await.map(drop),
            Self::WebTransport(connection) => connection.send_datagram(datagram).map_err(io::Error::other),
            Self::WebSocket(socket) => {
                socket.send(Message::Binary(datagram.to_vec().into())).await.map_err(io::Error::other)
            }
        }
    }

    async fn recv(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::Udp { socket, received } => {
                let mut datagram = vec![0; 2048];
                let len = socket.recv(&mut datagram).await?;
                datagram.truncate(len);
                *received += datagram.len() as u64;
                Ok(datagram)
            }
            Self::WebTransport(connection) => {
                Ok(connection.receive_datagram().await.map_err(io::Error::other)?.payload().to_vec())
            }
            Self::WebSocket(socket) => loop {
                match socket.next().await {
                    Some(Ok(Message::Binary(datagram))) => return Ok(datagram.to_vec()),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => {
                        return Err(io::ErrorKind::ConnectionReset.into());
                    }
                    Some(Ok(_)) => {}
                }
            },
        }
    }

    /// The bytes of UDP that have arrived; 0 where they are not known.
    fn bytes_on_wire(&self) -> u64 {
        match self {
            Self::Udp { received, .. } => *received,
            Self::WebTransport(connection) => connection.quic_connection().stats().udp_rx.bytes,
            Self::WebSocket(_) => 0,
        }
    }
}

/// The server, wherever it is. Source: RFC 5737.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4433);
const INPUT_EACH: Duration = Duration::from_nanos(1_000_000_000 / TICKS as u64);
/// Between two clients that join, and for all of them.
const JOIN_EACH: Duration = Duration::from_millis(5);
const JOIN: Duration = Duration::from_secs(60);
/// Without a snapshot, there will be none.
const SILENCE: Duration = Duration::from_millis(300);
