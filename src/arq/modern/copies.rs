//! Copies of what is in flight, for peers that do not rebuild.

use crate::arq::transmit::Transmit;
use crate::code::budget::Budget;
use crate::seq::Sn;
use crate::wire::{HEADER_LEN, Output};

/// Sends small segments once more, unasked, in the datagrams of the next two flushes with new ones: any
/// KCP peer takes the copy that comes first. Source of the idea: G. Fiedler, "Reliable Ordered Messages".
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The first new segments of the last two flushes, the later one first; `None`: there was none.
    flushes: [Option<Sn>; 2],
}

impl Copies {
    /// The segments from `first` on were just sent: copies those of the two flushes before that are small
    /// and in flight still, as far as the budget and the datagram go. Returns how many.
    pub(super) fn send<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        budget: &mut Budget,
        first: Sn,
    ) -> u32 {
        let (mut end, mut sent) = (first, 0);
        for start in self.flushes.into_iter().flatten() {
            sent += copy(transmit, budget, start, end);
            end = start;
        }
        self.flushes = [Some(first), self.flushes.into_iter().next().flatten()];
        sent
    }
}

/// Copies the segments from `start` up to `end`.
fn copy<O: Output>(transmit: &mut Transmit<'_, '_, O>, budget: &mut Budget, start: Sn, end: Sn) -> u32 {
    let una = transmit.sender.una();
    let (mut sn, mut sent) = (if start.is_before(una) { una } else { start }, 0);
    while sn.is_before(end) {
        if let Some(&segment) = transmit.sender.ring.get(sn).filter(|segment| segment.len <= SMALL) {
            if !transmit.packer.fits(segment.len)
                || !transmit.congestion.allows()
                || !budget.spend(u64::from(segment.len) + HEADER_LEN as u64)
            {
                break;
            }
            let mut header = transmit.header;
            (header.sn, header.frg) = (sn, segment.frg);
            let room = transmit.packer.push(&header, segment.len);
            transmit.sender.copy_payload(sn, &segment, room);
            transmit.congestion.spend(segment.len);
            sent += 1;
        }
        sn = sn.add(1);
    }
    sent
}

/// Largest segment that is copied, bytes.
const SMALL: u16 = 400;
