//! Sessions under tokio, over real loopback sockets. No test depends on the speed of the machine.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test that panics has found something"
)]

use crate::common::configs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};
use whitewater::kcp::Config;
use whitewater::message::channel::{ChannelConfig, Received};
use whitewater::net::Error;
use whitewater::net::tokio::{Client, Server, Session};
use whitewater::session::{Blob, ClientConfig, CloseReason, ServerConfig, SessionConfig, Suite};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The strongest suite in this build.
const SUITE: Suite = if cfg!(feature = "crypto") { Suite::TOKEN } else { Suite::Checked };
const PSK: [u8; 32] = [7; 32];
/// A lane of messages.
const MESSAGES: usize = 0;
/// A lane that is a stream.
const STREAM: usize = 1;

fn config() -> SessionConfig {
    let messages = Config { snd_wnd: 128, ..configs::turbo() };
    let lanes = vec![messages, Config { stream: true, snd_queue: 64, ..messages }];
    SessionConfig { lanes, channels: vec![ChannelConfig::reliable_ordered()], ..SessionConfig::default() }
}

fn server_config() -> ServerConfig {
    ServerConfig {
        suites: vec![SUITE],
        psk: (SUITE != Suite::Checked).then_some(PSK),
        sessions_per_address: 1000,
        half_open_per_address: 256,
        accept_burst: 1000,
        ..ServerConfig::insecure(config())
    }
}

fn server() -> Server {
    Server::bind(ANY, &server_config()).unwrap()
}

async fn connect(server: SocketAddr) -> Session {
    let psk = (SUITE != Suite::Checked).then_some(PSK);
    let config = ClientConfig { suite: SUITE, psk, ..ClientConfig::insecure(config()) };
    timeout(PATIENCE, Client::connect(server, &config)).await.unwrap().unwrap()
}

/// Both ends of a session, and their server.
async fn pair() -> (Server, Session, Session) {
    let server = server();
    let (client, session) = tokio::join!(connect(server.local_addr()), accept(&server));
    (server, session, client)
}

async fn accept(server: &Server) -> Session {
    timeout(PATIENCE, server.accept()).await.unwrap().unwrap()
}

/// Bytes in which no two places look alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[tokio::test]
async fn messages_datagrams_and_channels_arrive() {
    let (_server, session, client) = pair().await;
    let mut buf = [0; 2000];
    client.send(MESSAGES, b"on a lane").await.unwrap();
    let len = timeout(PATIENCE, session.recv(MESSAGES, &mut buf)).await.unwrap().unwrap();
    assert_eq!(&buf[..len], b"on a lane");
    session.send_datagram(b"as a datagram").unwrap();
    let len = timeout(PATIENCE, client.recv_datagram(&mut buf)).await.unwrap().unwrap();
    assert_eq!(&buf[..len], b"as a datagram");
    let message = || Blob(b"on a channel".to_vec());
    client.send_message(0, message()).unwrap();
    let received = timeout(PATIENCE, session.recv_message(0)).await.unwrap().unwrap();
    assert_eq!(received, Received::Message(message()));
    let error = client.send(7, b"").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

async fn a_stream_ends(len: usize) {
    let (_server, session, client) = pair().await;
    let (mut here, mut there) = (client.lane(STREAM), session.lane(STREAM));
    let data = pattern(len);
    let send = async {
        here.write_all(&data).await.unwrap();
        here.shutdown().await.unwrap();
        let mut answer = Vec::new();
        here.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"thanks");
    };
    let receive = async {
        let mut received = Vec::new();
        there.read_to_end(&mut received).await.unwrap();
        assert!(received == data);
        there.write_all(b"thanks").await.unwrap();
        there.shutdown().await.unwrap();
    };
    timeout(PATIENCE, async { tokio::join!(send, receive) }).await.unwrap();
}

