//! Repairs that come in: what got lost is rebuilt of them.

use super::losses::{Losses, Tells};
use super::{REACH, RepairConfig, RepairStats, low};
use crate::code::{Decoder, DecoderConfig};
use crate::seq::Sn;
use crate::session::wire::LossFrame;
use crate::time::{Millis, Time};

/// Measures what gets lost, and where that is much remembers packets and rebuilds others of repairs.
#[derive(Debug)]
pub(in crate::session) struct Rebuild {
    losses: Losses,
    tells: Tells,
    config: DecoderConfig,
    /// Made when the first repairs are asked for.
    decoder: Option<Box<Decoder>>,
    /// Without what the decoder counts.
    pub(in crate::session) stats: RepairStats,
}

impl Rebuild {
    pub(in crate::session) fn new(config: &RepairConfig, packet_max: u16) -> Self {
        let RepairConfig { min_loss, memory, .. } = *config;
        Self {
            losses: Losses::new(min_loss),
            tells: Tells::default(),
            config: DecoderConfig { segments: REACH, bytes: memory, mss: packet_max },
            decoder: None,
            stats: RepairStats::default(),
        }
    }

    pub(in crate::session) fn arrived(&mut self, pn: u64) {
        self.losses.arrived(pn);
        if !self.is_on() {
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
        let decoder = self.decoder.get_or_insert_with(|| Box::new(Decoder::new(config)));
        decoder.received(low(pn), 0, body);
    }

    /// A repair has come in the packet `carrier`.
    pub(in crate::session) fn repair(&mut self, carrier: u64, first: u32, payload: &[u8]) {
        let Some(decoder) = &mut self.decoder else {
            self.stats.needless += 1; // nobody asks for it any more
            return;
        };
        let oldest = low(carrier).sub(REACH.into());
        decoder.give_up_before(oldest);
        if let Err(error) = decoder.repair(Sn(first), Millis(0), payload, oldest, REACH) {
            log::trace!("a repair in packet {carrier} was refused: {error}");
        }
    }

    /// Rebuilds a packet, if that is possible: its frames, and its number if it is one before the newest. One that comes late may bring
    /// back what was sent after it.
    pub(in crate::session) fn recover(&mut self) -> Option<(Option<u64>, &[u8])> {
        let newest = self.losses.newest()?;
        let lost = self.decoder.as_mut()?.recover()?;
        let age = low(newest).0.wrapping_sub(lost.sn.0);
        let pn = newest.checked_sub(age.into()).filter(|_| lost.frg == 0 && age > 0);
        Some((pn, lost.data))
    }

    /// The packet `pn` was rebuilt; if it was `taken` as well, the peer is told by `due`.
    pub(in crate::session) fn was_rebuilt(&mut self, pn: u64, taken: bool, due: Time) {
        self.stats.rebuilt += 1;
        if taken {
            self.tells.rebuilt(pn, due);
        }
    }

    pub(in crate::session) const fn due(&self) -> Option<Time> {
        self.tells.due()
    }

    /// What a datagram that leaves now tells.
    pub(in crate::session) fn peek(&self, now: Time) -> Option<LossFrame> {
        self.tells.peek(now, self.losses.told())
    }

    pub(in crate::session) fn told(&mut self, now: Time) {
        self.tells.told(now, self.losses.told());
    }

    pub(in crate::session) fn stats(&self) -> RepairStats {
        let mut stats = self.stats;
        if let Some(decoder) = &self.decoder {
            stats.needless += decoder.stats().needless;
            stats.rejected += decoder.stats().rejected;
        }
        stats
    }

    pub(in crate::session) fn memory(&self) -> usize {
        let memory = |decoder: &Decoder| size_of::<Decoder>() + decoder.memory_in_all();
        self.decoder.as_deref().map_or(0, memory)
    }

    pub(in crate::session) fn shrink(&mut self) {
        if self.decoder.is_some() {
            self.stats = self.stats();
            self.decoder = None;
        }
    }
}
