//! Limits on strangers.

use std::sync::Arc;
use whitewater::kcp;
use whitewater_kcp_go::Config as Wire;

/// Limits for a kcptun server: a client has many sessions from one address, and many clients may share one
/// behind a NAT, so one address may have as much as all together. Strangers are kept out by the key: with
/// `Crypt::Null` or `None`, use lower limits.
pub(crate) fn limits(kcp: kcp::Config, wire: Wire) -> kcp::PeersConfig {
    kcp::PeersConfig {
        kcp,
        envelope: Some(Arc::new(wire)),
        max_peers: 1024,
        max_peers_per_address: 1024,
        accept_burst: 1024,
        accepts_per_second: 1024,
        ..kcp::PeersConfig::default()
    }
}
