//! The datagrams of a session.

use super::deny::DenyReason;
use super::{
    CHALLENGE_LEN, COOKIE_LEN, DATA_HEADER_LEN, DATA_MAX, DATAGRAM_MAX, HELLO_MIN, KEM_KEY_LEN,
    KEM_SEALED_LEN, MESSAGE_MAX, MESSAGE_MIN, TOKEN_MAX, VERSION, kind,
};
use crate::session::suite::HYBRID;
use crate::wire::reader::{Reader, Short, Value, values};
use std::ops::RangeInclusive;

/// A datagram of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Packet<'a> {
    Hello(Hello),
    Challenge(Challenge),
    Connect(Connect<'a>),
    Accept(Accept<'a>),
    Deny(Deny),
    /// The header and the sealed part.
    Data(Data, &'a [u8]),
    Reset(Reset),
    KemKey(KemKey<'a>),
    KemCiphertext(KemCiphertext<'a>),
}

/// A client asks for a cookie. It is padded so that the answer is smaller: nobody can use a server to amplify traffic
/// towards somebody else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hello {
    /// Number of the requested suite; see [`Suite::from_code`](crate::session::Suite::from_code).
    pub suite: u16,
    /// The game and its version of its protocol.
    pub protocol_id: u64,
    /// The connection attempt: chosen at random by the client.
    pub cid: u64,
    /// Any number. It is returned, so that the client can measure the round trip.
    pub client_stamp: u32,
    /// Length of the whole datagram in bytes, [`HELLO_MIN`] to [`DATAGRAM_MAX`].
    pub size: u16,
}

values! {
    /// The answer to a [`Hello`], or to a [`Connect`] whose sender has to prove its address first.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    Challenge {
        suite: u16,
        cid: u64,
        client_stamp: u32,
        /// When the cookie was made, in periods of the server's clock.
        epoch: u32,
        /// The cookie that the client must return.
        cookie: [u8; COOKIE_LEN],
    }

    /// The client returns the cookie, or a ticket, and begins the handshake; or it does so without either.
    #[derive(Clone, Copy, Eq, PartialEq)]
    Connect<'a> {
        suite: u16,
        protocol_id: u64,
        cid: u64,
        epoch: u32,
        cookie: [u8; COOKIE_LEN],
        /// The number that the server must write into packets to this client.
        client_sid: u32,
        /// A sealed connect token, or nothing; at most [`TOKEN_MAX`] bytes.
        token: &'a [u8],
        /// The first message of the handshake, [`MESSAGE_MIN`] to [`MESSAGE_MAX`] bytes.
        msg1: &'a [u8],
    }

    /// The server completes the handshake.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    Accept<'a> {
        suite: u16,
        cid: u64,
        /// The second message of the handshake, [`MESSAGE_MIN`] to [`MESSAGE_MAX`] bytes.
        msg2: &'a [u8],
    }

    /// The server does not know the session. Proved by a token that only both ends know.
    #[derive(Clone, Copy, Eq, PartialEq)]
    Reset {
        /// The session, by the number that the client wrote into its DATA.
        sid: u32,
        /// The token from [`Msg2`](super::Msg2).
        token: [u8; 16],
    }
}

printed_without_secrets! { Connect<'_> { suite, cid, client_sid }, Reset { sid } }

/// The server refuses, or somebody claims so: it is not authenticated. Only a hint; a valid answer may still arrive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deny {
    /// Lowest version of the protocol that the server speaks, 1 to 15.
    pub lowest: u8,
    /// Highest version, from the lowest to 15.
    pub highest: u8,
    pub reason: DenyReason,
    pub cid: u64,
    /// When to try again at the earliest, ms.
    pub retry_after_ms: u32,
}

/// The server of a hybrid suite adds this to its [`Accept`], which has the hash of the key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KemKey<'a> {
    pub cid: u64,
    /// Its encapsulation key of ML-KEM-768, for this session.
    pub key: &'a [u8; KEM_KEY_LEN],
}

