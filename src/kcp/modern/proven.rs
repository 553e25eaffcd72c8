//! Which acknowledgements are believed: those that name a transmission, and others if a round trip could have passed.
//!
//! A peer that acknowledges what has not arrived yet would be sent as much as it asks for, whatever its path
//! carries. It cannot guess the token of a transmission that it has not received, so tokens prove how long a
//! round trip takes. But a peer that tries often enough guesses some, and with `Classic` it can name all of
//! them. So the owner also sets a shortest round trip to believe. Source of the attack: Savage et al., "TCP
//! Congestion Control with a Misbehaving Receiver", 1999; RFC 9000 section 21.4.

use super::ByTime;
use crate::kcp::input::Acked;
use crate::kcp::stats::count;
use crate::kcp::transmit::Flight;
use crate::kcp::{Kcp, Work};
use crate::seq::Sn;
use crate::time::{Millis, Time};
use crate::wire::Output;

/// The shortest round trip that is proven.
#[derive(Clone, Copy, Debug)]
pub(in crate::kcp) struct Proven {
    /// µs.
    rtt: u32,
    /// How many shorter ones were measured since, and the longest of them, µs.
    shorter: (u8, u32),
    /// The shortest round trip to be believed, µs, as the owner knows it; 0: any.
    pub(super) least: u32,
    /// Evidence against the shorter ones, which are forgotten at [`DOUBTS_MAX`].
    doubts: u8,
    /// Acknowledgements that came too early.
    early: u32,
    /// One of them was early only by what the owner knows, which may be out of date.
    is_surprised: bool,
    /// Everything before this is acknowledged, by such as were early only by that. It counts as soon as it is
    /// [old enough](Kcp::count_early), because an honest peer does not repeat it.
    until: Option<Sn>,
}

impl Default for Proven {
    fn default() -> Self {
        Self {
            rtt: u32::MAX,
            shorter: (0, 0),
            least: 0,
            doubts: 0,
            early: 0,
            is_surprised: false,
            until: None,
        }
    }
}

impl Proven {
    /// Believes all acknowledgements from now on.
    pub(super) const fn believe_all(&mut self) {
        (self.rtt, self.shorter, self.least) = (0, (0, 0), 0);
    }

    /// A token came back after `age` µs. A few alone may have been guessed.
    fn sample(&mut self, age: u32) {
        if age >= self.rtt {
            return self.doubt(1);
        }
        let (count, longest) = self.shorter;
        self.shorter = (count + 1, longest.max(age));
        if self.shorter.0 == SURE {
            (self.rtt, self.shorter, self.doubts) = (self.shorter.1, (0, 0), 0);
        }
    }

    /// An acknowledgement came too early.
    fn missed(&mut self) {
        count(&mut self.early);
        self.doubt(DOUBTS_MAX / MISSES_MAX);
    }

    /// An acknowledgement of everything before `una`, where the oldest segment in flight is `oldest`, came too early by
    /// what the owner knows.
    fn put_off(&mut self, oldest: Sn, una: Sn) {
        self.is_surprised = true;
        if self.until.unwrap_or(oldest).is_before(una) {
            self.until = Some(una);
        }
    }

    fn doubt(&mut self, by: u8) {
        if self.shorter.0 > 0 {
            self.doubts += by;
            if self.doubts >= DOUBTS_MAX {
                (self.shorter, self.doubts) = ((0, 0), 0);
            }
        }
    }

    /// Whether none of the transmissions of a segment can have been acknowledged by `now`. An end whose clock jumps
    /// believes everything.
    fn is_early(&self, now: Millis, flight: &Flight) -> bool {
        let first = if flight.xmit > 1 { flight.resend_at } else { flight.ts };
        u32::try_from(now.since(first)).is_ok_and(|age| age < self.rtt - self.rtt / 4)
    }
}

