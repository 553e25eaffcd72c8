//! ECN: marks of received packets are reported to the peer, and marks of sent packets are heeded, as long as the path
//! and the peer do not corrupt them.
//!
//! Source: RFC 9000 (13.4 and A.4), RFC 9002 (7.1), with the counts of all packets of the session instead of those of an ACK.

use super::Connection;
use super::transmit::Out;
use crate::machine::Ecn;
use crate::pace::Loss;
use crate::session::wire::{EcnFrame, FEATURE_ECN, Frame};
use crate::time::Time;
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Marks {
    received: EcnFrame,
    /// When the peer must be told, or never, and the earliest time for it.
    pub(super) due: Time,
    not_before: Time,
    /// How many datagrams that leave anyway may still report.
    repeats: u8,
    path: PathMarks,
    /// Packets sent, as the peer would count them.
    sent: EcnFrame,
    /// The last counts of the peer, and the packet they came in.
    told: EcnFrame,
    told_in: Option<u64>,
    /// Whether the last packet that was sent is marked.
    is_marked: bool,
    /// Share of marked packets, of about the last 64.
    pub(super) share: Loss,
    /// Packets that the peer says were marked.
    pub(super) total: u64,
}

/// What is known about the path's treatment of marks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum PathMarks {
    /// Nothing yet: this many more packets are marked.
    Testing(u8),
    /// The peer has not reported any.
    #[default]
    Unknown,
    /// They arrive.
    Valid,
    /// They do not arrive, or the peer's counts are impossible.
    Invalid,
}

impl Marks {
    /// For a session whose ends both have these features.
    pub(super) fn new(features: u32) -> Option<Box<Self>> {
        (features & FEATURE_ECN != 0)
            .then(|| Box::new(Self { due: Time::NEVER, path: PathMarks::Testing(TESTS), ..Self::default() }))
    }

    pub(super) fn is_valid(&self) -> bool {
        self.path == PathMarks::Valid
    }

    /// Counts a received packet. If it `only_tells` of others, its mark waits for a datagram that leaves anyway.
    /// Otherwise two ends whose packets are all marked would report that to each other forever.
    pub(super) fn on_received(&mut self, ecn: Option<Ecn>, only_tells: bool, due: Time) {
        let EcnFrame { unmarked, capable, congested } = &mut self.received;
        let count = match ecn {
            Some(Ecn::Congested) => congested,
            Some(Ecn::Capable) => capable,
            Some(Ecn::Scalable) | None => unmarked,
        };
        *count = count.wrapping_add(1);
        self.repeats = REPEATS;
        if ecn == Some(Ecn::Congested) && !only_tells {
            self.due = self.due.min(self.not_before.max(due));
        }
    }

    /// Reports the received marks if that is due, or if the report may ride along; `must`: only if it is due.
    pub(super) fn write(&mut self, out: &mut Out<'_>, must: bool) -> bool {
        let rides = !must && self.repeats > 0 && self.not_before <= out.now;
        if !(rides || self.due <= out.now) || out.frames.push(&Frame::Ecn(self.received)).is_err() {
            return false;
        }
        (self.due, self.not_before) = (Time::NEVER, out.now + TELL_EACH);
        self.repeats = self.repeats.saturating_sub(1);
        true
    }

    pub(super) const fn on_sent(&mut self) {
        self.is_marked = match self.path {
            PathMarks::Testing(left) => {
                self.path = if left > 1 { PathMarks::Testing(left - 1) } else { PathMarks::Unknown };
                true
            }
            PathMarks::Valid => true,
            PathMarks::Unknown | PathMarks::Invalid => false,
        };
        let EcnFrame { unmarked, capable, .. } = &mut self.sent;
        let count = if self.is_marked { capable } else { unmarked };
        *count = count.wrapping_add(1);
    }

    /// The peer is reached by another path, which is tested anew. Packets sent before may still be reported.
    pub(super) fn path_changed(&mut self) {
        self.path = PathMarks::Testing(TESTS);
        self.share = Loss::default();
    }

