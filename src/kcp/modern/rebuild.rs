//! Receives repairs and rebuilds lost segments from them.

use super::waits::Waits;
use crate::code::budget::LossShare;
use crate::code::{Decoder, DecoderConfig};
use crate::kcp::acks::AckList;
use crate::kcp::config::OVERHEAD;
use crate::kcp::recv::Stored;
use crate::kcp::stats::count;
use crate::kcp::{Kcp, Work};
use crate::seq::Sn;
use crate::time::{Millis, Time};
use crate::wire::{Command, Header, Output, RawHeader};

/// The state that rebuilds lost segments.
#[derive(Debug)]
pub(in crate::kcp) struct Rebuild {
    decoder: Decoder,
    loss: Loss,
    /// A rebuilt segment, as it would have arrived.
    segment: Vec<u8>,
    pub(in crate::kcp) waits: Waits,
}

/// The share of the peer's segments that get lost.
#[derive(Debug)]
struct Loss {
    /// The first number with an unknown outcome.
    next: Sn,
    /// The number after the newest seen, and its timestamp.
    end: Sn,
    newest: Millis,
    share: LossShare,
    /// Which of the last numbers before `end` count as lost, though none of them was sent again: bit 0 is `end` - 1.
    lost: u128,
}

impl Rebuild {
    pub(in crate::kcp) fn new(nxt: Sn, rcv_mtu: u16) -> Self {
        let mss = rcv_mtu.saturating_sub(OVERHEAD);
        let config = DecoderConfig { segments: REMEMBERED, bytes: u32::from(REMEMBERED) * 1400, mss };
        let loss = Loss { next: nxt, end: nxt, newest: Millis(0), share: LossShare::assumed(0), lost: 0 };
        let decoder = Decoder::new(&config);
        Self { decoder, loss, segment: Vec::new(), waits: Waits::default() }
    }

    /// Bytes of memory that it owns, used or not, without waiting repairs.
    pub(in crate::kcp) fn memory(&self) -> usize {
        size_of::<Self>() + self.decoder.memory() + self.segment.capacity()
    }

    /// The `frg` of our ACKs: it says that we understand repairs, and the loss of 254.
    pub(in crate::kcp) fn mark(&self) -> u8 {
        1 + self.loss.share.of_254().min(254)
    }

    /// The ACKs that we owe are being sent, or the last one is repeated.
    pub(in crate::kcp) fn acknowledge(&mut self, now: Time, acks: &mut AckList) {
        if let Some(last) = acks.last() {
            self.waits.left(now, last, self.loss.share);
        } else if let Some((sn, ts)) = self.waits.pop_again(now) {
            acks.push(sn, ts);
        }
    }
}

impl Loss {
    /// The segment `sn`, sent at `ts`, arrived for the first time. The outcome of a number is known once three newer
    /// ones were seen: it is lost if it is missing then, was rebuilt, or was sent after newer ones.
    fn saw(&mut self, sn: Sn, ts: Millis, mut has: impl FnMut(Sn) -> bool) {
        if !sn.is_before(self.end) {
            self.lost = self.lost.checked_shl(sn.0.wrapping_sub(self.end.0).saturating_add(1)).unwrap_or(0);
            (self.end, self.newest) = (sn.add(1), ts);
        } else if ts.since(self.newest) > 0 {
            self.mark(sn);
        }
        let judged = self.end.sub(3);
        if judged.distance(self.next) > JUDGED_MAX {
            self.next = judged.sub(JUDGED_MAX.unsigned_abs()); // of so many, most are lost
        }
        while self.next.is_before(judged) {
            if !has(self.next) {
                self.mark(self.next);
            }
            self.share.judge(self.lost & self.bit(self.next) != 0);
            self.next = self.next.add(1);
        }
    }

    /// The segment `sn` counts as lost.
    fn mark(&mut self, sn: Sn) {
        self.lost |= self.bit(sn);
    }

    /// The segment `sn`, sent at `ts`, has arrived. If it counts as lost, it was only late, unless this is a resend. That
    /// counts for less: a repair would have been faster, but nothing had to be sent again.
    fn came(&mut self, sn: Sn, ts: Millis) {
        let bit = self.bit(sn);
        if self.lost & bit != 0 && ts.since(self.newest) <= 0 {
            self.lost &= !bit;
            if sn.is_before(self.next) {
                self.share.was_late();
            }
        }
    }

