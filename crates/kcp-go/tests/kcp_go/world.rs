//! A client and a server in virtual time, with the same or different wrapping.

use crate::machine::Whole as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use whitewater::kcp::{self, Conv, PeerEvent, PeerId, Peers, PeersConfig};
use whitewater::kcp::{Modern, Recovery};
use whitewater::machine::Machine as _;
use whitewater::{Repairs, Time};
use whitewater_kcp_go::{Config as Wire, Crypt, Key, Shards, Stats};
use whitewater_sim::{Link, LinkConfig, Loss, SimRng};

pub(crate) const CONV: Conv = Conv(0x1122_3344);

pub(crate) fn client_address() -> SocketAddr {
    "10.0.0.1:1000".parse().unwrap()
}

pub(crate) fn server_address() -> SocketAddr {
    "10.0.0.9:4000".parse().unwrap()
}

pub(crate) fn wire(crypt: Crypt, shards: Option<(u8, u8)>) -> Wire {
    let shards = shards.map(|(data, parity)| Shards { data, parity });
    Wire { crypt, shards, ..Wire::kcptun(Key::kcptun("interop key")) }
}

pub(crate) fn limits(kcp: kcp::Config, wire: Wire) -> PeersConfig {
    PeersConfig { kcp, envelope: Some(Arc::new(wire)), ..PeersConfig::default() }
}

pub(crate) fn peers(config: &PeersConfig, seed: u64) -> Peers {
    Peers::new(config, &mut SimRng::new(seed, 9)).unwrap()
}

/// A client, a server, and a path between them.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) client: Peers,
    pub(crate) server: Peers,
    /// The server, as the client knows it.
    pub(crate) to: PeerId,
    there: Link,
    back: Link,
    pub(crate) accepted: Vec<PeerId>,
    /// Datagrams and bytes that left each end, the client's first.
    pub(crate) sent: [(u64, u64); 2],
    buf: Vec<u8>,
}

impl World {
    pub(crate) fn new(client: &PeersConfig, server: &PeersConfig, path: LinkConfig, seed: u64) -> Self {
        let (now, mut client) = (Time::from_millis(1), peers(client, seed));
        let to = client.register(now, server_address(), CONV).unwrap();
        Self {
            now,
            client,
            server: peers(server, seed + 1),
            to,
            there: Link::new(path.clone(), seed, 1).unwrap(),
            back: Link::new(path, seed, 2).unwrap(),
            accepted: Vec::new(),
            sent: [(0, 0); 2],
            buf: Vec::new(),
        }
    }

    /// Both ends have the same settings.
    pub(crate) fn both(kcp: kcp::Config, wire: Wire, path: LinkConfig, seed: u64) -> Self {
        let limits = limits(kcp, wire);
        Self::new(&limits, &limits, path, seed)
    }

    fn step(&mut self) {
        let Self { now, client, server, there, back, buf, sent: [up, down], .. } = self;
        arrive(*now, there, client_address(), server, buf);
        arrive(*now, back, server_address(), client, buf);
        leave(*now, client, there, up, buf);
        leave(*now, server, back, down, buf);
        while let Some(event) = self.server.poll_event() {
            if let PeerEvent::Accepted(id) = event {
                self.accepted.push(id);
            }
        }
        while self.client.poll_event().is_some() {}
    }

    /// Runs for so many milliseconds.
    pub(crate) fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.step();
            self.now = self.now + Duration::from_millis(1);
        }
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        self.client.peer(self.to).unwrap().send(message).unwrap();
    }

    /// The messages that the server received from its first peer.
    pub(crate) fn received(&mut self) -> Vec<Vec<u8>> {
        let Some(&id) = self.accepted.first() else { return Vec::new() };
        let (mut buf, peer) = ([0; 4096], self.server.peer(id).unwrap());
        std::iter::from_fn(|| peer.recv_into(&mut buf).ok().map(|len| buf[..len].to_vec())).collect()
    }

    pub(crate) fn stats(&self) -> [Stats; 2] {
        [Stats::of(self.client.envelope()).unwrap(), Stats::of(self.server.envelope()).unwrap()]
    }
}

/// An end takes what has arrived.
fn arrive(now: Time, link: &mut Link, from: SocketAddr, end: &mut Peers, buf: &mut Vec<u8>) {
    while let Some(datagram) = link.arrive(now) {
        buf.clear();
        buf.extend_from_slice(datagram);
        end.handle_datagram(now, from.into(), buf);
    }
}

/// An end sends what is due, which is counted.
fn leave(now: Time, end: &mut Peers, link: &mut Link, sent: &mut (u64, u64), buf: &mut Vec<u8>) {
    end.handle_timeout(now);
    while end.emit_to(now, buf).is_some() {
        *sent = (sent.0 + 1, sent.1 + buf.len() as u64);
        link.send(now, buf);
    }
}

pub(crate) fn path(rtt: u64, loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(Duration::from_millis(rtt)) }
}

/// By time, with ikcp.c's windows, and without repairs: a kcp-go peer knows only parity.
pub(crate) fn turbo() -> kcp::Config {
    let recovery = Recovery::Modern(Modern { repairs: Repairs::Off, ..Modern::default() });
    kcp::Config { snd_wnd: 32, snd_queue: 4096, recovery, ..kcp::Config::default() }
}
