//! What is in flight, protected ahead of its loss within a budget of bytes.

use super::Modern;
use super::copies::Copies;
use super::floor::Floor;
use super::gap::Gap;
use super::repairs;
use crate::arq::congestion::Congestion;
use crate::arq::rtt::Rtt;
use crate::arq::transmit::{IP_AND_UDP, Transmit};
use crate::code::budget::share;
use crate::code::protect::Protector;
use crate::code::share::{LossShare, WHOLE};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::{HEADER_LEN, Output};

/// Protects what is in flight: by repairs towards a peer that rebuilds, by copies towards any other.
///
/// New segments earn a share of their bytes, which follows the loss and ends at [`Modern::repairs`];
/// protection spends it, unless the congestion controller holds segments back. Nothing is earned without
/// loss, nor while round trips are so long that the path has a queue: then protection would lengthen that.
#[derive(Debug)]
pub(in crate::arq) struct Protection {
    peer: Peer,
    /// Transmissions that were resends.
    resent: LossShare,
    protector: Protector,
    copies: Copies,
    gap: Gap,
    pub(super) floor: Floor,
    /// The first segment of those that pacing left without protection.
    unprotected: Option<Sn>,
}

/// What its acknowledgements tell of the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Peer {
    /// There was none yet.
    Unknown,
    Stock,
    /// It rebuilds, and so much gets lost on the way to it, of 254.
    Rebuilds {
        loss: u8,
    },
}

impl Default for Protection {
    fn default() -> Self {
        Self {
            peer: Peer::Unknown,
            resent: LossShare::assumed(ASSUMED),
            protector: Protector::default(),
            copies: Copies::default(),
            gap: Gap::default(),
            floor: Floor::default(),
            unprotected: None,
        }
    }
}

impl Protection {
    /// The peer marked its ACKs with `mark`: 0, or 1 and its loss of 254.
    pub(super) fn hear(&mut self, mark: u8) {
        self.peer = mark.checked_sub(1).map_or(Peer::Stock, |loss| Peer::Rebuilds { loss });
    }

    /// So many resends were needless: nothing was lost. Not where the peer rebuilds: what it has rebuilt looks as if it had arrived.
    pub(super) fn excuse(&mut self, resends: u32) {
        if self.peer == Peer::Stock {
            (0..resends).for_each(|_| self.resent.excuse());
        }
    }

    /// How long the peer may let an acknowledgement wait, µs; where many get lost, until the next one. `None`: it does not say that it does.
    pub(super) fn ack_delay(&self, rtt: &Rtt) -> Option<u64> {
        let Peer::Rebuilds { .. } = self.peer else { return None };
        let lost = if self.resent.get() > MANY_LOST { self.gap.average() } else { 0 };
        Some(self.gap.wait().map_or(0, |wait| lost + wait * u64::from(self.gap.patience(rtt))))
    }

    /// How long an acknowledgement may wait, µs, to ride in the datagram of a segment that is not sent yet.
    pub(super) fn ride(&self, now: Time, rtt: &Rtt) -> u64 {
        self.gap.ride(now, rtt)
    }

    /// So many segments were sent again, and those from `first` on for the first time: protects what is in
    /// flight as far as the budget goes. Returns how many repairs or copies left.
    pub(super) fn send<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        first: Sn,
        resent: u32,
        rmt_wnd: u16,
        rtt: &Rtt,
        modern: &Modern,
    ) -> u32 {
        (0..resent).for_each(|_| self.resent.judge(true));
        let new = transmit.sender.nxt.0.wrapping_sub(first.0);
        if new > 0 {
            (0..new).for_each(|_| self.resent.judge(false));
            (0..new.min(BURST)).for_each(|_| self.gap.packet(transmit.now));
            let is_queued = self.floor.is_under_queue(rtt.srtt);
            let share = if is_queued { 0 } else { self.share(transmit.sender.in_flight, modern) };
            self.protector.budget.earn(share, if share > 0 { wire_bytes(transmit, first) } else { 0 });
        }
        let first = self.unprotected.take().unwrap_or(first);
        let is_held_back = Congestion::holds_back(transmit.config, rmt_wnd, transmit.sender);
        if is_held_back || first == transmit.sender.nxt {
            return 0; // what waits gains more from the room on the path
        }
        match self.peer {
            Peer::Unknown => 0,
            Peer::Stock => self.copies.send(transmit, &mut self.protector.budget, first),
            Peer::Rebuilds { .. } => {
                let patience = if modern.thin_acks { self.gap.patience(rtt) } else { 0 };
                let sent = repairs::send(&mut self.protector, transmit, first, patience);
                self.unprotected = (!transmit.congestion.allows()).then_some(first);
                sent
            }
        }
    }

    /// What each byte earns, of 65,535.
    fn share(&self, in_flight: u32, modern: &Modern) -> u32 {
        let resent = self.resent.get();
        match self.peer {
            Peer::Rebuilds { loss } => {
                let loss = u32::from(loss) * WHOLE / 254;
                share(loss.max(resent), modern.repairs, in_flight.min(BURST))
            }
            Peer::Unknown | Peer::Stock => share(resent, modern.repairs, 1),
        }
    }
}

/// Bytes on the wire of the segments from `first` on, had each a datagram of its own.
fn wire_bytes<O>(transmit: &Transmit<'_, '_, O>, first: Sn) -> u64 {
    let (mut sn, mut bytes) = (first, 0);
    while sn != transmit.sender.nxt {
        let len = transmit.sender.ring.get(sn).map_or(0, |segment| segment.len);
        bytes += u64::from(len) + HEADER_LEN as u64 + IP_AND_UDP;
        sn = sn.add(1);
    }
    bytes
}

/// Loss that is assumed before anything is known, of 65,535.
const ASSUMED: u32 = WHOLE / 100;
/// Share of resends, of 65,535, above which a timeout gives the next acknowledgement time to come: the
/// last one may be lost as well.
const MANY_LOST: u32 = WHOLE / 4;
/// Segments that protect each other, and packets at once that count for the beat.
const BURST: u32 = 32;
