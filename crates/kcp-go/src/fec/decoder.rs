//! What was lost of what the other has sent, from its parity.

use super::super::config::Shards;
use super::super::datagram::Shard;
use super::super::stats::Stats;
use super::group::Group;
use super::{Code, groups};

/// Keeps the shards of the newest groups. It takes no memory before the first shard, and then at most
/// [`GROUPS`] x (data + parity) x the longest datagram.
///
/// Source: kcp-go `fecDecoder`.
#[derive(Debug)]
pub(crate) struct Decoder {
    code: Code,
    shards: Shards,
    /// The newest group of which a shard has come.
    newest: u32,
    /// In no order.
    groups: Vec<Group>,
    /// Shards in a row that were of none of them.
    strays: usize,
    /// Shards that still have to fit before any is kept: one did not.
    doubts: usize,
    /// Which of the groups has something to take.
    rebuilt: usize,
}

impl Decoder {
    /// `code`: that of the `shards`.
    pub(crate) fn new(shards: Shards, code: &Code) -> Self {
        let code = Code::clone(code);
        Self { code, shards, newest: 0, groups: Vec::new(), strays: 0, doubts: 0, rebuilt: 0 }
    }

    /// Takes a shard. What it makes possible to rebuild is there for [`pop`](Self::pop).
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
        group.rebuild(self.shards.data.into(), &self.code);
        self.rebuilt = slot;
    }

    /// The next datagram of KCP that was rebuilt.
    pub(crate) fn pop(&mut self, stats: &mut Stats) -> Option<&[u8]> {
        self.groups.get_mut(self.rebuilt)?.pop(stats)
    }

    /// The other has other shards than we were told. Some of its groups look like ours all the same, and what would be rebuilt of those passes for
    /// KCP: parity of bytes that all datagrams have alike, as `conv`, is those bytes, whatever the shards. So nothing is rebuilt until so many
    /// shards have fitted that it has the same: two patterns that agree over the sum of their periods are one (Fine and Wilf, 1965).
    fn doubt(&mut self) {
        self.doubts = self.shards.all() + ALL_MAX;
        self.groups.clear();
    }

    /// Bytes of the heap that shards are in.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.groups.iter().map(Group::memory).sum()
    }

    /// Gives the memory back.
    pub(crate) fn shrink(&mut self) {
        self.groups = Vec::new();
    }

    /// Where the group with that number is, or is from now on; `None`: it is too old.
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
            self.groups.clear(); // all are so: it has begun again, or what came between was none of its
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
/// Most shards of a group.
const ALL_MAX: usize = 256;
