//! The part of the Python package `whitewater` that is in Rust: sockets with their sessions, tokens, settings, and bare KCP.
//!
//! The package in `python/whitewater` is over it. It drives an [`Endpoint`](endpoint::Endpoint) by the event loop of asyncio: nothing here waits, has
//! a thread or calls Python. Whatever takes long runs without the GIL, and a lock is only held for calls that need no Python, so that a thread
//! that waits for it cannot be waited for.

mod address;
mod channel;
mod client_config;
mod endpoint;
mod error;
mod event;
mod kcp;
mod kcp_config;
mod link;
mod server_config;
mod session_config;
mod settings;
mod stats;
mod suite;
mod token;

use pyo3::prelude::*;

/// What `whitewater` is made of.
#[pymodule]
mod _whitewater {
    #[pymodule_export]
    use crate::channel::Channel;
    #[pymodule_export]
    use crate::client_config::ClientConfig;
    #[pymodule_export]
    use crate::endpoint::Endpoint;
    #[pymodule_export]
    use crate::kcp::Kcp;
    #[pymodule_export]
    use crate::kcp_config::KcpConfig;
    #[pymodule_export]
    use crate::link::Link;
    #[pymodule_export]
    use crate::server_config::ServerConfig;
    #[pymodule_export]
    use crate::session_config::SessionConfig;
    #[pymodule_export]
    use crate::stats::{KcpStats, ServerStats, Stats};
    #[pymodule_export]
    use crate::suite::{Suite, public_key};
    #[pymodule_export]
    use crate::token::{Claims, FleetKey, ServerKey, Token};
}
