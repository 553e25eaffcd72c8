//! Whose turn it is to send, where many have something to.

/// What the one at the front has sent in a row.
///
/// A round robin by bytes: each turn is the same for all, and enough for neighbours of one address to leave as one. Who has little to
/// send waits for one turn of each of the others at most, whatever they have. Source: Shreedhar and Varghese, Efficient Fair Queueing
/// Using Deficit Round Robin, 1995; without the deficit, for no datagram is more than a small part of a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    sent: usize,
}

impl Turn {
    /// A datagram of so many bytes has left; returns whether it was the last of this turn.
    pub(super) const fn spend(&mut self, bytes: usize) -> bool {
        self.sent += bytes;
        let is_over = self.sent >= QUANTUM;
        if is_over {
            self.sent = 0;
        }
        is_over
    }

    /// The one at the front has nothing more to send.
    pub(super) const fn end(&mut self) {
        self.sent = 0;
    }
}

/// Bytes of a turn: 14 datagrams of 1200 bytes.
pub(super) const QUANTUM: usize = 16 << 10;
