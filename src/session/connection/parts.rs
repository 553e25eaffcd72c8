//! Frames that are too long because the path has become narrower since their segments were cut: they leave in parts
//! and are joined again.

use super::Connection;
use super::handled::Handled;
use super::memory::held;
use super::transmit::Out;
use crate::packet::Reassembly;
use crate::seq::Seq16;
use crate::session::config::{ACK_FRAME, SessionConfig};
use crate::session::event::CloseReason;
use crate::session::wire::{Frame, KcpPart, PART_HEAD};
use crate::time::Time;

/// The frame that is being cut up, and those that are being joined. Created on first use.
#[derive(Debug, Default)]
pub(super) struct FrameParts {
    cut: Option<Box<Cut>>,
    joining: Option<Box<Reassembly>>,
}

/// A frame with parts that have not left.
#[derive(Debug, Default)]
struct Cut {
    number: u16,
    bytes: Vec<u8>,
    /// Bytes of each part but the last.
    size: usize,
    /// The next part.
    next: u8,
    /// How many parts there are; 0: there is no frame.
    count: u8,
}

impl FrameParts {
    /// Cuts a frame into equal parts of at most `most` bytes, two at least: it may be too long only for the room that is
    /// left.
    pub(super) fn cut(&mut self, frame: &[u8], most: usize) {
        let count = frame.len().div_ceil(most.max(1)).max(2);
        let Ok(parts) = u8::try_from(count) else { return };
        let cut = self.cut.get_or_insert_default();
        cut.bytes.clear();
        cut.bytes.extend_from_slice(frame);
        (cut.size, cut.next, cut.count) = (frame.len().div_ceil(count.max(1)), 0, parts);
    }

    pub(super) fn next(&self) -> Option<(KcpPart, &[u8])> {
        let &Cut { number, ref bytes, size, next, count } = self.cut.as_deref()?;
        if next >= count {
            return None;
        }
        let start = usize::from(next) * size;
        let part = bytes.get(start..(start + size).min(bytes.len()))?;
        Some((KcpPart { number: Seq16(number), id: next, last: count - 1 }, part))
    }

    pub(super) fn on_sent(&mut self) {
        let Some(cut) = &mut self.cut else { return };
        cut.next += 1;
        if cut.next >= cut.count {
            self.drop_cut();
        }
    }

    /// Drops the parts that have not left: if they are too long as well, the lane sends their segments again.
    pub(super) fn drop_cut(&mut self) {
        if let Some(cut) = &mut self.cut {
            (cut.number, cut.count) = (cut.number.wrapping_add(1), 0);
        }
    }

    /// Takes a part of a frame of at most `most` bytes; returns whether that completes the frame, which then is
    /// [`joined`](Self::joined).
    fn join(&mut self, most: u16, part: KcpPart, bytes: &[u8]) -> Result<bool, CloseReason> {
        let KcpPart { number, id, last } = part;
        let joining = self.joining.get_or_insert_with(|| Box::new(Reassembly::new(PLACES, most.into())));
        joining.join(number, (id, last), bytes).map_err(|_| CloseReason::Protocol)
    }

    /// The frame that was completed last.
    fn joined(&self) -> Option<&[u8]> {
        Some(&self.joining.as_ref()?.complete)
    }

    pub(super) fn memory(&self) -> usize {
        held(&self.cut, |cut| cut.bytes.capacity()) + held(&self.joining, |joining| joining.memory())
    }

    /// Frees the memory; incomplete frames are lost.
    pub(super) fn shrink(&mut self) {
        self.joining = None;
        if let Some(cut) = self.cut.as_mut().filter(|cut| cut.count == 0) {
            cut.bytes = Vec::new();
        }
    }
}

impl Connection {
    /// Most bytes of the content of a KCP frame.
    pub(super) fn frame_max(&self) -> usize {
        SessionConfig::frame_max(self.mtu.current).into()
    }

    /// Most bytes of a part of a frame: it fits behind an ACK.
    pub(super) fn part_max(&self) -> usize {
        self.frame_max() - PART_HEAD - usize::from(ACK_FRAME)
    }

    /// Writes parts of a frame that is too long. Returns whether none is left.
    pub(super) fn write_parts(&mut self, out: &mut Out<'_>) -> bool {
        while let Some((part, bytes)) = self.parts.next() {
            if !out.has_room(PART_HEAD + bytes.len()) || !out.push(&Frame::KcpPart(part, bytes)) {
                return false;
            }
            self.parts.on_sent();
            self.be_busy(out.now);
        }
        true
    }

    /// Takes a part, and handles the frame once it is complete.
    pub(super) fn on_part(
        &mut self,
        now: Time,
        (part, bytes): (KcpPart, &[u8]),
        handled: &mut Handled<'_>,
    ) -> Result<(), CloseReason> {
        let most = self.segments_max();
        if handled.joined == JOINED_MAX || !self.budget.has_room(most.into()) {
            self.stats.rare_mut().parts_refused += 1; // as if it were lost
            return Ok(());
        }
        handled.parts += 1;
        let mut parts = std::mem::take(&mut self.parts);
        let before = parts.memory();
        let whole = parts.join(most, part, bytes);
        let after = parts.memory();
        self.budget.grow(before, after);
        self.budget.spend(after.saturating_sub(before));
        let taken = whole.and_then(|is_whole| match parts.joined().filter(|_| is_whole) {
            Some(segments) => {
                handled.joined += 1;
                self.on_segments(now, (segments, handled.is_rebuilt), most.into(), handled.scratch)
                    .map(|_| ())
            }
            None => Ok(()),
        });
        self.parts = parts;
        taken
    }
}

/// Most frames that the parts in a packet may complete. A frame is cut only if it does not fit into a packet of its own,
/// so an honest packet has the end of one, and perhaps the beginning of one whose end was faster.
const JOINED_MAX: u8 = 2;
/// How many incomplete frames are kept, the newest ones. The parts of this many may arrive out of order.
const PLACES: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_limit_and_is_given_back() {
        let (mut sender, mut receiver) = (FrameParts::default(), FrameParts::default());
        for _ in 0..1000 {
            sender.cut(&[7; 1448], 1000);
            sender.on_sent();
            let (part, bytes) = sender.next().unwrap();
            assert_eq!(receiver.join(8000, part, bytes), Ok(false), "the first part is lost");
            sender.on_sent();
        }
        assert!(receiver.memory() <= 20 * 1448, "{}", receiver.memory());
        receiver.shrink();
        assert_eq!(receiver.memory(), 0);
    }
}
