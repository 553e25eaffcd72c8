//! What a thread and its handle look at together.

use super::Way;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use whitewater_udp::Bell;

/// Wakes a thread that waits for datagrams, and counts what it has delivered.
#[derive(Debug)]
pub(super) struct Shared {
    is_asleep: AtomicBool,
    bell: Arc<Bell>,
    /// Bytes that were delivered and not yet taken, and how many may be.
    incoming: AtomicUsize,
    most: usize,
    /// Closures that wait to be run.
    pub(super) runs: AtomicUsize,
}

impl Shared {
    pub(super) fn new(bell: Arc<Bell>, most: usize) -> Self {
        let is_asleep = AtomicBool::new(false);
        Self { is_asleep, bell, incoming: AtomicUsize::new(0), most, runs: AtomicUsize::new(0) }
    }

    /// Has the thread look at what is new, if it sleeps. Whatever is new has to be there already.
    pub(super) fn wake(&self) {
        if self.is_asleep.swap(false, SeqCst) {
            self.bell.ring();
        }
    }

    /// Something of so many bytes is delivered.
    pub(super) fn deliver(&self, cost: usize) {
        self.incoming.fetch_add(cost, SeqCst);
    }

    /// It was taken: the thread may have waited for room.
    pub(super) fn taken(&self, cost: usize) {
        if self.incoming.fetch_sub(cost, SeqCst) >= self.most {
            self.wake();
        }
    }

    /// Whether something may be delivered.
    pub(super) fn has_room(&self) -> bool {
        let used = self.incoming.load(SeqCst);
        used == 0 || used < self.most
    }

    /// Says that the thread is about to sleep, or is awake. Between the first and its sleep it has to look once more for what is new.
    pub(super) fn set_asleep(&self, is_asleep: bool) {
        self.is_asleep.store(is_asleep, SeqCst);
    }
}

/// What waits for one session, bytes by way. One end adds, the other takes away; both have a copy.
#[derive(Clone, Debug)]
pub(super) struct Budgets {
    /// Of the lanes, then of the datagrams, then of the channels.
    used: Arc<[AtomicUsize]>,
    lanes: usize,
}

impl Budgets {
    pub(super) fn new(lanes: usize, channels: usize) -> Self {
        let used = (0..=lanes + channels).map(|_| AtomicUsize::new(0)).collect();
        Self { used, lanes }
    }

    /// Of a lane or channel that is not there, it is that of the datagrams: what is sent there is refused soon.
    fn of(&self, way: Way) -> Option<&AtomicUsize> {
        let index = match way {
            Way::Lane(lane) => Some(lane).filter(|lane| *lane < self.lanes),
            Way::Datagrams => None,
            Way::Channel(channel) => channel.checked_add(self.lanes + 1),
        };
        index.and_then(|index| self.used.get(index)).or_else(|| self.used.get(self.lanes))
    }

    pub(super) fn add(&self, way: Way, cost: usize) {
        if let Some(used) = self.of(way) {
            used.fetch_add(cost, SeqCst);
        }
    }

    pub(super) fn take_away(&self, way: Way, cost: usize) {
        if let Some(used) = self.of(way) {
            used.fetch_sub(cost, SeqCst);
        }
    }

    /// What may be added to a way: a quarter of `limit` is shared out among them, and of the rest it has what the others have left.
    pub(super) fn room(&self, way: Way, limit: usize) -> usize {
        let own = limit / 4 / self.used.len();
        let rest = limit - own * self.used.len();
        let Some(way) = self.of(way) else { return 0 };
        let others = self.used.iter().filter(|other| !std::ptr::eq(*other, way));
        let taken = others.map(|other| other.load(SeqCst).saturating_sub(own)).sum();
        (own + rest.saturating_sub(taken)).saturating_sub(way.load(SeqCst))
    }

    /// Whether so much more may be added. Something always may when there is nothing.
    pub(super) fn has_room(&self, way: Way, cost: usize, limit: usize) -> bool {
        self.of(way).is_some_and(|used| used.load(SeqCst) == 0) || cost <= self.room(way, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lanes, datagrams and a channel: 100 bytes of 1600 each, and 1200 for all.
    fn budgets() -> Budgets {
        Budgets::new(2, 1)
    }

    const ALL: [Way; 4] = [Way::Lane(0), Way::Lane(1), Way::Datagrams, Way::Channel(0)];

    fn fill(budgets: &Budgets, way: Way, cost: usize) -> usize {
        let count = (0..)
            .take_while(|_| {
                budgets.has_room(way, cost, 1600) && {
                    budgets.add(way, cost);
                    true
                }
            })
            .count();
        count * cost
    }

    #[test]
    fn a_way_that_takes_all_it_may_leaves_each_other_its_share() {
        for greedy in ALL {
            let budgets = budgets();
            assert_eq!(fill(&budgets, greedy, 10), 1300, "{greedy:?}");
            for other in ALL.into_iter().filter(|other| *other != greedy) {
                assert_eq!(
                    (budgets.room(other, 1600), fill(&budgets, other, 10)),
                    (100, 100),
                    "{other:?} beside {greedy:?}"
                );
            }
            budgets.take_away(greedy, 1300);
            assert_eq!(ALL.map(|way| budgets.room(way, 1600)).into_iter().max(), Some(1300));
        }
    }

    #[test]
    fn one_that_is_larger_than_all_goes_where_nothing_waits_and_the_others_keep_their_share() {
        let budgets = budgets();
        assert!(budgets.has_room(Way::Channel(0), 5000, 1600));
        budgets.add(Way::Channel(0), 5000);
        assert!(!budgets.has_room(Way::Channel(0), 1, 1600));
        assert_eq!(fill(&budgets, Way::Lane(1), 10), 100);
    }

    #[test]
    fn what_is_sent_where_there_is_nothing_counts_as_well() {
        let budgets = budgets();
        for way in [Way::Lane(2), Way::Lane(usize::MAX), Way::Channel(1), Way::Channel(usize::MAX)] {
            budgets.add(way, 10);
        }
        assert_eq!(budgets.room(Way::Datagrams, 1600), 1260);
    }
}
