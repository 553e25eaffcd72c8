//! The datagrams of a session and the frames in them: encoding and decoding, without state.
//!
//! Numbers are little-endian, reserved bits are zero and checked, lengths are bounded, and every value has exactly one
//! encoding: whatever decodes is encoded to the same bytes. `docs/WIRE.md` describes each byte.
//!
//! Each `encode` appends; if a field has an invalid value, it fails and appends nothing. Each `decode` fails if the
//! bytes are another packet, or none.
#![expect(
    missing_docs,
    clippy::exhaustive_structs,
    clippy::missing_errors_doc,
    reason = "said above for all of them; fields are described where they come first, and their order is the version's"
)]

mod deny;
mod frame;
mod frame_writer;
mod packet;
mod payload;
mod proxied;
pub mod relayed;

pub use super::shape::SHAPE_MAX;
pub use deny::DenyReason;
pub use frame::{
    AckFrame, CLOSE_TEXT_MAX, EcnFrame, FRAMES_MAX, Frame, FrameError, Frames, KcpPart, LossFrame, NewId,
    RekeyFrame, is_close_text,
};
pub use frame_writer::{FrameWriter, NoRoom};
pub use packet::{
    Accept, Challenge, Connect, Data, Deny, Hello, KemCiphertext, KemKey, NO_PROOF, Packet, PacketError,
    Reset, TICKET, is_ticket,
};
pub use payload::{Msg1, Msg2, TICKET_LEN};
pub use proxied::ProxyHeader;

pub(in crate::session) use crate::wire::reader::{Reader, Short};
pub(in crate::session) use frame_writer::{PART_HEAD, REPAIR_FIRST, insert_repair};

/// The version of the protocol, in every packet of the handshake.
pub const VERSION: u8 = 1;
/// Most bytes of a handshake datagram, and of any other datagram on an unknown path.
pub const DATAGRAM_MAX: usize = 1200;
/// Most bytes of a routing token, which follows each datagram of a client: with it, [`DATAGRAM_MAX`] bytes still fit into the 1280 of IPv6.
pub const ROUTING_TOKEN_MAX: usize = 20;
/// Most bytes of DATA, on the widest path that is probed for.
pub const DATA_MAX: usize = 9000;
/// Bytes of a cookie.
pub const COOKIE_LEN: usize = 16;
/// Most bytes of a token in a [`Connect`].
pub const TOKEN_MAX: usize = 512;
/// Fewest bytes of a message of the handshake: a salt, the shortest payload, a checksum.
pub const MESSAGE_MIN: usize = 8 + 16 + 4;
/// Most bytes of a message of the handshake: a public key, the longest payload, a tag.
pub const MESSAGE_MAX: usize = 32 + (16 + USER_MAX + SHAPE_MAX) + 16;
/// Fewest bytes of a HELLO that is answered.
pub const HELLO_MIN: usize = 512;
/// Bytes of a CHALLENGE: 0.07 of the shortest HELLO.
pub const CHALLENGE_LEN: usize = 36;
/// Bytes of a DENY.
pub const DENY_LEN: usize = 16;
/// Bytes of DATA before what is sealed.
pub const DATA_HEADER_LEN: usize = 9;
/// Bytes of a RESET.
pub const RESET_LEN: usize = 21;
/// Bytes of an encapsulation key of ML-KEM-768.
pub const KEM_KEY_LEN: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768, and of the tag after it.
pub const KEM_SEALED_LEN: usize = 1088 + 16;
/// Most bytes that the application may add to a message of the handshake.
pub const USER_MAX: usize = 256;

/// A feature bit of the handshake: the sender counts and reports ECN marks, and wants reports.
pub const FEATURE_ECN: u32 = 1;
/// A feature bit of the handshake: the sender accepts repairs, and reports losses.
pub const FEATURE_REPAIRS: u32 = 2;
/// A feature bit of the handshake: the sender masks the headers of packets.
pub const FEATURE_MASKS: u32 = 4;

/// The first byte of a datagram.
pub mod kind {
    pub const HELLO: u8 = 0xa1;
    pub const CHALLENGE: u8 = 0xa2;
    pub const CONNECT: u8 = 0xa3;
    pub const ACCEPT: u8 = 0xa4;
    pub const DENY: u8 = 0xa5;
    /// In key phase 1, this plus one.
    pub const DATA: u8 = 0xa6;
    pub const RESET: u8 = 0xa8;
    pub const KEM_KEY: u8 = 0xa9;
    pub const KEM_CIPHERTEXT: u8 = 0xaa;
}

/// Whether segments of this conv would start like a session's datagram: the conv comes first, low byte first.
pub(in crate::session) const fn is_reserved_conv(conv: u32) -> bool {
    matches!(conv & 0xff, 0xa0..=0xbf)
}
