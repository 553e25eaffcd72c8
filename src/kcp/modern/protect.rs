//! Protects segments in flight before they are lost, within a budget of bytes.

use super::timely::Timely;
use super::waits::Gap;
use crate::code::budget::{LossShare, Repairs, Sent, WHOLE, is_queued};
use crate::code::{Draft, Encoder, Protector, Source};
use crate::kcp::config::{OVERHEAD, REPAIR_OVERHEAD};
use crate::kcp::congestion::Controller;
use crate::kcp::rtt::Rtt;
use crate::kcp::send::Sender;
use crate::kcp::transmit::{IP_AND_UDP, Transmit};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::{Command, HEADER_LEN, Header, Output};

/// Protects what is in flight: with repairs if the peer rebuilds, otherwise with copies.
///
/// New segments earn a share of their bytes, which follows the loss and the setting `repairs`. Protection
/// spends it, unless the congestion controller holds segments back. Nothing is earned without loss, or while long round
/// trips show a queue on the path, which protection would only lengthen.
#[derive(Debug)]
pub(in crate::kcp) struct Protection {
    peer: Peer,
    /// The share of transmissions that were resends.
    resent: LossShare,
    protector: Protector,
    pub(super) timely: Timely,
    /// Whether there is enough for repairs in datagrams of their own.
    is_rich: bool,
    /// The first new segment of each of the last two flushes, the later first, to copy from. `None`: there was none.
    flushes: [Option<Sn>; 2],
    pub(super) gap: Gap,
    /// For how many packets the last repair let acknowledgements wait. `None`: there was no reason to send one.
    patience: Option<u8>,
    pub(super) floor: Floor,
    /// The first segment that pacing left unprotected.
    unprotected: Option<Sn>,
    /// Mean number of new segments that leave together, in 1/16.
    together: u32,
    /// Datagrams of acknowledgements that waiting has saved the peer, and that were not spent yet.
    saved: u32,
}

/// What the peer's acknowledgements tell about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Peer {
    /// Nothing was acknowledged yet.
    Unknown,
    Stock,
    /// It rebuilds, and reports this loss on the way to it, of 254.
    Rebuilds {
        loss: u8,
    },
}

impl Default for Protection {
    fn default() -> Self {
        Self {
            peer: Peer::Unknown,
            resent: LossShare::assumed(ASSUMED),
            protector: Protector::default(),
            timely: Timely::default(),
            is_rich: false,
            flushes: [None; 2],
            gap: Gap::default(),
            patience: None,
            floor: Floor::default(),
            unprotected: None,
            together: 16,
            saved: 0,
        }
    }
}

impl Protection {
    /// The peer marked its ACKs with `mark`: 0, or 1 plus its loss of 254.
    pub(super) fn hear(&mut self, mark: u8) {
        self.peer = mark.checked_sub(1).map_or(Peer::Stock, |loss| Peer::Rebuilds { loss });
    }

    /// Whether the peer rebuilds.
    pub(super) const fn is_of_use(&self) -> bool {
        matches!(self.peer, Peer::Rebuilds { .. })
    }

    /// This many resends were certainly needless: the transmission before each has arrived.
    pub(super) fn excuse_named(&mut self, resends: u32) {
        if self.peer != Peer::Stock {
            (0..resends).for_each(|_| self.resent.excuse());
        }
    }

    /// This many resends were needless, so nothing was lost. Ignored if the peer rebuilds: a rebuilt segment looks as
    /// if it had arrived.
    pub(super) fn excuse(&mut self, resends: u32) {
        if self.peer == Peer::Stock {
            (0..resends).for_each(|_| self.resent.excuse());
        }
    }

    /// How long the peer may hold an acknowledgement, µs; if many get lost, until the one after it. `None`: it does not
    /// say that it holds any.
    pub(super) fn ack_delay(&self, rtt: &Rtt) -> Option<u64> {
        let Peer::Rebuilds { .. } = self.peer else { return None };
        let lost = if self.resent.get() > MANY_LOST { self.gap.average } else { 0 };
        let patience = self.patience.unwrap_or(0).min(self.gap.patience(rtt));
        Some(self.gap.wait().map_or(0, |wait| lost + wait * u64::from(patience)))
    }

