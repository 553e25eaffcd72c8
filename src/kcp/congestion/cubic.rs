use super::window::{INITIAL, Round, Rounds, Window, micros};
use super::{Ack, CongestionControl, Loss, Sent};
use crate::time::Time;
use std::time::Duration;

/// CUBIC, as in most of TCP: it takes loss as the sign of a full path, and fills the queue at the bottleneck until
/// there is loss. Gives a fair share beside such flows.
///
/// It counts bytes, not acknowledgements. It reduces at most once per round trip, and leaves slow start before the
/// first loss if round trips grow. Paced at twice the window per round trip in slow start, later at 5/4. A reduction for
/// segments that had arrived is undone.
///
/// Source: RFC 9438, with fast convergence and the Reno-friendly region; RFC 9406 for the end of slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cubic {
    window: Window,
    /// Where slow start ends, bytes.
    ssthresh: u64,
    /// The window before the last reduction, bytes: where the curve is flat.
    w_max: u64,
    /// The current curve. `None`: it begins with the next acknowledgement.
    epoch: Option<Epoch>,
    rounds: Rounds,
    /// Shortest round trip of the previous round, µs.
    least: u64,
    /// Round trips of the conservative phase of slow start, and the shortest one when it began, µs. `None`: it has not
    /// begun.
    conservative: Option<(u32, u64)>,
    /// The window was reduced, and nothing sent since then has arrived.
    is_recovering: bool,
    /// The state before the last reduction, until a round trip after it is over.
    before: Option<Before>,
}

/// What a reduction changes.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: u64,
    ssthresh: u64,
    w_max: u64,
    epoch: Option<Epoch>,
    /// Segments resent since then, and round trips left to learn that they had arrived.
    lost: u32,
    rounds: u32,
}

/// A curve of the window, W_cubic(t) = C (t - K)^3 + W_max, with the window that Reno would have.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Time,
    /// Time until it is flat, ms.
    k: u64,
    /// The window where it is flat, bytes.
    origin: u64,
    /// The window that Reno would have, bytes.
    w_est: u64,
}

impl Cubic {
    /// Starts in slow start.
    pub(crate) const fn new() -> Self {
        Self {
            window: Window::NEW,
            ssthresh: u64::MAX,
            w_max: 0,
            epoch: None,
            rounds: Rounds::NEW,
            least: 0,
            conservative: None,
            is_recovering: false,
            before: None,
        }
    }

    /// Begins with a window of `bytes`, in the conservative phase of slow start: others fill the path already.
    pub(super) fn beside_others(window: Window, rounds: Rounds, bytes: u64, mss: u16) -> Self {
        let mut cubic = Self { window, rounds, conservative: Some((0, 0)), w_max: bytes, ..Self::new() };
        cubic.window.set(bytes, mss);
        cubic
    }

    pub(super) fn set(&mut self, bytes: u64, mss: u16) {
        self.window.set(bytes, mss);
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.window.bytes
    }

    pub(super) const fn is_recovering(&self) -> bool {
        self.is_recovering
    }

    /// Whether the window is about as large as before the last reduction.
    pub(super) const fn is_back(&self) -> bool {
        self.window.bytes >= self.w_max / 100 * 97
    }

    const fn is_in_slow_start(&self) -> bool {
        self.window.bytes < self.ssthresh
    }

    /// Slows slow start down if round trips have grown, and ends it if they stay so for some time. Source: RFC 9406 (4.2).
    fn on_round(&mut self, round: &Round) {
        self.is_recovering = false;
        self.before = self
            .before
            .take()
            .filter(|before| before.rounds > 1)
            .map(|before| Before { rounds: before.rounds - 1, ..before });
        let has_samples = round.samples >= SAMPLES_MIN;
        if self.is_in_slow_start() {
            let grown = self.least + (self.least / 8).clamp(GROWTH_MIN, GROWTH_MAX);
            match &mut self.conservative {
                None if self.least > 0 && has_samples && round.least >= grown => {
                    self.conservative = Some((0, round.least));
                }
                None => {}
                Some((_, began)) if has_samples && round.least < *began => self.conservative = None,
                Some((rounds, _)) => {
                    *rounds += 1;
                    if *rounds >= CONSERVATIVE_ROUNDS {
                        self.ssthresh = self.window.bytes;
                        self.conservative = None;
                    }
                }
            }
        }
        self.least = if round.samples > 0 { round.least } else { 0 };
    }

