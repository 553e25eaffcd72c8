//! What server and players agree on.

use std::time::Duration;
use whitewater::{Channel, SessionConfig};

/// This version of this game. The matchmaker is told the same.
pub(crate) const PROTOCOL_ID: u64 = 0x6167_6f6e_0000_0001;
/// The server drains: ask for a place on another one.
pub(crate) const DRAINED: u16 = 1;

/// What players say, and the answers.
pub(crate) const TALK: Channel<String> = Channel::ordered(0);

pub(crate) fn session_config() -> SessionConfig {
    let (keepalive, timeout) = (Duration::from_millis(250), Duration::from_secs(5));
    let (channels, drain) = (vec![TALK.into()], Duration::from_secs(1));
    SessionConfig {
        protocol_id: PROTOCOL_ID,
        channels,
        keepalive,
        timeout,
        drain,
        ..SessionConfig::default()
    }
}
