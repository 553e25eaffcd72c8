//! What a message costs on the wire, by bare KCP and in an encrypted session, with the headers of IP and UDP.
//!
//! `cargo test --release --all-features --test sessions session_bytes -- --nocapture` prints the table of docs/PERFORMANCE.md.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use common::sessions::{SUITE, World, default_kcp, on};
use common::{Setup, Talk, numbered};
use std::time::Duration;
use whitewater::{Repairs, SessionConfig};
use whitewater_sim::{LinkConfig, LinkStats, Loss};

/// What went over both links of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    bytes: u64,
    datagrams: [u64; 2],
    payload: u64,
    seconds: u64,
}

impl Cost {
    fn add(&mut self, sent: [LinkStats; 2], before: [LinkStats; 2]) {
        for end in 0..2 {
            self.bytes += sent[end].wire_bytes() - before[end].wire_bytes();
            self.datagrams[end] += sent[end].sent - before[end].sent;
        }
        self.payload += SIZE as u64 * MESSAGES;
        self.seconds += MESSAGES / 60;
    }

    fn per_byte(&self) -> f64 {
        self.bytes as f64 / self.payload as f64
    }

    fn row(&self) -> String {
        let [up, down] = self.datagrams.map(|count| count as f64 / self.seconds as f64);
        format!("{:.2} | {up:.1} | {down:.1}", self.per_byte())
    }
}

fn link(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(Duration::from_millis(60)) }
}

/// When the message leaves, µs after the first.
fn leaves(number: u64) -> Duration {
    Duration::from_micros(number * 1_000_000 / 60)
}

fn bare(loss: f64, seeds: std::ops::RangeInclusive<u64>) -> Cost {
    let mut cost = Cost::default();
    for seed in seeds {
        let mut pair = Setup::new(default_kcp(), link(loss), seed).pair();
        for number in 0..MESSAGES {
            pair.send(numbered(usize::try_from(number).unwrap(), SIZE));
            pair.run_for(leaves(number + 1) - leaves(number));
        }
        assert!(pair.run_until_idle(Duration::from_secs(10)), "seed {seed}: never went quiet");
        cost.add([0, 1].map(|end| pair.links[end].stats()), [LinkStats::default(); 2]);
    }
    cost
}

fn session(loss: f64, repairs: Repairs, seeds: std::ops::RangeInclusive<u64>) -> Cost {
    let mut cost = Cost::default();
    for seed in seeds {
        let config = SessionConfig { repairs, ..SessionConfig::default() };
        let mut world = World::pair(seed, &link(0.0), &config, SUITE);
        world.connect();
        world.set_links(0, &link(loss), &link(loss));
        let both = |world: &World| [world.up_stats(0), world.down_stats(0)];
        let (before, start) = (both(&world), world.now);
        let mut received = 0;
        for number in 0..MESSAGES {
            world.client().send(on(0), &numbered(usize::try_from(number).unwrap(), SIZE)).unwrap();
            world.drain();
            world.run_to(start + leaves(number + 1), |_| false);
            while let Some(message) = world.session().recv(on(0)) {
                assert_eq!(message, numbered(received, SIZE), "seed {seed}");
                received += 1;
            }
        }
        world.run(1000);
        while world.session().recv(on(0)).is_some() {
            received += 1;
        }
        assert_eq!(received as u64, MESSAGES, "seed {seed}");
        cost.add(both(&world), before);
    }
    cost
}

#[test]
#[cfg(feature = "crypto")]
fn a_channel_of_an_encrypted_session_costs_at_most_a_tenth_more_bytes_than_bare_kcp() {
    println!("| loss | | wire bytes for a byte | datagrams a second | back |");
    println!("|---:|---|---:|---:|---:|");
    for loss in [0.0, 0.01, 0.05, 0.1] {
        let (kcp, ours) = (bare(loss, 1001..=1003), session(loss, Repairs::Off, 1001..=1003));
        let repaired = session(loss, Repairs::Auto, 1001..=1003);
        let percent = loss * 100.0;
        println!("| {percent} % | bare KCP | {} |", kcp.row());
        println!("| | session | {} |", ours.row());
        println!("| | session with repairs | {} |", repaired.row());
        assert!(ours.per_byte() <= 1.1 * kcp.per_byte(), "{percent} %: {} and {}", ours.row(), kcp.row());
    }
}

const SIZE: usize = 100;
const MESSAGES: u64 = 60 * 60;