impl<O: Output> Kcp<O> {
    /// Whether an acknowledgement of the segment `sn` that echoes `ts` is believed. The peer expects `una` next.
    #[inline]
    pub(super) fn believes(&mut self, now: Millis, (sn, una): (Sn, Sn), ts: Millis) -> bool {
        if !self.receiver.rides {
            return true; // other peers need not name what they acknowledge
        }
        let (Some(segment), Some(work)) = (self.sender.ring.get(sn), self.work.as_deref_mut()) else {
            return true;
        };
        let proven = &mut work.by_time.proven;
        let is_named = segment.flight.ts == ts;
        let age = u32::try_from(now.since(ts));
        let is_early = match is_named {
            true => age.is_ok_and(|age| age < proven.least),
            false => proven.is_early(now, &segment.flight),
        };
        if is_named && !is_early {
            proven.sample(age.unwrap_or(0));
        }
        if is_early {
            if is_named {
                proven.put_off(self.sender.una(), una);
            }
            proven.missed(); // or an honest one of an older transmission: it will count again
        }
        !is_early
    }

    /// Whether it is believed that everything before `una` has arrived. What was sent last before it decides.
    #[inline]
    pub(in crate::kcp) fn believes_una(&mut self, now: Millis, una: Sn) -> bool {
        if !self.config.is_by_time() {
            return self.believes_classic(now, (una.sub(1), una));
        }
        let work = self.work.as_deref_mut().filter(|_| self.receiver.rides);
        let Some((work, last)) = work.and_then(|work| Some((work, self.sender.ring.get(una.sub(1))?))) else {
            return true;
        };
        let is_early = work.by_time.proven.is_early(now, &last.flight);
        if is_early {
            count(&mut work.by_time.proven.early);
        }
        !is_early
    }

    /// The same for an acknowledgement of the segment `sn` with `Classic`, which any peer can name.
    pub(in crate::kcp) fn believes_classic(&mut self, now: Millis, (sn, una): (Sn, Sn)) -> bool {
        let is_early =
            self.sender.ring.get(sn).is_some_and(|segment| self.early_by(now, &segment.flight) > 0);
        if is_early && let Some(Work { by_time: ByTime { proven, .. }, .. }) = self.work.as_deref_mut() {
            proven.put_off(self.sender.una(), una);
            count(&mut proven.early);
        }
        !is_early
    }

    /// How much later an acknowledgement of a segment would be believed by what the owner knows, µs. With `Classic`, a
    /// segment that was sent twice is believed at once.
    fn early_by(&self, now: Millis, flight: &Flight) -> u64 {
        let least = self.work.as_deref().map_or(0, |work| u64::from(work.by_time.proven.least));
        let age = match (self.config.is_by_time(), flight.xmit) {
            (true, 0 | 1) => u64::try_from(now.since(flight.ts)).ok(),
            (true, _) => u64::try_from(now.since(flight.resend_at)).ok(),
            (false, 0 | 1) => u64::try_from(now.since(flight.ts)).ok().map(|ms| 1000 * (ms + 1)),
            (false, _) => None,
        };
        age.map_or(0, |age| least.saturating_sub(age))
    }

    /// When the oldest segment that was acknowledged too early is old enough. `None`: there is none.
    #[inline]
    pub(in crate::kcp) fn early_counts_at(&self, now: Time) -> Option<Time> {
        self.work.as_deref()?.by_time.proven.until?;
        let oldest = self.sender.ring.get(self.sender.una());
        Some(now.after(oldest.map_or(0, |oldest| self.early_by(self.clock(now), &oldest.flight))))
    }

    /// Takes what was acknowledged too early and is old enough now.
    #[inline]
    pub(in crate::kcp) fn count_early(&mut self, now: Time) {
        if self.early_counts_at(now).is_some_and(|at| at <= now) {
            self.count_some(now);
        }
    }

