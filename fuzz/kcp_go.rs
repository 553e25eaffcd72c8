//! kcp-go's wrapping around KCP. Without forged datagrams every message arrives, whatever gets lost; with
//! them, limits hold and traffic continues. Part of the fuzz target, of the program that writes its seeds,
//! and of the tests in `crates/kcp-go`.

#![allow(dead_code, reason = "each uses its part")]

use super::script::{Script, payload};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{self, Conv, PeerEvent, PeerId, Peers, PeersConfig, Recovery};
use whitewater::machine::Machine as _;
use whitewater_kcp_go::{Config as Wire, Crypt, Key, Shards};
use whitewater_sim::SimRng;

/// The operations of a script. They follow its settings: cipher u8, data shards u8, parity shards u8, flags
/// u8.
pub mod op {
    /// The client sends a message: its length u16.
    pub const SEND: u8 = 0;
    /// Time passes: ms u8; a bit pattern, used cyclically, says which datagrams get lost meanwhile: u8.
    pub const RUN: u8 = 1;
    /// A datagram from the client's address, if forgeries are allowed: length u16, bytes.
    pub const LIE: u8 = 2;
    /// The same for the inner content: if the cipher is `none`, it is protected properly.
    pub const INSIDE: u8 = 3;
    /// The same from another address: u8.
    pub const STRANGER: u8 = 4;
    /// Number of operations.
    pub const COUNT: u8 = 5;
}

/// Flag: datagrams may be forged.
pub const LIES: u8 = 1;
/// Flag: detect losses as ikcp.c does.
pub const CLASSIC: u8 = 2;

struct World {
    now: Time,
    client: Peers,
    server: Peers,
    to: PeerId,
    wire: Wire,
    sent: VecDeque<Vec<u8>>,
    received: usize,
    accepted: Option<PeerId>,
    has_lies: bool,
}

/// Runs a script.
///
/// # Panics
///
/// If a message is lost, duplicated or altered although nothing was forged, or there are more peers than the
/// limits allow.
pub fn kcp_go(script: &[u8]) {
    let mut script = Script::new(script);
    let mut world = World::new(&mut script);
    for _ in 0..OPERATIONS_MAX {
        if script.is_done() {
            break;
        }
        match script.u8() % op::COUNT {
            op::SEND => world.send(usize::from(script.u16() % 3000) + 1),
            op::RUN => {
                let (millis, lost) = (script.u8(), script.u8());
                (0..millis).for_each(|_| world.step(lost));
            }
            operation if world.has_lies => world.lie(operation, &mut script),
            _ => {}
        }
    }
    let mut patience = 20_000;
    while !world.has_lies && world.received < world.sent.len() {
        patience -= 1;
        assert!(patience > 0, "{} of {} messages arrived", world.received, world.sent.len());
        world.step(0);
    }
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let crypt = [Crypt::Null, Crypt::None, Crypt::Aes][usize::from(script.u8() % 3)];
        let (data, parity, flags) = (script.u8() % 12, script.u8() % 6, script.u8());
        let shards = (data > 0 && parity > 0).then_some(Shards { data, parity });
        let wire = Wire { crypt, shards, ..Wire::kcptun(Key::new([7; 32])) };
        let mut kcp = kcp::Config { dead_link: 10_000, ..kcp::Config::default() };
        if flags & CLASSIC != 0 {
            kcp.recovery = Recovery::Classic;
        }
        let idle_timeout = Duration::from_secs(3600);
        let envelope = Some(Arc::new(wire.clone()) as _);
        let limits =
            PeersConfig { kcp, envelope, max_peers: PEERS_MAX, idle_timeout, ..PeersConfig::default() };
        let mut fill = 0;
        let mut peers = || {
            fill += 1;
            let seed = fill;
            Peers::new(&limits, &mut SimRng::new(seed, 1)).expect("the config is in range")
        };
        let (now, mut client, server) = (Time::from_millis(1), peers(), peers());
        let to = client.register(now, server_address(), Conv(7)).expect("there is room");
        let has_lies = flags & LIES != 0;
        Self { now, client, server, to, wire, sent: VecDeque::new(), received: 0, accepted: None, has_lies }
    }

    fn send(&mut self, len: usize) {
        let message = payload(len, self.sent.len().to_le_bytes()[0]);
        if let Some(peer) = self.client.peer(self.to)
            && peer.send(&message).is_ok()
        {
            self.sent.push_back(message);
        }
    }

    /// Runs for 1 ms. Of the datagrams of each end, those with a bit in `lost` get lost.
    fn step(&mut self, lost: u8) {
        self.now = self.now + Duration::from_millis(1);
        let mut at = 0;
        let mut is_lost = || {
            at += 1;
            lost >> (at % 8) & 1 == 1
        };
        let mut datagram = Vec::new();
        self.client.handle_timeout(self.now);
        while self.client.poll_transmit(self.now, &mut datagram).is_some() {
            if !is_lost() {
                self.server.handle_datagram(self.now, client_address().into(), &mut datagram);
            }
            datagram.clear();
        }
        self.server.handle_timeout(self.now);
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut datagram) {
            if !is_lost() && transmit.address == client_address() {
                self.client.handle_datagram(self.now, server_address().into(), &mut datagram);
            }
            datagram.clear();
        }
        while let Some(event) = self.server.poll_event() {
            if let PeerEvent::Accepted(id) = event {
                self.accepted.get_or_insert(id);
            }
        }
        while self.client.poll_event().is_some() {}
        self.receive();
        let stats = self.server.stats();
        assert!(self.server.len() <= PEERS_MAX, "{stats:?}");
    }

    fn receive(&mut self) {
        let mut buf = [0; 4096];
        while let Some(peer) = self.accepted.and_then(|id| self.server.peer(id))
            && let Ok(len) = peer.recv_into(&mut buf)
        {
            if !self.has_lies {
                assert_eq!(
                    self.sent.get(self.received).map(Vec::as_slice),
                    Some(&buf[..len]),
                    "another message"
                );
            }
            self.received += 1;
        }
    }

    fn lie(&mut self, operation: u8, script: &mut Script<'_>) {
        let from = if operation == op::STRANGER { stranger(script.u8()) } else { client_address() };
        let len = script.u16() % 1700;
        let bytes = script.bytes(len.into());
        if operation == op::INSIDE && self.wire.crypt == Crypt::None {
            let sum = crc32fast::hash(bytes).to_le_bytes();
            self.server.handle_datagram(
                self.now,
                from.into(),
                &mut [&[0; 16], sum.as_slice(), bytes].concat(),
            );
        } else {
            self.server.handle_datagram(self.now, from.into(), &mut bytes.to_vec());
        }
    }
}

