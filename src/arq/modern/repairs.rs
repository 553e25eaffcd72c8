//! Repairs on their way out.

use crate::arq::config::{OVERHEAD, REPAIR_OVERHEAD};
use crate::arq::send::Sender;
use crate::arq::transmit::{IP_AND_UDP, Transmit};
use crate::code::Encoder;
use crate::code::protect::{Draft, Protector, Source};
use crate::seq::Sn;
use crate::wire::{Command, HEADER_LEN, Output};

/// The segments from `first` on were just sent: sends repairs of what is in flight, as far as the
/// budget goes. Acknowledgements may wait for `patience` packets. Returns how many.
pub(super) fn send<O: Output>(
    protector: &mut Protector,
    transmit: &mut Transmit<'_, '_, O>,
    first: Sn,
    patience: u8,
) -> u32 {
    if !protector.budget.affords(HEADER_LEN as u64 + u64::from(REPAIR_OVERHEAD)) {
        return 0; // and nothing has to be looked for
    }
    let nxt = transmit.sender.nxt;
    let new = nxt.0.wrapping_sub(first.0);
    // A repair is of no use for what is lost together with it.
    let together = new.min(transmit.packer.segments());
    let before = draft(transmit, nxt.sub(together)).filter(|draft| transmit.packer.fits(draft.len));
    let rides = before.is_some();
    let Some(draft) = before.or_else(|| draft(transmit, nxt)) else { return 0 };
    let most = if rides || new <= FEW { FEW } else { MANY };
    let cost = u64::from(draft.len) + HEADER_LEN as u64 + if rides { 0 } else { IP_AND_UDP };
    let mut sent = 0;
    while sent < most
        && (!rides || transmit.packer.fits(draft.len))
        && transmit.congestion.allows()
        && protector.budget.spend(cost)
    {
        if !rides {
            transmit.packer.finish();
        }
        let mut header = transmit.header;
        (header.cmd, header.frg, header.sn) = (Command::Wins, patience, draft.first());
        protector.write(transmit.sender, &draft, transmit.packer.push(&header, draft.len));
        transmit.congestion.spend(draft.len);
        sent += 1;
    }
    sent
}

/// A repair of the last segments in flight before `end`, of those behind a hole only if there is room to say so. `None`: there are none, or it
/// is larger than a datagram.
fn draft<O>(transmit: &Transmit<'_, '_, O>, end: Sn) -> Option<Draft> {
    let (sender, mtu) = (&*transmit.sender, transmit.config.mtu);
    let numbers = end.0.wrapping_sub(sender.una().0);
    let of_last = |in_a_row| Draft::of_last(sender, numbers, end, in_a_row);
    let fits = |draft: &Draft| draft.len.saturating_add(OVERHEAD) <= mtu;
    [false, true].into_iter().find_map(|in_a_row| of_last(in_a_row).filter(fits))
}

impl Source for Sender {
    fn len_of(&self, sn: Sn) -> Option<u16> {
        self.ring.get(sn).map(|segment| segment.len)
    }

    fn add_to(&self, encoder: &mut Encoder, sn: Sn) {
        if let Some(segment) = self.ring.get(sn) {
            encoder.add(sn, segment.frg, segment.len, |to| self.copy_payload(sn, segment, to));
        }
    }
}

/// Repairs at once beside few segments.
const FEW: u32 = 2;
/// Repairs at once after a burst of segments.
const MANY: u32 = 16;
