//! The erasure code behind repairs. A repair replaces any one lost segment that it covers, and any k repairs
//! almost always replace any k of them. The sender need not know which ones were lost.
//!
//! It is a random linear code over a sliding window of segments, after the idea of RFC 8681. The sender makes
//! repairs of unacknowledged segments with an [`Encoder`]. The receiver passes every segment and every repair
//! to a [`Decoder`], which returns the lost segments. Neither has a clock, a session or a socket.
//!
//! docs/WIRE.md documents a repair byte by byte.
//!
//! # Cost
//!
//! | | at most |
//! |---|---|
//! | memory of an [`Encoder`] | 9 times the longest segment |
//! | memory of a [`Decoder`] | [`DecoderConfig::bytes`] and 48 KiB; 16 bytes for each of [`DecoderConfig::segments`]; 96 + 9 times the longest repair; 40 KiB of equations |
//! | work per segment | one copy; if it was missing and repairs cover it, 96 additions of rows of 192 bytes |
//! | work per repair | none if nothing is missing; otherwise 64 look-ups, one copy, 192 additions of rows |
//! | work per rebuilt segment | adding up at most 96 repairs and those of 1024 segments that are remembered; 96 additions of rows |
//! | work of all this together | what the datagrams so far have paid for: 48,000 instructions for each of 1400 bytes, of which 4 million can be saved up |
//!
//! # What a hostile peer can do
//!
//! Invalid or useless repairs are refused with a [`RepairError`] and change nothing. Any other repair yields
//! at most one segment, now or later. The worst that a forged repair can do is to
//!
//! - make [`Decoder::recover`] return segments with arbitrary content, of at most `mss` bytes each, in place of
//!   segments missing from the receive window. So only give the decoder repairs that you trust as much as
//!   segments: ones that the session has authenticated.
//! - make the decoder drop the repairs that it keeps, or refuse further ones until missing segments arrive. Those
//!   segments then arrive as they would without the code: by retransmission.

pub(crate) mod budget;
mod decoder;
mod effort;
mod encoder;
pub mod field;
mod history;
mod repair;
mod solver;
mod sum;
mod trial;

pub use decoder::{Decoder, DecoderConfig, DecoderStats, Recovered, RejectedRepairs};
pub use encoder::Encoder;
pub(crate) use encoder::{Draft, Protector, Source};
pub(crate) use history::History;
pub use repair::{COVER_MAX, REPAIR_HEAD, RepairError, SYMBOL_HEAD, head_len};
pub(crate) use trial::Trial;
