//! Carries the game over sessions. It works in virtual time as well as over sockets, because the ends of sessions know
//! neither.
//!
//! Snapshots and inputs are unreliable datagrams, whose receipts tell which have arrived. Everything else uses one
//! ordered channel.

mod guest;
mod host;

pub use guest::Guest;
pub use host::Host;

use crate::wire::Message;
use std::time::Duration;
use whitewater::channel::{Carrier, Resend};
use whitewater::{Channel, ChannelConfig, SessionConfig};

/// The same at both ends.
#[must_use]
pub fn session() -> SessionConfig {
    // Resends by the round trip, so that nobody waits longer than needed for what they bought.
    let channel = ChannelConfig { carrier: Carrier::Packets, resend: Resend::Rtt(125), ..CHANNEL.config() };
    SessionConfig {
        protocol_id: 0x7464_0000_0000_0002, // "td", version 2
        channels: vec![channel],
        // An acknowledgement waits for the next tick, whose data it can ride with.
        ack_delay: Duration::from_millis(40),
        ..SessionConfig::default()
    }
}

/// The reliable channel.
const CHANNEL: Channel<Message> = Channel::ordered(0);
