//! What both ends of a session must have in common, in a few bytes. The handshake compares it, and names the first
//! difference.
//!
//! Only peers who know what the suite requires can learn it: the client sends it inside its first message, and the
//! server answers only clients whose first message was good.

use super::SessionConfig;
use crate::channel::{Carrier, ChannelConfig, ChannelKind};
use siphasher::sip128::SipHasher24;
use std::fmt;

/// What an end has, as the handshake describes it: a hash of everything, then a summary of each channel.
#[derive(Clone, Debug)]
pub(super) struct Shape(Box<[u8]>);

/// A difference between the ends where they must be the same. Its `Display` describes it from this end's point of view.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mismatch {
    /// Which channel.
    index: u8,
    /// `None`: there is no channel with that number.
    here: Option<Entry>,
    there: Option<Entry>,
}

/// The summary of a channel: its kind, and one byte each of the hashes of its messages and its settings.
type Entry = [u8; ENTRY_LEN];

impl Shape {
    pub(super) fn of(config: &SessionConfig) -> Self {
        let (mut whole, mut short) = (Vec::new(), Vec::new());
        for (kind, message, knobs) in entries(config) {
            let (message, knobs) = (message.to_le_bytes(), knobs.map(u32::to_le_bytes));
            whole.push(kind);
            whole.extend_from_slice(&message);
            whole.extend(knobs.iter().flatten());
            short.extend([kind, digest(&message)[0], digest(knobs.as_flattened())[0]]);
        }
        let [a, b, c, d, e, f, g, h, ..] = digest(&whole);
        short.splice(..0, [a, b, c, d, e, f, g, h]);
        Self(short.into())
    }

    pub(super) const fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// How the peer's shape differs. `None`: it does not, or the peer does not tell.
    pub(super) fn compare(&self, theirs: &[u8]) -> Option<Mismatch> {
        let (hash, there) = theirs.split_first_chunk::<HASH_LEN>()?;
        let (own_hash, here) = self.0.split_first_chunk::<HASH_LEN>()?;
        if hash == own_hash {
            return None;
        }
        let (here, there) = (here.as_chunks().0, there.as_chunks().0);
        let entry = |index: u8| {
            let of = |entries: &[Entry]| entries.get(usize::from(index)).copied();
            Mismatch { index, here: of(here), there: of(there) }
        };
        Some((0..ENTRIES_MAX).map(entry).find(|it| it.here != it.there).unwrap_or(Mismatch::UNNAMED))
    }
}

/// Whether the bytes could be the result of [`Shape::bytes`], or are empty.
pub(super) const fn is_shape(bytes: &[u8]) -> bool {
    let len = bytes.len();
    len == 0 || len >= HASH_LEN && len <= SHAPE_MAX && (len - HASH_LEN).is_multiple_of(ENTRY_LEN)
}

/// What must be the same for the peer's channels: a number for the kind, one for the type of its messages, settings.
fn entries(config: &SessionConfig) -> impl Iterator<Item = (u8, u64, [u32; 3])> {
    config.channels.iter().map(|config| {
        let ChannelConfig { channel, carrier, receive_buffer, messages_per_packet, max_message, .. } =
            *config;
        let (kind, in_packets) = match (channel.kind(), carrier) {
            (ChannelKind::Ordered, Carrier::Kcp) => (0, [0; 2]),
            (ChannelKind::Stream, _) => return (1, channel.shape, [0; 3]),
            (kind, _) => (kind as u8 + 2, [receive_buffer.into(), messages_per_packet.into()]),
        };
        let [receive_buffer, messages_per_packet] = in_packets;
        let max_message = if channel.kind().is_reliable() { max_message } else { 0 };
        (kind, channel.shape, [receive_buffer, messages_per_packet, max_message])
    })
}

/// The words for a kind.
const fn name(kind: u8) -> &'static str {
    match kind {
        0 => "ordered",
        1 => "a stream",
        2 => "ordered, in packets,",
        3 => "unordered",
        4 => "sequenced",
        5 => "unreliable",
        _ => "of a kind that is not known here",
    }
}

/// Both ends use the same hash key, which is not a secret.
fn digest(bytes: &[u8]) -> [u8; 16] {
    SipHasher24::new().hash(bytes).as_bytes()
}

impl Mismatch {
    /// A difference that the bytes of the hashes do not show.
    pub(super) const UNNAMED: Self = Self { index: ENTRIES_MAX, here: None, there: None };
}

impl std::error::Error for Mismatch {}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index;
        match (self.here, self.there) {
            (Some([here, ..]), Some([there, ..])) if here != there => {
                write!(f, "channel {index} is {} here and {} there", name(here), name(there))
            }
            (Some([_, here, _]), Some([_, there, _])) if here != there => {
                write!(f, "channel {index} has messages of another type here than there")
            }
            (Some(_), Some(_)) => write!(f, "channel {index} has other knobs here than there"),
            (Some([here, ..]), None) => write!(f, "channel {index} is {} here and missing there", name(here)),
            (None, Some([there, ..])) => {
                write!(f, "channel {index} is missing here and {} there", name(there))
            }
            (None, None) => write!(f, "the channels differ"),
        }
    }
}

/// Most bytes of a description.
pub const SHAPE_MAX: usize = HASH_LEN + ENTRY_LEN * ENTRIES_MAX as usize;
const HASH_LEN: usize = 8;
const ENTRY_LEN: usize = 3;
/// Channels that a description has room for: more than a session can have.
const ENTRIES_MAX: u8 = 80;
