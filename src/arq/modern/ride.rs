//! Acknowledgements that ride with the next segment of our own: where both ends know that they may, as the two ends of a session do.
//!
//! Two ends that each say something 30 times a second send 60 datagrams if each acknowledges at once, and 30 if the acknowledgement
//! waits for what is said next anyway. What that costs is paid when something is lost, which is noticed later by as much. So it is done
//! while nothing is: after a loss acknowledgements leave at once for a while, and round trips are what they are.

use super::gap::Gap;
use crate::time::Time;

/// The beat of both directions, and for how long nothing has been lost in either.
#[derive(Debug)]
pub(in crate::arq) struct Ride {
    sends: Gap,
    arrivals: Gap,
    /// Until when the acknowledgements wait that are owed.
    until: Time,
    /// Datagrams of segments in a row that came in turn, and that left while nothing had to be sent again.
    calm_in: u16,
    calm_out: u16,
    /// Segments held out of turn, and duplicates so far, as of the last datagram.
    trouble: (u32, u32),
}

impl Default for Ride {
    /// What nothing is known of counts as nearly calm.
    fn default() -> Self {
        let (calm_in, calm_out) = (CALM - FIRST, CALM - FIRST);
        Self {
            sends: Gap::default(),
            arrivals: Gap::default(),
            until: Time::ZERO,
            calm_in,
            calm_out,
            trouble: (0, 0),
        }
    }
}

impl Ride {
    /// A datagram of segments has been taken, after which so many acknowledgements are owed, so many segments are held out of turn, and so
    /// many were duplicates so far.
    pub(in crate::arq) fn took(&mut self, now: Time, owed: usize, trouble: (u32, u32)) {
        self.arrivals.packet(now);
        let is_calm = trouble == self.trouble && trouble.0 == 0;
        self.trouble = trouble;
        self.calm_in = if is_calm { self.calm_in.saturating_add(1) } else { 0 };
        if self.calm_in < CALM || owed > OWED_MAX {
            self.until = now;
        } else if owed == 1 {
            self.until = self.sends.next(LONGEST).map_or(now, |next| next.max(now));
        }
    }

    /// A flush has sent so many segments for the first time, and so many again.
    pub(in crate::arq) fn sent(&mut self, now: Time, new: u32, again: u32) {
        if new > 0 {
            self.sends.packet(now);
        }
        self.calm_out = if again > 0 { 0 } else { self.calm_out.saturating_add(u16::from(new > 0)) };
    }

    /// Those that were owed leave.
    pub(in crate::arq) fn left(&mut self) {
        self.until = Time::ZERO;
    }

    /// When those that are owed leave; at `now` if the clock was set back.
    pub(in crate::arq) fn due_at(&self, now: Time) -> Time {
        if self.until > now.after(2 * LONGEST) { now } else { self.until.max(now) }
    }

    /// How long the peer may let an acknowledgement wait, µs.
    pub(in crate::arq) fn peer_delay(&self) -> u64 {
        if self.calm_out < CALM - EARLIER { 0 } else { self.arrivals.wait_up_to(LONGEST).unwrap_or(0) }
    }
}

/// Datagrams of segments without trouble after which acknowledgements wait: with more than one lost of a few hundred, it costs more than it
/// saves.
const CALM: u16 = 256;
/// The same where there has been no trouble yet.
const FIRST: u16 = 32;
/// So many before that, the sender expects it: more than are under way.
const EARLIER: u16 = 32;
/// Acknowledgements that wait at most.
const OWED_MAX: usize = 2;
/// Longest gap between two segments of our own that is waited for, µs: 25 a second.
const LONGEST: u64 = 40_000;

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = 33_000;

    /// An end that has sent and heard so many segments at 30 Hz, the peer's 10 ms after its own.
    fn beat(count: u64) -> (Ride, Time) {
        let mut ride = Ride::default();
        for index in 0..count {
            ride.sent(Time::from_micros(index * GAP), 1, 0);
            ride.took(Time::from_micros(index * GAP + 10_000), 1, (0, 0));
        }
        (ride, Time::from_micros((count - 1) * GAP))
    }

    #[test]
    fn an_acknowledgement_waits_for_the_next_beat_when_all_was_calm() {
        let (ride, last) = beat(31);
        assert_eq!(ride.due_at(last.after(10_000)), last.after(10_000));
        assert_eq!(ride.peer_delay(), GAP + GAP / 8, "the peer may have got more");
        let (ride, last) = beat(32);
        assert_eq!(ride.due_at(last.after(10_000)), last.after(GAP + GAP / 8));
        assert_eq!(ride.peer_delay(), GAP + GAP / 8);
    }

    #[test]
    fn after_trouble_it_takes_256_datagrams_and_the_peer_expects_it_from_the_224th() {
        let (mut ride, last) = beat(300);
        let troubled = last.after(GAP);
        ride.sent(troubled, 0, 1);
        ride.took(troubled, 1, (0, 1));
        for number in 1..=256 {
            let now = troubled.after(number * GAP);
            ride.sent(now, 1, 0);
            ride.took(now, 1, (0, 1));
            assert_eq!(ride.due_at(now) > now, number == 256);
            assert_eq!(ride.peer_delay() > 0, number >= 224);
        }
    }

    #[test]
    fn a_hole_a_duplicate_and_a_resend_end_the_wait_for_a_while() {
        for trouble in [(1, 0), (0, 1)] {
            let (mut ride, last) = beat(300);
            let now = last.after(10_000);
            ride.took(now, 2, trouble);
            assert_eq!(ride.due_at(now), now);
            ride.left();
            ride.took(now.after(GAP), 1, (0, trouble.1));
            assert_eq!(ride.due_at(now.after(GAP)), now.after(GAP));
        }
        let (mut ride, last) = beat(300);
        ride.sent(last, 1, 1);
        assert_eq!(ride.peer_delay(), 0);
    }

    #[test]
    fn nothing_waits_for_an_end_that_sends_seldom_or_has_stopped() {
        let (mut ride, last) = beat(300);
        let late = last.after(10 * GAP);
        ride.took(late, 1, (0, 0));
        assert_eq!(ride.due_at(late), late);
        assert_eq!(ride.due_at(Time::ZERO), Time::ZERO, "the clock was set back");
    }
}
