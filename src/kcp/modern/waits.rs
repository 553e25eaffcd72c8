//! When the acknowledgements leave that are owed: later, where they can ride with something else.

use crate::code::budget::{LossShare, WHOLE};
use crate::kcp::rtt::Rtt;
use crate::seq::Sn;
use crate::time::{Millis, Time};

/// Acknowledgements that are owed, and the segments that they are owed for.
#[derive(Debug, Default)]
struct Owed {
    /// The beat of those segments.
    gap: Gap,
    /// Until when the acknowledgements wait.
    until: Time,
    /// Segments held out of turn, and duplicates so far, as of the last datagram.
    trouble: (u32, u32),
}

impl Owed {
    /// A datagram of segments has been taken. Returns whether it came in its turn and brought nothing twice.
    fn took(&mut self, now: Time, trouble: (u32, u32)) -> bool {
        self.gap.packet(now);
        let before = std::mem::replace(&mut self.trouble, trouble);
        trouble == before && trouble.0 == 0
    }
}

/// `at` or `now`, whichever is later; `now` if `at` is further ahead than `longest` µs: the clock was set back.
fn due_at(at: Time, now: Time, longest: u64) -> Time {
    if at > now.after(longest) { now } else { at.max(now) }
}

/// When the acknowledgements of an end with repairs leave: later, where the next one says as much, and twice, where the loss of one would
/// cost a resend.
#[derive(Debug, Default)]
pub(in crate::kcp) struct Waits {
    owed: Owed,
    /// For how many packets the peer lets them wait; `None`: it has sent no repair, and does not know
    /// that they may.
    patience: Option<u8>,
    /// The one that is told again, and when.
    again: Option<(Time, Sn, Millis)>,
    /// Average payload of a segment, bytes.
    size: u32,
}

impl Waits {
    /// The peer says for how many packets acknowledgements may wait.
    pub(super) fn allow(&mut self, packets: u8) {
        self.patience = Some(packets.min(PATIENCE_MAX));
    }

    pub(super) fn came(&mut self, len: u32) {
        self.size = (7 * self.size + len.min(u16::MAX.into())) / 8;
    }

    /// A datagram of segments has been taken, after which so many acknowledgements are owed, so many
    /// segments are held out of turn, and so many were duplicates so far. If all is in turn, they wait for
    /// the next datagrams, or for one of our own, which leaves within `ride` µs.
    pub(super) fn took(&mut self, now: Time, owed: usize, trouble: (u32, u32), ride: u64) {
        let is_calm = self.owed.took(now, trouble);
        let patience = self.patience.unwrap_or(0);
        if !is_calm || owed > usize::from(patience.max(1)) || self.patience.is_none() {
            self.owed.until = now;
        } else if owed == 1 {
            let next = self.owed.gap.wait().map_or(0, |wait| wait * u64::from(patience));
            self.owed.until = now.after(next.max(ride));
        }
    }

    pub(super) fn hurry(&mut self) {
        self.owed.until = Time::ZERO;
    }

    /// When those that are `owed` leave, or the last one is told again; at `now` if the clock was set back.
    pub(in crate::kcp) fn due_at(&self, now: Time, owed: usize) -> Option<Time> {
        let at = if owed > 0 { self.owed.until } else { self.again?.0 };
        Some(due_at(at, now, WAIT_LONGEST))
    }

    /// Those that were owed leave, `last` as the last of them. It is told again soon where that costs
    /// less than the resend of what it acknowledges, as often as acknowledgements get lost: as often as
    /// segments are assumed to.
    pub(super) fn left(&mut self, now: Time, last: (Sn, Millis), loss: LossShare) {
        self.owed.until = Time::ZERO;
        let resend = u64::from(loss.get()) * u64::from(self.size + SEGMENT) / u64::from(WHOLE);
        let pays = self.patience.is_some() && self.owed.gap.average > ALONE && resend > AGAIN;
        self.again = pays.then_some((now.after(AGAIN_AFTER), last.0, last.1));
    }

    /// The acknowledgement that is told again at `now`.
    pub(super) fn pop_again(&mut self, now: Time) -> Option<(Sn, Millis)> {
        let is_due = self.due_at(now, 0)? <= now;
        let (_, sn, ts) = self.again.take_if(|_| is_due)?;
        Some((sn, ts))
    }
}

/// Acknowledgements that ride with the next segment of our own, where both ends know that they may, as the two ends of a session do: the
/// beat of both directions, and for how long nothing has been lost in either.
///
/// Two ends that each say something 30 times a second send 60 datagrams if each acknowledges at once, and 30 if the acknowledgement
/// waits for what is said next anyway. What that costs is paid when something is lost, which is noticed later by as much. So it is done
/// while nothing is: after a loss acknowledgements leave at once for a while, and round trips are what they are.
#[derive(Debug)]
pub(in crate::kcp) struct Ride {
    sends: Gap,
    owed: Owed,
    /// Datagrams of segments in a row that came in turn, and that left while nothing had to be sent again.
    calm_in: u16,
    calm_out: u16,
}

