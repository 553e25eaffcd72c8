//! Repairs of whole packets: outgoing repairs protect packets in flight, incoming ones rebuild lost packets.
//!
//! The code is the one in [`code`](crate::code). The low half of the packet number serves as the segment
//! number, and the frames of the packet, except its REPAIR, serve as the data. The receiver (`rebuild`)
//! measures the loss and reports it to the sender (`protection`), which sends as many repairs as that
//! requires, and none if nothing gets lost. Rebuilt packets are reported separately from received ones, so
//! that no loss is hidden from congestion control. Source: RFC 9265 (section 3).

mod protection;
mod rebuild;
#[cfg(test)]
mod tests;

pub(super) use protection::Path;

use super::config::SessionConfig;
use super::wire::{FEATURE_REPAIRS, Frame, Frames, REPAIR_FIRST};
use crate::code::budget::LossShare;
use crate::code::{Decoder, REPAIR_HEAD, RejectedRepairs, SYMBOL_HEAD};
use crate::config::{ConfigError, in_range};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::compact::has_push;
use protection::Work;
use rebuild::{Losses, Tells};

/// How much repairs may cost; see [`SessionConfig::repairs`](crate::SessionConfig::repairs).
///
/// ```
/// use whitewater::session::RepairConfig;
/// use whitewater::SessionConfig;
///
/// let repairs = Some(RepairConfig { percent: 50, ..RepairConfig::default() });
/// assert!(SessionConfig { repairs, ..SessionConfig::default() }.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `RepairConfig { .., ..RepairConfig::default() }`")]
pub struct RepairConfig {
    /// Most bytes of repairs, in percent of the packets that they protect, both including IP and UDP headers:
    /// 0 to 100. The actual amount follows the loss. 0: send none, but use those of the peer.
    pub percent: u8,
    /// The loss from which on to ask the peer for repairs, in units of 0.1 %: 1 to 500. They stop at half of
    /// that.
    pub min_loss: u16,
    /// Most bytes of packets to remember in each direction while repairs are in use: 16 KiB to 1 MiB. At most
    /// 128 received and 64 sent packets are remembered.
    pub memory: u32,
}

impl Default for RepairConfig {
    /// At most 30 %, from a loss of 1 % on, and 128 KiB.
    fn default() -> Self {
        Self { percent: 30, min_loss: 10, memory: 128 << 10 }
    }
}

impl RepairConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// If a field is out of range. The error names the field, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { percent, min_loss, memory } = *self; // a new field does not compile until it is handled
        in_range("percent of `repairs`", percent, 0..=100)?;
        in_range("min_loss of `repairs`", min_loss, 1..=500)?;
        in_range("memory of `repairs`", memory, 16 << 10..=1 << 20)
    }
}

stats! {
    /// Repairs of a session, in both directions.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct RepairStats {
        /// Repairs of packets sent.
        pub sent: u64 => "whitewater_session_packet_repairs_sent_total",
        /// How many of these had a datagram of their own.
        pub sent_alone: u64,
        /// Bytes that repairs of packets took in datagrams. A datagram that carries only a repair counts in
        /// full.
        pub bytes: u64 => "whitewater_session_packet_repairs_bytes_total",
        /// Packets that the peer reports as rebuilt: lost on the path, and counted as lost.
        pub rebuilt_by_peer: u64 => "whitewater_session_packets_rebuilt_total" [by: "peer", "Packets lost and rebuilt"],
        /// Share of our packets that gets lost, in 1/255, as last reported by the peer, less probes and packets for
        /// other addresses; 0: so little that no repairs are sent.
        pub loss_told: u8,
        /// Packets of the peer that were lost and rebuilt.
        pub rebuilt: u64 => "whitewater_session_packets_rebuilt_total" [by: "here", "Packets lost and rebuilt"],
        /// Received repairs that covered no missing packet.
        pub needless: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "needless", "Repairs received for nothing"],
        /// Packets that were rebuilt but had meanwhile arrived, or were too old to tell.
        pub late: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "late", "Repairs received for nothing"],
        /// Rebuilt packets that were invalid, and repairs for which there was no memory.
        pub refused: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "refused", "Repairs received for nothing"] by refused_total,
        /// Repairs refused, by reason.
        pub rejected: RejectedRepairs,
    }
}

