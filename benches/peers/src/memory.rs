//! Bytes that a segment costs beyond its payload while it is kept, and allocations per message.

use crate::bare::Bare;
use crate::heap;
use crate::ikcp::Ikcp;
use crate::pipe::{Link, Load, MSS, PUSH, Peer, Pipe, TICK, Whitewater, full_window, header};
use crate::rust::Rust;
use crate::table;

pub(crate) fn table() {
    heap::start();
    println!("heap bytes of a sender with one message of 64 B in flight, all in");
    println!("  {}", table::values("B", &each(one::<Whitewater>, one::<Ikcp>, one::<Rust>, ())));
    println!("heap bytes per segment beyond its payload and a fresh session's own");
    for size in [64, MSS] {
        for window in [128, 8192] {
            let load = Load { size, window, loss: 0 };
            let sent = each(in_flight::<Whitewater>, in_flight::<Ikcp>, in_flight::<Rust>, load);
            let received = each(out_of_order::<Whitewater>, out_of_order::<Ikcp>, out_of_order::<Rust>, load);
            println!("{size:4} B  window {window:4}  in flight     {}", table::values("B", &sent));
            println!("{size:4} B  window {window:4}  out of order  {}", table::values("B", &received));
        }
    }
    println!("allocations per 1000 messages in a steady state, both ends");
    for (size, window) in [(64, 128), (64, 8192), (MSS, 128), (MSS, 8192)] {
        for loss in [0, 10] {
            let load = Load { size, window, loss };
            let row = each(allocations::<Whitewater>, allocations::<Ikcp>, allocations::<Rust>, load);
            println!("{size:4} B  window {window:4}  loss {loss:2} %   {}", table::values("", &row));
        }
    }
    let load = Load { size: MSS, window: 8192, loss: 0 };
    println!("of the harness itself: {}", allocations::<Bare>(load));
}

fn each<L: Copy>(
    ww: fn(L) -> f64,
    ikcp: fn(L) -> f64,
    rust: fn(L) -> f64,
    load: L,
) -> [(&'static str, f64); 3] {
    [(Whitewater::NAME, ww(load)), (Ikcp::NAME, ikcp(load)), (Rust::NAME, rust(load))]
}

fn one<P: Peer>((): ()) -> f64 {
    let nowhere = Link::nowhere();
    let mut peer = P::new(128, nowhere.clone());
    peer.send(&[0x5a; 64]);
    peer.update(0);
    float(heap::of(peer))
}

fn in_flight<P: Peer>(load: Load) -> f64 {
    let Load { size, window, .. } = load;
    let nowhere = Link::nowhere();
    beyond(full_window::<P>(size, window, &nowhere), load, window)
}

/// A window whose oldest segment is missing.
fn out_of_order<P: Peer>(load: Load) -> f64 {
    let Load { size, window, .. } = load;
    let nowhere = Link::nowhere();
    let mut peer = P::new(window, nowhere.clone());
    peer.update(0);
    for sn in 1..window {
        let mut datagram = header(PUSH, window, sn.into(), size).to_vec();
        datagram.resize(datagram.len() + size, 0x5a);
        peer.input(TICK, &datagram);
        if sn.is_multiple_of(64) {
            peer.update(u32::from(sn) / 64 * TICK);
        }
    }
    beyond(peer, load, window - 1)
}

/// Heap bytes of `peer` per segment, beyond the payloads of `segments` and what it began with.
fn beyond<P: Peer>(peer: P, load: Load, segments: u16) -> f64 {
    let nowhere = Link::nowhere();
    let fresh = float(heap::of(P::new(load.window, nowhere.clone())));
    (float(heap::of(peer)) - fresh) / f64::from(segments) - float(load.size)
}

fn allocations<P: Peer>(load: Load) -> f64 {
    let mut pipe = Pipe::<P>::new(load);
    // Longer than for the timings, since a buffer may grow until the worst streak of losses has come.
    pipe.deliver(u64::from(load.window) * 32);
    let (before, received) = (heap::allocations(), pipe.received());
    pipe.deliver(u64::from(load.window.max(1024)) * 20);
    float((heap::allocations() - before) * 1000) / float(pipe.received() - received)
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts far below 2^52")]
fn float(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}
