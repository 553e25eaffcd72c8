//! Stateless parsing and encoding: the KCP segment, and the output for datagrams.

mod output;
pub(crate) mod reader;
mod segment;

pub(crate) use output::{Before, InPacket};
pub use output::{DatagramQueue, Output};
pub use segment::{Command, DecodeError, HEADER_LEN, Header, Segment, Segments, conv_of, segments};
pub(crate) use segment::{RawHeader, move_ts};
