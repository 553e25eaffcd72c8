use super::{CongestionControl, Sent};
use crate::config::ConfigError;
use crate::pace::{Conditions, Loss, Pace, PaceConfig, PaceState, Rtt};
use crate::time::Time;
use std::time::Duration;

/// Good and bad mode with a rate each: the rule of [`pace`](crate::pace), and nothing else.
///
/// The rates are those of full segments a second: the bytes of so many are paced, whether few large
/// segments leave or many small ones. Only the windows of both ends limit what is in flight. A
/// transmission counts as lost when it is not the first of its segment.
///
/// For a stream of known, small size, such as a game's, on a path where nothing but too much of it
/// makes round trips longer than the limit. It does not look for more room, so for bulk take another
/// one.
#[derive(Clone, Debug)]
pub struct GoodBad {
    pace: Pace,
    rtt: Rtt,
    loss: Loss,
    /// Largest payload of a segment, bytes.
    mss: u16,
}

impl GoodBad {
    /// Starts in good mode.
    ///
    /// # Errors
    ///
    /// When a field of `config` is out of range.
    pub fn new(config: &PaceConfig) -> Result<Self, ConfigError> {
        Ok(Self { pace: Pace::new(config)?, rtt: Rtt::default(), loss: Loss::default(), mss: MSS })
    }

    /// The mode, since when, and what it takes to get out of bad mode.
    #[must_use]
    pub const fn state(&self) -> PaceState {
        self.pace.state
    }

    fn choose_mode(&mut self, now: Time) {
        self.pace.update(now, &Conditions::of(&self.rtt, &self.loss));
    }
}

impl CongestionControl for GoodBad {
    fn window(&self) -> u32 {
        u32::MAX
    }

    fn on_rtt(&mut self, now: Time, rtt: Duration) {
        self.rtt.sample(now, rtt);
        self.choose_mode(now);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.loss.sample(sent.xmit > 1);
    }

    fn on_path_change(&mut self, _now: Time) {
        (self.rtt, self.loss) = (Rtt::default(), Loss::default());
    }

    fn on_tick(&mut self, now: Time, mss: u16) {
        self.mss = mss;
        self.choose_mode(now);
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(u64::from(self.pace.rate()) * u64::from(self.mss))
    }
}

/// Before the first tick: that of the default mtu.
const MSS: u16 = 1376;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_follows_smoothed_round_trips_and_paces_full_segments() {
        let mut control = GoodBad::new(&PaceConfig::default()).unwrap();
        control.on_tick(Time::ZERO, 1000);
        // 200 + 0.1 x 400, then + 0.1 x 360: one late echo is no bad path, two in a row are.
        for (ms, rtt, rate) in [(0, 200, 30_000), (10, 600, 30_000), (20, 600, 10_000)] {
            control.on_rtt(Time::from_millis(ms), Duration::from_millis(rtt));
            assert_eq!(control.pacing_rate(), Some(rate));
        }
    }

    #[test]
    fn resends_make_it_bad_where_loss_counts() {
        let mut control = GoodBad::new(&PaceConfig { loss: Some(20), ..PaceConfig::default() }).unwrap();
        for number in 0..100 {
            let xmit = if number % 4 == 0 { 2 } else { 1 };
            let sn = crate::seq::Sn(number);
            control.on_sent(&Sent { now: Time::ZERO, sn, len: 9, xmit, in_flight: 1 });
        }
        control.on_tick(Time::ZERO, 1000);
        assert_eq!(control.pacing_rate(), Some(10_000));
    }
}
