//! What a client says of itself in the handshake.

use super::fields::{Fields, message};
use super::{pack, unpack};
use whitewater::message::BitsError;

/// Who comes, and as what.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Hello {
    /// What the others see, up to [`NAME_MAX`] bytes.
    pub name: String,
    /// What he would like to do.
    pub wish: Wish,
    /// A random number that the client keeps and nobody else knows: who comes back with the same name and number has his place again,
    /// within a minute.
    pub ticket: u64,
}

/// What a player would like to do.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Wish {
    /// What is needed most.
    #[default]
    Any,
    /// Role A.
    Build,
    /// Role B.
    Run,
    /// Look on.
    Watch,
}

impl Hello {
    /// As bytes for the handshake.
    ///
    /// # Errors
    ///
    /// The name is too long.
    pub fn encode(&self) -> Result<Vec<u8>, BitsError> {
        let mut bytes = Vec::new();
        pack(self, &mut bytes)?;
        Ok(bytes)
    }

    /// From the bytes of the handshake.
    ///
    /// # Errors
    ///
    /// They are none of this game.
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
