//! Parity over groups of datagrams: Reed-Solomon over GF(256) with the matrix of Backblaze and
//! klauspost/reedsolomon.

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

/// The code for groups of one shape, shared by all peers of a socket. Creating it inverts a matrix, which
/// takes 10 ms for 128 + 128 and 50 ms for 200 + 56. It caches the inverted matrices of the last 254 loss
/// patterns, of data x data bytes each.
pub(crate) type Code = Arc<ReedSolomon>;

/// The code for groups of that shape; `None` if there is none, which never happens with a checked config.
pub(crate) fn code(shards: Shards) -> Option<Code> {
    ReedSolomon::new(shards.data.into(), shards.parity.into()).ok().map(Arc::new)
}

/// Number of groups before the numbers start over. Source: kcp-go `fec.go`, `paws`.
#[expect(clippy::cast_possible_truncation, reason = "256 at most")]
const fn groups(shards: Shards) -> u32 {
    u32::MAX / shards.all() as u32
}
