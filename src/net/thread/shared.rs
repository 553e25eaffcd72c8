//! The state that a thread shares with its handle.

use super::{ThreadConfig, Way};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use whitewater_udp::Bell;

/// Wakes a thread that waits for datagrams, and counts what it has delivered.
#[derive(Debug)]
pub(super) struct Shared {
    /// Whether the thread is about to sleep. After setting this it checks once more for something new.
    pub(super) is_asleep: AtomicBool,
    bell: Arc<Bell>,
    /// Bytes that were delivered and not taken yet.
    pub(super) incoming: AtomicUsize,
    pub(super) config: ThreadConfig,
    pub(super) runs: AtomicUsize,
}

impl Shared {
    pub(super) fn new(bell: Arc<Bell>, config: ThreadConfig) -> Self {
        let (incoming, runs) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { is_asleep: AtomicBool::new(false), bell, incoming, config, runs }
    }

    /// Makes a sleeping thread check for something new. Call this after adding it.
    pub(super) fn wake(&self) {
        if self.is_asleep.swap(false, SeqCst) {
            self.bell.ring();
        }
    }

    /// Notes that bytes were taken, in case the thread waits for room.
    pub(super) fn taken(&self, cost: usize) {
        if self.incoming.fetch_sub(cost, SeqCst) >= self.config.incoming {
            self.wake();
        }
    }

    pub(super) fn has_room(&self) -> bool {
        let used = self.incoming.load(SeqCst);
        used == 0 || used < self.config.incoming
    }
}

/// Bytes waiting for one session, by way. One end adds and the other removes; both have a copy.
#[derive(Clone, Debug)]
pub(super) struct Budgets {
    /// First the lanes, then the datagrams, then the channels.
    used: Arc<[AtomicUsize]>,
    lanes: usize,
    limit: usize,
}

impl Budgets {
    pub(super) fn new(lanes: usize, channels: usize, limit: usize) -> Self {
        let used = (0..=lanes + channels).map(|_| AtomicUsize::new(0)).collect();
        Self { used, lanes, limit }
    }

    /// The counter of a way. For a lane or channel that does not exist, it is that of the datagrams: what is
    /// sent there will soon be refused.
    fn of(&self, way: Way) -> Option<&AtomicUsize> {
        let index = match way {
            Way::Lane(lane) => Some(lane).filter(|lane| *lane < self.lanes),
            Way::Datagrams => None,
            Way::Channel(channel) => channel.checked_add(self.lanes + 1),
        };
        index.and_then(|index| self.used.get(index)).or_else(|| self.used.get(self.lanes))
    }

    /// Adds `cost` if there is room, or if nothing waits, so that anything can be sent at some time. Returns
    /// whether it did.
    pub(super) fn add(&self, way: Way, cost: usize) -> bool {
        let Some(used) = self.of(way) else { return false };
        let has_room = used.load(SeqCst) == 0 || cost <= self.room(way);
        if has_room {
            used.fetch_add(cost, SeqCst);
        }
        has_room
    }

    pub(super) fn take_away(&self, way: Way, cost: usize) {
        if let Some(used) = self.of(way) {
            used.fetch_sub(cost, SeqCst);
        }
    }

    /// What may be added to a way: its own part of a quarter of the limit, plus what the others have left of
    /// the rest.
    pub(super) fn room(&self, way: Way) -> usize {
        let own = self.limit / 4 / self.used.len();
        let rest = self.limit - own * self.used.len();
        let Some(way) = self.of(way) else { return 0 };
        let others = self.used.iter().filter(|other| !std::ptr::eq(*other, way));
        let taken = others.map(|other| other.load(SeqCst).saturating_sub(own)).sum();
        (own + rest.saturating_sub(taken)).saturating_sub(way.load(SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lanes, datagrams and a channel: 100 bytes of 1600 for each, and 1200 for all.
    fn budgets() -> Budgets {
        Budgets::new(2, 1, 1600)
    }

    const ALL: [Way; 4] = [Way::Lane(0), Way::Lane(1), Way::Datagrams, Way::Channel(0)];

    fn fill(budgets: &Budgets, way: Way) -> usize {
        (0..).take_while(|_| budgets.add(way, 10)).count() * 10
    }

    #[test]
    fn a_greedy_way_leaves_every_other_its_share() {
        for greedy in ALL {
            let budgets = budgets();
            assert_eq!(fill(&budgets, greedy), 1300, "{greedy:?}");
            for other in ALL.into_iter().filter(|other| *other != greedy) {
                let room = (budgets.room(other), fill(&budgets, other));
                assert_eq!(room, (100, 100), "{other:?} beside {greedy:?}");
            }
            budgets.take_away(greedy, 1300);
            assert_eq!(ALL.map(|way| budgets.room(way)).into_iter().max(), Some(1300));
        }
    }

    #[test]
    fn an_oversized_message_is_accepted_if_nothing_waits_and_the_others_keep_their_share() {
        let budgets = budgets();
        assert!(budgets.add(Way::Channel(0), 5000));
        assert!(!budgets.add(Way::Channel(0), 1));
        assert_eq!(fill(&budgets, Way::Lane(1)), 100);
        // What is sent to a way that does not exist counts as a datagram.
        let nowhere = [Way::Lane(2), Way::Lane(usize::MAX), Way::Channel(1), Way::Channel(usize::MAX)];
        assert!(nowhere.into_iter().all(|way| budgets.add(way, 10)));
        assert_eq!(budgets.room(Way::Datagrams), 60);
    }
}
