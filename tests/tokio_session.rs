//! Sessions under tokio, over real loopback sockets. No test depends on the speed of the machine.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test that panics has found something"
)]

use crate::common::router::{Passes, Router};
use crate::common::sessions::{in_packets, on};
use crate::common::{Digit, configs};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};
use whitewater::channel::SendError;
use whitewater::kcp::Config;
use whitewater::net::Error;
use whitewater::session::{DenyReason, SecondNetwork, Suite, code};
use whitewater::tokio::{Client, Request, Server, Session};
use whitewater::{Channel, ChannelConfig, ClientConfig, CloseReason, ServerConfig, SessionConfig};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The strongest suite in this build.
const SUITE: Suite = if cfg!(feature = "crypto") { Suite::TOKEN } else { Suite::Checked };
const PSK: [u8; 32] = [7; 32];
/// Messages by KCP.
const MESSAGES: Channel = on(0);
const STREAM: Channel = Channel::stream(1);
/// Messages in packets, of which few may wait.
const PACKED: Channel = on(2);
const NAMES: Channel<String> = Channel::unordered(3);

fn config() -> SessionConfig {
    let kcp = Config { snd_wnd: 128, ..configs::turbo() };
    let channels = vec![
        ChannelConfig { kcp, ..MESSAGES.config() },
        ChannelConfig { kcp: Config { snd_queue: 64, ..kcp }, ..STREAM.config() },
        ChannelConfig { send_buffer: 8, receive_buffer: 8, ..in_packets(PACKED) },
        NAMES.into(),
    ];
    SessionConfig { channels, ..SessionConfig::default() }
}

