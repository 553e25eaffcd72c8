//! Finds out whether others keep the queue full, and then competes with them.

use super::delay::SEGMENTS;
use super::window::{Round, Rounds, Window};
use super::{Ack, CongestionControl, Cubic, Loss};

/// A controller that keeps the queue short gives way to flows that fill it, until it has nothing left. So while others
/// keep the queue full, CUBIC sets the window.
///
/// The queue is kept full by others if it stays long for a few round trips, although the window shrinks meanwhile. Now
/// and then, after a loss and when the window is back where it was, it is lowered to what the path delivers in a round
/// trip without queue. If the queue empties, there was nobody else.
///
/// Source: the two modes are those of Copa: Arun, Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the
/// Internet", NSDI 2018 (2.2). To ask by sending less is an addition, because CUBIC alone never empties a long queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    /// Round trips in a row with a long queue.
    crowded: u32,
    /// About the largest window of the last minute, bytes: where to begin to compete.
    largest: u64,
    /// About the largest rate of the last minute, bytes per second.
    fastest: u64,
    /// `Some`: others keep the queue full.
    contest: Option<Contest>,
}

#[derive(Clone, Copy, Debug)]
struct Contest {
    cubic: Cubic,
    /// Round trips since the last loss or question.
    rounds: u32,
    has_lost: bool,
    /// Round trips in a row without a queue.
    empty: u32,
    question: Option<Question>,
}

/// The window is lowered to see whether the queue empties.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// The window before.
    window: u64,
    rounds: u32,
}

/// What is known of the queue, µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Shortest round trip.
    pub(super) base: u64,
    /// The delay to aim for.
    pub(super) tolerated: u64,
}

impl Rival {
    pub(super) const NEW: Self = Self { crowded: 0, largest: 0, fastest: 0, contest: None };

    pub(super) const fn is_there(&self) -> bool {
        self.contest.is_some()
    }

    /// A round trip has ended. Returns the window to take, if any.
    pub(super) fn on_round(
        &mut self,
        round: &Round,
        queue: Queue,
        own: (&Window, &Rounds),
        mss: u16,
    ) -> Option<u64> {
        let rate = round.delivered.saturating_mul(1_000_000) / round.lasted;
        self.fastest = (self.fastest / 1000 * 995).max(rate).max(1);
        // One controller by delay keeps some segments in the queue, and several keep more.
        let margin = MARGIN + queue.base / 10 + 2 * SEGMENTS * u64::from(mss) * 1_000_000 / self.fastest;
        let delay = round.least.saturating_sub(queue.base);
        let is_long = round.samples > 0 && delay > LONG * queue.tolerated + margin;
        let is_empty = round.samples > 0 && delay < queue.tolerated + margin / 2;
        let carries = (round.delivered.saturating_mul(queue.base) / round.lasted).max(1);
        match &mut self.contest {
            None => {
                let (window, rounds) = own;
                self.largest = (self.largest / 1000 * 998).max(window.bytes);
                self.crowded = if is_long { self.crowded + 1 } else { 0 };
                if self.crowded >= CROWDED {
                    let cubic = Cubic::beside_others(*window, *rounds, self.largest, mss);
                    self.contest =
                        Some(Contest { cubic, rounds: 0, has_lost: false, empty: 0, question: None });
                }
                None
            }
            Some(contest) => {
                let (window, is_over) = contest.on_round(is_empty, carries, mss);
                if is_over {
                    (self.contest, self.crowded) = (None, 0);
                }
                window
            }
        }
    }

    /// The window of the contest, if there is one and it is CUBIC's.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<u64> {
        let contest = self.contest.as_mut().filter(|contest| contest.question.is_none())?;
        contest.cubic.on_ack(ack);
        Some(contest.cubic.bytes())
    }

    pub(super) fn on_loss(&mut self, loss: &Loss) -> Option<u64> {
        let contest = self.contest.as_mut().filter(|contest| contest.question.is_none())?;
        contest.has_lost = true;
        if !contest.cubic.is_recovering() {
            contest.rounds = 0;
        }
        contest.cubic.on_loss(loss);
        Some(contest.cubic.bytes())
    }

    /// For what CUBIC is told besides.
    pub(super) fn cubic(&mut self) -> Option<&mut Cubic> {
        self.contest.as_mut().map(|contest| &mut contest.cubic)
    }
}

impl Contest {
    /// Returns the window to take, if any, and whether there is nobody to compete with.
    fn on_round(&mut self, is_empty: bool, carries: u64, mss: u16) -> (Option<u64>, bool) {
        self.rounds += 1;
        self.empty = if is_empty { self.empty + 1 } else { 0 };
        if let Some(Question { window, rounds }) = &mut self.question {
            *rounds += 1;
            if is_empty {
                return (Some(carries), true);
            }
            if *rounds < ANSWER {
                return (None, false);
            }
            self.cubic.set(*window, mss);
            (self.question, self.has_lost, self.rounds) = (None, false, 0);
            return (Some(self.cubic.bytes()), false);
        }
        let is_back = self.has_lost && self.rounds > ASK_AFTER && self.cubic.is_back();
        if is_back || self.rounds > ASK_SELDOM {
            let window = self.cubic.bytes();
            self.question = Some(Question { window, rounds: 0 });
            return (Some((carries / 10 * 9).min(window)), false);
        }
        (None, self.empty > LEFT)
    }
}

/// How many times the tolerated delay is a long queue, besides a tenth of the shortest round trip and this, µs.
const LONG: u64 = 4;
const MARGIN: u64 = 4000;
/// Round trips with a long queue until others are the cause. A path that narrows has a short queue again after 3 or 4.
const CROWDED: u32 = 6;
/// Round trips in which the queue can empty.
const ANSWER: u32 = 3;
/// Round trips from a loss to a question, and from one question to the next if nothing is lost. Right after a loss the
/// queue may be empty because others have slowed down as well.
const ASK_AFTER: u32 = 15;
const ASK_SELDOM: u32 = 100;
/// Round trips without queue after which the others are gone.
const LEFT: u32 = 20;
