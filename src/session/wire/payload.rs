//! What the two messages of the handshake carry.

use super::reader::Value;
use super::{PacketError, Reader, in_length};

/// What the client says in the first message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is what it is: the next version has another")]
pub struct Msg1<'a> {
    /// What the client can do beyond the protocol, a bit each.
    pub features: u32,
    /// Longest datagram that it takes, bytes.
    pub max_datagram: u16,
    /// Its receive window, segments.
    pub rcv_wnd: u16,
    /// It says something at least so often, ms.
    pub keepalive_ms: u16,
    /// The application's own, at most [`USER_MAX`] bytes.
    pub user: &'a [u8],
}

/// What the server says in the second message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is what it is: the next version has another")]
pub struct Msg2<'a> {
    /// What the client has to write into its packets, and the `conv` of KCP in both directions; 0 if and only if it was rejected.
    pub server_sid: u32,
    /// What the server can do beyond the protocol, a bit each.
    pub features: u32,
    /// Longest datagram that it takes, bytes.
    pub max_datagram: u16,
    /// Its receive window, segments.
    pub rcv_wnd: u16,
    /// It says something at least so often, ms.
    pub keepalive_ms: u16,
    /// Why the client was rejected; `None`: it was not.
    pub rejected: Option<u16>,
    /// With this in a [`Reset`](super::Reset) the server may end the session when it has forgotten it; zeros: it never will.
    pub reset_token: [u8; 16],
    /// The application's own, at most [`USER_MAX`] bytes.
    pub user: &'a [u8],
}

impl<'a> Msg1<'a> {
    /// Appends the payload.
    pub fn encode(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { features, max_datagram, rcv_wnd, keepalive_ms, user } = self;
        in_length("user", user, 0..=USER_MAX)?;
        let user_len = u16::try_from(user.len()).unwrap_or_default(); // at most `USER_MAX`
        features.write(payload);
        for number in [*max_datagram, *rcv_wnd, *keepalive_ms, 0, user_len, 0] {
            number.write(payload);
        }
        payload.extend_from_slice(user);
        Ok(())
    }

    /// The values of a payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let features = reader.u32()?;
        let (max_datagram, rcv_wnd, keepalive_ms) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let (reserved, user_len, also_reserved) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let user = reader.bytes(user_len)?;
        reader.finish()?;
        in_length("user", user, 0..=USER_MAX)?;
        if reserved | also_reserved != 0 {
            return Err(PacketError::Reserved);
        }
        Ok(Self { features, max_datagram, rcv_wnd, keepalive_ms, user })
    }
}

impl<'a> Msg2<'a> {
    /// Appends the payload.
    pub fn encode(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { server_sid, features, max_datagram, rcv_wnd, keepalive_ms, rejected, reset_token, user } =
            self;
        in_length("user", user, 0..=USER_MAX)?;
        self.check()?;
        server_sid.write(payload);
        features.write(payload);
        for number in [*max_datagram, *rcv_wnd, *keepalive_ms, rejected.map_or(0, |_| REJECTED)] {
            number.write(payload);
        }
        if let Some(reason) = rejected {
            reason.write(payload);
        }
        payload.extend_from_slice(reset_token);
        payload.extend_from_slice(user);
        Ok(())
    }

    /// The values of a payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let (server_sid, features) = (reader.u32()?, reader.u32()?);
        let (max_datagram, rcv_wnd, keepalive_ms) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let rejected = match reader.u16()? {
            0 => None,
            REJECTED => Some(reader.u16()?),
            _ => return Err(PacketError::Reserved),
        };
        let (reset_token, user) = (reader.array()?, reader.take_rest());
        in_length("user", user, 0..=USER_MAX)?;
        let msg2 =
            Self { server_sid, features, max_datagram, rcv_wnd, keepalive_ms, rejected, reset_token, user };
        msg2.check().map(|()| msg2)
    }

    fn check(&self) -> Result<(), PacketError> {
        if self.rejected.is_some() == (self.server_sid == 0) {
            return Ok(());
        }
        Err(PacketError::Field { field: "server_sid" })
    }
}

/// Most bytes that the application may add to a message of the handshake.
pub const USER_MAX: usize = 256;
/// The flag of a rejection; the others are reserved.
const REJECTED: u16 = 1;
