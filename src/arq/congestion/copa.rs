use super::noise::{Advice, Delays, Noise};
use super::rounds::{Round, Rounds, micros};
use super::window::Window;
use super::windowed::WindowedMin;
use super::{Ack, CongestionControl, Loss, Sent};
use crate::time::Time;
use std::time::Duration;

/// A delay-aware controller that keeps the queue of the bottleneck short, for games and bulk alike.
///
/// It aims at a rate that falls as the queueing delay grows, of two segments each such delay, and
/// walks its window up or down towards it, faster the longer it goes the same way. All flows of a
/// bottleneck see the same delay and hence aim at the same rate. Loss says nothing to it, unless more
/// gets lost than arrives.
///
/// Round trips that vary look like a queue. When it seems not to empty, the window is raised by half
/// for a moment, and if more is delivered, some delay is allowed for. docs/TUNING.md has what that is
/// worth. Beside flows that fill the queue it has little of the path.
///
/// Source: Arun, Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet",
/// NSDI 2018, with its default δ of 1/2. Its mode to compete with flows that fill the queue is left
/// out; the allowance, and the rate at which slow start ends, are not in it.
#[derive(Clone, Copy, Debug)]
pub struct Copa {
    window: Window,
    phase: Phase,
    velocity: Velocity,
    rounds: Rounds,
    /// Shortest round trip of the last while, µs.
    base: WindowedMin,
    /// Shortest round trip of the last half of one, µs: the queue, without what only some segments
    /// see of it.
    standing: WindowedMin,
    noise: Noise,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The window doubles each round trip until the rate is above its aim.
    SlowStart,
    /// It waits for a whole round trip that measures the path.
    Measure,
    /// It walks towards its aim.
    Steady,
}

/// How fast the window walks.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    is_up: bool,
    /// The paper's v: a round trip changes the window by v/δ segments.
    steps: u64,
    /// Round trips in one direction.
    rounds: u32,
}

impl Copa {
    /// In slow start.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            window: Window::new(),
            phase: Phase::SlowStart,
            velocity: Velocity::START,
            rounds: Rounds::new(),
            base: WindowedMin::new(),
            standing: WindowedMin::new(),
            noise: Noise::new(),
        }
    }

    fn delays(&self) -> Option<Delays> {
        let (srtt, base, standing) = (self.rounds.srtt()?, self.base.get()?, self.standing.get()?);
        Some(Delays { srtt, rttvar: self.rounds.rttvar(), base, standing })
    }

    /// Whether the rate, window / standing, is below its aim, mss / (δ queueing).
    fn is_below_aim(&self, delays: Delays, mss: u16) -> bool {
        let queueing = self.noise.queueing(delays);
        let aim = INVERSE_DELTA * u64::from(mss);
        self.window.bytes().saturating_mul(queueing) <= aim.saturating_mul(delays.standing)
    }

    fn on_round(&mut self, now: Time, round: &Round, delays: Delays, mss: u16) {
        self.velocity.on_round();
        let bytes = self.window.bytes();
        if u64::from(round.lost) * u64::from(mss) > round.delivered {
            (self.phase, self.velocity) = (Phase::Steady, Velocity::START);
            self.window.set(bytes / 10 * 7, mss);
            return;
        }
        match self.phase {
            Phase::SlowStart => {}
            Phase::Measure => {
                self.phase = Phase::Steady;
                let path = round.delivered.saturating_mul(delays.base) / round.lasted;
                self.window.set(path.min(bytes), mss);
            }
            Phase::Steady => match self.noise.on_round(now, round, delays) {
                Advice::Leave => {}
                Advice::Raise => self.window.set(bytes / 2 * 3, mss),
                Advice::TakeBack => self.window.set(bytes / 3 * 2, mss),
            },
        }
    }

    fn on_acked(&mut self, now: Time, acked: u64, delays: Delays, mss: u16) {
        let is_below = self.is_below_aim(delays, mss);
        match self.phase {
            Phase::SlowStart if is_below => self.window.set(self.window.bytes() + acked, mss),
            Phase::SlowStart => {
                self.phase = Phase::Measure;
                self.rounds.restart(now);
            }
            Phase::Measure => {}
            Phase::Steady if self.noise.is_asking() => {}
            Phase::Steady => self.walk(is_below, acked, mss),
        }
    }

    /// Walks, by what `acked` bytes are worth of a round trip.
    fn walk(&mut self, is_up: bool, acked: u64, mss: u16) {
        let bytes = self.window.bytes();
        let steps = INVERSE_DELTA * self.velocity.steps(is_up);
        let step = acked.saturating_mul(steps).saturating_mul(mss.into()) / bytes.max(1);
        let step = step.min(acked); // a round trip doubles it at most
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

    /// Twice the window each round trip: no bursts, and yet it is the window that limits.
    fn pacing_rate(&self) -> Option<u64> {
        self.window.rate(8, self.standing.get()?)
    }
}

