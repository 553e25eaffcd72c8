//! How long datagrams may be: finds what the path carries, and notices when it carries less.
//!
//! Source: RFC 8899 (packetization layer path MTU discovery). Probes are padded pings. The base length is not probed:
//! a path that does not carry it carries no session.

use super::Connection;
use super::transmit::Written;
use crate::seq::Seq16;
use crate::session::local_key::Label;
use crate::session::seal::Seal;
use crate::session::wire::{DATA_HEADER_LEN, Frame, FrameWriter};
use crate::time::Time;
use std::time::Duration;

/// The longest datagram that may leave, and the search for a longer one.
#[derive(Debug)]
pub(super) struct PathMtu {
    pub(super) current: u16,
    /// What every path carries.
    base: u16,
    reach: Reach,
    /// `None`: no datagram was full yet, or none longer is accepted.
    pub(super) search: Option<Box<Search>>,
}

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// The longest datagram that both ends accept.
    most: u16,
    /// Bytes that follow each datagram on the path, and count there.
    tail: u16,
}

#[derive(Debug, Default)]
pub(super) struct Search {
    /// The shortest length known not to arrive.
    too_long: u16,
    /// The length to try first.
    first: Option<u16>,
    /// The length being tried, and the stamps of its pings, which may be answered late.
    tries: Tries,
    /// How long the last one was waited for. It falls slowly: the round trip may have been measured while nothing
    /// else was in flight.
    patience: Duration,
    /// No probe leaves before this.
    not_before: Time,
    /// A datagram was full since the last probe, so a longer one would be of use.
    is_wanted: bool,
    unheard: Option<Unheard>,
    /// Black holes in quick succession, and until when another one counts as such.
    holes: u32,
    holes_until: Time,
    counts: ProbeCounts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    size: u16,
    stamps: [Option<u64>; MAX_PROBES],
    /// When the last one left, and when it is given up; `None`: it has been.
    waits: Option<(Time, Time)>,
}

/// Long datagrams, none of which is known to have arrived.
#[derive(Clone, Copy, Debug)]
struct Unheard {
    sent: u32,
    /// The last of them.
    newest: Seq16,
    /// Acknowledgement timeouts that have passed, and when the current one began.
    rounds: u8,
    since: Time,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeCounts {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) black_holes: u64,
}

impl PathMtu {
    /// Begins with datagrams of `base` bytes, and looks for longer ones up to `most`, with `tail` bytes after each.
    pub(super) const fn new(base: u16, most: u16, tail: u16) -> Self {
        Self { current: base, base, reach: Reach { most, tail }, search: None }
    }

    /// The length that every path carries, for data that cannot be cut.
    pub(super) const fn least(&self) -> u16 {
        self.base
    }

    /// Whether a datagram is longer than every path carries.
    pub(super) fn is_long(&self, len: usize) -> bool {
        len > usize::from(self.base)
    }

    /// Whether longer datagrams are looked for.
    pub(super) const fn looks(&self) -> bool {
        self.reach.most > self.base
    }

    /// Whether a datagram with data has to be [noted](Self::on_sent): a longer one would be of use, or it is long itself.
    pub(super) fn heeds(&self, len: usize, has_more: bool) -> bool {
        has_more || len + NEARLY >= usize::from(self.current) || self.is_long(len)
    }

    pub(super) fn counts(&self) -> ProbeCounts {
        self.search.as_ref().map_or(ProbeCounts::default(), |search| search.counts)
    }

    /// Probes that are not known to have arrived.
    pub(super) fn probes_missing(&self) -> u32 {
        let missing = |search: &Search| search.counts.lost + u64::from(search.tries.waits.is_some());
        u32::try_from(self.search.as_deref().map_or(0, missing)).unwrap_or(u32::MAX)
    }

    /// Notes a datagram with data that it [heeds](Self::heeds). `has_more`: there is more data than it has room for.
    /// `patience` is how long an acknowledgement may take.
    pub(super) fn on_sent(&mut self, now: Time, pn: Seq16, len: usize, has_more: bool, patience: Duration) {
        let is_long = self.is_long(len);
        let search = self.search.get_or_insert_with(|| Box::new(Search::new(self.reach.most)));
        search.is_wanted |= has_more || len + NEARLY >= usize::from(self.current);
        if is_long {
            let unheard =
                search.unheard.get_or_insert(Unheard { sent: 0, newest: pn, rounds: 0, since: now });
            (unheard.newest, unheard.sent) = (pn, unheard.sent.saturating_add(1));
            if now.since(unheard.since) >= patience {
                (unheard.rounds, unheard.since) = (unheard.rounds.saturating_add(1), now);
            }
        }
    }