    /// 0: it is too old, or newer than all seen.
    fn bit(&self, sn: Sn) -> u128 {
        let age = u32::try_from(self.end.distance(sn)).unwrap_or(0);
        age.checked_sub(1).and_then(|age| 1u128.checked_shl(age)).unwrap_or(0)
    }
}

impl<O: Output> Kcp<O> {
    /// A datagram came, which pays for the work that it may cause.
    pub(in crate::kcp) fn pay_for_repairs(&mut self, now: Time, bytes: usize) {
        if let Some(Work { rebuild: Some(rebuild), .. }) = self.work.as_deref_mut() {
            rebuild.decoder.earn(now, bytes);
        }
    }

    /// Remembers the PUSH segments in `taken`, which are stored, and rebuilds what has become possible.
    pub(in crate::kcp) fn remember(&mut self, now: Time, taken: &[u8]) {
        let (nxt, rcv_mtu, rcv_wnd) = (self.receiver.nxt, self.config.rcv_mtu, self.config.rcv_wnd);
        let work = self.work.get_or_insert_default();
        let rebuild = work.rebuild.get_or_insert_with(|| Box::new(Rebuild::new(nxt, rcv_mtu)));
        let mut rest = taken;
        while let Some((head, data)) = RawHeader::split(rest)
            && let Some((data, after)) = data.split_at_checked(head.len() as usize)
        {
            rebuild.waits.came(head.len());
            rebuild.loss.came(head.sn(), head.ts());
            if head.sn().is_before(nxt.add(rcv_wnd.into()))
                && rebuild.decoder.received(head.sn(), head.frg(), data)
            {
                rebuild.loss.saw(head.sn(), head.ts(), |sn| self.receiver.has(sn));
            }
            rest = after;
        }
        rebuild.decoder.forget_before(nxt.sub(REMEMBERED.into()));
        let trouble = (self.receiver.parked, self.counters.duplicates);
        rebuild.waits.took(now, work.acks.len(), trouble, work.by_time.protection.gap.ride(now, &self.rtt));
        self.store_rebuilt();
    }

    /// Takes the repair that is the payload of a WINS.
    pub(in crate::kcp) fn apply_repair(&mut self, head: RawHeader<'_>, payload: &[u8]) {
        let Some(Work { rebuild: Some(rebuild), .. }) = self.work.as_deref_mut() else { return };
        let (nxt, wnd) = (self.receiver.nxt, self.config.rcv_wnd);
        if let Err(error) = rebuild.decoder.repair(head.sn(), head.ts(), payload, nxt, wnd) {
            log::trace!("conv {}: repair refused: {error}", self.conv);
            return count(&mut self.counters.rejected.repair);
        }
        rebuild.waits.allow(head.frg());
        self.store_rebuilt();
    }

    /// Stores what can be rebuilt, and owes the peer an ACK for it with the token of a repair.
    fn store_rebuilt(&mut self) {
        let Self { work, receiver, counters, config, .. } = self;
        let Some(Work { rebuild: Some(rebuild), acks, .. }) = work.as_deref_mut() else { return };
        let Rebuild { decoder, loss, segment, waits } = &mut **rebuild;
        while let Some(lost) = decoder.recover() {
            let header = Header {
                conv: self.conv,
                cmd: Command::Push,
                frg: lost.frg,
                wnd: 0,
                ts: lost.ts,
                sn: lost.sn,
                una: Sn(0),
            };
            segment.clear();
            segment.extend_from_slice(&header.to_bytes(u32::try_from(lost.data.len()).unwrap_or(0)));
            segment.extend_from_slice(lost.data);
            let rcv_nxt = receiver.nxt;
            let stored = if u16::from(lost.frg) < config.rcv_wnd {
                receiver.store(segment, None, config.rcv_wnd)
            } else {
                Stored::BrokenChain // the message would never fit
            };
            match stored {
                Stored::New => {}
                Stored::Duplicate => continue,
                Stored::Beyond | Stored::BrokenChain => {
                    count(&mut counters.rejected.repair);
                    continue;
                }
            }
            loss.mark(lost.sn);
            waits.hurry();
            count(&mut counters.rebuilt);
            // No ACK is needed for what `una` covers, as long as some ACK is sent.
            if acks.len() == 0 || !lost.sn.is_before(receiver.nxt) {
                acks.try_push(lost.sn, lost.ts, rcv_nxt, config.rcv_wnd);
            }
        }
    }
}

/// Most numbers whose outcome one segment decides: twice as many as the share is measured over.
const JUDGED_MAX: i32 = 256;
/// Number of segments remembered to rebuild others.
const REMEMBERED: u16 = 256;
