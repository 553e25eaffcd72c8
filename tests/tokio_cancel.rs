//! Futures of sessions and of bare KCP under tokio that are polled a few times and dropped, again and again:
//! nothing is lost, nothing comes twice, and new waiters are notified. For reads, writes and messages of
//! channels see `tokio_kcp.rs` and `tokio_session.rs`.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::configs;
use crate::common::sessions::{in_packets, on};
use std::future::Future as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use whitewater::kcp::{self, Config, Conv};
use whitewater::tokio::{Client, KcpListener, KcpStream, Server, Session};
use whitewater::{Channel, ChannelConfig, ClientConfig, CloseReason, ServerConfig, SessionConfig};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// All ends of one host come at once.
const MANY: u32 = 60;
const STREAM: Channel = Channel::stream(0);
const PACKED: Channel = on(1);

/// Retries the future that `begin` returns, polling each once and dropping it unless it is ready.
async fn persist<T>(mut begin: impl AsyncFnMut() -> T) -> T {
    loop {
        let mut waits = Context::from_waker(Waker::noop());
        if let Poll::Ready(done) = pin!(begin()).poll(&mut waits) {
            return done;
        }
        tokio::task::yield_now().await;
    }
}

fn config() -> SessionConfig {
    let stream = ChannelConfig { kcp: configs::turbo(), ..STREAM.config() };
    let packed = ChannelConfig { send_buffer: 4, ..in_packets(PACKED) };
    SessionConfig { channels: vec![stream, packed], ..SessionConfig::default() }
}

fn server() -> Server {
    let config = ServerConfig {
        session: config(),
        sessions_per_address: 1000,
        half_open_per_address: 256,
        accepts_per_second: 1000,
        accept_burst: 1000,
        ..ServerConfig::insecure(SessionConfig::default())
    };
    Server::bind(ANY, &config).unwrap()
}

async fn connect(server: SocketAddr) -> Session {
    let config = ClientConfig { deadline: PATIENCE, ..ClientConfig::insecure(config()) };
    Client::connect(server, &config).await.unwrap()
}

fn listener() -> KcpListener {
    let config = kcp::PeersConfig {
        kcp: Config { stream: true, ..configs::turbo() },
        max_peers_per_address: 1000,
        accepts_per_second: 1000,
        accept_burst: 1000,
        ..kcp::PeersConfig::default()
    };
    KcpListener::bind(ANY, &config).unwrap()
}

#[tokio::test]
async fn cancelled_accepts_lose_no_session() {
    let server = server();
    let at = server.local_addr();
    let accept = async {
        let mut sessions = Vec::new();
        for _ in 0..MANY {
            sessions.push(persist(async || server.accept().await).await.unwrap());
        }
        sessions
    };
    let clients = (0..MANY).map(|_| tokio::spawn(connect(at))).collect::<Vec<_>>();
    let sessions = timeout(PATIENCE, accept).await.unwrap();
    let mut ports = Vec::new();
    for client in clients {
        ports.push(client.await.unwrap().local_addr().port());
    }
    let mut seen: Vec<u16> = sessions.iter().map(|session| session.peer_addr().unwrap().port()).collect();
    ports.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, ports, "each once");
}

#[tokio::test]
async fn cancelled_accepts_lose_no_bare_peer() {
    let listener = listener();
    let mut clients = Vec::new();
    for conv in 0..MANY {
        let client = KcpStream::connect(listener.local_addr(), Conv(conv), &configs::turbo()).unwrap();
        client.send(&conv.to_le_bytes()).await.unwrap();
        clients.push(client);
    }
    let accept = async {
        let (mut seen, mut buf) = (Vec::new(), [0; 4]);
        for _ in 0..MANY {
            let (peer, _) = persist(async || listener.accept().await).await.unwrap();
            assert_eq!(persist(async || peer.recv(&mut buf).await).await.unwrap(), 4);
            seen.push(u32::from_le_bytes(buf));
        }
        seen
    };
    let mut seen = timeout(PATIENCE, accept).await.unwrap();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..MANY));
}