    #[cold]
    fn count_some(&mut self, now: Time) {
        let (before, clock) = ((self.sender.una(), self.sender.in_flight), self.clock(now));
        let Some(until) = self.acknowledged_early().filter(|until| before.0.is_before(*until)) else {
            return self.forget_early();
        };
        let young =
            self.sender.ring.find(before.0, until, |segment| self.early_by(clock, &segment.flight) > 0);
        if young.is_none() {
            self.forget_early();
        }
        let mut acked = Acked::new(clock, self.rtt.min(), false);
        self.free_before(young.unwrap_or(until), &mut acked);
        self.after_input(now, &acked, before);
    }

    fn acknowledged_early(&self) -> Option<Sn> {
        self.work.as_deref()?.by_time.proven.until
    }

    fn forget_early(&mut self) {
        if let Some(work) = &mut self.work {
            work.by_time.proven.until = None;
        }
    }

    /// Segments that the peer has not said to have, even too early. Once a session is over, nothing depends on that.
    pub(crate) fn undelivered(&self) -> usize {
        let (una, nxt) = (self.sender.una(), self.sender.nxt);
        let Some(until) = self.acknowledged_early().filter(|until| una.is_before(*until)) else {
            return self.wait_snd();
        };
        let in_flight = (0..nxt.0.wrapping_sub(until.0)).map(|after| self.sender.ring.get(until.add(after)));
        in_flight.flatten().count() + self.sender.waiting() as usize
    }

    /// Whether acknowledgements have come sooner than the owner [believes](Self::expect) since the last call.
    #[inline]
    pub(crate) fn take_surprise(&mut self) -> bool {
        self.work.as_deref_mut().is_some_and(|work| std::mem::take(&mut work.by_time.proven.is_surprised))
    }

    /// Acknowledgements that came too early to be believed.
    #[inline]
    pub(in crate::kcp) fn early_acks(&self) -> u32 {
        self.work.as_deref().map_or(0, |work: &Work| work.by_time.proven.early)
    }
}

/// So many shorter round trips prove one.
const SURE: u8 = 4;
/// They are forgotten when so many longer ones, or so many acknowledgements that come too early, came between them.
const DOUBTS_MAX: u8 = 64;
const MISSES_MAX: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_tokens_prove_a_shorter_round_trip() {
        let mut proven = Proven::default();
        let flight = Flight { ts: Millis(1000), xmit: 1, ..Flight::default() };
        for age in [900, 1000, 800] {
            proven.sample(age);
            assert!(proven.is_early(Millis(900_000), &flight), "nothing is proven");
        }
        proven.sample(900);
        let early = |proven: &Proven, age: u32| proven.is_early(Millis(1000 + age), &flight);
        assert!(early(&proven, 749) && !early(&proven, 750), "three quarters of 1000 us");
        (0..3).for_each(|_| proven.sample(10));
        assert!(early(&proven, 749));
        proven.sample(10);
        assert!(!early(&proven, 10));
        let mut resent = flight;
        resent.resend_at = resent.ts;
        resent.resend(Millis(5000));
        assert!(!proven.is_early(Millis(5001), &resent), "the first may have arrived");
    }

    #[test]
    fn guesses_prove_nothing() {
        let flight = Flight { ts: Millis(1000), xmit: 1, ..Flight::default() };
        let proven = |between: fn(&mut Proven)| {
            let mut proven = Proven::default();
            (0..4).for_each(|_| proven.sample(1000));
            for _ in 0..100 {
                proven.sample(10);
                between(&mut proven);
            }
            (1..=1000).find(|age| !proven.is_early(Millis(1000 + age), &flight))
        };
        assert_eq!(proven(|_| {}), Some(8));
        assert_eq!(proven(|proven| (0..6).for_each(|_| proven.missed())), Some(750));
        assert_eq!(proven(|proven| (0..22).for_each(|_| proven.sample(1000))), Some(750));
        assert_eq!(proven(|proven| (0..5).for_each(|_| proven.missed())), Some(8));
    }
}
