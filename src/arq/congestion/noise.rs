//! Delay that is no queue, found by asking the path for more.

use super::rounds::Round;
use crate::time::Time;
use std::time::Duration;

/// Round trips, µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// Smoothed.
    pub(super) srtt: u64,
    /// Their mean deviation.
    pub(super) rttvar: u64,
    /// The shortest of the last while: without a queue.
    pub(super) base: u64,
    /// The shortest of the last half of one.
    pub(super) standing: u64,
}

/// Delay that is no queue. Round trips vary for other reasons as well, such as radio: compared with
/// the shortest one, that looks like a queue that never empties.
///
/// So when it does not empty for a while, the window is raised for a moment. A path that is full
/// delivers no more than before; one that does was not, and as much delay as its round trips vary by
/// is no queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// µs by which a round trip may be longer than the shortest one without meaning a queue.
    allowed: u64,
    /// When half of that is taken back.
    expires: Time,
    /// Round trips since the queue was last empty.
    crowded: u32,
    /// Round trips until the path is asked; more each time it was full.
    patience: u32,
    question: Option<Question>,
}

/// The window is raised.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// Bytes a second before.
    rate: u64,
    /// What is delivered now was sent with the raised window.
    is_heard: bool,
}

/// What to do with the window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Advice {
    /// Nothing: there is no question, or no answer yet.
    Leave,
    /// Raise it by half.
    Raise,
    /// Take that back.
    TakeBack,
}

impl Noise {
    pub(super) const fn new() -> Self {
        Self { allowed: 0, expires: Time::ZERO, crowded: 0, patience: PATIENCE, question: None }
    }

    /// Time that is spent in the queue, µs.
    pub(super) fn queueing(&self, delays: Delays) -> u64 {
        delays.standing.saturating_sub(delays.base).saturating_sub(self.allowed)
    }

    /// Whether the window is raised, and to be left alone.
    pub(super) const fn is_asking(&self) -> bool {
        self.question.is_some()
    }

    /// A round trip is over.
    pub(super) fn on_round(&mut self, now: Time, round: &Round, delays: Delays) -> Advice {
        if now >= self.expires {
            (self.allowed, self.expires) = (self.allowed / 2, now + BELIEVED);
        }
        let rate = round.delivered.saturating_mul(1_000_000) / round.lasted;
        match &mut self.question {
            Some(question) if !question.is_heard => {
                question.is_heard = true;
                Advice::Leave
            }
            Some(question) => {
                let delivers_more = rate / 7 >= question.rate / 5;
                self.answer(now, delivers_more, delays)
            }
            None => self.look(rate, delays),
        }
    }

    /// Asks when the queue has not been empty for too long.
    fn look(&mut self, rate: u64, delays: Delays) -> Advice {
        let is_crowded = self.queueing(delays) > delays.srtt / EMPTY;
        self.crowded = if is_crowded { self.crowded + 1 } else { 0 };
        if self.crowded < self.patience {
            return Advice::Leave;
        }
        self.question = Some(Question { rate, is_heard: false });
        Advice::Raise
    }

    /// With half as much again in flight, an empty path delivers 1.5 times as much; one shared evenly
    /// with another flow that fills it 1.2 times.
    fn answer(&mut self, now: Time, delivers_more: bool, delays: Delays) -> Advice {
        (self.question, self.crowded) = (None, 0);
        if !delivers_more {
            self.patience = (2 * self.patience).min(PATIENCE_MAX);
            return Advice::TakeBack;
        }
        self.patience = PATIENCE;
        let delay = delays.srtt.saturating_sub(delays.base);
        (self.allowed, self.expires) = (delay.min(delays.rttvar * SPREAD), now + BELIEVED);
        Advice::Leave
    }
}

/// Round trips without an empty queue until the path is asked. A queue of Copa's own is empty once in
/// five.
const PATIENCE: u32 = 8;
/// Most of it.
const PATIENCE_MAX: u32 = 96;
/// Part of a round trip that a queue is shorter than when it is empty.
const EMPTY: u64 = 40;
/// Mean deviations of the round trip that may be noise. More is a queue that others keep full, which
/// changes slowly.
const SPREAD: u64 = 4;
/// How long an answer is believed.
const BELIEVED: Duration = Duration::from_secs(10);
