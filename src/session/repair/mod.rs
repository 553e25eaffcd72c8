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
use crate::code::budget::{LossShare, Repairs};
use crate::code::{Decoder, REPAIR_HEAD, RejectedRepairs, SYMBOL_HEAD, Trial};
use crate::kcp::{Modern, Recovery};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::compact::{channel_of, has_push};
use protection::Work;
use rebuild::{Losses, Tells};

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
pub(super) struct PacketRepairs {
    repairs: Repairs,
    /// Longest packet of the peer, bytes.
    packet_max: u16,
    /// Everything but the counters of the decoder.
    pub(super) stats: RepairStats,
    /// The packet in which the peer last reported its loss, and when.
    told_in: Option<u64>,
    told_at: Time,
    /// The share of our packets that do not count if they are lost, though the peer counts them.
    excused: LossShare,
    /// How much to send if there is a deadline.
    trial: Trial,
    /// Allocated for the first packet that is protected.
    work: Option<Box<Work>>,
    losses: Losses,
    pub(super) tells: Tells,
    /// Allocated when repairs are first asked for.
    decoder: Option<Box<Decoder>>,
}

impl PacketRepairs {
    /// Creates the state of a session whose ends [both use repairs](are_used), after this many packets.
    pub(super) fn new(config: &SessionConfig, sent: u64) -> Self {
        Self {
            repairs: config.repairs,
            packet_max: config.datagram_taken(),
            stats: RepairStats::default(),
            told_in: None,
            told_at: Time::ZERO,
            excused: LossShare::after(sent),
            trial: Trial::default(),
            work: None,
            losses: Losses::default(),
            tells: Tells::default(),
            decoder: None,
        }
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
        let decoder = |decoder: &Decoder| size_of::<Decoder>() + decoder.memory();
        let work = self.work.as_deref().map_or(0, Work::memory);
        work + self.decoder.as_deref().map_or(0, decoder)
    }

    /// Frees what can be spared for a while.
    pub(super) fn shrink(&mut self) {
        self.work = None;
        self.shrink_decoder();
    }

    /// Whether packets of the peer get lost, of which it wants to know soon.
    pub(super) const fn sees_loss(&self) -> bool {
        self.losses.is_on() || !self.tells.is_silent()
    }

    /// Whether it has counted nothing and has nothing to tell, so that a new one does as well.
    pub(super) fn is_as_new(&self) -> bool {
        let has_state = self.work.is_some() || self.decoder.is_some() || self.sees_loss();
        !has_state && self.stats == RepairStats::default()
    }
}

/// Whether the features of both ends say that they use repairs.
pub(super) const fn are_used(features: u32) -> bool {
    features & FEATURE_REPAIRS != 0
}

/// Which channels KCP carries without repairs of its own: bit n is channel n. It goes by the config of this end, since
/// both ends usually have the same. If they differ, packets are covered or remembered in vain, and nothing else happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct BareLanes(u32);

impl BareLanes {
    pub(super) fn of(config: &SessionConfig) -> Self {
        let is_bare = |recovery| match recovery {
            Recovery::Modern(Modern { repairs, .. }) => repairs == Repairs::Off,
            _ => true,
        };
        let bare = (0..u32::BITS).zip(&config.channels).filter(|(_, channel)| is_bare(channel.kcp.recovery));
        Self(bare.fold(0, |set, (channel, _)| set | 1 << channel))
    }

    /// Whether nothing else protects the frame, and its loss does harm. Losing acknowledgements alone does none: they are
    /// repeated anyway.
    #[inline]
    pub(super) fn leave(self, frame: &Frame<'_>) -> bool {
        match frame {
            Frame::Kcp(segments) => {
                let channel = channel_of(segments).unwrap_or(u8::MAX);
                self.0.checked_shr(channel.into()).is_some_and(|set| set & 1 == 1) && has_push(segments)
            }
            Frame::KcpPart(..) => self.0 != 0, // only the first part tells its channel, and parts are rare
            frame => frame.has_data(),
        }
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

    /// Whether a packet with these frames should be protected: it carries something that nothing else protects.
    pub(super) fn need_repairs(mut self, bare: BareLanes) -> bool {
        self.any(|frame| bare.leave(&frame))
    }

    /// Whether a peer may protect a packet with these frames.
    pub(super) fn may_be_covered(self) -> bool {
        self.need_repairs(BareLanes(u32::MAX))
    }
}

/// The low half of a packet number, used as a segment number.
#[expect(clippy::cast_possible_truncation, reason = "the low half")]
const fn low(pn: u64) -> Sn {
    Sn(pn as u32)
}

/// How much longer a REPAIR alone in its packet is than the longest packet that it covers, bytes, if it covers a row of
/// them: type, first, span and index, the head of a symbol. Longer packets are not protected.
const LEAST: usize = 1 + REPAIR_FIRST + REPAIR_HEAD + SYMBOL_HEAD;
/// How far before the packet that carries it a REPAIR may reach, in packet numbers.
const REACH: u16 = 128;
/// Most bytes of packets to remember in each direction while repairs are in use. With 100 datagrams of the usual 1200
/// bytes it is more than a repair covers and more than a game has in flight. Only bulk would use more, and has no need of
/// repairs.
const MEMORY: u32 = 128 << 10;
