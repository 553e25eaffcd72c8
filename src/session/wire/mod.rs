//! The datagrams of a session and the frames in them: bytes and values, no state.
//!
//! Numbers are little-endian, reserved bits are zero and are looked at, lengths are bounded, and every value has one encoding: what
//! decodes encodes to the same bytes. `docs/WIRE.md` has each byte.
//!
//! Each `encode` fails where a field has a value that it cannot have, and has appended nothing then. Each `decode` fails where the bytes
//! are another packet, or none.
#![expect(clippy::missing_errors_doc, reason = "said above for all of them")]

mod connect;
mod data;
mod error;
mod frame;
mod frame_writer;
mod hello;
mod payload;
mod reader;

use reader::Value;
use std::ops::RangeInclusive;

pub use connect::{Accept, Connect};
pub use data::{DATA_HEADER_LEN, Data, RESET_LEN, Reset};
pub use error::{FrameError, PacketError};
pub use frame::{
    AckFrame, CLOSE_TEXT_MAX, EcnFrame, FRAMES_MAX, Frame, Frames, KcpPart, LossFrame, is_close_text,
};
pub use frame_writer::{FrameWriter, NoRoom};
pub use hello::{CHALLENGE_LEN, Challenge, DENY_LEN, Deny, DenyReason, HELLO_MIN, Hello};
pub use payload::{Msg1, Msg2, USER_MAX};

pub(in crate::session) use frame_writer::{PART_HEAD, REPAIR_FIRST, insert_repair};
pub(in crate::session) use reader::{Reader, Short};

/// The version of the protocol, in every packet of the handshake.
pub const VERSION: u8 = 1;
/// Most bytes of a datagram of a handshake, and of any other on a path of which nothing is known.
pub const DATAGRAM_MAX: usize = 1200;
/// Most bytes of DATA, on the widest path that is looked for.
pub const DATA_MAX: usize = 9000;
/// Bytes of a cookie.
pub const COOKIE_LEN: usize = 16;
/// Most bytes of a token in a [`Connect`].
pub const TOKEN_MAX: usize = 512;
/// Fewest bytes of a message of the handshake: a salt, the shortest payload, a checksum.
pub const MESSAGE_MIN: usize = 8 + 16 + 4;
/// Most bytes of a message of the handshake: a public key, the longest payload, a tag.
pub const MESSAGE_MAX: usize = 32 + (34 + USER_MAX) + 16;

/// A feature of the handshake: its sender counts the marks of ECN and tells them, and wants to be told.
pub const FEATURE_ECN: u32 = 1;
/// A feature of the handshake: its sender takes repairs, and tells what gets lost.
pub const FEATURE_REPAIRS: u32 = 2;

/// The first byte of a datagram.
pub mod kind {
    /// See [`Hello`](super::Hello).
    pub const HELLO: u8 = 0xa1;
    /// See [`Challenge`](super::Challenge).
    pub const CHALLENGE: u8 = 0xa2;
    /// See [`Connect`](super::Connect).
    pub const CONNECT: u8 = 0xa3;
    /// See [`Accept`](super::Accept).
    pub const ACCEPT: u8 = 0xa4;
    /// See [`Deny`](super::Deny).
    pub const DENY: u8 = 0xa5;
    /// See [`Data`](super::Data); in key phase 1 it is one more.
    pub const DATA: u8 = 0xa6;
    /// See [`Reset`](super::Reset).
    pub const RESET: u8 = 0xa8;
}

/// Whether segments of this conv begin like a datagram of a session: the conv comes first, its low byte before all.
pub(in crate::session) const fn is_reserved_conv(conv: u32) -> bool {
    matches!(conv & 0xff, 0xa0..=0xbf)
}

/// A datagram of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// A client asks for a cookie.
    Hello(Hello),
    /// The server gives one.
    Challenge(Challenge),
    /// The client brings it back, with the first message of the handshake.
    Connect(Connect<'a>),
    /// The server's message of the handshake.
    Accept(Accept<'a>),
    /// The server will not, says somebody.
    Deny(Deny),
    /// What a session carries: the header, and what is sealed.
    Data(Data, &'a [u8]),
    /// The server knows of no such session.
    Reset(Reset),
}

impl<'a> Packet<'a> {
    /// The packet that `datagram` is.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        match datagram.first().copied().unwrap_or_default() {
            kind::HELLO => Hello::decode(datagram).map(Self::Hello),
            kind::CHALLENGE => Challenge::decode(datagram).map(Self::Challenge),
            kind::CONNECT => Connect::decode(datagram).map(Self::Connect),
            kind::ACCEPT => Accept::decode(datagram).map(Self::Accept),
            kind::DENY => Deny::decode(datagram).map(Self::Deny),
            kind::DATA | 0xa7 => Data::decode(datagram).map(|(data, sealed)| Self::Data(data, sealed)),
            kind::RESET => Reset::decode(datagram).map(Self::Reset),
            found => Err(PacketError::Kind { found }),
        }
    }
}

/// Takes the kind and the version off the front of a packet of the handshake.
fn begin<'a>(kind: u8, datagram: &'a [u8]) -> Result<Reader<'a>, PacketError> {
    let mut reader = of_kind(kind, datagram)?;
    match reader.u8()? {
        VERSION => Ok(reader),
        found => Err(PacketError::Version { found }),
    }
}

fn of_kind<'a>(kind: u8, datagram: &'a [u8]) -> Result<Reader<'a>, PacketError> {
    let mut reader = Reader::new(datagram);
    let most = if kind & !1 == kind::DATA { DATA_MAX } else { DATAGRAM_MAX };
    if datagram.len() > most {
        return Err(PacketError::Length { have: datagram.len() });
    }
    match datagram.first().copied().unwrap_or_default() {
        found if found != kind => Err(PacketError::Kind { found }),
        _ => reader.u8().map(|_| reader).map_err(Into::into),
    }
}

fn append<'a>(kind: u8, packet: &impl Value<'a>, datagram: &mut Vec<u8>) {
    datagram.extend_from_slice(&[kind, VERSION]);
    packet.write(datagram);
}

fn whole<'a, T: Value<'a>>(kind: u8, datagram: &'a [u8]) -> Result<T, PacketError> {
    Ok(begin(kind, datagram)?.whole()?)
}

fn in_length(field: &'static str, bytes: &[u8], range: RangeInclusive<usize>) -> Result<(), PacketError> {
    if range.contains(&bytes.len()) { Ok(()) } else { Err(PacketError::Field { field }) }
}
