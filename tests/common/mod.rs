//! Two control blocks joined by a bad link, in virtual time: same seed, same bytes.
//!
//! [`link`] is one direction of the path, [`pair`] drives both ends from event to event, [`wire`]
//! writes and reads datagrams by hand.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(unused_imports, reason = "each test binary uses its part")]

mod link;
mod pair;
mod wire;

pub(crate) use link::{Link, LinkConfig, Rng};
pub(crate) use pair::{Drive, End, Pair, Setup, kcp, numbered};
use whitewater::Config;
pub(crate) use wire::{CONV, Raw, drain, flushed, numbers, raw_segments};

/// Every preset and its name.
pub(crate) fn presets() -> [(&'static str, Config); 6] {
    [
        ("default", Config::default().classic()),
        ("normal", Config::normal().classic()),
        ("fast", Config::fast().classic()),
        ("turbo", Config::turbo().classic()),
        ("modern", Config::turbo()),
        ("modern with cwnd", Config::default()),
    ]
}
