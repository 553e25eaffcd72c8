//! Signs of life: when to give one, and when the peer has been silent for too long.

use crate::session::config::micros;
use crate::time::Time;
use std::time::Duration;

/// The clocks of one end. Only authenticated packets count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    /// µs.
    interval: u32,
    timeout: u32,
    heard: Time,
    spoke: Time,
    /// When this was last called.
    seen: Time,
    /// Not before this the peer counts as silent: we were not there to hear it.
    grace: Time,
    /// Nothing has been received yet: the peer may wait for a sign that we are there.
    unheard: bool,
    ping_now: bool,
}

impl Keepalive {
    /// `asks`: whether to ping often until the peer is heard, which tells a server that its ACCEPT has arrived.
    pub(super) fn new(now: Time, interval: Duration, timeout: Duration, asks: bool) -> Self {
        Self {
            interval: micros(interval),
            timeout: micros(timeout),
            heard: now,
            spoke: now,
            seen: now,
            grace: now,
            unheard: asks,
            ping_now: asks,
        }
    }

    /// Notes that time has passed. After a gap in which nobody called, the peer gets time to be heard.
    pub(super) fn tick(&mut self, now: Time) {
        if now.micros_since(self.seen) > GAP {
            self.grace = now.after(GRACE);
            self.ping_now = true;
        }
        self.seen = self.seen.max(now);
    }

    /// When the peer was last heard.
    pub(super) const fn heard(&self) -> Time {
        self.heard
    }

    pub(super) fn on_heard(&mut self, now: Time) {
        self.heard = now;
        self.unheard = false;
    }

    pub(super) const fn on_sent(&mut self, now: Time) {
        self.spoke = now;
        self.ping_now = false;
    }

    /// When a ping is due.
    pub(super) fn ping_at(&self) -> Time {
        if self.ping_now {
            return self.spoke;
        }
        self.spoke.after(if self.unheard { UNHEARD } else { self.interval.into() })
    }

    /// When the peer has been silent for too long.
    pub(super) fn timeout_at(&self) -> Time {
        self.heard.after(self.timeout.into()).max(self.grace)
    }
}

/// Longer between two calls, µs, and we were frozen.
const GAP: u64 = 5_000_000;
/// What the peer then gets, µs: time for a few pings and their answers.
const GRACE: u64 = 2_000_000;
/// Time between two pings until the first packet of the peer, µs.
const UNHEARD: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn keepalive(asks: bool) -> Keepalive {
        Keepalive::new(at(0), Duration::from_millis(500), Duration::from_secs(20), asks)
    }

    #[test]
    fn pings_are_frequent_until_the_peer_is_heard_and_come_only_after_silence() {
        let mut keepalive = keepalive(true);
        assert_eq!(keepalive.ping_at(), at(0));
        keepalive.on_sent(at(0));
        assert_eq!(keepalive.ping_at(), at(100));
        keepalive.on_heard(at(60));
        assert_eq!(keepalive.ping_at(), at(500));
        keepalive.on_sent(at(400));
        assert_eq!((keepalive.ping_at(), keepalive.timeout_at()), (at(900), at(20_060)));
    }

    #[test]
    fn who_was_frozen_gives_the_peer_two_seconds() {
        let mut frozen = keepalive(false);
        for ms in (0..=15_000).step_by(5000) {
            frozen.tick(at(ms));
        }
        assert_eq!(frozen.timeout_at(), at(20_000), "5 s between two calls is no gap");
        frozen.tick(at(60_000));
        assert!(frozen.ping_at() <= at(60_000));
        assert_eq!(frozen.timeout_at(), at(62_000));
        frozen.on_heard(at(60_100));
        assert_eq!(frozen.timeout_at(), at(80_100));
    }
}
