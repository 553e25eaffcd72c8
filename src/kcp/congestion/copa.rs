use super::window::{Round, Rounds, Window, WindowedMin, micros};
use super::{Ack, CongestionControl, Loss, Sent};
use crate::time::Time;
use std::time::Duration;

/// A delay-aware controller that keeps the queue at the bottleneck short, for games and bulk alike.
///
/// It aims at a rate that falls as the queueing delay grows: two segments per queueing delay. It moves its window
/// towards that rate, faster the longer it moves in one direction. All flows through a bottleneck see the same delay
/// and so aim at the same rate. It ignores loss, unless more gets lost than arrives.
///
/// Varying round trips look like a queue. If the queue seems never to empty, the window is raised by a third for a
/// moment; if more is delivered then, some delay is tolerated. docs/TUNING.md measures this. Beside flows that fill the
/// queue, it gets little of the path.
///
/// Source: Arun, Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, with its
/// default δ of 1/2. Its mode to compete with flows that fill the queue is left out. The tolerance, the leap after the
/// first window, and the rate at which slow start ends, are additions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copa {
    window: Window,
    phase: Phase,
    velocity: Velocity,
    rounds: Rounds,
    /// Shortest recent round trip, µs.
    base: WindowedMin,
    /// Shortest round trip of the last half round trip, µs: the queue, without delays that only some segments see.
    standing: WindowedMin,
    noise: Noise,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The first window is in flight. The speed at which it arrives shows how much the path carries.
    First(Train),
    /// The window doubles each round trip until the rate exceeds its aim. Above `carries`, the bytes that the path seems
    /// to carry in a round trip, it grows by a quarter instead.
    SlowStart { carries: u64 },
    /// Waits for a whole round trip to measure the path.
    Measure,
    /// Moves towards its aim.
    Steady,
}

/// Packets that left together, while they arrive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Train {
    /// When the first one arrived.
    began: Time,
    /// Payload bytes that have arrived.
    arrived: u64,
}

/// How fast the window moves.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    is_up: bool,
    /// The paper's v: the window changes by v/δ segments per round trip.
    steps: u64,
    /// Round trips in one direction.
    rounds: u32,
}

impl Copa {
    /// Starts in slow start.
    pub(crate) const fn new() -> Self {
        Self {
            window: Window::NEW,
            phase: Phase::First(Train::NEW),
            velocity: Velocity::START,
            rounds: Rounds::NEW,
            base: WindowedMin::NEW,
            standing: WindowedMin::NEW,
            noise: Noise::NEW,
        }
    }

    fn delays(&self) -> Option<Delays> {
        let (srtt, base, standing) = (self.rounds.srtt()?, self.base.get()?, self.standing.get()?);
        Some(Delays { srtt, rttvar: self.rounds.rttvar, base, standing })
    }

    /// Whether the rate, window / standing, is below its aim, mss / (δ queueing).
    fn is_below_aim(&self, delays: Delays, mss: u16) -> bool {
        let queueing = self.noise.queueing(delays);
        if self.phase.is_start() && queueing <= UNEVEN {
            return true;
        }
        let aim = INVERSE_DELTA * u64::from(mss);
        self.window.bytes.saturating_mul(queueing) <= aim.saturating_mul(delays.standing)
    }

    fn on_round(&mut self, now: Time, round: &Round, delays: Delays, mss: u16) {
        self.velocity.on_round();
        let bytes = self.window.bytes;
        if u64::from(round.lost) * u64::from(mss) > round.delivered {
            (self.phase, self.velocity) = (Phase::Steady, Velocity::START);
            self.window.set(bytes / 10 * 7, mss);
            return;
        }
        match self.phase {
            Phase::First(_) | Phase::SlowStart { .. } => {}
            Phase::Measure => {
                self.phase = Phase::Steady;
                let path = round.delivered.saturating_mul(delays.base) / round.lasted;
                self.window.set(path.min(bytes), mss);
            }
            Phase::Steady => {
                if let Some(bytes) = self.noise.on_round(now, round, delays, bytes) {
                    self.window.set(bytes, mss);
                }
            }
        }
    }

    fn on_acked(&mut self, now: Time, acked: u64, delays: Delays, mss: u16) {
        let is_below = self.is_below_aim(delays, mss);
        match self.phase {
            _ if self.phase.is_start() && !is_below => {
                self.phase = Phase::Measure;
                self.rounds.restart(now);
            }
            Phase::SlowStart { carries } if self.window.bytes > carries => {
                self.window.set(self.window.bytes + acked / 4, mss);
            }
            Phase::First(_) | Phase::SlowStart { .. } => self.window.set(self.window.bytes + acked, mss),
            Phase::Measure => {}
            Phase::Steady if self.noise.question.is_some() => {}
            Phase::Steady => self.walk(is_below, acked, mss),
        }
    }

