//! The meaning of bits, as a number.

/// A hash of a kind of value and its parts, for [`Message::SHAPE`](super::Message::SHAPE): FNV-1a, 64 bits.
///
/// `kind` names the kind, with all of its bounds that are not in `parts`. The parts are numbers that change the
/// encoding, such as a maximum, and the shapes of the fields.
///
/// ```
/// use whitewater::message::shape;
/// use whitewater::Message;
///
/// assert_ne!(shape("pair", &[u8::SHAPE, u16::SHAPE]), shape("pair", &[u16::SHAPE, u8::SHAPE]));
/// assert_ne!(shape("list", &[100, u8::SHAPE]), shape("list", &[200, u8::SHAPE]));
/// ```
#[must_use]
pub const fn shape(kind: &str, parts: &[u64]) -> u64 {
    let mut hash = bytes(OFFSET_BASIS, kind.as_bytes());
    // Not part of any text, so that text and parts cannot be confused.
    hash = bytes(hash, &[0xff]);
    let mut rest = parts;
    while let Some((part, others)) = rest.split_first() {
        hash = bytes(hash, &part.to_le_bytes());
        rest = others;
    }
    hash
}

/// The shape of integers from `min` to `max`.
pub(super) const fn int(min: i128, max: i128) -> u64 {
    let hash = bytes(shape("int", &[]), &min.to_le_bytes());
    bytes(hash, &max.to_le_bytes())
}

const fn bytes(mut hash: u64, mut bytes: &[u8]) -> u64 {
    while let Some((byte, rest)) = bytes.split_first() {
        hash = (hash ^ *byte as u64).wrapping_mul(PRIME);
        bytes = rest;
    }
    hash
}

/// Source: draft-eastlake-fnv, 64 bits.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
