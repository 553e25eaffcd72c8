//! Peers by QUIC and by TCP that are no browsers: each ends in time and is counted, and meanwhile other players play.
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

mod echo;
mod players;

use echo::{start, until};
use players::{CHAT, PSK, Player, Way, client, play, session, web};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use whitewater::machine::Machine as _;
use whitewater::{Client, ClientConfig, ServerConfig, SessionConfig};
use whitewater_web::{Web, WebConfig, WebStats};
use wtransport::quinn::{self, Connection, Endpoint, SendStream};
use wtransport::tls::client::{ServerHashVerification, build_default_tls_config};
use wtransport::tls::{Sha256Digest, rustls::RootCertStore};

/// Most that anything here takes.
const LIMIT: Duration = Duration::from_secs(20);

/// Limits that a test reaches soon.
fn limits() -> WebConfig {
    let mut limits = web();
    (limits.handshake_timeout, limits.idle_timeout) = (Duration::from_millis(500), Duration::from_secs(1));
    limits
}

/// A server with a player in it, who plays before, during and after what the peers do. Returns what was counted once these are gone.
fn beside_a_player<T: Send + 'static>(limits: &WebConfig, peers: impl AsyncFnOnce(&Web) -> T) -> WebStats {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let (mut echo, web, runtime) = start(&config, limits);
    let stats = runtime.block_on(async {
        let way = Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap();
        let mut player = Player::new(way, &client(ClientConfig::secret(session(), PSK)));
        play(&mut player, 50).await;
        let before = web.stats();
        let is_over = std::cell::Cell::new(false);
        let peers = async {
            let kept = timeout(LIMIT, peers(&web)).await.unwrap();
            is_over.set(true);
            kept
        };
        let plays = async {
            while !is_over.get() {
                play_on(&mut player).await; // to its end, or the echo of the rest would be in the next one
            }
        };
        let (kept, ()) = tokio::join!(peers, plays);
        for _ in 0..400 {
            if web.stats().connections == 1 {
                break;
            }
            play_on(&mut player).await;
        }
        let after = web.stats();
        assert_eq!((before.connections, after.connections), (1, 1), "each place is given back: {after:?}");
        assert_eq!(player.session.state(), whitewater::session::ClientState::Up);
        drop(kept);
        after
    });
    assert_eq!(echo.joined.lock().unwrap().len(), 1, "nobody else has joined");
    drop(echo.end());
    stats
}

/// A few messages there and back.
async fn play_on(player: &mut Player) {
    play(player, 50).await;
    sleep(Duration::from_millis(50)).await;
}

/// A connection of QUIC with a server, and nothing of HTTP/3 in it.
async fn quic(web: &Web) -> Connection {
    let hash = ServerHashVerification::new([Sha256Digest::new(web.certificate_hash())]);
    let tls = build_default_tls_config(Arc::new(RootCertStore::empty()), Some(Arc::new(hash)));
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(tls));
    endpoint.connect_with(config, web.local_addr(), "localhost").unwrap().await.unwrap()
}

/// Waits until the server has closed the connection.
async fn closed(connection: &Connection) {
    timeout(LIMIT, connection.closed()).await.unwrap();
}

/// The control stream of HTTP/3, with empty settings.
async fn control(connection: &Connection) -> SendStream {
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_all(&[0, 4, 0]).await.unwrap();
    stream
}

/// A frame of HTTP/3 that says how long it is, which may be a lie.
fn frame(kind: u8, len: u32, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &(len | 2 << 30).to_be_bytes(), payload].concat()
}