    /// Follows the curve. Source: RFC 9438 (4.2 to 4.5).
    fn avoid_congestion(&mut self, ack: &Ack) {
        let (bytes, w_max, mss) = (self.window.bytes, self.w_max, u64::from(ack.mss));
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(ack.now, bytes, w_max, mss));
        epoch.w_est = epoch.w_est.saturating_add(reno_growth(ack.bytes.into(), bytes, w_max, mss));
        let t = micros(ack.now.since(epoch.began)) / 1000;
        let next = if epoch.at(t, mss) < epoch.w_est {
            bytes.max(epoch.w_est)
        } else {
            let rtt = self.rounds.srtt().unwrap_or(0) / 1000;
            let target = epoch.at(t + rtt, mss).clamp(bytes, bytes + bytes / 2);
            bytes + (target - bytes).saturating_mul(ack.bytes.into()) / bytes.max(1)
        };
        self.window.set(next, ack.mss);
    }
}

impl Default for Cubic {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for Cubic {
    fn window(&self) -> u32 {
        self.window.segments()
    }

    fn ssthresh(&self) -> Option<u32> {
        u32::try_from(self.window.in_segments(self.ssthresh)).ok()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.window.open(ack.mss);
        if let Some(round) = self.rounds.on_ack(ack) {
            self.on_round(&round);
        }
        if !self.window.is_used(ack) {
            self.epoch = None; // idle time is not part of the curve
            return;
        }
        if self.is_in_slow_start() && !self.is_recovering {
            let part = if self.conservative.is_some() { CONSERVATIVE_GROWTH } else { 1 };
            self.window.set(self.window.bytes + u64::from(ack.bytes) / part, ack.mss);
        } else if !self.is_recovering {
            self.avoid_congestion(ack);
        }
    }

    /// Reduces the window, at most once per round trip; to the minimum if half of the flight timed out. Source: RFC
    /// 9438 (4.6 to 4.8).
    ///
    /// The first window is too small to fill a path. Part of it gets lost at a listener that asks for a proof of the
    /// address first, and keeps one datagram until then. So its loss does not end slow start.
    fn on_loss(&mut self, loss: &Loss) {
        let lost = loss.timeouts.saturating_add(loss.fast);
        if self.is_recovering {
            if let Some(before) = &mut self.before {
                before.lost = before.lost.saturating_add(lost);
            }
            return;
        }
        let Self { ssthresh, w_max, epoch, .. } = *self;
        let bytes = self.window.bytes;
        self.before = Some(Before { window: bytes, ssthresh, w_max, epoch, lost, rounds: UNDO_ROUNDS });
        let is_unready = self.w_max == 0 && bytes < 2 * INITIAL * u64::from(loss.mss);
        self.w_max = if bytes < self.w_max { bytes / 20 * 17 } else { bytes };
        let reduced = (bytes / 10 * 7).max(1);
        self.ssthresh = if is_unready { self.ssthresh } else { reduced };
        let is_persistent = loss.timeouts > 1 && loss.timeouts >= loss.in_flight / 2;
        self.window.set(if is_persistent { 0 } else { reduced }, loss.mss);
        self.epoch = None;
        self.is_recovering = true;
        self.rounds.restart(loss.now);
    }

