//! KCP itself: the control block over bad links, and what it costs. Each file is about one promise or two.

#[cfg(test)]
mod common;

#[cfg(test)]
mod alloc;
#[cfg(test)]
mod backpressure;
#[cfg(test)]
mod bars;
#[cfg(test)]
mod bottleneck;
#[cfg(test)]
mod bytes;
#[cfg(test)]
mod check;
#[cfg(test)]
mod congestion;
#[cfg(test)]
mod dead_link;
#[cfg(test)]
mod delivery;
#[cfg(test)]
mod events;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod interop;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod model;
#[cfg(test)]
mod modern;
#[cfg(test)]
mod mtu;
#[cfg(test)]
mod pacing;
#[cfg(test)]
mod path_changed;
#[cfg(test)]
mod repairs;
#[cfg(test)]
mod scenario;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod sim_pair;
#[cfg(test)]
mod traps;
#[cfg(test)]
mod window;
#[cfg(test)]
mod wrap;