/// Asks for a WebSocket, and leaves what is in it to the caller.
async fn web_socket(web: &Web, socket: TcpSocket) -> TcpStream {
    let mut stream = socket.connect(web.local_addr()).await.unwrap();
    stream.write_all(ASK.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    stream
}

const ASK: &str = "GET / HTTP/1.1\r\nHost: game\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A frame of a WebSocket with up to 125 bytes, masked by zeros.
fn message(first: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    [&[first, 0x80 | len, 0, 0, 0, 0], payload].concat()
}

/// The same bytes again and again, until the server has ended the connection.
async fn endless(stream: &mut TcpStream, bytes: &[u8], pause: Duration) {
    let send = async {
        while stream.write_all(bytes).await.is_ok() {
            sleep(pause).await;
        }
    };
    timeout(LIMIT, send).await.unwrap();
}

/// Waits for the end of what the server sends.
async fn ended(stream: &mut TcpStream) {
    let read = async {
        let mut bytes = [0; 1 << 10];
        while stream.read(&mut bytes).await.is_ok_and(|len| len > 0) {}
    };
    timeout(LIMIT, read).await.unwrap();
}

fn tcp() -> TcpSocket {
    TcpSocket::new_v4().unwrap()
}

#[test]
fn a_connection_that_never_asks_for_a_session_is_closed_in_time() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        let silent = quic(web).await;
        let half = quic(web).await;
        let control = control(&half).await; // and then no request
        closed(&silent).await;
        closed(&half).await;
        drop(control);
    });
    assert_eq!((stats.failed, stats.web_transports), (2, 1));
}

#[test]
fn a_request_that_never_ends_is_closed_in_time_with_all_of_its_streams() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        let slow = quic(web).await;
        let mut streams = vec![control(&slow).await];
        for _ in 0..2 {
            let (mut request, _) = slow.open_bi().await.unwrap();
            request.write_all(&frame(1, 4000, b"x")).await.unwrap();
            streams.push(request);
        }
        for _ in 0..3 {
            let mut stream = slow.open_uni().await.unwrap();
            stream.write_all(&[0x40]).await.unwrap(); // half of a number
            streams.push(stream);
        }
        assert!(timeout(Duration::from_millis(50), slow.open_bi()).await.is_err(), "there are two");
        assert!(timeout(Duration::from_millis(50), slow.open_uni()).await.is_err(), "there are four");
        let dribble = async {
            loop {
                for stream in &mut streams[..3] {
                    let _ = stream.write_all(b"x").await;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! { () = closed(&slow) => {}, () = dribble => {} }
    });
    assert_eq!((stats.failed, stats.web_transports), (1, 1));
}

#[test]
fn long_headers_and_frames_without_end_are_refused() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        let long = quic(web).await;
        let control_of_long = control(&long).await;
        let (mut request, _answer) = long.open_bi().await.unwrap();
        request.write_all(&frame(1, 1 << 20, &[0; 1000])).await.unwrap();
        closed(&long).await;
        let wrong = quic(web).await;
        let control_of_wrong = control(&wrong).await;
        let (mut request, _answer) = wrong.open_bi().await.unwrap();
        request.write_all(&frame(1, 100, &[0xff; 100])).await.unwrap();
        closed(&wrong).await;
        let endless = quic(web).await;
        let control_of_endless = control(&endless).await;
        let (mut request, _answer) = endless.open_bi().await.unwrap();
        let send = async { while request.write_all(&frame(0x21, 1000, &[0; 1000])).await.is_ok() {} };
        timeout(LIMIT, send).await.unwrap();
        closed(&endless).await;
        drop((control_of_long, control_of_wrong, control_of_endless));
    });
    assert_eq!((stats.failed, stats.web_transports), (3, 1));
}

