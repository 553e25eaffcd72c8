//! Events of the game.

use super::player::PlayerId;

/// An event, as reported to everybody whom it concerns.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Event {
    /// When.
    pub tick: u32,
    /// What.
    pub kind: EventKind,
    /// Whether a wave was running.
    pub running: bool,
    /// Money that the player got for it.
    pub money: u16,
    /// The player whom it concerns.
    pub id: PlayerId,
    /// Depends on [`EventKind`].
    pub data: u16,
}

/// The kind of an event, with the meaning of [`Event::data`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum EventKind {
    /// A wave has begun: its number.
    #[default]
    Wave,
    /// A wave is over: its number.
    Pause,
    /// A runner has taken a coin: 0.
    Coin,
    /// A runner has reached the exit: the remaining health of the base.
    Exit,
    /// A runner was shot: its remaining lives.
    Death,
    /// A turret was built: its number.
    Built,
    /// A turret was raised: its number.
    Raised,
    /// A bonus was bought: its number.
    Bonus,
    /// A runner was improved: the six bits.
    Improved,
    /// An order or input of this player was refused and changed nothing: the number of the [`Refusal`](super::Refusal).
    Refused,
    /// The game is over: 1 if the builders have won, 0 if the runners have.
    Over,
    /// A player has joined: 0 as a builder, 1 as a runner.
    Joined,
    /// A player has come back: the same.
    Back,
    /// A player has left: 0.
    Left,
}

impl EventKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::Wave,
        Self::Pause,
        Self::Coin,
        Self::Exit,
        Self::Death,
        Self::Built,
        Self::Raised,
        Self::Bonus,
        Self::Improved,
        Self::Refused,
        Self::Over,
        Self::Joined,
        Self::Back,
        Self::Left,
    ];

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}
