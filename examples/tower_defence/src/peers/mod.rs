//! Players who host the match themselves, behind a relay, and go on with it when their host is gone.
//!
//! ```text
//!   lobby    names the host and the heirs, and gives tickets and connect tokens to all
//!   member   a player: their client, their server while they host, and what they tell the lobby
//!   lab      a lobby, a relay and players in virtual time
//! ```
//!
//! None of them has a socket or a clock: [`play`](crate::play) has both.

mod lab;
mod lobby;
mod member;

pub use lab::PeersLab;
pub use lobby::Lobby;
pub use member::{Member, Task};

use crate::wire::{Post, Report};
use std::time::Duration;
use whitewater::channel::{Carrier, Resend};
use whitewater::{Channel, ChannelConfig, SessionConfig};

/// A session of a player with the lobby, which lasts as long as they play. When nobody hosts anew, it carries a ping each few
/// seconds.
#[must_use]
pub fn session() -> SessionConfig {
    let fast = |config: ChannelConfig| ChannelConfig {
        carrier: Carrier::Packets,
        resend: Resend::Rtt(125),
        max_message: 2048,
        ..config
    };
    SessionConfig {
        protocol_id: 0x7464_6c00_0000_0001, // "tdl", version 1
        channels: vec![fast(POSTS.config()), fast(REPORTS.config())],
        timeout: Duration::from_secs(6),
        ..SessionConfig::default()
    }
}

/// What the lobby says.
const POSTS: Channel<Post> = Channel::ordered(0);
/// What players say.
const REPORTS: Channel<Report> = Channel::ordered(1);
/// How long a host that leaves waits until its heirs have the match.
pub(crate) const HANDOVER: Duration = Duration::from_millis(500);
