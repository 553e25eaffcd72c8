//! One direction of a path: it delays, loses, reorders and doubles datagrams, by a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use whitewater::Time;

/// What a link does to datagrams. A chance is a number from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkConfig {
    /// Shortest time under way.
    pub(crate) delay: Duration,
    /// Most that is added to it, evenly spread. No datagram overtakes another by it.
    pub(crate) jitter: Duration,
    /// Chance to get lost.
    pub(crate) loss: f64,
    /// Chance to come `late`, overtaken by others.
    pub(crate) reorder: f64,
    /// How much later.
    pub(crate) late: Duration,
    /// Chance to come twice.
    pub(crate) duplicate: f64,
}

impl LinkConfig {
    /// Nothing but a delay: half a round trip of 60 ms.
    pub(crate) fn clean() -> Self {
        Self { delay: Duration::from_millis(30), ..Self::default() }
    }

    /// A clean link that loses datagrams.
    pub(crate) fn lossy(loss: f64) -> Self {
        Self { loss, ..Self::clean() }
    }

    /// A bit of everything.
    pub(crate) fn mobile() -> Self {
        Self {
            jitter: Duration::from_millis(15),
            loss: 0.05,
            reorder: 0.03,
            late: Duration::from_millis(25),
            duplicate: 0.02,
            ..Self::clean()
        }
    }
}

/// One direction of a path. Buffers are used again, so that a steady state does not allocate.
#[derive(Debug)]
pub(crate) struct Link {
    config: LinkConfig,
    rng: Rng,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    /// When the last datagram that kept its place arrives.
    last: Time,
    spare: Vec<Vec<u8>>,
    /// Datagrams given to the link.
    pub(crate) sent: u64,
    /// Of those, lost.
    pub(crate) lost: u64,
    /// Bytes given to the link.
    pub(crate) bytes: u64,
    /// Datagrams and copies under way so far; orders those of one moment.
    count: u64,
    digest: u64,
}

/// In the order of arrival.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct UnderWay {
    at: Time,
    count: u64,
    datagram: Vec<u8>,
}

impl Link {
    /// A link with the random numbers of stream `stream`.
    pub(crate) fn new(config: LinkConfig, seed: u64, stream: u64) -> Self {
        Self {
            config,
            rng: Rng::new(seed, stream),
            under_way: BinaryHeap::new(),
            last: Time::ZERO,
            spare: Vec::new(),
            sent: 0,
            lost: 0,
            bytes: 0,
            count: 0,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// What happens to datagrams from now on.
    pub(crate) fn set(&mut self, config: LinkConfig) {
        self.config = config;
    }

    pub(crate) fn config(&self) -> LinkConfig {
        self.config
    }

    /// Takes a datagram. Four random numbers each, lost or not: so another chance of one thing
    /// leaves all others as they were.
    pub(crate) fn send(&mut self, now: Time, datagram: &[u8]) {
        let LinkConfig { delay, jitter, loss, reorder, late, duplicate } = self.config;
        let [loses, delays, reorders, doubles] = [(); 4].map(|()| self.rng.fraction());
        self.sent += 1;
        self.bytes += datagram.len() as u64;
        for byte in now.as_micros().to_le_bytes().iter().chain(datagram) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if loses < loss {
            self.lost += 1;
            return;
        }
        let mut at = now + delay + jitter.mul_f64(delays);
        if reorders < reorder {
            at = at + late;
        } else {
            at = at.max(self.last);
            self.last = at;
        }
        self.push(at, datagram);
        if doubles < duplicate {
            self.push(at + Duration::from_micros(1) + jitter, datagram);
        }
    }

    /// When the next datagram arrives.
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.under_way.peek().map(|Reverse(next)| next.at)
    }

    /// The next datagram that has arrived. Give it back by [`recycle`](Self::recycle).
    pub(crate) fn arrive(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.next_arrival()? > now {
            return None;
        }
        self.under_way.pop().map(|Reverse(next)| next.datagram)
    }

    pub(crate) fn recycle(&mut self, datagram: Vec<u8>) {
        self.spare.push(datagram);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Depends on every byte given to the link and its time. Source: FNV-1a.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    fn push(&mut self, at: Time, bytes: &[u8]) {
        let mut datagram = self.spare.pop().unwrap_or_default();
        datagram.clear();
        datagram.extend_from_slice(bytes);
        self.count += 1;
        self.under_way.push(Reverse(UnderWay { at, count: self.count, datagram }));
    }
}

/// Random numbers by a seed. Source: `SplitMix64`, <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Streams of one seed have nothing in common.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut rng = Self(start);
        rng.next();
        rng.next();
        rng
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}
