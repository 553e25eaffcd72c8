//! A port on which nobody listens is packet loss, whatever the system says of it: nothing ends, and everything arrives
//! once somebody listens. ICMP tells a socket that has one peer; Windows tells every socket, and then its next read fails.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::configs;
use crate::common::sessions::random;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Conv};
use whitewater::session::{self, ClientState};
use whitewater::{Channel, Client, ClientConfig, Event, Server, ServerConfig, SessionConfig};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const CHAT: Channel = Channel::ordered(0);
const TICK: Option<Duration> = Some(Duration::from_millis(1));

/// An address on which nobody listens.
fn nobody() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn client_of(at: SocketAddr) -> Client {
    let config = ClientConfig { deadline: PATIENCE, ..ClientConfig::insecure(SessionConfig::default()) };
    Client::connect(at, &config).unwrap()
}

fn server_at(at: SocketAddr) -> Server {
    Server::bind(at, &ServerConfig::insecure(SessionConfig::default())).unwrap()
}

#[test]
fn a_client_that_begins_before_its_server_is_served() {
    let at = nobody();
    let (start, mut client) = (Instant::now(), client_of(at));
    // Long enough for several attempts.
    while client.socket_traffic().sent < 3 {
        assert!(start.elapsed() < PATIENCE, "{:?}", client.socket_traffic());
        client.poll(TICK).unwrap();
    }
    let mut server = server_at(at);
    while client.state() != ClientState::Up {
        assert!(start.elapsed() < PATIENCE, "{:?} {:?}", client.state(), client.socket_stats());
        client.poll(TICK).unwrap();
        server.poll(TICK).unwrap();
    }
}

#[test]
fn a_bare_socket_that_begins_before_its_peer_is_served() {
    let at = nobody();
    let mut socket = kcp::Socket::connect(at, Conv(7), &configs::turbo()).unwrap();
    socket.send(b"anyone?").unwrap();
    let start = Instant::now();
    while socket.socket_stats().unreachable == 0 {
        assert!(start.elapsed() < PATIENCE, "{:?}", socket.socket_stats());
        socket.pump().unwrap();
    }
    let mut listener = kcp::Listener::bind(at, &kcp::PeersConfig::default()).unwrap();
    let (mut buf, mut got) = ([0; 10], 0);
    while got == 0 {
        assert!(start.elapsed() < PATIENCE, "{:?} {:?}", socket.socket_stats(), listener.stats());
        socket.pump().unwrap();
        listener.poll(TICK).unwrap();
        while let Some(event) = listener.poll_event() {
            if let kcp::PeerEvent::Readable(id) = event {
                got = listener.peer(id).unwrap().recv_into(&mut buf).unwrap();
            }
        }
    }
    assert_eq!(buf.get(..got), Some(&b"anyone?"[..]));
}

/// Its client has gone without a word, and its port is closed.
#[test]
fn a_server_serves_the_others_after_one_has_vanished() {
    let mut server = server_at(SocketAddr::from(([127, 0, 0, 1], 0)));
    serve_after_one_has_vanished(&mut server);
}

/// There the server's reads fail, once for each datagram that it sends to nobody.
#[cfg(windows)]
#[test]
fn resets_on_windows_are_counted_by_a_server() {
    let mut server = server_at(SocketAddr::from(([127, 0, 0, 1], 0)));
    serve_after_one_has_vanished(&mut server);
    assert!(server.socket_stats().unreachable > 0, "{:?}", server.socket_stats());
}

fn serve_after_one_has_vanished(server: &mut Server) {
    let at = server.local_addr().unwrap();
    let start = Instant::now();
    let join = |server: &mut Server| {
        let mut client = client_of(at);
        loop {
            assert!(start.elapsed() < PATIENCE, "{:?}", server.stats());
            client.poll(TICK).unwrap();
            server.poll(TICK).unwrap();
            if let Some((id, Event::Connected)) = server.poll_event() {
                return (client, id);
            }
        }
    };
    let ((mut gone, gone_id), (mut client, id)) = (join(server), join(server));
    *gone.machine_mut() =
        session::Client::new(&ClientConfig::insecure(SessionConfig::default()), random(1, 1)).unwrap();
    drop(gone);
    let (mut buf, mut echoed) = ([0; 100], 0);
    client.send(CHAT, &[0]).unwrap();
    while echoed < 100 {
        assert!(start.elapsed() < PATIENCE, "{echoed} {:?}", server.socket_stats());
        let _ = server.send(gone_id, CHAT, b"nobody reads this"); // once its channel is full, it is only sent again
        server.poll(TICK).unwrap();
        client.poll(TICK).unwrap();
        while let Ok(len) = server.recv_into(id, CHAT, &mut buf) {
            server.send(id, CHAT, buf.get(..len).unwrap()).unwrap();
        }
        while client.recv_into(CHAT, &mut buf).is_ok() {
            echoed += 1;
            client.send(CHAT, &[0]).unwrap();
        }
    }
}

/// ICMP reports that nobody listens; then somebody does.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn under_tokio_a_port_without_a_listener_is_loss_until_there_is_one() {
    use tokio::time::timeout;
    use whitewater::tokio::{KcpListener, KcpStream};
    let at = nobody();
    let client = KcpStream::connect(at, Conv(7), &configs::turbo()).unwrap();
    client.send(b"anyone?").await.unwrap();
    let told = async {
        while client.socket_stats().unreachable == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, told).await.unwrap();
    let listener = KcpListener::bind(at, &kcp::PeersConfig::default()).unwrap();
    let (peer, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut buf = [0; 10];
    assert_eq!(timeout(PATIENCE, peer.recv(&mut buf)).await.unwrap().unwrap(), 7);
}
