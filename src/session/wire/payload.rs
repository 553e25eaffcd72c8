//! What the two messages of the handshake carry.

use super::packet::in_length;
use super::{PacketError, Reader, USER_MAX};
use crate::wire::reader::Value;

/// What the client says in the first message, and the server in the second of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Msg1<'a> {
    /// What its sender can do beyond the protocol, a bit each.
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
pub struct Msg2<'a> {
    /// What the client has to write into its packets, and the `conv` of KCP in both directions; 0 if and only if it was rejected.
    pub server_sid: u32,
    /// Of the server itself.
    pub said: Msg1<'a>,
    /// Why the client was rejected; `None`: it was not.
    pub rejected: Option<u16>,
    /// With this in a [`Reset`](super::Reset) the server may end the session when it has forgotten it; zeros: it never will.
    pub reset_token: [u8; 16],
}

impl<'a> Msg1<'a> {
    pub fn encode(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        self.write_head(payload)?;
        let user_len = u16::try_from(self.user.len()).unwrap_or_default(); // at most `USER_MAX`
        for number in [0, user_len, 0] {
            number.write(payload);
        }
        payload.extend_from_slice(self.user);
        Ok(())
    }

    pub fn decode(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let head = Self::read_head(&mut reader)?;
        let (reserved, user_len, also_reserved) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let user = reader.bytes(user_len)?;
        reader.finish()?;
        in_length("user", user, 0..=USER_MAX)?;
        if reserved | also_reserved != 0 {
            return Err(PacketError::Reserved);
        }
        Ok(Self { user, ..head })
    }

    /// What both messages say before their flags.
    fn write_head(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        in_length("user", self.user, 0..=USER_MAX)?;
        self.features.write(payload);
        for number in [self.max_datagram, self.rcv_wnd, self.keepalive_ms] {
            number.write(payload);
        }
        Ok(())
    }

    fn read_head(reader: &mut Reader<'a>) -> Result<Self, PacketError> {
        let (features, max_datagram) = (reader.u32()?, reader.u16()?);
        Ok(Self { features, max_datagram, rcv_wnd: reader.u16()?, keepalive_ms: reader.u16()?, user: &[] })
    }
}

impl<'a> Msg2<'a> {
    pub fn encode(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { server_sid, said, rejected, reset_token } = self;
        self.check()?;
        server_sid.write(payload);
        said.write_head(payload)?;
        rejected.map_or(0, |_| REJECTED).write(payload);
        if let Some(reason) = rejected {
            reason.write(payload);
        }
        payload.extend_from_slice(reset_token);
        payload.extend_from_slice(said.user);
        Ok(())
    }

    pub fn decode(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let (server_sid, head) = (reader.u32()?, Msg1::read_head(&mut reader)?);
        let rejected = match reader.u16()? {
            0 => None,
            REJECTED => Some(reader.u16()?),
            _ => return Err(PacketError::Reserved),
        };
        let reset_token = reader.array()?;
        let msg2 = Self { server_sid, said: Msg1 { user: reader.rest(), ..head }, rejected, reset_token };
        msg2.check().map(|()| msg2)
    }

    fn check(&self) -> Result<(), PacketError> {
        in_length("user", self.said.user, 0..=USER_MAX)?;
        if self.rejected.is_some() == (self.server_sid == 0) {
            return Ok(());
        }
        Err(PacketError::Field { field: "server_sid" })
    }
}

/// The flag of a rejection; the others are reserved.
const REJECTED: u16 = 1;
