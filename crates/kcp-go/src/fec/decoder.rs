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
    /// How many more shards must be in their places before anything is rebuilt, after one was misplaced.
    doubts: usize,
    /// The number of that one.
    doubted: u32,
    /// Index of the group with datagrams to return.
    rebuilt: usize,
    /// Bytes of shards that may be summed up. Each shard pays for some, as the sender decides what rebuilding takes.
    work: usize,
}

impl Decoder {
    pub(crate) const fn new(shards: Shards) -> Self {
        Self {
            shards,
            newest: 0,
            groups: Vec::new(),
            strays: 0,
            doubts: 0,
            doubted: 0,
            rebuilt: 0,
            work: WORK_MAX,
        }
    }

    /// Takes a shard. [`pop`](Self::pop) returns what could be rebuilt because of it.
    pub(crate) fn take(&mut self, shard: &Shard<'_>, stats: &mut Stats) {
        let (Ok(all), Ok(seqid)) = (u32::try_from(self.shards.all()), usize::try_from(shard.seqid)) else {
            return;
        };
        let (number, at) = (shard.seqid / all, seqid % self.shards.all());
        if number >= groups(self.shards) || shard.is_parity != (at >= self.shards.data.into()) {
            stats.misplaced += 1;
            self.doubt(shard.seqid, number, at);
            return;
        }
        if self.doubts > 0 {
            // A number has one kind, so whoever sent the other kind of this one is not the peer.
            self.doubts = if shard.seqid == self.doubted { 0 } else { self.doubts - 1 };
            stats.doubted += 1;
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
        self.work = (self.work + WORK).min(WORK_MAX);
        if self.doubts == 0 {
            group.rebuild(self.shards.data.into(), &mut self.work, stats);
            self.rebuilt = slot;
        }
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
    ///
    /// A forged shard must not do the same. The peer's own are near the newest, and none with such a number
    /// comes in its place.
    fn doubt(&mut self, seqid: u32, number: u32, at: usize) {
        let (ahead, behind) = (self.age(number, self.newest), self.age(self.newest, number));
        let is_near = self.groups.is_empty() || ahead <= 1 || behind < GROUPS;
        let is_here = self.groups.iter().any(|group| group.number == number && group.has(at));
        if is_near && !is_here && number < groups(self.shards) {
            (self.doubts, self.doubted) = (self.shards.all() + ALL_MAX, seqid);
        }
    }

    /// How many groups later than `number` the group `from` is.
    fn age(&self, from: u32, number: u32) -> u32 {
        let all = groups(self.shards);
        (from % all + all - number % all) % all
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
        let half = groups(self.shards) / 2;
        let is_newer =
            self.groups.is_empty() || self.age(number, self.newest) <= half && number != self.newest;
        if !is_newer && self.age(self.newest, number) >= GROUPS {
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
        if let Some(slot) = self.groups.iter().position(|group| self.age(self.newest, group.number) >= GROUPS)
        {
            self.groups.get_mut(slot)?.renew(number);
            return Some(slot);
        }
        self.groups.push(Group::new(number, self.shards));
        Some(self.groups.len() - 1)
    }
}

/// Bytes of work that a shard pays for, at about an instruction each: 34 of the longest datagrams. If a fifth of 128 + 127
/// shards is lost, rebuilding takes two thirds of it.
const WORK: usize = 48 << 10;
/// Most that can be saved up: what the shards of a large group pay.
const WORK_MAX: usize = 8 << 20;
/// Groups that are kept. Source: kcp-go since 5.6.40.
const GROUPS: u32 = 4;
/// Most shards per group.
const ALL_MAX: usize = 256;
