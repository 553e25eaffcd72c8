//! Parsing and encoding: the KCP segment, its compact form inside of a session, and the output for datagrams.

pub(crate) mod compact;
mod output;
pub(crate) mod reader;
mod segment;

pub(crate) use output::{Before, InPacket};
pub use output::{DatagramQueue, Output};
pub(crate) use segment::RawHeader;
pub use segment::{Command, DecodeError, HEADER_LEN, Header, Segment, Segments, conv_of, segments};
