use super::rival::{Queue, Rival};
use super::start::Start;
use super::tolerance::Tolerance;
use super::window::{Round, Rounds, Window, WindowedMin, micros};
use super::{Ack, CongestionControl, Loss, Sent};
use crate::time::Time;
use std::time::Duration;

/// A delay-aware controller that keeps the queue at the bottleneck short and the path full, for games and bulk alike.
///
/// It aims for a few segments in the queue, and for a delay there that it [learns](Tolerance): next to nothing on a
/// steady path, more on one whose rate varies. Each round trip it moves the window towards what the path would deliver
/// within the shortest round trip and that delay. It ignores loss, unless so much is lost that the queue overflows.
/// Beside [others that fill the queue](Rival) it competes like CUBIC.
///
/// Source: the law is that of Wei, Jin, Low, Hegde, "FAST TCP: Motivation, Architecture, Algorithms, Performance",
/// IEEE/ACM Transactions on Networking 14 (6), 2006, equation 1. Now and then it empties the queue to see the
/// shortest round trip, as BBR does: draft-ietf-ccwg-bbr (5.3.4.3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delay {
    window: Window,
    phase: Phase,
    tolerance: Tolerance,
    rival: Rival,
    rounds: Rounds,
    /// Shortest recent round trip, µs.
    base: WindowedMin,
    /// Shortest round trip of the last part of one, µs: the queue, without delays that only some segments see.
    standing: WindowedMin,
    /// When the last acknowledgement came.
    last: Time,
    /// When the queue was last empty.
    emptied: Time,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The rate of the path is unknown.
    Start(Start),
    /// Waits for a whole round trip to measure the path, which carries at least so much in one.
    Measure { carries: u64 },
    /// Follows the path.
    Steady,
    /// The window is lowered for a round trip, to empty the queue. It was `window` before.
    Drain { window: u64 },
}

impl Delay {
    pub(crate) const fn new() -> Self {
        Self {
            window: Window::NEW,
            phase: Phase::Start(Start::NEW),
            tolerance: Tolerance::NEW,
            rival: Rival::NEW,
            rounds: Rounds::NEW,
            base: WindowedMin::NEW,
            standing: WindowedMin::NEW,
            last: Time::ZERO,
            emptied: Time::ZERO,
        }
    }

    fn on_round(&mut self, now: Time, round: &Round, base: u64, mss: u16) {
        let lost = u64::from(round.lost) * u64::from(mss);
        let overflows = 2 * lost > round.delivered && round.least.saturating_sub(base) > self.tolerance.get();
        if lost > round.delivered || overflows {
            if !self.rival.is_there() {
                self.phase = Phase::Steady;
                self.window.set(self.window.bytes / 10 * 7, mss);
            }
            return;
        }
        match self.phase {
            Phase::Start(_) => return,
            Phase::Measure { carries } => {
                self.phase = Phase::Steady;
                self.tolerance.begin();
                let path = round.delivered.saturating_mul(base) / round.lasted;
                return self.window.set(path.max(carries).min(self.window.bytes), mss);
            }
            Phase::Drain { window } => {
                (self.phase, self.emptied) = (Phase::Steady, now);
                return self.window.set(window, mss);
            }
            Phase::Steady => {}
        }
        if round.lost > 0 {
            self.tolerance.lost();
        }
        let queue = Queue { base, tolerated: self.tolerance.get() };
        if let Some(bytes) = self.rival.on_round(round, queue, (&self.window, &self.rounds), mss) {
            self.window.set(bytes, mss);
        } else if !self.rival.is_there() && now.since(self.emptied) > DRAIN_AFTER {
            self.phase = Phase::Drain { window: self.window.bytes };
            self.window.set(self.window.bytes / 8 * 7, mss);
        }
    }

    /// Moves the window by the part of a round trip that the acknowledged bytes stand for: γ = 7/10 of the way. Source:
    /// FAST TCP, equation 1.
    fn follow(&mut self, ack: &Ack, base: u64, standing: u64) {
        let bytes = self.window.bytes;
        let full = bytes.saturating_mul(base + self.tolerance.get()) / standing;
        let next = (full / 10 * 7).saturating_add(bytes / 10 * 3 + SEGMENTS * u64::from(ack.mss));
        let next = next.min(2 * bytes);
        let step = next.abs_diff(bytes).saturating_mul(u64::from(ack.bytes).min(bytes)) / bytes.max(1);
        self.window.set(if next > bytes { bytes + step } else { bytes - step }, ack.mss);
    }

