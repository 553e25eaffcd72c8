//! Challenges for addresses where the peer may be.

use super::path::Route;
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

/// An address is asked again after this time, a candidate if it has paid for it.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
