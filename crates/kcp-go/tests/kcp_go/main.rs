//! Two ends of ours with kcp-go's wrapping, in virtual time. The crate `interop` tests the real programs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "../../examples/kcp_go/limits.rs"]
mod example;
#[path = "../../../../tests/common/machine.rs"]
mod machine;
mod many;
mod strangers;
mod world;

use whitewater::kcp::{self, PeersConfig, Recovery};
use whitewater_kcp_go::{Config as Wire, Crypt, Mode};
use world::*;

#[test]
fn every_cipher_works_both_ways_through_loss_with_and_without_parity() {
    for crypt in Crypt::ALL {
        for shards in [None, Some((10, 3))] {
            let mut world = World::both(Mode::Fast3.config(), wire(crypt, shards), path(20, 0.1), 3);
            let sent: Vec<u8> = (0..30_000u32).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
            let (mut there, mut back, mut buf) = (Vec::new(), Vec::new(), [0; 4096]);
            world.send(&sent);
            for _ in 0..2000 {
                world.run(1);
                for part in world.received() {
                    world.server.peer(world.accepted[0]).unwrap().send(&part).unwrap();
                    there.extend(part);
                }
                while let Ok(len) = world.client.peer(world.to).unwrap().recv_into(&mut buf) {
                    back.extend_from_slice(&buf[..len]);
                }
            }
            assert!(
                there == sent && back == sent,
                "{crypt}, {shards:?}: {} and {} bytes",
                there.len(),
                back.len()
            );
            let stats = world.stats();
            let lost: u64 =
                stats.iter().map(|stats| stats.unreadable + stats.malformed + stats.misplaced).sum();
            assert_eq!(lost, 0, "{crypt}, {shards:?}: {stats:?}");
            assert_eq!(stats.iter().any(|stats| stats.recovered > 0), shards.is_some(), "{crypt}: {stats:?}");
        }
    }
}

/// Latencies of messages of 200 bytes sent every 5 ms, in ms and in order; resends; bytes sent by the client.
fn latencies(shards: Option<(u8, u8)>, seed: u64) -> (Vec<u64>, u64, u64) {
    let kcp = kcp::Config { mtu: 1350, ..turbo() };
    let mut world = World::both(kcp, wire(Crypt::Aes, shards), path(60, 0.05), seed);
    let mut latencies = Vec::new();
    for tick in 0..12_000u64 {
        if tick % 5 == 0 && tick < 10_000 {
            let message = [world.now.as_micros().to_le_bytes().to_vec(), vec![7; 192]].concat();
            world.send(&message);
        }
        world.run(1);
        for message in world.received() {
            let sent = u64::from_le_bytes(message[..8].try_into().unwrap());
            latencies.push((world.now.as_micros() - sent) / 1000);
        }
    }
    let stats = world.client.peer(world.to).unwrap().stats();
    let resends = u64::from(stats.resends_timeout + stats.resends_fast);
    latencies.sort_unstable();
    (latencies, resends, world.sent[0].1)
}

#[test]
fn parity_saves_most_losses_a_round_trip_at_its_share_of_bytes() {
    for seed in 1..=3 {
        let ((plain, plain_resends, plain_bytes), (fec, fec_resends, fec_bytes)) =
            (latencies(None, seed), latencies(Some((5, 2)), seed));
        assert_eq!((plain.len(), fec.len()), (2000, 2000), "seed {seed}");
        let p99 = |latencies: &[u64]| latencies[latencies.len() * 99 / 100];
        let over_a_trip = |latencies: &[u64]| latencies.iter().filter(|ms| **ms > 70).count();
        let told = format!(
            "seed {seed}: p99 {} and {} ms, {} and {} of 2000 above 70 ms, {plain_resends} and {fec_resends} resends, {:.2} of the bytes",
            p99(&plain),
            p99(&fec),
            over_a_trip(&plain),
            over_a_trip(&fec),
            fec_bytes as f64 / plain_bytes as f64,
        );
        println!("{told}");
        assert!(over_a_trip(&fec) * 3 < over_a_trip(&plain), "{told}");
        assert!(fec_bytes * 100 < plain_bytes * 160, "{told}");
    }
}

