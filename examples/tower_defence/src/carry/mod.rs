//! The game over sessions: which of its packets goes which way. It works in virtual time as well as over sockets, since neither end of
//! a session knows either.
//!
//! Snapshots and inputs are unreliable datagrams, whose receipts say which have arrived; all else is one ordered channel.

mod guest;
mod host;

pub use guest::Guest;
pub use host::Host;

use crate::wire::Message;
use std::time::Duration;
use whitewater::channel::{Carrier, Resend};
use whitewater::{Channel, ChannelConfig, SessionConfig};

/// Both ends have the same.
#[must_use]
pub fn session() -> SessionConfig {
    // By the round trip: nobody waits longer than needed for what he has bought.
    let channel = ChannelConfig { carrier: Carrier::Packets, resend: Resend::Rtt(125), ..CHANNEL.config() };
    SessionConfig {
        protocol_id: 0x7464_0000_0000_0001, // "td", version 1
        channels: vec![channel],
        // An acknowledgement waits for the next tick, which has something to ride with.
        ack_delay: Duration::from_millis(40),
        ..SessionConfig::default()
    }
}

/// The reliable channel.
const CHANNEL: Channel<Message> = Channel::ordered(0);
