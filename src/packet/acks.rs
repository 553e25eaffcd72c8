//! Which packets arrived: what one end is told by the other, and tells it.

use super::reordering::Reordering;
use crate::pace::{Loss, Rtt};
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;
use crate::time::Time;
use std::time::Duration;

/// What an [`AckTracker`] remembers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `AckConfig { .., ..AckConfig::default() }`")]
pub struct AckConfig {
    /// Packets sent that can still be acknowledged, the newest ones.
    pub sent: u16,
    /// Packets received that are told apart from their copies, the newest ones; an older one is
    /// refused as stale.
    pub received: u16,
    /// A packet not acknowledged for this long counts as lost.
    pub lost_after: Duration,
    /// When nothing has been received for this long, what was is forgotten: the numbers of the peer may
    /// have come round meanwhile.
    pub forget_after: Duration,
}

impl Default for AckConfig {
    /// 256 packets each way; lost after 1 s, forgotten after 10 s.
    fn default() -> Self {
        let (lost_after, forget_after) = (Duration::from_secs(1), Duration::from_secs(10));
        Self { sent: 256, received: 256, lost_after, forget_after }
    }
}

/// The packets that one end says it has received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the wire format does not grow")]
pub struct Acks {
    /// The newest of them.
    pub ack: Seq16,
    /// Bit n is set when the packet `ack` - 1 - n is one of them.
    pub bits: u32,
}

/// Packets that became known to have arrived; iterates over their numbers, oldest first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Acked {
    newest: Seq16,
    /// Bit n is set for the packet `newest` - n.
    set: u64,
    /// The same, for packets found lost.
    lost: u64,
    bytes: u64,
}

impl Acked {
    /// Their bytes, as they were sent.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that have not arrived, where packets sent later have: evidently lost. Each is told once, oldest first, and may
    /// become known to have arrived all the same.
    pub fn lost(&self) -> impl Iterator<Item = Seq16> + use<> {
        Self { set: self.lost, ..*self }
    }
}

impl Iterator for Acked {
    type Item = Seq16;

    fn next(&mut self) -> Option<Seq16> {
        let age = self.set.checked_ilog2()?;
        self.set &= !(1 << age);
        Some(self.newest.sub(u16::try_from(age).ok()?))
    }
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third reason")]
pub enum NotNew {
    /// It is older than what is remembered.
    Stale,
    /// It has been received before.
    Duplicate,
}

/// Keeps which packets were sent and received, by numbers that its owner counts: +1 for each packet
/// sent, in the order of sending. Knows no wire format: [`Endpoint`](super::Endpoint) has one,
/// another owner may bring its own.
///
/// What is acknowledged has surely arrived; what is not is probably lost, for the acknowledgement
/// can be lost as well. Each is told in 33 packets.
#[derive(Clone, Debug)]
pub struct AckTracker {
    config: AckConfig,
    sent: SequenceBuffer<Sent>,
    /// The oldest packet not yet counted as lost or not.
    unjudged: Seq16,
    /// How much later a packet is told of than later ones.
    reordering: Reordering,
    received: SequenceBuffer<()>,
    /// When something was last received; `None`: nothing was, or that is forgotten.
    heard: Option<Time>,
    rtt: Rtt,
    loss: Loss,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    bytes: u32,
    acked: bool,
    /// How much later a packet left that is known to have arrived, where this one had not.
    overtaken_by: Duration,
    /// Found lost by that.
    lost: bool,
}

impl AckTracker {
    /// A tracker that owns no memory yet.
    #[must_use]
    pub fn new(config: &AckConfig) -> Self {
        let (sent, received) = (SequenceBuffer::new(config.sent), SequenceBuffer::new(config.received));
        Self {
            config: *config,
            sent,
            unjudged: Seq16(0),
            reordering: Reordering::default(),
            received,
            heard: None,
            rtt: Rtt::default(),
            loss: Loss::default(),
        }
    }

    /// Remembers a packet that is sent now, of so many bytes.
    pub fn on_sent(&mut self, now: Time, sequence: Seq16, bytes: u32) {
        if self.sent.newest().is_none() {
            self.unjudged = sequence;
        }
        let oldest = sequence.sub(self.sent.size() - 1);
        self.judge(|unjudged, _| unjudged.is_before(oldest));
        let sent = Sent { at: now, bytes, acked: false, overtaken_by: Duration::ZERO, lost: false };
        self.sent.insert(sequence, sent);
    }

