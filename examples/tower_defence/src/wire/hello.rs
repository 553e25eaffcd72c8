//! What a client says about itself in the handshake.

use super::fields::{Fields, message};
use super::{pack, unpack};
use whitewater::message::BitsError;

/// Who joins, and in which role.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Hello {
    /// The name that others see, up to [`NAME_MAX`] bytes.
    pub name: String,
    /// The preferred role.
    pub wish: Wish,
    /// A random number that only the client knows and keeps: a player who returns with the same name and number within
    /// a minute gets their place back.
    pub ticket: u64,
}

/// The preferred role of a player.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Wish {
    /// Whatever is needed most.
    #[default]
    Any,
    /// Role A.
    Build,
    /// Role B.
    Run,
    /// Only watch.
    Watch,
}

impl Hello {
    /// Encodes it for the handshake.
    ///
    /// # Errors
    ///
    /// The name is too long.
    pub fn encode(&self) -> Result<Vec<u8>, BitsError> {
        let mut bytes = Vec::new();
        pack(self, &mut bytes)?;
        Ok(bytes)
    }

    /// Decodes it from the handshake.
    ///
    /// # Errors
    ///
    /// The bytes are not a hello of this game.
    pub fn decode(bytes: &[u8]) -> Result<Self, BitsError> {
        unpack(bytes)
    }
}

message!(Hello, "hello of the tower defence", Self::default());

impl Hello {
    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        let mut wish = self.wish as u8;
        fields.int(&mut wish, 0..=3)?;
        self.wish = match wish {
            0 => Wish::Any,
            1 => Wish::Build,
            2 => Wish::Run,
            _ => Wish::Watch,
        };
        fields.u64(&mut self.ticket)?;
        fields.string(&mut self.name, NAME_MAX)
    }
}

/// Most bytes of a name.
pub const NAME_MAX: usize = 24;
