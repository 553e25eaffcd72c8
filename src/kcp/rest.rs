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
        if let Some(work) = &mut self.work {
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
            && !self.congestion.is_paced() // a controller of its own hears of each flush
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kcp::{Config, Recovery};
    use crate::seq::Conv;
    use crate::wire::DatagramQueue;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    type End = Kcp<DatagramQueue>;

    fn sent(end: &mut End) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| end.output_mut().pop().map(<[u8]>::to_vec)).collect()
    }

    proptest! {
        /// Each end has a twin that never skips a flush.
        #[test]
        fn a_skipped_flush_changes_nothing_that_is_sent(
            is_classic in any::<bool>(),
            window in 128..150u16,
            steps in prop::collection::vec((0..8u8, 0..200u64, any::<u8>()), 1..400),
        ) {
            let recovery = if is_classic { Recovery::Classic } else { Config::default().recovery };
            let config = Config { recovery, rcv_wnd: window, ..Config::default() };
            let new = || Kcp::new(Conv(1), &config, DatagramQueue::new()).unwrap();
            let mut ends = [[new(), new()], [new(), new()]];
            let mut on_way: [VecDeque<Vec<u8>>; 2] = Default::default();
            let mut now = Time::ZERO;
            for (what, wait, byte) in steps {
                let at = usize::from(byte % 2);
                let [end, twin] = &mut ends[at];
                match what {
                    0 => for _ in 0..byte / 8 {
                        prop_assert_eq!(end.send(&[byte; 100]), twin.send(&[byte; 100]));
                    }
                    1 => prop_assert_eq!(end.recv(), twin.recv()),
                    2 => {
                        let changed = Config { snd_wnd: (byte / 4).max(1).into(), ..*end.config() };
                        prop_assert_eq!(end.configure(&changed), twin.configure(&changed));
                    }
                    3 => drop(on_way[at].pop_front()), // it is lost
                    _ => {
                        if let Some(datagram) = on_way[at].pop_front().filter(|_| what < 6) {
                            prop_assert_eq!(end.input(now, &datagram), twin.input(now, &datagram));
                        }
                        now = now.after(wait * wait);
                        twin.wake();
                        end.update(now);
                        twin.update(now);
                    }
                }
                let datagrams = sent(end);
                prop_assert_eq!(&datagrams, &sent(twin));
                on_way[1 - at].extend(datagrams);
            }
        }
    }
}