/// The client of a hybrid suite completes the keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KemCiphertext<'a> {
    /// The session, by the number in [`Msg2`](super::Msg2).
    pub sid: u32,
    /// The ciphertext under the key to the server from the two messages, and a tag over it and what precedes it.
    pub sealed: &'a [u8; KEM_SEALED_LEN],
}

/// The part of a DATA packet that is sent in the clear.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Data {
    /// The key phase: whether the key was updated an odd number of times.
    pub phase: bool,
    /// The session, by the number that the receiver chose.
    pub sid: u32,
    /// The low half of the packet number.
    pub pn: u32,
}

errors! {
    /// Why a datagram or a handshake payload is invalid, or cannot be written.
    PacketError {
        /// Its first byte is that of another packet, or of none.
        "{found:#04x} is the wrong kind" Kind { found: u8 },
        "version {found} is not ours" Version { found: u8 },
        /// Its length differs from what it says, or from what its kind allows.
        "{have} bytes is the wrong length" Length { have: usize },
        "a reserved bit is set" Reserved,
        "{field} has an invalid value" Field { field: &'static str },
    }
}

impl From<Short> for PacketError {
    fn from(Short { have }: Short) -> Self {
        Self::Length { have }
    }
}

impl<'a> Packet<'a> {
    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        match datagram.first().copied().unwrap_or_default() {
            kind::HELLO => Hello::decode(datagram).map(Self::Hello),
            kind::CHALLENGE => Challenge::decode(datagram).map(Self::Challenge),
            kind::CONNECT => Connect::decode(datagram).map(Self::Connect),
            kind::ACCEPT => Accept::decode(datagram).map(Self::Accept),
            kind::DENY => Deny::decode(datagram).map(Self::Deny),
            kind::DATA | 0xa7 => Data::decode(datagram).map(|(data, sealed)| Self::Data(data, sealed)),
            kind::RESET => Reset::decode(datagram).map(Self::Reset),
            kind::KEM_KEY => KemKey::decode(datagram).map(Self::KemKey),
            kind::KEM_CIPHERTEXT => KemCiphertext::decode(datagram).map(Self::KemCiphertext),
            found => Err(PacketError::Kind { found }),
        }
    }
}

impl Packet<'_> {
    /// The connection attempt of a HELLO or CONNECT of any version. It is in the same place in all versions, so that a
    /// server can tell the client that it does not speak its version. `None`: it is neither, or too short to be answered.
    #[must_use]
    pub fn cid_of_any_version(datagram: &[u8]) -> Option<u64> {
        let kind = *datagram.first().filter(|kind| matches!(**kind, kind::HELLO | kind::CONNECT))?;
        let mut reader = of_kind(kind, datagram).ok().filter(|_| datagram.len() >= HELLO_MIN)?;
        reader.bytes(11_usize).ok()?;
        reader.u64().ok()
    }

    /// The session of a datagram to a server.
    pub(in crate::session) const fn sid(&self) -> Option<u32> {
        match self {
            Self::Data(Data { sid, .. }, _) | Self::KemCiphertext(KemCiphertext { sid, .. }) => Some(*sid),
            _ => None,
        }
    }
}

impl Hello {
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
}

/// Packets that consist of a value after the kind and, in the handshake, the version. Fails in both directions if a
/// field is too long or too short.
macro_rules! packets {
    ($($name:ident $(<$life:lifetime>)? = $kind:ident $($version:ident)? $([$($field:ident $range:expr),*])?;)*) => {$(
        impl<'a> $name $(<$life>)? {
            pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
                $($(in_length(stringify!($field), self.$field, $range)?;)*)?
                datagram.extend_from_slice(&[kind::$kind $(, $version)?]);
                self.write(datagram);
                Ok(())
            }

            pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
                let packet: Self = begin(kind::$kind, datagram)?.whole()?;
                $($(in_length(stringify!($field), packet.$field, $range)?;)*)?
                Ok(packet)
            }
        }
    )*};
}