fn client_address() -> SocketAddr {
    ([10, 0, 0, 1], 1000).into()
}

fn server_address() -> SocketAddr {
    ([10, 0, 0, 9], 4000).into()
}

fn stranger(host: u8) -> SocketAddr {
    ([10, 1, 0, host], 1000).into()
}

/// Seed scripts.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (name, crypt, data, parity) in
        [("null", 0, 0, 0), ("null-2-1", 0, 2, 1), ("none-3-2", 1, 3, 2), ("aes-10-3", 2, 10, 3)]
    {
        for flags in [0, CLASSIC] {
            let mut script = vec![crypt, data, parity, flags];
            for round in 0..20 {
                script.extend_from_slice(&[op::SEND, round * 9, round % 8, op::RUN, 5, 1 << (round % 8)]);
            }
            seeds.push((format!("{name}-{flags}"), script));
        }
    }
    // Recorded from kcp-go: a group of 2 and 1, an out-of-band datagram, a PUSH.
    let recorded: [&[u8]; 5] = [
        b"\x00\x00\x00\x00\xf1\x00\x23\x00\x44\x33\x22\x11\x51\x00\x00\x01\x16\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0hello kcp",
        b"\x01\x00\x00\x00\xf1\x00\x1a\x00\x44\x33\x22\x11\x52\x00\xff\x00\x3a\x03\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
        b"\x02\x00\x00\x00\xf2\x00\x51\x00\x44\x33\x22\x11\x57\x00\xe3\x03\x4e\x06\0\0\0\0\0\0\x02\0\0\0\x1b\0\0\0\xb8\xaf\xb4\xb4\xb1\x60\xbd\xa5\x90",
        b"\xff\xff\xff\xff\xf3\x00\x0a\x00\x44\x33\x22\x11oob!",
        b"\x44\x33\x22\x11\x51\x00\x00\x01\x03\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0hello kcp",
    ];
    for (crypt, operation) in [(0, op::LIE), (1, op::INSIDE), (0, op::STRANGER)] {
        let mut script = vec![crypt, 2, 1, LIES];
        for datagram in recorded {
            script.push(operation);
            if operation == op::STRANGER {
                script.push(9);
            }
            script.extend_from_slice(&u16::try_from(datagram.len()).unwrap_or_default().to_le_bytes());
            script.extend_from_slice(datagram);
            script.extend_from_slice(&[op::RUN, 1, 0]);
        }
        seeds.push((format!("recorded-{crypt}-{operation}"), script));
    }
    seeds
}

const OPERATIONS_MAX: usize = 400;
const PEERS_MAX: usize = 8;
