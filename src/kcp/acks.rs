//! The acknowledgements that the next flush owes the peer.

use super::packer::Packer;
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::{Command, Header, Output};

/// Segments that have arrived since the last flush: their numbers and the times to echo.
///
/// Source: ikcp.c `acklist`, which is unbounded.
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

    /// How many more it takes until the next flush. The limit is two receive windows.
    pub(super) fn room(&self, rcv_wnd: u16) -> usize {
        (2 * usize::from(rcv_wnd)).saturating_sub(self.list.len())
    }

    pub(super) fn last(&self) -> Option<(Sn, Millis)> {
        self.list.last().copied()
    }

    /// Adds an ACK of `sn`, for which there is room.
    #[inline]
    pub(super) fn push(&mut self, sn: Sn, ts: Millis) {
        self.list.push((sn, ts));
    }

    /// Adds an ACK of `sn`, where `rcv_nxt` is expected next.
    ///
    /// Takes only one ACK for segments from further than two windows behind: a peer that sends those needs our `una`,
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

    /// Drops ACKs that `rcv_nxt` covers, except the last: its echo tells the peer which transmission arrived.
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

    /// Sends all ACKs. Leaves the `sn` and `ts` of the last one in `header`: a window probe in the same flush repeats
    /// them, as in ikcp.c.
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

/// How far behind the window a segment counts as late rather than stale: half of this many, at least.
const STALE_MIN: u32 = 256;