impl RepairStats {
    /// Everything refused, for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused + self.rejected.total()
    }
}

/// Both directions of a session whose ends both use repairs.
#[derive(Debug)]
pub(super) struct Repairs {
    config: RepairConfig,
    /// Longest packet of the peer, bytes.
    packet_max: u16,
    /// Everything but the counters of the decoder.
    pub(super) stats: RepairStats,
    /// The packet in which the peer last reported its loss, and when.
    told_in: Option<u64>,
    told_at: Time,
    /// The share of our packets that do not count if they are lost, though the peer counts them.
    excused: LossShare,
    /// Allocated for the first packet that is protected.
    work: Option<Box<Work>>,
    losses: Losses,
    pub(super) tells: Tells,
    /// Allocated when repairs are first asked for.
    decoder: Option<Box<Decoder>>,
}

impl Repairs {
    /// Creates the state, if both ends have the feature.
    pub(super) fn new(config: &SessionConfig, features: u32) -> Option<Box<Self>> {
        let repairs = config.repairs.filter(|_| features & FEATURE_REPAIRS != 0)?;
        Some(Box::new(Self {
            config: repairs,
            packet_max: config.datagram_taken(),
            stats: RepairStats::default(),
            told_in: None,
            told_at: Time::ZERO,
            excused: LossShare::assumed(0),
            work: None,
            losses: Losses::new(repairs.min_loss),
            tells: Tells::default(),
            decoder: None,
        }))
    }

    pub(super) fn stats(&self) -> RepairStats {
        let mut stats = self.stats;
        if let Some(decoder) = &self.decoder {
            stats.needless += decoder.stats().needless;
            stats.rejected += decoder.stats().rejected;
        }
        stats
    }

    /// Bytes of heap memory that it owns.
    pub(super) fn memory(&self) -> usize {
        let decoder = |decoder: &Decoder| size_of::<Decoder>() + decoder.memory_in_all();
        let work = self.work.as_deref().map_or(0, Work::memory);
        work + self.decoder.as_deref().map_or(0, decoder)
    }

    /// Frees what can be spared for a while.
    pub(super) fn shrink(&mut self) {
        self.work = None;
        self.shrink_decoder();
    }
}

impl Frame<'_> {
    /// Whether it carries data, which is worth rebuilding. The rest of a lost packet is out of date by then.
    pub(super) const fn has_data(&self) -> bool {
        matches!(self, Self::Kcp(_) | Self::KcpPart(..) | Self::Dgram(_) | Self::Packed(_))
    }
}

impl<'a> Frames<'a> {
    /// Splits off the REPAIR, which comes first if there is one.
    pub(super) fn split_repair(self) -> (Option<(u32, &'a [u8])>, Self) {
        let mut others = self;
        match others.next() {
            Some(Frame::Repair(first, payload)) => (Some((first, payload)), others),
            _ => (None, self),
        }
    }

    /// Whether a packet with these frames should be protected.
    pub(super) fn are_worth_protecting(mut self) -> bool {
        self.any(|frame| match frame {
            // Losing acknowledgements alone does no harm: they are repeated anyway.
            Frame::Kcp(segments) => has_push(segments),
            _ => frame.has_data(),
        })
    }
}

/// The low half of a packet number, used as a segment number.
#[expect(clippy::cast_possible_truncation, reason = "the low half")]
const fn low(pn: u64) -> Sn {
    Sn(pn as u32)
}

/// How much longer a REPAIR is than the longest packet that it covers, bytes: type, first, span and index, a
/// set, the head of a symbol.
pub(super) const REPAIR_ROOM: u16 = 18;
const _: () = assert!(1 + REPAIR_FIRST + REPAIR_HEAD + 8 + SYMBOL_HEAD == REPAIR_ROOM as usize);
/// How far before the packet that carries it a REPAIR may reach, in packet numbers.
const REACH: u16 = 128;