    /// Whether a packet is to be taken.
    ///
    /// # Errors
    ///
    /// It is too old, or came before. Nothing changes either way.
    pub fn check(&self, sequence: Seq16) -> Result<(), NotNew> {
        if self.received.is_stale(sequence) {
            Err(NotNew::Stale)
        } else if self.received.get(sequence).is_some() {
            Err(NotNew::Duplicate)
        } else {
            Ok(())
        }
    }

    /// Notes that the peer is there, by a packet or a part of one.
    pub const fn on_heard(&mut self, now: Time) {
        self.heard = Some(now);
    }

    /// Remembers a packet that has arrived, and that [`check`](Self::check) takes.
    pub fn on_received(&mut self, now: Time, sequence: Seq16) {
        self.on_heard(now);
        self.received.insert(sequence, ());
    }

    /// What to tell the peer; `None`: nothing was received, or it is too long ago.
    #[must_use]
    pub fn acks(&self) -> Option<Acks> {
        let ack = self.received.newest()?;
        let has = |age: u16| u32::from(self.received.get(ack.sub(1 + age)).is_some());
        let bits = (0..BITS).fold(0, |bits, age| bits | has(age) << age);
        Some(Acks { ack, bits })
    }

    /// Whether the peer may tell this: it acknowledges nothing newer than what was sent.
    #[must_use]
    pub fn is_possible(&self, acks: Acks) -> bool {
        self.sent.newest().is_some_and(|newest| !newest.is_before(acks.ack))
    }

    /// Marks what the peer says has arrived; returns those that were not known to, which each packet
    /// is once.
    ///
    /// The newest of them is a round trip, if it is `acks.ack`: older ones may have waited for an
    /// acknowledgement that got lost. `delay` is how long the peer says that it waited itself.
    ///
    /// If it is news that `acks.ack` has arrived, those before it that have not are [lost](Acked::lost) when they left earlier by
    /// more than packets have been seen to overtake each other.
    pub fn on_acks(&mut self, now: Time, acks: Acks, delay: Duration) -> Acked {
        let told = u64::from(acks.bits) << 1 | 1;
        let mut acked = Acked { newest: acks.ack, set: 0, lost: 0, bytes: 0 };
        for sequence in (Acked { set: told, ..acked }) {
            let Some(sent) = self.sent.get_mut(sequence).filter(|sent| !sent.acked) else {
                continue;
            };
            sent.acked = true;
            acked.set |= 1 << acks.ack.0.wrapping_sub(sequence.0);
            acked.bytes += u64::from(sent.bytes);
            self.reordering.arrived(sent.overtaken_by, self.rtt.min());
            if sequence == acks.ack {
                let at = sent.at;
                self.rtt.sample(now.since(at).saturating_sub(delay));
                acked.lost = self.overtaken(at, Acked { set: !told & TOLD, ..acked });
            }
        }
        acked
    }

    /// Of the packets `missing` where one that left at `newest` has arrived: those that are evidently lost, as a set.
    fn overtaken(&mut self, newest: Time, missing: Acked) -> u64 {
        let mut lost = 0;
        for sequence in missing {
            let Some(sent) = self.sent.get_mut(sequence).filter(|sent| !sent.acked) else {
                continue;
            };
            sent.overtaken_by = sent.overtaken_by.max(newest.since(sent.at));
            if !sent.lost && sent.overtaken_by > self.reordering.allowance() {
                sent.lost = true;
                lost |= 1 << missing.newest.0.wrapping_sub(sequence.0);
                self.reordering.found_lost();
            }
        }
        lost
    }

    /// Lets time pass, before anything else happens at `now`: counts what was sent `lost_after` ago or
    /// earlier as lost or not lost, and forgets what was received before a silence of `forget_after`.
    pub fn update(&mut self, now: Time) {
        let AckConfig { lost_after, forget_after, .. } = self.config;
        self.judge(|_, sent| now.since(sent.at) >= lost_after);
        if self.heard.is_some_and(|heard| now.since(heard) >= forget_after) {
            self.heard = None;
            self.received.clear();
        }
    }