    /// Raises the window to half of what the path carries, once the first window shows that.
    fn leap(&mut self, ack: &Ack, delays: Delays) {
        if let Phase::First(train) = &mut self.phase
            && let Some(carries) = train.on_ack(ack, delays.base)
        {
            self.phase = Phase::SlowStart { carries };
            let most = LEAP * u64::from(ack.mss);
            self.window.set(self.window.bytes.max((carries / 2).min(most)), ack.mss);
        }
    }

    /// Moves the window by the part of a round trip that `acked` bytes stand for.
    fn walk(&mut self, is_up: bool, acked: u64, mss: u16) {
        let bytes = self.window.bytes;
        let steps = INVERSE_DELTA * self.velocity.steps(is_up);
        let step = acked.saturating_mul(steps).saturating_mul(mss.into()) / bytes.max(1);
        let step = step.min(acked); // at most doubles per round trip
        self.window.set(if is_up { bytes + step } else { bytes.saturating_sub(step) }, mss);
    }
}

impl Default for Copa {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for Copa {
    fn window(&self) -> u32 {
        self.window.segments()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.window.open(ack.mss);
        let round = self.rounds.on_ack(ack);
        let Some(delays) = self.delays() else { return };
        self.leap(ack, delays);
        if !self.window.is_used(ack) {
            self.velocity = Velocity::START;
            return;
        }
        if let Some(round) = round {
            self.on_round(ack.now, &round, delays, ack.mss);
        }
        self.on_acked(ack.now, ack.bytes.into(), delays, ack.mss);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.rounds.on_loss(loss);
    }

    fn on_needless(&mut self, _now: Time) {
        self.rounds.on_needless();
    }

    fn on_rtt(&mut self, now: Time, rtt: Duration) {
        self.rounds.on_rtt(now, rtt);
        let (rtt, srtt) = (micros(rtt), self.rounds.srtt().unwrap_or(0));
        self.base.add(now, rtt, BASE_WINDOW);
        self.standing.add(now, rtt, Duration::from_micros(srtt / 2));
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.window.on_sent(sent);
    }

    fn on_path_change(&mut self, _now: Time) {
        *self = Self::new();
    }

    fn on_tick(&mut self, _now: Time, mss: u16) {
        self.window.open(mss);
    }

    /// Twice the window per round trip: avoids bursts, and the window stays the limit. The first window is not paced:
    /// its packets have to leave together to show how fast the path is.
    fn pacing_rate(&self) -> Option<u64> {
        if matches!(self.phase, Phase::First(_)) {
            return None;
        }
        self.window.rate(8, self.standing.get()?)
    }
}

impl Train {
    const NEW: Self = Self { began: Time::ZERO, arrived: 0 };

    /// The bytes that the path carries in a round trip of `base` µs, once enough have arrived together.
    fn on_ack(&mut self, ack: &Ack, base: u64) -> Option<u64> {
        if micros(ack.now.since(self.began)) > base / 2 {
            *self = Self { began: ack.now, arrived: 0 }; // too few left together, or too many got lost
        }
        self.arrived += u64::from(ack.bytes);
        // Acknowledgements may come together even if the packets did not.
        let lasted = micros(ack.now.since(self.began)).max(base * TRAIN / (2 * LEAP));
        let is_enough = self.arrived >= TRAIN * u64::from(ack.mss);
        is_enough.then(|| self.arrived.saturating_mul(base) / lasted)
    }
}

impl Phase {
    /// Whether the rate of the path is still unknown.
    const fn is_start(self) -> bool {
        matches!(self, Self::First(_) | Self::SlowStart { .. })
    }
}

impl Velocity {
    const START: Self = Self { is_up: true, steps: 1, rounds: 0 };

    fn steps(&mut self, is_up: bool) -> u64 {
        if is_up != self.is_up {
            *self = Self { is_up, ..Self::START };
        }
        self.steps
    }

    fn on_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds >= PATIENCE {
            self.steps = (2 * self.steps).min(STEPS_MAX);
        }
    }
}

