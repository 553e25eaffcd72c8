//! What is sent, and what has to come back.

use std::time::Duration;

/// Messages of one byte to many segments, as interop/peer.py makes them.
#[must_use]
pub fn messages(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| content(number, length(number))).collect()
}

/// Bytes of which no two places look alike, of which no two numbers have the same.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "modulo 256")]
pub fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7 + at / 251) as u8).collect()
}

fn length(number: usize) -> usize {
    if number % 100 == 50 { 60_000 } else { 1 + number * 397 % 4000 }
}

/// Bytes of all of them.
#[must_use]
pub fn total(messages: &[Vec<u8>]) -> usize {
    messages.iter().map(Vec::len).sum()
}

/// Whether `back` is what was sent: message by message, or as a stream the same bytes.
#[must_use]
pub fn is_intact(sent: &[Vec<u8>], back: &[Vec<u8>], stream: bool) -> bool {
    if stream { sent.concat() == back.concat() } else { sent == back }
}

/// Equal messages at a steady rate.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of a message.
    pub size: usize,
    /// Messages.
    pub count: u32,
    /// Messages a second; 0: as fast as the sender takes them.
    pub hz: u32,
}

impl Load {
    /// Bytes of all of them.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.size * self.count as usize
    }

    /// When this message is due, from the first on.
    #[must_use]
    pub fn due(&self, number: u32) -> Duration {
        Duration::from_secs(1).checked_div(self.hz).unwrap_or_default() * number
    }
}
