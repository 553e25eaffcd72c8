//! Timers of thousands of seats: a hierarchical timing wheel.
//!
//! A timer lies in the slot of its time. A level has 16 slots, and a slot of one level is as long as all slots of the level below.
//! So setting a timer takes the same few steps however many there are, and touches little memory. A timer that is far away moves
//! down once for each level, when its slot begins. The timers of the slot that has begun are sorted, so that they fire in order
//! and to the microsecond. Source: Varghese and Lauck, Hashed and Hierarchical Timing Wheels, 1987.

use crate::time::Time;
use std::cmp::Reverse;

/// Timers, each a time and what it is for.
#[derive(Debug)]
pub(super) struct Wheel<Id> {
    /// The slot that has begun last, counted in the shortest slots.
    begun: u64,
    /// The timers up to the end of that slot, the soonest last.
    current: Vec<Timer>,
    /// The shortest slots first. A level is made for its first timer.
    levels: Vec<Level>,
    nodes: Vec<Node<Id>>,
    free: Link,
}

/// A timer that is set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Timer(Link);

impl Timer {
    /// Stands for no timer.
    pub(super) const NONE: Self = Self(NONE);
}

/// A timer in the list of its slot, or a place for one, in the list of those that are free.
#[derive(Clone, Copy, Debug)]
struct Node<Id> {
    at: Time,
    id: Id,
    before: Link,
    next: Link,
}

/// The place of a node; the last number: none.
type Link = u32;
const NONE: Link = Link::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    first: Link,
    /// No timer is sooner. If there are few, one of them is at that time.
    soonest: Time,
}

#[derive(Debug)]
struct Level {
    /// Bit n: the slot n has timers.
    taken: u64,
    slots: [Slot; SLOTS],
}

impl Level {
    const EMPTY: Self = Self { taken: 0, slots: [Slot { first: NONE, soonest: Time::NEVER }; SLOTS] };

    /// The first slot that has timers. All before the one that has begun are empty.
    fn first(&self) -> Option<usize> {
        (self.taken != 0).then(|| self.taken.trailing_zeros() as usize)
    }
}

impl<Id: Copy> Wheel<Id> {
    /// Sets a timer.
    #[inline]
    pub(super) fn insert(&mut self, at: Time, id: Id) -> Timer {
        let node = Node { at, id, before: NONE, next: NONE };
        let link = match self.nodes.get_mut(self.free as usize) {
            Some(place) => {
                let next = std::mem::replace(place, node).next;
                std::mem::replace(&mut self.free, next)
            }
            None => {
                self.nodes.push(node);
                Link::try_from(self.nodes.len() - 1).unwrap_or(NONE)
            }
        };
        self.link(at, link);
        Timer(link)
    }

    /// Puts a node into the list of its slot.
    #[inline]
    fn link(&mut self, at: Time, link: Link) {
        let slot = slot_of(at);
        if slot <= self.begun {
            let later = self.current.partition_point(|other| time_of(&self.nodes, *other) > at);
            return self.current.insert(later, Timer(link));
        }
        let (level, index) = place_of(slot, self.begun);
        while self.levels.len() <= level {
            self.levels.push(Level::EMPTY);
        }
        let Some(Level { taken, slots }) = self.levels.get_mut(level) else { return };
        let Some(Slot { first, soonest }) = slots.get_mut(index) else { return };
        *taken |= 1 << index;
        let next = std::mem::replace(first, link);
        *soonest = if next == NONE { at } else { at.min(*soonest) };
        if let Some(next) = self.nodes.get_mut(next as usize) {
            next.before = link;
        }
        if let Some(node) = self.nodes.get_mut(link as usize) {
            (node.before, node.next) = (NONE, next);
        }
    }