/// Segments of the first window that are enough to show how fast the path is: two of the ten may get lost.
const TRAIN: u64 = 8;
/// The most segments to leap to. As many leave at once by the default `snd_wnd` without congestion control.
const LEAP: u64 = 128;
/// Queueing that does not end slow start, µs, because round trips vary. Source: RFC 9406, `MIN_RTT_THRESH`.
const UNEVEN: u64 = 4000;
/// The paper's 1/δ: segments that a flow aims to keep in the queue.
const INVERSE_DELTA: u64 = 2;
/// How long the shortest round trip is valid. The queue empties often enough to measure it again.
const BASE_WINDOW: Duration = Duration::from_secs(6);
/// Round trips in one direction after which the window moves faster.
const PATIENCE: u32 = 3;
/// Far more segments than any window has.
const STEPS_MAX: u64 = 1 << 20;

/// Round trips, µs.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// Smoothed round trip.
    srtt: u64,
    /// Its mean deviation.
    rttvar: u64,
    /// The shortest recent one: without a queue.
    base: u64,
    /// The shortest of the last half round trip.
    standing: u64,
}

/// Delay that is not a queue. Round trips also vary for other reasons, such as radio. Compared with the shortest one,
/// that looks like a queue that never empties.
///
/// So if it does not empty for a while, the window is raised for a moment. A full path delivers no more than before. If
/// more is delivered, the path was not full, and the variation of its round trips is not a queue.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// How much longer than the shortest a round trip may be without meaning a queue, µs.
    allowed: u64,
    /// When half of that is taken back.
    expires: Time,
    /// Round trips since the queue was last empty.
    crowded: u32,
    /// Round trips until the next test. More after each test that found a full path.
    patience: u32,
    /// Until the test is over, the window is raised and otherwise left alone.
    question: Option<Question>,
}

/// A test: the window is raised.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// Bytes per second before it.
    rate: u64,
    /// What is delivered now was sent with the raised window.
    is_heard: bool,
}

impl Noise {
    const NEW: Self =
        Self { allowed: 0, expires: Time::ZERO, crowded: 0, patience: ASK_AFTER, question: None };

    /// Time spent in the queue, µs.
    fn queueing(&self, delays: Delays) -> u64 {
        delays.standing.saturating_sub(delays.base).saturating_sub(self.allowed)
    }

    /// A round trip has ended with this many bytes in the window. Returns the new number of bytes if it is to be raised
    /// or lowered.
    fn on_round(&mut self, now: Time, round: &Round, delays: Delays, bytes: u64) -> Option<u64> {
        if now >= self.expires {
            (self.allowed, self.expires) = (self.allowed / 2, now + BELIEVED);
        }
        let rate = round.delivered.saturating_mul(1_000_000) / round.lasted;
        match &mut self.question {
            Some(question) if !question.is_heard => {
                question.is_heard = true;
                None
            }
            Some(question) => {
                let delivers_more = rate / 5 >= question.rate / 4;
                self.answer(now, delivers_more, delays, bytes)
            }
            None => self.look(rate, delays, bytes),
        }
    }

    /// Starts a test if the queue has not been empty for too long.
    fn look(&mut self, rate: u64, delays: Delays, bytes: u64) -> Option<u64> {
        let is_crowded = self.queueing(delays) > delays.srtt / EMPTY;
        self.crowded = if is_crowded { self.crowded + 1 } else { 0 };
        if self.crowded < self.patience {
            return None;
        }
        self.question = Some(Question { rate, is_heard: false });
        Some(bytes / 3 * 4)
    }

    /// With a third more in flight, an empty path delivers 1.33 times as much; one shared evenly with a flow that fills
    /// it delivers 1.14 times.
    fn answer(&mut self, now: Time, delivers_more: bool, delays: Delays, bytes: u64) -> Option<u64> {
        (self.question, self.crowded) = (None, 0);
        if !delivers_more {
            self.patience = (2 * self.patience).min(ASK_SELDOM);
            return Some(bytes / 4 * 3);
        }
        self.patience = ASK_AFTER;
        let delay = delays.srtt.saturating_sub(delays.base);
        (self.allowed, self.expires) = (delay.min(delays.rttvar * SPREAD), now + BELIEVED);
        None
    }
}

/// Round trips without an empty queue until a test. A queue made by Copa itself is empty once in five.
const ASK_AFTER: u32 = 8;
/// The most such round trips.
const ASK_SELDOM: u32 = 96;
/// The queue counts as empty if its delay is below this part of a round trip.
const EMPTY: u64 = 40;
/// Mean deviations of the round trip that may be noise. Anything more is a queue that others keep full, which changes
/// slowly.
const SPREAD: u64 = 4;
/// How long the result of a test is valid.
const BELIEVED: Duration = Duration::from_secs(10);