impl Default for Ride {
    /// What nothing is known of counts as nearly calm.
    fn default() -> Self {
        let nearly = CALM - FIRST;
        Self { sends: Gap::default(), owed: Owed::default(), calm_in: nearly, calm_out: nearly }
    }
}

impl Ride {
    /// A datagram of segments has been taken, after which so many acknowledgements are owed, so many segments are held out of turn, and so
    /// many were duplicates so far.
    pub(in crate::kcp) fn took(&mut self, now: Time, owed: usize, trouble: (u32, u32)) {
        let is_calm = self.owed.took(now, trouble);
        self.calm_in = if is_calm { self.calm_in.saturating_add(1) } else { 0 };
        if self.calm_in < CALM || owed > OWED_MAX {
            self.owed.until = now;
        } else if owed == 1 {
            let next = self.sends.last.zip(self.sends.wait_long()).map(|(last, wait)| last.after(wait));
            self.owed.until = next.map_or(now, |next| next.max(now));
        }
    }

    /// A flush has sent segments for the first time, or again, or neither.
    pub(in crate::kcp) fn sent(&mut self, now: Time, has_new: bool, has_resent: bool) {
        if has_new {
            self.sends.packet(now);
        }
        self.calm_out = if has_resent { 0 } else { self.calm_out.saturating_add(has_new.into()) };
    }

    pub(in crate::kcp) fn left(&mut self) {
        self.owed.until = Time::ZERO;
    }

    /// When those that are owed leave; at `now` if the clock was set back.
    pub(in crate::kcp) fn due_at(&self, now: Time) -> Time {
        due_at(self.owed.until, now, 2 * LONGEST)
    }

    /// How long the peer may let an acknowledgement wait, µs.
    pub(in crate::kcp) fn peer_delay(&self) -> u64 {
        if self.calm_out < CALM - EARLIER { 0 } else { self.owed.gap.wait_long().unwrap_or(0) }
    }
}

/// The time between packets that come, or go, one after another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    last: Option<Time>,
    /// Average, µs; 0: not known.
    pub(super) average: u64,
}

impl Gap {
    pub(super) fn packet(&mut self, now: Time) {
        let gap = self.last.map_or(0, |last| now.micros_since(last).min(GAP_MAX));
        self.average = if self.average == 0 { gap } else { (7 * self.average + gap) / 8 };
        self.last = Some(now);
    }

    /// How long it takes, µs, until the next packet has surely come, if not lost; `None`: too long to wait.
    pub(super) fn wait(self) -> Option<u64> {
        let gap = self.average.max(WAIT_MIN);
        (gap <= WAIT_MAX).then_some(gap + gap / 4)
    }

    /// The same where longer gaps are waited for, by a smaller margin: what is waited for here is our own beat.
    fn wait_long(self) -> Option<u64> {
        (1..=LONGEST).contains(&self.average).then_some(self.average + (self.average / 8).max(SLACK))
    }

    /// How long it takes from `now` on, µs, until the next packet has surely gone, if an acknowledgement may
    /// wait that long at this round trip; else 0.
    pub(super) fn ride(self, now: Time, rtt: &Rtt) -> u64 {
        let Some((wait, last)) = self.wait().zip(self.last) else { return 0 };
        let rest = wait.saturating_sub(now.micros_since(last));
        if rest < patience(rtt) { rest } else { 0 }
    }

    /// For how many packets of this beat an acknowledgement may wait at this round trip.
    pub(super) fn patience(self, rtt: &Rtt) -> u8 {
        let gaps = self.wait().map_or(0, |_| patience(rtt) / self.average.max(WAIT_MIN));
        u8::try_from(gaps).map_or(PATIENCE_MAX, |gaps| gaps.min(PATIENCE_MAX))
    }
}

/// How long an acknowledgement may wait at all, µs: about half a round trip. Longer, and what the wait
/// costs when something is lost outweighs what it saves.
fn patience(rtt: &Rtt) -> u64 {
    u64::from(rtt.srtt) * 11 / 20
}

