//! Channels: what a program sends on, and how it arrives.
//!
//! A channel is declared once, as a [`Channel`] in a constant, and is the same at both ends. Its [kind](ChannelKind) says how messages
//! arrive, its type what they are. No channel waits for what another one has lost. Where less may leave than there is, channels with lower
//! numbers go first.
//!
//! ```
//! use whitewater::{Channel, SessionConfig};
//!
//! const CHAT: Channel = Channel::ordered(0);
//! const POSITIONS: Channel = Channel::sequenced(1);
//! const LEVELS: Channel = Channel::unordered(2);
//!
//! let session = SessionConfig { channels: vec![CHAT.into(), POSITIONS.into(), LEVELS.into()], ..SessionConfig::default() };
//! assert!(session.check().is_ok());
//! ```
//!
//! A session has them. [`Channels`] are those that go in packets, without a session: over the packets of a
//! [`packet::Endpoint`](crate::packet::Endpoint), or others.

pub(crate) mod config;
mod error;
pub(crate) mod handle;
mod packed;
mod peer;

pub(crate) use config::ChannelConfig;
pub use config::{Carrier, ChannelsConfig, Resend};
pub use error::{ChannelError, RecvError, SendError};
pub(crate) use handle::Channel;
pub use handle::{AnyChannel, ChannelKind};
pub(crate) use packed::Next as PackedNext;
pub use packed::{ChannelStats, Channels, ReadError, RejectedPayloads};
pub use peer::ChannelPeer;

/// Most channels of a session.
pub const CHANNELS_MAX: usize = 32;
