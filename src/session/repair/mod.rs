//! Repairs of whole packets: those that leave protect what is under way, those that come bring back what was lost.
//!
//! The code is that of [`code`](crate::code), with the low half of the packet number as the number of a segment and the frames of the
//! packet, but for its REPAIR, as the data. [`Protection`] is the end that sends, [`Rebuild`] the one that receives: it measures what
//! gets lost and tells the other, which sends as many repairs as that asks for, and none where nothing gets lost. What was rebuilt is
//! told apart from what has arrived, so that no loss is hidden from who has to slow down. Source for that: RFC 9265 (section 3).

mod config;
mod losses;
mod protection;
mod rebuild;
mod stats;
mod tells;
#[cfg(test)]
mod tests;

pub use config::RepairConfig;
pub use stats::RepairStats;

pub(super) use protection::{Path, Protection};
pub(super) use rebuild::Rebuild;

use super::wire::{Frame, Frames, REPAIR_FIRST};
use crate::code::{REPAIR_HEAD, SYMBOL_HEAD};
use crate::seq::Sn;
use crate::wire::{Command, segments};

impl Frame<'_> {
    /// Whether it carries data, which is rebuilt; the rest of a lost packet is out of date by then.
    pub(super) const fn has_data(&self) -> bool {
        matches!(self, Self::Kcp(_) | Self::KcpPart(..) | Self::Dgram(_) | Self::Packed(_))
    }

    /// Whether losing it would be felt: acknowledgements alone are told again anyway.
    fn is_worth_protecting(&self) -> bool {
        match *self {
            Self::Kcp(bytes) => segments(bytes).flatten().any(|segment| segment.header.cmd == Command::Push),
            _ => self.has_data(),
        }
    }
}

/// The frames of a body, if it is one that is protected.
pub(super) fn protected(body: &[u8]) -> Option<Frames<'_>> {
    let has_repair = |mut frames: Frames<'_>| matches!(frames.next(), Some(Frame::Repair(..)));
    Frames::parse(body).ok().filter(|frames| is_worth_protecting(*frames) && !has_repair(*frames))
}

/// Whether to protect a packet of these frames.
pub(super) fn is_worth_protecting(mut frames: Frames<'_>) -> bool {
    frames.any(|frame| frame.is_worth_protecting())
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
