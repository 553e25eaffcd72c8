//! Drivers over real sockets. Each file covers a promise or two.

#[cfg(test)]
mod common;

mod net_ecn;
mod net_events;
#[cfg(all(unix, feature = "tokio"))]
mod net_fd;
mod net_mtu;
mod net_round_trips;
mod net_session_alloc;
mod net_thread;
mod net_unreachable;
mod port_reuse;
mod shards;
mod siblings;
#[cfg(feature = "tokio")]
mod tokio_cancel;
#[cfg(feature = "tokio")]
mod tokio_kcp;
#[cfg(feature = "tokio")]
mod tokio_session;
