//! What an idle session costs: an update with nothing due, and its memory.

use crate::heap;
use crate::ikcp::Ikcp;
use crate::pipe::{Link, Load, MSS, Peer, Pipe, Port, TICK, Whitewater, full_window};
use crate::rust::Rust;
use crate::table::{self, Spread};
use std::time::Instant;

pub(crate) fn table() {
    println!("ns of an update each {TICK} ms with a full window in flight and nothing due [least..most]");
    for window in [128, 1024, 8192] {
        let peers = [
            (Whitewater::NAME, update::<Whitewater>(window)),
            (Ikcp::NAME, update::<Ikcp>(window)),
            (Rust::NAME, update::<Rust>(window)),
        ];
        println!("window {window:4}  {}", table::spreads("ns", &peers));
    }

    heap::start();
    println!(
        "bytes of an idle session: control block + heap; then after 1000 messages of 1376 B in a window of 128"
    );
    memory::<Whitewater>(size_of::<whitewater::kcp::Kcp<Port>>());
    memory::<Ikcp>(0);
    memory::<Rust>(size_of::<kcp::Kcp<Port>>());
    shrunk();
}

const SAMPLES: usize = 201;
/// Long after everything was sent, ms.
const QUIET: u32 = 1_000_000;
/// Within the first RTO of 200 ms.
const UPDATES: u32 = 19;

fn update<P: Peer>(window: u16) -> Spread {
    let sample = || {
        let mut peer: P = full_window(64, window, &Link::nowhere());
        let start = Instant::now();
        (1..=UPDATES).for_each(|tick| peer.update(tick * TICK));
        start.elapsed().as_secs_f64() * 1e9 / f64::from(UPDATES)
    };
    Spread::of((0..SAMPLES).map(|_| sample()).collect())
}

/// `inline` is the size of the control block itself, which is not on the heap.
fn memory<P: Peer>(inline: usize) {
    let port = Link::nowhere();
    let fresh = heap::of(P::new(128, port.clone()));
    let (sender, receiver, _path) = worked::<P>();
    println!(
        "{}  {inline} + {fresh} = {}; then heap of the sender {}, of the receiver {}",
        P::NAME,
        inline + fresh,
        heap::of(sender),
        heap::of(receiver)
    );
}

/// What an update frees after some seconds of silence; the others have no equivalent.
fn shrunk() {
    let (mut sender, mut receiver, _path) = worked::<Whitewater>();
    for end in [&mut sender, &mut receiver] {
        end.update(QUIET);
    }
    println!(
        "ww after 5 idle seconds: heap of the sender {}, of the receiver {}",
        heap::of(sender),
        heap::of(receiver)
    );
}

/// The two ends of a conversation that has gone quiet.
fn worked<P: Peer>() -> (P, P, [Port; 2]) {
    let mut pipe = Pipe::<P>::new(Load { size: MSS, window: 128, loss: 1 });
    pipe.deliver(1000);
    pipe.drain()
}
