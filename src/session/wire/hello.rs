//! HELLO, CHALLENGE and DENY: what is said before an address is proven.

use super::reader::{Reader, Short, Value, values};
use super::{COOKIE_LEN, DATAGRAM_MAX, PacketError, VERSION, append, begin, kind, of_kind, whole};

/// A client asks for a cookie. It is padded, so that the answer is the smaller one: nobody can have a server multiply what he
/// sends to somebody else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is what it is: the next version has another")]
pub struct Hello {
    /// Number of the suite that is asked for, see [`Suite::from_code`](crate::session::Suite::from_code).
    pub suite: u16,
    /// The game and its own version of its protocol.
    pub protocol_id: u64,
    /// The attempt, chosen at random by the client.
    pub cid: u64,
    /// Any number; it comes back, so that the client can tell the round trip.
    pub client_stamp: u32,
    /// Bytes of the whole datagram, [`HELLO_MIN`] to [`DATAGRAM_MAX`].
    pub size: u16,
}

values! {
    /// The answer to a [`Hello`].
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    Challenge {
        /// As in the [`Hello`].
        suite: u16,
        /// As in the [`Hello`].
        cid: u64,
        /// As in the [`Hello`].
        client_stamp: u32,
        /// When the cookie was made, in periods of the server.
        epoch: u32,
        /// What the client has to bring back.
        cookie: [u8; COOKIE_LEN],
    }
}

/// The server refuses, or somebody says so: it is not authenticated. A hint, while a valid answer may still come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is what it is: the next version has another")]
pub struct Deny {
    /// Lowest version of the protocol that the server speaks, 1 to 15.
    pub lowest: u8,
    /// Highest version, from the lowest to 15.
    pub highest: u8,
    /// Why.
    pub reason: DenyReason,
    /// The attempt.
    pub cid: u64,
    /// Do not try again before, ms.
    pub retry_after_ms: u32,
}

/// Why a server refuses before it knows who asks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DenyReason {
    /// The server does not speak this version of the protocol.
    Version = 1,
    /// It does not have this suite.
    Suite = 2,
    /// It is a server of another game, or of another version of it.
    Protocol = 3,
    /// It has no room.
    Busy = 4,
}

impl Hello {
    /// Appends the datagram.
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { suite, protocol_id, cid, client_stamp, size } = *self;
        let size = usize::from(size);
        if !(HELLO_MIN..=DATAGRAM_MAX).contains(&size) {
            return Err(PacketError::Field { field: "size" });
        }
        let end = datagram.len() + size;
        datagram.extend_from_slice(&[kind::HELLO, VERSION]);
        suite.write(datagram);
        protocol_id.write(datagram);
        cid.write(datagram);
        client_stamp.write(datagram);
        datagram.resize(end, 0);
        Ok(())
    }

    /// The packet that `datagram` is.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        let mut reader = begin(kind::HELLO, datagram)?;
        let have = datagram.len();
        let size = u16::try_from(have).ok().filter(|_| have >= HELLO_MIN);
        let size = size.ok_or(PacketError::Length { have })?;
        let (suite, protocol_id, cid) = (reader.u16()?, reader.u64()?, reader.u64()?);
        let client_stamp = reader.u32()?;
        if reader.rest().iter().any(|byte| *byte != 0) {
            return Err(PacketError::Reserved);
        }
        Ok(Self { suite, protocol_id, cid, client_stamp, size })
    }

    /// The attempt, of a HELLO of any version: it stands in the same place in all of them, so that a server can tell the client that
    /// it does not speak its version. `None`: no HELLO, or one that is too short to be answered.
    #[must_use]
    pub fn cid_of_any_version(datagram: &[u8]) -> Option<u64> {
        let mut reader = of_kind(kind::HELLO, datagram).ok().filter(|_| datagram.len() >= HELLO_MIN)?;
        reader.bytes(11_usize).ok()?;
        reader.u64().ok()
    }
}

impl Challenge {
    /// Appends the datagram.
    pub fn encode(&self, datagram: &mut Vec<u8>) {
        append(kind::CHALLENGE, self, datagram);
    }

    /// The packet that `datagram` is.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        whole(kind::CHALLENGE, datagram)
    }
}

impl Deny {
    /// Appends the datagram.
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { lowest, highest, reason, cid, retry_after_ms } = *self;
        if !(1..=highest).contains(&lowest) || highest > 0xf {
            return Err(PacketError::Field { field: "versions" });
        }
        datagram.extend_from_slice(&[kind::DENY, lowest << 4 | highest]);
        (reason as u16).write(datagram);
        cid.write(datagram);
        retry_after_ms.write(datagram);
        Ok(())
    }

    /// The packet that `datagram` is, whatever version its server speaks.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        let mut reader = of_kind(kind::DENY, datagram)?;
        let (versions, reason, cid, retry_after_ms) =
            (reader.u8()?, reader.u16()?, reader.u64()?, reader.u32()?);
        reader.finish()?;
        let (lowest, highest) = (versions >> 4, versions & 0xf);
        if !(1..=highest).contains(&lowest) {
            return Err(PacketError::Field { field: "versions" });
        }
        let reason = DenyReason::ALL.into_iter().find(|known| *known as u16 == reason);
        let reason = reason.ok_or(PacketError::Field { field: "reason" })?;
        Ok(Self { lowest, highest, reason, cid, retry_after_ms })
    }
}

impl DenyReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Version, Self::Suite, Self::Protocol, Self::Busy];
}

/// Fewest bytes of a HELLO that is answered.
pub const HELLO_MIN: usize = 512;
/// Bytes of a CHALLENGE: 0.07 of the shortest HELLO.
pub const CHALLENGE_LEN: usize = 36;
/// Bytes of a DENY.
pub const DENY_LEN: usize = 16;
