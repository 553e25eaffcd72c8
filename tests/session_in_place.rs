//! Session datagrams appended to a buffer and opened in place are the same as single ones.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common::configs;
use crate::common::machine::Whole as _;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::kcp::{self, Config, Conv, Peers};
use whitewater::machine::Machine as _;
use whitewater::session::{Client, Server};
use whitewater::{Channel, ChannelConfig, ClientConfig, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

const CHANNEL: Channel = Channel::ordered(0);
const BEFORE: &[u8] = b"what was there before";

/// A client and a server with fixed random numbers, and the datagrams between them.
struct Ends {
    client: Client,
    server: Server,
    now: Time,
    /// Whether datagrams are appended to others.
    behind: bool,
    wire: Vec<Vec<u8>>,
}

impl Ends {
    fn new(behind: bool, kcp: Config) -> Self {
        let random = |seed| SimRng::new(seed, 1);
        let session = SessionConfig {
            channels: vec![ChannelConfig { kcp, ..CHANNEL.config() }],
            send_memory: 4 << 20,
            receive_memory: 4 << 20,
            ..<_>::default()
        };
        let config = ServerConfig::insecure(session.clone());
        let server = Server::new(&config, random(1)).unwrap();
        let mut client = Client::new(&ClientConfig::insecure(session), random(2)).unwrap();
        client.connect(Time::ZERO, &[address(2)]).unwrap();
        Self { client, server, now: Time::ZERO, behind, wire: Vec::new() }
    }

    /// Carries one datagram from either end to the other. Returns whether there was one.
    fn carry(&mut self) -> bool {
        let Self { client, server, now, .. } = self;
        let before = if self.behind { BEFORE } else { &[] };
        let mut buf = before.to_vec();
        let sent = client.poll_transmit(*now, &mut buf).or_else(|| server.poll_transmit(*now, &mut buf));
        assert!(buf.starts_with(before));
        let Some(transmit) = sent else {
            assert_eq!(buf.len(), before.len(), "nothing was to be sent");
            return false;
        };
        let datagram = &mut buf[before.len()..];
        self.wire.push(datagram.to_vec());
        if transmit.address == address(2) {
            server.handle_datagram(*now, address(1).into(), datagram);
        } else {
            client.handle_datagram(*now, address(2).into(), datagram);
        }
        true
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(5);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        while self.carry() {}
    }

    fn id(&self) -> Option<SessionId> {
        self.server.clients().next()
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 1000))
}

/// The datagrams from the handshake to an echo, a datagram and the final goodbye.
fn a_session(behind: bool) -> Vec<Vec<u8>> {
    let mut ends = Ends::new(behind, configs::turbo());
    (0..4).for_each(|_| ends.step());
    ends.client.connection_mut().unwrap().send(CHANNEL, &[7; 5000]).unwrap();
    ends.client.connection_mut().unwrap().send_datagram(b"unreliable").unwrap();
    (0..4).for_each(|_| ends.step());
    let (id, mut message) = (ends.id().unwrap(), [0; 5000]);
    let connection = ends.server.connection_mut(id).unwrap();
    assert_eq!(connection.recv_into(CHANNEL, &mut message), Ok(5000));
    connection.send(CHANNEL, &message).unwrap();
    (0..4).for_each(|_| ends.step());
    assert_eq!(ends.client.connection_mut().unwrap().recv_into(CHANNEL, &mut message), Ok(5000));
    ends.client.close(ends.now, 1);
    (0..300).for_each(|_| ends.step());
    ends.wire
}

#[test]
fn an_appended_datagram_equals_a_single_one_byte_for_byte() {
    let (behind, alone) = (a_session(true), a_session(false));
    assert!(alone.len() > 20, "{} datagrams", alone.len());
    assert_eq!(behind, alone);
}

/// Bytes sent before any answer.
fn sent_at_once(kcp: Config, message: &[u8], count: usize) -> (usize, usize) {
    let config = kcp::PeersConfig { kcp, ..kcp::PeersConfig::registered() };
    let mut peers = Peers::new(&config, &mut SimRng::new(1, 1)).unwrap();
    let id = peers.register(Time::ZERO, address(1), Conv(1)).unwrap();
    (0..count).for_each(|_| assert!(peers.peer(id).unwrap().send(message).is_ok()));
    peers.peer(id).unwrap().flush();
    let (mut sent, mut most) = (0, 0);
    while let Some((datagram, _)) = peers.emit(Time::ZERO) {
        sent += datagram.len();
        most = most.max(peers.peer(id).unwrap().kcp().output().memory());
    }
    (sent, most)
}

#[test]
fn a_burst_is_sent_in_parts_that_take_a_third_of_its_memory() {
    // KCP assumes a peer window of 128 segments until told otherwise.
    let (mtu, window) = (9000, 128);
    let kcp = Config { mtu, rcv_mtu: mtu, snd_wnd: window, ..configs::turbo() };
    let message = vec![1; usize::from(kcp.mss())];
    let (sent, most) = sent_at_once(kcp, &message, 300);
    assert_eq!(sent, usize::from(mtu) * usize::from(window), "a window, in one drain of the owner");
    assert!(3 * most <= sent, "{most} bytes of {sent} waited at a time");
}
