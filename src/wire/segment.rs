//! The KCP segment: 24 bytes of header, little-endian, then the data.
//!
//! ```text
//!  0               4   5   6       8              12              16              20              24
//! +---------------+---+---+-------+---------------+---------------+---------------+---------------+----
//! | conv          |cmd|frg|  wnd  | ts            | sn            | una           | len           | data
//! +---------------+---+---+-------+---------------+---------------+---------------+---------------+----
//! ```
//!
//! Source: ikcp.c `ikcp_encode_seg`, `ikcp_input`; docs/WIRE.md.

use crate::seq::{Conv, Sn};
use crate::time::Millis;

/// Bytes of a segment header. Source: ikcp.c `IKCP_OVERHEAD`.
pub const HEADER_LEN: usize = 24;

/// The type of a segment.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has four, and peers drop a datagram with any other"
)]
pub enum Command {
    /// Data: a message or a fragment of one.
    Push = 81,
    /// Acknowledges the segment `sn`, which was sent at `ts`.
    Ack = 82,
    /// Asks for the size of the receive window.
    Wask = 83,
    /// Reports the size of the receive window. All known peers skip a payload.
    Wins = 84,
}

impl Command {
    #[inline]
    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            81 => Some(Self::Push),
            82 => Some(Self::Ack),
            83 => Some(Self::Wask),
            84 => Some(Self::Wins),
            _ => None,
        }
    }
}

/// The header of a segment without `len`, which is the length of the data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the wire format does not grow")]
pub struct Header {
    /// The conversation.
    pub conv: Conv,
    /// The type of the segment.
    pub cmd: Command,
    /// Number of fragments of the message that follow this one; 0 in the last.
    pub frg: u8,
    /// Number of segments that the sender of this one has room for.
    pub wnd: u16,
    /// Time on the sender's clock, ms. An ACK echoes the `ts` of the segment that it acknowledges.
    pub ts: Millis,
    /// Number of this segment; in an ACK, of the acknowledged segment.
    pub sn: Sn,
    /// The next number that the sender of this segment expects: all earlier ones have arrived.
    pub una: Sn,
}

impl Header {
    /// Encodes the header of a segment with `len` bytes of data.
    #[inline]
    #[must_use]
    pub fn to_bytes(&self, len: u32) -> [u8; HEADER_LEN] {
        let [low, high] = self.wnd.to_le_bytes();
        let kind = u32::from_le_bytes([self.cmd as u8, self.frg, low, high]);
        // Three wide writes, since whoever copies the datagram next reads it in wide pieces.
        let pair = |first: u32, second: u32| u64::from(second) << 32 | u64::from(first);
        let words = [pair(self.conv.0, kind), pair(self.ts.0, self.sn.0), pair(self.una.0, len)];
        let mut bytes = [0; HEADER_LEN];
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        bytes
    }
}

/// A header in place in its datagram; fields are read on demand.
#[derive(Clone, Copy)]
pub(crate) struct RawHeader<'a>(&'a [u8; HEADER_LEN]);

impl<'a> RawHeader<'a> {
    #[inline]
    pub(crate) fn split(input: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = input.split_first_chunk()?;
        Some((Self(head), rest))
    }

    #[inline]
    pub(crate) fn of(bytes: &'a [u8; HEADER_LEN]) -> Self {
        Self(bytes)
    }

    #[inline]
    pub(crate) fn conv(self) -> Conv {
        Conv(self.word(0))
    }

    /// `cmd`, `frg` and `wnd` in one number.
    #[inline]
    pub(crate) fn kind(self) -> u32 {
        self.word(1)
    }

    #[inline]
    pub(crate) fn frg(self) -> u8 {
        let [_, frg, ..] = self.kind().to_le_bytes();
        frg
    }

    #[inline]
    pub(crate) fn wnd(self) -> u16 {
        let [_, _, low, high] = self.kind().to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// The type of the segment, or the byte in its place as the error.
    #[inline]
    pub(crate) fn cmd(self) -> Result<Command, u8> {
        let [cmd, ..] = self.kind().to_le_bytes();
        Command::from_byte(cmd).ok_or(cmd)
    }

    /// What the segments of a flush mostly have in common: `conv`, `cmd`, `frg` and `wnd`, and `una`.
    #[inline]
    pub(crate) fn common(self) -> (u64, Sn) {
        (u64::from(self.kind()) << 32 | u64::from(self.word(0)), self.una())
    }

    #[inline]
    pub(crate) fn ts(self) -> Millis {
        Millis(self.word(2))
    }

    #[inline]
    pub(crate) fn sn(self) -> Sn {
        Sn(self.word(3))
    }

    #[inline]
    pub(crate) fn una(self) -> Sn {
        Sn(self.word(4))
    }

    /// Length of the data as announced, bytes.
    #[inline]
    pub(crate) fn len(self) -> u32 {
        self.word(5)
    }

    #[inline]
    pub(crate) fn header(self) -> Result<Header, u8> {
        let (cmd, frg, wnd) = (self.cmd()?, self.frg(), self.wnd());
        Ok(Header { conv: self.conv(), cmd, frg, wnd, ts: self.ts(), sn: self.sn(), una: self.una() })
    }

    #[inline]
    fn word(self, index: usize) -> u32 {
        u32::from_le_bytes(self.0.as_chunks().0.get(index).copied().unwrap_or_default())
    }
}

/// A segment whose data stays in the datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the wire format does not grow")]
pub struct Segment<'a> {
    /// Everything before the data.
    pub header: Header,
    /// The data; empty in most segments other than PUSH.
    pub data: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Splits `input` into its first segment and the rest.
    ///
    /// # Errors
    ///
    /// In the order in which ikcp.c checks: a truncated header, less data than announced, an unknown command.
    #[inline]
    pub fn decode(input: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let Some((head, rest)) = RawHeader::split(input) else {
            return Err(DecodeError::HeaderTruncated { have: input.len() });
        };
        let need = head.len();
        let Some((data, rest)) = rest.split_at_checked(need as usize) else {
            return Err(DecodeError::DataTruncated { have: rest.len(), need });
        };
        let header = head.header().map_err(|found| DecodeError::Command { found })?;
        Ok((Self { header, data }, rest))
    }

