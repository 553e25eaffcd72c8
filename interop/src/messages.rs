//! What is sent, and what must come back.

use std::time::Duration;

/// Messages of one byte up to many segments, the same as interop/peer.py makes.
#[must_use]
pub fn messages(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| content(number, length(number))).collect()
}

/// Content that differs between places and between numbers.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "modulo 256")]
pub fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7 + at / 251) as u8).collect()
}

fn length(number: usize) -> usize {
    if number % 100 == 50 { 60_000 } else { 1 + number * 397 % 4000 }
}

/// Their total length in bytes.
#[must_use]
pub fn total(messages: &[Vec<u8>]) -> usize {
    messages.iter().map(Vec::len).sum()
}

/// Whether `back` is what was sent: message by message, or the same bytes as a stream.
#[must_use]
pub fn is_intact(sent: &[Vec<u8>], back: &[Vec<u8>], stream: bool) -> bool {
    if stream { sent.concat() == back.concat() } else { sent == back }
}

/// Equal messages at a steady rate.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes per message.
    pub size: usize,
    /// Number of messages.
    pub count: u32,
    /// Messages per second; 0: as fast as the sender accepts them.
    pub hz: u32,
}

impl Load {
    /// Their total length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.size * self.count as usize
    }

    /// When this message is due, after the first.
    #[must_use]
    pub fn due(&self, number: u32) -> Duration {
        Duration::from_secs(1).checked_div(self.hz).unwrap_or_default() * number
    }
}
