//! Accepts connections, by WebTransport and by WebSocket.

use super::browsers::{Hall, Line, Way};
use super::certificates::{Identified, LOOK_EACH, endpoint};
use super::config::{Certificate, WebConfig};
use super::doors::Guest;
use super::http3::{self, Datagrams, Streams};
use futures_util::{SinkExt, StreamExt};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use whitewater::machine::Underlay;
use wtransport::proto::session::SessionResponse;
use wtransport::quinn::{Connection, Endpoint, Incoming, TokioRuntime, VarInt};

pub(super) struct Listener {
    config: WebConfig,
    hall: Arc<Hall>,
    identity: Identified,
    endpoint: Endpoint,
    sockets: Option<TcpListener>,
    /// `None`: WebSockets without TLS.
    tls: Arc<Mutex<Option<TlsAcceptor>>>,
}

impl Listener {
    pub(super) async fn bind(config: WebConfig, hall: Arc<Hall>) -> io::Result<Self> {
        let identity = Identified::load(&config.certificate)?;
        let ((sockets, socket), quic) = (bind(&config).await?, identity.quic(&config)?);
        let endpoint = Endpoint::new(endpoint(&config), Some(quic), socket, Arc::new(TokioRuntime))?;
        let has_tls = matches!(config.certificate, Certificate::Files { .. });
        let tls = if has_tls { Some(identity.tls()?) } else { None };
        Ok(Self { config, hall, identity, endpoint, sockets, tls: Arc::new(Mutex::new(tls)) })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    pub(super) const fn identity(&self) -> &Identified {
        &self.identity
    }

    /// Runs until the server is gone.
    pub(super) async fn run(mut self) {
        let shared = Arc::new(Shared { config: self.config.clone(), hall: Arc::clone(&self.hall) });
        if let Some(sockets) = self.sockets.take() {
            tokio::spawn(accept_sockets(sockets, Arc::clone(&self.tls), Arc::clone(&shared)));
        }
        let mut looks = tokio::time::interval(LOOK_EACH); // however many come in meanwhile
        while !self.hall.is_over() {
            tokio::select! {
                incoming = self.endpoint.accept() => match incoming {
                    Some(incoming) => shared.on_incoming(incoming),
                    None => {
                        log::error!("the socket of WebTransport has failed");
                        break;
                    }
                },
                () = self.hall.over.notified() => break,
                _ = looks.tick() => self.renew(),
            }
        }
        self.endpoint.close(VarInt::from_u32(0), b"the server ends");
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await; // so that they hear it
    }

    /// Reads the certificate again if it has changed. New connections get the new one.
    fn renew(&mut self) {
        if !self.identity.is_outdated(&self.config.certificate) {
            return;
        }
        let renewed = match Identified::load(&self.config.certificate) {
            Ok(identity) => {
                let made = identity.tls().and_then(|tls| Ok((tls, identity.quic(&self.config)?)));
                made.map(|(tls, quic)| (identity, tls, quic))
            }
            Err(error) => Err(error),
        };
        match renewed {
            Ok((identity, tls, quic)) => {
                self.endpoint.set_server_config(Some(quic));
                *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = Some(tls);
                self.identity = identity;
                log::info!("the certificate has changed");
            }
            // It may be half written.
            Err(error) => log::warn!("the certificate has changed and cannot be read: {error}"),
        }
    }
}

/// A port for both transports. If the system chooses one for TCP that UDP does not have, it chooses again.
async fn bind(config: &WebConfig) -> io::Result<(Option<TcpListener>, UdpSocket)> {
    let mut tries = if config.addr.port() == 0 { PORTS } else { 1 };
    loop {
        let sockets = if config.websockets { Some(TcpListener::bind(config.addr).await?) } else { None };
        let addr = sockets.as_ref().map_or(Ok(config.addr), TcpListener::local_addr)?;
        tries -= 1;
        match UdpSocket::bind(addr) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
            bound => return Ok((sockets, bound?)),
        }
    }
}

struct Shared {
    config: WebConfig,
    hall: Arc<Hall>,
}

impl Shared {
    fn on_incoming(self: &Arc<Self>, incoming: Incoming) {
        let remote = incoming.remote_address();
        if self.hall.doors.is_crowded() && !incoming.remote_address_validated() {
            let _ = incoming.retry(); // which it may, as its address is not proven
            return;
        }
        let Some(guest) = self.hall.doors.knock(remote.ip()) else { return incoming.refuse() };
        let shared = Arc::clone(self);
        tokio::spawn(async move { shared.serve_quic(incoming, remote, guest).await });
    }

    async fn serve_quic(&self, incoming: Incoming, remote: SocketAddr, guest: Guest) {
        let Guest { connection: place, handshake } = guest;
        let deadline = Instant::now() + self.config.handshake_timeout;
        let connecting = async { incoming.accept().ok()?.await.ok() };
        let Ok(Some(connection)) = timeout_at(deadline, connecting).await else {
            return count(&self.hall.doors.counts.failed);
        };
        match timeout_at(deadline, self.greet(&connection)).await {
            Ok(Some(session)) => {
                drop(handshake);
                self.serve_web_transport(session, remote).await;
            }
            _ => count(&self.hall.doors.counts.failed),
        }
        connection.close(VarInt::from_u32(0), b"");
        drop(place);
    }

    /// Waits for a request, and answers it.
    async fn greet(&self, connection: &Connection) -> Option<(Datagrams, Streams)> {
        let asking = http3::asking(connection).await?;
        if asking.path() != self.config.path {
            asking.refuse(&SessionResponse::not_found()).await;
            return None;
        }
        if !self.allows(asking.origin()) {
            asking.refuse(&SessionResponse::forbidden()).await;
            return None;
        }
        asking.accept().await
    }

