//! Random paths and faults for a run.

use crate::common::ms;
use rand::Rng;
use std::time::Duration;
use whitewater_sim::{Bottleneck, Corruption, LinkConfig, Loss, SimRng};

/// The random numbers of one run.
pub(crate) struct Draw(pub(crate) SimRng);

impl Draw {
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn share(&mut self, percent: u64) -> f64 {
        self.below(percent * 10 + 1) as f64 / 1000.0
    }

    /// 1 ms to `most` ms, each order of magnitude equally likely.
    pub(crate) fn any_span(&mut self, most: u64) -> Duration {
        let bits = u64::from(most.ilog2()) + 1;
        let bound = 1 << (1 + self.below(bits));
        ms(1 + self.below(bound).min(most - 1))
    }

    /// A path in one direction: up to 800 ms of delay, 60 % loss, 20 % duplicated or late, damaged, narrow,
    /// or none of it.
    pub(crate) fn link(&mut self) -> LinkConfig {
        let loss = match self.below(8) {
            0..3 => Loss::None,
            3 => Loss::Random(self.share(60)),
            4 => Loss::Random(self.share(20)),
            5 => Loss::PacketBursts { enter: self.share(5), leave: 0.3, in_good: 0.0, in_bad: 0.9 },
            _ => Loss::Bursts { good: ms(900), bad: ms(1 + self.below(400)), in_good: 0.01, in_bad: 0.9 },
        };
        let corruption = if self.one_in(3) {
            Corruption { flip: self.share(10), truncate: self.share(10) }
        } else {
            Corruption::default()
        };
        let delay = if self.one_in(6) { self.below(800) } else { self.below(150) };
        LinkConfig {
            delay: ms(delay),
            jitter: ms(self.below(60)),
            in_order: self.one_in(2),
            loss,
            reorder: if self.one_in(2) { self.share(20) } else { 0.0 },
            late: ms(self.below(500)),
            duplicate: if self.one_in(2) { self.share(20) } else { 0.0 },
            corruption,
            bottleneck: self
                .one_in(4)
                .then(|| Bottleneck { rate: 300_000 + self.below(5_000_000), queue: 64_000 }),
            ..LinkConfig::default()
        }
    }

    pub(crate) fn fault(&mut self) -> Fault {
        Fault::ALL[self.below(Fault::ALL.len() as u64) as usize]
    }
}

/// Faults besides a bad path.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Fault {
    /// The path changes.
    Path,
    /// The client's datagrams come from another port or another address.
    Port,
    Address,
    /// Nothing arrives for 0.1 to 30 s, at both ends or at one.
    Partition,
    OneWay,
    /// Large packets vanish for a while.
    BlackHole,
    /// An end is not polled for a while.
    FrozenClient,
    FrozenServer,
    /// The clock of an end jumps 1 ms to 1 h forward or back.
    ClientAhead,
    ServerAhead,
    ClientBack,
    ServerBack,
    /// An end stops reading while more arrives than its window allows.
    Unread,
    /// Old datagrams are replayed.
    Replay,
    /// The server restarts without its state; the client does, at the same or at another address.
    ServerRestart,
    ClientRestart,
    ClientElsewhere,
    /// One end closes, or both do; then the client connects again.
    Close,
}

impl Fault {
    pub(crate) const ALL: [Self; 18] = [
        Self::Path,
        Self::Port,
        Self::Address,
        Self::Partition,
        Self::OneWay,
        Self::BlackHole,
        Self::FrozenClient,
        Self::FrozenServer,
        Self::ClientAhead,
        Self::ServerAhead,
        Self::ClientBack,
        Self::ServerBack,
        Self::Unread,
        Self::Replay,
        Self::ServerRestart,
        Self::ClientRestart,
        Self::ClientElsewhere,
        Self::Close,
    ];
}