#[test]
fn an_end_without_parity_accepts_data_shards() {
    let kcp = Mode::Fast3.config();
    for (there, back) in [(Some((10, 3)), None), (None, Some((10, 3)))] {
        let mut world = World::new(
            &limits(kcp, wire(Crypt::Aes, there)),
            &limits(kcp, wire(Crypt::Aes, back)),
            path(20, 0.05),
            5,
        );
        world.send(&[9; 60_000]);
        world.run(2000);
        assert_eq!(world.received().concat().len(), 60_000, "{there:?} and {back:?}");
        let [client, server] = world.stats();
        let has_parity = |shards: Option<(u8, u8)>| shards.is_some();
        assert_eq!(server.parity_unused > 0, has_parity(there), "{server:?}");
        assert_eq!((client.recovered, server.recovered), (0, 0));
    }
}

#[test]
fn an_empty_message_is_refused_because_kcp_go_gets_stuck_on_it() {
    let mut world = World::both(turbo(), wire(Crypt::Null, None), path(20, 0.0), 1);
    let peer = world.client.peer(world.to).unwrap();
    assert_eq!(peer.send(b""), Err(kcp::SendError::Empty));
    assert_eq!(peer.kcp_mut().send_end(), Err(kcp::SendError::Empty));
    assert_eq!(peer.kcp_mut().send_bytes(Vec::new().into()), Err(kcp::SendError::Empty));
    world.run(500);
    assert_eq!(world.sent[0], (0, 0));
}

#[test]
fn delays_are_the_configured_ones() {
    // A message every 10 ms, and an interval of 100 ms: how many datagrams leave the client and the server in
    // a second.
    for (write_delay, ack_no_delay, client, server) in
        [(false, true, 95..=105, 95..=105), (false, false, 95..=105, 9..=11), (true, true, 9..=11, 9..=11)]
    {
        for classic in [false, true] {
            let kcp = kcp::Config { interval: 100, ..turbo() };
            let recovery = if classic { Recovery::Classic } else { kcp.recovery };
            let kcp = kcp::Config { recovery, ..kcp };
            let wire = Wire { write_delay, ack_no_delay, ..wire(Crypt::Aes, None) };
            let mut world = World::both(kcp, wire, path(2, 0.0), 1);
            for round in 0..130 {
                if round == 30 {
                    world.sent = [(0, 0); 2];
                }
                world.send(&[7; 20]);
                world.run(10);
                world.received();
            }
            let told = format!("write_delay {write_delay}, ack_no_delay {ack_no_delay}, classic {classic}");
            assert!(client.contains(&world.sent[0].0), "{told}: {:?}", world.sent);
            assert!(server.contains(&world.sent[1].0), "{told}: {:?}", world.sent);
        }
    }
}

#[test]
fn a_datagram_without_effect_allocates_nothing() {
    let kcp = kcp::Config { snd_wnd: 256, rcv_wnd: 256, ..Mode::Fast3.config() };
    let mut world = World::both(kcp, wire(Crypt::Aes, Some((10, 3))), path(20, 0.0), 1);
    let mut buf = [0; 4096];
    let mut round = |world: &mut World| {
        world.send(&[7; 4000]);
        world.run(5);
        if let Some(&id) = world.accepted.first() {
            let peer = world.server.peer(id).unwrap();
            while peer.recv_into(&mut buf).is_ok() {}
        }
    };
    (0..500).for_each(|_| round(&mut world));
    let before = world.sent[0].0;
    let counted = allocation_counter::measure(|| (0..200).for_each(|_| round(&mut world)));
    let datagrams = world.sent[0].0 - before;
    assert!(datagrams > 700, "{datagrams}");
    assert_eq!(counted.count_total, 0, "for {datagrams} datagrams");
}

#[test]
fn a_config_out_of_range_names_its_field() {
    let field = |config: PeersConfig| config.check().unwrap_err().field;
    let fits = limits(Mode::Fast.config(), wire(Crypt::Aes, Some((10, 3))));
    assert_eq!(fits.check(), Ok(()));
    assert_eq!(
        field(PeersConfig { kcp: kcp::Config { mtu: 1501, rcv_mtu: 1501, ..fits.kcp }, ..fits.clone() }),
        "mtu"
    );
    assert_eq!(field(PeersConfig { kcp: kcp::Config { mtu: 77, ..fits.kcp }, ..fits.clone() }), "mtu"); // 50 + 28
    for (shards, name) in [((0, 3), "data"), ((3, 0), "parity"), ((200, 57), "data + parity")] {
        assert_eq!(field(limits(fits.kcp, wire(Crypt::Aes, Some(shards)))), name);
    }
}
