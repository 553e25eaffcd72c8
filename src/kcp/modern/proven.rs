//! Which acknowledgements are believed: those that name a transmission, and others if a round trip could have passed.
//!
//! A peer that acknowledges what has not arrived yet would be sent as much as it asks for, whatever its path carries. It
//! cannot guess the token of a transmission that it has not received, so tokens prove how long a round trip takes.
//! Source of the attack: Savage et al., "TCP Congestion Control with a Misbehaving Receiver", 1999; RFC 9000 section 21.4.

use super::ByTime;
use crate::kcp::Kcp;
use crate::kcp::stats::count;
use crate::kcp::transmit::Flight;
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::Output;

/// The shortest round trip that is proven.
#[derive(Clone, Copy, Debug)]
pub(in crate::kcp) struct Proven {
    /// µs.
    rtt: u32,
    /// How many shorter ones were measured since, and the longest of them, µs.
    shorter: (u8, u32),
    /// Acknowledgements that came too early.
    early: u32,
}

impl Default for Proven {
    fn default() -> Self {
        Self { rtt: u32::MAX, shorter: (0, 0), early: 0 }
    }
}

impl Proven {
    /// Believes all acknowledgements from now on.
    pub(super) const fn believe_all(&mut self) {
        (self.rtt, self.shorter) = (0, (0, 0));
    }

    /// A token came back after `age` µs. One alone may have been guessed.
    fn sample(&mut self, age: u32) {
        if age >= self.rtt {
            return;
        }
        let (count, longest) = self.shorter;
        self.shorter = (count + 1, longest.max(age));
        if self.shorter.0 == SURE {
            (self.rtt, self.shorter) = (self.shorter.1, (0, 0));
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
    /// Whether an acknowledgement of the segment `sn` that echoes `ts` is believed.
    #[inline]
    pub(super) fn believes(&mut self, now: Millis, sn: Sn, ts: Millis) -> bool {
        if !self.receiver.rides {
            return true; // other peers need not name what they acknowledge
        }
        let (Some(segment), Some(work)) = (self.sender.ring.get(sn), self.work.as_deref_mut()) else {
            return true;
        };
        let proven = &mut work.by_time.proven;
        if segment.flight.ts == ts {
            proven.sample(u32::try_from(now.since(ts)).unwrap_or(0));
            return true;
        }
        let is_early = proven.is_early(now, &segment.flight);
        if is_early {
            count(&mut proven.early); // or an honest one of an older transmission: it will count again
        }
        !is_early
    }

    /// Whether it is believed that everything before `una` has arrived. What was sent last before it decides.
    #[inline]
    pub(in crate::kcp) fn believes_una(&self, now: Millis, una: Sn) -> bool {
        let work = self.work.as_deref().filter(|_| self.receiver.rides && self.config.is_by_time());
        let last = work.and_then(|work| Some((work, self.sender.ring.get(una.sub(1))?)));
        last.is_none_or(|(work, last)| !work.by_time.proven.is_early(now, &last.flight))
    }
}

impl ByTime {
    /// Acknowledgements that came too early to be believed.
    pub(in crate::kcp) const fn early_acks(&self) -> u32 {
        self.proven.early
    }
}

/// So many shorter round trips prove one.
const SURE: u8 = 4;

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
}