/// Bytes that resending a segment costs beside its payload: headers, IP and UDP, and its acknowledgement.
const SEGMENT: u32 = 104;
/// Bytes that telling again costs: the datagram, and half as much because it may be needless.
const AGAIN: u64 = 80;
/// After what time an acknowledgement is told again, µs: late enough to be lost by itself.
const AGAIN_AFTER: u64 = 2000;
/// Average gap between packets, µs, from which the next one comes too late to make up for a lost
/// acknowledgement.
const ALONE: u64 = 12_000;
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
/// Packets that an acknowledgement waits for at most.
const PATIENCE_MAX: u8 = 2;
/// Longest time that an acknowledgement waits, µs.
const WAIT_LONGEST: u64 = PATIENCE_MAX as u64 * (WAIT_MAX + WAIT_MAX / 4);
/// Longest gap that counts, µs.
const GAP_MAX: u64 = 50_000;
/// Least margin, µs: who answers in no time is as late as its scheduler now and then.
const SLACK: u64 = 1000;
/// Shortest gap that is waited for, µs.
const WAIT_MIN: u64 = 2000;
/// Longest gap that is waited for, µs: 40 packets a second.
const WAIT_MAX: u64 = 25_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_one_waited_that_has_left_says_nothing_of_the_next() {
        let mut waits = Waits::default();
        waits.allow(2);
        let at = Time::from_millis;
        (1..10).for_each(|packet| waits.took(at(10 * packet), 1, (0, 0), 0));
        assert!(waits.due_at(at(80), 1) > Some(at(100)));
        // It rides with a segment, and then two come together.
        waits.left(at(91), (Sn(9), Millis(0)), LossShare::assumed(0));
        waits.took(at(92), 2, (0, 0), 0);
        assert!(waits.due_at(at(92), 2) <= Some(at(92)));
    }

    fn packets(gap: u64) -> Gap {
        let mut packets = Gap::default();
        (1..100).for_each(|packet| packets.packet(Time::from_micros(packet * gap)));
        packets
    }

    #[test]
    fn an_ack_waits_for_as_many_packets_as_half_a_round_trip_has_and_two_at_most() {
        let of = |gap, rtt| {
            let mut round_trips = Rtt::new();
            round_trips.sample(rtt);
            (packets(gap).patience(&round_trips), packets(gap).wait())
        };
        assert_eq!(of(11_000, 19_999), (0, Some(13_750)), "0.55 of it, and 1.25 gaps");
        assert_eq!(of(11_000, 20_000), (1, Some(13_750)));
        assert_eq!(of(11_000, 40_000), (2, Some(13_750)));
        assert_eq!(of(11_000, 900_000), (2, Some(13_750)));
        assert_eq!(of(100, 60_000), (2, Some(2500)));
        assert_eq!(of(25_000, 900_000), (2, Some(31_250)));
        assert_eq!(of(25_001, 900_000), (0, None));
        let (mut waits, at) = (Waits::default(), Time::from_millis);
        waits.allow(9);
        (1..10).for_each(|packet| waits.took(at(10 * packet), 1, (0, 0), 0));
        assert_eq!(waits.due_at(at(90), 1), Some(at(90 + 2 * 10 * 5 / 4)));
    }

    #[test]
    fn our_own_beat_is_waited_for_an_eighth_longer_and_a_millisecond_at_least() {
        let waits = [10, 8000, 16_000, 40_000].map(|gap| packets(gap).wait_long());
        assert_eq!(waits, [Some(1010), Some(9000), Some(18_000), Some(45_000)]);
        assert_eq!(packets(40_001).wait_long(), None);
    }

    const GAP: u64 = 33_000;

    /// An end that has sent and heard so many segments at 30 Hz, the peer's 10 ms after its own.
    fn beat(count: u64) -> (Ride, Time) {
        let mut ride = Ride::default();
        for index in 0..count {
            ride.sent(Time::from_micros(index * GAP), true, false);
            ride.took(Time::from_micros(index * GAP + 10_000), 1, (0, 0));
        }
        (ride, Time::from_micros((count - 1) * GAP))
    }

    #[test]
    fn an_acknowledgement_waits_for_the_next_beat_when_all_was_calm() {
        let (ride, last) = beat(31);
        assert_eq!(ride.due_at(last.after(10_000)), last.after(10_000));
        assert_eq!(ride.peer_delay(), GAP + GAP / 8, "the peer may have got more");
        let (mut ride, last) = beat(32);
        let now = last.after(10_000);
        assert_eq!(ride.due_at(now), last.after(GAP + GAP / 8));
        assert_eq!(ride.peer_delay(), GAP + GAP / 8);
        ride.took(now, 2, (0, 0));
        assert_eq!(ride.due_at(now), last.after(GAP + GAP / 8));
        ride.took(now, 3, (0, 0));
        assert_eq!(ride.due_at(now), now, "two at most");
    }

    #[test]
    fn after_trouble_it_takes_256_datagrams_and_the_peer_expects_it_from_the_224th() {
        let (mut ride, last) = beat(300);
        let troubled = last.after(GAP);
        ride.sent(troubled, false, true);
        ride.took(troubled, 1, (0, 1));
        for number in 1..=256 {
            let now = troubled.after(number * GAP);
            ride.sent(now, true, false);
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
        ride.sent(last, true, true);
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
