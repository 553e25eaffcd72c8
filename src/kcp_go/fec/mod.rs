//! Parity over groups of datagrams: Reed-Solomon over GF(256), whose matrix is that of Backblaze and of klauspost/reedsolomon.

mod decoder;
mod encoder;
mod group;
#[cfg(test)]
mod tests;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;

use super::config::Shards;
use reed_solomon_erasure::galois_8::ReedSolomon;

/// The code for groups of that shape; `None`: there is none, which a checked config never has.
fn code(shards: Shards) -> Option<ReedSolomon> {
    ReedSolomon::new(shards.data.into(), shards.parity.into()).ok()
}

/// Groups that there are before their numbers begin again. Source: kcp-go `fec.go`, `paws`.
#[expect(clippy::cast_possible_truncation, reason = "256 at most")]
const fn groups(shards: Shards) -> u32 {
    u32::MAX / shards.all() as u32
}