    pub(super) fn on_arrived(&mut self, now: Time, sequence: Seq16, len: u32) {
        let Some(search) = self.search.as_mut().filter(|_| len > self.base.into()) else { return };
        search.unheard = search.unheard.and_then(|unheard| {
            let later = u32::try_from(unheard.newest.distance(sequence)).unwrap_or(0);
            (later > 0).then(|| Unheard { sent: unheard.sent.min(later), rounds: 0, since: now, ..unheard })
        });
    }

    /// Goes back to what every path carries if long datagrams no longer arrive. Returns whether it did.
    pub(super) fn shrink_if_lost(&mut self, now: Time, patience: Duration) -> bool {
        let Some(search) = self.search.as_mut().filter(|_| self.current > self.base) else {
            return false;
        };
        let falls = search.unheard.is_some_and(|unheard| unheard.is_too_much(now, patience));
        if falls {
            search.fall(now, self.current);
            self.current = self.base;
        }
        falls
    }

    /// Bytes of the probe that is due. `heard`: when the peer was last heard.
    pub(super) fn poll(&mut self, now: Time, heard: Time, patience: Duration) -> Option<u16> {
        let (search, current) = (self.search.as_mut()?, self.current);
        match search.tries.waits {
            Some((_, until)) if until > now => return None,
            Some((left, _)) if heard <= left => {
                // Nothing arrives at all: that says nothing about the length.
                search.tries.waits = Some((left, now + patience));
                return None;
            }
            Some(_) => search.give_up(now, current, self.reach),
            None => {}
        }
        if !search.is_wanted || search.not_before > now {
            return None;
        }
        let size = search.next_size(current, self.reach)?;
        if search.tries.size != size {
            search.tries = Tries { size, ..Tries::default() };
        }
        Some(size)
    }

    /// Notes that the probe left as a ping with this stamp.
    pub(super) fn on_probe(&mut self, now: Time, stamp: u64, patience: Duration) {
        let Some(search) = &mut self.search else { return };
        search.patience = patience.max(search.patience - search.patience / 16);
        if let Some(free) = search.tries.stamps.iter_mut().find(|stamp| stamp.is_none()) {
            *free = Some(stamp);
        }
        search.tries.waits = Some((now, now + search.patience));
        search.is_wanted = false;
        search.counts.sent += 1;
    }

    /// Notes that a ping was answered. Returns whether datagrams may be longer now.
    pub(super) fn on_pong(&mut self, now: Time, stamp: u64) -> bool {
        let Some(search) = &mut self.search else { return false };
        let Tries { size, stamps, .. } = search.tries;
        if !stamps.contains(&Some(stamp)) {
            return false;
        }
        search.tries = Tries::default();
        search.first = None;
        self.current = size;
        search.rest_if_done(now, size, self.reach);
        true
    }

    /// Goes back to the base length, and looks for no longer one: there is another path.
    pub(super) fn rest(&mut self) {
        self.path_changed();
        self.search.iter_mut().for_each(|search| search.is_wanted = false);
    }

    /// The longest copy of a datagram, which has a byte more.
    pub(super) fn for_copies(&self) -> u16 {
        (self.base + 1).min(self.reach.most)
    }

    /// The peer is reached by another path: begins anew.
    pub(super) fn path_changed(&mut self) {
        if let Some(search) = &mut self.search {
            let Search { is_wanted, counts, .. } = **search;
            **search = Search { is_wanted, counts, ..Search::new(self.reach.most) };
            self.current = self.base;
        }
    }

    /// When [`poll`](Self::poll) has something next.
    pub(super) fn check(&self) -> Time {
        let Some(search) = self.search.as_ref().filter(|search| search.is_wanted) else { return Time::NEVER };
        match search.tries.waits {
            Some((_, until)) => until,
            None if search.next_size(self.current, self.reach).is_some() => search.not_before,
            None => Time::NEVER,
        }
    }
}

