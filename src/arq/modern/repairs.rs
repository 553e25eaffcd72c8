//! Repairs on their way out: what is in flight protected ahead of its loss, within a budget of bytes.

use super::Modern;
use super::pace::Gap;
use crate::arq::config::REPAIR_OVERHEAD;
use crate::arq::outgoing::Outgoing;
use crate::arq::rtt::Rtt;
use crate::arq::send::Sender;
use crate::arq::transmit::Transmit;
use crate::code::{COVER_MAX, Encoder};
use crate::ring::Ring;
use crate::seq::Sn;
use crate::wire::{Command, HEADER_LEN, Output};
use std::ops::Range;

/// Makes repairs of the segments in flight, towards a peer that rebuilds.
///
/// New segments earn a share of their bytes, which follows the loss that the peer reports and ends at
/// [`Modern::repairs`]; repairs spend it. Nothing is earned without loss, nor while round trips are so
/// long that the path has a queue: then repairs would lengthen that.
#[derive(Debug, Default)]
pub(in crate::arq) struct Repairs {
    encoder: Encoder,
    /// What may be spent, bytes in units of 1/256.
    budget: u64,
    /// Tells repairs of the same segments apart.
    index: u8,
    /// The loss that the peer reports, of 254; `None`: it does not rebuild.
    loss: Option<u8>,
    /// One was sent: the peer's ACKs may wait.
    is_paced: bool,
    gap: Gap,
}

impl Repairs {
    /// The peer marked its ACKs with `mark`: 0, or 1 and its loss of 254.
    pub(super) fn hear(&mut self, mark: u8) {
        self.loss = mark.checked_sub(1);
    }

    /// How long an ACK of the peer may wait for the next segment, µs.
    pub(super) fn ack_delay(&self) -> u64 {
        let waits = self.gap.wait().filter(|_| self.is_paced && self.loss.is_some());
        waits.map_or(0, |gap| gap + gap / 4)
    }

    /// The segments from `first` on were just sent: sends repairs of what is in flight, as far as the
    /// budget goes. Returns how many.
    pub(super) fn send<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        first: Sn,
        rtt: &Rtt,
        modern: &Modern,
    ) -> u32 {
        let Some(loss) = self.loss else { return 0 };
        self.gap.packet(transmit.now);
        let nxt = transmit.sender.nxt;
        let new = nxt.0.wrapping_sub(first.0);
        let share = if has_queue(rtt) { 0 } else { share(loss, modern.repairs) };
        self.earn(share, &transmit.sender.ring, first..nxt);
        // A repair is of no use for what is lost together with it.
        let together = new.min(transmit.packer.segments());
        let before = covered(transmit.sender, nxt.sub(together));
        if !before.is_empty() && transmit.packer.fits(needs(transmit.sender, &before)) {
            let mut sent = 0;
            while sent < RIDING && transmit.packer.fits(needs(transmit.sender, &before)) {
                if !self.send_one(transmit, &before, 0) {
                    break;
                }
                sent += 1;
            }
            return sent;
        }
        let all = covered(transmit.sender, nxt);
        let most = if new <= 2 { 1 } else { STANDALONE };
        let mut sent = 0;
        while sent < most && !all.is_empty() {
            transmit.packer.finish();
            if !self.send_one(transmit, &all, IP_AND_UDP) {
                break;
            }
            sent += 1;
        }
        sent
    }

    fn earn(&mut self, share: u64, ring: &Ring<Outgoing>, new: Range<Sn>) {
        let mut sn = new.start;
        while sn != new.end {
            let len = ring.get(sn).map_or(0, |segment| segment.len);
            self.budget += share * (u64::from(len) + HEADER_LEN as u64 + IP_AND_UDP);
            sn = sn.add(1);
        }
        self.budget = self.budget.min(share * BUCKET);
    }

    /// Sends a repair of the segments `cover`, if the budget allows one of them and `extra` bytes.
    fn send_one<O: Output>(&mut self, transmit: &mut Transmit<'_, '_, O>, cover: &Cover, extra: u64) -> bool {
        let len = needs(transmit.sender, cover);
        if usize::from(len) + HEADER_LEN > transmit.config.mtu.into() {
            return false; // segments cut for a larger mtu
        }
        let cost = 256 * (u64::from(len) + HEADER_LEN as u64 + extra);
        if self.budget < cost || !transmit.congestion.allows() {
            return false;
        }
        self.encoder.begin(self.index);
        self.index = self.index.wrapping_add(1);
        for sn in cover.numbers() {
            let Some(&segment) = transmit.sender.ring.get(sn) else { return false };
            self.encoder
                .add(sn, segment.frg, segment.len, |to| transmit.sender.copy_payload(sn, &segment, to));
        }
        let mut header = transmit.header;
        (header.cmd, header.frg, header.sn) = (Command::Wins, 0, cover.first);
        let room = transmit.packer.push(&header, len);
        if self.encoder.finish(room).is_none() {
            return false;
        }
        self.budget -= cost;
        self.is_paced = true;
        transmit.congestion.spend(len);
        true
    }
}

/// Segments in a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cover {
    first: Sn,
    count: u32,
}

impl Cover {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn numbers(self) -> impl Iterator<Item = Sn> {
        (0..self.count).map(move |number| self.first.add(number))
    }
}

/// The row of segments in flight that ends before `end`, as long as a repair covers.
fn covered(sender: &Sender, end: Sn) -> Cover {
    let (mut first, mut count) = (end, 0);
    while count < COVER && first != sender.una() && sender.ring.get(first.sub(1)).is_some() {
        first = first.sub(1);
        count += 1;
    }
    Cover { first, count }
}

/// Bytes of the payload of a repair of `cover`.
fn needs(sender: &Sender, cover: &Cover) -> u16 {
    let longest = cover.numbers().filter_map(|sn| sender.ring.get(sn)).map(|segment| segment.len).max();
    longest.unwrap_or(0).saturating_add(REPAIR_OVERHEAD)
}

/// Bytes earned for each byte sent, in 1/256, at a loss of `loss` of 254.
fn share(loss: u8, percent: u8) -> u64 {
    let gain = GAIN + u64::from(percent) / 10;
    (gain * u64::from(loss) * 256 / 254).min(u64::from(percent) * 256 / 100)
}

/// Whether round trips are so much longer than the shortest that something queues on the path.
fn has_queue(rtt: &Rtt) -> bool {
    let min = rtt.min().unwrap_or(0);
    rtt.srtt.saturating_sub(min) > min / 2 + QUEUE
}

/// Segments that a repair covers at most.
const COVER: u32 = COVER_MAX as u32 / 2;
/// Repairs that ride in the datagram of a new segment.
const RIDING: u32 = 2;
/// Repairs in datagrams of their own after a burst of segments.
const STANDALONE: u32 = 16;
/// Bytes of repairs for each byte that gets lost; more where more may be spent.
const GAIN: u64 = 1;
/// Bytes sent whose earnings are kept.
const BUCKET: u64 = 64 << 10;
/// Bytes around a datagram on the wire.
const IP_AND_UDP: u64 = 28;
/// Part of a round trip that need not be a queue, µs.
const QUEUE: u32 = 20_000;
