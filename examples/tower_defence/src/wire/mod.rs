//! Every packet of the game, as bits. One function a type writes and reads, so the ends cannot disagree; what is read may
//! come from anyone, and what is out of its bounds is an error that changes nothing.
//!
//! | what | from, to | way | why |
//! |---|---|---|---|
//! | [`Hello`] | client, server | in the handshake | who comes, as what, and whether he was here before |
//! | [`Inputs`] | B, server | unreliable, all that are not known to have arrived | a lost one comes with the next |
//! | [`Snapshot`] | server, all | unreliable, by what the client is known to have | a lost one costs nothing but itself |
//! | [`Message::Order`] | A and B, server | reliable channel | each once, in order |
//! | [`Message::Chat`] | both ways | reliable channel | the same |
//! | [`Message::Event`], [`Message::Player`] | server, client | reliable channel | the same |

mod codes;
mod fields;
mod hello;
pub mod hostile;
mod inputs;
mod message;
mod runners;
mod snapshot;
mod squares;
mod text;

pub use hello::{Hello, NAME_MAX, Wish};
pub use inputs::{INPUTS_MAX, Inputs};
pub use message::{CHAT_MAX, Message};
pub use snapshot::{AGE_MAX, Head, ReadError, Snapshot, TICK_MAX, full_len, read, write};
pub use text::{is_shown, shown};

use whitewater::message::{BitReader, BitWriter, BitsError};

/// Most bytes of a packet: what an unreliable datagram of a session holds at least.
pub const PACKET_MAX: usize = 1150;

/// Writes a value into `bytes`, which are emptied before.
///
/// # Errors
///
/// It does not fit into [`PACKET_MAX`], or a value is out of its bounds.
pub fn pack(value: &impl whitewater::Message, bytes: &mut Vec<u8>) -> Result<(), BitsError> {
    let mut to = BitWriter::with_limit(std::mem::take(bytes), 8 * PACKET_MAX);
    value.pack(&mut to)?;
    *bytes = to.finish();
    Ok(())
}

/// Reads a value, and nothing must be left.
///
/// # Errors
///
/// The bytes are none of this type.
pub fn unpack<T: whitewater::Message>(bytes: &[u8]) -> Result<T, BitsError> {
    let mut from = BitReader::new(bytes);
    let value = T::unpack(&mut from)?;
    from.finish()?;
    Ok(value)
}
