//! The keys that players hold in a tick.

use super::player::PlayerId;
use super::rules::PLAYERS;

/// The directions held, 4 bits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Keys(u8);

impl Keys {
    /// To a smaller row.
    pub const UP: Self = Self(1);
    /// To a larger row.
    pub const DOWN: Self = Self(2);
    /// To a smaller column.
    pub const LEFT: Self = Self(4);
    /// To a larger column.
    pub const RIGHT: Self = Self(8);

    /// The lowest 4 bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 15)
    }

    /// One bit per direction.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets of keys.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The keys for a direction: any column and row distance, of which only the sign counts.
    #[must_use]
    pub const fn towards(x: i32, y: i32) -> Self {
        let horizontal = if x < 0 { 4 } else { 8 * (x > 0) as u8 };
        let vertical = if y < 0 { 1 } else { 2 * (y > 0) as u8 };
        Self(horizontal | vertical)
    }

    /// -1, 0 or 1 column and row. Opposite directions cancel out.
    #[must_use]
    pub const fn direction(self) -> (i32, i32) {
        (bit_of(self.0, 3) - bit_of(self.0, 2), bit_of(self.0, 1) - bit_of(self.0, 0))
    }
}

const fn bit_of(bits: u8, bit: u8) -> i32 {
    (bits >> bit & 1) as i32
}

/// The keys of all players in a tick.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inputs([Keys; PLAYERS as usize]);

impl Inputs {
    /// The keys of a player.
    #[must_use]
    pub fn of(&self, player: PlayerId) -> Keys {
        self.0.get(player.index()).copied().unwrap_or_default()
    }

    /// Sets the keys of a player.
    pub fn set(&mut self, player: PlayerId, keys: Keys) {
        if let Some(place) = self.0.get_mut(player.index()) {
            *place = keys;
        }
    }
}
