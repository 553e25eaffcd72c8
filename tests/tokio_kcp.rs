//! Bare KCP under tokio, over real loopback sockets. No test depends on the speed of the machine.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has found something"
)]

use crate::common::configs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use whitewater::kcp::{self, Config, Conv};
use whitewater::net::Error;
use whitewater::tokio::{KcpListener, KcpStream};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn stream_config() -> Config {
    Config { stream: true, snd_wnd: 128, ..configs::turbo() }
}

fn listener(kcp: Config) -> KcpListener {
    KcpListener::bind(
        ANY,
        &kcp::PeersConfig {
            kcp,
            max_peers_per_address: 1024,
            accept_burst: 1024,
            ..kcp::PeersConfig::default()
        },
    )
    .unwrap()
}

/// Both ends of an established conversation.
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

/// Bytes in which no two places look alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Starts a read again and again, and drops it each time before it is ready.
#[tokio::test]
async fn cancelled_reads_and_writes_lose_and_duplicate_nothing() {
    let (client, server) = pair(Config { snd_queue: 8, ..stream_config() }).await;
    let (mut from, mut to) = (server.into_split().0, client.into_split().1);
    let data = pattern(300_000);
    let expected = data.clone();
    let write = async move {
        let mut sent = 0;
        while sent < data.len() {
            tokio::select! {
                biased;
                written = to.write(&data[sent..(sent + 7000).min(data.len())]) => sent += written.unwrap(),
                () = tokio::task::yield_now() => {} // no room: the write is dropped
            }
        }
        to.shutdown().await.unwrap();
    };
    let read = async move {
        let mut received = Vec::new();
        let mut buf = [0; 999];
        while received.len() < expected.len() {
            tokio::select! {
                biased;
                len = from.read(&mut buf) => received.extend_from_slice(&buf[..len.unwrap()]),
                () = tokio::task::yield_now() => {}
            }
        }
        assert!(received == expected);
    };
    timeout(PATIENCE, async { tokio::join!(write, read) }).await.unwrap();
}

#[tokio::test]
async fn cancelled_messages_are_neither_lost_nor_duplicated() {
    let (client, server) = pair(Config { snd_queue: 4, ..configs::turbo() }).await;
    let send = async move {
        let mut next = 0u32;
        while next < 2000 {
            let message = next.to_le_bytes();
            tokio::select! {
                biased;
                sent = client.send(&message) => next += u32::from(sent.unwrap() == 4),
                () = tokio::task::yield_now() => {}
            }
        }
        client // lives until everything has been read
    };
    let recv = async move {
        let mut buf = [0; 4];
        for expected in 0u32..2000 {
            loop {
                tokio::select! {
                    biased;
                    len = server.recv(&mut buf) => {
                        assert_eq!((len.unwrap(), buf), (4, expected.to_le_bytes()));
                        break;
                    }
                    () = tokio::task::yield_now() => {}
                }
            }
        }
    };
    timeout(PATIENCE, async { tokio::join!(send, recv) }).await.unwrap();
}

#[tokio::test]
async fn data_sent_before_a_drop_arrives() {
    let (client, mut server) = pair(stream_config()).await;
    let data = pattern(200_000);
    let mut client = client;
    client.write_all(&data).await.unwrap();
    drop(client);
    let mut received = vec![0; data.len()];
    timeout(PATIENCE, server.read_exact(&mut received)).await.unwrap().unwrap();
    assert!(received == data);
}