    async fn serve_web_transport(&self, session: (Datagrams, Streams), remote: SocketAddr) {
        let (datagrams, mut streams) = session;
        count(&self.hall.doors.counts.web_transports);
        let underlay = Underlay { is_private: true, is_lossless: false };
        let line = self.hall.open(remote, underlay, Way::Datagrams(datagrams.clone()));
        let receive = async {
            while let Some(datagram) = datagrams.receive().await {
                if !self.take_in(&line, datagram) {
                    break;
                }
            }
        };
        let both = async {
            // A goodbye may come in one packet with the end: it is read first.
            tokio::select! { biased; () = receive => {}, () = streams.ended() => {} }
        };
        self.while_it_has_a_session(&line, both).await;
        self.hall.close(&line);
    }

    async fn serve_web_socket(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        remote: SocketAddr,
        is_private: bool,
        guest: Guest,
        deadline: Instant,
    ) {
        let Guest { connection: place, handshake } = guest;
        let config = WebSocketConfig::default()
            .max_message_size(Some(DATAGRAM_MAX))
            .max_frame_size(Some(DATAGRAM_MAX))
            .max_write_buffer_size(SOCKET_BUFFER)
            .write_buffer_size(0)
            .read_buffer_size(READ_AT_ONCE);
        #[expect(clippy::result_large_err, reason = "the type of the library")]
        let check = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            let refuse = |status| {
                let mut response = ErrorResponse::new(None);
                *response.status_mut() = status;
                Err(response)
            };
            let origin = request.headers().get("origin").and_then(|origin| origin.to_str().ok());
            match request.uri().path() {
                path if path != self.config.path => refuse(StatusCode::NOT_FOUND),
                _ if !self.allows(origin) => refuse(StatusCode::FORBIDDEN),
                _ => Ok(response),
            }
        };
        let made = tokio_tungstenite::accept_hdr_async_with_config(stream, check, Some(config));
        let Ok(Ok(socket)) = timeout_at(deadline, made).await else {
            return count(&self.hall.doors.counts.failed);
        };
        drop(handshake);
        count(&self.hall.doors.counts.web_sockets);
        let (give, mut queue) = mpsc::channel::<Vec<u8>>(SOCKET_QUEUE);
        let underlay = Underlay { is_private, is_lossless: true };
        let line = self.hall.open(remote, underlay, Way::Socket(give));
        let (mut sink, mut source) = socket.split();
        let receive = async {
            while let Some(Ok(message)) = source.next().await {
                match message {
                    Message::Binary(datagram) if !self.take_in(&line, datagram.to_vec()) => break,
                    Message::Close(_) | Message::Text(_) => break,
                    _ => {}
                }
            }
        };
        let send = async {
            while let Some(datagram) = queue.recv().await {
                if sink.send(Message::Binary(datagram.into())).await.is_err() {
                    break;
                }
            }
        };
        let both = async {
            tokio::select! { () = receive => {}, () = send => {} }
        };
        self.while_it_has_a_session(&line, both).await;
        self.hall.close(&line);
        drop(place);
    }

    fn take_in(&self, line: &Line, datagram: Vec<u8>) -> bool {
        self.hall.take_in(line, datagram, self.config.bytes_without_session)
    }

    /// Waits for the end of `work`, of the server, or until the connection has been without a session for too long.
    async fn while_it_has_a_session(&self, line: &Line, work: impl Future<Output = ()>) {
        let watch = async {
            while let Some(left) = self.hall.patience(line, self.config.idle_timeout) {
                sleep(left.max(Duration::from_millis(10))).await;
                if self.hall.is_over() {
                    break;
                }
            }
        };
        tokio::select! { () = work => {}, () = watch => {} }
    }

    fn allows(&self, origin: Option<&str>) -> bool {
        let origins = &self.config.origins;
        origins.is_empty() || origin.is_some_and(|origin| origins.iter().any(|allowed| allowed == origin))
    }
}

async fn accept_sockets(sockets: TcpListener, tls: Arc<Mutex<Option<TlsAcceptor>>>, shared: Arc<Shared>) {
    while !shared.hall.is_over() {
        let (stream, remote) = match sockets.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                log::warn!("cannot accept a connection: {error}");
                sleep(Duration::from_millis(100)).await; // such as too many open files
                continue;
            }
        };
        let Some(guest) = shared.hall.doors.knock(remote.ip()) else { continue };
        let tls = tls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { serve_stream(&shared, stream, remote, tls, guest).await });
    }
}

async fn serve_stream(
    shared: &Shared,
    stream: TcpStream,
    remote: SocketAddr,
    tls: Option<TlsAcceptor>,
    guest: Guest,
) {
    let _ = stream.set_nodelay(true); // it works without, later
    let deadline = Instant::now() + shared.config.handshake_timeout;
    let Some(tls) = tls else {
        return shared.serve_web_socket(stream, remote, false, guest, deadline).await;
    };
    match timeout_at(deadline, tls.accept(stream)).await {
        Ok(Ok(stream)) => shared.serve_web_socket(stream, remote, true, guest, deadline).await,
        _ => count(&shared.hall.doors.counts.failed),
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Most ports that are tried.
const PORTS: u32 = 32;
/// Longest datagram of a session to a browser, with some room.
const DATAGRAM_MAX: usize = 2048;
/// Bytes that are read from a WebSocket at once, for which each has a buffer: some datagrams of a game.
const READ_AT_ONCE: usize = 4096;
/// Datagrams that wait for a WebSocket: beyond that they are lost, because they would arrive too late.
const SOCKET_QUEUE: usize = 64;
/// Bytes that wait in a WebSocket.
const SOCKET_BUFFER: usize = 256 << 10;
