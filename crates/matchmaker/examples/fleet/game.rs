//! What both ends of this game agree on.

use std::time::Duration;
use whitewater::{Channel, SessionConfig};

/// This version of this game.
pub(crate) const PROTOCOL_ID: u64 = 0x6d61_7463_0000_0001;

/// What players say, and the answers.
pub(crate) const TALK: Channel<String> = Channel::ordered(0);

pub(crate) fn session_config() -> SessionConfig {
    let (keepalive, timeout) = (Duration::from_millis(250), Duration::from_secs(5));
    let channels = vec![TALK.into()];
    SessionConfig { protocol_id: PROTOCOL_ID, channels, keepalive, timeout, ..SessionConfig::default() }
}
