//! Repairs of whole packets: those that leave protect what is under way, those that come bring back what was lost.
//!
//! The code is that of [`code`](crate::code), with the low half of the packet number as the number of a segment and the frames of the
//! packet, but for its REPAIR, as the data. Whoever receives (`rebuild`) measures what gets lost and tells whoever sends (`protection`),
//! which sends as many repairs as that asks for, and none where nothing gets lost. What was rebuilt is told apart from what has arrived,
//! so that no loss is hidden from who has to slow down. Source for that: RFC 9265 (section 3).

mod protection;
mod rebuild;
#[cfg(test)]
mod tests;

pub(super) use protection::Path;

use super::config::SessionConfig;
use super::wire::{FEATURE_REPAIRS, Frame, Frames, REPAIR_FIRST};
use crate::code::{Decoder, REPAIR_HEAD, RejectedRepairs, SYMBOL_HEAD};
use crate::config::{ConfigError, in_range};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::{Command, segments};
use protection::Work;
use rebuild::{Losses, Tells};

/// How much repairs may cost; see [`SessionConfig::repairs`](crate::session::SessionConfig::repairs).
///
/// ```
/// use whitewater::session::{RepairConfig, SessionConfig};
///
/// let repairs = Some(RepairConfig { percent: 50, ..RepairConfig::default() });
/// assert!(SessionConfig { repairs, ..SessionConfig::default() }.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `RepairConfig { .., ..RepairConfig::default() }`")]
pub struct RepairConfig {
    /// Most bytes of repairs, in percent of those of the packets that they protect, both with the headers of IP and UDP: 0 to 100. How
    /// many it is follows the loss. 0: none are sent, and those of the peer are used.
    pub percent: u8,
    /// The loss from which on the peer is asked for repairs, in units of 0.1 %: 1 to 500. They end when it is half of that.
    pub min_loss: u16,
    /// Most bytes of packets remembered in each direction while there are repairs: 16 KiB to 1 MiB. At most 128 packets received and 64
    /// sent are.
    pub memory: u32,
}

impl Default for RepairConfig {
    /// At most 30 %, from 1 % of loss on, 128 KiB.
    fn default() -> Self {
        Self { percent: 30, min_loss: 10, memory: 128 << 10 }
    }
}

impl RepairConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { percent, min_loss, memory } = *self; // a new field fails to compile until it is handled
        in_range("percent of `repairs`", percent, 0..=100)?;
        in_range("min_loss of `repairs`", min_loss, 1..=500)?;
        in_range("memory of `repairs`", memory, 16 << 10..=1 << 20)
    }
}

stats! {
    /// What became of the repairs of a session, in both directions.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct RepairStats {
        /// Repairs of packets sent.
        pub sent: u64 => "whitewater_session_packet_repairs_sent_total",
        /// Of them, those that had a datagram of their own.
        pub sent_alone: u64,
        /// Bytes that repairs of packets took in datagrams, with the whole of the datagrams that they had for themselves.
        pub bytes: u64 => "whitewater_session_packet_repairs_bytes_total",
        /// Packets that the peer says it has rebuilt: lost on the path, and counted as lost.
        pub rebuilt_by_peer: u64 => "whitewater_session_packets_rebuilt_total" [by: "peer", "Packets lost and rebuilt"],
        /// Share of what we send that gets lost, of 255, as the peer has told last; 0: so little that no repairs are sent.
        pub loss_told: u8,
        /// Packets of the peer that were lost and rebuilt.
        pub rebuilt: u64 => "whitewater_session_packets_rebuilt_total" [by: "here", "Packets lost and rebuilt"],
        /// Repairs received of which nothing was missing.
        pub needless: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "needless", "Repairs received for nothing"],
        /// Of what was rebuilt, what had come meanwhile or was too old to tell.
        pub late: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "late", "Repairs received for nothing"],
        /// What was rebuilt and is nothing that a peer sends, and repairs for which there was no memory.
        pub refused: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "refused", "Repairs received for nothing"] by refused_total,
        /// Repairs refused, by the reason.
        pub rejected: RejectedRepairs,
    }
}