    /// When [`update`](Self::update) has something to count next; `None`: nothing is under way.
    #[must_use]
    pub fn check_loss(&self) -> Option<Time> {
        self.sent.get(self.unjudged).map(|sent| sent.at + self.config.lost_after)
    }

    /// Forgets what is known of the path: packets take another one now.
    pub(crate) fn path_changed(&mut self) {
        (self.rtt, self.loss, self.reordering) = (Rtt::default(), Loss::default(), Reordering::default());
    }

    /// Bytes of the heap.
    pub(crate) const fn memory(&self) -> usize {
        self.sent.memory() + self.received.memory()
    }

    /// Whether packets that were sent are remembered.
    pub(crate) const fn remembers_sent(&self) -> bool {
        self.sent.newest().is_some()
    }

    /// Forgets the packets that were sent, and gives their memory back: what is acknowledged later is news of nothing.
    pub(crate) fn forget_sent(&mut self) {
        self.sent.reset();
    }

    /// When something was last received; `None`: nothing was, or that is forgotten.
    #[must_use]
    pub const fn heard(&self) -> Option<Time> {
        self.heard
    }

    /// The round trips.
    #[must_use]
    pub const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// What was lost: not acknowledged within `lost_after`, or before `sent` more packets were sent.
    #[must_use]
    pub const fn loss(&self) -> &Loss {
        &self.loss
    }

    /// Judges packets, oldest first, as long as they are `due`.
    fn judge(&mut self, due: impl Fn(Seq16, &Sent) -> bool) {
        while self.sent.newest().is_some_and(|newest| !newest.is_before(self.unjudged)) {
            match self.sent.get(self.unjudged) {
                Some(sent) if due(self.unjudged, sent) => self.loss.sample(!sent.acked),
                Some(_) => break,
                None => {} // a number that was left out
            }
            self.unjudged = self.unjudged.add(1);
        }
    }
}

/// Packets that one [`Acks`] tells of beside the newest.
const BITS: u16 = 32;
/// The set of all packets that it tells of.
const TOLD: u64 = (1 << (BITS + 1)) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A sender and a receiver beside a naive model of both, whose numbers do not wrap.
    struct Exchange {
        alice: AckTracker,
        bob: AckTracker,
        start: u16,
        received: BTreeSet<u32>,
        reported: BTreeSet<u32>,
        lost: BTreeSet<u32>,
        sent: u32,
    }

    impl Exchange {
        fn new(config: AckConfig, start: u16) -> Self {
            let (alice, bob) = (AckTracker::new(&config), AckTracker::new(&config));
            let [received, reported, lost] = [(); 3].map(|()| BTreeSet::new());
            Self { alice, bob, start, received, reported, lost, sent: 0 }
        }

        fn seq(&self, number: u32) -> Seq16 {
            Seq16(self.start.wrapping_add(u16::try_from(number & 0xffff).unwrap()))
        }

        /// The number, of those sent so far, that `seq` stands for.
        fn number(&self, seq: Seq16) -> u32 {
            self.sent - u32::from(self.seq(self.sent).0.wrapping_sub(seq.0))
        }

        fn send(&mut self, now: Time) -> u32 {
            self.alice.update(now);
            self.alice.on_sent(now, self.seq(self.sent), 100);
            self.sent += 1;
            self.sent - 1
        }

        fn arrive(&mut self, now: Time, number: u32) {
            let seq = self.seq(number);
            let newest = self.received.last().copied().unwrap_or(number);
            let stale = newest.saturating_sub(number) >= self.bob.config.received.into();
            self.bob.update(now);
            let expected = if stale {
                Err(NotNew::Stale)
            } else if self.received.contains(&number) {
                Err(NotNew::Duplicate)
            } else {
                Ok(())
            };
            assert_eq!(self.bob.check(seq), expected, "{number}");
            if expected.is_ok() {
                self.bob.on_received(now, seq);
                self.received.insert(number);
            }
        }

