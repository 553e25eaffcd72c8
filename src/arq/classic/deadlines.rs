//! When the next segment in flight counts as lost.

use crate::seq::Sn;
use crate::time::Millis;
use std::collections::VecDeque;

/// The deadlines of the segments in flight, kept so that nothing is walked to find out that
/// nothing is due, and little to find what is.
///
/// The segments that one flush sends for the first time share a deadline: they are one batch.
/// Batches get old as their deadlines pass, which most segments do not live to see. Of the old ones
/// the first deadline is kept.
#[derive(Debug, Default)]
pub(in crate::arq) struct Deadlines {
    /// The batches, their deadlines rising.
    young: VecDeque<Batch>,
    /// A time at or before the first deadline of the segments before the young.
    old: Option<Millis>,
    /// A segment may be lost already, whatever the time.
    look: bool,
}

/// Segments up to the next batch.
#[derive(Clone, Copy, Debug)]
struct Batch {
    first: Sn,
    /// A time at or before their deadlines.
    at: Millis,
}

impl Deadlines {
    /// Segments from `first` on were sent for the first time, that count as lost at `at`. All
    /// before `una` have been acknowledged.
    pub(in crate::arq) fn sent(&mut self, first: Sn, at: Millis, una: Sn) {
        while self.young.get(1).is_some_and(|second| !una.is_before(second.first)) {
            self.young.pop_front();
        }
        let mut batch = Batch { first, at };
        while let Some(last) = self.young.back()
            && at.since(last.at) < 0
        {
            batch.first = last.first;
            self.young.pop_back();
        }
        self.young.push_back(batch);
    }

    /// Whether to look for lost segments.
    #[inline]
    pub(in crate::arq) fn is_due(&self, now: Millis) -> bool {
        self.look || self.first().is_some_and(|at| at.is_due(now))
    }

    /// When to look for lost segments; `None`: none is in flight.
    pub(in crate::arq) fn due_at(&self, now: Millis) -> Option<Millis> {
        if self.look { Some(now) } else { self.first() }
    }

    /// Starts to look for lost segments. Returns the number up to which to look, at most `nxt`:
    /// [`Self::keep`] is to be called for each that is in flight before it.
    pub(in crate::arq) fn look_up_to(&mut self, now: Millis, nxt: Sn) -> Sn {
        if std::mem::take(&mut self.look) {
            self.young.clear();
        }
        while self.young.front().is_some_and(|batch| batch.at.is_due(now)) {
            self.young.pop_front();
        }
        self.old = None;
        self.young.front().map_or(nxt, |batch| batch.first)
    }

    /// A segment was looked at, and counts as lost at `at`.
    #[inline]
    pub(in crate::arq) fn keep(&mut self, at: Millis) {
        self.old = Some(self.old.map_or(at, |old| old.earlier(at)));
    }

    /// The segment `sn` was looked at `now`, and is to be looked at by the next flush again.
    pub(in crate::arq) fn again(&mut self, sn: Sn, now: Millis) {
        self.keep(now);
        self.look |= self.young.front().is_some_and(|batch| !sn.is_before(batch.first));
    }

    /// The next flush is to look at all segments.
    pub(in crate::arq) fn look(&mut self) {
        self.look = true;
    }

    #[inline]
    pub(in crate::arq) fn clear(&mut self) {
        if !self.young.is_empty() {
            self.young.clear();
        }
        (self.old, self.look) = (None, false);
    }

    #[inline]
    fn first(&self) -> Option<Millis> {
        let young = self.young.front().map(|batch| batch.at);
        match (self.old, young) {
            (Some(old), Some(young)) => Some(old.earlier(young)),
            (old, young) => old.or(young),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_looked_at_when_its_deadline_has_come() {
        let mut deadlines = Deadlines::default();
        for flush in 0..10 {
            deadlines.sent(Sn(100 * flush), Millis(10 * flush + 50), Sn(0));
        }
        assert_eq!(deadlines.due_at(Millis(0)), Some(Millis(50)));
        assert!(!deadlines.is_due(Millis(49)));
        assert_eq!(deadlines.look_up_to(Millis(75), Sn(1000)), Sn(300));
        deadlines.keep(Millis(90));
        deadlines.keep(Millis(78));
        assert_eq!(deadlines.due_at(Millis(75)), Some(Millis(78)));
        assert_eq!(deadlines.look_up_to(Millis(500), Sn(1000)), Sn(1000));
        assert_eq!(deadlines.due_at(Millis(500)), None);
    }

    #[test]
    fn a_deadline_that_falls_back_takes_those_before_it_along() {
        let mut deadlines = Deadlines::default();
        for (first, at) in [(0, 100), (10, 200), (20, 150), (30, 160), (40, 90)] {
            deadlines.sent(Sn(first), Millis(at), Sn(0));
        }
        assert_eq!(deadlines.due_at(Millis(0)), Some(Millis(90)));
        assert_eq!(deadlines.look_up_to(Millis(90), Sn(50)), Sn(50));
    }

    #[test]
    fn batches_that_are_acknowledged_are_forgotten() {
        let mut deadlines = Deadlines::default();
        for flush in 0..10_000 {
            deadlines.sent(Sn(flush), Millis(60_000 + flush), Sn(flush.saturating_sub(5)));
        }
        assert!(deadlines.young.len() <= 6, "{} batches", deadlines.young.len());
    }
}