impl RepairStats {
    /// What was refused for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused + self.rejected.total()
    }
}

/// Both directions of a session of which both ends use repairs.
#[derive(Debug)]
pub(super) struct Repairs {
    config: RepairConfig,
    /// Bytes of the longest packet of the peer.
    packet_max: u16,
    /// Without what the decoder counts.
    pub(super) stats: RepairStats,
    /// In which packet the peer has told of loss last, and when.
    told_in: Option<u64>,
    told_at: Time,
    /// Made for the first packet that is protected.
    work: Option<Box<Work>>,
    losses: Losses,
    pub(super) tells: Tells,
    /// Made when the first repairs are asked for.
    decoder: Option<Box<Decoder>>,
    /// Segments that were rebuilt.
    pub(super) moved: Vec<u8>,
}

impl Repairs {
    /// For a session of both of whose ends have these features.
    pub(super) fn new(config: &SessionConfig, features: u32) -> Option<Box<Self>> {
        let repairs = config.repairs.filter(|_| features & FEATURE_REPAIRS != 0)?;
        Some(Box::new(Self {
            config: repairs,
            packet_max: config.datagram_taken(),
            stats: RepairStats::default(),
            told_in: None,
            told_at: Time::ZERO,
            work: None,
            losses: Losses::new(repairs.min_loss),
            tells: Tells::default(),
            decoder: None,
            moved: Vec::new(),
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

    /// Bytes of the heap that it owns.
    pub(super) fn memory(&self) -> usize {
        let decoder = |decoder: &Decoder| size_of::<Decoder>() + decoder.memory_in_all();
        let work = self.work.as_deref().map_or(0, Work::memory);
        work + self.decoder.as_deref().map_or(0, decoder) + self.moved.capacity()
    }

    /// Gives back what can be done without for a while.
    pub(super) fn shrink(&mut self) {
        self.work = None;
        self.shrink_decoder();
        self.moved = Vec::new();
    }
}

impl Frame<'_> {
    /// Whether it carries data, which is rebuilt; the rest of a lost packet is out of date by then.
    pub(super) const fn has_data(&self) -> bool {
        matches!(self, Self::Kcp(_) | Self::KcpPart(..) | Self::Dgram(_) | Self::Packed(_))
    }
}

impl<'a> Frames<'a> {
    /// The REPAIR, which is the first of them if there is one, and the others.
    pub(super) fn split_repair(self) -> (Option<(u32, &'a [u8])>, Self) {
        let mut others = self;
        match others.next() {
            Some(Frame::Repair(first, payload)) => (Some((first, payload)), others),
            _ => (None, self),
        }
    }

    /// Whether to protect a packet of these.
    pub(super) fn are_worth_protecting(mut self) -> bool {
        self.any(|frame| match frame {
            // Losing acknowledgements alone is not felt: they are told again anyway.
            Frame::Kcp(bytes) => segments(bytes).flatten().any(|segment| segment.header.cmd == Command::Push),
            _ => frame.has_data(),
        })
    }
}

/// The number of a packet as one of a segment: its low half.
#[expect(clippy::cast_possible_truncation, reason = "the low half")]
const fn low(pn: u64) -> Sn {
    Sn(pn as u32)
}

/// Bytes that a REPAIR has more than the longest packet that it covers: type, first, span and index, a set, the head of a symbol.
pub(super) const REPAIR_ROOM: u16 = 18;
const _: () = assert!(1 + REPAIR_FIRST + REPAIR_HEAD + 8 + SYMBOL_HEAD == REPAIR_ROOM as usize);
/// Packet numbers before that of a REPAIR that it may cover.
const REACH: u16 = 128;
