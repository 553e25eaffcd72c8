//! Drivers over real sockets. Each file is about one promise or two.

#[cfg(test)]
mod common;

#[cfg(test)]
mod net_ecn;
#[cfg(test)]
mod net_events;
#[cfg(test)]
mod net_mtu;
#[cfg(test)]
mod net_round_trips;
#[cfg(test)]
mod net_session_alloc;
#[cfg(test)]
mod net_thread;
#[cfg(test)]
mod port_reuse;
#[cfg(test)]
mod shards;
#[cfg(all(test, feature = "tokio"))]
mod tokio_cancel;
#[cfg(all(test, feature = "tokio"))]
mod tokio_kcp;
#[cfg(all(test, feature = "tokio"))]
mod tokio_session;
