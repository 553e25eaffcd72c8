//! Parity over groups of datagrams: Reed-Solomon over GF(256) with the matrix of Backblaze and
//! klauspost/reedsolomon.

mod code;
mod decoder;
mod encoder;
mod group;
#[cfg(test)]
mod tests;

pub(crate) use code::Code;
pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;

use super::config::Shards;

/// Number of groups before the numbers start over. Source: kcp-go `fec.go`, `paws`.
#[expect(clippy::cast_possible_truncation, reason = "256 at most")]
const fn groups(shards: Shards) -> u32 {
    u32::MAX / shards.all() as u32
}
