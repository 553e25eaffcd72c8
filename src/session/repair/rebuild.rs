//! Repairs that come in: what got lost is rebuilt of them.

use super::losses::Losses;
use super::stats::RepairStats;
use super::tells::Tells;
use super::under_way::low;
use super::{REACH, RepairConfig};
use crate::code::{Decoder, DecoderConfig};
use crate::session::wire::LossFrame;
use crate::time::{Millis, Time};

/// Measures what gets lost, and where that is much remembers packets and rebuilds others of repairs.
#[derive(Debug)]
pub(in crate::session) struct Rebuild {
    losses: Losses,
    tells: Tells,
    config: DecoderConfig,
    /// Made when the first repairs are asked for.
    work: Option<Box<Work>>,
    stats: RepairStats,
}

#[derive(Debug)]
struct Work {
    decoder: Decoder,
    /// A packet that was rebuilt.
    body: Vec<u8>,
}

impl Rebuild {
    /// For packets of at most so many bytes.
    pub(in crate::session) fn new(config: &RepairConfig, packet_max: u16) -> Self {
        let RepairConfig { min_loss, memory, .. } = *config;
        Self {
            losses: Losses::new(min_loss),
            tells: Tells::default(),
            config: DecoderConfig { segments: REACH, bytes: memory, mss: packet_max },
            work: None,
            stats: RepairStats::default(),
        }
    }

    /// The packet `pn` has come.
    pub(in crate::session) fn arrived(&mut self, pn: u64) {
        self.losses.arrived(pn);
        if !self.is_on() && self.work.is_some() {
            self.shrink();
        }
    }

    /// Whether repairs are wanted: packets are remembered, and acknowledged so that the peer knows what to cover.
    pub(in crate::session) const fn is_on(&self) -> bool {
        self.losses.is_on()
    }

    /// Remembers the frames of the packet `pn`, which has come, but for its REPAIR.
    pub(in crate::session) fn remember(&mut self, pn: u64, body: &[u8]) {
        let config = &self.config;
        let work = self.work.get_or_insert_with(|| Box::new(Work::new(config)));
        work.decoder.received(low(pn), 0, body);
    }

    /// So many repairs came while none are asked for any more.
    pub(in crate::session) const fn ignore(&mut self, repairs: u64) {
        self.stats.needless += repairs;
    }

    /// Takes a repair that came in the packet `carrier`.
    pub(in crate::session) fn take(&mut self, carrier: u64, first: u32, payload: &[u8]) {
        let Some(work) = &mut self.work else {
            self.stats.needless += 1; // nobody asks for it any more
            return;
        };
        let oldest = low(carrier).sub(REACH.into());
        work.decoder.give_up_before(oldest);
        if let Err(error) = work.decoder.repair(crate::seq::Sn(first), Millis(0), payload, oldest, REACH) {
            log::trace!("a repair in packet {carrier} was refused: {error}");
        }
    }

    /// Rebuilds a packet, of those before the newest, if that is possible: its number and its frames, which are to be
    /// [given back](Self::give_back). One that comes late may bring back what was sent after it.
    pub(in crate::session) fn recover(&mut self) -> Option<(u64, Vec<u8>)> {
        let (work, newest) = (self.work.as_mut()?, self.losses.newest()?);
        loop {
            let lost = work.decoder.recover()?;
            let age = low(newest).0.wrapping_sub(lost.sn.0);
            match newest.checked_sub(age.into()) {
                Some(pn) if lost.frg == 0 && age > 0 => {
                    let mut body = std::mem::take(&mut work.body);
                    body.clear();
                    body.extend_from_slice(lost.data);
                    return Some((pn, body));
                }
                _ => self.stats.refused += 1,
            }
        }
    }

    /// Takes the buffer of a packet that was rebuilt.
    pub(in crate::session) fn give_back(&mut self, body: Vec<u8>) {
        if let Some(work) = &mut self.work {
            work.body = body;
        }
    }

    /// What was rebuilt had come meanwhile, or is too old to tell.
    pub(in crate::session) const fn was_late(&mut self) {
        self.stats.late += 1;
    }

    /// What was rebuilt is no packet that is protected, or there is no memory for a repair.
    pub(in crate::session) const fn was_refused(&mut self) {
        self.stats.refused += 1;
    }

    /// The packet `pn` was rebuilt; if it was `taken` as well, the peer is told by `due`.
    pub(in crate::session) fn was_rebuilt(&mut self, pn: u64, taken: bool, due: Time) {
        self.stats.rebuilt += 1;
        if taken {
            self.tells.rebuilt(pn, due);
        }
    }

    /// When the peer is to be told of what was rebuilt.
    pub(in crate::session) const fn due(&self) -> Option<Time> {
        self.tells.due()
    }

    /// What a datagram that leaves now tells.
    pub(in crate::session) fn peek(&self, now: Time) -> Option<LossFrame> {
        self.tells.peek(now, self.losses.told())
    }

    /// The peer has been told.
    pub(in crate::session) fn told(&mut self, now: Time) {
        self.tells.told(now, self.losses.told());
    }

    /// Adds what was counted here.
    pub(in crate::session) fn add_to(&self, stats: &mut RepairStats) {
        let RepairStats { rebuilt, late, refused, needless, rejected, .. } = self.stats;
        let decoder = self.work.as_ref().map(|work| work.decoder.stats()).unwrap_or_default();
        (stats.rebuilt, stats.late, stats.refused) = (rebuilt, late, refused);
        stats.needless = needless + decoder.needless;
        stats.rejected = rejected;
        stats.rejected += decoder.rejected;
    }

    /// Bytes of the heap.
    pub(in crate::session) fn memory(&self) -> usize {
        let work = |work: &Work| size_of::<Work>() + work.decoder.memory_in_all() + work.body.capacity();
        self.work.as_deref().map_or(0, work)
    }

    /// Forgets what came and gives its memory back.
    pub(in crate::session) fn shrink(&mut self) {
        if let Some(work) = self.work.take() {
            let stats = work.decoder.stats();
            self.stats.needless += stats.needless;
            self.stats.rejected += stats.rejected;
        }
    }
}

impl Work {
    fn new(config: &DecoderConfig) -> Self {
        Self { decoder: Decoder::new(config), body: Vec::new() }
    }
}