        fn answer(&mut self, now: Time) {
            let acks = self.bob.acks();
            let Some(&newest) = self.received.last() else {
                assert_eq!(acks, None);
                return;
            };
            // What is stale is not told of, if it is only because fewer than 33 are remembered.
            let span = u32::from(self.bob.config.received).min(33);
            let told: Vec<_> = self.received.range((newest + 1).saturating_sub(span)..).copied().collect();
            let acks = acks.unwrap();
            assert_eq!(self.number(acks.ack), newest);
            let bits = told.iter().fold(0, |bits, number| bits | (1u64 << (newest - number)) >> 1);
            assert_eq!(u64::from(acks.bits), bits);
            assert!(self.alice.is_possible(acks));
            let remembered = self.sent.saturating_sub(self.alice.config.sent.into());
            let new: Vec<_> = told
                .iter()
                .copied()
                .filter(|number| *number >= remembered && !self.reported.contains(number))
                .collect();
            let acked = self.alice.on_acks(now, acks, Duration::ZERO);
            assert_eq!(acked.bytes(), 100 * new.len() as u64);
            for lost in acked.lost() {
                let lost = self.number(lost);
                assert!(lost < newest && !told.contains(&lost), "{lost} is not lost");
                assert!(self.lost.insert(lost), "{lost} is told twice");
            }
            assert_eq!(acked.map(|seq| self.number(seq)).collect::<Vec<_>>(), new);
            self.reported.extend(new);
        }
    }