impl Velocity {
    const START: Self = Self { is_up: true, steps: 1, rounds: 0 };

    /// Steps to go, up or down.
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

/// The paper's 1/δ: segments that a flow aims to have in the queue.
const INVERSE_DELTA: u64 = 2;
/// How long the shortest round trip is believed: the queue empties often enough to measure it again.
const BASE_WINDOW: Duration = Duration::from_secs(6);
/// Round trips in one direction after which the window walks faster.
const PATIENCE: u32 = 3;
/// Far more than any window has segments.
const STEPS_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::super::model::{Model, Path};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_fills_a_path_with_a_short_queue() {
        for (rate, rtt) in [(50_000, 100), (1_000_000, 20), (2_500_000, 60), (12_500_000, 150)] {
            let mut model = Model::new(Copa::new(), Path::new(rate, rtt));
            model.run(5 * SECOND);
            let outcome = model.run(10 * SECOND);
            assert!(outcome.share > 0.95 && outcome.queued < 8.0, "{rate} at {rtt} ms: {outcome:?}");
        }
    }

    #[test]
    fn it_slows_down_when_more_is_lost_than_arrives() {
        let mut model = Model::new(Copa::new(), Path::new(2_500_000, 60));
        model.run(5 * SECOND);
        let before = model.control.window();
        let (now, fast) = (model.now, 2 * before);
        model.control.on_loss(&Loss { fast, ..Loss::none(now) });
        model.run(Duration::from_millis(100));
        assert!(model.control.window() < before * 8 / 10, "{before}, then {}", model.control.window());
    }

    #[test]
    fn a_longer_path_slows_it_down_for_a_while_only() {
        let mut model = Model::new(Copa::new(), Path::new(2_500_000, 60));
        model.run(5 * SECOND);
        model.path.base += Duration::from_millis(15);
        model.run(10 * SECOND);
        let outcome = model.run(4 * SECOND);
        assert!(outcome.share > 0.95, "{outcome:?}");
    }

    #[test]
    fn it_follows_a_path_that_narrows_and_widens() {
        let mut model = Model::new(Copa::new(), Path::new(2_500_000, 60));
        model.run(5 * SECOND);
        for rate in [500_000, 2_500_000] {
            model.path.rate = rate;
            model.run(3 * SECOND);
            let outcome = model.run(3 * SECOND);
            assert!(outcome.share > 0.9 && outcome.queued < 8.0, "{rate}: {outcome:?}");
        }
    }

    #[test]
    fn an_application_that_sends_little_leaves_the_window_alone() {
        let mut model = Model::new(Copa::new(), Path::new(2_500_000, 60));
        model.run(5 * SECOND);
        let before = model.control.window();
        model.path.app = Some(100_000);
        model.run(30 * SECOND);
        let after = model.control.window();
        assert!(after.abs_diff(before) <= before / 10, "{before}, then {after}");
        let mut model = Model::new(Copa::new(), Path { app: Some(100_000), ..Path::new(2_500_000, 60) });
        model.run(30 * SECOND);
        assert!((10..=20).contains(&model.control.window()), "{}", model.control.window());
    }
}
