//! What one hostile datagram costs: 58 forged ACKs into a full window.

use crate::ikcp::Ikcp;
use crate::pipe::{Link, Peer, TICK, Whitewater, forged_acks, full_window};
use crate::rust::Rust;
use crate::table::{self, Spread};
use std::time::Instant;

pub(crate) fn table() {
    println!("us of one datagram of 58 forged ACKs into a full window, median of {SAMPLES} [least..most]");
    for window in [128, 1024, 8192] {
        let peers = [
            (Whitewater::NAME, measure::<Whitewater>(window)),
            (Ikcp::NAME, measure::<Ikcp>(window)),
            (Rust::NAME, measure::<Rust>(window)),
        ];
        let [inputs, updates]: [Vec<_>; 2] = {
            let (inputs, updates) = peers.into_iter().map(|(name, [i, u])| ((name, i), (name, u))).unzip();
            [inputs, updates]
        };
        println!("window {window:4}  input            {}", table::spreads("us", &inputs));
        println!("window {window:4}  following update {}", table::spreads("us", &updates));
    }
}

const SAMPLES: usize = 201;

/// Time of the input and of the update after it, µs, each with a fresh window.
fn measure<P: Peer>(window: u16) -> [Spread; 2] {
    let datagram = forged_acks(window);
    let sample = || {
        let mut peer: P = full_window(64, window, &Link::nowhere());
        (1..=5).for_each(|tick| peer.update(tick * TICK));
        let start = Instant::now();
        peer.input(5 * TICK, &datagram);
        let input = start.elapsed();
        let start = Instant::now();
        peer.update(6 * TICK);
        (input.as_secs_f64() * 1e6, start.elapsed().as_secs_f64() * 1e6)
    };
    let (inputs, updates) = (0..SAMPLES).map(|_| sample()).unzip();
    [Spread::of(inputs), Spread::of(updates)]
}