fn server_config() -> ServerConfig {
    ServerConfig {
        suites: vec![SUITE],
        psk: (SUITE != Suite::Checked).then(|| PSK.into()),
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
    connect_with(server, config()).await
}

async fn connect_with(server: SocketAddr, session: SessionConfig) -> Session {
    let psk = (SUITE != Suite::Checked).then(|| PSK.into());
    let config = ClientConfig { suite: SUITE, psk, ..ClientConfig::insecure(session) };
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
async fn messages_of_every_kind_and_datagrams_arrive() {
    let (_server, session, client) = pair().await;
    let mut buf = [0; 2000];
    client.send(MESSAGES, b"by KCP").await.unwrap();
    assert_eq!(timeout(PATIENCE, session.recv(MESSAGES)).await.unwrap().unwrap(), "by KCP");
    session.send_datagram(b"as a datagram").unwrap();
    let len = timeout(PATIENCE, client.recv_datagram_into(&mut buf)).await.unwrap().unwrap();
    assert_eq!(&buf[..len], b"as a datagram");
    client.send_datagram(b"another").unwrap();
    assert_eq!(timeout(PATIENCE, session.recv_datagram()).await.unwrap().unwrap(), "another");
    client.send(PACKED, b"in packets").await.unwrap();
    let too_small = async { session.recv_into(PACKED, &mut buf[..9]).await.unwrap_err() };
    assert_eq!(timeout(PATIENCE, too_small).await.unwrap().kind(), ErrorKind::InvalidInput);
    assert_eq!(session.recv_into(PACKED, &mut buf).await.unwrap(), 10, "it has stayed");
    assert_eq!(&buf[..10], b"in packets");
    client.send(NAMES, &"of a type".to_owned()).await.unwrap();
    assert_eq!(timeout(PATIENCE, session.recv(NAMES)).await.unwrap().unwrap(), "of a type");
}

#[tokio::test]
async fn a_session_by_a_proxy_that_tells_who_the_client_is_outlives_its_restart_without_a_move() {
    let config = ServerConfig { proxies: vec![ANY.ip()], routing_token: 8, ..server_config() };
    let server = Server::bind(ANY, &config).unwrap();
    let (address, token) = (UdpSocket::bind(ANY).unwrap().local_addr().unwrap(), *b"by token");
    let start = || Router::start(address, &[(token, server.local_addr())], u32::MAX, Passes::Told);
    let router = start();
    let psk = (SUITE != Suite::Checked).then(|| PSK.into());
    let routed = ClientConfig {
        suite: SUITE,
        psk,
        routing_token: token.to_vec(),
        ..ClientConfig::insecure(crate::tokio_session::config())
    };
    let (client, session) = tokio::join!(Client::connect(address, &routed), accept(&server));
    let client = client.unwrap();
    let home = session.peer_addr().unwrap(); // not a port of the proxy: those change
    drop(router);
    let _router = start();
    for turn in 0..20 {
        client.send(MESSAGES, &[turn]).await.unwrap();
        assert_eq!(timeout(PATIENCE, session.recv(MESSAGES)).await.unwrap().unwrap(), [turn][..]);
        session.send(MESSAGES, &[turn]).await.unwrap();
        assert_eq!(timeout(PATIENCE, client.recv(MESSAGES)).await.unwrap().unwrap(), [turn][..]);
    }
    assert_eq!(session.peer_addr(), Some(home));
}

#[tokio::test]
async fn messages_that_are_too_long_for_a_packet_or_a_window_wait_for_each_other_and_arrive() {
    let (_server, session, client) = pair().await;
    let long = |number: u8| [&[number], &pattern(300_000)[..]].concat();
    let send = async |channel: Channel| {
        for number in 0..6 {
            client.send(channel, &long(number)).await.unwrap();
            client.send(channel, &[number]).await.unwrap();
        }
    };
    let receive = async |channel: Channel| {
        for number in 0..6 {
            assert!(session.recv(channel).await.unwrap() == long(number));
            assert_eq!(session.recv(channel).await.unwrap(), [number][..]);
        }
    };
    let all = async { tokio::join!(send(MESSAGES), send(PACKED), receive(MESSAGES), receive(PACKED)) };
    timeout(PATIENCE, all).await.unwrap();
}

#[tokio::test]
async fn a_send_waits_for_room_on_a_channel_in_packets_and_goes_on_when_there_is() {
    let (_server, session, client) = pair().await;
    // Nobody reads: some wait there, some here, and then one has to wait for room.
    let sender = tokio::spawn({
        let client = client.clone();
        async move {
            for number in 0..500u32 {
                client.send(PACKED, &number.to_le_bytes()).await.unwrap();
            }
        }
    });
    let is_full = async {
        while !client.try_send(PACKED, b"").is_err_and(|error| error == SendError::Full { channel: 2 }) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, is_full).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!sender.is_finished());
    let mut numbers = Vec::new();
    while numbers.len() < 500 {
        let message = timeout(PATIENCE, session.recv(PACKED)).await.unwrap().unwrap();
        numbers.extend(message.first_chunk().map(|number| u32::from_le_bytes(*number))); // or it was to find out
    }
    assert!(numbers.into_iter().eq(0..500));
    sender.await.unwrap();
}

#[tokio::test]
async fn who_sends_more_than_may_wait_on_a_channel_of_any_kind_in_packets_waits_and_goes_on() {
    let kinds = [Channel::unordered(0), Channel::sequenced(1), Channel::unreliable(2), on(3)];
    let config = |channel| ChannelConfig { send_buffer: 4, ..in_packets(channel) };
    let session = SessionConfig { channels: kinds.map(config).to_vec(), ..SessionConfig::default() };
    let server = Server::bind(ANY, &ServerConfig { session: session.clone(), ..server_config() }).unwrap();
    let (client, session) = tokio::join!(connect_with(server.local_addr(), session), accept(&server));
    for channel in kinds {
        let send = async {
            for _ in 0..300 {
                client.send(channel, &[7; 300]).await.unwrap();
            }
        };
        let receive = async {
            for _ in 0..if channel.kind().is_reliable() { 300 } else { 1 } {
                assert_eq!(session.recv(channel).await.unwrap(), [7; 300][..]);
            }
        };
        let both = timeout(PATIENCE, async { tokio::join!(send, receive) }).await;
        assert!(both.is_ok(), "{channel:?}");
    }
}

#[tokio::test]
async fn who_asks_for_what_is_not_so_is_told_what_is() {
    let (_server, session, client) = pair().await;
    let is_told = |error: std::io::Error, words: &str| {
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, words.to_owned()));
    };
    session.send(MESSAGES, b"no bytes of a stream").await.unwrap();
    let no_stream = "channel 0 is ordered of [u8], and the handle is stream of [u8]";
    let mut stream = client.stream(MESSAGES);
    is_told(stream.write(b"bytes").await.unwrap_err(), no_stream);
    is_told(timeout(PATIENCE, stream.read(&mut [0; 10])).await.unwrap().unwrap_err(), no_stream);
    is_told(stream.shutdown().await.unwrap_err(), no_stream);
    assert_eq!(client.recv(MESSAGES).await.unwrap(), "no bytes of a stream");
    let no_channel = "there is no channel 7: the session has 4";
    let mut stream = client.stream(Channel::stream(7));
    is_told(stream.write(b"bytes").await.unwrap_err(), no_channel);
    is_told(timeout(PATIENCE, stream.read(&mut [0; 10])).await.unwrap().unwrap_err(), no_channel);
    is_told(client.send(on(7), b"").await.unwrap_err(), no_channel);
    is_told(timeout(PATIENCE, client.recv(on(7))).await.unwrap().unwrap_err(), no_channel);
    let of_text = "channel 3 is unordered of String, and the handle is unordered of [u8]";
    let bytes: Channel = Channel::unordered(3);
    is_told(client.send(bytes, b"").await.unwrap_err(), of_text);
    is_told(client.recv_into(bytes, &mut []).await.unwrap_err(), of_text);
    let too_long = client.send(MESSAGES, &vec![0; (1 << 20) + 1]).await.unwrap_err();
    assert_eq!(too_long.kind(), ErrorKind::InvalidInput, "{too_long}");
}

