//! Errors of a real network stack are packet loss: they are counted, nothing ends, and everything arrives
//! once the path works again. An interface that is too narrow, a full send buffer, an unreachable host.
//!
//! They need a network of their own: each test runs itself again in a Linux namespace, where `ip` and `tc` change
//! the network. If the system allows no namespaces, these tests print a note and pass; also if `ip` is missing,
//! unless `WHITEWATER_NO_SKIP` is set. `net_unreachable.rs` has those that need none.

#![cfg(all(feature = "net", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[path = "common/configs.rs"]
mod configs;
#[path = "common/network.rs"]
mod network;

use network::{in_own_network, ip};
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Conv};
use whitewater::net::{SocketBuffers, SocketStats};
use whitewater::session::ClientState;
use whitewater::{Channel, Client, ClientConfig, Server, ServerConfig, SessionConfig};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const CHAT: Channel = Channel::ordered(0);

/// A loopback of 1 MB/s with a long queue. `false`: the kernel has no such queue.
fn slow_loopback() -> bool {
    let args = "qdisc add dev lo root tbf rate 8mbit burst 4000 limit 1000000";
    Command::new("tc").args(args.split(' ')).output().unwrap().status.success()
}

/// A server and a connected client.
struct Ends {
    server: Server,
    client: Client,
    got: Vec<u8>,
}

impl Ends {
    fn up(at: &str, target: SocketAddr) -> Self {
        let server = Server::bind(at, &ServerConfig::insecure(SessionConfig::default())).unwrap();
        let to = SocketAddr::new(target.ip(), server.local_addr().unwrap().port());
        let config = ClientConfig { deadline: PATIENCE, ..ClientConfig::insecure(SessionConfig::default()) };
        let client = Client::connect(to, &config).unwrap();
        Self { server, client, got: Vec::new() }
    }

    /// Pumps both until `is_done`.
    fn until(&mut self, mut is_done: impl FnMut(&mut Self) -> bool) {
        let (start, mut buf) = (Instant::now(), vec![0; 1 << 16]);
        while !is_done(self) {
            assert!(start.elapsed() < PATIENCE, "{:?} {}", self.client.socket_stats(), self.got.len());
            self.server.poll(Some(Duration::from_millis(1))).unwrap();
            while self.server.poll_event().is_some() {}
            let ids: Vec<_> = self.server.clients().collect();
            for id in ids {
                while let Ok(len) = self.server.recv_into(id, CHAT, &mut buf) {
                    self.got.extend(buf.iter().take(len));
                }
            }
            self.client.pump().unwrap();
            while self.client.poll_event().is_some() {}
        }
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn datagrams_too_long_for_an_interface_are_lost_until_it_is_wide_again() {
    in_own_network("datagrams_too_long_for_an_interface_are_lost_until_it_is_wide_again", || {
        let mut ends = Ends::up("127.0.0.1:0", loopback());
        ends.until(|ends| ends.client.state() == ClientState::Up);
        ip("link set lo mtu 1000");
        ends.client.send(CHAT, &[7; 1100]).unwrap();
        // Without `batch` nothing forbids fragments, and it goes in two.
        if cfg!(feature = "batch") {
            ends.until(|ends| ends.client.socket_stats().too_long >= 2);
            assert!(ends.got.is_empty());
        }
        ip("link set lo mtu 65536");
        ends.until(|ends| ends.got == [7; 1100]);
        assert_eq!(ends.client.state(), ClientState::Up);
    });
}

#[test]
fn datagrams_wait_for_room_in_a_full_send_buffer_and_are_counted() {
    in_own_network("datagrams_wait_for_room_in_a_full_send_buffer_and_are_counted", || {
        let mut ends = Ends::up("127.0.0.1:0", loopback());
        ends.until(|ends| ends.client.state() == ClientState::Up);
        let tiny = SocketBuffers { send: 4096, ..ends.client.socket_buffers().unwrap() };
        ends.client.set_socket_buffers(tiny).unwrap();
        if !slow_loopback() {
            return println!("skipped: the kernel has no tbf");
        }
        let data: Vec<u8> = (0..200_000u32).map(|at| (at / 7).to_le_bytes()[0]).collect();
        let mut rest = data.chunks(1000).peekable();
        ends.until(|ends| {
            while let Some(chunk) = rest.peek()
                && ends.client.send(CHAT, chunk).is_ok()
            {
                rest.next();
            }
            ends.got.len() == data.len()
        });
        let stats = ends.client.socket_stats();
        assert!(ends.got == data && stats.send_buffer_full > 0, "{stats:?}");
        let SocketStats { no_buffers, too_long, send_failed, unreachable, .. } = stats;
        assert_eq!([no_buffers, too_long, send_failed, unreachable], [0; 4], "nothing was lost here");
    });
}

#[test]
fn an_unreachable_host_is_counted_and_found_once_reachable() {
    in_own_network("an_unreachable_host_is_counted_and_found_once_reachable", || {
        ip("route add unreachable 10.1.2.3");
        let mut ends = Ends::up("0.0.0.0:0", SocketAddr::from(([10, 1, 2, 3], 0)));
        ends.until(|ends| ends.client.socket_stats().unreachable >= 2);
        ip("route del unreachable 10.1.2.3");
        ip("addr add 10.1.2.3/32 dev lo");
        ends.until(|ends| ends.client.state() == ClientState::Up);
    });
}

#[test]
fn bare_kcp_over_a_narrow_interface_uses_fragments() {
    in_own_network("bare_kcp_over_a_narrow_interface_uses_fragments", || {
        ip("link set lo mtu 600");
        let mut listener = kcp::Listener::bind(loopback(), &kcp::PeersConfig::default()).unwrap();
        let to = listener.local_addr().unwrap();
        let mut socket = kcp::Socket::connect(to, Conv(7), &configs::turbo()).unwrap();
        socket.send(&[7; 5000]).unwrap();
        let (start, mut buf, mut got) = (Instant::now(), vec![0; 5000], 0);
        while got == 0 {
            assert!(start.elapsed() < PATIENCE, "{:?} {:?}", socket.socket_stats(), listener.stats());
            socket.pump().unwrap();
            listener.poll(Some(Duration::from_millis(1))).unwrap();
            while let Some(event) = listener.poll_event() {
                if let kcp::PeerEvent::Readable(id) = event {
                    got = listener.peer(id).unwrap().recv_into(&mut buf).unwrap();
                }
            }
        }
        assert!(got == 5000 && socket.socket_stats() == SocketStats::default());
    });
}
