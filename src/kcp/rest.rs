//! Skips flushes that have nothing to do, and frees memory when there has been nothing to do for long.

use super::{Kcp, Work};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::Output;

/// A time in which a flush has nothing to do, unless something arrives or is queued behind `end`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    since: Time,
    until: Time,
    end: Sn,
}

impl<O: Output> Kcp<O> {
    /// There is nothing to flush: notes until when.
    pub(super) fn rest(&mut self, now: Time) {
        let (until, end) = (self.next_work(now), self.sender.ring.end());
        if let Some(work) = &mut self.work
            && !self.congestion.is_paced()
        {
            work.rest = Rest { since: now, until, end };
        }
    }

    /// Whether a flush has certainly nothing to do.
    #[inline]
    pub(super) fn rests(&self, now: Time) -> bool {
        let Some(Work { acks, rest, observer: None, .. }) = self.work.as_deref() else { return false };
        rest.since <= now
            && now < rest.until
            && rest.end == self.sender.ring.end()
            && acks.len() == 0
            && !self.probe.tell
    }

    /// What a flush has to do may have changed.
    #[inline]
    pub(super) fn wake(&mut self) {
        if let Some(work) = &mut self.work {
            work.rest = Rest::default();
        }
    }

    /// Frees memory, once, when nothing has been sent for long.
    #[inline]
    pub(super) fn shrink_if_quiet(&mut self, now: Time) {
        let is_quiet = |work: &Work| now.micros_since(work.flushed) >= QUIET;
        if self.work.as_deref().is_some_and(is_quiet) && self.is_idle() {
            self.shrink();
        }
    }
}

/// Silence after which memory is freed, µs.
const QUIET: u64 = 5_000_000;
