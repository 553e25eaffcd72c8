//! Rebuilds lost datagrams of the peer from its parity.

use super::super::config::Shards;
use super::super::datagram::Shard;
use super::super::stats::Stats;
use super::group::Group;
use super::groups;

/// Keeps the shards of the newest groups. It allocates nothing before the first shard, and then at most
/// [`GROUPS`] x (data + parity) x the longest datagram.
///
/// Source: kcp-go `fecDecoder`.
#[derive(Debug)]
pub(crate) struct Decoder {
    shards: Shards,
    /// The newest group that had a shard.
    newest: u32,
    /// In no particular order.
    groups: Vec<Group>,
    /// Consecutive shards that belonged to no group.
    strays: usize,
    /// How many more shards must be in their places before any is kept, after one was misplaced.
    doubts: usize,
    /// Index of the group with datagrams to return.
    rebuilt: usize,
}

impl Decoder {
    pub(crate) const fn new(shards: Shards) -> Self {
        Self { shards, newest: 0, groups: Vec::new(), strays: 0, doubts: 0, rebuilt: 0 }
    }

    /// Takes a shard. [`pop`](Self::pop) returns what could be rebuilt because of it.
    pub(crate) fn take(&mut self, shard: &Shard<'_>, stats: &mut Stats) {
        let (Ok(all), Ok(seqid)) = (u32::try_from(self.shards.all()), usize::try_from(shard.seqid)) else {
            return;
        };
        let (number, at) = (shard.seqid / all, seqid % self.shards.all());
        if number >= groups(self.shards) || shard.is_parity != (at >= self.shards.data.into()) {
            stats.misplaced += 1;
            self.doubt();
            return;
        }
        if self.doubts > 0 {
            self.doubts -= 1;
            stats.doubted += 1;
            return;
        }
        if shard.bytes.is_empty() {
            stats.misplaced += 1;
            return;
        }
        let Some(slot) = self.slot(number, stats) else { return };
        let Some(group) = self.groups.get_mut(slot) else { return };
        if !group.take(at, shard) {
            stats.duplicates += 1;
            return;
        }
        group.rebuild(self.shards.data.into());
        self.rebuilt = slot;
    }

    /// The next rebuilt KCP datagram.
    pub(crate) fn pop(&mut self, stats: &mut Stats) -> Option<&[u8]> {
        self.groups.get_mut(self.rebuilt)?.pop(stats)
    }

    /// Reacts to a misplaced shard: the peer uses other shards than we do. Some of its groups may still look
    /// like ours, and what is rebuilt from them passes for KCP: the parity of bytes that all datagrams share,
    /// such as `conv`, is those bytes, whatever the shards. So nothing is rebuilt until enough shards were in
    /// their places to prove that the patterns are the same: two patterns that agree over the sum of their
    /// periods are equal (Fine and Wilf, 1965).
    fn doubt(&mut self) {
        self.doubts = self.shards.all() + ALL_MAX;
        self.groups.clear();
    }

    /// Bytes of heap memory.
    pub(crate) fn memory(&self) -> usize {
        self.groups.iter().map(Group::memory).sum()
    }

    /// Frees the memory.
    pub(crate) fn shrink(&mut self) {
        self.groups = Vec::new();
    }

    /// Index of the group `number`, created if it is new; `None` if it is too old.
    fn slot(&mut self, number: u32, stats: &mut Stats) -> Option<usize> {
        let all = groups(self.shards);
        let age = |from: u32, number: u32| (from + all - number) % all;
        let is_newer = self.groups.is_empty() || age(number, self.newest) <= all / 2 && number != self.newest;
        if !is_newer && age(self.newest, number) >= GROUPS {
            self.strays += 1;
            if self.strays <= self.shards.all() {
                stats.late += 1;
                return None;
            }
            self.groups.clear(); // all shards are too old: the peer has restarted, or a shard with a high number was forged
        }
        self.strays = 0;
        if is_newer || self.groups.is_empty() {
            self.newest = number;
        }
        if let Some(slot) = self.groups.iter().position(|group| group.number == number) {
            return Some(slot);
        }
        let newest = self.newest;
        if let Some(slot) = self.groups.iter().position(|group| age(newest, group.number) >= GROUPS) {
            self.groups.get_mut(slot)?.renew(number);
            return Some(slot);
        }
        self.groups.push(Group::new(number, self.shards));
        Some(self.groups.len() - 1)
    }
}

/// Groups that are kept. Source: kcp-go since 5.6.40.
const GROUPS: u32 = 4;
/// Most shards per group.
const ALL_MAX: usize = 256;
