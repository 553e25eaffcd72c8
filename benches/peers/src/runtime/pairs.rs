//! Both ends of a stream, for each implementation.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use whitewater::kcp::{self, Config, Conv};
use whitewater::session::{Cipher, Pattern, Suite};
use whitewater::{Channel, ChannelConfig, ClientConfig, ServerConfig, SessionConfig, tokio as ours};

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(super) const NAMES: [&str; 7] = ["bare", "session", "encrypted", "tokio_kcp", "quinn", "udp", "tcp"];

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// What a session has.
const STREAM: Channel = Channel::stream(0);
/// In segments, the same everywhere.
pub(super) const WINDOW: u16 = 1024;

/// The end that begins, and the other end. With `stream`, small writes share segments of bare KCP; otherwise each is a
/// message. For round trips, tokio_kcp flushes on each write and each datagram (`flush`); otherwise its timer
/// flushes. Each is faster in its place.
pub(super) async fn pair(name: &str, stream: bool, flush: bool) -> (Box<dyn Stream>, Box<dyn Stream>) {
    // As with tokio_kcp, a writer waits when a full window waits to be sent.
    let kcp =
        Config { stream, snd_wnd: WINDOW, rcv_wnd: WINDOW, snd_queue: WINDOW.into(), ..Config::default() };
    match name {
        "bare" => bare(kcp).await,
        "session" => session(kcp, Suite::Checked).await,
        "encrypted" => session(kcp, Suite::Noise(Pattern::Nn, Cipher::AesGcm)).await,
        "tokio_kcp" => theirs(stream, flush).await,
        "quinn" => {
            let (near, far) = super::quic::pair(ANY).await;
            greet(near, far).await
        }
        "udp" => {
            let (near, far) = super::udp::pair(ANY).await;
            greet(near, async { far }).await
        }
        "tcp" => tcp().await,
        _ => panic!("{name}: none of {NAMES:?}"),
    }
}

async fn bare(kcp: Config) -> (Box<dyn Stream>, Box<dyn Stream>) {
    let listener = ours::KcpListener::bind(ANY, &kcp::PeersConfig { kcp, ..kcp::PeersConfig::default() })
        .expect("a port");
    let near = ours::KcpStream::connect(listener.local_addr(), Conv(7), &kcp).expect("a socket");
    greet(near, async { listener.accept().await.expect("a socket").0 }).await
}

async fn session(kcp: Config, suite: Suite) -> (Box<dyn Stream>, Box<dyn Stream>) {
    // Room for the windows at both ends.
    let (send_memory, receive_memory) = (4 << 20, 4 << 20);
    let channels = vec![ChannelConfig { kcp, ..STREAM.config() }];
    let session = SessionConfig { channels, send_memory, receive_memory, ..SessionConfig::default() };
    let config = ServerConfig { suites: vec![suite], ..ServerConfig::insecure(session.clone()) };
    let server = ours::Server::bind(ANY, &config).expect("a port");
    let config = ClientConfig { suite, ..ClientConfig::insecure(session) };
    let (near, far) = tokio::join!(ours::Client::connect(server.local_addr(), &config), server.accept());
    let near = near.expect("a server");
    greet(near.stream(STREAM), async { far.expect("a client").stream(STREAM) }).await
}

async fn theirs(stream: bool, flush: bool) -> (Box<dyn Stream>, Box<dyn Stream>) {
    let config = tokio_kcp::KcpConfig {
        mtu: 1400,
        nodelay: tokio_kcp::KcpNoDelayConfig::fastest(),
        wnd_size: (WINDOW, WINDOW),
        flush_write: flush,
        flush_acks_input: flush,
        stream,
        ..tokio_kcp::KcpConfig::default()
    };
    let mut listener = tokio_kcp::KcpListener::from_socket(config, socket()).await.expect("a port");
    let to = listener.local_addr().expect("an address");
    let near = tokio_kcp::KcpStream::connect_with_socket(&config, socket(), to).await.expect("a socket");
    let pair = greet(near, async { listener.accept().await.expect("a socket").0 }).await;
    std::mem::forget(listener); // its streams would end with it
    pair
}

/// A socket with buffers as large as ours: a window fits.
fn socket() -> UdpSocket {
    let socket = std::net::UdpSocket::bind(ANY).expect("a port");
    let buffers = socket2::SockRef::from(&socket);
    buffers.set_recv_buffer_size(2 << 20).expect("an option");
    buffers.set_send_buffer_size(2 << 20).expect("an option");
    socket.set_nonblocking(true).expect("an option");
    UdpSocket::from_std(socket).expect("a runtime")
}

async fn tcp() -> (Box<dyn Stream>, Box<dyn Stream>) {
    let listener = TcpListener::bind(ANY).await.expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a server");
    let far = listener.accept().await.expect("a client").0;
    near.set_nodelay(true).expect("an option");
    far.set_nodelay(true).expect("an option");
    greet(near, async { far }).await
}

/// Returns both ends once each has heard from the other.
async fn greet(
    mut near: impl Stream + 'static,
    far: impl Future<Output = impl Stream + 'static>,
) -> (Box<dyn Stream>, Box<dyn Stream>) {
    near.write_all(b"hello").await.expect("a peer that is there");
    near.flush().await.expect("a peer that is there");
    let (mut far, mut buf) = (far.await, [0; 5]);
    far.read_exact(&mut buf).await.expect("a peer that is there");
    far.write_all(&buf).await.expect("a peer that is there");
    far.flush().await.expect("a peer that is there");
    near.read_exact(&mut buf).await.expect("a peer that is there");
    (Box::new(near), Box::new(far))
}