#[tokio::test]
async fn each_half_of_a_stream_ends_independently_on_one_thread() {
    a_stream_ends(0).await;
    a_stream_ends(2_000_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_half_of_a_stream_ends_independently_on_four_threads() {
    a_stream_ends(0).await;
    a_stream_ends(2_000_000).await;
}

#[tokio::test]
async fn a_dropped_session_delivers_first_and_its_stream_does_not_look_complete() {
    let (_server, session, client) = pair().await;
    let mut stream = client.lane(STREAM);
    let data = pattern(150_000);
    let mut there = session.lane(STREAM);
    let mut received = Vec::new();
    let write = async {
        stream.write_all(&data).await.unwrap();
        drop((client, stream));
    };
    let both = async { tokio::join!(write, there.read_to_end(&mut received)) };
    let error = timeout(PATIENCE, both).await.unwrap().1.unwrap_err();
    assert!(received == data);
    assert_eq!(Error::of(&error), Some(&Error::Closed { reason: CloseReason::Peer(0) }));
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let (reason, undelivered) = timeout(PATIENCE, session.closed()).await.unwrap().unwrap();
    assert_eq!((reason, undelivered.is_empty()), (CloseReason::Peer(0), true));
}

#[tokio::test]
async fn data_received_before_the_end_can_be_read_long_after_it() {
    let (_server, session, client) = pair().await;
    client.send(MESSAGES, b"lane").await.unwrap();
    client.send_message(0, Blob(b"channel".to_vec())).unwrap();
    client.close(9);
    let (reason, undelivered) = timeout(PATIENCE, client.closed()).await.unwrap().unwrap();
    assert_eq!((reason, undelivered.is_empty()), (CloseReason::Local(9), true));
    tokio::time::sleep(Duration::from_millis(1500)).await; // by then the server itself has dropped the session
    let mut buf = [0; 100];
    let len = session.recv(MESSAGES, &mut buf).await.unwrap();
    assert_eq!(&buf[..len], b"lane");
    assert_eq!(session.recv_message(0).await.unwrap(), Received::Message(Blob(b"channel".to_vec())));
    let error = session.recv(MESSAGES, &mut buf).await.unwrap_err();
    assert_eq!(Error::of(&error), Some(&Error::Closed { reason: CloseReason::Peer(9) }));
}

#[tokio::test]
async fn cancelled_messages_are_neither_lost_nor_duplicated() {
    let (_server, session, client) = pair().await;
    let send = async {
        let mut next = 0u32;
        while next < 3000 {
            let message = next.to_le_bytes();
            tokio::select! {
                biased;
                sent = client.send(STREAM, &message) => next += u32::from(sent.unwrap() == 4),
                () = tokio::task::yield_now() => {}
            }
        }
        client.lane(STREAM).shutdown().await.unwrap();
    };
    let receive = async {
        let (mut lane, mut buf, mut received) = (session.lane(STREAM), [0; 77], Vec::new());
        loop {
            tokio::select! {
                biased;
                len = lane.read(&mut buf) => match len.unwrap() {
                    0 => break received,
                    len => received.extend_from_slice(&buf[..len]),
                },
                () = tokio::task::yield_now() => {}
            }
        }
    };
    let received = timeout(PATIENCE, async { tokio::join!(send, receive) }).await.unwrap().1;
    assert!(received.chunks(4).eq((0u32..3000).map(u32::to_le_bytes)));
}

#[tokio::test]
async fn frames_of_tokio_util_travel_in_a_lane() {
    use futures_util::{SinkExt, StreamExt};
    let (_server, session, client) = pair().await;
    let mut here = Framed::new(client.lane(STREAM), LengthDelimitedCodec::new());
    let mut there = Framed::new(session.lane(STREAM), LengthDelimitedCodec::new());
    let frames: Vec<_> = [0, 1, 1000, 70_000].map(|len| Bytes::from(pattern(len))).into();
    let send = async {
        for frame in &frames {
            here.send(frame.clone()).await.unwrap();
        }
        SinkExt::<Bytes>::close(&mut here).await.unwrap();
    };
    let receive = async {
        let mut received = Vec::new();
        while let Some(frame) = there.next().await {
            received.push(frame.unwrap().freeze());
        }
        received
    };
    let received = timeout(PATIENCE, async { tokio::join!(send, receive) }).await.unwrap().1;
    assert!(received == frames);
}

#[tokio::test]
async fn tcp_can_be_tunnelled_through_a_session_both_ways() {
    let (_server, session, client) = pair().await;
    let (tcp_in, tcp_out) = (TcpListener::bind(ANY).await.unwrap(), TcpListener::bind(ANY).await.unwrap());
    let (entry, exit) = (tcp_in.local_addr().unwrap(), tcp_out.local_addr().unwrap());
    let near = async {
        let mut tcp = tcp_in.accept().await.unwrap().0;
        copy_bidirectional(&mut tcp, &mut client.lane(STREAM)).await.unwrap()
    };
    let far = async {
        let mut tcp = TcpStream::connect(exit).await.unwrap();
        copy_bidirectional(&mut session.lane(STREAM), &mut tcp).await.unwrap()
    };
    let service = async {
        let (mut tcp, mut all) = (tcp_out.accept().await.unwrap().0, Vec::new());
        tcp.read_to_end(&mut all).await.unwrap(); // until the end of what the user sends
        all.reverse();
        tcp.write_all(&all).await.unwrap();
    };
    let user = async {
        let (mut tcp, mut back) = (TcpStream::connect(entry).await.unwrap(), Vec::new());
        tcp.write_all(&pattern(500_000)).await.unwrap();
        tcp.shutdown().await.unwrap();
        tcp.read_to_end(&mut back).await.unwrap();
        back.reverse();
        assert!(back == pattern(500_000));
    };
    let (near, far, ..) = timeout(PATIENCE, async { tokio::join!(near, far, service, user) }).await.unwrap();
    assert_eq!((near, far), ((500_000, 500_000), (500_000, 500_000)));
}

/// Two hundred sessions of one socket get echoes; one is sent as much as it accepts and reads nothing.
async fn many_and_a_slow_one() {
    let server = server();
    let to = server.local_addr();
    tokio::spawn(async move {
        while let Ok(session) = server.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = session.lane(STREAM).into_split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    let slow = connect(to).await;
    let mut stuffed = slow.lane(STREAM);
    while let Ok(sent) = timeout(Duration::from_millis(300), stuffed.write(&[1; 8000])).await {
        sent.unwrap(); // until its own queue is full as well
    }
    let clients: Vec<_> = (0..200u32)
        .map(|index| {
            tokio::spawn(async move {
                let session = connect(to).await;
                let (mut lane, mut back) = (session.lane(STREAM), [0; 500]);
                for round in 0..20 {
                    let data = [(index + round) as u8; 500];
                    lane.write_all(&data).await.unwrap();
                    lane.read_exact(&mut back).await.unwrap();
                    assert_eq!(back, data);
                }
            })
        })
        .collect();
    for client in clients {
        timeout(PATIENCE, client).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn two_hundred_sessions_do_not_wait_for_a_slow_one_on_one_thread() {
    many_and_a_slow_one().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_sessions_do_not_wait_for_a_slow_one_on_four_threads() {
    many_and_a_slow_one().await;
}

#[tokio::test]
async fn a_server_shuts_down_once_everything_has_arrived_and_frees_its_port() {
    let (server, session, client) = pair().await;
    let addr = server.local_addr();
    session.send(MESSAGES, b"the end").await.unwrap();
    timeout(PATIENCE, server.shutdown(3)).await.unwrap().unwrap();
    let mut buf = [0; 10];
    assert_eq!(timeout(PATIENCE, client.recv(MESSAGES, &mut buf)).await.unwrap().unwrap(), 7);
    let (reason, _) = timeout(PATIENCE, client.closed()).await.unwrap().unwrap();
    assert_eq!(reason, CloseReason::Peer(3));
    drop((server, session));
    let again = async {
        while UdpSocket::bind(addr).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn requests_are_admitted_rejected_and_rejected_when_dropped() {
    let server = Server::<Blob>::bind(ANY, &ServerConfig { ask: true, ..server_config() }).unwrap();
    let psk = (SUITE != Suite::Checked).then_some(PSK);
    let config = |user: &[u8]| ClientConfig {
        suite: SUITE,
        psk,
        user: user.to_vec(),
        ..ClientConfig::insecure(config())
    };
    let address = server.local_addr();
    for (answer, reason) in [
        (b"come", None),
        (b"stay", Some(CloseReason::Rejected(7))),
        (b"drop", Some(CloseReason::Rejected(0))),
    ] {
        let client = async {
            let config = config(answer);
            timeout(PATIENCE, Client::connect::<Blob>(address, &config)).await.unwrap()
        };
        let decide = async {
            let request = timeout(PATIENCE, server.next_request()).await.unwrap().unwrap();
            assert_eq!(request.peer_addr().ip(), address.ip());
            match request.user() {
                b"come" => request.admit(b"").unwrap(),
                b"stay" => request.reject(7, b"full").unwrap(),
                _ => drop(request),
            }
        };
        let (client, ()) = tokio::join!(client, decide);
        match reason {
            None => drop(timeout(PATIENCE, server.accept()).await.unwrap().unwrap()),
            Some(reason) => {
                let error = client.map(drop).unwrap_err();
                assert_eq!(Error::of(&error), Some(&Error::Closed { reason }));
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            }
        }
    }
}

#[tokio::test]
async fn a_name_is_resolved_and_an_unspecified_address_is_this_machine() {
    let server = server();
    let psk = (SUITE != Suite::Checked).then_some(PSK);
    let config = ClientConfig { suite: SUITE, psk, ..ClientConfig::insecure(config()) };
    for host in ["localhost", "0.0.0.0"] {
        let connecting = Client::connect::<Blob>((host, server.local_addr().port()), &config);
        timeout(PATIENCE, connecting).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_without_an_answer_gives_up() {
    let nobody = UdpSocket::bind(ANY).unwrap();
    let config = ClientConfig {
        deadline: Duration::from_millis(100),
        ..ClientConfig::insecure(SessionConfig::default())
    };
    let connecting = Client::connect::<Blob>(nobody.local_addr().unwrap(), &config);
    let error = timeout(PATIENCE, connecting).await.unwrap().unwrap_err();
    assert_eq!(Error::of(&error), Some(&Error::Closed { reason: CloseReason::ConnectTimeout }));
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[cfg(all(target_os = "linux", feature = "batch"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_all_shards_are_accepted_in_one_place() {
    let server = Server::<Blob>::bind_shards(ANY, &server_config(), 4).unwrap();
    let mut clients = Vec::new();
    let mut shards = std::collections::BTreeSet::new();
    for number in 0..24u8 {
        let (near, far) =
            tokio::join!(connect(server.local_addr()), async { timeout(PATIENCE, server.accept()).await });
        let far = far.unwrap().unwrap();
        far.send(MESSAGES, &[number]).await.unwrap();
        let mut buf = [0; 10];
        assert_eq!(timeout(PATIENCE, near.recv(MESSAGES, &mut buf)).await.unwrap().unwrap(), 1);
        assert_eq!(buf[0], number);
        shards.insert(far.id().unwrap().shard());
        clients.push((near, far));
    }
    assert!(shards.len() >= 3, "{shards:?}");
    assert_eq!((server.stats().confirmed, server.socket_traffic().handed_on), (24, 0));
    drop(clients);
    timeout(PATIENCE, server.shutdown(0)).await.unwrap().unwrap();
}

/// Sends messages on lane 0 while `writers` tasks always have more to send on the other lane.
async fn a_flow_beside_greedy_writers(writers: usize) {
    let (_server, near, far) = pair().await;
    for _ in 0..writers {
        let near = near.clone();
        tokio::spawn(async move { while near.send(STREAM, &[9; 1000]).await.is_ok() {} });
    }
    let other = far.clone();
    tokio::spawn(async move { while other.recv(STREAM, &mut [0; 2000]).await.is_ok() {} });
    let flow = tokio::spawn(async move {
        for number in 0..600u32 {
            near.send(MESSAGES, &number.to_le_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
        near
    });
    for number in 0..600u32 {
        let mut buf = [0; 4];
        let received = timeout(PATIENCE, far.recv(MESSAGES, &mut buf)).await;
        assert_eq!((received.unwrap().unwrap(), buf), (4, number.to_le_bytes()), "{writers} writers");
    }
    flow.await.unwrap().close(0);
}

#[tokio::test]
async fn all_of_a_flow_arrives_beside_greedy_writers_of_another_lane_on_one_thread() {
    for writers in [1, 4, 16] {
        a_flow_beside_greedy_writers(writers).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_of_a_flow_arrives_beside_greedy_writers_of_another_lane_on_four_threads() {
    for writers in [1, 4, 16] {
        a_flow_beside_greedy_writers(writers).await;
    }
}

/// Tasks that always have more to send, all on one lane.
async fn greedy_writers_of_one_lane() {
    const WRITERS: usize = 4;
    let (_server, near, far) = pair().await;
    for writer in 0..WRITERS {
        let near = near.clone();
        tokio::spawn(async move { while near.send(MESSAGES, &[writer as u8; 1000]).await.is_ok() {} });
    }
    let (mut counts, mut buf) = (vec![0; WRITERS], [0; 1000]);
    while counts.iter().sum::<usize>() < 20_000 {
        timeout(PATIENCE, far.recv(MESSAGES, &mut buf)).await.unwrap().unwrap();
        *counts.get_mut(usize::from(buf[0])).unwrap() += 1;
    }
    println!("{counts:?}");
    assert!(counts.iter().all(|count| *count > 20_000 / WRITERS / 4), "{counts:?}");
    near.close(0);
}

#[tokio::test]
async fn writers_of_one_lane_take_turns_on_one_thread() {
    greedy_writers_of_one_lane().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn writers_of_one_lane_take_turns_on_one_worker() {
    greedy_writers_of_one_lane().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_one_lane_take_turns_on_four_threads() {
    greedy_writers_of_one_lane().await;
}

#[tokio::test]
async fn a_cancelled_writer_holds_up_nobody_behind_it() {
    for given_up in 1..=3 {
        let (_server, near, far) = pair().await;
        // Until nothing moves any more: data that the peer does not read closes its window.
        let fill =
            || (0..).take_while(|_| near.with(|end| end.send(MESSAGES, &[0; 1000])).unwrap().is_ok()).count();
        while fill() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut writers = Vec::new();
        for writer in 1..=4 {
            let near = near.clone();
            writers.push(tokio::spawn(async move { near.send(MESSAGES, &[writer; 1000]).await }));
            tokio::task::yield_now().await; // they queue up one after another
        }
        writers.remove(given_up - 1).abort();
        let (mut buf, mut come) = ([0; 1000], Vec::new());
        while come.len() < 3 {
            timeout(PATIENCE, far.recv(MESSAGES, &mut buf)).await.unwrap().unwrap();
            come.extend(Some(buf[0]).filter(|writer| *writer > 0));
        }
        assert!(!come.contains(&(given_up as u8)), "{come:?}");
        for writer in writers {
            writer.await.unwrap().unwrap();
        }
    }
}