#[tokio::test]
async fn cancelled_receives_lose_and_duplicate_nothing() {
    let server = server();
    let (client, session) = tokio::join!(connect(server.local_addr()), server.accept());
    let session = session.unwrap();
    let send = async {
        for number in 0u32..300 {
            client.send_datagram(&number.to_le_bytes()).unwrap();
            // There is room for few, so that it has to wait.
            persist(async || client.send(PACKED, &number.to_le_bytes()).await).await.unwrap();
            if number % 8 == 0 {
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        }
    };
    let messages = async {
        for number in 0u32..300 {
            let message = persist(async || session.recv(PACKED).await).await.unwrap();
            assert_eq!(message[..], number.to_le_bytes());
        }
    };
    let datagrams = async {
        let mut buf = [0; 100];
        for number in 0u32..300 {
            // A reader that is quick enough loses none on loopback.
            assert_eq!(persist(async || session.recv_datagram_into(&mut buf).await).await.unwrap(), 4);
            assert_eq!(buf[..4], number.to_le_bytes());
        }
    };
    timeout(PATIENCE, async { tokio::join!(send, messages, datagrams) }).await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_session_is_reported_after_cancelled_waits() {
    let server = server();
    let (client, session) = tokio::join!(connect(server.local_addr()), server.accept());
    let session = session.unwrap();
    let told = async {
        let ends =
            tokio::join!(persist(async || session.closed().await), persist(async || client.closed().await));
        (ends.0.unwrap().0, ends.1.unwrap().0)
    };
    let close = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.close(9);
    };
    let (told, ()) = timeout(PATIENCE, async { tokio::join!(told, close) }).await.unwrap();
    assert_eq!(told, (CloseReason::Peer(9), CloseReason::Local(9)));
}

#[tokio::test]
async fn a_cancelled_shutdown_ends_the_stream_once_and_after_all_its_data() {
    let data: Vec<u8> = (0..300_000u32).map(|at| (at * 31 + at / 251).to_le_bytes()[0]).collect();
    let server = server();
    let (client, session) = tokio::join!(connect(server.local_addr()), server.accept());
    let (mut to, mut from) = (client.stream(STREAM), session.unwrap().stream(STREAM));
    let write = async {
        to.write_all(&data).await.unwrap();
        loop {
            // Polled once and dropped unless it is ready.
            tokio::select! {
                biased;
                done = to.shutdown() => break done.unwrap(),
                () = tokio::task::yield_now() => {}
            }
        }
    };
    let mut received = Vec::new();
    let read = from.read_to_end(&mut received);
    assert_eq!(timeout(PATIENCE, async { tokio::join!(write, read) }).await.unwrap().1.unwrap(), data.len());
    assert!(received == data);
}

#[tokio::test]
async fn a_cancelled_shutdown_of_bare_kcp_returns_once_everything_is_acknowledged() {
    let listener = listener();
    let kcp = Config { stream: true, ..configs::turbo() };
    let mut client = KcpStream::connect(listener.local_addr(), Conv(7), &kcp).unwrap();
    let write = async {
        client.write_all(&[7; 200_000]).await.unwrap();
        loop {
            tokio::select! {
                biased;
                done = client.shutdown() => break done.unwrap(),
                () = tokio::task::yield_now() => {}
            }
        }
        client.with(|peer| peer.is_delivered())
    };
    let read = async {
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut received = vec![0; 200_000];
        peer.read_exact(&mut received).await.unwrap();
        assert!(received.iter().all(|byte| *byte == 7));
        peer
    };
    let (is_delivered, _peer) = timeout(PATIENCE, async { tokio::join!(write, read) }).await.unwrap();
    assert_eq!(is_delivered, Some(true));
}

#[tokio::test]
async fn a_cancelled_connect_leaves_no_socket() {
    let silent = UdpSocket::bind(ANY).unwrap();
    let nobody = silent.local_addr().unwrap();
    let config = ClientConfig::insecure(config());
    for turns in 0..10 {
        let socket = UdpSocket::bind(ANY).unwrap();
        let own = socket.local_addr().unwrap();
        let wait = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = Client::from_socket(socket, nobody, &config) => unreachable!("nobody answers"),
            () = wait => {}
        }
        let again = async {
            while UdpSocket::bind(own).is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, again).await.unwrap();
    }
}

/// Non-packets, truncated and complete HELLOs, and 32 bytes that look like DATA.
#[tokio::test]
async fn garbage_from_everywhere_does_not_stop_a_server_from_serving() {
    let server = server();
    let to = server.local_addr();
    let noise = std::thread::spawn(move || {
        let socket = UdpSocket::bind(ANY).unwrap();
        let mut seed = 1u64;
        for count in 0..20_000 {
            let mut datagram = [0; 600];
            datagram.fill_with(|| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed.to_le_bytes()[4]
            });
            datagram[0] = [0xa1, 0xa3, 0xa6, 0xa8, datagram[0]][count % 5];
            let _ = socket.send_to(&datagram[..(count % 600)], to);
        }
    });
    let echo = async {
        let session = server.accept().await.unwrap();
        let mut stream = session.stream(STREAM);
        let mut buf = [0; 8];
        while stream.read_exact(&mut buf).await.is_ok() {
            stream.write_all(&buf).await.unwrap();
        }
    };
    let ask = async {
        let client = connect(to).await;
        let (mut stream, mut buf) = (client.stream(STREAM), [0; 8]);
        for round in 0u64..50 {
            stream.write_all(&round.to_le_bytes()).await.unwrap();
            stream.read_exact(&mut buf).await.unwrap();
            assert_eq!(buf, round.to_le_bytes());
        }
        stream.shutdown().await.unwrap();
    };
    timeout(PATIENCE, async { tokio::join!(echo, ask) }).await.unwrap();
    tokio::task::spawn_blocking(|| noise.join().unwrap()).await.unwrap();
    let stats = server.stats();
    assert!(stats.rejected.malformed > 0 && stats.accepted == 1, "{stats:?}");
}
