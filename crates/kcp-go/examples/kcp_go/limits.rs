//! What strangers may do.

use std::sync::Arc;
use whitewater::kcp;
use whitewater_kcp_go::Config as Wire;

/// For a server of kcptun: one client is one address with many sessions, and behind a NAT there are many clients, so an address is limited
/// as all are together. Who is not one of them is kept out by the key: with `Crypt::Null` or `None`, say fewer.
pub(crate) fn limits(kcp: kcp::Config, wire: Wire) -> kcp::PeersConfig {
    kcp::PeersConfig {
        kcp,
        envelope: Some(Arc::new(wire)),
        max_peers: 1024,
        max_peers_per_address: 1024,
        accept_burst: 1024,
        accepts_per_second: 1024,
        ..kcp::PeersConfig::open()
    }
}
