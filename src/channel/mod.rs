//! Channels: what a program sends on, and how messages arrive.
//!
//! Declare each channel once, as a constant [`Channel`], the same at both ends. Its [kind](ChannelKind) says how
//! messages arrive, its type what they contain. Channels do not wait for each other's losses. If not everything may be
//! sent at once, channels with lower numbers go first.
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
//! Sessions have channels. [`Channels`] are channels in packets without a session: over the packets of a
//! [`packet::Endpoint`](crate::packet::Endpoint), or others.

pub(crate) mod config;
mod error;
pub(crate) mod handle;
mod packed;
mod peer;

pub(crate) use config::ChannelConfig;
pub use config::{Carrier, ChannelsConfig, Resend};
pub use error::{ChannelError, RecvError, SendError};
pub(crate) use error::{DATAGRAMS, cure};
pub(crate) use handle::Channel;
pub use handle::{AnyChannel, ChannelKind};
pub(crate) use packed::Next as PackedNext;
pub use packed::{ChannelStats, Channels, ReadError, RejectedPayloads};
pub use peer::ChannelPeer;

/// Most channels per session.
pub const CHANNELS_MAX: usize = 32;