packets! {
    Challenge = CHALLENGE VERSION;
    Accept<'a> = ACCEPT VERSION [msg2 MESSAGE_MIN..=MESSAGE_MAX];
    Reset = RESET;
}

impl<'a> Connect<'a> {
    /// It is padded with a hybrid suite, whose answer has a [`KemKey`], with a ticket, which proves less than a cookie,
    /// and without a proof: no answer is longer then.
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        self.check()?;
        let start = datagram.len();
        datagram.extend_from_slice(&[kind::CONNECT, VERSION]);
        self.write(datagram);
        datagram.resize(datagram.len().max(start + self.least()), 0);
        Ok(())
    }

    /// How many bytes it has at least.
    const fn least(&self) -> usize {
        match self.epoch {
            _ if is_hybrid(self.suite) => DATAGRAM_MAX,
            NO_PROOF => DATAGRAM_MAX,
            epoch if is_ticket(epoch) => HELLO_MIN,
            _ => 0,
        }
    }

    /// Whether it has a cookie or a ticket, good or not.
    #[must_use]
    pub const fn has_proof(&self) -> bool {
        self.epoch != NO_PROOF
    }

    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = begin(kind::CONNECT, datagram)?;
        let packet = Self::read(&mut reader)?;
        let (have, padding) = (datagram.len(), reader.take_rest());
        if have != (have - padding.len()).max(packet.least()) {
            return Err(PacketError::Length { have });
        }
        if padding.iter().any(|byte| *byte != 0) {
            return Err(PacketError::Reserved);
        }
        packet.check()?;
        Ok(packet)
    }

    fn check(&self) -> Result<(), PacketError> {
        if !self.has_proof() && self.cookie != [0; COOKIE_LEN] {
            return Err(PacketError::Field { field: "cookie" });
        }
        in_length("token", self.token, 0..=TOKEN_MAX)?;
        in_length("msg1", self.msg1, MESSAGE_MIN..=MESSAGE_MAX)
    }
}

/// Whether a CONNECT with this epoch has a ticket in place of a cookie.
#[must_use]
pub const fn is_ticket(epoch: u32) -> bool {
    epoch & TICKET != 0 && epoch != NO_PROOF
}

/// The bit that tells the epoch of a ticket.
pub const TICKET: u32 = 1 << 31;
/// The epoch of a CONNECT that is the first datagram: it has neither. No clock reaches it.
pub const NO_PROOF: u32 = u32::MAX;

impl Deny {
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { lowest, highest, reason, cid, retry_after_ms } = *self;
        if !(1..=highest).contains(&lowest) || highest > 0xf {
            return Err(PacketError::Field { field: "versions" });
        }
        let number =
            (1..).zip(DenyReason::ALL).find_map(|(number, known)| (known == reason).then_some(number));
        let number: u16 = number.ok_or(PacketError::Field { field: "reason" })?;
        datagram.extend_from_slice(&[kind::DENY, lowest << 4 | highest]);
        number.write(datagram);
        cid.write(datagram);
        retry_after_ms.write(datagram);
        Ok(())
    }

    /// Accepts any version of the server.
    pub fn decode(datagram: &[u8]) -> Result<Self, PacketError> {
        let mut reader = of_kind(kind::DENY, datagram)?;
        let (versions, reason) = (reader.u8()?, reader.u16()?);
        let (cid, retry_after_ms) = (reader.u64()?, reader.u32()?);
        reader.finish()?;
        let (lowest, highest) = (versions >> 4, versions & 0xf);
        if !(1..=highest).contains(&lowest) {
            return Err(PacketError::Field { field: "versions" });
        }
        let reason = (1..).zip(DenyReason::ALL).find(|(number, _)| *number == reason);
        let (_, reason) = reason.ok_or(PacketError::Field { field: "reason" })?;
        Ok(Self { lowest, highest, reason, cid, retry_after_ms })
    }
}

