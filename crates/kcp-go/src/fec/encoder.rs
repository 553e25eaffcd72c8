//! Makes the parity of outgoing datagrams.

use super::super::config::Shards;
use super::super::datagram::{DATA, HEAD, PARITY, SIZE};
use super::{Code, groups};
use std::sync::Arc;
use std::time::Duration;
use whitewater::Time;

/// Adds each datagram to the parity of its group as it leaves, so that the last one of a group takes no more
/// work than the others.
///
/// Source: kcp-go `fecEncoder`.
#[derive(Debug)]
pub(crate) struct Encoder {
    code: Arc<Code>,
    shards: Shards,
    /// The number of the next shard.
    pub(super) next: u32,
    /// Number of data shards in this group so far.
    data: usize,
    /// The parity so far, each as long as the longest data shard.
    parity: Vec<Vec<u8>>,
    /// Parity shards still to be sent.
    due: usize,
    last: Time,
    /// The data shard being added.
    shard: Vec<u8>,
}

impl Encoder {
    /// `code` must match `shards`.
    pub(crate) fn new(shards: Shards, code: &Arc<Code>) -> Self {
        Self {
            code: Arc::clone(code),
            shards,
            next: 0,
            data: 0,
            parity: vec![Vec::new(); shards.parity.into()],
            due: 0,
            last: Time::ZERO,
            shard: Vec::new(),
        }
    }

    /// Takes the next datagram and returns the header to put before it. If it completes its group,
    /// [`parity`](Self::parity) returns the parity next.
    pub(crate) fn data(&mut self, now: Time, datagram: &[u8]) -> [u8; HEAD + SIZE] {
        let size = u16::try_from(SIZE + datagram.len()).unwrap_or(u16::MAX).to_le_bytes();
        self.shard.clear();
        self.shard.extend_from_slice(&size);
        self.shard.extend_from_slice(datagram);
        for parity in &mut self.parity {
            if self.data == 0 {
                parity.clear(); // of the group before
            }
            // Trailing zeros of a shard do not change a sum, so a sum may grow later.
            parity.resize(parity.len().max(self.shard.len()), 0);
        }
        self.code.add(self.data, &self.shard, &mut self.parity);
        let [a, b, c, d, e, f] = self.head(DATA);
        self.data += 1;
        if self.data == self.shards.data.into() {
            self.data = 0;
            let is_steady = now.since(self.last) < GAP;
            if is_steady {
                self.due = self.shards.parity.into();
            } else {
                (0..self.shards.parity).for_each(|_| self.count()); // skip their numbers
            }
        }
        self.last = now;
        let [g, h] = size;
        [a, b, c, d, e, f, g, h]
    }

    /// Bytes of heap memory.
    pub(crate) fn memory(&self) -> usize {
        let longest = self.parity.first().map_or(0, Vec::capacity); // they are equally long
        self.parity.len() * (size_of::<Vec<u8>>() + longest) + self.shard.capacity()
    }

    /// The next parity shard of a complete group, and the header to put before it.
    pub(crate) fn parity(&mut self) -> Option<([u8; HEAD], &[u8])> {
        let at = usize::from(self.shards.parity).checked_sub(self.due).filter(|_| self.due > 0)?;
        self.due -= 1;
        let head = self.head(PARITY);
        Some((head, self.parity.get(at)?))
    }

    fn head(&mut self, kind: u16) -> [u8; HEAD] {
        let ([a, b, c, d], [e, f]) = (self.next.to_le_bytes(), kind.to_le_bytes());
        self.count();
        [a, b, c, d, e, f]
    }

    #[expect(clippy::cast_possible_truncation, reason = "256 at most")]
    fn count(&mut self) {
        let end = groups(self.shards) * self.shards.all() as u32;
        self.next = (self.next + 1) % end;
    }
}

/// Longest pause before the last datagram of a group for its parity to be useful. Source: kcp-go `fec.go`,
/// `rto`, since 5.6.20.
const GAP: Duration = Duration::from_millis(500);