#[test]
fn datagrams_before_a_session_or_of_another_one_are_nobodys() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        let early = quic(web).await;
        for number in 0..2000_u32 {
            let _ = early.send_datagram(vec![0; 1000].into());
            if number % 100 == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        closed(&early).await;
        let Way::WebTransport(up) =
            Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap()
        else {
            return;
        };
        let received = web.stats().received;
        for number in 0..2000_u32 {
            let other = [&[1][..], &[0; 1000]].concat(); // of the session on stream 4
            let _ = up.quic_connection().send_datagram(other.into());
            if number % 100 == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        let own = web.stats().received - received;
        assert!(own < 1500, "{own}: only the player's have arrived");
        closed(up.quic_connection()).await;
        // A number that no stream has.
        let Way::WebTransport(up) =
            Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap()
        else {
            return;
        };
        up.quic_connection().send_datagram(vec![0xff; 100].into()).unwrap();
        closed(up.quic_connection()).await;
    });
    assert_eq!((stats.failed, stats.evicted, stats.web_transports), (1, 1, 3), "{stats:?}");
}

#[test]
fn garbage_in_a_session_harms_neither_it_nor_others() {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let (mut echo, web, runtime) = start(&config, &limits());
    let (at, is_over) = (echo.at, Arc::new(AtomicBool::new(false)));
    let ends = Arc::clone(&is_over);
    let native = std::thread::spawn(move || {
        let config = ClientConfig::secret(SessionConfig::default(), PSK);
        let (mut native, mut echoed) = (Client::connect(at, &config).unwrap(), 0);
        assert!(native.poll(Some(LIMIT)).unwrap());
        while !ends.load(Relaxed) {
            native.send(CHAT, b"native").unwrap();
            let sent = Instant::now();
            while native.recv(CHAT).is_none() {
                native.poll(Some(Duration::from_millis(20))).unwrap();
                assert!(sent.elapsed() < LIMIT, "nothing comes back");
            }
            echoed += 1;
        }
        echoed
    });
    runtime.block_on(async {
        let config = client(ClientConfig::secret(session(), PSK));
        let url = web.url("127.0.0.1");
        let mut other = Player::new(Way::web_transport(&url, web.certificate_hash()).await.unwrap(), &config);
        play(&mut other, 50).await;
        let ways = [
            Way::web_transport(&url, web.certificate_hash()).await.unwrap(),
            Way::web_socket(web.local_addr(), "/").await.unwrap(),
        ];
        for way in ways {
            let mut loud = Player::new(way, &config);
            play(&mut loud, 50).await;
            for round in 0..20_u8 {
                for number in 0..200_u8 {
                    let _ = loud.way.send(&[number ^ round; 900]).await;
                }
                play(&mut other, 0).await; // datagrams of its own may be lost beside so many
            }
            play(&mut loud, 50).await;
            play(&mut other, 50).await;
        }
    });
    is_over.store(true, Relaxed);
    assert!(native.join().unwrap() > 20, "a native client plays on as well");
    let stats = web.stats();
    assert_eq!((stats.evicted, stats.failed), (0, 0), "who has a session may send");
    assert_eq!(echo.end().stats().accepted, 4);
}

#[test]
fn more_than_the_server_takes_is_dropped_and_counted() {
    let mut limits = limits();
    (limits.queue, limits.idle_timeout) = (10, LIMIT);
    let (web, browsers) = whitewater_web::listen(&limits).unwrap(); // and nobody takes
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut loud = Way::web_socket(web.local_addr(), "/").await.unwrap();
        for _ in 0..60 {
            loud.send(&[7; 1000]).await.unwrap();
        }
        until(|| web.stats().received == 60);
    });
    assert_eq!(web.stats().overflowed, 50);
    drop(browsers);
}

#[test]
fn connections_have_a_limit_in_all() {
    let mut limits = limits();
    limits.connections = 4;
    (limits.handshake_timeout, limits.idle_timeout) = (Duration::from_secs(3), Duration::from_secs(3));
    let stats = beside_a_player(&limits, async |web: &Web| {
        let mut inside = Vec::new();
        for _ in 0..2 {
            inside.push(web_socket(web, tcp()).await);
        }
        let by_quic = quic(web).await;
        assert_eq!(web.stats().connections, 4);
        let mut more = tcp().connect(web.local_addr()).await.unwrap();
        ended(&mut more).await;
        let refused = Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await;
        assert!(refused.is_err() && web.stats().refused == 2);
        for stream in &mut inside {
            ended(stream).await;
        }
        closed(&by_quic).await;
        assert!(Way::web_socket(web.local_addr(), "/").await.is_ok(), "then there is room again");
    });
    assert_eq!((stats.refused, stats.evicted), (2, 2));
}

