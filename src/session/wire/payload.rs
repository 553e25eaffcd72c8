//! The payloads of the two handshake messages.

use super::packet::{PacketError, in_length};
use super::{Reader, USER_MAX};
use crate::session::shape::is_shape;
use crate::wire::reader::Value as _;

/// What the client says in the first message, and what the server says of itself in the second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Msg1<'a> {
    /// What its sender supports beyond the protocol, one bit each.
    pub features: u32,
    /// Longest datagram that it accepts, bytes.
    pub max_datagram: u16,
    /// Its receive window, segments.
    pub rcv_wnd: u16,
    /// How often it sends something at least, ms.
    pub keepalive_ms: u16,
    /// The application's data, at most [`USER_MAX`] bytes.
    pub user: &'a [u8],
    /// Only in the first message: which channels the client has, at most [`SHAPE_MAX`](super::SHAPE_MAX) bytes. Empty:
    /// it does not say.
    pub shape: &'a [u8],
}

/// What the server says in the second message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Msg2<'a> {
    /// The number that the client must write into its packets, and the `conv` of KCP in both directions. 0 if and only
    /// if the client was rejected.
    pub server_sid: u32,
    /// What the server says of itself.
    pub said: Msg1<'a>,
    /// Why the client was rejected. `None`: it was not.
    pub rejected: Option<u16>,
    /// With this in a [`Reset`](super::Reset), the server may end the session once it no longer knows it. Zeros: it never
    /// will.
    pub reset_token: [u8; 16],
    /// What the client may return in the [`Connect`](super::Connect) of a later session, in place of a cookie: first the
    /// epoch, then the cookie. Never with a rejection.
    pub ticket: Option<[u8; TICKET_LEN]>,
}

impl<'a> Msg1<'a> {
    pub fn encode(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        self.write_head(payload)?;
        let user_len = u16::try_from(self.user.len()).unwrap_or_default(); // at most `USER_MAX`
        let shape_len = u16::try_from(self.shape.len()).unwrap_or_default(); // at most `SHAPE_MAX`
        for number in [shape_len, user_len, 0] {
            number.write(payload);
        }
        payload.extend_from_slice(self.user);
        payload.extend_from_slice(self.shape);
        Ok(())
    }

    pub fn decode(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let head = Self::read_head(&mut reader)?;
        let (shape_len, user_len, reserved) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let (user, shape) = (reader.bytes(user_len)?, reader.bytes(shape_len)?);
        reader.finish()?;
        if reserved != 0 {
            return Err(PacketError::Reserved);
        }
        let msg1 = Self { user, shape, ..head };
        msg1.check().map(|()| msg1)
    }

    fn check(&self) -> Result<(), PacketError> {
        in_length("user", self.user, 0..=USER_MAX)?;
        if is_shape(self.shape) { Ok(()) } else { Err(PacketError::Field { field: "shape" }) }
    }

    /// Writes what both messages have before their flags.
    fn write_head(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        self.check()?;
        self.features.write(payload);
        for number in [self.max_datagram, self.rcv_wnd, self.keepalive_ms] {
            number.write(payload);
        }
        Ok(())
    }

    fn read_head(reader: &mut Reader<'a>) -> Result<Self, PacketError> {
        let (features, max_datagram) = (reader.u32()?, reader.u16()?);
        Ok(Self {
            features,
            max_datagram,
            rcv_wnd: reader.u16()?,
            keepalive_ms: reader.u16()?,
            user: &[],
            shape: &[],
        })
    }
}

impl<'a> Msg2<'a> {
    pub fn encode(&self, payload: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { server_sid, said, rejected, reset_token, ticket } = self;
        self.check()?;
        server_sid.write(payload);
        said.write_head(payload)?;
        let flags = rejected.map_or(0, |_| REJECTED) | ticket.map_or(0, |_| HAS_TICKET);
        flags.write(payload);
        if let Some(reason) = rejected {
            reason.write(payload);
        }
        payload.extend_from_slice(reset_token);
        payload.extend_from_slice(ticket.as_ref().map_or(&[], |ticket| ticket));
        payload.extend_from_slice(said.user);
        Ok(())
    }

    pub fn decode(payload: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(payload);
        let (server_sid, head) = (reader.u32()?, Msg1::read_head(&mut reader)?);
        let (rejected, has_ticket) = match reader.u16()? {
            0 => (None, false),
            REJECTED => (Some(reader.u16()?), false),
            HAS_TICKET => (None, true),
            _ => return Err(PacketError::Reserved),
        };
        let reset_token = reader.array()?;
        let ticket = if has_ticket { Some(reader.array()?) } else { None };
        let said = Msg1 { user: reader.rest(), ..head };
        let msg2 = Self { server_sid, said, rejected, reset_token, ticket };
        msg2.check().map(|()| msg2)
    }

    fn check(&self) -> Result<(), PacketError> {
        in_length("user", self.said.user, 0..=USER_MAX)?;
        if self.rejected.is_some() != (self.server_sid == 0) {
            return Err(PacketError::Field { field: "server_sid" });
        }
        if self.rejected.is_some() && self.ticket.is_some() {
            return Err(PacketError::Field { field: "ticket" });
        }
        Ok(())
    }
}

/// The flag of a rejection, and that of a ticket, which never come together. The others are reserved.
const REJECTED: u16 = 1;
const HAS_TICKET: u16 = 2;
/// Length of a ticket in bytes.
pub const TICKET_LEN: usize = 20;
