//! What the transports of a client have carried.

use crate::target::Transport;

/// What the transports of a client have carried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct TransportStats {
    /// The one that is ready, if there is one.
    pub transport: Option<Transport>,
    /// Datagrams given to the browser.
    pub sent: u64,
    /// Datagrams that have arrived.
    pub received: u64,
    /// Datagrams dropped because the path carries only shorter ones.
    pub too_long: u64,
    /// Datagrams dropped because the browser had had 64 KiB to send for 0.1 s. The session sends again what must arrive.
    pub queue_full: u64,
    /// How often a lost transport was replaced.
    pub reconnects: u64,
}

impl TransportStats {
    /// Adds what was sent and dropped.
    pub(super) const fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.too_long += other.too_long;
        self.queue_full += other.queue_full;
    }
}