    /// Sends `packets` packets, of which the network loses, delays and doubles some; as many answers.
    fn run(config: AckConfig, start: u16, loss: f64, packets: u32, seed: u64) -> Exchange {
        let mut random = seed;
        let mut below = |count: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from((random >> 33) % u64::from(count)).unwrap()
        };
        let (mut exchange, mut under_way) = (Exchange::new(config, start), Vec::new());
        for step in 0..packets {
            let now = Time::from_millis(u64::from(step) * 10);
            let number = exchange.send(now);
            if f64::from(below(1000)) >= 1000.0 * loss {
                let late = if below(5) == 0 { below(60) } else { 0 };
                under_way.push((step + late, number));
                if below(10) == 0 {
                    under_way.push((step + late + 3, number));
                }
            }
            let (due, rest): (Vec<_>, _) = under_way.into_iter().partition(|(at, _)| *at <= step);
            under_way = rest;
            due.into_iter().for_each(|(_, number)| exchange.arrive(now, number));
            if f64::from(below(1000)) >= 1000.0 * loss {
                exchange.answer(now);
            }
        }
        exchange
    }

    const PATIENT: AckConfig = AckConfig {
        sent: 256,
        received: 256,
        lost_after: Duration::from_secs(1),
        forget_after: Duration::from_secs(600),
    };

    #[test]
    fn at_99_percent_loss_no_wrap_brings_false_acks() {
        for seed in 1..=3 {
            let exchange = run(PATIENT, 0, 0.99, 5 << 16, seed);
            assert!(exchange.received.len() > 2500 && exchange.reported.len() > 200, "seed {seed}");
            let loss = exchange.alice.loss();
            assert!(loss.lost() > loss.judged() * 99 / 100, "seed {seed}");
        }
    }

    #[test]
    fn an_ack_that_got_lost_comes_again_32_times() {
        let mut exchange = Exchange::new(PATIENT, u16::MAX - 20);
        for number in 0..=32 {
            let now = Time::from_millis(u64::from(number) * 10);
            exchange.send(now);
            exchange.arrive(now, number);
        }
        exchange.answer(Time::from_millis(400));
        assert_eq!(exchange.reported.len(), 33);
    }

    #[test]
    fn a_packet_is_lost_once_a_later_one_has_arrived_and_late_ones_teach_how_much_later() {
        let mut tracker = AckTracker::new(&AckConfig::default());
        let sent = |number: u16| Time::from_millis(u64::from(number) * 10);
        (0..100).for_each(|number| tracker.on_sent(sent(number), Seq16(number), 1));
        let mut lost = |ack: u16, missing: &[u16]| -> Vec<u16> {
            let bits = missing.iter().fold(u32::MAX, |bits, number| bits & !(1 << (ack - 1 - number)));
            let acks = Acks { ack: Seq16(ack), bits };
            let told = tracker.on_acks(sent(ack + 6), acks, Duration::ZERO);
            told.lost().map(|seq| seq.0).collect()
        };
        assert_eq!(lost(40, &[]), []);
        assert_eq!(lost(43, &[41, 42]), [41, 42], "any later one will do");
        assert_eq!(lost(44, &[41]), [], "42 has come after 43: by 10 ms");
        assert_eq!(lost(46, &[41, 45]), [], "10 ms tell nothing now");
        assert_eq!(lost(47, &[41, 45]), [45], "20 ms do");
        assert_eq!(lost(48, &[41, 45]), []);
        assert_eq!(lost(99, &[97, 98]), [97]);
    }

    #[test]
    fn what_left_at_the_same_time_does_not_tell_on_each_other() {
        let mut tracker = AckTracker::new(&AckConfig::default());
        for (number, at) in [(0, 0), (1, 0), (2, 1)] {
            tracker.on_sent(Time::from_millis(at), Seq16(number), 1);
        }
        let mut lost = |ack| {
            tracker.on_acks(Time::from_millis(50), Acks { ack: Seq16(ack), bits: 0 }, Duration::ZERO).lost()
        };
        assert_eq!((lost(1).count(), lost(2).count()), (0, 1));
    }

    #[test]
    fn loss_is_what_is_not_acked_in_time_or_pushed_out() {
        let mut tracker = AckTracker::new(&AckConfig { sent: 64, ..AckConfig::default() });
        for number in 0..100 {
            tracker.on_sent(Time::ZERO, Seq16(number), 1);
        }
        assert_eq!((tracker.loss().judged(), tracker.loss().lost()), (36, 36));
        assert_eq!(tracker.check_loss(), Some(Time::from_millis(1000)));
        let now = Time::from_millis(999);
        let acks = Acks { ack: Seq16(99), bits: 0x7fff_ffff };
        assert_eq!(tracker.on_acks(now, acks, Duration::ZERO).count(), 32);
        tracker.update(now);
        assert_eq!(tracker.loss().judged(), 36);
        tracker.update(Time::from_millis(1000));
        assert_eq!((tracker.loss().judged(), tracker.loss().lost()), (100, 68));
        assert_eq!((tracker.check_loss(), tracker.loss().share() > 0.5), (None, true));
        let late = tracker.on_acks(now, Acks { ack: Seq16(67), bits: 0 }, Duration::ZERO);
        assert!(late.eq([Seq16(67)]), "a late ack is one all the same");
        assert_eq!(tracker.loss().lost(), 68);
    }

    #[test]
    fn a_round_trip_is_that_of_the_newest_without_the_delay_of_the_peer() {
        let mut tracker = AckTracker::new(&AckConfig::default());
        (0..4)
            .for_each(|number| tracker.on_sent(Time::from_millis(u64::from(number) * 10), Seq16(number), 1));
        let acks = |ack, bits| Acks { ack: Seq16(ack), bits };
        tracker.on_acks(Time::from_millis(100), acks(1, 0), Duration::from_millis(15));
        assert_eq!((tracker.rtt().samples(), tracker.rtt().smoothed()), (1, Duration::from_millis(75)));
        tracker.on_acks(Time::from_millis(300), acks(1, 1), Duration::ZERO);
        assert_eq!(tracker.rtt().samples(), 1, "packet 0 waited for an ack, not under way");
        tracker.on_acks(Time::from_millis(105), acks(3, 2), Duration::ZERO);
        assert_eq!(
            (tracker.rtt().max(), tracker.rtt().min()),
            (Duration::from_millis(75), Duration::from_millis(75))
        );
    }

    #[test]
    fn silence_ends_what_is_told_and_makes_any_number_new() {
        let mut tracker = AckTracker::new(&AckConfig::default());
        tracker.on_received(Time::ZERO, Seq16(5));
        tracker.update(Time::from_millis(9_999));
        assert_eq!(
            (tracker.check(Seq16(5)), tracker.acks()),
            (Err(NotNew::Duplicate), Some(Acks { ack: Seq16(5), bits: 0 }))
        );
        tracker.update(Time::from_millis(10_000));
        assert_eq!((tracker.check(Seq16(5)), tracker.acks(), tracker.heard()), (Ok(()), None, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_does_what_a_naive_model_does(
            start: u16,
            loss in prop_oneof![Just(0.0), 0.0..1.0f64, Just(0.9)],
            sent in 1..400u16,
            received in 1..400u16,
            seed: u64,
        ) {
            run(AckConfig { sent, received, ..PATIENT }, start, loss, 1500, seed);
        }
    }
}
