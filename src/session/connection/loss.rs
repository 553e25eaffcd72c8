//! Measures how many of this end's packets get lost, from what the peer reports.
//!
//! An ACK covers 33 packets, including those that ask for none. Packets between two ACKs that neither covers are
//! taken to be lost as often as others, so lost ACKs do not count as losses. Where nothing asks for ACKs, pings do:
//! their answers say how many packets have arrived in total, which is exact whatever happened between two of them.

use crate::time::Time;

/// What the peer has reported, and the share of packets that were lost. Its size is fixed, whatever the peer reports.
#[derive(Debug, Default)]
pub(super) struct PathLoss {
    /// The newest packet known to have arrived.
    newest: u64,
    /// Bit n: the packet `newest` - n has arrived.
    arrived: u64,
    /// Bit n: the packet `newest` - n was judged lost because of its missing bit. It may come late.
    missing: u64,
    /// The first packet that is not judged yet.
    unjudged: u64,
    /// The packet after those of the peer's last count.
    counted_to: u64,
    /// When the peer last reported something.
    told_at: Option<Time>,
    /// MTU probes that are missing. They are included in `late`.
    probes: u32,
    /// The newest packet that went to an address where the peer may not be. Bit n: that number - n did as well, and is
    /// not known to have arrived. It is included in `late`.
    elsewhere: (u64, u64),
    /// The peer's last count.
    count: u32,
    /// Packets that were wrongly judged lost. They are subtracted from the next losses.
    late: u32,
    /// The remainder of the last estimate for packets that no ACK covers.
    rest: u32,
    /// Packets that were judged, and how many of them were lost.
    pub(super) judged: u64,
    pub(super) lost: u64,
    /// Packets judged and lost in each of the last periods up to `told_at`, indexed by the period modulo the number
    /// of slots.
    slots: [(u32, u32); SLOTS],
}

/// The packets that an ACK covers: the newest, and by the bits those before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    newest: u64,
    bits: u32,
    /// How many packets before the newest it covers.
    reach: u64,
}

impl Told {
    /// What an ACK says, as if no number had been skipped: `newest` and the bits, how many numbers up to `newest` were
    /// skipped, and which. Bit n: `newest` - n was.
    pub(super) fn new(newest: u64, mut bits: u32, count: u64, mut skipped: u64) -> Self {
        let reach = REACH - u64::from(skipped.count_ones());
        while let Some(age) = skipped.checked_ilog2().filter(|age| *age > 0) {
            let below = (1 << (age - 1)) - 1;
            bits = bits & below | bits >> 1 & !below;
            skipped &= !(1 << age);
        }
        Self { newest: newest - count, bits, reach }
    }

    /// The packets that an ACK judges, as a set.
    const fn settled(self) -> u64 {
        (1 << (self.reach + 1)) - (1 << DEPTH)
    }

    /// Bit n: the packet `newest` - n has arrived.
    fn set(self) -> u64 {
        u64::from(self.bits) << 1 | 1
    }
}

impl PathLoss {
    /// Takes an ACK, perhaps with the number of packets that have arrived in total.
    pub(super) fn on_told(&mut self, now: Time, told: Told, packets: Option<u32>) {
        let is_stale = self.is_told(now, told);
        self.came_elsewhere(told);
        let Some(packets) = packets else { return self.take_bits(now, told, is_stale) };
        let next = told.newest + 1;
        if next <= self.counted_to && self.counted_to != u64::MAX {
            return; // older than the last one
        }
        if self.counted_to == self.unjudged && !is_stale {
            let (sent, arrived) = (next - self.unjudged, u64::from(packets.wrapping_sub(self.count)));
            if arrived <= sent + u64::from(LATE_MAX) {
                self.judge(now, sent, sent.saturating_sub(arrived));
                self.excuse(u32::try_from(arrived.saturating_sub(sent)).unwrap_or(LATE_MAX));
            }
        } else {
            self.take_bits(now, told, is_stale);
            self.judge_to(now, told.newest);
        }
        (self.newest, self.arrived, self.missing) = (told.newest, told.set(), 0);
        (self.unjudged, self.counted_to, self.count) = (next, next, packets);
    }

    /// Notes how many MTU probes are not known to have arrived. That says nothing about other packets.
    pub(super) fn probes_missing(&mut self, probes: u32) {
        let before = std::mem::replace(&mut self.probes, probes);
        self.late = self.late.saturating_sub(before.saturating_sub(probes));
        self.excuse(probes.saturating_sub(before));
    }

    /// Notes that a packet leaves for an address where the peer may not be. It counts only if it arrives.
    pub(super) fn on_elsewhere(&mut self, pn: u64) {
        let (newest, set) = self.elsewhere;
        self.elsewhere = (pn, set.checked_shl(shift(pn - newest)).unwrap_or(0) | 1);
        self.excuse(1);
    }

    /// Takes back the excuse of packets that have arrived.
    fn came_elsewhere(&mut self, told: Told) {
        let (newest, elsewhere) = self.elsewhere;
        let came = match newest.checked_sub(told.newest) {
            Some(ahead) => told.set().checked_shl(shift(ahead)),
            None => told.set().checked_shr(shift(told.newest - newest)),
        };
        let came = came.unwrap_or(0) & elsewhere;
        self.elsewhere.1 &= !came;
        self.late = self.late.saturating_sub(came.count_ones());
    }

