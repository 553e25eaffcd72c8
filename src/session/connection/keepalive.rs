//! Signs of life: when to give one, and when the peer has been silent for too long.

use crate::session::config::micros;
use crate::time::Time;
use std::time::Duration;

/// What a packet is to the clocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sent {
    /// A sign of life, or an answer to one.
    Sign,
    /// It has more, and nobody answers it.
    Unasked,
    /// It asks for an ACK.
    Asks,
    /// It has a ping.
    Ping,
}

/// The clocks of one end. Only authenticated packets count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    /// µs.
    interval: u32,
    timeout: u32,
    /// When the peer was last heard.
    pub(super) heard: Time,
    spoke: Time,
    /// When something was last sent that the peer answers with how the path is: a ping, or what asks for an ACK.
    asked: Time,
    /// Packets sent since that have more than signs of life, and are not answered.
    unasked: u8,
    /// Pings since one was answered.
    pings: u8,
    /// The time of the last call.
    pub(super) now: Time,
    /// When anything but signs of life was last sent or received.
    pub(super) busy: Time,
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
            asked: now,
            unasked: 0,
            pings: 0,
            now,
            busy: now,
            grace: now,
            unheard: asks,
            ping_now: asks,
        }
    }

    /// Notes that time has passed. After a gap in which nobody called, the peer gets time to be heard.
    pub(super) fn tick(&mut self, now: Time) {
        if now.micros_since(self.now) > GAP {
            self.grace = now.after(GRACE);
            self.ping_now = true;
        }
        self.now = self.now.max(now);
    }

    /// The peer is heard; returns whether that ends a standstill, ours or of the path.
    pub(super) fn on_heard(&mut self, now: Time) -> bool {
        let silence = now.micros_since(self.heard);
        self.heard = now;
        self.unheard = false;
        silence > STANDSTILL.max(u64::from(self.interval) * 5 / 2)
    }

    pub(super) const fn on_sent(&mut self, now: Time, sent: Sent) {
        self.spoke = now;
        self.ping_now = false;
        match sent {
            Sent::Sign => {}
            Sent::Unasked => self.unasked = self.unasked.saturating_add(1),
            Sent::Asks => (self.asked, self.unasked, self.pings) = (now, 0, 0),
            Sent::Ping => {
                (self.asked, self.unasked, self.pings) = (now, 0, self.pings.saturating_add(1));
            }
        }
    }

    pub(super) const fn on_answer(&mut self) {
        self.pings = 0;
    }

    /// When a ping is due that leaves without anything else: after silence, or when none could ride.
    pub(super) fn ping_at(&self) -> Time {
        if self.ping_now {
            return self.spoke;
        }
        let silent = self.spoke.after(if self.unheard { UNHEARD } else { self.interval.into() });
        let rides = self.is_unasked().then(|| self.rides_at().after(u64::from(self.interval) / 8));
        rides.map_or(silent, |at| at.min(silent))
    }

    /// Whether a ping rides with a packet that has more than signs of life, so that an end that sends only what is not answered knows how
    /// the path is as well. `patience` is how long an answer takes: without one a few more ride soon.
    pub(super) fn rides(&self, now: Time, patience: impl FnOnce() -> Duration) -> bool {
        let is_due = self.is_unasked() && self.rides_at() <= now;
        let wait = || if self.pings > 1 { AGAIN } else { patience() };
        is_due || ((1..=TRIES).contains(&self.pings) && now.since(self.asked) >= wait())
    }

    fn rides_at(&self) -> Time {
        self.asked.after(self.interval.into())
    }

    /// Whether an end sends what nobody answers.
    pub(super) const fn is_unasked(&self) -> bool {
        self.unasked >= UNASKED
    }

    pub(super) fn timeout_at(&self) -> Time {
        self.heard.after(self.timeout.into()).max(self.grace)
    }
}

/// Packets that nobody answers after which a ping rides: those of an end that says something now and then wait for a silence.
const UNASKED: u8 = 4;
/// Pings that follow one that was not answered in time, and time between them, µs.
const TRIES: u8 = 4;
const AGAIN: Duration = Duration::from_millis(20);
/// What comes after a longer silence, µs, or after more than two keepalives, was held.
const STANDSTILL: u64 = 1_000_000;
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
        keepalive.on_sent(at(0), Sent::Ping);
        assert_eq!(keepalive.ping_at(), at(100));
        keepalive.on_heard(at(60));
        assert_eq!(keepalive.ping_at(), at(500));
        keepalive.on_sent(at(400), Sent::Sign);
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
