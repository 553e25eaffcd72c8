//! The messages of the reliable channel.

use super::codes::{event, order, player, role};
use super::fields::{Fields, message};
use super::hello::NAME_MAX;
use crate::sim::{Event, Improvements, Order, PlayerId, Role};
use whitewater::message::BitsError;

/// A message of the reliable channel: delivered once, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// A player wants to buy something. Each client numbers its orders from 1.
    Order {
        /// Its number. Snapshots tell which order was decided last.
        number: u16,
        /// The order.
        order: Order,
    },
    /// Chat. The server ignores what a client says about its sender.
    Chat {
        /// The sender. `None`: a spectator.
        from: Option<PlayerId>,
        /// The text, up to [`CHAT_MAX`] bytes.
        text: String,
    },
    /// An event of the game.
    Event(Event),
    /// The player in a place.
    Player {
        /// Which place.
        player: PlayerId,
        /// The player's role.
        role: Role,
        /// Whether they are connected.
        is_here: bool,
        /// Their name.
        name: String,
    },
}

message!(Message, "messages of the tower defence", Self::Event(Event::default()));

impl Message {
    /// Its kind, then its fields.
    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        let mut kind = match self {
            Self::Order { .. } => 0,
            Self::Chat { .. } => 1,
            Self::Event(_) => 2,
            Self::Player { .. } => 3,
        };
        fields.int(&mut kind, 0..=3_u8)?;
        if F::READS {
            *self = Self::blank(kind);
        }
        match self {
            Self::Order { number, order: what } => {
                fields.int(number, 0..=u16::MAX)?;
                order(fields, what)
            }
            Self::Chat { from, text } => {
                fields.option(from, player)?;
                fields.string(text, CHAT_MAX)
            }
            Self::Event(what) => event(fields, what),
            Self::Player { player: who, role: what, is_here, name } => {
                player(fields, who)?;
                role(fields, what)?;
                fields.bool(is_here)?;
                fields.string(name, NAME_MAX)
            }
        }
    }

    /// An empty message of this kind, to be read into.
    fn blank(kind: u8) -> Self {
        let (player, role, name) = (PlayerId(0), Role::Builder, String::new());
        match kind {
            0 => Self::Order { number: 0, order: Order::Improve(Improvements::default()) },
            1 => Self::Chat { from: None, text: name },
            2 => Self::Event(Event::default()),
            _ => Self::Player { player, role, is_here: false, name },
        }
    }
}

/// Most bytes of a chat line.
pub const CHAT_MAX: usize = 120;
