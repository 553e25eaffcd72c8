//! Bare KCP under tokio, over real sockets on loopback. No test depends on how fast the machine is.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has found something"
)]

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use whitewater::net::Error;
use whitewater::net::tokio::{KcpListener, KcpStream};
use whitewater::session::raw;
use whitewater::{Config, Conv};

/// Long enough for any machine; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn stream_config() -> Config {
    Config { stream: true, snd_wnd: 128, ..Config::turbo() }
}

fn listener(kcp: Config) -> KcpListener {
    KcpListener::bind(
        ANY,
        &raw::Config { kcp, max_peers_per_address: 1024, accept_burst: 1024, ..raw::Config::open() },
    )
    .unwrap()
}

/// Both ends of a conversation that has begun.
async fn pair(kcp: Config) -> (KcpStream, KcpStream) {
    let listener = listener(kcp);
    let client = KcpStream::connect(listener.local_addr(), Conv(7), &kcp).unwrap();
    client.send(b"first").await.unwrap();
    let (server, from) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    assert_eq!(from, client.local_addr());
    let mut buf = [0; 16];
    let len = timeout(PATIENCE, server.recv(&mut buf)).await.unwrap().unwrap();
    assert_eq!(&buf[..len], b"first");
    (client, server)
}

/// Bytes of which no two places look alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[tokio::test]
async fn messages_of_every_size_come_back() {
    let (client, server) = pair(Config::turbo()).await;
    let echo = tokio::spawn(async move {
        let mut buf = vec![0; 1 << 16];
        while let Ok(len) = server.recv(&mut buf).await {
            server.send(&buf[..len]).await.unwrap();
        }
    });
    let mut buf = vec![0; 1 << 16];
    for len in [0, 1, 100, 1376, 1377, 5000, 60_000] {
        let message = pattern(len);
        assert_eq!(client.send(&message).await.unwrap(), len);
        assert_eq!(timeout(PATIENCE, client.recv(&mut buf)).await.unwrap().unwrap(), len);
        assert!(buf[..len] == message);
    }
    echo.abort();
}

async fn a_stream_carries_a_megabyte(kcp: Config) {
    let (mut client, server) = pair(kcp).await;
    let (mut from, mut to) = server.into_split();
    let echo = tokio::spawn(async move { tokio::io::copy(&mut from, &mut to).await });
    let data = pattern(1 << 20);
    let sent = data.clone();
    let (mut read, mut write) = tokio::io::split(&mut client);
    let send = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut back = vec![0; data.len()];
    let both = async { tokio::join!(send, read.read_exact(&mut back)) };
    timeout(PATIENCE, both).await.unwrap().1.unwrap();
    assert!(back == data);
    echo.abort();
}

#[tokio::test]
async fn a_stream_carries_a_megabyte_both_ways_on_one_thread() {
    a_stream_carries_a_megabyte(stream_config()).await;
    a_stream_carries_a_megabyte(Config { snd_queue: 16, ..stream_config() }).await;
    a_stream_carries_a_megabyte(Config { stream: false, ..stream_config() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stream_carries_a_megabyte_both_ways_on_four_threads() {
    a_stream_carries_a_megabyte(stream_config()).await;
    a_stream_carries_a_megabyte(Config { snd_queue: 16, ..stream_config() }).await;
}