#[test]
fn handshakes_have_a_limit_for_an_address() {
    let mut limits = limits();
    (limits.handshakes_per_address, limits.handshake_timeout) = (3, Duration::from_secs(3));
    let stats = beside_a_player(&limits, async |web: &Web| {
        let mut slow = Vec::new();
        for _ in 0..3 {
            slow.push(tcp().connect(web.local_addr()).await.unwrap());
        }
        until(|| web.stats().connections == 4);
        let mut more = tcp().connect(web.local_addr()).await.unwrap();
        ended(&mut more).await;
        assert_eq!(web.stats().refused, 1);
        for stream in &mut slow {
            ended(stream).await;
        }
        assert!(Way::web_socket(web.local_addr(), "/").await.is_ok());
    });
    assert_eq!((stats.refused, stats.failed), (1, 3));
}

/// From half of the limit on, who comes by QUIC has to answer first.
#[test]
fn who_proves_an_address_comes_in_beside_a_crowd() {
    let mut limits = limits();
    (limits.handshakes, limits.handshake_timeout) = (4, Duration::from_secs(4));
    let stats = beside_a_player(&limits, async |web: &Web| {
        let mut crowd = Vec::new();
        for _ in 0..3 {
            crowd.push(tcp().connect(web.local_addr()).await.unwrap());
        }
        until(|| web.stats().connections == 4);
        let up = Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap();
        assert_eq!((web.stats().failed, web.stats().refused), (0, 0), "the crowd was still there");
        drop(up);
        for stream in &mut crowd {
            ended(stream).await;
        }
    });
    assert_eq!((stats.failed, stats.refused), (3, 0));
}

#[test]
fn an_upgrade_that_never_ends_is_ended_in_time() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        let mut silent = tcp().connect(web.local_addr()).await.unwrap();
        let mut slow = tcp().connect(web.local_addr()).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
        endless(&mut slow, b"x", Duration::from_millis(20)).await;
        ended(&mut silent).await;
        let mut long = tcp().connect(web.local_addr()).await.unwrap();
        long.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        endless(&mut long, &b"more: of it\r\n".repeat(100), Duration::ZERO).await;
        let mut wrong = tcp().connect(web.local_addr()).await.unwrap();
        wrong.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n").await.unwrap();
        ended(&mut wrong).await;
    });
    assert_eq!((stats.failed, stats.web_sockets), (4, 0));
}

#[test]
fn a_web_socket_takes_nothing_longer_than_a_datagram() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        let huge = [&[0x82, 0xff][..], &(u64::MAX >> 1).to_be_bytes(), &[0; 4]].concat();
        let long = [&[0x82, 0xfe, 0x08, 0x01, 0, 0, 0, 0][..], &[0; 2049]].concat();
        for bytes in [huge, long] {
            let mut stream = web_socket(web, tcp()).await;
            let _ = stream.write_all(&bytes).await;
            ended(&mut stream).await;
        }
        let mut parts = web_socket(web, tcp()).await;
        parts.write_all(&message(0x02, &[0; 100])).await.unwrap();
        endless(&mut parts, &message(0, &[0; 100]), Duration::from_millis(1)).await;
        for first in [0x81, 0x83, 0xc2] {
            let mut stream = web_socket(web, tcp()).await; // text; what is reserved
            stream.write_all(&message(first, b"text")).await.unwrap();
            ended(&mut stream).await;
        }
    });
    assert_eq!((stats.web_sockets, stats.evicted), (6, 0), "each was ended at once");
}

