//! The code of the repairs: a repair replaces whichever one of the segments that it covers is lost,
//! and any k repairs almost always any k of them. No sender has to know which.
//!
//! It is a random linear code over a sliding window of segments, after the idea of RFC 8681. The
//! sender makes repairs of what is not yet acknowledged with an [`Encoder`]; the receiver gives every
//! segment and every repair to a [`Decoder`], which gives back what was lost. Neither knows a clock,
//! a session or a socket.
//!
//! ```
//! use whitewater::inside::code::{Decoder, DecoderConfig, Encoder};
//! use whitewater::{Millis, Sn};
//!
//! let mut encoder = Encoder::new();
//! encoder.begin(0);
//! for (sn, data) in [(Sn(7), b"first".as_slice()), (Sn(8), b"second")] {
//!     encoder.add(sn, 0, data.len() as u16, |to| to.copy_from_slice(data));
//! }
//! let mut payload = [0; 100];
//! let len = encoder.finish(&mut payload).unwrap();
//!
//! let mut decoder = Decoder::new(&DecoderConfig::default());
//! decoder.received(Sn(8), 0, b"second"); // and 7 is lost
//! decoder.repair(Sn(7), Millis(5), &payload[..len], Sn(7), 128).unwrap();
//! let lost = decoder.recover().unwrap();
//! assert_eq!((lost.sn, lost.data), (Sn(7), b"first".as_slice()));
//! ```
//!
//! # A repair on the wire
//!
//! A repair is a KCP segment of the command WINS (84), which announces the receive window. Peers without
//! the code skip the payload of one. Of its header, `sn` is the number of the first segment covered, and
//! `ts` a value that the receiver echoes when it acknowledges what it rebuilt; the other fields have
//! their usual meaning. Its payload:
//!
//! | offset | bytes | field | meaning |
//! |---:|---:|---|---|
//! | 0 | 1 | `span` | bits 0 to 6: from the first to the last segment covered, 1 to 64; bit 7: there are holes |
//! | 1 | 1 | `index` | tells repairs of the same segments apart |
//! | 2 | 0 to 8 | `set` | where there are holes, ⌈`span` / 8⌉ bytes, little-endian: bit i says whether `sn` + i, modulo 2^32, is covered. The bits 0 and `span` - 1 are set, another is not, nor any beyond. Without holes all are covered |
//! | then | 3 or more | | the sum over the segments covered of coefficient × symbol |
//!
//! No payload that can be decoded has another encoding. The symbol of a segment:
//!
//! | offset | bytes | field | meaning |
//! |---:|---:|---|---|
//! | 0 | 2 | `len` | bytes of data, little-endian |
//! | 2 | 1 | `frg` | as in the header of the segment |
//! | 3 | `len` | | the data of the segment |
//! | 3 + `len` | the rest | | zeros, up to the length of the longest symbol covered |
//!
//! Sum and product are those of GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), byte by
//! byte; bit i of a byte is the coefficient of x^i, and the sum is XOR. The coefficient of the segment
//! `n` follows from it and the index, in unsigned 32-bit arithmetic that wraps:
//!
//! ```text
//! h = n xor (index × 0x9e3779b1)
//! h = (h xor (h >> 16)) × 0x85ebca6b
//! h = (h xor (h >> 13)) × 0xc2b2ae35
//! h =  h xor (h >> 16)
//! coefficient = 1 + ((h × 255) >> 32)        the product in 64 bits; 1 to 255
//! ```
//!
//! So the segments 0 to 7 have the coefficients 1, 81, 49, 134, 37, 204, 93, 25 with index 0, and
//! 18, 177, 126, 166, 154, 117, 241, 246 with index 1.
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
mod gf256;
mod history;
pub(crate) mod protect;
mod rebuild;
mod repair;
mod row;
pub(crate) mod share;
mod solver;
mod stats;
mod sum;

pub use decoder::{Decoder, DecoderConfig};
pub use encoder::Encoder;
pub(crate) use history::{History, Limits};
pub use rebuild::Recovered;
pub use repair::{COVER_MAX, REPAIR_HEAD, RepairError, SYMBOL_HEAD, head_len};
pub use stats::{DecoderStats, RejectedRepairs};
