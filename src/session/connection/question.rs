//! Challenges for addresses where the peer may be.

use super::path::{Came, Route};
use crate::time::Time;
use std::time::Duration;

/// The questions that were asked, by number. The challenge of each follows from the number and a key of this end.
#[derive(Debug, Default)]
pub(super) struct Questions(u32);

/// Whether the peer is at an address. The challenge is sent nowhere else, so whoever repeats it has received it there.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) route: Route,
    pub(super) number: u32,
    /// When it is asked next.
    pub(super) ask_at: Time,
    pub(super) dies_at: Time,
}

/// An address from which a fresh packet came, and which has not been moved to yet.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) question: Question,
    pub(super) has_answered: bool,
    /// Bytes received from it, and bytes sent to it, which are never more.
    pub(super) received: usize,
    pub(super) sent: usize,
}

impl Questions {
    pub(super) fn next(&mut self, now: Time, route: Route, patience: Duration) -> Question {
        let Self(number) = self;
        *number = number.wrapping_add(1);
        Question { route, number: *number, ask_at: now, dies_at: now + patience }
    }
}

impl Question {
    pub(super) fn ask(&mut self, now: Time) -> (Route, u32) {
        self.ask_at = now + ASK_AGAIN;
        (self.route, self.number)
    }
}

impl Candidate {
    pub(super) const fn new(question: Question, came: &Came) -> Self {
        Self { question, has_answered: false, received: came.len, sent: 0 }
    }

    /// One that needs not be asked.
    pub(super) const fn proven(question: Question) -> Self {
        Self { question, has_answered: true, received: 0, sent: 0 }
    }

    /// Takes a packet that pays for what is sent there.
    pub(super) const fn on_paid(&mut self, came: &Came) {
        self.received = self.received.saturating_add(came.len);
        if came.is_newest {
            self.question.route.sid = came.sid;
        }
    }

    /// When it is given up; never: it has answered, and waits for what the peer says at home.
    pub(super) const fn dies_at(&self) -> Time {
        if self.has_answered { Time::NEVER } else { self.question.dies_at }
    }

    /// When it is asked next, if that takes `len` bytes.
    pub(super) fn asks_at(&self, len: usize) -> Time {
        let can_pay = self.sent.saturating_add(len) <= self.received;
        if can_pay && !self.has_answered { self.question.ask_at } else { Time::NEVER }
    }
}

/// An address is asked again after this time, a candidate if it has paid for it.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