    /// Removes a timer that has not fired. In the slot that has begun, this walks over the timers of a millisecond.
    pub(super) fn remove(&mut self, timer: Timer) {
        let Timer(link) = timer;
        let Some(&Node { at, before, next, .. }) = self.nodes.get(link as usize) else { return };
        self.give_back(link);
        let slot = slot_of(at);
        if slot <= self.begun {
            return self.current.retain(|other| *other != timer);
        }
        if let Some(next) = self.nodes.get_mut(next as usize) {
            next.before = before;
        }
        if let Some(before) = self.nodes.get_mut(before as usize) {
            before.next = next;
        }
        let (level, index) = place_of(slot, self.begun);
        let Some(Level { taken, slots }) = self.levels.get_mut(level) else { return };
        let Some(Slot { first, soonest }) = slots.get_mut(index) else { return };
        if before == NONE {
            *first = next;
        }
        if *first == NONE {
            *taken &= !(1 << index);
        } else if *soonest == at {
            *soonest = soonest_of(&self.nodes, *first).unwrap_or(at);
        }
    }

    fn give_back(&mut self, link: Link) {
        if let Some(node) = self.nodes.get_mut(link as usize) {
            node.next = std::mem::replace(&mut self.free, link);
        }
    }

    /// When the soonest timer fires, or shortly before.
    pub(super) fn soonest(&self) -> Option<Time> {
        if let Some(timer) = self.current.last() {
            return Some(time_of(&self.nodes, *timer));
        }
        // What is in a level comes before all that is in longer slots.
        self.levels.iter().find_map(|level| Some(level.slots.get(level.first()?)?.soonest))
    }

    /// Takes the soonest timer that has fired. Time never goes back.
    pub(super) fn pop(&mut self, now: Time) -> Option<Id> {
        loop {
            if let Some(Timer(link)) = self.current.pop_if(|timer| time_of(&self.nodes, *timer) <= now) {
                self.give_back(link);
                return self.nodes.get(link as usize).map(|node| node.id);
            }
            if !self.current.is_empty() || !self.begin_next(slot_of(now)) {
                return None;
            }
        }
    }

    /// Begins the next slot that has timers, up to the slot `now`. Returns whether there was one.
    fn begin_next(&mut self, now: u64) -> bool {
        if now <= self.begun {
            return false;
        }
        let next = self.levels.iter().enumerate().find_map(|(level, slots)| Some((level, slots.first()?)));
        let next = next.map(|(level, index)| (level, index, start_of(self.begun, level, index)));
        let Some((level, index, start)) = next.filter(|(.., start)| *start <= now) else {
            self.begun = now;
            return false;
        };
        self.begun = start;
        let Some(Level { taken, slots }) = self.levels.get_mut(level) else { return false };
        *taken &= !(1 << index);
        let mut link = slots.get_mut(index).map_or(NONE, |slot| std::mem::replace(&mut slot.first, NONE));
        while let Some(&Node { at, next, .. }) = self.nodes.get(link as usize) {
            if slot_of(at) == start {
                self.current.push(Timer(link));
            } else {
                self.link(at, link);
            }
            link = next;
        }
        self.current.sort_unstable_by_key(|timer| Reverse(time_of(&self.nodes, *timer)));
        true
    }
}

impl<Id> Default for Wheel<Id> {
    fn default() -> Self {
        Self { begun: 0, current: Vec::new(), levels: Vec::new(), nodes: Vec::new(), free: NONE }
    }
}

fn time_of<Id>(nodes: &[Node<Id>], Timer(link): Timer) -> Time {
    nodes.get(link as usize).map_or(Time::NEVER, |node| node.at)
}

/// The soonest time in a list, if it is short.
fn soonest_of<Id>(nodes: &[Node<Id>], mut link: Link) -> Option<Time> {
    let mut soonest = Time::NEVER;
    for _ in 0..SHORT {
        let Some(node) = nodes.get(link as usize) else { return Some(soonest) };
        (soonest, link) = (soonest.min(node.at), node.next);
    }
    None
}

/// The shortest slot that a time is in.
const fn slot_of(at: Time) -> u64 {
    at.as_micros() >> SLOT_BITS
}