impl Connection {
    /// Writes a probe if one is due: a padded ping.
    pub(super) fn seal_probe(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<()> {
        if self.mtu.search.is_none() || self.path.second().is_some() || self.turns.allows_at() > now {
            return None;
        }
        let patience = self.patience();
        let size = usize::from(self.mtu.poll(now, self.keepalive.heard, patience)?);
        let end = size + DATA_HEADER_LEN - self.seal.overhead();
        let padding = end.checked_sub(PING_END)?;
        let start = Seal::begin(buf);
        let mut writer = FrameWriter::new(buf, start + end);
        let stamp = self.stamps(Label::Probe).make(now);
        writer.push(&Frame::Ping(stamp)).ok()?;
        writer.push(&Frame::Pad(padding)).ok()?;
        self.on_data(now);
        self.mtu.on_probe(now, stamp, patience);
        self.finish(now, buf, start, Written::probe())
    }

    /// Goes back to shorter datagrams if long ones no longer arrive.
    pub(super) fn shrink_if_lost(&mut self, now: Time) {
        if self.mtu.search.is_some() && self.mtu.shrink_if_lost(now, self.patience()) {
            self.set_mtu();
        }
    }

    /// Goes back to the length that every path carries, which datagrams keep while there is a second one.
    pub(super) fn rest_mtu(&mut self) {
        self.mtu.rest();
        self.set_mtu();
    }

    /// Applies a new length of datagrams.
    pub(super) fn set_mtu(&mut self) {
        self.lanes.set_datagram(self.mtu.current);
        if self.parts.next().is_some_and(|(_, part)| part.len() > self.part_max()) {
            self.parts.drop_cut();
        }
    }

    /// How long an acknowledgement may take.
    pub(in crate::session) fn patience(&self) -> Duration {
        self.measured.patience(self.lanes.config.ack_delay)
    }
}

impl Search {
    fn new(most: u16) -> Self {
        Self {
            too_long: most + 1,
            first: Some(most), // usually right
            ..Self::default()
        }
    }

    fn give_up(&mut self, now: Time, current: u16, reach: Reach) {
        self.counts.lost += 1;
        self.tries.waits = None;
        if self.tries.stamps.iter().all(Option::is_some) {
            self.too_long = self.too_long.min(self.tries.size);
            self.first = self.first.filter(|first| *first < self.too_long);
            self.tries = Tries::default();
            self.rest_if_done(now, current, reach);
        }
    }

    /// The length to try next; `None`: the search is done.
    fn next_size(&self, current: u16, reach: Reach) -> Option<u16> {
        if self.tries.size > current {
            return Some(self.tries.size);
        }
        if let Some(first) = self.first.filter(|first| *first > current) {
            return Some(first);
        }
        let is_between = |size: &u16| (current + 1..self.too_long).contains(size);
        let usual = || USUAL.into_iter().map(|size| size - reach.tail).filter(is_between);
        usual()
            .nth(usual().count() / 2)
            .or_else(|| (self.too_long > current + STEP).then_some(current.midpoint(self.too_long)))
    }

    /// Once the search is done, the next one starts only after a while.
    fn rest_if_done(&mut self, now: Time, current: u16, reach: Reach) {
        if self.next_size(current, reach).is_none() {
            self.not_before = now + RAISE_AFTER;
            (self.too_long, self.first) = (reach.most + 1, Some(reach.most));
        }
    }

