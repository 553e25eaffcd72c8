//! The event log of a session or a peer can be switched on in a running program, with any driver, and be
//! written to a file.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common::configs;
use crate::common::sessions::on;
use std::io::Write;
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Config, Conv};
use whitewater::thread::{self, ThreadConfig};
use whitewater::{Client, ClientConfig, Event, Server, ServerConfig, SessionConfig, SessionId};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that a log is empty or consists of JSON lines beginning with its start. Returns how often each of
/// `what` occurs.
fn count<const N: usize>(log: &[u8], what: [&str; N]) -> [usize; N] {
    let text = std::str::from_utf8(log).unwrap();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["t"].is_u64() && line["e"].is_string(), "{line}");
    }
    what.map(|what| text.matches(what).count())
}

fn pair() -> (Server, Client, SessionId) {
    let mut server = Server::bind("127.0.0.1:0", &ServerConfig::insecure(SessionConfig::default())).unwrap();
    let target = server.local_addr().unwrap();
    let mut client = Client::connect(target, &ClientConfig::insecure(SessionConfig::default())).unwrap();
    let mut id = None;
    until(|| {
        server.pump().unwrap();
        client.pump().unwrap();
        while let Some((session, event)) = server.poll_event() {
            id = id.or((event == Event::Connected).then_some(session));
        }
        id.is_some()
    });
    (server, client, id.unwrap())
}

#[test]
fn the_log_of_a_server_session_and_of_a_client_can_be_written_to_a_file() {
    let (mut server, mut client, id) = pair();
    server.connection_mut(id).unwrap().log_events(1000);
    client.connection_mut().unwrap().log_events(1000);
    client.send(on(0), b"hello").unwrap();
    let mut buf = [0; 100];
    until(|| {
        client.pump().unwrap();
        server.pump().unwrap();
        server.recv_into(id, on(0), &mut buf).is_ok()
    });
    let path = std::env::temp_dir().join(format!("whitewater-events-{}", std::process::id()));
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let lines = server.connection_mut(id).unwrap().write_log(&mut file).unwrap();
    file.flush().unwrap();
    let written = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), lines);
    assert_eq!(count(&written, [r#""e":"start""#, r#""e":"recv","rcv_nxt":1"#]), [2, 1]);
    let mut sent = Vec::new();
    client.connection_mut().unwrap().write_log(&mut sent).unwrap();
    assert_eq!(count(&sent, [r#""channel":0,"e":"send","sn":0,"n":1,"bytes":5"#]), [1]);
}

#[test]
fn the_log_of_bare_kcp_uses_the_clock_of_the_socket() {
    let limits = kcp::PeersConfig { kcp: configs::turbo(), ..kcp::PeersConfig::default() };
    let mut listener = kcp::Listener::bind("127.0.0.1:0", &limits).unwrap();
    let mut socket =
        kcp::Socket::connect(listener.local_addr().unwrap(), Conv(7), &configs::turbo()).unwrap();
    socket.log_events(1000);
    let (mut peer, mut buf, mut sent) = (None, [0; 100], 0);
    until(|| {
        if peer.is_none() || sent == 0 {
            socket.send(b"hello").unwrap();
            sent += usize::from(peer.is_some());
        }
        socket.pump().unwrap();
        listener.pump().unwrap();
        while let Some(event) = listener.poll_event() {
            if let kcp::PeerEvent::Accepted(id) = event {
                peer = Some(id);
                listener.peer(id).unwrap().log_events(1000);
            }
        }
        let Some(one) = peer.and_then(|id| listener.peer(id)) else { return false };
        while one.recv_into(&mut buf).is_ok() {}
        one.stats().rcv_nxt.0 >= 2 && socket.stats().snd_una.0 >= 2
    });
    let mut log = Vec::new();
    socket.write_log(&mut log).unwrap();
    let [start, acks] = count(&log, [r#""e":"start""#, r#""e":"ack""#]);
    assert!(start == 1 && acks >= 1);
    let peer = listener.peer(peer.unwrap()).unwrap();
    let mut times = Vec::new();
    while let Some(logged) = peer.poll_log() {
        times.push(logged.at.as_micros());
    }
    // And not the clock of its control block, which may be ahead by years.
    assert!(
        times.len() > 1 && times.iter().all(|at| u128::from(*at) < 2 * PATIENCE.as_micros()),
        "{times:?}"
    );
}

#[test]
fn the_log_of_sessions_behind_threads() {
    let config = ThreadConfig::default();
    let mut server =
        thread::Server::bind("127.0.0.1:0", &ServerConfig::insecure(SessionConfig::default()), &config)
            .unwrap();
    let target = server.local_addr();
    let mut client =
        thread::Client::connect(target, &ClientConfig::insecure(SessionConfig::default()), &config).unwrap();
    let patience = Some(PATIENCE);
    assert!(client.poll(patience) && client.poll_event() == Some(Event::Connected));
    assert!(server.poll(patience));
    let (id, _) = server.poll_event().unwrap();
    assert!(server.at(id, move |server| server.connection_mut(id).unwrap().log_events(1000)));
    client.send(on(0), b"hello").unwrap();
    assert!(server.poll(patience) && server.poll_event() == Some((id, Event::Readable)));
    assert_eq!(server.recv(id, on(0)).unwrap(), "hello");
    let (give, take) = std::sync::mpsc::channel();
    assert!(server.at(id, move |server| {
        let mut log = Vec::new();
        server.connection_mut(id).unwrap().write_log(&mut log).unwrap();
        give.send(log).unwrap();
    }));
    let log = take.recv_timeout(PATIENCE).unwrap();
    assert_eq!(count(&log, [r#""channel":0,"e":"recv","rcv_nxt":1,"n":1"#]), [1]);
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn the_log_of_sessions_and_streams_under_tokio() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use whitewater::tokio::{Client, KcpListener, KcpStream, Server};

    let at = "127.0.0.1:0";
    let server = Server::bind(at, &ServerConfig::insecure(SessionConfig::default())).unwrap();
    let target = server.local_addr();
    let client = Client::connect(target, &ClientConfig::insecure(SessionConfig::default())).await.unwrap();
    let session = server.accept().await.unwrap();
    session.connection(|connection| connection.log_events(1000)).unwrap();
    client.send(on(0), b"hello").await.unwrap();
    session.recv_into(on(0), &mut [0; 100]).await.unwrap();
    let mut log = Vec::new();
    session.connection(|connection| connection.write_log(&mut log)).unwrap().unwrap();
    assert_eq!(count(&log, [r#""channel":0,"e":"recv","rcv_nxt":1,"n":1"#]), [1]);

    let limits =
        kcp::PeersConfig { kcp: Config { stream: true, ..configs::turbo() }, ..kcp::PeersConfig::default() };
    let listener = KcpListener::bind(at, &limits).unwrap();
    let mut stream = KcpStream::connect(listener.local_addr(), Conv(7), &limits.kcp).unwrap();
    stream.with(|peer| peer.log_events(1000)).unwrap();
    stream.write_all(b"hello").await.unwrap();
    let (mut other, _) = listener.accept().await.unwrap();
    other.read_exact(&mut [0; 5]).await.unwrap();
    let mut log = Vec::new();
    stream.with(|peer| peer.write_log(&mut log)).unwrap().unwrap();
    assert_eq!(count(&log, [r#""e":"send","sn":0,"n":1,"bytes":5"#]), [1]);
}
