//! What the ends tell each other, and how.

use whitewater::message::channel::{ChannelConfig, Resend};
use whitewater::message::{BitsError, Message, Serialize, Stream};
use whitewater::session::SessionConfig;

/// The lane of what is said. To the server: text. From it: the number of the line, 4 bytes, little-endian, and the text.
pub(crate) const CHAT: usize = 0;
/// The channels.
pub(crate) const POSITIONS: usize = 0;
pub(crate) const PICKUPS: usize = 1;
pub(crate) const MAP: usize = 2;

/// The last thing that a player says.
pub(crate) const BYE: &str = "bye";

/// Random bytes, the same at both ends and secret: in a game one for each player, from a connect token.
pub(crate) const SECRET: [u8; 32] = *b"an example is no place for it...";

/// Both ends have the same.
pub(crate) fn session() -> SessionConfig {
    let channels = vec![
        ChannelConfig::unreliable_sequenced(),
        ChannelConfig::reliable_unordered(),
        // By the round trip: after less, all of it would come twice.
        ChannelConfig { resend: Resend::Rtt(150), ..ChannelConfig::blocks() },
    ];
    SessionConfig { protocol_id: 0x6172_656e_6100_0001, channels, ..SessionConfig::default() }
}

/// What goes by channels.
#[derive(Clone, Debug)]
pub(crate) enum Game {
    Positions(Positions),
    /// A player has taken what lay on a tile.
    Pickup {
        tile: u16,
        by: u8,
    },
}

/// Where everybody is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions {
    /// Which of them is the one who is told.
    pub(crate) you: u8,
    pub(crate) players: Vec<Place>,
}

/// A place on the map, tiles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) x: f32,
    pub(crate) y: f32,
}

impl Serialize for Game {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        match self {
            Self::Positions(Positions { you, players }) => {
                stream.int(you, 0..=u8::MAX)?;
                stream.vec(players, 64, |stream, Place { x, y }| {
                    stream.float(x, 0.0..=256.0, 0.02)?;
                    stream.float(y, 0.0..=256.0, 0.02)
                })
            }
            Self::Pickup { tile, by } => {
                stream.int(tile, 0..=u16::MAX)?;
                stream.int(by, 0..=u8::MAX)
            }
        }
    }
}

impl Message for Game {
    const KINDS: u32 = 2;

    fn kind(&self) -> u32 {
        match self {
            Self::Positions(_) => 0,
            Self::Pickup { .. } => 1,
        }
    }

    fn blank(kind: u32) -> Option<Self> {
        match kind {
            0 => Some(Self::Positions(Positions::default())),
            1 => Some(Self::Pickup { tile: 0, by: 0 }),
            _ => None,
        }
    }
}

/// What a player presses in the frame `newest` and some before it: a datagram.
pub(crate) struct Inputs {
    pub(crate) newest: u32,
    /// The newest first.
    pub(crate) keys: [u8; REDUNDANCY],
}

impl Inputs {
    pub(crate) fn encode(&self) -> [u8; INPUTS] {
        let mut bytes = [0; INPUTS];
        let (newest, keys) = bytes.split_at_mut(4);
        newest.copy_from_slice(&self.newest.to_le_bytes());
        keys.copy_from_slice(&self.keys);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (newest, keys) = bytes.split_first_chunk()?;
        Some(Self { newest: u32::from_le_bytes(*newest), keys: keys.try_into().ok()? })
    }
}

/// Frames whose keys a datagram has: so many in a row have to get lost before one is missing.
pub(crate) const REDUNDANCY: usize = 8;
const INPUTS: usize = 4 + REDUNDANCY;

/// Keys, as bits.
pub(crate) const UP: u8 = 1;
pub(crate) const DOWN: u8 = 2;
pub(crate) const LEFT: u8 = 4;
pub(crate) const RIGHT: u8 = 8;