    /// Takes the peer's counts, from the packet `pn`. Returns how many more packets the path has marked.
    pub(super) fn on_counts(&mut self, pn: u64, counts: EcnFrame) -> u32 {
        if self.path == PathMarks::Invalid || self.told_in.is_some_and(|newest| pn <= newest) {
            return 0;
        }
        let since = |counts: EcnFrame| EcnFrame {
            unmarked: counts.unmarked.wrapping_sub(self.told.unmarked),
            capable: counts.capable.wrapping_sub(self.told.capable),
            congested: counts.congested.wrapping_sub(self.told.congested),
        };
        let (EcnFrame { unmarked, capable, congested }, under_way) = (since(counts), since(self.sent));
        let marks_under_way = under_way.capable.wrapping_add(under_way.congested);
        let is_possible = u64::from(capable) + u64::from(congested) <= marks_under_way.into()
            && unmarked <= under_way.unmarked;
        let marks_all =
            self.path != PathMarks::Valid && counts.capable == 0 && counts.congested >= TESTS.into();
        if !is_possible || marks_all {
            self.path = PathMarks::Invalid;
            return 0;
        }
        (self.told, self.told_in) = (counts, Some(pn));
        if capable > 0 {
            self.path = PathMarks::Valid;
        }
        let samples = |count: u32| 0..count.min(SAMPLES);
        samples(capable).for_each(|_| self.share.sample(false));
        samples(congested).for_each(|_| self.share.sample(true));
        self.total += u64::from(congested);
        congested
    }
}

impl Connection {
    /// The mark for the IP header of the datagram that was written last.
    pub(in crate::session) fn transmit_ecn(&self) -> Option<Ecn> {
        self.marks.as_ref().filter(|marks| marks.is_marked).map(|_| Ecn::Capable)
    }

    /// How many packets have arrived. If marks are not heeded, none counts as marked.
    pub(super) fn packets_received(&self) -> EcnFrame {
        let none = EcnFrame { unmarked: self.received_low(), ..EcnFrame::default() };
        self.marks.as_ref().map_or(none, |marks| marks.received)
    }

    /// Datagrams received, modulo 2^32.
    #[expect(clippy::cast_possible_truncation, reason = "modulo")]
    pub(super) const fn received_low(&self) -> u32 {
        self.stats.received as u32
    }
}

/// Packets that are marked to test the path. Source: RFC 9000 (A.4).
const TESTS: u8 = 10;
/// How often counts are reported after the last packet, with datagrams that leave anyway.
const REPEATS: u8 = 3;
/// Least time between two reports of counts.
const TELL_EACH: Duration = Duration::from_millis(10);
/// Most packets of each kind that one report counts for: the share is of about the last 64.
const SAMPLES: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of an end that has sent 20 packets, of which the first ten tested the path.
    fn tested() -> Marks {
        let mut marks = *Marks::new(1).unwrap();
        (0..20).for_each(|_| marks.on_sent());
        assert_eq!(
            (marks.sent.capable, marks.sent.unmarked),
            (10, 10),
            "ten, and then none until they are told of"
        );
        marks
    }

    fn counts(unmarked: u32, capable: u32, congested: u32) -> EcnFrame {
        EcnFrame { unmarked, capable, congested }
    }

    #[test]
    fn marks_that_arrive_are_believed_and_go_on() {
        let mut marks = tested();
        assert_eq!(marks.on_counts(1, counts(3, 6, 2)), 2);
        assert!(marks.is_valid());
        marks.on_sent();
        assert!(marks.is_marked);
        assert_eq!(marks.on_counts(0, counts(0, 1, 0)), 0, "an older packet says nothing");
        assert_eq!(marks.on_counts(2, counts(10, 8, 3)), 1);
        assert_eq!((marks.total, marks.is_valid()), (3, true));
    }

    #[test]
    fn counts_that_cannot_be_switch_marks_off_for_good() {
        for (name, first, second) in [
            ("bleached", counts(0, 1, 0), counts(11, 1, 0)),
            ("more than were sent", counts(0, 1, 0), counts(0, 9, 2)),
            ("fewer than before", counts(0, 5, 0), counts(0, 4, 0)),
            ("any number", counts(0, 1, 0), counts(0, u32::MAX, 0)),
            ("all are marked", counts(0, 0, 9), counts(0, 0, 10)),
        ] {
            let mut marks = tested();
            marks.on_counts(1, first);
            assert_eq!(marks.on_counts(2, second), 0, "{name}");
            assert_eq!(marks.path, PathMarks::Invalid, "{name}");
            marks.on_sent();
            assert!(!marks.is_marked, "{name}");
            assert_eq!(marks.on_counts(3, counts(0, 5, 5)), 0, "{name}");
        }
    }

    #[test]
    fn counts_come_round() {
        let mut marks = tested();
        for count in [&mut marks.sent, &mut marks.told] {
            count.capable = count.capable.wrapping_sub(5);
        }
        marks.on_counts(1, counts(0, 5, 0));
        assert!(marks.is_valid());
    }
}
