//! What server, players and matchmaker agree on.

use std::time::Duration;
use whitewater::{Channel, SessionConfig};

/// This version of this game.
pub(crate) const PROTOCOL_ID: u64 = 0x6167_6f6e_0000_0001;
/// A server does not live long enough for a second key.
pub(crate) const KEY_ID: u8 = 0;
/// The server drains: ask the matchmaker for another one.
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
