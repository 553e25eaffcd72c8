//! Decides when to send the acknowledgements that we owe: later, if they can ride with other data.

use crate::code::budget::{LossShare, WHOLE};
use crate::kcp::rtt::Rtt;
use crate::seq::Sn;
use crate::time::{Millis, Time};

/// Acknowledgements that we owe, and the segments that they acknowledge.
#[derive(Debug, Default)]
struct Owed {
    /// The interval between those segments.
    gap: Gap,
    /// Until when the acknowledgements wait.
    until: Time,
    /// Segments held out of order and duplicates so far, as of the last datagram.
    trouble: (u32, u32),
}

impl Owed {
    /// A datagram of segments was accepted. Returns whether it was in order and brought no duplicates.
    fn took(&mut self, now: Time, trouble: (u32, u32)) -> bool {
        self.gap.packet(now);
        let before = std::mem::replace(&mut self.trouble, trouble);
        trouble == before && trouble.0 == 0
    }
}

/// `at` or `now`, whichever is later. `now` if `at` is more than `longest` µs ahead: then the clock was set back.
fn due_at(at: Time, now: Time, longest: u64) -> Time {
    if at > now.after(longest) { now } else { at.max(now) }
}

/// When an end with repairs sends its acknowledgements: later, if the next one says as much; and twice, if the loss of
/// one would cost a resend.
#[derive(Debug, Default)]
pub(in crate::kcp) struct Waits {
    owed: Owed,
    /// For how many packets the peer lets them wait. `None`: it has sent no repair, and does not expect them to wait.
    patience: Option<u8>,
    /// The acknowledgement to repeat, and when.
    again: Option<(Time, Sn, Millis)>,
    /// Mean payload of a segment, bytes.
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

    /// A datagram of segments was accepted. Now `owed` acknowledgements are due; `trouble`: segments held out of order,
    /// and duplicates so far. If all is in order, they wait for the next datagrams, or for one of our own, which will
    /// be sent within `ride` µs.
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

    /// When the `owed` acknowledgements are sent, or the last one is repeated. `now` if the clock was set back.
    pub(in crate::kcp) fn due_at(&self, now: Time, owed: usize) -> Option<Time> {
        let at = if owed > 0 { self.owed.until } else { self.again?.0 };
        Some(due_at(at, now, WAIT_LONGEST))
    }

    /// The acknowledgements were sent, with `last` as the last of them. It is repeated soon if that costs less than
    /// resending what it acknowledges. Acknowledgements are assumed to get lost as often as segments.
    pub(super) fn left(&mut self, now: Time, last: (Sn, Millis), loss: LossShare) {
        self.owed.until = Time::ZERO;
        let resend = u64::from(loss.get()) * u64::from(self.size + SEGMENT) / u64::from(WHOLE);
        let pays = self.patience.is_some() && self.owed.gap.average > ALONE && resend > AGAIN;
        self.again = pays.then_some((now.after(AGAIN_AFTER), last.0, last.1));
    }

    /// The acknowledgement to repeat at `now`.
    pub(super) fn pop_again(&mut self, now: Time) -> Option<(Sn, Millis)> {
        let is_due = self.due_at(now, 0)? <= now;
        let (_, sn, ts) = self.again.take_if(|_| is_due)?;
        Some((sn, ts))
    }
}

/// Acknowledgements that ride with the next segment of ours. Only if both ends know that they may, as in sessions.
/// Tracks the interval between packets in both directions, and for how long nothing has been lost in either.
///
/// Two ends that each send 30 times a second need 60 datagrams if each acknowledges at once, and 30 if the
/// acknowledgement waits for the next message. The price is that a loss is noticed that much later. So acknowledgements
/// wait only while nothing gets lost; after a loss they are sent at once for a while.
#[derive(Debug)]
pub(in crate::kcp) struct Ride {
    sends: Gap,
    owed: Owed,
    /// Datagrams of segments in a row that arrived in order, or were sent while nothing had to be resent.
    calm_in: u16,
    calm_out: u16,
}

impl Default for Ride {
    /// The unknown counts as nearly calm.
    fn default() -> Self {
        let nearly = CALM - FIRST;
        Self { sends: Gap::default(), owed: Owed::default(), calm_in: nearly, calm_out: nearly }
    }
}

impl Ride {
    /// A datagram of segments was accepted. Now `owed` acknowledgements are due; `trouble`: segments held out of order,
    /// and duplicates so far.
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