    /// Undoes the reduction once all segments that were resent for it had arrived. Source: RFC 9438 (4.9), RFC 4015.
    fn on_needless(&mut self, _now: Time) {
        let Some(before) = &mut self.before else { return };
        before.lost = before.lost.saturating_sub(1);
        if before.lost == 0 {
            let Before { window, ssthresh, w_max, epoch, .. } = *before;
            self.window.bytes = self.window.bytes.max(window);
            (self.ssthresh, self.w_max, self.epoch) = (ssthresh, w_max, epoch);
            (self.before, self.is_recovering) = (None, false);
        }
    }

    fn on_rtt(&mut self, now: Time, rtt: Duration) {
        self.rounds.on_rtt(now, rtt);
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

    fn pacing_rate(&self) -> Option<u64> {
        let quarters = if self.is_in_slow_start() { 8 } else { 5 };
        self.window.rate(quarters, self.rounds.srtt()?)
    }
}

impl Epoch {
    fn new(began: Time, bytes: u64, w_max: u64, mss: u64) -> Self {
        let below = u128::from(w_max.saturating_sub(bytes));
        let k = cube_root(below * MS3 * 10 / u128::from(4 * mss.max(1)));
        Self { began, k, origin: w_max.max(bytes), w_est: bytes }
    }

    /// W_cubic at `t` ms after the start, bytes.
    fn at(&self, t: u64, mss: u64) -> u64 {
        let distance = u128::from(t.abs_diff(self.k));
        let height = distance.pow(3) * u128::from(4 * mss) / (10 * MS3);
        let height = u64::try_from(height).unwrap_or(u64::MAX);
        if t < self.k { self.origin.saturating_sub(height) } else { self.origin.saturating_add(height) }
    }
}

/// Bytes by which Reno's window grows for `acked` bytes. α is 3 (1 - β) / (1 + β) until the window is as large as
/// before the reduction, then 1. Source: RFC 9438 (4.3).
fn reno_growth(acked: u64, bytes: u64, w_max: u64, mss: u64) -> u64 {
    let growth = acked.saturating_mul(mss) / bytes.max(1);
    if bytes < w_max { growth * 9 / 17 } else { growth }
}

/// The largest integer whose cube is at most `cube`.
fn cube_root(cube: u128) -> u64 {
    let mut root = 0u64;
    for bit in (0..42).rev() {
        let next = root | 1 << bit;
        if u128::from(next).pow(3) <= cube {
            root = next;
        }
    }
    root
}

/// ms^3 per s^3: CUBIC's C is 0.4 segments per s^3.
const MS3: u128 = 1_000_000_000;
/// Smallest and largest growth of the round trip that ends slow start, µs. Source: RFC 9406 (4.3).
const GROWTH_MIN: u64 = 4000;
const GROWTH_MAX: u64 = 16_000;
/// Round trips needed before their minimum is meaningful. Source: RFC 9406 (4.3).
const SAMPLES_MIN: u32 = 8;
/// The conservative phase grows the window this many times slower, and lasts this many round trips. Source: RFC 9406 (4.3).
const CONSERVATIVE_GROWTH: u64 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;
/// Round trips after a reduction in which news that it was needless may come.
const UNDO_ROUNDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_flat_at_the_last_maximum() {
        // RFC 9438: 100 segments, reduced to 70, are back after K = cbrt(30 / 0.4) s.
        let (mss, now) = (1000, Time::ZERO);
        let epoch = Epoch::new(now, 70_000, 100_000, mss);
        assert_eq!(epoch.k, 4217);
        let at = [0, 2000, 4217, 6000, 8434].map(|t| epoch.at(t, mss) / 1000);
        assert_eq!(at, [70, 95, 100, 102, 129]);
        assert_eq!(Epoch::new(now, 70_000, 0, mss).at(0, mss), 70_000, "without a maximum it begins flat");
    }

    #[test]
    fn a_cube_root_is_exact() {
        for root in [1, 2, 3, 1000, 4217, 1 << 20, (1 << 42) - 1] {
            let cube = u128::from(root).pow(3);
            assert_eq!((cube_root(cube), cube_root(cube + 1)), (root, root));
            assert_eq!(cube_root(cube - 1), root - 1);
        }
    }
}
