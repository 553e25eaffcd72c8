//! The ends that receive, in the server's namespace.

use super::near::{runtime, tokio_kcp_config};
use super::spaces::SERVER;
use super::{CHANNEL, PORT, Peer, Setup, kcptun, quic};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::Runtime;
use whitewater::kcp::{self, PeerId};
use whitewater::{Server, ServerConfig, SessionId};

pub(super) trait Far {
    /// Some of what has arrived. `None`: nothing yet, or not until then.
    fn recv(&mut self, buf: &mut [u8], until: Instant) -> Option<usize>;
}

/// An end with a client. Calls `ready` when one may come.
pub(super) fn new(peer: Peer, setup: &Setup, ready: impl FnOnce()) -> Box<dyn Far> {
    match peer {
        Peer::Udp => {
            let socket = UdpSocket::bind((SERVER, PORT)).expect("a port");
            ready();
            Box::new(socket)
        }
        Peer::Bare(..) => {
            let listener = kcp::Listener::bind((SERVER, PORT), &setup.limits()).expect("a port");
            ready();
            Box::new(Bare { listener, peer: None })
        }
        Peer::Session(..) => {
            let mut config = ServerConfig::secret(setup.session.clone(), Setup::secret());
            (config.memory, config.max_sessions) = (1 << 30, 4);
            let server = Server::bind((SERVER, PORT), &config).expect("a port");
            ready();
            Box::new(Session { server, id: None })
        }
        Peer::TokioKcp => {
            let runtime = runtime();
            let stream = runtime.block_on(async {
                let listener = tokio_kcp::KcpListener::bind(tokio_kcp_config(), (SERVER, PORT)).await;
                let mut listener = listener.expect("a port");
                ready();
                let stream = listener.accept().await.expect("a client").0;
                std::mem::forget(listener); // its streams would end with it
                stream
            });
            Box::new(Streaming { runtime, stream })
        }
        Peer::Kcptun => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, kcptun::INSIDE)).expect("a port");
            let program = kcptun::server();
            ready();
            let stream = listener.accept().expect("a client").0;
            Box::new(Tunnel { stream, _program: program })
        }
        Peer::Quinn(_) => {
            let runtime = runtime();
            let stream = runtime.block_on(quic::accept(&setup.quic, ready));
            Box::new(Streaming { runtime, stream })
        }
        Peer::Tcp(_) => {
            let listener = TcpListener::bind((SERVER, PORT)).expect("a port");
            ready();
            Box::new(listener.accept().expect("a client").0)
        }
    }
}

/// The time left, which must not be zero for a socket.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_micros(1))
}

impl Far for UdpSocket {
    fn recv(&mut self, buf: &mut [u8], until: Instant) -> Option<usize> {
        self.set_read_timeout(Some(left(until))).expect("an option");
        UdpSocket::recv(self, buf).ok()
    }
}

struct Bare {
    listener: kcp::Listener,
    peer: Option<PeerId>,
}

impl Far for Bare {
    fn recv(&mut self, buf: &mut [u8], until: Instant) -> Option<usize> {
        let Self { listener, peer } = self;
        if let Some(len) = peer.and_then(|id| listener.peer(id)?.recv_into(buf).ok()) {
            return Some(len);
        }
        listener.poll(Some(left(until))).expect("a socket");
        while let Some(event) = listener.poll_event() {
            if let kcp::PeerEvent::Accepted(id) = event {
                *peer = Some(id);
            }
        }
        peer.and_then(|id| listener.peer(id)?.recv_into(buf).ok())
    }
}

struct Session {
    server: Server,
    id: Option<SessionId>,
}

impl Far for Session {
    fn recv(&mut self, buf: &mut [u8], until: Instant) -> Option<usize> {
        let Self { server, id } = self;
        if let Some(len) = id.and_then(|id| server.recv_into(id, CHANNEL, buf).ok()) {
            return Some(len);
        }
        server.poll(Some(left(until))).expect("a socket");
        while server.poll_event().is_some() {}
        *id = server.clients().next();
        id.and_then(|id| server.recv_into(id, CHANNEL, buf).ok())
    }
}

impl Far for TcpStream {
    fn recv(&mut self, buf: &mut [u8], until: Instant) -> Option<usize> {
        self.set_read_timeout(Some(left(until))).expect("an option");
        self.read(buf).ok()
    }
}

/// A stream through another program.
struct Tunnel {
    stream: TcpStream,
    _program: kcptun::Program,
}

impl Far for Tunnel {
    fn recv(&mut self, buf: &mut [u8], until: Instant) -> Option<usize> {
        self.stream.recv(buf, until)
    }
}

/// A stream under tokio.
struct Streaming<S> {
    runtime: Runtime,
    stream: S,
}

impl<S: AsyncRead + Unpin> Far for Streaming<S> {
    fn recv(&mut self, buf: &mut [u8], until: Instant) -> Option<usize> {
        let Self { runtime, stream } = self;
        let read = async { tokio::time::timeout_at(until.into(), stream.read(buf)).await };
        runtime.block_on(read).ok()?.ok()
    }
}
