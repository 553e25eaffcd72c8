//! The code of the repairs: a repair replaces whichever one of the segments that it covers is lost,
//! and any k repairs almost always any k of them. No sender has to know which.
//!
//! It is a random linear code over a sliding window of segments, after the idea of RFC 8681. The
//! sender makes repairs of what is not yet acknowledged with an [`Encoder`]; the receiver gives every
//! segment and every repair to a [`Decoder`], which gives back what was lost. Neither knows a clock,
//! a session or a socket.
//!
//! docs/WIRE.md has a repair byte by byte.
//!
//! # What it costs
//!
//! | | at most |
//! |---|---|
//! | memory of an [`Encoder`] | 9 times the longest segment |
//! | memory of a [`Decoder`] | [`DecoderConfig::bytes`] and 48 KiB; 16 bytes for each of [`DecoderConfig::segments`]; 96 + 9 times the longest repair; 40 KiB of equations |
//! | work for a segment | one copy; if repairs cover it and it was missing, 192 additions of rows of 192 bytes |
//! | work for a repair | where nothing is missing none; otherwise 64 look-ups, one copy, 288 additions of rows |
//! | work for a segment rebuilt | adding up at most 96 repairs and the remembered ones of 1024 segments; 192 additions of rows |
//!
//! # What a hostile peer can do
//!
//! What is no repair, or of no use, is refused with a [`RepairError`] and changes nothing. Every other
//! repair gives at most one segment, at once or later. A lie can at worst
//!
//! - make [`Decoder::recover`] give segments of any content, of at most `mss` bytes each, where some are
//!   missing in the receive window. So a decoder must see only repairs that are trusted as much as
//!   segments are: inside of what a session has authenticated.
//! - make the decoder drop the repairs that it keeps, or refuse further ones until missing segments
//!   arrive. Then these come as they do without the code: by being sent again.

pub(crate) mod budget;
mod decoder;
mod encoder;
mod history;
mod repair;
mod solver;
mod sum;

pub use decoder::{Decoder, DecoderConfig, DecoderStats, Recovered, RejectedRepairs};
pub use encoder::Encoder;
pub(crate) use encoder::{Draft, Protector, Source};
pub(crate) use history::History;
pub use repair::{COVER_MAX, REPAIR_HEAD, RepairError, SYMBOL_HEAD, head_len};