    /// Appends the bytes of this segment. Data of 4 GiB or more cannot be encoded and is left out.
    pub fn encode(&self, output: &mut Vec<u8>) {
        let len = u32::try_from(self.data.len()).unwrap_or(0);
        output.extend_from_slice(&self.header.to_bytes(len));
        if len != 0 {
            output.extend_from_slice(self.data);
        }
    }
}

errors! {
    /// Why bytes are not a segment.
    DecodeError {
        /// There are fewer bytes than a header has.
        "{have} bytes, fewer than the {HEADER_LEN} of a segment header" HeaderTruncated { have: usize },
        /// The header announces more data than follows.
        "{have} bytes of data, fewer than the {need} announced" DataTruncated { have: usize, need: u32 },
        /// The command is not one of 81 to 84.
        "unknown command {found}" Command { found: u8 },
    }
}

/// The segments of a datagram.
///
/// As in ikcp.c, fewer than 24 bytes after the last segment are ignored; [`Segments::trailing`] returns them.
#[inline]
#[must_use]
pub const fn segments(datagram: &[u8]) -> Segments<'_> {
    Segments { rest: datagram }
}

/// Iterator over the segments of a datagram, made by [`segments`]. It ends after an error.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    rest: &'a [u8],
}

impl<'a> Segments<'a> {
    /// The part that is not decoded yet; at the end, the bytes that are too few for a segment.
    #[must_use]
    pub const fn trailing(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Result<Segment<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.len() < HEADER_LEN {
            return None;
        }
        match Segment::decode(self.rest) {
            Ok((segment, rest)) => {
                self.rest = rest;
                Some(Ok(segment))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

/// The conversation of the first segment in a datagram; `None` if the datagram is too short for a segment.
/// Source: ikcp.c `ikcp_getconv`.
#[inline]
#[must_use]
pub fn conv_of(datagram: &[u8]) -> Option<Conv> {
    RawHeader::split(datagram).map(|(head, _)| head.conv())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn push(data: &[u8]) -> Segment<'_> {
        let header = Header {
            conv: Conv(0x1122_3344),
            cmd: Command::Push,
            frg: 5,
            wnd: 0x0102,
            ts: Millis(0x0304_0506),
            sn: Sn(0x0708_090a),
            una: Sn(0x0b0c_0d0e),
        };
        Segment { header, data }
    }

    #[test]
    fn each_kind_of_truncation_is_a_different_error() {
        let mut bytes = Vec::new();
        push(b"data").encode(&mut bytes);
        for have in 0..HEADER_LEN {
            assert_eq!(Segment::decode(&bytes[..have]), Err(DecodeError::HeaderTruncated { have }));
        }
        for have in 0..4 {
            let error = Segment::decode(&bytes[..HEADER_LEN + have]);
            assert_eq!(error, Err(DecodeError::DataTruncated { have, need: 4 }));
        }
        bytes[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Segment::decode(&bytes), Err(DecodeError::DataTruncated { have: 4, need: u32::MAX }));
    }

    #[test]
    fn trailing_bytes_too_few_for_a_segment_are_ignored() {
        let mut bytes = Vec::new();
        push(b"one").encode(&mut bytes);
        push(b"two").encode(&mut bytes);
        bytes.extend_from_slice(&[0; HEADER_LEN - 1]);
        let mut all = segments(&bytes);
        assert_eq!(all.by_ref().map(|segment| segment.unwrap().data).collect::<Vec<_>>(), [b"one", b"two"]);
        assert_eq!(all.trailing().len(), HEADER_LEN - 1);
    }

    proptest! {
        #[test]
        fn valid_segments_re_encode_to_the_same_bytes(
            cmd in 81..=84u8,
            head in prop::array::uniform19(any::<u8>()),
            data in prop::collection::vec(any::<u8>(), 0..100),
            rest in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut bytes = head[..4].to_vec();
            bytes.push(cmd);
            bytes.extend_from_slice(&head[4..]);
            bytes.extend_from_slice(&u32::try_from(data.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(&data);
            let len = bytes.len();
            bytes.extend_from_slice(&rest);
            let (segment, left) = Segment::decode(&bytes).unwrap();
            prop_assert_eq!(left, &rest[..]);
            let mut again = Vec::new();
            segment.encode(&mut again);
            prop_assert_eq!(&again[..], &bytes[..len]);
        }
    }
}
