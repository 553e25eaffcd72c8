//! What both ends of a session need alike, in a few bytes: the handshake compares it, and names the first thing that differs.
//!
//! Nobody learns it who does not know what the suite asks for: the client says it inside its first message, and only a client whose first
//! message was good is answered.

use super::SessionConfig;
use crate::channel::{Carrier, ChannelConfig, ChannelKind};
use siphasher::sip128::SipHasher24;
use std::fmt;

/// What an end has, as the handshake says it: a hash of all of it, then each channel in short.
#[derive(Clone, Debug)]
pub(super) struct Shape(Box<[u8]>);

/// Where both ends differ that have to be alike. Displayed, it says how, as seen from this end.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Mismatch {
    /// Which channel.
    index: u8,
    /// `None`: there is none of that number.
    here: Option<Entry>,
    there: Option<Entry>,
}

/// A channel in short: what it is, and a byte each of the hashes of its messages and of its knobs.
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

    /// How the peer's differs; `None`: it does not, or the peer says nothing of it.
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

/// Whether bytes can be what [`Shape::bytes`] gives, or nothing.
pub(super) const fn is_shape(bytes: &[u8]) -> bool {
    let len = bytes.len();
    len == 0 || len >= HASH_LEN && len <= SHAPE_MAX && (len - HASH_LEN).is_multiple_of(ENTRY_LEN)
}

/// What channels have that the peer's need as well: a number of the kind, of the type of its messages, knobs.
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

/// Both ends use the same key, which is no secret.
fn digest(bytes: &[u8]) -> [u8; 16] {
    SipHasher24::new().hash(bytes).as_bytes()
}

impl Mismatch {
    /// There is one that a byte of the hashes does not show.
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
/// Channels that a description has room for: more than a session has.
const ENTRIES_MAX: u8 = 80;
