//! The segments in flight that may be lost.

use crate::arq::outgoing::Outgoing;
use crate::ring::Ring;
use crate::seq::Sn;

/// Segments that acknowledgements passed over, or that are older than their first deadline, in
/// order. Only these are looked at when lost ones are looked for; each segment is found once.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    list: Vec<Sn>,
    /// No segment from here on is a suspect.
    end: Sn,
}

impl Suspects {
    /// Suspects all segments in flight, from `una` on, up to `end`.
    pub(super) fn extend(&mut self, ring: &Ring<Outgoing>, una: Sn, end: Sn) {
        if self.end.is_before(una) || self.list.is_empty() {
            self.end = una;
        }
        while self.end.is_before(end) {
            if ring.get(self.end).is_some() {
                self.list.push(self.end);
            }
            self.end = self.end.add(1);
        }
    }

    /// Gives `look` every suspect that is in flight still, and forgets the others.
    #[inline]
    pub(super) fn each(&mut self, mut look: impl FnMut(Sn) -> bool) {
        self.list.retain(|&sn| look(sn));
    }

    /// Nothing is in flight.
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }
}