#[test]
fn a_web_socket_without_a_session_is_closed_whatever_it_sends() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        for bytes in [message(0x89, &[0; 100]), message(0x82, b""), message(0, b"")] {
            let mut stream = web_socket(web, tcp()).await;
            if bytes[0] == 0 {
                stream.write_all(&message(0x02, b"")).await.unwrap();
            }
            endless(&mut stream, &bytes.repeat(20), Duration::from_micros(200)).await; // and it never reads
        }
    });
    assert_eq!((stats.web_sockets, stats.evicted), (3, 3));
}

/// A cookie, or word that a session is unknown, is no session: it keeps no connection open.
#[test]
fn who_is_answered_and_never_joins_is_closed_in_time() {
    let stats = beside_a_player(&limits(), async |web: &Web| {
        for by_quic in [true, false] {
            let way = match by_quic {
                true => Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap(),
                false => Way::web_socket(web.local_addr(), "/").await.unwrap(),
            };
            let mut stranger = Player::new(way, &client(ClientConfig::secret(session(), PSK)));
            let mut answers = 0;
            let until = Instant::now() + LIMIT;
            loop {
                assert!(Instant::now() < until, "it stays, with {answers} answers");
                let (now, mut hello) = (stranger.now(), Vec::new());
                stranger.session.handle_timeout(now);
                while stranger.session.poll_transmit(now, &mut hello).is_some() {
                    let _ = stranger.way.send(&hello).await;
                    hello.clear();
                }
                let mut data = [7; 60];
                data[0] = 0xa6; // DATA of a session that there is not
                let _ = stranger.way.send(&data).await;
                match timeout(Duration::from_millis(20), stranger.way.recv()).await {
                    Ok(Ok(_)) => answers += 1, // and it is not taken in
                    Ok(Err(_)) => break,
                    Err(_) => {}
                }
            }
            assert!(answers > 1, "{answers}: it was told something");
        }
    });
    assert_eq!((stats.web_transports, stats.web_sockets, stats.evicted), (2, 1, 2));
}

/// Of a session, what it is sent and does not read is dropped beyond what TCP and the queues hold.
#[test]
fn a_web_socket_that_is_never_read_holds_a_bounded_queue_and_ends() {
    let quick = SessionConfig { timeout: Duration::from_secs(5), ..SessionConfig::default() };
    let mut limits = limits();
    limits.idle_timeout = Duration::from_secs(4); // the other one is not driven while the deaf one sends
    let (mut echo, web, runtime) = start(&ServerConfig::secret(quick, PSK), &limits);
    runtime.block_on(async {
        let config = client(ClientConfig::secret(session(), PSK));
        let url = web.url("127.0.0.1");
        let mut other = Player::new(Way::web_transport(&url, web.certificate_hash()).await.unwrap(), &config);
        play(&mut other, 50).await;
        let way = Way::web_socket(web.local_addr(), "/").await.unwrap();
        let mut deaf = Player::new(way, &config);
        play(&mut deaf, 50).await;
        let begun = Instant::now();
        while web.stats().not_sent == 0 && begun.elapsed() < LIMIT {
            let now = deaf.now();
            for _ in 0..50 {
                let _ = deaf.session.connection_mut().unwrap().send_datagram(&[7; 1000]);
            }
            let mut datagram = Vec::new();
            while deaf.session.poll_transmit(now, &mut datagram).is_some() {
                let _ = deaf.way.send(&datagram).await;
                datagram.clear();
            }
            play(&mut other, 50).await;
        }
        assert!(web.stats().not_sent > 0, "{:?}", web.stats());
        while web.stats().connections > 1 && begun.elapsed() < 2 * LIMIT {
            play(&mut other, 50).await;
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(web.stats().connections, 1, "{:?}", web.stats());
        play(&mut other, 50).await;
    });
    assert_eq!(web.stats().evicted, 1);
    drop(echo.end());
}
