//! Hostile peers with proven addresses, and what their parity makes a listener hold. Figures are heap bytes.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[path = "../../../tests/common/machine.rs"]
mod machine;

use machine::Whole as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::{Command, Header, Segment};
use whitewater::kcp::{self, Conv, Millis, Peers, PeersConfig, Sn, Strangers};
use whitewater::machine::Machine as _;
use whitewater_kcp_go::{Config as Wire, Shards, Stats};
use whitewater_sim::SimRng;

const MEMORY: u64 = 32 << 20;
const PEERS: u16 = 256;

fn listener(data: u8, parity: u8) -> Peers {
    let wire = Wire { shards: Some(Shards { data, parity }), ..Wire::plain() };
    let config = PeersConfig {
        kcp: kcp::Config { mtu: 1400, ..kcp::Config::default() },
        strangers: Strangers::Trusted, // whoever has proven their address
        max_peers: PEERS.into(),
        memory: MEMORY,
        envelope: Some(Arc::new(wire)),
        ..PeersConfig::default()
    };
    Peers::new(&config, &mut SimRng::new(1, 9)).unwrap()
}

/// A shard with this number; `kind` says whether it is data or parity.
fn shard(number: u32, kind: u16, content: &[u8]) -> Vec<u8> {
    [&number.to_le_bytes()[..], &kind.to_le_bytes(), content].concat()
}

const DATA: u16 = 0xf1;
const PARITY: u16 = 0xf2;

/// A data shard that begins a conversation.
fn first(number: u32) -> Vec<u8> {
    let header =
        Header { conv: Conv(1), cmd: Command::Push, frg: 0, wnd: 128, ts: Millis(0), sn: Sn(0), una: Sn(0) };
    let mut kcp = Vec::new();
    Segment { header, data: b"x" }.encode(&mut kcp);
    let size = u16::try_from(kcp.len() + 2).unwrap();
    shard(number, DATA, &[&size.to_le_bytes()[..], &kcp].concat())
}

fn address(number: u16) -> SocketAddr {
    let [a, b] = (number / 16).to_be_bytes();
    SocketAddr::from(([20, a, b, 1], 1000 + number % 16))
}

fn drain(peers: &mut Peers, now: Time) {
    peers.handle_timeout(now);
    let mut datagram = Vec::with_capacity(1500);
    while peers.emit_to(now, &mut datagram).is_some() {}
    while peers.poll_event().is_some() {}
}

/// Parity needs no number of a conversation, and nothing is rebuilt as long as a shard is missing.
#[test]
fn parity_that_waits_for_more_counts_for_the_memory_of_all_peers() {
    for (data, parity) in [(128, 127), (10, 3)] {
        let (mut peers, now) = (listener(data, parity), Time::from_millis(1));
        let all = u32::from(data) + u32::from(parity);
        let before = peers.stats().memory;
        let heap = allocation_counter::measure(|| {
            for number in 0..PEERS {
                peers.give(now, address(number), &first(0));
            }
            drain(&mut peers, now);
            for number in 0..PEERS {
                for group in 1..5 {
                    for at in u32::from(data)..all {
                        peers.give(now, address(number), &shard(group * all + at, PARITY, &[7; 1386]));
                    }
                }
                drain(&mut peers, now);
                assert!(peers.stats().memory <= MEMORY, "{} bytes", peers.stats().memory);
            }
        });
        let (held, counted) = (u64::try_from(heap.bytes_current).unwrap(), peers.stats().memory - before);
        println!("{data} + {parity}: {held} bytes held, {counted} counted, {} for a moment", heap.bytes_max);
        assert_eq!(peers.len(), PEERS.into());
        assert!(heap.bytes_max <= MEMORY + MEMORY / 8, "{data} + {parity}: {} bytes", heap.bytes_max);
        assert!(held <= counted + counted / 8 + (64 << 10), "{data} + {parity}: {held} of {counted} bytes");
        // A peer that is quiet gives it back.
        drain(&mut peers, now + Duration::from_millis(2_100));
        drain(&mut peers, now + Duration::from_millis(2_200));
        let left = peers.stats().memory;
        assert!(left < held / 4 || held < MEMORY / 8, "{data} + {parity}: {left} of {held} bytes are left");
    }
}

/// Whoever has little memory left loses the help of parity, and nothing else.
#[test]
fn a_peer_is_served_beside_others_whose_parity_fills_the_memory() {
    let (mut peers, now) = (listener(128, 127), Time::from_millis(1));
    for number in 1..PEERS {
        peers.give(now, address(number), &first(0));
        for group in 1..5 {
            for at in 128..255 {
                peers.give(now, address(number), &shard(group * 255 + at, PARITY, &[7; 1386]));
            }
        }
        drain(&mut peers, now);
    }
    peers.give(now, address(0), &first(0));
    assert_eq!(peers.len(), PEERS.into());
    let id = peers.ids().max().unwrap();
    let peer = peers.peer(id).unwrap();
    assert_eq!(peer.recv().unwrap(), "x");
    peer.send(&[7; 2_000]).unwrap();
    assert_eq!(peers.stats().rejected, 0);
    assert!(Stats::of(peers.envelope()).unwrap().parity_received > 0);
}
