//! What channels count.

use super::ReadError;

/// What a channel has done since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChannelStats {
    /// Messages, slices and notices of expired messages sent for the first time.
    pub sent: u64,
    /// Sent again.
    pub resends: u64,
    /// Messages given up because they were too old.
    pub expired: u64,
    /// Messages delivered.
    pub received: u64,
    /// Blocks delivered.
    pub blocks_received: u64,
    /// Messages and slices that had come before.
    pub duplicates: u64,
    /// Messages that the peer gave up and that had not come.
    pub skipped: u64,
    /// Sequenced: messages older than one delivered before.
    pub old: u64,
    /// Unreliable: messages dropped because as many as `receive_buffer` were not read. Blocks too long to be honest.
    pub overflowed: u64,
}

/// Payloads that were refused, by the [`ReadError`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RejectedPayloads {
    /// [`ReadError::Bits`].
    pub bits: u64,
    /// [`ReadError::Empty`].
    pub empty: u64,
    /// [`ReadError::NoRoom`].
    pub no_room: u64,
}

impl RejectedPayloads {
    pub(super) const fn count(&mut self, error: ReadError) {
        *match error {
            ReadError::Bits(_) => &mut self.bits,
            ReadError::Empty => &mut self.empty,
            ReadError::NoRoom { .. } => &mut self.no_room,
        } += 1;
    }
}