    /// A datagram acknowledged this many segments in a row, of which none was lost. If they left in several flushes, their
    /// acknowledgements have waited for each other.
    pub(super) fn acknowledged(&mut self, segments: u32) {
        let saved = (16 * segments / self.together).saturating_sub(1);
        self.saved = self.saved.saturating_add(saved); // without repairs nothing spends it
    }

    /// Whether a controller has left segments unprotected.
    pub(super) const fn owes(&self) -> bool {
        self.unprotected.is_some()
    }

    /// Protects what is in flight, as far as the budget allows, after `resent` resends and the new segments from
    /// `first` on. Returns how many repairs or copies were sent.
    pub(super) fn send<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        first: Sn,
        resent: u32,
        repairs: Repairs,
    ) -> u32 {
        let rtt = transmit.rtt;
        (0..resent).for_each(|_| self.resent.judge(true));
        let new = transmit.sender.nxt.0.wrapping_sub(first.0);
        if new > 0 {
            (0..new).for_each(|_| self.resent.judge(false));
            (0..new.min(BURST)).for_each(|_| self.gap.packet(transmit.now));
            self.together = (7 * self.together + 16 * new.min(BURST)).div_ceil(8);
            if let Repairs::Deadline(_) = repairs {
                self.timely.sent(transmit.sender.nxt, transmit.now);
            }
            self.earn(transmit, first, repairs);
        }
        let first = self.unprotected.take().unwrap_or(first);
        let is_held_back = Controller::holds_back(transmit.config, transmit.sender);
        if is_held_back || first == transmit.sender.nxt {
            return 0; // waiting segments make better use of the room on the path
        }
        match self.peer {
            Peer::Unknown => 0,
            Peer::Stock => self.copy(transmit, first),
            Peer::Rebuilds { .. } => {
                let patience = self.gap.patience(rtt);
                if patience > 0 && self.patience.is_none() {
                    self.protector.budget.grant(FIRST);
                    self.patience = Some(0);
                }
                let sent = self.repair(transmit, first, patience);
                if sent > 0 {
                    self.patience = Some(patience);
                }
                self.unprotected = (!transmit.congestion.allows()).then_some(first);
                sent
            }
        }
    }

    /// The segments from `first` on were just sent. Sends small segments of the two flushes before that again, as far
    /// as the budget and the datagram allow. Any KCP peer accepts the copy that arrives first. Returns how many. Source
    /// of the idea: G. Fiedler, "Reliable Ordered Messages".
    fn copy<O: Output>(&mut self, transmit: &mut Transmit<'_, '_, O>, first: Sn) -> u32 {
        let Transmit { header, packer, sender, congestion, .. } = transmit;
        let mut sent = 0;
        for (start, end) in to_copy(self.flushes, sender.una(), first) {
            let mut sn = start;
            while sn.is_before(end) {
                if let Some(segment) = sender.ring.get(sn).filter(|segment| segment.len <= SMALL) {
                    let cost = u64::from(segment.len) + HEADER_LEN as u64;
                    if !packer.fits(segment.len) || !congestion.allows() || !self.protector.budget.spend(cost)
                    {
                        break;
                    }
                    let header = Header { sn, frg: segment.frg, ..*header };
                    sender.copy_payload(sn, segment, packer.push(&header, segment.len));
                    congestion.spend(segment.len);
                    sent += 1;
                }
                sn = sn.add(1);
            }
        }
        let [last, _] = self.flushes;
        self.flushes = [Some(first), last];
        sent
    }

    /// The segments from `first` on were just sent. Sends repairs of what is in flight, as far as the budget allows.
    /// Acknowledgements may wait for `patience` packets. Returns how many.
    fn repair<O: Output>(&mut self, transmit: &mut Transmit<'_, '_, O>, first: Sn, patience: u8) -> u32 {
        let protector = &mut self.protector;
        if !protector.budget.affords(HEADER_LEN as u64 + u64::from(REPAIR_OVERHEAD)) {
            return 0; // skips the search below
        }
        let nxt = transmit.sender.nxt;
        let new = nxt.0.wrapping_sub(first.0);
        // A repair is useless if it is lost together with what it covers. One of its own covers the newest segments, too.
        let together = new.min(transmit.packer.segments);
        let before = draft(transmit, nxt.sub(together)).filter(|draft| transmit.packer.fits(draft.len));
        let before = before.filter(|_| !self.is_rich);
        let rides = before.is_some();
        let Some(draft) = before.or_else(|| draft(transmit, nxt)) else { return 0 };
        let most = if rides || new <= FEW { FEW } else { MANY };
        let cost = u64::from(draft.len) + HEADER_LEN as u64 + if rides { 0 } else { IP_AND_UDP };
        let mut sent = 0;
        while sent < most
            && (!rides || transmit.packer.fits(draft.len))
            && transmit.congestion.allows()
            && protector.budget.spend(cost)
        {
            if !rides {
                transmit.packer.finish();
            }
            let (cmd, sn) = (Command::Wins, draft.first());
            let header = Header { cmd, frg: patience, sn, ..transmit.header };
            let protected = Protected { sender: transmit.sender, most: transmit.config.cut() };
            protector.write(&protected, &draft, transmit.packer.push(&header, draft.len));
            transmit.congestion.spend(draft.len);
            sent += 1;
        }
        sent
    }

    /// Earns what the new segments from `first` on allow.
    fn earn<O>(&mut self, transmit: &Transmit<'_, '_, O>, first: Sn, repairs: Repairs) {
        let (loss, most) = match self.peer {
            Peer::Rebuilds { loss } => ((u32::from(loss) * WHOLE / 254).max(self.resent.get()), BURST),
            // A copy replaces nothing but itself.
            Peer::Unknown | Peer::Stock if repairs == Repairs::Auto => return,
            Peer::Unknown | Peer::Stock => (self.resent.get(), 1),
        };
        let together = transmit.sender.in_flight.min(most);
        let is_needed = loss > 0 && !self.floor.is_under_queue(transmit.rtt.srtt);
        let bytes = if is_needed { wire_bytes(transmit, first) } else { 0 };
        let saved = u64::from(std::mem::take(&mut self.saved)) * (HEADER_LEN as u64 + IP_AND_UDP);
        let (segments, loss) =
            (transmit.sender.nxt.0.wrapping_sub(first.0), if is_needed { loss } else { 0 });
        let timely = if is_needed { self.timely.share() } else { 0 };
        let sent = Sent { loss, segments, bytes, together, saved };
        self.is_rich = self.protector.budget.earn_by(repairs, &sent, timely) > RICH;
    }
}

