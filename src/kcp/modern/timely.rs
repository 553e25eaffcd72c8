//! Finds how many repairs get messages to the peer in time.

use crate::code::budget::WHOLE;
use crate::seq::Sn;
use crate::time::Time;
use std::collections::VecDeque;

/// The share of bytes for repairs with which all but one in a hundred messages are in time, found by trial: each late one
/// raises it, each other one lowers it a little.
///
/// Source of the method: H. Robbins, S. Monro 1951, "A Stochastic Approximation Method".
#[derive(Debug)]
pub(super) struct Timely {
    /// Of [`WHOLE`].
    pub(super) share: u32,
    /// What has been sent for the first time and may not have arrived: the number after each flush's last segment, and
    /// when they left.
    sent: VecDeque<(Sn, Time)>,
}

impl Default for Timely {
    fn default() -> Self {
        Self { share: FIRST, sent: VecDeque::new() }
    }
}

impl Timely {
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
            self.share = if is_late {
                (self.share + self.share / RISE + WHOLE / 256).min(MOST)
            } else {
                self.share - self.share.div_ceil(RISE * LATE)
            };
        }
    }
}

/// By which part of it the share rises if a message is late.
const RISE: u32 = 8;
/// One in this many may be late, with a margin below one in a hundred.
const LATE: u32 = 140;
/// The share before anything is known, and the largest.
const FIRST: u32 = WHOLE / 4;
const MOST: u32 = 2 * WHOLE;
