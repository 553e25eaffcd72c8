//! Repairs on their way out.

use crate::arq::config::{OVERHEAD, REPAIR_OVERHEAD};
use crate::arq::send::Sender;
use crate::arq::transmit::{IP_AND_UDP, Transmit};
use crate::code::budget::Budget;
use crate::code::{COVER_MAX, Encoder, REPAIR_HEAD, head_len};
use crate::seq::Sn;
use crate::wire::{Command, HEADER_LEN, Output};

/// Makes repairs of the segments in flight, towards a peer that rebuilds.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    encoder: Encoder,
    /// Tells repairs of the same segments apart.
    index: u8,
}

impl Repairs {
    /// The segments from `first` on were just sent: sends repairs of what is in flight, as far as the
    /// budget goes. Acknowledgements may wait for `patience` packets. Returns how many.
    pub(super) fn send<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        budget: &mut Budget,
        first: Sn,
        patience: u8,
    ) -> u32 {
        if !budget.affords(HEADER_LEN as u64 + u64::from(REPAIR_OVERHEAD)) {
            return 0; // and nothing has to be looked for
        }
        let nxt = transmit.sender.nxt;
        let new = nxt.0.wrapping_sub(first.0);
        // A repair is of no use for what is lost together with it.
        let together = new.min(transmit.packer.segments());
        let before = Cover::of(transmit, nxt.sub(together));
        let mut sent = 0;
        if let Some(before) = before.filter(|before| transmit.packer.fits(before.len)) {
            while sent < FEW
                && transmit.packer.fits(before.len)
                && transmit.congestion.allows()
                && budget.spend(before.cost())
            {
                self.send_one(transmit, before, patience);
                sent += 1;
            }
            return sent;
        }
        let Some(all) = Cover::of(transmit, nxt) else { return 0 };
        let most = if new <= FEW { FEW } else { MANY };
        while sent < most && transmit.congestion.allows() && budget.spend(all.cost() + IP_AND_UDP) {
            transmit.packer.finish();
            self.send_one(transmit, all, patience);
            sent += 1;
        }
        sent
    }

    fn send_one<O: Output>(&mut self, transmit: &mut Transmit<'_, '_, O>, cover: Cover, patience: u8) {
        self.encoder.begin(self.index);
        self.index = self.index.wrapping_add(1);
        for sn in cover.segments() {
            if let Some(&segment) = transmit.sender.ring.get(sn) {
                let copy = |to: &mut [u8]| transmit.sender.copy_payload(sn, &segment, to);
                self.encoder.add(sn, segment.frg, segment.len, copy);
            }
        }
        let mut header = transmit.header;
        (header.cmd, header.frg, header.sn) = (Command::Wins, patience, cover.first);
        let room = transmit.packer.push(&header, cover.len);
        self.encoder.finish(room);
        transmit.congestion.spend(cover.len);
    }
}

/// Segments in flight that a repair covers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cover {
    first: Sn,
    /// Bit i for the i-th after the first.
    set: u64,
    /// Bytes of the payload of the repair.
    len: u16,
}

impl Cover {
    /// The last segments in flight before `end`, as many as a repair covers; those behind a hole only if
    /// there is room to say so. `None`: none, or the repair is larger than a datagram.
    fn of<O>(transmit: &Transmit<'_, '_, O>, end: Sn) -> Option<Self> {
        let mtu = transmit.config.mtu;
        let fits = |cover: &Self| cover.len.saturating_add(OVERHEAD) <= mtu;
        let all = Self::last(transmit.sender, end, false)?;
        if fits(&all) {
            return Some(all);
        }
        Self::last(transmit.sender, end, true).filter(fits)
    }

    /// The last segments in flight before `end`; `in_a_row`: those from the last hole on.
    fn last(sender: &Sender, end: Sn, in_a_row: bool) -> Option<Self> {
        let (mut first, mut set, mut longest) = (end, 0_u64, 0);
        let mut sn = end;
        for _ in 0..COVER_MAX {
            if sn == sender.una() || set.count_ones() == COVER {
                break;
            }
            sn = sn.sub(1);
            match sender.ring.get(sn) {
                Some(segment) => {
                    set = if set == 0 { 1 } else { set << first.0.wrapping_sub(sn.0) | 1 };
                    (first, longest) = (sn, segment.len.max(longest));
                }
                None if in_a_row && set != 0 => break,
                None => {}
            }
        }
        let holes = u16::try_from(head_len(set) - REPAIR_HEAD).ok().filter(|_| set != 0)?;
        Some(Self { first, set, len: longest.saturating_add(REPAIR_OVERHEAD + holes) })
    }

    fn segments(self) -> impl Iterator<Item = Sn> {
        let offsets = (0..u64::BITS).filter(move |offset| self.set >> offset & 1 == 1);
        offsets.map(move |offset| self.first.add(offset))
    }

    /// Bytes that it takes in a datagram.
    fn cost(&self) -> u64 {
        u64::from(self.len) + HEADER_LEN as u64
    }
}

/// Segments that a repair covers at most.
const COVER: u32 = COVER_MAX as u32 / 2;
/// Repairs at once beside few segments.
const FEW: u32 = 2;
/// Repairs at once after a burst of segments.
const MANY: u32 = 16;
