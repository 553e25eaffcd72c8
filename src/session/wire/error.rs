//! Why bytes are none of ours.

use super::reader::Short;
use thiserror::Error;

/// Why a datagram, or a payload of the handshake, is none; and why one cannot be written.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PacketError {
    /// Its first byte is of no packet, or of another than was asked for.
    #[error("{found:#04x} is not the kind")]
    Kind { found: u8 },
    /// It is of another version of the protocol.
    #[error("version {found} is not ours")]
    Version { found: u8 },
    /// It is shorter or longer than it says, or than its kind can be.
    #[error("{have} bytes are not its length")]
    Length { have: usize },
    /// What has to be zero is not.
    #[error("a reserved bit is set")]
    Reserved,
    /// A field has a value that it cannot have.
    #[error("{field} has a value that it cannot have")]
    Field { field: &'static str },
}

/// Why a body is not a sequence of frames. Nothing of it counts.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FrameError {
    /// There is no such frame, or it may not extend to the end.
    #[error("{found:#04x} is no frame")]
    Kind { found: u8 },
    /// The body ends within a frame.
    #[error("a frame is cut off")]
    Truncated,
    /// The last frame has a length although it extends to the end.
    #[error("the last frame is not the shortest that says this")]
    NotShortest,
    /// The padding is not all zeros.
    #[error("the padding is not zero")]
    Padding,
    /// The text of a CLOSE is too long, no UTF-8, or has control characters.
    #[error("the text of a close is none")]
    Text,
    /// A KCP_PART is none: it has no bytes, comes after the last, or is a whole frame.
    #[error("a part of a frame is none")]
    Part,
    /// A REPAIR is not the first frame.
    #[error("a repair behind another frame")]
    Repair,
    /// There are more than [`FRAMES_MAX`](super::FRAMES_MAX).
    #[error("more frames than a body may have")]
    TooMany,
}

impl From<Short> for PacketError {
    fn from(Short { have }: Short) -> Self {
        Self::Length { have }
    }
}

impl From<Short> for FrameError {
    fn from(_: Short) -> Self {
        Self::Truncated
    }
}