/// Where a slot lies that comes after the one that has begun: the highest level in which these two are in different slots, and its
/// index there.
#[expect(clippy::cast_possible_truncation, reason = "the low bits")]
const fn place_of(slot: u64, begun: u64) -> (usize, usize) {
    let level = (slot ^ begun).ilog2() / BITS;
    (level as usize, (slot >> (BITS * level)) as usize % SLOTS)
}

/// Where a slot of a level starts, in the same slot of the next level as `begun`.
const fn start_of(begun: u64, level: usize, index: usize) -> u64 {
    let shift = BITS as usize * level;
    let above = begun >> shift >> BITS << BITS;
    (above | index as u64) << shift
}

/// Bits of the index in a level, and slots of a level.
const BITS: u32 = 4;
const SLOTS: usize = 1 << BITS;
/// The shortest slot is 2^10 µs long.
const SLOT_BITS: u32 = 10;
/// Lists of fewer timers know which is the soonest. Threads of few sessions wake up only for what is due, and those of many seldom
/// for nothing.
const SHORT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn timers_fire_in_order_and_to_the_microsecond_however_far_away_they_are(
            steps in prop::collection::vec((0..6u32, 0..1000u64, 0..4u32, 0..1000u64, any::<bool>()), 1..300),
        ) {
            let (mut wheel, mut model, mut now) = (Wheel::default(), BTreeMap::new(), 0);
            let far = |times: u32, unit: u64| unit * 37_u64.pow(times);
            for (id, (ahead, unit, wait, waited, removes)) in steps.into_iter().enumerate() {
                let at = now + far(ahead, unit);
                model.insert((at, id), wheel.insert(Time::from_micros(at), id));
                if removes && let Some((&key, timer)) = model.iter().nth(model.len() / 2) {
                    wheel.remove(*timer);
                    model.remove(&key);
                }
                let soonest = model.keys().next().map(|(at, _)| *at);
                let told = wheel.soonest().map(Time::as_micros);
                if model.len() < SHORT {
                    prop_assert_eq!(told, soonest);
                } else {
                    prop_assert!(told <= soonest, "{:?}", told);
                }
                now += far(wait, waited) / 50;
                let mut last = 0;
                while let Some(id) = wheel.pop(Time::from_micros(now)) {
                    let (&(at, _), _) = model.iter().find(|((_, other), _)| *other == id).unwrap();
                    prop_assert!(last <= at && at <= now, "{} after {} at {}", at, last, now);
                    model.remove(&(at, id));
                    last = at;
                }
                prop_assert!(model.keys().next().is_none_or(|(at, _)| *at > now), "at {}", now);
            }
        }
    }

    #[test]
    fn timers_of_all_times_take_a_few_kilobytes_and_fire() {
        let mut wheel = Wheel::default();
        let times = (0..63).map(|bit| Time::from_micros(1 << bit));
        times.clone().for_each(|at| _ = wheel.insert(at, at));
        let levels = wheel.levels.len();
        assert!(levels <= 14 && size_of::<Level>() <= 264, "{levels} of {}", size_of::<Level>());
        for at in times {
            assert_eq!((wheel.soonest(), wheel.pop(at)), (Some(at), Some(at)));
        }
        assert_eq!(wheel.soonest(), None);
    }

    #[test]
    fn places_are_used_again() {
        let mut wheel = Wheel::default();
        let mut timers: Vec<_> = (0..10).map(|id| wheel.insert(Time::from_millis(id), id)).collect();
        for ms in 10..10_000 {
            for (ahead, timer) in (1..).zip(&mut timers) {
                wheel.remove(*timer);
                *timer = wheel.insert(Time::from_millis(ms + 7 * ahead), ahead);
            }
            assert_eq!(wheel.pop(Time::from_millis(ms)), None);
        }
        assert_eq!(wheel.nodes.len(), 10);
    }
}
