//! Resends to a kcp-go that acknowledges at intervals, over a lossless path: all of them are needless.

use crate::exchange::CONV;
use crate::kcp_go::{self, Knobs, Receiver};
use crate::messages::Load;
use crate::ours;
use crate::relay::Relay;
use std::thread;
use std::time::Duration;
use whitewater::kcp::{Config, Recovery};
use whitewater_sim::LinkConfig;

/// Flush intervals of the receiver, ms. The last is kcp-go's default.
pub const BEATS: [u16; 3] = [10, 40, 100];
/// 60 Hz, 100 bytes.
pub const LOAD: Load = Load { size: 100, count: 700, hz: 60 };

/// Which program sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    /// `kcp::Socket`.
    Ours(Config),
    /// kcp-go, with the settings of this config.
    KcpGo(Config),
}

impl Sender {
    /// The senders to compare, with their names.
    #[must_use]
    pub fn all() -> [(&'static str, Self); 8] {
        let (ikcp, fast, turbo) = (Config::classic(), Config::classic().nodelay(1, 20, 2, true), turbo());
        let by_time = |config| Self::Ours(Config { recovery: Recovery::default(), ..config });
        [
            ("by time", by_time(ikcp)),
            ("by time, fast", by_time(fast)),
            ("by time, turbo", by_time(turbo)),
            ("classic", Self::Ours(ikcp)),
            ("classic, fast", Self::Ours(fast)),
            ("classic, turbo", Self::Ours(turbo)),
            ("kcp-go, fast", Self::KcpGo(fast)),
            ("kcp-go, turbo", Self::KcpGo(turbo)),
        ]
    }

    /// Sends [`LOAD`] to kcp-go, with 10 ms in each direction. Returns the number of resends that the relay saw.
    ///
    /// # Panics
    ///
    /// If that takes too long.
    #[must_use]
    pub fn resends(&self, beat: u16) -> usize {
        let knobs = Knobs { interval: beat, ..Knobs::of(&turbo()) };
        let receiver = Receiver::start(knobs, &LOAD);
        let path = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
        let relay = Relay::start(receiver.address, &path, 0);
        match self {
            Self::Ours(config) => drop(ours::send(relay.address, CONV, config, &LOAD)),
            Self::KcpGo(config) => drop(kcp_go::send(relay.address, Knobs::of(config), &LOAD)),
        }
        relay.pushes().resent()
    }
}

/// [`Sender::resends`] of each sender at each interval. Runs all of them at once.
///
/// # Panics
///
/// If one of them panics.
#[must_use]
pub fn resends(senders: &[Sender]) -> Vec<[usize; BEATS.len()]> {
    thread::scope(|scope| {
        let running =
            senders.iter().map(|sender| BEATS.map(|beat| scope.spawn(move || sender.resends(beat))));
        let running: Vec<_> = running.collect();
        running.into_iter().map(|beats| beats.map(|one| one.join().unwrap())).collect()
    })
}

/// The settings (1, 10, 2, 1) of ikcp.c.
fn turbo() -> Config {
    Config::classic().nodelay(1, 10, 2, true)
}