    fn is_in_first_window(&self) -> bool {
        matches!(self.phase, Phase::Start(Start::First(_)))
    }
}

impl Default for Delay {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for Delay {
    fn window(&self) -> u32 {
        self.window.segments()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.window.open(ack.mss);
        let round = self.rounds.on_ack(ack);
        let competes = self.rival.on_ack(ack);
        let (Some(base), Some(standing)) = (self.base.get(), self.standing.get()) else { return };
        if let Phase::Start(start) = &mut self.phase {
            start.leap(&mut self.window, ack, base);
        }
        let time = micros(ack.now.since(self.last)).min(base);
        let queueing = standing.saturating_sub(base);
        self.last = ack.now;
        if queueing <= (base / 50).max(EMPTY) {
            self.emptied = ack.now;
        }
        if !self.window.is_used(ack) {
            return;
        }
        if let Some(round) = round {
            self.on_round(ack.now, &round, base, ack.mss);
        }
        match self.phase {
            Phase::Start(start) if queueing > UNEVEN => {
                self.phase = Phase::Measure { carries: start.carries() };
                self.rounds.restart(ack.now);
            }
            Phase::Start(start) => start.grow(&mut self.window, ack),
            Phase::Measure { .. } | Phase::Drain { .. } => {}
            Phase::Steady if self.rival.is_there() => {
                if let Some(bytes) = competes {
                    self.window.set(bytes, ack.mss);
                }
            }
            Phase::Steady => {
                self.tolerance.passed(time, queueing <= (base / 32).max(EMPTY));
                self.follow(ack, base, standing);
            }
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.rounds.on_loss(loss);
        if let Some(bytes) = self.rival.on_loss(loss) {
            self.window.set(bytes, loss.mss);
        }
    }

    fn on_needless(&mut self, now: Time) {
        self.rounds.on_needless();
        if let Some(cubic) = self.rival.cubic() {
            cubic.on_needless(now);
        }
    }

    fn on_rtt(&mut self, now: Time, rtt: Duration) {
        self.rounds.on_rtt(now, rtt);
        if let Some(cubic) = self.rival.cubic() {
            cubic.on_rtt(now, rtt);
        }
        let (rtt, srtt) = (micros(rtt), self.rounds.srtt().unwrap_or(0));
        let base = self.base.get().unwrap_or(rtt);
        self.tolerance.on_rtt(rtt, base);
        self.base.add(now, rtt, BASE_WINDOW);
        self.standing.add(now, rtt, Duration::from_micros(srtt.min(base) / 8 * 3));
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.window.on_sent(sent);
        if let Some(cubic) = self.rival.cubic() {
            cubic.on_sent(sent);
        }
    }

    fn on_path_change(&mut self, _now: Time) {
        *self = Self::new();
    }

    fn on_tick(&mut self, _now: Time, mss: u16) {
        self.window.open(mss);
    }

    /// Twice the window per round trip: avoids bursts, and the window stays the limit. Less while it competes, as CUBIC
    /// does. The first window is not paced: its packets have to leave together to show how fast the path is.
    fn pacing_rate(&self) -> Option<u64> {
        if self.is_in_first_window() {
            return None;
        }
        let quarters = if self.rival.is_there() { 5 } else { 8 };
        self.window.rate(quarters, self.standing.get()?)
    }
}

/// FAST's α: segments that a flow aims to keep in the queue. All flows keep as many, and so share evenly.
pub(super) const SEGMENTS: u64 = 3;
/// Queueing that does not end the start, µs, because round trips vary. Source: RFC 9406, `MIN_RTT_THRESH`.
const UNEVEN: u64 = 4000;
/// A shorter queue is empty, µs.
const EMPTY: u64 = 1000;
/// How long the shortest round trip is valid.
const BASE_WINDOW: Duration = Duration::from_secs(12);
/// How long the queue may not be empty. Flows that see it empty together drain it together the next time.
const DRAIN_AFTER: Duration = Duration::from_secs(2);
