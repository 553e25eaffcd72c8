//! Finds how many repairs get messages to the peer in time.

use crate::code::Trial;
use crate::seq::Sn;
use crate::time::Time;
use std::collections::VecDeque;

/// Judges which messages were in time.
#[derive(Debug, Default)]
pub(super) struct Timely {
    trial: Trial,
    /// What has been sent for the first time and may not have arrived: the number after each flush's last segment, and
    /// when they left.
    sent: VecDeque<(Sn, Time)>,
}

impl Timely {
    /// The share of bytes for repairs, of `WHOLE`.
    pub(super) const fn share(&self) -> u32 {
        self.trial.share()
    }

    pub(super) fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<(Sn, Time)>()
    }

    /// The segments before `end` that are not noted yet left at `now`.
    pub(super) fn sent(&mut self, end: Sn, now: Time) {
        self.sent.push_back((end, now));
    }

    /// Everything before `una` has arrived. Some of it had been lost, and what replaced it left at `replaced`. `None`:
    /// nothing had. Whatever waited for more than `most` µs for that is late.
    pub(super) fn arrived(&mut self, una: Sn, replaced: Option<Time>, most: u64) {
        while let Some(&(end, left)) = self.sent.front()
            && !una.is_before(end)
        {
            self.sent.pop_front();
            let is_late = replaced.is_some_and(|replaced| replaced.micros_since(left) > most);
            self.trial.judge(is_late);
        }
    }
}