    /// A flush has sent new segments, resends, both or neither.
    pub(in crate::kcp) fn sent(&mut self, now: Time, has_new: bool, has_resent: bool) {
        if has_new {
            self.sends.packet(now);
        }
        self.calm_out = if has_resent { 0 } else { self.calm_out.saturating_add(has_new.into()) };
    }

    pub(in crate::kcp) fn left(&mut self) {
        self.owed.until = Time::ZERO;
    }

    /// When the acknowledgements are sent. `now` if the clock was set back.
    pub(in crate::kcp) fn due_at(&self, now: Time) -> Time {
        due_at(self.owed.until, now, 2 * LONGEST)
    }

    /// How long the peer may hold an acknowledgement, µs.
    pub(in crate::kcp) fn peer_delay(&self) -> u64 {
        if self.calm_out < CALM - EARLIER { 0 } else { self.owed.gap.wait_long().unwrap_or(0) }
    }
}

/// The time between consecutive packets in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    last: Option<Time>,
    /// Mean, µs; 0: unknown.
    pub(super) average: u64,
}

impl Gap {
    pub(super) fn packet(&mut self, now: Time) {
        let gap = self.last.map_or(0, |last| now.micros_since(last).min(GAP_MAX));
        self.average = if self.average == 0 { gap } else { (7 * self.average + gap) / 8 };
        self.last = Some(now);
    }

    /// Time until the next packet has certainly arrived unless it was lost, µs. `None`: too long to wait.
    pub(super) fn wait(self) -> Option<u64> {
        let gap = self.average.max(WAIT_MIN);
        (gap <= WAIT_MAX).then_some(gap + gap / 4)
    }

    /// The same for longer gaps, with a smaller margin, since it waits for our own packets.
    fn wait_long(self) -> Option<u64> {
        (1..=LONGEST).contains(&self.average).then_some(self.average + (self.average / 8).max(SLACK))
    }

    /// Time from `now` until our next packet has certainly been sent, µs, if an acknowledgement may wait that long at
    /// this round trip. Otherwise 0.
    pub(super) fn ride(self, now: Time, rtt: &Rtt) -> u64 {
        let Some((wait, last)) = self.wait().zip(self.last) else { return 0 };
        let rest = wait.saturating_sub(now.micros_since(last));
        if rest < patience(rtt) { rest } else { 0 }
    }

    /// For how many packets an acknowledgement may wait at this interval and round trip.
    pub(super) fn patience(self, rtt: &Rtt) -> u8 {
        let gaps = self.wait().map_or(0, |_| patience(rtt) / self.average.max(WAIT_MIN));
        u8::try_from(gaps).map_or(PATIENCE_MAX, |gaps| gaps.min(PATIENCE_MAX))
    }
}

/// How long an acknowledgement may wait at all, µs: about half a round trip. Beyond that, a loss costs more than the
/// wait saves.
fn patience(rtt: &Rtt) -> u64 {
    u64::from(rtt.srtt) * 11 / 20
}

/// Bytes that resending a segment costs besides its payload: headers, IP and UDP, and its acknowledgement.
const SEGMENT: u32 = 104;
/// Bytes that a repetition costs: the datagram, and half as much because it may be needless.
const AGAIN: u64 = 80;
/// Delay before an acknowledgement is repeated, µs: enough that both are not lost together.
const AGAIN_AFTER: u64 = 2000;
/// Mean gap between packets from which on the next packet comes too late to make up for a lost acknowledgement, µs.
const ALONE: u64 = 12_000;
/// Datagrams of segments without trouble after which acknowledgements wait. At a loss above one in a few hundred,
/// waiting costs more than it saves.
const CALM: u16 = 256;
/// The same if there has been no trouble yet.
const FIRST: u16 = 32;
/// The sender expects the wait this many datagrams earlier: more than are on their way.
const EARLIER: u16 = 32;
/// Most acknowledgements that wait.
const OWED_MAX: usize = 2;
/// Longest gap between two segments of ours that is waited for, µs: 25 a second.
const LONGEST: u64 = 40_000;
/// Most packets that an acknowledgement waits for.
const PATIENCE_MAX: u8 = 2;
/// Longest time that an acknowledgement waits, µs.
const WAIT_LONGEST: u64 = PATIENCE_MAX as u64 * (WAIT_MAX + WAIT_MAX / 4);
/// Longest gap that counts, µs.
const GAP_MAX: u64 = 50_000;
/// Smallest margin, µs: even a peer that answers at once is sometimes late by its scheduler.
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
        // It rides with a segment, and then two arrive together.
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

    /// An end that has sent and received this many segments at 30 Hz, the peer's 10 ms after its own.
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