/// The shortest recent round trip, over the last one to two times [`PERIOD`]. The path may have become longer for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    /// When the current period began.
    since: Time,
    /// The shortest in the current period and in the one before, µs. `u32::MAX`: none.
    present: u32,
    before: u32,
}

impl Default for Floor {
    fn default() -> Self {
        Self { since: Time::ZERO, present: u32::MAX, before: u32::MAX }
    }
}

impl Floor {
    /// A round trip of this many µs was measured.
    pub(super) fn sample(&mut self, now: Time, rtt: u32) {
        if now.micros_since(self.since) >= PERIOD || now < self.since {
            *self = Self { since: now, present: u32::MAX, before: self.present };
        }
        self.present = self.present.min(rtt);
    }

    /// Whether a smoothed round trip, µs, is longer than jitter explains, so there may be a queue on the path.
    pub(super) fn may_be_under_queue(self, srtt: u32) -> bool {
        let min = self.present.min(self.before);
        srtt.saturating_sub(min) > min / 8 + JITTER
    }

    /// Whether a smoothed round trip, µs, is so long that there must be a queue on the path.
    pub(super) fn is_under_queue(self, srtt: u32) -> bool {
        is_queued(srtt.into(), self.present.min(self.before).into())
    }
}

/// The segments of these flushes that are in flight, before `first`. A flush may be so long ago that its number seems to
/// lie ahead.
fn to_copy(flushes: [Option<Sn>; 2], una: Sn, first: Sn) -> impl Iterator<Item = (Sn, Sn)> {
    let mut end = first;
    flushes.into_iter().flatten().map(move |start| {
        let in_flight = u32::try_from(end.distance(una)).unwrap_or(0);
        let start = if start.offset_in(una, in_flight).is_some() { start } else { una };
        (start, std::mem::replace(&mut end, start))
    })
}

/// Bytes on the wire of the segments from `first` on, if each had a datagram of its own.
fn wire_bytes<O>(transmit: &Transmit<'_, '_, O>, first: Sn) -> u64 {
    let sender = &transmit.sender;
    let len = |offset| sender.ring.get(first.add(offset)).map_or(0, |segment| u64::from(segment.len));
    let new = sender.nxt.0.wrapping_sub(first.0);
    (0..new).map(|offset| len(offset) + HEADER_LEN as u64 + IP_AND_UDP).sum()
}

