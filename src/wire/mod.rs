//! Bytes and values: the KCP segment, and where datagrams go. No state.

mod output;
pub(crate) mod reader;
mod segment;

pub(crate) use output::{Before, InPacket};
pub use output::{DatagramQueue, Output};
pub use segment::{Command, DecodeError, HEADER_LEN, Header, Segment, Segments, conv_of, segments};
pub(crate) use segment::{RawHeader, move_ts};