    /// From the packet `next` on, packets take another path.
    pub(super) fn path_changed(&mut self, next: u64) {
        self.begin_at(next);
        (self.elsewhere, self.late) = ((next, 0), 0);
        self.slots = [(0, 0); SLOTS];
    }

    /// The share of lost packets among those judged in the last 10 s, or in the newest periods that have `enough`
    /// together; `None`: too few to tell.
    pub(super) fn share(&self, now: Time, enough: u64) -> Option<f64> {
        let (mut judged, mut lost) = (0, 0);
        let oldest = (period(now) + 1).saturating_sub(SLOTS as u64);
        for period in (oldest..=period(self.told_at?.min(now))).rev() {
            let (slot_judged, slot_lost) = self.slots.get(slot(period)).copied().unwrap_or_default();
            (judged, lost) = (judged + u64::from(slot_judged), lost + u64::from(slot_lost));
            if judged >= enough {
                break;
            }
        }
        (judged >= JUDGED_MIN).then(|| lost.saturating_sub(self.late.into()) as f64 / judged as f64)
    }

    /// Starts again at this packet, and knows nothing about those before it.
    fn begin_at(&mut self, next: u64) {
        (self.newest, self.arrived, self.missing) = (next.saturating_sub(1), 0, 0);
        (self.unjudged, self.counted_to) = (next, u64::MAX);
    }

    /// Notes that the peer reports. Returns whether its last report is so old that packets sent since then say
    /// nothing about now.
    fn is_told(&mut self, now: Time, Told { newest, reach, .. }: Told) -> bool {
        let Some(before) = self.told_at else {
            self.told_at = Some(now);
            self.arrived = 1; // the packet 0, which the first ACK need not cover
            if newest > FIRST {
                self.begin_at(newest.saturating_sub(reach));
            }
            return false;
        };
        self.told_at = Some(before.max(now));
        for passed in (period(before) + 1..=period(now)).take(SLOTS) {
            if let Some(slot) = self.slots.get_mut(slot(passed)) {
                *slot = (0, 0);
            }
        }
        now.micros_since(before) > STALE
    }

    fn take_bits(&mut self, now: Time, told: Told, is_stale: bool) {
        let set = told.set();
        let Some(ahead) = told.newest.checked_sub(self.newest) else {
            return self.came(set.checked_shl(shift(self.newest - told.newest)).unwrap_or(0));
        };
        if ahead > told.reach {
            self.judge_to(now, self.newest);
            self.unjudged = self.unjudged.max(told.newest - told.reach);
        }
        self.arrived = self.arrived.checked_shl(shift(ahead)).unwrap_or(0);
        self.missing = self.missing.checked_shl(shift(ahead)).unwrap_or(0);
        self.newest = told.newest;
        self.came(set);
        // Packets that neither this ACK nor one before covers: they are taken to be lost as often as those of this
        // one.
        let untold = ahead.saturating_sub(told.reach + 1).min(UNTOLD_MAX);
        if untold > 0 && !is_stale {
            let lost = u64::from(self.rest) + u64::from((!set & told.settled()).count_ones()) * untold;
            let of = u64::from(told.settled().count_ones());
            self.rest = u32::try_from(lost % of).unwrap_or_default();
            self.judge(now, untold, lost / of);
        }
        if let Some(last) = told.newest.checked_sub(DEPTH) {
            self.judge_to(now, last);
        }
    }

    /// Notes packets that have arrived, as a set like `arrived`.
    fn came(&mut self, set: u64) {
        self.excuse((set & self.missing).count_ones());
        self.arrived |= set;
        self.missing &= !set;
    }

    fn excuse(&mut self, packets: u32) {
        self.late = self.late.saturating_add(packets).min(LATE_MAX);
    }

    /// Judges packets up to `last`, among the last 64, by whether they have arrived.
    fn judge_to(&mut self, now: Time, last: u64) {
        if last < self.unjudged {
            return;
        }
        let upto = |age: u64| u64::MAX >> 63u32.saturating_sub(shift(age)); // the packets of ages 0 to this
        let set = upto(self.newest - self.unjudged) & !(upto(self.newest - last) >> 1);
        let lost = set & !self.arrived;
        self.missing |= lost;
        self.unjudged = last + 1;
        self.judge(now, set.count_ones().into(), lost.count_ones().into());
    }

    fn judge(&mut self, now: Time, judged: u64, lost: u64) {
        let excused = u32::try_from(lost).unwrap_or(u32::MAX).min(self.late);
        self.late -= excused;
        let lost = lost - u64::from(excused);
        (self.judged, self.lost) = (self.judged + judged, self.lost + lost);
        if let Some((slot_judged, slot_lost)) = self.slots.get_mut(slot(period(now))) {
            let add = |to: &mut u32, n: u64| *to = to.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
            add(slot_judged, judged);
            add(slot_lost, lost);
        }
    }
}

