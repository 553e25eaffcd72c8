//! Carries the game over sessions. It works in virtual time as well as over sockets, because the ends of sessions know
//! neither.
//!
//! Snapshots and inputs are unreliable datagrams, whose receipts tell which have arrived. Everything else uses one
//! ordered channel. A host that another player may have to replace sends its [`Will`] on a channel of its own.

mod guest;
mod host;

pub use guest::Guest;
pub use host::Host;

#[cfg(feature = "program")]
pub(crate) use host::REFUSED;

use crate::wire::{Message, WILL_MAX, Will};
use std::time::Duration;
use whitewater::channel::{Carrier, Resend};
use whitewater::{Channel, ChannelConfig, SessionConfig};

/// The same at both ends.
#[must_use]
pub fn session() -> SessionConfig {
    // Resends by the round trip, so that nobody waits longer than needed for what they bought.
    let channel = ChannelConfig { carrier: Carrier::Packets, resend: Resend::Rtt(125), ..CHANNEL.config() };
    let will = ChannelConfig { max_message: WILL_MAX, ..WILL.config() };
    SessionConfig {
        protocol_id: 0x7464_0000_0000_0003, // "td", version 3
        channels: vec![channel, will],
        // An acknowledgement waits for the next tick, whose data it can ride with.
        ack_delay: Duration::from_millis(40),
        ..SessionConfig::default()
    }
}

/// The reliable channel.
const CHANNEL: Channel<Message> = Channel::ordered(0);
/// Wills, one at a time: the next is not sent before this one has arrived.
const WILL: Channel<Will> = Channel::ordered(1);
