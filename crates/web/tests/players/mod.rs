//! Players in this process: sessions without I/O, over WebTransport and over WebSockets as browsers carry them.

use futures_util::{SinkExt, StreamExt};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;
use whitewater::machine::{Arrival, Machine, Underlay};
use whitewater::rand_core::UnwrapErr;
use whitewater::session::Client;
use whitewater::{Channel, ClientConfig, SessionConfig, Time};
use whitewater_web::WebConfig;
use wtransport::Endpoint;
use wtransport::tls::Sha256Digest;

pub(crate) const CHAT: Channel = Channel::ordered(0);
pub(crate) const PSK: [u8; 32] = [7; 32];

pub(crate) fn web() -> WebConfig {
    let mut config = WebConfig::self_signed(["localhost", "127.0.0.1"]);
    config.addr = SocketAddr::from(([127, 0, 0, 1], 0));
    config
}

/// Carries datagrams.
pub(crate) enum Way {
    WebTransport(wtransport::Connection),
    WebSocket(Box<tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>>),
}

impl Way {
    pub(crate) async fn web_transport(url: &str, hash: [u8; 32]) -> Result<Self, Box<dyn std::error::Error>> {
        let config = wtransport::ClientConfig::builder()
            .with_bind_default()
            .with_server_certificate_hashes([Sha256Digest::new(hash)])
            .build();
        Ok(Self::WebTransport(Endpoint::client(config)?.connect(url).await?))
    }

    pub(crate) async fn web_socket(at: SocketAddr, path: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let stream = tokio::net::TcpStream::connect(at).await?;
        let (socket, _) = tokio_tungstenite::client_async(format!("ws://{at}{path}"), stream).await?;
        Ok(Self::WebSocket(Box::new(socket)))
    }

    pub(crate) async fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        match self {
            Self::WebTransport(connection) => connection.send_datagram(datagram).map_err(io::Error::other),
            Self::WebSocket(socket) => {
                socket.send(Message::Binary(datagram.to_vec().into())).await.map_err(io::Error::other)
            }
        }
    }

    /// The next datagram. An error: the connection is over.
    pub(crate) async fn recv(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::WebTransport(connection) => {
                let datagram = connection.receive_datagram().await.map_err(io::Error::other)?;
                Ok(datagram.payload().to_vec())
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
}

/// A session of a browser.
pub(crate) struct Player {
    pub(crate) session: Client,
    pub(crate) way: Way,
    begun: Instant,
}

impl Player {
    pub(crate) fn new(way: Way, config: &ClientConfig) -> Self {
        let mut session = Client::new(config, UnwrapErr(getrandom::SysRng)).unwrap();
        session.connect(Time::ZERO, &[there()]).unwrap();
        Self { session, way, begun: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.begun.elapsed()
    }

    /// Moves datagrams until `is_done`; an error if that takes 20 s.
    pub(crate) async fn run(&mut self, mut is_done: impl FnMut(&mut Client) -> bool) -> io::Result<()> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            self.send().await?;
            if is_done(&mut self.session) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.wait(Duration::from_millis(50)).await?;
        }
    }

    /// Does what is due, and sends.
    pub(crate) async fn send(&mut self) -> io::Result<()> {
        let now = self.now();
        self.session.handle_timeout(now);
        let mut datagram = Vec::new();
        while self.session.poll_transmit(now, &mut datagram).is_some() {
            self.way.send(&datagram).await?;
            datagram.clear();
        }
        Ok(())
    }

    /// Waits until something is due or has arrived, at most for so long.
    pub(crate) async fn wait(&mut self, most: Duration) -> io::Result<()> {
        let wait = self.session.poll_timeout().map_or(most, |at| at.since(self.now()));
        tokio::select! {
            datagram = self.way.recv() => {
                let (now, is_lossless) = (self.now(), matches!(self.way, Way::WebSocket(_)));
                let underlay = Underlay { is_lossless, ..Underlay::default() };
                self.session.handle_datagram(now, Arrival { underlay, ..there().into() }, &mut datagram?);
            }
            () = tokio::time::sleep(wait.min(most)) => {}
        }
        Ok(())
    }
}

/// Browsers do not know addresses, so any will do.
fn there() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 4433))
}

/// Datagrams that fit into each packet of QUIC.
pub(crate) fn session() -> SessionConfig {
    SessionConfig { max_datagram: 1150, ..SessionConfig::default() }
}

pub(crate) fn client(config: ClientConfig) -> ClientConfig {
    ClientConfig { hello: 1150, ..config }
}

/// Sends 100 messages and as many datagrams. Returns how many are back: all messages, and at least so many datagrams.
pub(crate) async fn play(player: &mut Player, least: usize) -> (usize, usize) {
    player.run(|session| session.is_connected()).await.unwrap();
    let (mut messages, mut datagrams) = (0, 0);
    let connection = player.session.connection_mut().unwrap();
    for number in 0..100_u8 {
        connection.send(CHAT, &[number; 200]).unwrap();
        connection.send_datagram(&[number; 400]).unwrap();
    }
    let run = player.run(|session| {
        let connection = session.connection_mut().unwrap();
        while let Some(message) = connection.recv(CHAT) {
            assert_eq!(message, vec![messages; 200]);
            messages += 1;
        }
        while connection.recv_datagram().is_some() {
            datagrams += 1;
        }
        messages == 100 && datagrams >= least
    });
    run.await.unwrap();
    (messages.into(), datagrams)
}