/// How many numbers before the newest an ACK covers.
const REACH: u64 = 32;
/// A packet is judged when an ACK covers one that was sent this many packets later.
const DEPTH: u64 = 4;
/// Most packets between two ACKs that are taken to be lost as often as others.
const UNTOLD_MAX: u64 = 1024;
/// Most packets that are known to have been judged lost too soon.
const LATE_MAX: u32 = 64;
/// Counting begins with the first packet if the first report is not about a later packet than this.
const FIRST: u64 = 256;
/// Periods whose packets count for the share, and how long one is, µs: 10 s together.
const SLOTS: usize = 8;
const PERIOD: u64 = 1_250_000;
/// Fewest packets that give a share: one of them is 0.02.
pub(super) const JUDGED_MIN: u64 = 50;
/// After a longer silence, µs, packets sent meanwhile say nothing about now.
const STALE: u64 = 5_000_000;

const fn period(now: Time) -> u64 {
    now.as_micros() / PERIOD
}

fn slot(period: u64) -> usize {
    usize::try_from(period % SLOTS as u64).unwrap_or_default()
}

/// A distance to shift by.
fn shift(packets: u64) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl PathLoss {
        fn on_ack(&mut self, now: Time, told: Told) {
            self.on_told(now, told, None);
        }

        fn on_count(&mut self, now: Time, told: Told, packets: u32) {
            self.on_told(now, told, Some(packets));
        }
    }

    const fn at(ms: u64) -> Time {
        Time::from_millis(1_000_000 + ms)
    }

    /// An ACK of `newest`. `arrived` says which packets have arrived.
    fn ack(newest: u64, arrived: impl Fn(u64) -> bool) -> Told {
        let has = |age: u64| newest.checked_sub(1 + age).is_some_and(&arrived);
        Told::new(newest, (0..32).fold(0, |bits, age| bits | u32::from(has(age)) << age), 0, 0)
    }

    fn counts(loss: &PathLoss) -> [u64; 2] {
        [loss.judged, loss.lost]
    }

    #[test]
    fn counts_are_exact_whatever_is_between_them() {
        let mut loss = PathLoss { count: u32::MAX - 9, ..PathLoss::default() };
        loss.on_count(at(0), ack(99, |_| true), 70);
        assert_eq!(counts(&loss), [100, 20]);
        loss.on_count(at(900), ack(10_099, |_| false), 9_070);
        assert_eq!(counts(&loss), [10_100, 1_020]);
        loss.on_count(at(800), ack(5_000, |_| true), 5_000);
        assert_eq!(counts(&loss), [10_100, 1_020], "an older one");
        loss.on_ack(at(1000), ack(10_100, |_| true));
        loss.on_count(at(1000), ack(10_109, |_| true), 9_080);
        assert_eq!(counts(&loss), [10_110, 1_020], "an ACK alone does not disturb them");
        loss.on_count(at(1100), ack(10_120, |_| true), u32::MAX);
        assert_eq!(counts(&loss), [10_110, 1_020], "more than there can be");
    }

    #[test]
    fn numbers_that_were_skipped_are_taken_out() {
        let Told { newest, bits, reach } = Told::new(70, 0b0010_1101, 3, 1 << 8 | 1 << 2);
        assert_eq!((newest, bits, reach), (67, 0b1_0111, 30), "without bit 7 and bit 1");
    }

    #[test]
    fn a_share_is_of_ten_seconds_and_of_fifty_packets() {
        let mut loss = PathLoss::default();
        loss.on_count(at(0), ack(48, |_| true), 0);
        assert_eq!(loss.share(at(0), u64::MAX), None);
        loss.on_count(at(1), ack(49, |_| true), 0);
        assert_eq!(loss.share(at(0), u64::MAX), Some(1.0));
        (2..10)
            .for_each(|s| loss.on_count(at(1000 * s), ack(49 + s, |_| true), u32::try_from(s).unwrap() - 1));
        assert_eq!(loss.share(at(9_999), u64::MAX), Some(51.0 / 59.0));
        assert_eq!(loss.share(at(10_000), u64::MAX), None, "these are forgotten, and the others few");
        loss.path_changed(100);
        assert_eq!((loss.share(at(9_999), u64::MAX), counts(&loss)), (None, [59, 51]));
    }

    proptest! {
        #[test]
        fn whatever_is_told_it_is_a_share(tells in prop::collection::vec((0..5000u64, 0..3000u64, any::<u32>(), any::<Option<u32>>()), 1..100)) {
            let (mut loss, mut now, mut newest) = (PathLoss::default(), 0, 0);
            for (passed, sent, bits, count) in tells {
                now += passed;
                newest += sent;
                let told = Told::new(newest - u64::from(bits % 70).min(newest), bits, 0, 0);
                loss.on_told(at(now), told, count);
                prop_assert!(loss.lost <= loss.judged && loss.judged <= newest + 1, "{:?}", loss);
                prop_assert!(loss.share(at(now), u64::MAX).is_none_or(|share| (0.0..=1.0).contains(&share)), "{:?}", loss);
            }
        }
    }
}
