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
use std::sync::Arc;

/// The code for groups of one shape. All peers of a socket share it: to make it takes a matrix to be inverted, 10 ms for 128 + 128 and 50 ms
/// for 200 + 56, and it keeps the inverted matrices of the last 254 patterns of loss, of data x data bytes each.
pub(crate) type Code = Arc<ReedSolomon>;

/// The code for groups of that shape; `None`: there is none, which a checked config never has.
pub(crate) fn code(shards: Shards) -> Option<Code> {
    ReedSolomon::new(shards.data.into(), shards.parity.into()).ok().map(Arc::new)
}

/// Groups that there are before their numbers begin again. Source: kcp-go `fec.go`, `paws`.
#[expect(clippy::cast_possible_truncation, reason = "256 at most")]
const fn groups(shards: Shards) -> u32 {
    u32::MAX / shards.all() as u32
}
