//! What goes by the reliable channel: a closed set.

use super::codes::{event, order, player, role};
use super::hello::NAME_MAX;
use crate::sim::{Event, Improvements, Order, PlayerId, Role};
use whitewater::message::{BitsError, Message as Kinds, Serialize, Stream};

/// What goes by the reliable channel: each once, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// A player wants to buy something. Orders are numbered by their client, from 1 on.
    Order {
        /// Its number; snapshots say which one was decided last.
        number: u16,
        /// What he wants.
        order: Order,
    },
    /// Somebody says something. What a client says of who it is does not count.
    Chat {
        /// Who; `None`: a spectator.
        from: Option<PlayerId>,
        /// What, up to [`CHAT_MAX`] bytes.
        text: String,
    },
    /// Something has happened.
    Event(Event),
    /// Who has a place at the table.
    Player {
        /// Which place.
        player: PlayerId,
        /// What he does.
        role: Role,
        /// Whether he is connected.
        is_here: bool,
        /// His name.
        name: String,
    },
}

impl Serialize for Message {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        match self {
            Self::Order { number, order: what } => {
                stream.int(number, 0..=u16::MAX)?;
                order(stream, what)
            }
            Self::Chat { from, text } => {
                stream.option(from, player)?;
                stream.string(text, CHAT_MAX)
            }
            Self::Event(what) => event(stream, what),
            Self::Player { player: who, role: what, is_here, name } => {
                player(stream, who)?;
                role(stream, what)?;
                stream.bool(is_here)?;
                stream.string(name, NAME_MAX)
            }
        }
    }
}

impl Kinds for Message {
    const KINDS: u32 = 4;

    fn kind(&self) -> u32 {
        match self {
            Self::Order { .. } => 0,
            Self::Chat { .. } => 1,
            Self::Event(_) => 2,
            Self::Player { .. } => 3,
        }
    }

    fn blank(kind: u32) -> Option<Self> {
        let (player, role, name) = (PlayerId(0), Role::Builder, String::new());
        match kind {
            0 => Some(Self::Order { number: 0, order: Order::Improve(Improvements::default()) }),
            1 => Some(Self::Chat { from: None, text: name }),
            2 => Some(Self::Event(Event::default())),
            3 => Some(Self::Player { player, role, is_here: false, name }),
            _ => None,
        }
    }
}

/// Most bytes of what is said at once.
pub const CHAT_MAX: usize = 120;