#[tokio::test]
async fn what_is_sent_on_a_stream_at_once_arrives_as_a_whole_or_is_refused_as_a_whole() {
    const BYTES: Channel = Channel::stream(0);
    let session = SessionConfig { channels: vec![BYTES.into()], ..SessionConfig::default() };
    let server = Server::bind(ANY, &ServerConfig { session: session.clone(), ..server_config() }).unwrap();
    let (client, session) = tokio::join!(connect_with(server.local_addr(), session), accept(&server));
    // Pieces of every length: more than KCP takes at once, of which the first fills up a segment.
    let data = pattern(3_000_000);
    let send = async {
        let (mut rest, mut len) = (&data[..], 1);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(len.min(rest.len()));
            client.send(BYTES, piece).await.unwrap();
            (rest, len) = (after, if len < 10_000 { len * 9 } else { 241_000 - len });
        }
        client.stream(BYTES).shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let mut stream = session.stream(BYTES);
    let receive = stream.read_to_end(&mut received);
    timeout(PATIENCE, async { tokio::join!(send, receive) }).await.unwrap().1.unwrap();
    assert!(received == data);
    let error = session.send(BYTES, &vec![0; 8 << 20]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let fill = || (0..).take_while(|_| session.try_send(BYTES, &[0; 100_000]).is_ok()).count();
    assert!((1..100).contains(&fill()));
    assert_eq!(session.try_send(BYTES, &[0; 100_000]), Err(SendError::Full { channel: 0 }));
}

async fn a_stream_ends(len: usize) {
    let (_server, session, client) = pair().await;
    let (mut here, mut there) = (client.stream(STREAM), session.stream(STREAM));
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
    let mut stream = client.stream(STREAM);
    let data = pattern(150_000);
    let mut there = session.stream(STREAM);
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
    client.send(MESSAGES, b"by KCP").await.unwrap();
    client.send(PACKED, b"in packets").await.unwrap();
    client.send(PACKED, &pattern(5000)).await.unwrap();
    client.close(9);
    let (reason, undelivered) = timeout(PATIENCE, client.closed()).await.unwrap().unwrap();
    assert_eq!((reason, undelivered.is_empty()), (CloseReason::Local(9), true));
    tokio::time::sleep(Duration::from_millis(1500)).await; // the server itself has forgotten the session by then
    assert_eq!(session.recv(MESSAGES).await.unwrap(), "by KCP");
    assert_eq!(session.recv(PACKED).await.unwrap(), "in packets");
    assert_eq!(session.recv(PACKED).await.unwrap(), pattern(5000));
    let error = session.recv(MESSAGES).await.unwrap_err();
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
                sent = client.send(STREAM, &message) => {
                    sent.unwrap();
                    next += 1;
                }
                () = tokio::task::yield_now() => {}
            }
        }
        client.stream(STREAM).shutdown().await.unwrap();
    };
    let receive = async {
        let (mut stream, mut buf, mut received) = (session.stream(STREAM), [0; 77], Vec::new());
        loop {
            tokio::select! {
                biased;
                len = stream.read(&mut buf) => match len.unwrap() {
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
async fn frames_of_tokio_util_travel_in_a_stream() {
    use futures_util::{SinkExt, StreamExt};
    let (_server, session, client) = pair().await;
    let mut here = Framed::new(client.stream(STREAM), LengthDelimitedCodec::new());
    let mut there = Framed::new(session.stream(STREAM), LengthDelimitedCodec::new());
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
        copy_bidirectional(&mut tcp, &mut client.stream(STREAM)).await.unwrap()
    };
    let far = async {
        let mut tcp = TcpStream::connect(exit).await.unwrap();
        copy_bidirectional(&mut session.stream(STREAM), &mut tcp).await.unwrap()
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
                let (mut from, mut to) = session.stream(STREAM).into_split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    let slow = connect(to).await;
    let mut stuffed = slow.stream(STREAM);
    while let Ok(sent) = timeout(Duration::from_millis(300), stuffed.write(&[1; 8000])).await {
        sent.unwrap(); // until its own queue is full as well
    }
    let clients: Vec<_> = (0..200u32)
        .map(|index| {
            tokio::spawn(async move {
                let session = connect(to).await;
                let (mut stream, mut back) = (session.stream(STREAM), [0; 500]);
                for round in 0..20 {
                    let data = [(index + round) as u8; 500];
                    stream.write_all(&data).await.unwrap();
                    stream.read_exact(&mut back).await.unwrap();
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
    assert_eq!(timeout(PATIENCE, client.recv(MESSAGES)).await.unwrap().unwrap(), "the end");
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

/// A task that waits learns it, and so does one that asks later.
#[tokio::test]
async fn nobody_waits_for_a_session_of_a_server_that_was_shut_down() {
    let (server, _session, _client) = pair().await;
    let server = std::sync::Arc::new(server);
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let server = std::sync::Arc::clone(&server);
            tokio::spawn(async move {
                if number % 2 == 0 {
                    server.accept().await.map(drop)
                } else {
                    server.next_request().await.map(drop)
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    timeout(PATIENCE, server.shutdown(3)).await.unwrap().unwrap();
    let later = [server.accept().await.map(drop), server.next_request().await.map(drop)];
    let mut answers = Vec::from(later);
    for task in tasks {
        answers.push(timeout(PATIENCE, task).await.unwrap().unwrap());
    }
    for answer in answers {
        let error = answer.unwrap_err();
        assert_eq!(Error::of(&error), Some(&Error::Closed { reason: CloseReason::Local(3) }));
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    }
}

fn client_config(user: &[u8]) -> ClientConfig {
    let psk = (SUITE != Suite::Checked).then(|| PSK.into());
    ClientConfig { suite: SUITE, psk, user: user.to_vec(), ..ClientConfig::insecure(config()) }
}

async fn request(server: &Server) -> Request {
    timeout(PATIENCE, server.next_request()).await.unwrap().unwrap()
}

#[tokio::test]
async fn what_a_client_says_of_itself_and_why_it_was_kicked_is_known_at_the_other_end() {
    let server = server();
    let psk = (SUITE != Suite::Checked).then(|| PSK.into());
    let config =
        ClientConfig { suite: SUITE, psk, user: b"Ada".to_vec(), ..ClientConfig::insecure(config()) };
    let (client, session) = tokio::join!(Client::connect(server.local_addr(), &config), accept(&server));
    let client = client.unwrap();
    assert_eq!((session.user(), client.close_text()), (b"Ada".to_vec(), String::new()));
    session.kick(7, "no cheating").unwrap();
    let (reason, _) = timeout(PATIENCE, client.closed()).await.unwrap().unwrap();
    assert_eq!((reason, &*client.close_text()), (CloseReason::Peer(7), "no cheating"));
    assert_eq!(session.user(), b"Ada", "its end is kept while somebody holds it");
}

#[tokio::test]
async fn requests_are_admitted_rejected_and_rejected_when_dropped() {
    let server = Server::bind(ANY, &ServerConfig { ask: true, ..server_config() }).unwrap();
    let address = server.local_addr();
    let rejected = |code, user: &[u8]| Some(Error::Rejected { code, user: user.to_vec() });
    for (answer, refused) in [(b"come", None), (b"stay", rejected(7, b"full")), (b"drop", rejected(0, b""))] {
        let client = async {
            let config = client_config(answer);
            timeout(PATIENCE, Client::connect(address, &config)).await.unwrap()
        };
        let decide = async {
            let mut request = request(&server).await;
            assert_eq!(request.peer_addr().ip(), address.ip());
            match request.user() {
                b"come" => {
                    let too_long = timeout(PATIENCE, request.admit(&[0; 257])).await.unwrap().unwrap_err();
                    assert_eq!(too_long.kind(), ErrorKind::InvalidInput, "and it still asks");
                    return Some(timeout(PATIENCE, request.admit(b"")).await.unwrap().unwrap());
                }
                b"stay" => request.reject(7, b"full").unwrap(),
                _ => drop(request),
            }
            None
        };
        let (client, session) = tokio::join!(client, decide);
        match refused {
            None => {
                client.unwrap().send(MESSAGES, b"inside").await.unwrap();
                assert_eq!(session.unwrap().recv(MESSAGES).await.unwrap(), "inside");
            }
            Some(refused) => {
                let error = client.map(drop).unwrap_err();
                assert_eq!(Error::of(&error), Some(&refused));
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            }
        }
    }
}

#[tokio::test]
async fn a_request_outlives_its_server_and_later_ones_are_rejected() {
    let server = Server::bind(ANY, &ServerConfig { ask: true, ..server_config() }).unwrap();
    let (address, config) = (server.local_addr(), client_config(b""));
    let decide = async {
        let mut request = request(&server).await;
        drop(server);
        tokio::time::sleep(Duration::from_millis(50)).await; // its task has had time to end
        timeout(PATIENCE, request.admit(b"")).await.unwrap().unwrap()
    };
    let (client, session) = tokio::join!(Client::connect(address, &config), decide);
    client.unwrap().send(MESSAGES, b"inside").await.unwrap();
    assert_eq!(timeout(PATIENCE, session.recv(MESSAGES)).await.unwrap().unwrap(), "inside");
    // The session keeps the task, and nobody takes requests any more.
    let error =
        timeout(Duration::from_secs(8), Client::connect(address, &config)).await.unwrap().unwrap_err();
    assert_eq!(Error::of(&error), Some(&Error::Rejected { code: 0, user: Vec::new() }));
}

#[tokio::test]
async fn a_certain_refusal_ends_connecting_and_another_address_is_not_asked() {
    let other = SessionConfig { channels: vec![MESSAGES.into()], ..SessionConfig::default() };
    let here = Server::bind(ANY, &ServerConfig { session: other, ..server_config() }).unwrap();
    let Ok(socket) = UdpSocket::bind("[::1]:0") else { return };
    let there = Server::from_socket(socket, &server_config()).unwrap();
    let addresses = [here.local_addr(), there.local_addr()];
    let config = client_config(b"");
    let error = timeout(PATIENCE, Client::connect(&addresses[..], &config)).await.unwrap().unwrap_err();
    let Some(Error::Closed { reason: CloseReason::Denied(DenyReason::Shape(_)) }) = Error::of(&error) else {
        panic!("{error:?}")
    };
    assert_eq!(there.stats().challenges, 0);
}

#[tokio::test]
async fn a_message_of_another_type_ends_the_session_at_once() {
    const SENT: Channel<Digit<255>> = Channel::ordered(0);
    const TAKEN: Channel<Digit<9>> = Channel::ordered(0);
    let quiet = SessionConfig {
        timeout: Duration::from_secs(120),
        keepalive: Duration::from_secs(10),
        path_mtu: None,
        channels: vec![TAKEN.into()],
        ..SessionConfig::default()
    };
    let server = Server::bind(ANY, &ServerConfig { session: quiet.clone(), ..server_config() }).unwrap();
    let (client, session) = tokio::join!(
        connect_with(server.local_addr(), SessionConfig { channels: vec![SENT.into()], ..quiet }),
        accept(&server)
    );
    client.send(SENT, &Digit(200)).await.unwrap();
    client.connection(|connection| assert!(connection.is_connected()));
    // Nothing else wakes the task of the server by then.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let error = timeout(Duration::from_secs(5), session.recv(TAKEN)).await.unwrap().unwrap_err();
    assert_eq!(Error::of(&error), Some(&Error::Closed { reason: CloseReason::Protocol }));
    let (reason, _) = timeout(Duration::from_secs(5), client.closed()).await.unwrap().unwrap();
    assert_eq!(reason, CloseReason::Peer(code::PROTOCOL));
}

#[tokio::test]
async fn a_name_is_resolved_and_an_unspecified_address_is_this_machine() {
    let server = server();
    let psk = (SUITE != Suite::Checked).then(|| PSK.into());
    let config = ClientConfig { suite: SUITE, psk, ..ClientConfig::insecure(config()) };
    for host in ["localhost", "0.0.0.0"] {
        let connecting = Client::connect((host, server.local_addr().port()), &config);
        timeout(PATIENCE, connecting).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn addresses_of_a_family_are_tried_at_a_time_and_then_those_of_the_other() {
    let Ok(server) = Server::bind("[::]:0", &server_config()) else { return }; // no IPv6 here
    let (port, silent) = (server.local_addr().port(), UdpSocket::bind(ANY).unwrap());
    let psk = (SUITE != Suite::Checked).then(|| PSK.into());
    let config = ClientConfig { suite: SUITE, psk, ..ClientConfig::insecure(config()) };
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let v6 = format!("[::1]:{port}").parse().unwrap();
    // If the first attempt did not have both, it would take minutes.
    for (at, deadline) in [(v4, Duration::from_secs(120)), (v6, Duration::from_millis(200))] {
        let config = ClientConfig { deadline, ..config.clone() };
        let addresses = [silent.local_addr().unwrap(), at];
        let session = timeout(PATIENCE, Client::connect(&addresses[..], &config)).await.unwrap().unwrap();
        assert_eq!(session.local_addr().is_ipv4(), at.is_ipv4());
        let other = accept(&server).await;
        session.send(MESSAGES, b"over it").await.unwrap();
        assert_eq!(timeout(PATIENCE, other.recv(MESSAGES)).await.unwrap().unwrap(), b"over it"[..]);
    }
}

#[tokio::test]
async fn a_client_without_an_answer_gives_up() {
    let nobody = UdpSocket::bind(ANY).unwrap();
    let config = ClientConfig {
        deadline: Duration::from_millis(100),
        ..ClientConfig::insecure(SessionConfig::default())
    };
    let target = nobody.local_addr().unwrap();
    let connecting = Client::connect(target, &config);
    let error = timeout(PATIENCE, connecting).await.unwrap().unwrap_err();
    assert_eq!(Error::of(&error), Some(&Error::Closed { reason: CloseReason::ConnectTimeout }));
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[cfg(all(target_os = "linux", feature = "batch"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_all_shards_are_accepted_in_one_place() {
    let server = Server::bind_shards(ANY, &server_config(), 4).unwrap();
    let mut clients = Vec::new();
    let mut shards = std::collections::BTreeSet::new();
    for number in 0..24u8 {
        let (near, far) =
            tokio::join!(connect(server.local_addr()), async { timeout(PATIENCE, server.accept()).await });
        let far = far.unwrap().unwrap();
        far.send(MESSAGES, &[number]).await.unwrap();
        assert_eq!(timeout(PATIENCE, near.recv(MESSAGES)).await.unwrap().unwrap(), [number][..]);
        shards.insert(far.id().unwrap().shard());
        clients.push((near, far));
    }
    assert!(shards.len() >= 3, "{shards:?}");
    assert_eq!((server.stats().confirmed, server.socket_traffic().handed_on), (24, 0));
    drop(clients);
    timeout(PATIENCE, server.shutdown(0)).await.unwrap().unwrap();
}

/// Sends messages on channel 0 while `writers` tasks always have more to send on the other channel.
async fn a_flow_beside_greedy_writers(writers: usize) {
    let (_server, near, far) = pair().await;
    for _ in 0..writers {
        let near = near.clone();
        tokio::spawn(async move { while near.send(STREAM, &[9; 1000]).await.is_ok() {} });
    }
    let other = far.clone();
    tokio::spawn(async move { while other.recv(STREAM).await.is_ok() {} });
    let flow = tokio::spawn(async move {
        for number in 0..600u32 {
            near.send(MESSAGES, &number.to_le_bytes()).await.unwrap();
            tokio::task::yield_now().await;
        }
        near
    });
    for number in 0..600u32 {
        let mut buf = [0; 4];
        let received = timeout(PATIENCE, far.recv_into(MESSAGES, &mut buf)).await;
        assert_eq!((received.unwrap().unwrap(), buf), (4, number.to_le_bytes()), "{writers} writers");
    }
    flow.await.unwrap().close(0);
}

#[tokio::test]
async fn all_of_a_flow_arrives_beside_greedy_writers_of_another_channel_on_one_thread() {
    for writers in [1, 4, 16] {
        a_flow_beside_greedy_writers(writers).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_of_a_flow_arrives_beside_greedy_writers_of_another_channel_on_four_threads() {
    for writers in [1, 4, 16] {
        a_flow_beside_greedy_writers(writers).await;
    }
}

/// Tasks that always have more to send, all on one channel.
async fn greedy_writers_of_one_channel() {
    const WRITERS: usize = 4;
    let (_server, near, far) = pair().await;
    for writer in 0..WRITERS {
        let near = near.clone();
        tokio::spawn(async move { while near.send(MESSAGES, &[writer as u8; 1000]).await.is_ok() {} });
    }
    let (mut counts, mut buf) = (vec![0; WRITERS], [0; 1000]);
    while counts.iter().sum::<usize>() < 20_000 {
        timeout(PATIENCE, far.recv_into(MESSAGES, &mut buf)).await.unwrap().unwrap();
        *counts.get_mut(usize::from(buf[0])).unwrap() += 1;
    }
    println!("{counts:?}");
    assert!(counts.iter().all(|count| *count > 20_000 / WRITERS / 4), "{counts:?}");
    near.close(0);
}

#[tokio::test]
async fn writers_of_one_channel_have_their_turns_on_one_thread() {
    greedy_writers_of_one_channel().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn writers_of_one_channel_have_their_turns_on_one_worker() {
    greedy_writers_of_one_channel().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_one_channel_have_their_turns_on_four_threads() {
    greedy_writers_of_one_channel().await;
}

#[tokio::test]
async fn a_cancelled_writer_holds_up_nobody_behind_it() {
    for given_up in 1..=3 {
        let (_server, near, far) = pair().await;
        // Until nothing moves any more: data that the peer does not read closes its window.
        let fill = || {
            (0..)
                .take_while(|_| near.connection(|end| end.send(MESSAGES, &[0; 1000])).unwrap().is_ok())
                .count()
        };
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
            timeout(PATIENCE, far.recv_into(MESSAGES, &mut buf)).await.unwrap().unwrap();
            come.extend(Some(buf[0]).filter(|writer| *writer > 0));
        }
        assert!(!come.contains(&(given_up as u8)), "{come:?}");
        for writer in writers {
            writer.await.unwrap().unwrap();
        }
    }
}

#[cfg(feature = "crypto")]
#[tokio::test]
async fn what_is_urgent_leaves_by_two_sockets_and_arrives_once() {
    let (_server, session, client) = pair().await;
    let second = UdpSocket::bind("127.0.0.2:0").or_else(|_| UdpSocket::bind("127.0.0.1:0")).unwrap();
    client.set_second_network(second, SecondNetwork::Double).unwrap();
    let unable = session.set_second_network(UdpSocket::bind(ANY).unwrap(), SecondNetwork::Spare);
    assert_eq!(unable.unwrap_err().kind(), ErrorKind::Unsupported, "at a server");
    for number in 1..=200_u32 {
        client.send(MESSAGES, &number.to_le_bytes()).await.unwrap();
        session.send(MESSAGES, &number.to_le_bytes()).await.unwrap();
        for end in [&client, &session] {
            let message = timeout(PATIENCE, end.recv(MESSAGES)).await.unwrap().unwrap();
            assert_eq!(*message, number.to_le_bytes());
        }
    }
    let [up, down] =
        [&client, &session].map(|end| end.connection(|connection| connection.stats().doubled).unwrap());
    assert!(up > 150 && down > 100, "{up} and {down} packets were doubled");
    client.remove_second_network();
    assert_eq!(client.network(), 0);
}
