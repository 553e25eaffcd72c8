//! Handles of channels: a number, a kind, and the type of the messages.

use super::{ChannelConfig, ChannelError};
use crate::message::pack::{Payload, Skip};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

/// A channel of a session: its number, its kind and the type of its messages, which are bytes by default.
///
/// Make it a constant. What you send and receive with it has its type. A handle that does not match a channel of the
/// session is an [error](ChannelError).
///
/// ```
/// use whitewater::{Channel, Message};
///
/// #[derive(Message)]
/// struct Pickup {
///     #[bits(0..=4095)]
///     tile: u16,
/// }
///
/// const INPUTS: Channel = Channel::unreliable(0);
/// const PICKUPS: Channel<Pickup> = Channel::unordered(1);
/// ```
pub struct Channel<P: ?Sized = [u8]> {
    number: u8,
    kind: ChannelKind,
    of: PhantomData<fn(&P)>,
}

/// How the messages of a channel arrive.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "reliable or not, in order or not, and bytes without bounds")]
pub enum ChannelKind {
    /// All arrive, each once, in the order of sending: orders, chat, purchases.
    Ordered,
    /// All arrive, each once, in any order: hits, pickups, levels.
    Unordered,
    /// Those arrive that are newer than everything delivered before: positions.
    Sequenced,
    /// Some may be lost, and they arrive in any order: effects, voice.
    Unreliable,
    /// All bytes arrive in order, without message boundaries: for a protocol of its own.
    Stream,
}

impl ChannelKind {
    /// Whether everything sent arrives.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::Ordered | Self::Unordered | Self::Stream)
    }

    /// Whether messages in packets have numbers.
    pub(crate) const fn has_ids(self) -> bool {
        !matches!(self, Self::Unreliable)
    }
}

impl fmt::Display for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ordered => "ordered",
            Self::Unordered => "unordered",
            Self::Sequenced => "sequenced",
            Self::Unreliable => "unreliable",
            Self::Stream => "stream",
        })
    }
}

impl<P: Payload + ?Sized> Channel<P> {
    /// The channel with this number whose messages all arrive in order: [`ChannelKind::Ordered`].
    #[must_use]
    pub const fn ordered(number: u8) -> Self {
        Self::new(number, ChannelKind::Ordered)
    }

    /// The channel with this number whose messages all arrive, in any order: [`ChannelKind::Unordered`].
    #[must_use]
    pub const fn unordered(number: u8) -> Self {
        Self::new(number, ChannelKind::Unordered)
    }

    /// The channel with this number that delivers only newer messages: [`ChannelKind::Sequenced`].
    #[must_use]
    pub const fn sequenced(number: u8) -> Self {
        Self::new(number, ChannelKind::Sequenced)
    }

    /// The channel with this number whose messages may be lost: [`ChannelKind::Unreliable`].
    #[must_use]
    pub const fn unreliable(number: u8) -> Self {
        Self::new(number, ChannelKind::Unreliable)
    }

    const fn new(number: u8, kind: ChannelKind) -> Self {
        Self { number, kind, of: PhantomData }
    }

    /// Its default settings.
    #[must_use]
    pub fn config(self) -> ChannelConfig {
        ChannelConfig::of(self)
    }
}

impl Channel {
    /// The channel with this number that is a stream of bytes: [`ChannelKind::Stream`].
    #[must_use]
    pub const fn stream(number: u8) -> Self {
        Self::new(number, ChannelKind::Stream)
    }
}

impl<P: ?Sized> Channel<P> {
    /// Its number: the lower, the more urgent.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.number
    }

    /// How its messages arrive.
    #[must_use]
    pub const fn kind(self) -> ChannelKind {
        self.kind
    }
}

impl<P: ?Sized> Clone for Channel<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ?Sized> Copy for Channel<P> {}

impl<P: ?Sized> PartialEq for Channel<P> {
    fn eq(&self, other: &Self) -> bool {
        (self.number, self.kind) == (other.number, other.kind)
    }
}

impl<P: ?Sized> Eq for Channel<P> {}

impl<P: ?Sized> fmt::Debug for Channel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel::{}({})", self.kind, self.number)
    }
}

/// A channel with messages of any type.
#[derive(Clone, Copy)]
pub struct AnyChannel {
    pub(crate) number: u8,
    pub(crate) kind: ChannelKind,
    /// As [`Payload::SHAPE`].
    pub(crate) shape: u64,
    /// As [`Payload::SKIP`].
    pub(crate) skip: Option<Skip>,
    name: fn() -> &'static str,
}

impl AnyChannel {
    /// Its number: the lower, the more urgent.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.number
    }

    /// How its messages arrive.
    #[must_use]
    pub const fn kind(self) -> ChannelKind {
        self.kind
    }

    /// Its handle with this type of messages.
    ///
    /// # Errors
    ///
    /// Its messages have another type.
    pub fn of<P: Payload + ?Sized>(self) -> Result<Channel<P>, ChannelError> {
        let channel = Channel { number: self.number, kind: self.kind, of: PhantomData };
        if self.shape == P::SHAPE { Ok(channel) } else { Err(ChannelError::wrong(channel.into(), self)) }
    }
}

impl<P: Payload + ?Sized> From<Channel<P>> for AnyChannel {
    fn from(Channel { number, kind, .. }: Channel<P>) -> Self {
        Self { number, kind, shape: P::SHAPE, skip: P::SKIP, name: type_name::<P> }
    }
}

impl PartialEq for AnyChannel {
    fn eq(&self, other: &Self) -> bool {
        (self.number, self.kind, self.shape) == (other.number, other.kind, other.shape)
    }
}

impl Eq for AnyChannel {}

impl fmt::Display for AnyChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of ", self.kind)?;
        // Each name without its path.
        let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let mut names = (self.name)().split_inclusive(|c| !is_of_path(c));
        names.try_for_each(|name| f.write_str(name.rsplit("::").next().unwrap_or(name)))
    }
}

impl fmt::Debug for AnyChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.number)
    }
}
