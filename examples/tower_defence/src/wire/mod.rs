//! Every packet of the game, as bits. One function per type both writes and reads, so the ends cannot disagree. Packets
//! may come from anyone: a value out of range is an error and changes nothing.
//!
//! | what | from, to | sent | because |
//! |---|---|---|---|
//! | [`Hello`] | client, server | in the handshake | it tells who joins, in which role, and whether they were here before |
//! | [`Inputs`] | B, server | unreliably, all that are not known to have arrived | the next packet repeats lost ones |
//! | [`Snapshot`] | server, all | unreliably, as a delta to what the client is known to have | a lost one never affects later ones |
//! | [`Message::Order`] | A and B, server | on the reliable channel | each must arrive once, in order |
//! | [`Message::Chat`] | both ways | on the reliable channel | the same |
//! | [`Message::Event`], [`Message::Player`] | server, client | on the reliable channel | the same |
//! | [`Will`] | host, heirs | on a channel of its own, the next one once this has arrived | the newest replaces all earlier ones |
//! | [`Post`], [`Report`] | lobby, players; players, lobby | on the reliable channel of another session | each must arrive once, in order |

mod codes;
mod fields;
mod hello;
pub mod hostile;
mod inputs;
mod message;
mod post;
mod runners;
mod snapshot;
mod squares;
mod text;
mod will;

pub use hello::{Hello, NAME_MAX, Wish};
pub use inputs::{INPUTS_MAX, Inputs};
pub use message::{CHAT_MAX, Message};
pub use post::{ADDRESSES_MAX, Post, Report};
pub use snapshot::{AGE_MAX, Head, ReadError, Snapshot, TICK_MAX, full_len, read, write};
pub use text::{is_shown, shown};
pub use will::{Seat, WILL_MAX, Will};

use whitewater::message::{BitReader, BitWriter, BitsError};

/// Most bytes of a packet: these fit into an unreliable datagram of any session. A browser's sessions have datagrams of 1150 bytes.
pub const PACKET_MAX: usize = 1100;

/// Writes a value into `bytes`, replacing their content.
///
/// # Errors
///
/// It does not fit into [`PACKET_MAX`], or a value is out of range.
pub fn pack(value: &impl whitewater::Message, bytes: &mut Vec<u8>) -> Result<(), BitsError> {
    let mut to = BitWriter::with_limit(std::mem::take(bytes), 8 * PACKET_MAX);
    value.pack(&mut to)?;
    *bytes = to.finish();
    Ok(())
}

/// The bytes of a value that may take several packets.
///
/// # Errors
///
/// It does not fit into [`WILL_MAX`], or a value is out of range.
pub fn pack_long(value: &impl whitewater::Message) -> Result<Vec<u8>, BitsError> {
    let mut to = BitWriter::with_limit(Vec::new(), 8 * WILL_MAX as usize);
    value.pack(&mut to)?;
    Ok(to.finish())
}

/// Reads a value, which must use all bytes.
///
/// # Errors
///
/// The bytes are not of this type.
pub fn unpack<T: whitewater::Message>(bytes: &[u8]) -> Result<T, BitsError> {
    let mut from = BitReader::new(bytes);
    let value = T::unpack(&mut from)?;
    from.finish()?;
    Ok(value)
}
