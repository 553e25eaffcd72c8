//! The acknowledgements that the next flush owes the peer.

use super::packer::Packer;
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::{Command, Header, Output};

/// Segments that arrived since the last flush: their numbers and the times to echo.
///
/// Source: ikcp.c `acklist`, which grows without bound.
#[derive(Debug, Default)]
pub(super) struct AckList {
    list: Vec<(Sn, Millis)>,
    /// Whether a segment from far behind the window is among them.
    has_stale: bool,
}

impl AckList {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) const fn memory(&self) -> usize {
        self.list.capacity() * size_of::<(Sn, Millis)>()
    }

    /// How many more are taken until the next flush: two receive windows of them in all.
    pub(super) fn room(&self, rcv_wnd: u16) -> usize {
        (2 * usize::from(rcv_wnd)).saturating_sub(self.list.len())
    }

    pub(super) fn last(&self) -> Option<(Sn, Millis)> {
        self.list.last().copied()
    }

    /// Owes the peer an ACK of `sn`, for which there is room.
    #[inline]
    pub(super) fn push(&mut self, sn: Sn, ts: Millis) {
        self.list.push((sn, ts));
    }

    /// Owes the peer an ACK of `sn`, where `rcv_nxt` is expected next.
    ///
    /// Only one for a segment from further behind than two windows: such a peer needs our `una`,
    /// which any ACK carries. `false`: not taken.
    pub(super) fn try_push(&mut self, sn: Sn, ts: Millis, rcv_nxt: Sn, rcv_wnd: u16) -> bool {
        let is_stale = sn.is_before(rcv_nxt.sub(2 * u32::from(rcv_wnd).max(STALE_MIN)));
        if self.room(rcv_wnd) == 0 || (is_stale && self.has_stale) {
            return false;
        }
        self.has_stale |= is_stale;
        self.push(sn, ts);
        true
    }

    /// Leaves out those that `rcv_nxt` says as well, but for the last: its echo tells the peer which
    /// of its transmissions arrived.
    pub(super) fn thin(&mut self, rcv_nxt: Sn) {
        let covered = |&(sn, _): &(Sn, Millis)| sn.is_before(rcv_nxt);
        if let Some(last) = self.list.iter().rposition(covered) {
            let mut at = 0;
            self.list.retain(|ack| {
                at += 1;
                at == last + 1 || !covered(ack)
            });
        }
    }

    /// Sends them all. `header` is left with the `sn` and `ts` of the last one, which a window
    /// probe in the same flush repeats, as in ikcp.c.
    pub(super) fn flush<O: Output>(&mut self, header: &mut Header, packer: &mut Packer<'_, O>) {
        header.cmd = Command::Ack;
        packer.push_all(header, &self.list);
        if let Some(last) = self.list.last() {
            (header.sn, header.ts) = *last;
        }
        self.list.clear();
        self.has_stale = false;
    }
}

/// Least count of segments behind the window that count as late rather than stale, halved.
const STALE_MIN: u32 = 256;
