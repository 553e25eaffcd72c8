//! The received shards of one group.

use super::super::config::Shards;
use super::super::datagram::{Shard, kcp_of};
use super::super::stats::Stats;
use super::code::Basis;
use std::mem;
use whitewater::inside::code::field::add_products;

/// Keeps as many shards of a group as are needed to rebuild the rest, and rebuilds only once.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) number: u32,
    /// Each shard, and whether it was received.
    shards: Vec<(Vec<u8>, bool)>,
    /// How many were received.
    come: usize,
    /// Rebuilt data shards that were not returned yet.
    rebuilt: Vec<usize>,
    /// Bytes of all shards, used or not.
    bytes: usize,
}

impl Group {
    pub(super) fn new(number: u32, shards: Shards) -> Self {
        Self {
            number,
            shards: vec![(Vec::new(), false); shards.all()],
            come: 0,
            rebuilt: Vec::new(),
            bytes: 0,
        }
    }

    /// Bytes of heap memory.
    pub(super) const fn memory(&self) -> usize {
        self.shards.capacity() * size_of::<(Vec<u8>, bool)>()
            + self.rebuilt.capacity() * size_of::<usize>()
            + self.bytes
    }

    /// Reuses the memory for another group.
    pub(super) fn renew(&mut self, number: u32) {
        self.number = number;
        self.come = 0;
        self.rebuilt.clear();
        self.shards.iter_mut().for_each(|(_, is_here)| *is_here = false);
    }

    /// Whether the shard in this place was received.
    pub(super) fn has(&self, at: usize) -> bool {
        self.shards.get(at).is_some_and(|(_, is_here)| *is_here)
    }

    /// Takes a shard. Returns `false` if it was already there.
    pub(super) fn take(&mut self, at: usize, shard: &Shard<'_>) -> bool {
        let Some((bytes, is_here)) = self.shards.get_mut(at).filter(|(_, is_here)| !is_here) else {
            return false;
        };
        let before = bytes.capacity();
        bytes.clear();
        bytes.extend_from_slice(shard.bytes);
        self.bytes += bytes.capacity() - before;
        *is_here = true;
        self.come += 1;
        true
    }

    /// Rebuilds the missing data when just enough shards are there; later shards change nothing. Each missing one takes
    /// the bytes of all that are there, of which `work` may be done: the oldest that it pays for are rebuilt.
    pub(super) fn rebuild(&mut self, data: usize, work: &mut usize, stats: &mut Stats) {
        self.rebuilt.clear();
        if self.come != data {
            return;
        }
        let here = self.shards.iter().filter(|(_, is_here)| *is_here);
        let each = here.map(|(bytes, _)| bytes.len()).sum::<usize>().max(1);
        let missing = self.shards.iter().take(data).enumerate().filter(|(_, (_, is_here))| !is_here);
        self.rebuilt.extend(missing.map(|(at, _)| at));
        let paid = self.rebuilt.len().min(*work / each);
        *work -= paid * each;
        stats.too_much_work += (self.rebuilt.len() - paid) as u64;
        self.rebuilt.truncate(paid);
        self.rebuilt.reverse(); // the oldest is returned first, from the end
        if self.rebuilt.is_empty() {
            return;
        }
        let numbered = (0..=u8::MAX).zip(&self.shards);
        let basis = Basis::new(numbered.filter(|(_, (_, is_here))| *is_here).map(|(at, _)| at).collect());
        let rebuilt = mem::take(&mut self.rebuilt);
        let places = rebuilt.iter().filter_map(|at| u8::try_from(*at).ok());
        let factors: Vec<u8> = places.flat_map(|place| basis.at(place)).collect();
        let here = self.shards.iter().filter(|(_, is_here)| *is_here);
        let longest = here.map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
        let mut sums: Vec<_> = rebuilt.iter().map(|at| self.zeros(*at, longest)).collect();
        let here = self.shards.iter().filter(|(_, is_here)| *is_here);
        for (from, (bytes, _)) in here.enumerate() {
            add_products(bytes, &mut sums, |sum| factors.get(sum * data + from).copied().unwrap_or_default());
        }
        for (&at, sum) in rebuilt.iter().zip(sums) {
            if let Some((bytes, _)) = self.shards.get_mut(at) {
                *bytes = sum;
            }
        }
        self.rebuilt = rebuilt;
    }

    /// This many zeros, in the memory of a shard that has not arrived.
    fn zeros(&mut self, at: usize, len: usize) -> Vec<u8> {
        let mut zeros = self.shards.get_mut(at).map(|(bytes, _)| mem::take(bytes)).unwrap_or_default();
        let before = zeros.capacity();
        zeros.clear();
        zeros.resize(len, 0);
        self.bytes += zeros.capacity() - before;
        zeros
    }

    /// The next rebuilt KCP datagram. One with a wrong size is counted: some shard did not belong to this
    /// group.
    pub(super) fn pop(&mut self, stats: &mut Stats) -> Option<&[u8]> {
        while let Some(at) = self.rebuilt.pop() {
            if self.shards.get(at).is_some_and(|(bytes, _)| kcp_of(bytes).is_some()) {
                stats.recovered += 1;
                return self.shards.get(at).and_then(|(bytes, _)| kcp_of(bytes));
            }
            stats.not_recovered += 1;
        }
        None
    }
}
