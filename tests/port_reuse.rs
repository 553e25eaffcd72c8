//! Ports that are reused at once: by a restarted server, or by a client of another session or conversation.
//! Late datagrams of their predecessors do no harm.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common::configs;
use crate::common::sessions::{on, random};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Conv};
use whitewater::session;
use whitewater::{Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const ANY: &str = "127.0.0.1:0";

fn server_config() -> ServerConfig {
    let session = SessionConfig { timeout: Duration::from_secs(4), ..SessionConfig::default() };
    ServerConfig { accepts_per_second: 1000, accept_burst: 1000, ..ServerConfig::insecure(session) }
}

/// A client on this port.
fn client_on(port: SocketAddr, server: &Server) -> Client {
    client_over(UdpSocket::bind(port).unwrap(), server)
}

fn client_over(socket: UdpSocket, server: &Server) -> Client {
    Client::from_socket(socket, server.local_addr().unwrap(), &client_config()).unwrap()
}

fn client_config() -> ClientConfig {
    ClientConfig::insecure(server_config().session)
}

/// Ends a server without a goodbye: it forgets its sessions first.
fn crash(mut server: Server) {
    *server.machine_mut() = session::Server::new(&server_config(), random(1, 1)).unwrap();
}

/// A port to be used twice.
fn free_port() -> SocketAddr {
    UdpSocket::bind(ANY).unwrap().local_addr().unwrap()
}

/// The events so far.
#[derive(Default)]
struct Told {
    server: Vec<(SessionId, Event)>,
    client: Vec<Event>,
}

impl Told {
    fn sessions(&self) -> Vec<SessionId> {
        let connected = self.server.iter().filter(|(_, event)| *event == Event::Connected);
        connected.map(|(id, _)| *id).collect()
    }

    fn closed(&self, id: SessionId) -> Option<CloseReason> {
        self.server.iter().filter(|(of, _)| *of == id).find_map(|(_, event)| reason(event))
    }

    /// Pumps both until `is_done`.
    fn until(
        &mut self,
        server: &mut Server,
        client: &mut Client,
        mut is_done: impl FnMut(&mut Self, &mut Server, &mut Client) -> bool,
    ) {
        let start = Instant::now();
        while !is_done(self, server, client) {
            assert!(start.elapsed() < PATIENCE, "{:?} {:?}", self.server, self.client);
            server.poll(Some(Duration::from_millis(1))).unwrap();
            self.server.extend(std::iter::from_fn(|| server.poll_event()));
            client.pump().unwrap();
            self.client.extend(std::iter::from_fn(|| client.poll_event()));
        }
    }

    /// Runs until a message of the client has been echoed.
    fn echo(&mut self, server: &mut Server, client: &mut Client, message: &[u8]) {
        let (mut is_sent, mut buf) = (false, [0; 100]);
        self.until(server, client, |_, server, client| {
            let ids: Vec<_> = server.clients().collect();
            for id in ids {
                while let Ok(len) = server.recv_into(id, on(0), &mut buf) {
                    server.send(id, on(0), &buf[..len]).unwrap();
                }
            }
            is_sent = is_sent || client.send(on(0), message).is_ok();
            client.recv_into(on(0), &mut buf).is_ok_and(|len| buf[..len] == *message)
        });
    }
}

fn reason(event: &Event) -> Option<CloseReason> {
    if let Event::Closed { reason, .. } = event { Some(*reason) } else { None }
}

#[test]
fn a_restarted_server_resets_old_sessions_with_its_key_and_accepts_new_ones() {
    let config = ServerConfig { reset_key: Some([5; 16]), ..server_config() };
    let mut server = Server::bind(ANY, &config).unwrap();
    let (at, mut old) = (server.local_addr().unwrap(), client_on(free_port(), &server));
    Told::default().echo(&mut server, &mut old, b"before");
    crash(server);
    let mut server = Server::bind(at, &config).unwrap();
    let mut told = Told::default();
    told.until(&mut server, &mut old, |told, _, client| {
        let _ = client.send(on(0), b"still there?");
        told.client.iter().any(|event| reason(event).is_some())
    });
    assert_eq!(told.client.iter().find_map(reason), Some(CloseReason::ServerForgot));
    assert!(told.server.is_empty(), "packets of the old session opened none: {:?}", told.server);
    let mut new = client_on(free_port(), &server);
    told.echo(&mut server, &mut new, b"after");
    assert_eq!(server.stats().accepted, 1);
}

#[test]
fn without_a_key_old_sessions_of_a_restarted_server_get_no_answer() {
    let mut server = Server::bind(ANY, &server_config()).unwrap();
    let (at, mut old) = (server.local_addr().unwrap(), client_on(free_port(), &server));
    Told::default().echo(&mut server, &mut old, b"before");
    crash(server);
    let mut server = Server::bind(at, &server_config()).unwrap();
    let (mut told, mut new) = (Told::default(), client_on(free_port(), &server));
    let _ = old.send(on(0), b"still there?");
    old.pump().unwrap();
    told.echo(&mut server, &mut new, b"after");
    let rejected = server.stats().rejected;
    assert!(rejected.unknown > 0, "{rejected:?}");
    told.client.clear();
    told.until(&mut server, &mut old, |told, _, _| told.client.iter().any(|event| reason(event).is_some()));
    assert_eq!(told.client.iter().find_map(reason), Some(CloseReason::Timeout));
    assert_eq!(server.stats().accepted, 1);
}

#[test]
fn a_client_on_a_crashed_clients_port_connects_at_once_and_the_old_session_times_out() {
    let mut server = Server::bind(ANY, &server_config()).unwrap();
    let (port, mut told) = (free_port(), Told::default());
    for round in 0..5 {
        let mut client = client_on(port, &server);
        told.echo(&mut server, &mut client, &[round]);
        assert_eq!(told.sessions().len(), usize::from(round) + 1, "while the old ones are still there");
        *client.machine_mut() = session::Client::new(&client_config(), random(1, 1)).unwrap(); // it has crashed
    }
    let last = *told.sessions().last().unwrap();
    let mut client = client_on(free_port(), &server);
    told.until(&mut server, &mut client, |told, _, _| told.closed(last).is_some());
    let reasons: Vec<_> = told.sessions()[..5].iter().map(|id| told.closed(*id)).collect();
    assert_eq!(reasons, [Some(CloseReason::Timeout); 5]);
}

#[test]
fn a_client_on_a_closed_clients_port_connects_at_once_and_late_datagrams_change_nothing() {
    let mut server = Server::bind(ANY, &server_config()).unwrap();
    let (port, mut told) = (free_port(), Told::default());
    let mut old = client_on(port, &server);
    told.echo(&mut server, &mut old, b"before");
    let first = told.sessions()[0];
    old.close(9);
    told.until(&mut server, &mut old, |told, _, _| told.closed(first).is_some());
    assert_eq!(told.closed(first), Some(CloseReason::Peer(9)));
    drop(old);
    let socket = UdpSocket::bind(port).unwrap();
    let late = socket.try_clone().unwrap();
    let mut new = client_over(socket, &server);
    told.echo(&mut server, &mut new, b"after");
    // What the previous session would have sent: DATA with its number, from the same address.
    let mut datagram = vec![0xa6; 60];
    datagram[1..5].copy_from_slice(&u32::from_str_radix(&first.to_string(), 16).unwrap().to_le_bytes());
    for _ in 0..10 {
        late.send_to(&datagram, server.local_addr().unwrap()).unwrap();
        told.echo(&mut server, &mut new, b"and on");
    }
    assert_eq!((told.sessions().len(), told.closed(told.sessions()[1])), (2, None));
}

fn listener() -> kcp::Listener {
    let quarantine = Duration::from_millis(300);
    kcp::Listener::bind(
        ANY,
        &kcp::PeersConfig { kcp: configs::turbo(), quarantine, ..kcp::PeersConfig::default() },
    )
    .unwrap()
}

fn bare_on(port: SocketAddr, listener: &kcp::Listener, conv: u32) -> kcp::Socket {
    let socket = UdpSocket::bind(port).unwrap();
    kcp::Socket::from_socket(socket, listener.local_addr().unwrap(), Conv(conv), &configs::turbo()).unwrap()
}

/// Pumps both until `is_done`, and echoes.
fn bare_until(
    listener: &mut kcp::Listener,
    socket: &mut kcp::Socket,
    mut is_done: impl FnMut(&mut kcp::Listener, &mut kcp::Socket) -> bool,
) {
    let (start, mut buf) = (Instant::now(), [0; 100]);
    while !is_done(listener, socket) {
        assert!(start.elapsed() < PATIENCE, "{:?}", listener.stats());
        listener.poll(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = listener.poll_event() {
            if let kcp::PeerEvent::Readable(id) = event
                && let Some(peer) = listener.peer(id)
            {
                while let Ok(len) = peer.recv_into(&mut buf) {
                    peer.send(&buf[..len]).unwrap();
                }
            }
        }
        socket.pump().unwrap();
    }
}

fn bare_echo(listener: &mut kcp::Listener, socket: &mut kcp::Socket, message: &[u8]) {
    socket.send(message).unwrap();
    let mut buf = [0; 100];
    bare_until(listener, socket, |_, socket| match socket.recv_into(&mut buf) {
        Ok(len) => buf[..len] == *message,
        Err(error) => {
            assert_eq!(error, kcp::RecvError::NoMessage);
            false
        }
    });
}

#[test]
fn another_bare_kcp_conversation_on_the_same_port_is_a_new_peer_at_once() {
    let (mut listener, port) = (listener(), free_port());
    for conv in 1..=4 {
        let mut socket = bare_on(port, &listener, conv);
        bare_echo(&mut listener, &mut socket, &conv.to_le_bytes());
        assert_eq!((listener.peers().len(), listener.stats().accepted), (conv as usize, u64::from(conv)));
    }
}

#[test]
fn a_removed_peer_cannot_reuse_its_conversation_during_its_quarantine() {
    let (mut listener, port) = (listener(), free_port());
    let mut socket = bare_on(port, &listener, 7);
    bare_echo(&mut listener, &mut socket, b"before");
    drop(socket);
    let id = listener.peers().ids().next().unwrap();
    let closed = Instant::now();
    assert!(listener.close(id));
    let mut again = bare_on(port, &listener, 7);
    again.send(b"me again").unwrap();
    bare_until(&mut listener, &mut again, |listener, _| listener.stats().quarantined > 0);
    assert_eq!((listener.peers().len(), listener.stats().accepted), (0, 1));
    // A later retransmission gets it accepted without further ado.
    let mut buf = [0; 100];
    bare_until(&mut listener, &mut again, |_, socket| socket.recv_into(&mut buf).is_ok());
    assert!(closed.elapsed() >= Duration::from_millis(300));
    assert_eq!((&buf[..8], listener.stats().accepted), (&b"me again"[..], 2));
    // Another one could have come at any time.
    let mut other = bare_on(free_port(), &listener, 8);
    bare_echo(&mut listener, &mut other, b"other");
}

#[test]
fn a_restarted_listener_accepts_new_conversations_and_ignores_old_ones() {
    let mut first = listener();
    let at = first.local_addr().unwrap();
    let mut old = bare_on(free_port(), &first, 7);
    bare_echo(&mut first, &mut old, b"before");
    drop(first);
    let mut second =
        kcp::Listener::bind(at, &kcp::PeersConfig { kcp: configs::turbo(), ..kcp::PeersConfig::default() })
            .unwrap();
    old.send(b"still there?").unwrap();
    bare_until(&mut second, &mut old, |listener, _| listener.stats().strays > 0);
    assert!(second.peers().is_empty());
    let mut new = bare_on(free_port(), &second, 8);
    bare_echo(&mut second, &mut new, b"after");
    assert_eq!(second.stats().accepted, 1);
}
