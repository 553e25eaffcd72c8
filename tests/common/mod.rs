//! Two control blocks joined by a bad link, in virtual time: same seed, same bytes.
//!
//! [`talk`] is what both ends say; [`wire`] writes and reads datagrams by hand.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(unused_imports, reason = "each test binary uses its part")]

pub(crate) mod beat;
pub(crate) mod configs;
pub(crate) mod machine;
pub(crate) mod measured;
mod message;
mod packets;
pub(crate) mod phone;
pub(crate) mod rogue;
pub(crate) mod router;
pub(crate) mod sessions;
mod talk;
#[cfg(feature = "crypto")]
pub(crate) mod tokens;
pub(crate) mod told;
mod wire;

pub(crate) use message::{Digit, packed, unpacked};
pub(crate) use packets::{PacketEnd, packet_pair, payload};
use std::time::Duration;
pub(crate) use talk::{End, Pair, Setup, Talk, clean, kcp, lossy, numbered, pair, rough};
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::congestion::CongestionControl;
use whitewater::kcp::{Config, Modern, Recovery};
pub(crate) use wire::{CONV, Raw, drain, flushed, numbers, raw_segments};

/// Every preset and its name.
pub(crate) fn presets() -> [(&'static str, Config); 8] {
    [
        ("default", Config::classic()),
        ("normal", configs::classic_normal()),
        ("fast", configs::classic_fast()),
        ("turbo", configs::classic_turbo()),
        ("modern", configs::turbo()),
        ("modern with cwnd", configs::with_cwnd()),
        ("auto", configs::auto()),
        ("repairs", repairing(50)),
    ]
}

/// Loss detection by timing, with at most this percentage of repairs.
pub(crate) fn repairing(percent: u8) -> Config {
    let modern = Modern { repairs: Repairs::Budget(percent), ..Modern::default() };
    Config { recovery: Recovery::Modern(modern), ..configs::turbo() }
}

/// No congestion control: only the windows of both ends limit what is in flight.
#[derive(Debug)]
pub(crate) struct Unlimited;

impl CongestionControl for Unlimited {
    fn window(&self) -> u32 {
        u32::MAX
    }
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A simulated path with a round trip of 60 ms and 6 ms of jitter, and this loss in each direction.
pub(crate) fn path(loss: f64) -> whitewater_sim::LinkConfig {
    use whitewater_sim::{LinkConfig, Loss};
    LinkConfig { jitter: ms(6), loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(60)) }
}
