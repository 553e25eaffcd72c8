//! KCP itself: the control block over bad links, and what it costs. Each file covers a promise or two.

#[cfg(test)]
mod common;

mod alloc;
mod backpressure;
mod bars;
mod beats;
mod bottleneck;
mod bytes;
mod check;
mod congestion;
mod dead_link;
mod delivery;
mod envelope;
mod events;
mod faults;
mod hostile;
mod interop;
mod memory;
mod model;
mod modern;
mod mtu;
mod pacing;
mod path_changed;
mod repairs;
mod scenario;
mod sim;
mod sim_pair;
mod standstill;
mod traps;
mod window;
mod wrap;
