//! How a connection ends: what is still sent is waited for, then the peer is told until it says so as well.

use super::super::event::{CloseReason, Undelivered};
use crate::time::Time;
use std::time::Duration;

#[derive(Debug)]
pub(super) enum Life {
    Up,
    /// Closed by us, while what was sent still may arrive.
    Draining {
        reason: CloseReason,
        until: Time,
    },
    /// The peer is told.
    Closing(Box<Closing>),
    Closed,
}

/// CLOSE is sent a few times, and then in answer to whatever still comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) reason: CloseReason,
    pub(super) undelivered: Undelivered,
    since: Time,
    /// Of [`SENDS`], how many have been sent.
    sent: usize,
    /// When an answer may leave next.
    answer_from: Time,
    is_asked: bool,
}

impl Closing {
    pub(super) const fn new(now: Time, reason: CloseReason, undelivered: Undelivered) -> Self {
        Self { reason, undelivered, since: now, sent: 0, answer_from: now, is_asked: false }
    }

    /// The peer has sent something: it does not know yet.
    pub(super) const fn on_packet(&mut self) {
        self.is_asked = true;
    }

    pub(super) fn poll(&mut self, now: Time) -> bool {
        if self.next_send().is_none_or(|at| at > now) {
            return false;
        }
        while self.scheduled().is_some_and(|at| at <= now) {
            self.sent += 1;
        }
        self.is_asked = false;
        self.answer_from = now + ANSWER_EACH;
        true
    }

    pub(super) fn ends_at(&self) -> Time {
        self.since + CLOSING
    }

    pub(super) fn check(&self) -> Time {
        self.next_send().map_or(self.ends_at(), |at| at.min(self.ends_at()))
    }

    fn next_send(&self) -> Option<Time> {
        let answer = self.is_asked.then_some(self.answer_from);
        self.scheduled().into_iter().chain(answer).min()
    }

    fn scheduled(&self) -> Option<Time> {
        SENDS.get(self.sent).map(|ms| self.since + Duration::from_millis(*ms))
    }
}

/// How long the peer is told.
pub(super) const CLOSING: Duration = Duration::from_secs(1);
/// When CLOSE is sent, ms after the start.
const SENDS: [u64; 4] = [0, 50, 150, 350];
/// Least time between a CLOSE and one that answers.
const ANSWER_EACH: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(asked_at: impl Fn(u64) -> bool) -> Vec<u64> {
        let start = Time::from_millis(1000);
        let mut closing = Closing::new(start, CloseReason::Local(1), Undelivered::default());
        let mut sent = Vec::new();
        for ms in 0..1000 {
            if asked_at(ms) {
                closing.on_packet();
            }
            if closing.poll(start + Duration::from_millis(ms)) {
                sent.push(ms);
            }
        }
        assert_eq!(closing.check(), start + CLOSING);
        sent
    }

    #[test]
    fn a_close_is_said_four_times_and_answers_ten_times_a_second_at_most() {
        assert_eq!(sends(|_| false), [0, 50, 150, 350]);
        assert_eq!(sends(|ms| ms == 700), [0, 50, 150, 350, 700]);
        let flooded = sends(|ms| ms < 990);
        assert!(flooded.len() <= 13, "{flooded:?}");
    }
}
