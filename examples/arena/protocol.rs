//! The messages between the ends, and their channels.

use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::{Channel, Message, SessionConfig};

/// Positions of all players.
pub(crate) const POSITIONS: Channel<Positions> = Channel::sequenced(0);
/// Who has taken what.
pub(crate) const PICKUPS: Channel<Pickup> = Channel::unordered(1);
/// Chat. To the server: the text. From the server: also the number of the line.
pub(crate) const SAID: Channel<String> = Channel::ordered(2);
pub(crate) const LINES: Channel<Line> = Channel::ordered(3);
/// The whole map, once.
pub(crate) const MAP: Channel = Channel::unordered(4);

/// The last chat line of a player.
pub(crate) const BYE: &str = "bye";

/// Random bytes, secret and the same at both ends. A real game gives each player its own, in a connect token.
pub(crate) const SECRET: [u8; 32] = *b"an example is no place for it...";

/// The same at both ends.
pub(crate) fn session() -> SessionConfig {
    let channels = vec![POSITIONS.into(), PICKUPS.into(), SAID.into(), LINES.into(), MAP.into()];
    SessionConfig { protocol_id: 0x6172_656e_6100_0001, channels, ..SessionConfig::default() }
}

/// The positions of all players.
#[derive(Debug)]
pub(crate) struct Positions {
    /// Which of them is the receiver.
    pub(crate) you: u8,
    pub(crate) players: Vec<Place>,
}

/// A position on the map, in tiles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) x: f32,
    pub(crate) y: f32,
}

/// A player has taken the item on a tile.
#[derive(Debug)]
pub(crate) struct Pickup {
    pub(crate) tile: u16,
    pub(crate) by: u8,
}

/// A chat line with its number.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) number: u32,
    pub(crate) text: String,
}

impl Message for Positions {
    const SHAPE: u64 = shape("Positions: u8, up to 64", &[Place::SHAPE]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.you.pack(to)?;
        to.list(&self.players, 64, |to, place| place.pack(to))
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { you: u8::unpack(from)?, players: from.list(64, Place::unpack)? })
    }
}

impl Message for Place {
    const SHAPE: u64 = shape("Place: two of 0..=256 by 0.02", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.float(self.x, 0.0..=256.0, 0.02)?;
        to.float(self.y, 0.0..=256.0, 0.02)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { x: from.float(0.0..=256.0, 0.02)?, y: from.float(0.0..=256.0, 0.02)? })
    }
}

impl Message for Pickup {
    const SHAPE: u64 = shape("Pickup: u16, u8", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.tile.pack(to)?;
        self.by.pack(to)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { tile: u16::unpack(from)?, by: u8::unpack(from)? })
    }
}

impl Message for Line {
    const SHAPE: u64 = shape("Line: u32, string", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.number.pack(to)?;
        self.text.pack(to)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { number: u32::unpack(from)?, text: String::unpack(from)? })
    }
}

/// The keys that a player presses in the frame `newest` and some before it: a datagram.
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

/// Frames per datagram: a frame is only missing if this many datagrams in a row get lost.
pub(crate) const REDUNDANCY: usize = 8;
const INPUTS: usize = 4 + REDUNDANCY;

/// Keys, as bits.
pub(crate) const UP: u8 = 1;
pub(crate) const DOWN: u8 = 2;
pub(crate) const LEFT: u8 = 4;
pub(crate) const RIGHT: u8 = 8;