impl<'a> KemKey<'a> {
    pub fn encode(&self, datagram: &mut Vec<u8>) {
        datagram.extend_from_slice(&[kind::KEM_KEY, VERSION]);
        self.cid.write(datagram);
        datagram.extend_from_slice(self.key);
    }

    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = begin(kind::KEM_KEY, datagram)?;
        let cid = reader.u64()?;
        let key = reader.take_rest().try_into().map_err(|_| PacketError::Length { have: datagram.len() })?;
        Ok(Self { cid, key })
    }
}

impl<'a> KemCiphertext<'a> {
    pub fn encode(&self, datagram: &mut Vec<u8>) {
        datagram.push(kind::KEM_CIPHERTEXT);
        self.sid.write(datagram);
        datagram.extend_from_slice(self.sealed);
    }

    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = begin(kind::KEM_CIPHERTEXT, datagram)?;
        let sid = reader.u32()?;
        let sealed =
            reader.take_rest().try_into().map_err(|_| PacketError::Length { have: datagram.len() })?;
        Ok(Self { sid, sealed })
    }
}

impl Data {
    /// Returns the header and what follows it.
    pub fn decode(datagram: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let phase = datagram.first() == Some(&(kind::DATA | PHASE));
        of_kind(kind::DATA | if phase { PHASE } else { 0 }, datagram)?;
        let (head, sealed) = datagram
            .split_first_chunk()
            .filter(|(_, sealed)| sealed.len() >= SEALED_MIN)
            .ok_or(PacketError::Length { have: datagram.len() })?;
        Ok((Self::read(head), sealed))
    }

    /// Reads the bytes of a header, whose kind is known.
    #[must_use]
    pub const fn read(&[kind, s0, s1, s2, s3, p0, p1, p2, p3]: &[u8; DATA_HEADER_LEN]) -> Self {
        let (sid, pn) = (u32::from_le_bytes([s0, s1, s2, s3]), u32::from_le_bytes([p0, p1, p2, p3]));
        Self { phase: kind & PHASE != 0, sid, pn }
    }

    /// Returns the bytes of the header.
    #[must_use]
    pub const fn encode(&self) -> [u8; DATA_HEADER_LEN] {
        let Self { phase, sid, pn } = *self;
        let [s0, s1, s2, s3] = sid.to_le_bytes();
        let [p0, p1, p2, p3] = pn.to_le_bytes();
        [kind::DATA | if phase { PHASE } else { 0 }, s0, s1, s2, s3, p0, p1, p2, p3]
    }
}

/// Takes the kind off the front of a packet and, in the handshake, the version.
fn begin<'a>(kind: u8, datagram: &'a [u8]) -> Result<Reader<'a>, PacketError> {
    let mut reader = of_kind(kind, datagram)?;
    match kind {
        kind::RESET | kind::KEM_CIPHERTEXT => Ok(reader),
        _ => match reader.u8()? {
            VERSION => Ok(reader),
            found => Err(PacketError::Version { found }),
        },
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

/// Whether the number of a suite is that of a hybrid one, known or not.
const fn is_hybrid(suite: u16) -> bool {
    suite & HYBRID != 0
}

pub(super) fn in_length(
    field: &'static str,
    bytes: &[u8],
    range: RangeInclusive<usize>,
) -> Result<(), PacketError> {
    if range.contains(&bytes.len()) { Ok(()) } else { Err(PacketError::Field { field }) }
}

const _: () = assert!(CHALLENGE_LEN == 2 + <Challenge as Value<'_>>::LEN);
/// This bit marks key phase 1; it is clear in 0xa6.
const PHASE: u8 = 1;
/// Fewest bytes after the header: the checksum of an empty body.
const SEALED_MIN: usize = 4;
