//! The crate `tokio_kcp`: streams for tokio over the crate `kcp` 0.5.
//!
//! Its sessions use Unix time in ms as their clock, so timestamps are large and would be negative as `i32`.

use interop::exchange::{CONV, Case, RECEIVE_WINDOW, WINDOW};
use interop::messages::{is_intact, messages, total};
use interop::{PATIENCE, cases, ours};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};
use whitewater::kcp::{self, Config, Conv};
use whitewater::tokio as ours_tokio;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[test]
fn our_socket_has_its_messages_echoed_by_tokio_kcp() {
    cases::run(&Case::all(&[false, true]), |case| {
        let server = Theirs::start(theirs(case.stream));
        case.we_ask(server.address)
    });
}

#[test]
fn our_listener_echoes_the_messages_of_tokio_kcp() {
    cases::run(&Case::all(&[false, true]), |case| {
        case.they_ask(|server, sent| runtime().block_on(ask(theirs(case.stream), CONV, server, sent)))
    });
}

#[test]
fn our_stream_is_echoed_by_tokio_kcp_as_it_comes() {
    let server = Theirs::start(KcpConfig { stream: true, ..KcpConfig::default() });
    let sent = messages(100).concat();
    for config in [Config::default(), Config::classic(), Config::classic().nodelay(1, 10, 2, true)] {
        let config = Config { stream: true, ..config };
        let back = runtime().block_on(async {
            let stream = ours_tokio::KcpStream::connect(server.address, Conv(CONV), &config).unwrap();
            let (mut from, mut to) = stream.into_split();
            let write = async {
                to.write_all(&sent).await.unwrap();
                to.shutdown().await.unwrap(); // waits until everything is acknowledged
            };
            let mut back = vec![0; sent.len()];
            let both = async { tokio::join!(write, from.read_exact(&mut back)) };
            timeout(PATIENCE, both).await.expect("in time").1.unwrap();
            back
        });
        assert!(back == sent);
    }
}

#[test]
fn our_streams_echo_what_tokio_kcp_sends_as_it_comes() {
    let kcp = Config { stream: true, rcv_wnd: RECEIVE_WINDOW, ..Config::default() };
    let sent = messages(100);
    let back = runtime().block_on(async {
        let listener =
            ours_tokio::KcpListener::bind(ANY, &kcp::PeersConfig { kcp, ..kcp::PeersConfig::default() })
                .unwrap();
        let address = listener.local_addr();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut from, mut to) = stream.into_split();
            tokio::io::copy(&mut from, &mut to).await
        });
        ask(KcpConfig { stream: true, ..KcpConfig::default() }, CONV, address, &sent).await
    });
    assert!(is_intact(&sent, &back, true));
}

/// For theirs, conv 0 asks the server to choose one; ours answers with the conv that it is asked with. Their
/// `KcpStream::connect` takes a conv itself.
#[test]
fn a_client_of_tokio_kcp_that_asks_for_a_conv_has_one_message_echoed_and_sends_no_other() {
    let server =
        ours::Echo::start(&kcp::PeersConfig { kcp: Config::default(), ..kcp::PeersConfig::default() });
    runtime().block_on(async {
        let mut stream = KcpStream::connect_with_conv(&theirs(false), 0, server.address).await.unwrap();
        assert_eq!(stream.send(b"first").await.unwrap(), 5);
        let mut buf = [0; 16];
        assert_eq!(timeout(PATIENCE, stream.recv(&mut buf)).await.expect("in time").unwrap(), 5);
        assert_eq!(&buf[..5], b"first");
        assert!(timeout(Duration::from_millis(300), stream.send(b"second")).await.is_err());
    });
    assert_eq!(server.stop().all.accepted, 1);
}

/// As docs/WIRE.md says: 0 is a conv like any other here, so use another one with their server.
#[test]
fn our_socket_refuses_the_conv_that_tokio_kcp_chooses_for_0() {
    let server = Theirs::start(theirs(false));
    let mut socket = kcp::Socket::connect(server.address, Conv(0), &Config::default()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20)));
    socket.send_blocking(b"hello").unwrap();
    let start = std::time::Instant::now();
    while socket.stats().rejected.conv == 0 {
        assert!(socket.recv_blocking(&mut [0; 16]).is_err(), "an answer");
        assert!(start.elapsed() < PATIENCE, "{:?}", socket.stats());
    }
}

fn theirs(stream: bool) -> KcpConfig {
    KcpConfig {
        nodelay: KcpNoDelayConfig::fastest(),
        wnd_size: (WINDOW, RECEIVE_WINDOW),
        stream,
        ..KcpConfig::default()
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Their listener and streams, which echo everything until this is dropped.
struct Theirs {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Theirs {
    fn start(config: KcpConfig) -> Self {
        let runtime = runtime();
        let mut listener = runtime.block_on(KcpListener::bind(config, ANY)).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut buf = vec![0; 1 << 17];
                    while let Ok(len @ 1..) = stream.recv(&mut buf).await {
                        send(&mut stream, &buf[..len]).await;
                    }
                });
            }
        });
        Self { address, _runtime: runtime }
    }
}

async fn send(stream: &mut KcpStream, mut message: &[u8]) {
    while !message.is_empty() {
        let Ok(len) = stream.send(message).await else { return };
        message = &message[len..];
    }
}

async fn ask(config: KcpConfig, conv: u32, server: SocketAddr, sent: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let exchange = async {
        let mut stream = KcpStream::connect_with_conv(&config, conv, server).await.unwrap();
        for message in sent {
            send(&mut stream, message).await;
        }
        let (mut back, mut left, mut buf) = (Vec::new(), total(sent), vec![0; 1 << 17]);
        while left > 0 {
            let len = stream.recv(&mut buf).await.unwrap();
            back.push(buf[..len].to_vec());
            left = left.saturating_sub(len);
        }
        back
    };
    timeout(PATIENCE, exchange).await.expect("in time")
}