    /// Long datagrams no longer arrive. They are tried again at once, but later each time this repeats.
    fn fall(&mut self, now: Time, current: u16) {
        self.holes = if now < self.holes_until { self.holes.saturating_add(1) } else { 0 };
        let wait = self.holes.checked_sub(1).map_or(Duration::ZERO, |more| HOLE_WAIT * (1 << more.min(12)));
        self.not_before = now + wait.min(RAISE_AFTER);
        self.holes_until = self.not_before + HOLE_FORGOTTEN;
        self.first = Some(current);
        (self.tries, self.unheard, self.is_wanted) = (Tries::default(), None, true);
        self.counts.black_holes += 1;
    }
}

impl Unheard {
    /// Whether too many were lost for chance: on three occasions, or many on fewer.
    fn is_too_much(self, now: Time, patience: Duration) -> bool {
        match self.rounds + u8::from(now.since(self.since) >= patience) {
            0 => false,
            1 => self.sent >= LOST_AT_ONCE,
            2 => self.sent >= LOST_TWICE,
            _ => true,
        }
    }
}

/// Where the ping of a probe ends.
const PING_END: usize = DATA_HEADER_LEN + 9;
/// Probes of one size before it counts as too long. Source: RFC 8899 (5.1.2), MAX_PROBES.
const MAX_PROBES: usize = 3;
/// What common paths carry: 1280 bytes of IP, WireGuard with its 1420, tunnels through IPv4 with 1480, PPPoE with
/// 1492, Ethernet with 1500, less the headers of IPv6 and of IPv4 and that of UDP.
const USUAL: [u16; 10] = [1232, 1252, 1372, 1392, 1432, 1444, 1452, 1464, 1472, 8972];
/// The search ends when the length found is within this many bytes of one that does not arrive.
const STEP: u16 = 16;
/// A longer length is tried again after this time. Source: RFC 8899 (5.1.1), PMTU_RAISE_TIMER.
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// If this many long datagrams are lost within one acknowledgement timeout, it is a black hole. A mistake, as in an
/// outage, costs a few shorter datagrams and a probe.
const LOST_AT_ONCE: u32 = 16;
/// The same within two timeouts: at 20 % loss, chance does this once in 15,000 times.
const LOST_TWICE: u32 = 6;
/// The wait of a search after a second black hole; it doubles with each further one.
const HOLE_WAIT: Duration = Duration::from_millis(250);
/// After this long without another black hole, the count starts again.
const HOLE_FORGOTTEN: Duration = Duration::from_secs(60);
/// A datagram with no more free bytes than this counts as full.
const NEARLY: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    /// A peer answers probes and never acknowledges long datagrams: it lies, or somebody on the path lets only probes
    /// through. Counts the long datagrams of an hour in which one datagram is sent every 10 ms.
    #[test]
    fn who_answers_probes_and_acknowledges_nothing_long_gets_ever_less_that_is_long() {
        let mut mtu = PathMtu::new(1200, 1472, 0);
        let mut long = [0; 4];
        for ms in (0..3_600_000).step_by(10) {
            let now = Time::from_millis(ms);
            mtu.shrink_if_lost(now, PATIENCE);
            if mtu.poll(now, now, PATIENCE).is_some() {
                mtu.on_probe(now, ms, PATIENCE);
                assert!(mtu.on_pong(now, ms));
            }
            let sequence = Seq16(u16::try_from(ms / 10 % 65_536).unwrap());
            mtu.on_sent(now, sequence, mtu.current.into(), true, PATIENCE);
            long[usize::try_from(ms / 900_000).unwrap()] += u32::from(mtu.current > 1200);
        }
        assert!(long[0] < 600 && long[3] <= 40, "{long:?} in each quarter of an hour, of 90,000");
    }

    #[test]
    fn nothing_is_judged_while_nothing_at_all_is_heard() {
        let mut mtu = PathMtu::new(1200, 1472, 0);
        mtu.on_sent(Time::ZERO, Seq16(0), 1200, true, PATIENCE);
        assert_eq!(mtu.poll(Time::ZERO, Time::ZERO, PATIENCE), Some(1472));
        mtu.on_probe(Time::ZERO, 1, PATIENCE);
        for ms in 1..20_000 {
            let now = Time::from_millis(ms);
            mtu.on_sent(now, Seq16(0), 1200, true, PATIENCE);
            assert_eq!(mtu.poll(now, Time::ZERO, PATIENCE), None);
            assert!(mtu.check() > now);
        }
        assert_eq!(mtu.counts().lost, 0);
        assert!(mtu.on_pong(Time::from_millis(20_000), 1));
        assert_eq!((mtu.current, mtu.check()), (1472, Time::NEVER));
    }

    #[test]
    fn a_late_answer_to_any_of_the_probes_of_a_size_counts() {
        let mut mtu = PathMtu::new(1200, 1472, 0);
        for probe in 0..3 {
            let now = Time::from_millis(200 * probe);
            mtu.on_sent(now, Seq16(0), 1200, true, PATIENCE);
            assert_eq!(mtu.poll(now, now, PATIENCE), Some(1472));
            mtu.on_probe(now, probe, PATIENCE);
        }
        assert!(!mtu.on_pong(Time::from_millis(450), 3));
        assert!(mtu.on_pong(Time::from_millis(450), 0));
        assert_eq!((mtu.current, mtu.counts().lost), (1472, 2));
    }
}
