//! The header of DATA, and RESET.

use super::reader::{Reader, Short, Value, values};
use super::{PacketError, kind, of_kind};

/// What stands in clear before what is sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is what it is: the next version has another")]
pub struct Data {
    /// The key phase: whether the key was updated an odd number of times.
    pub phase: bool,
    /// The session, by the number that the receiver of this packet chose.
    pub sid: u32,
    /// The low half of the packet number.
    pub pn: u32,
}

values! {
    /// The server has no such session and says so, by a token that only the two of them know.
    #[derive(Clone, Copy, Eq, PartialEq)]
    Reset {
        /// The session, as the client called it in its DATA.
        sid: u32,
        /// As in [`Msg2`](super::Msg2).
        token: [u8; 16],
    }
}

impl Data {
    /// The header and what follows it.
    pub fn decode(datagram: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let phase = datagram.first() == Some(&(kind::DATA | PHASE));
        let mut reader = of_kind(kind::DATA | if phase { PHASE } else { 0 }, datagram)?;
        let (sid, pn) = (reader.u32()?, reader.u32()?);
        if reader.rest().len() < SEALED_MIN {
            return Err(PacketError::Length { have: datagram.len() });
        }
        Ok((Self { phase, sid, pn }, reader.rest()))
    }

    /// The bytes of the header.
    #[must_use]
    pub const fn encode(&self) -> [u8; DATA_HEADER_LEN] {
        let Self { phase, sid, pn } = *self;
        let [s0, s1, s2, s3] = sid.to_le_bytes();
        let [p0, p1, p2, p3] = pn.to_le_bytes();
        [kind::DATA | if phase { PHASE } else { 0 }, s0, s1, s2, s3, p0, p1, p2, p3]
    }
}

impl Reset {
    /// Appends the datagram.
    pub fn encode(&self, datagram: &mut Vec<u8>) {
        datagram.push(kind::RESET);
        self.write(datagram);
    }

    /// The packet that `datagram` is.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        Ok(of_kind(kind::RESET, datagram)?.whole()?)
    }
}

impl std::fmt::Debug for Reset {
    /// Without the token: who has it can end the session.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reset").field("sid", &self.sid).finish_non_exhaustive()
    }
}

/// Bytes before what is sealed.
pub const DATA_HEADER_LEN: usize = 9;
/// Bytes of a RESET.
pub const RESET_LEN: usize = 21;
/// What makes the kind that of key phase 1: 0xa6 has this bit clear.
const PHASE: u8 = 1;
/// Fewest bytes after the header: the checksum of an empty body.
const SEALED_MIN: usize = 4;
