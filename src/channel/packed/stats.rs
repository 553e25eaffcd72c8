//! What a channel counts.

/// What a channel has counted since it was created.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChannelStats {
    /// Messages and notices of expired messages sent for the first time.
    pub sent: u64,
    /// Sent again.
    pub resends: u64,
    /// Messages given up because they were too old.
    pub expired: u64,
    /// Messages delivered.
    pub received: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Messages that the peer gave up and that had not arrived.
    pub skipped: u64,
    /// Sequenced: messages older than one delivered before.
    pub old: u64,
    /// Unreliable: messages dropped because `receive_buffer` messages were unread.
    pub overflowed: u64,
}
