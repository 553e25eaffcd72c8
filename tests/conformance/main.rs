//! docs/vectors shows implementers what WW/1 looks like; see docs/CONFORMANCE.md. These tests produce the
//! same lines and parse them.
//!
//! After a change of the protocol: `WHITEWATER_WRITE_VECTORS=1 cargo test --release --all-features --test conformance`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "crypto")]
mod data;
mod frames;
#[cfg(feature = "crypto")]
mod handshakes;
#[cfg(feature = "pq")]
mod hybrid;
mod line;
mod numbers;
mod packets;
mod requests;
#[cfg(feature = "crypto")]
mod tokens;

use crate::common::machine::Whole as _;
use whitewater::session::Server;
use whitewater::{ServerConfig, SessionConfig, Time};
use whitewater_sim::SimRng;

const PROTOCOL: u64 = 0x1122_3344_5566_7788;
const CID: u64 = 0x0102_0304_0506_0708;

#[test]
fn packets_match_the_vectors() {
    packets::file().holds(packets::take);
    packets::payloads().holds(packets::take_payload);
    packets::every_kind_has_a_vector();
}

#[test]
fn frames_match_the_vectors() {
    frames::file().holds(frames::take);
    frames::every_type_has_a_vector();
}

#[test]
fn invalid_vectors_are_rejected_for_the_stated_reason() {
    packets::refused().holds(packets::take_refused);
    frames::refused().holds(frames::take_refused);
    requests::refused().holds(requests::take_refused);
}

#[test]
fn numbers_match_the_vectors() {
    numbers::file().holds(numbers::take);
    numbers::cookies().holds(numbers::take_cookie);
}

#[test]
#[cfg(feature = "crypto")]
fn handshakes_match_the_vectors() {
    handshakes::file().holds(handshakes::take);
}

#[test]
#[cfg(feature = "pq")]
fn hybrid_handshakes_match_the_vectors() {
    hybrid::file().holds(hybrid::take);
}

#[test]
#[cfg(feature = "crypto")]
fn sealed_packets_match_the_vectors() {
    data::file().holds(data::take);
}

#[test]
#[cfg(feature = "crypto")]
fn tokens_match_the_vectors() {
    tokens::file().holds(tokens::take);
    tokens::refused().holds(tokens::take_refused);
}

/// What an unencrypted server counts for a stranger's datagram.
fn counted_by_a_server(datagram: &[u8]) -> Vec<&'static str> {
    let session = SessionConfig { protocol_id: PROTOCOL, ..SessionConfig::default() };
    let config = ServerConfig::insecure(session);
    let mut server: Server = Server::new(&config, SimRng::new(1, 1)).unwrap();
    server.give(Time::from_millis(1), "192.0.2.1:4000".parse().unwrap(), datagram);
    let rejected = server.stats().rejected;
    let counts = [
        ("malformed", rejected.malformed),
        ("version", rejected.version),
        ("suite", rejected.suite),
        ("protocol", rejected.protocol),
        ("cookie", rejected.cookie),
        ("unknown", rejected.unknown),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect()
}
