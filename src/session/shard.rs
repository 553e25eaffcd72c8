//! Which of several servers on one port a datagram is for.

use super::wire::Data;

/// The shard that owns the session of a datagram from its client: [`ServerConfig::shard`](super::ServerConfig::shard), which the top 6 bits of
/// the session's id have. `None`: it is of no session, and whoever got it answers it.
///
/// It is read and not verified: whoever sends it can write any.
///
/// ```
/// use whitewater::session::shard_of;
///
/// let mut datagram = [0; 40];
/// datagram[..5].copy_from_slice(&[0xa6, 7, 0, 0, 3 << 2]); // DATA of session 7 of shard 3
/// assert_eq!(shard_of(&datagram), Some(3));
/// assert_eq!(shard_of(b"hello"), None);
/// ```
#[must_use]
pub fn shard_of(datagram: &[u8]) -> Option<u8> {
    let (data, _) = Data::decode(datagram).ok()?;
    Some(of_id(data.sid))
}

pub(super) const fn of_id(id: u32) -> u8 {
    (id >> (u32::BITS - BITS)) as u8 // the top bits fit
}

/// Bits of a session's id that say its shard.
const BITS: u32 = 6;
/// Most shards on one port: as many as the 6 bits of a session's id tell apart.
pub const SHARDS_MAX: usize = 1 << BITS;