#[tokio::test]
async fn half_of_a_stream_shuts_down_once_acknowledged_and_the_other_half_continues() {
    let (mut client, mut server) = pair(stream_config()).await;
    client.write_all(b"question").await.unwrap();
    timeout(PATIENCE, client.shutdown()).await.unwrap().unwrap();
    assert_eq!(client.with(|peer| peer.kcp().wait_snd()), Some(0));
    assert_eq!(client.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    let mut buf = [0; 8];
    timeout(PATIENCE, server.read_exact(&mut buf)).await.unwrap().unwrap();
    server.write_all(b"answer").await.unwrap();
    timeout(PATIENCE, client.read_exact(&mut buf[..6])).await.unwrap().unwrap();
    assert_eq!(&buf[..6], b"answer");
}

#[tokio::test]
async fn a_shutdown_to_an_absent_peer_times_out_and_says_so() {
    let nobody = UdpSocket::bind(ANY).unwrap();
    let mut client = KcpStream::connect(nobody.local_addr().unwrap(), Conv(1), &stream_config()).unwrap();
    client.set_shutdown_timeout(Duration::from_millis(100));
    client.write_all(b"hello?").await.unwrap();
    let error = timeout(PATIENCE, client.shutdown()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn reads_from_a_vanished_peer_fail_after_its_data() {
    let limits = kcp::PeersConfig {
        kcp: stream_config(),
        idle_timeout: Duration::from_millis(300),
        ..kcp::PeersConfig::default()
    };
    let listener = KcpListener::bind(ANY, &limits).unwrap();
    let mut client = KcpStream::connect(listener.local_addr(), Conv(1), &stream_config()).unwrap();
    client.write_all(b"last words").await.unwrap();
    let (mut server, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mut buf = [0; 100];
    let len = timeout(PATIENCE, server.read(&mut buf)).await.unwrap().unwrap();
    assert_eq!(&buf[..len], b"last words");
    let error = timeout(PATIENCE, server.read(&mut buf)).await.unwrap().unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::PeerSilent { .. })), "{error}");
}

#[tokio::test]
async fn a_writer_waits_while_nobody_reads_and_continues_when_somebody_does() {
    let (mut client, mut server) = pair(Config { snd_queue: 64, ..stream_config() }).await;
    let chunk = vec![7; 10_000];
    let mut written = 0;
    while let Ok(len) = timeout(Duration::from_millis(300), client.write(&chunk)).await {
        written += len.unwrap();
    }
    // Twice a window plus the queue: a segment in the queue may be filled up completely.
    assert!((200_000..1_000_000).contains(&written), "{written} bytes without a reader");
    let mut left = written;
    let mut buf = vec![0; 1 << 16];
    while left > 0 {
        left -= timeout(PATIENCE, server.read(&mut buf)).await.unwrap().unwrap();
    }
    timeout(PATIENCE, client.write_all(&chunk)).await.unwrap().unwrap();
}

#[tokio::test]
async fn garbage_from_everywhere_does_not_stop_a_listener_from_serving() {
    let listener = listener(configs::turbo());
    let to = listener.local_addr();
    let noise = std::thread::spawn(move || {
        let socket = UdpSocket::bind(ANY).unwrap();
        let mut seed = 1u64;
        for count in 0..20_000 {
            let mut datagram = [0; 60];
            datagram.fill_with(|| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) as u8
            });
            let _ = socket.send_to(&datagram[..(count % 60)], to);
        }
    });
    let client = KcpStream::connect(to, Conv(7), &configs::turbo()).unwrap();
    let echo = async {
        let (server, _) = listener.accept().await.unwrap();
        let mut buf = [0; 16];
        loop {
            let len = server.recv(&mut buf).await.unwrap();
            server.send(&buf[..len]).await.unwrap();
        }
    };
    let ask = async {
        let mut buf = [0; 16];
        for round in 0u64..50 {
            client.send(&round.to_le_bytes()).await.unwrap();
            let len = client.recv(&mut buf).await.unwrap();
            assert_eq!(buf[..len], round.to_le_bytes());
        }
    };
    timeout(PATIENCE, async {
        tokio::select! { () = echo => {}, () = ask => {} }
    })
    .await
    .unwrap();
    tokio::task::spawn_blocking(|| noise.join().unwrap()).await.unwrap();
    client.send(b"one more").await.unwrap();
    let stats = listener.stats();
    assert!(stats.garbage > 0 && stats.accepted == 1, "{stats:?}");
}

#[tokio::test]
async fn the_port_of_a_listener_is_free_once_everything_is_dropped() {
    let first = listener(configs::turbo());
    let addr = first.local_addr();
    let client = KcpStream::connect(addr, Conv(7), &configs::turbo()).unwrap();
    client.send(b"hello").await.unwrap();
    let (server, _) = timeout(PATIENCE, first.accept()).await.unwrap().unwrap();
    drop((first, server));
    let again = async {
        while KcpListener::bind(addr, &kcp::PeersConfig::default()).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();
}

/// Two hundred peers of one socket get echoes; one of them is sent as much as possible and reads nothing.
async fn many_and_a_slow_one() {
    let kcp = stream_config();
    let listener = listener(kcp);
    let to = listener.local_addr();
    tokio::spawn(async move {
        while let Ok((server, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = server.into_split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    let mut slow = KcpStream::connect(to, Conv(0x100), &kcp).unwrap();
    while let Ok(sent) = timeout(Duration::from_millis(200), slow.write(&[1; 8000])).await {
        sent.unwrap();
        if slow.with(|peer| peer.stats().snd_queue) > Some(2000) {
            break;
        }
    }
    let clients: Vec<_> = (0..200u32)
        .map(|index| {
            tokio::spawn(async move {
                let mut client = KcpStream::connect(to, Conv(0x200 + index), &kcp).unwrap();
                let mut back = [0; 500];
                for round in 0..20 {
                    let data = [(index + round) as u8; 500];
                    client.write_all(&data).await.unwrap();
                    client.read_exact(&mut back).await.unwrap();
                    assert_eq!(back, data);
                }
            })
        })
        .collect();
    for client in clients {
        timeout(PATIENCE, client).await.unwrap().unwrap();
    }
    drop(slow);
}

#[tokio::test]
async fn two_hundred_peers_do_not_wait_for_a_slow_one_on_one_thread() {
    many_and_a_slow_one().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_peers_do_not_wait_for_a_slow_one_on_four_threads() {
    many_and_a_slow_one().await;
}

#[tokio::test]
async fn messages_of_every_size_are_echoed() {
    let (client, server) = pair(configs::turbo()).await;
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