/// A repair of the last segments in flight before `end`. Covers segments behind a gap only if there is room to say so.
/// `None`: there are none.
fn draft<O>(transmit: &Transmit<'_, '_, O>, end: Sn) -> Option<Draft> {
    let (sender, mtu) = (&*transmit.sender, transmit.config.mtu);
    let numbers = end.0.wrapping_sub(sender.una().0);
    let protected = Protected { sender, most: transmit.config.cut() };
    let fits = |draft: &Draft| draft.len.saturating_add(OVERHEAD) <= mtu;
    Draft::of_last_if(&protected, numbers, end, fits)
}

/// The segments in flight that are so short that a repair of them fits into a datagram.
struct Protected<'a> {
    sender: &'a Sender,
    /// Most payload of a segment, bytes.
    most: u16,
}

impl Source for Protected<'_> {
    fn len_of(&self, sn: Sn) -> Option<u16> {
        self.sender.ring.get(sn).map(|segment| segment.len).filter(|len| *len <= self.most)
    }

    fn add_to(&self, encoder: &mut Encoder, sn: Sn) {
        if let Some(segment) = self.sender.ring.get(sn) {
            encoder.add(sn, segment.frg, segment.len, |to| self.sender.copy_payload(sn, segment, to));
        }
    }
}

/// How long the shortest round trip is kept at least, µs: longer than most queues last.
const PERIOD: u64 = 30_000_000;
/// Part of a round trip that may be jitter, µs.
const JITTER: u32 = 5_000;
/// Share of bytes from which on repairs leave in datagrams of their own, of 65,535. They cost more bytes then, but what is
/// lost need not wait for the next segment.
const RICH: u32 = WHOLE * 2 / 5;
/// Bytes for a small repair, whatever is lost, that tells the peer that acknowledgements may wait.
const FIRST: u64 = 160;
/// Most repairs at once for few segments.
const FEW: u32 = 2;
/// Most repairs at once after a burst of segments.
const MANY: u32 = 16;
/// Largest segment that is copied, bytes.
const SMALL: u16 = 400;
/// Loss assumed before anything is known, of 65,535.
const ASSUMED: u32 = WHOLE / 100;
/// Share of resends, of 65,535, above which a timeout also waits for the next acknowledgement: the last one may be lost
/// as well.
const MANY_LOST: u32 = WHOLE / 4;
/// Segments that protect each other, and packets at once that count for the interval.
const BURST: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_segments_in_flight_are_copied_however_long_ago_the_last_flushes_were() {
        for ago in [0, 5, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 31) + 7, u32::MAX] {
            for before in [1, 5, 1 << 30, (1 << 31) - 1, 1 << 31, u32::MAX - 3] {
                let (una, first) = (Sn(u32::MAX - 4), Sn(3));
                let last = first.sub(1).sub(ago);
                let copied: Vec<_> = to_copy([Some(last), Some(last.sub(before))], una, first).collect();
                for (start, end) in copied {
                    let is_within = |sn: Sn| sn.offset_in(una, 9).is_some();
                    assert!(is_within(start) && is_within(end), "{ago}, {before}: {start:?} to {end:?}");
                }
            }
        }
    }

    #[test]
    fn a_longer_round_trip_is_a_queue_until_it_has_lasted() {
        assert!(!Floor::default().is_under_queue(10_000_000), "nothing is known");
        // One second at 10 ms is remembered for at least 30 s and less than 60 s.
        for (short, last) in [(30, 89), (59, 89), (60, 119)] {
            let mut floor = Floor::default();
            let queued = (0..200).filter(|&second| {
                let rtt = if second == short { 10_000 } else { 100_000 };
                floor.sample(Time::from_millis(1000 * second), rtt);
                floor.is_under_queue(100_000)
            });
            assert!(queued.eq(short..=last), "{short}");
        }
    }

    #[test]
    fn half_and_20_ms_more_are_a_queue_and_an_eighth_and_5_ms_may_be_one() {
        let mut floor = Floor::default();
        floor.sample(Time::ZERO, 10_000);
        assert_eq!([35_000, 35_001].map(|srtt| floor.is_under_queue(srtt)), [false, true]);
        assert_eq!([16_250, 16_251].map(|srtt| floor.may_be_under_queue(srtt)), [false, true]);
    }
}
