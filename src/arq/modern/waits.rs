//! When the acknowledgements leave that an end with repairs owes: later, where the next one says as much,
//! and twice, where the loss of one would cost a resend.

use super::gap::{Gap, PATIENCE_MAX, WAIT_LONGEST};
use crate::code::share::{LossShare, WHOLE};
use crate::seq::Sn;
use crate::time::{Millis, Time};

/// When acknowledgements leave.
#[derive(Debug, Default)]
pub(in crate::arq) struct Waits {
    gap: Gap,
    /// For how many packets the peer lets them wait; `None`: it has sent no repair, and does not know
    /// that they may.
    patience: Option<u8>,
    /// Until when those wait that are owed.
    until: Time,
    /// The one that is told again, and when.
    again: Option<(Time, Sn, Millis)>,
    /// Average payload of a segment, bytes.
    size: u32,
    /// Segments held out of turn, and duplicates so far, as of the last datagram.
    trouble: (u32, u32),
}

impl Waits {
    /// The peer says for how many packets acknowledgements may wait.
    pub(super) fn allow(&mut self, packets: u8) {
        self.patience = Some(packets.min(PATIENCE_MAX));
    }

    /// A segment of so many bytes came.
    pub(super) fn came(&mut self, len: u32) {
        self.size = (7 * self.size + len.min(u16::MAX.into())) / 8;
    }

    /// A datagram of segments has been taken, after which so many acknowledgements are owed, so many
    /// segments are held out of turn, and so many were duplicates so far. If all is in turn, they wait for
    /// the next datagrams, or for one of our own, which leaves within `ride` µs.
    pub(super) fn took(&mut self, now: Time, owed: usize, trouble: (u32, u32), ride: u64) {
        self.gap.packet(now);
        let is_calm = trouble == self.trouble && trouble.0 == 0;
        self.trouble = trouble;
        let patience = self.patience.unwrap_or(0);
        if !is_calm || owed > usize::from(patience.max(1)) || self.patience.is_none() {
            self.until = now;
        } else if owed == 1 {
            let next = self.gap.wait().map_or(0, |wait| wait * u64::from(patience));
            self.until = now.after(next.max(ride));
        }
    }

    /// What is owed leaves at once.
    pub(super) fn hurry(&mut self) {
        self.until = Time::ZERO;
    }

    /// When those that are `owed` leave, or the last one is told again; at `now` if the clock was set back.
    pub(in crate::arq) fn due_at(&self, now: Time, owed: usize) -> Option<Time> {
        let at = if owed > 0 { self.until } else { self.again?.0 };
        Some(if at > now.after(WAIT_LONGEST) { now } else { at.max(now) })
    }

    /// Those that were owed leave, `last` as the last of them. It is told again soon where that costs
    /// less than the resend of what it acknowledges, as often as acknowledgements get lost: as often as
    /// segments are assumed to.
    pub(super) fn left(&mut self, now: Time, last: (Sn, Millis), loss: LossShare, repeats: bool) {
        self.until = Time::ZERO;
        let resend = u64::from(loss.get()) * u64::from(self.size + SEGMENT) / u64::from(WHOLE);
        let pays = self.patience.is_some() && self.gap.average() > ALONE && resend > AGAIN;
        self.again = (repeats && pays).then_some((now.after(AGAIN_AFTER), last.0, last.1));
    }

    /// The acknowledgement that is told again at `now`.
    pub(super) fn pop_again(&mut self, now: Time) -> Option<(Sn, Millis)> {
        let is_due = self.due_at(now, 0)? <= now;
        let (_, sn, ts) = self.again.take_if(|_| is_due)?;
        Some((sn, ts))
    }
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
        waits.left(at(91), (Sn(9), Millis(0)), LossShare::assumed(0), false);
        waits.took(at(92), 2, (0, 0), 0);
        assert!(waits.due_at(at(92), 2) <= Some(at(92)));
    }
}
