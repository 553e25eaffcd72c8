//! Receives repairs and rebuilds lost segments from them.

use super::waits::Waits;
use crate::code::budget::LossShare;
use crate::code::{Decoder, DecoderConfig, RepairError};
use crate::kcp::acks::AckList;
use crate::kcp::config::OVERHEAD;
use crate::kcp::recv::Stored;
use crate::kcp::stats::count;
use crate::kcp::{Kcp, Work};
use crate::seq::Sn;
use crate::time::{Millis, Time};
use crate::wire::{Command, Header, Output, RawHeader};

/// The state that rebuilds lost segments. Made when the first segment is missing, or the first repair comes.
///
/// It remembers segments only while some get lost. Otherwise it rests, and all that a segment leaves behind is a bit.
#[derive(Debug)]
pub(in crate::kcp) struct Rebuild {
    decoder: Decoder,
    /// The first segment that is remembered, whenever some are.
    since: Sn,
    /// Datagrams since the last sign of loss.
    calm: u16,
    loss: Loss,
    /// A rebuilt segment, as it would have arrived.
    segment: Vec<u8>,
    pub(in crate::kcp) waits: Waits,
}

/// The share of the peer's segments that get lost on the way.
#[derive(Debug)]
struct Loss {
    /// The first number with an unknown outcome.
    next: Sn,
    /// The number after the newest seen, and its timestamp.
    end: Sn,
    newest: Millis,
    share: LossShare,
    /// Which of the last numbers before `end` have arrived: bit 0 is `end` - 1. And which of these arrived first as a
    /// resend.
    seen: u128,
    resent: u128,
}

impl Rebuild {
    fn new(nxt: Sn, rcv_mtu: u16) -> Self {
        let mss = rcv_mtu.saturating_sub(OVERHEAD);
        let config = DecoderConfig { segments: REMEMBERED, bytes: REMEMBERED_BYTES, mss };
        let share = LossShare::assumed(0);
        let loss = Loss { next: nxt, end: nxt, newest: Millis(0), share, seen: 0, resent: 0 };
        let decoder = Decoder::new(&config);
        Self { decoder, since: nxt, calm: 0, loss, segment: Vec::new(), waits: Waits::default() }
    }

    /// Bytes of memory that it owns, used or not.
    pub(in crate::kcp) fn memory(&self) -> usize {
        size_of::<Self>() + self.decoder.memory() + self.segment.capacity()
    }

    /// The `frg` of our ACKs: it says that we understand repairs, and the loss of 254.
    pub(in crate::kcp) fn mark(of: Option<&Self>) -> u8 {
        1 + of.map_or(0, |rebuild| rebuild.loss.share.of_254().min(254))
    }

    /// The ACKs that we owe are being sent, or the last one is repeated.
    pub(in crate::kcp) fn acknowledge(&mut self, now: Time, acks: &mut AckList) {
        if let Some(last) = acks.last() {
            self.waits.left(now, last, self.loss.share);
        } else if let Some((sn, ts)) = self.waits.pop_again(now) {
            acks.push(sn, ts);
        }
    }

    /// Whether nothing is lost, so that the segment `sn`, the next one in order, leaves nothing behind but a bit.
    #[inline]
    pub(in crate::kcp) fn only_notes(&self, sn: Sn) -> bool {
        self.rests() && sn == self.loss.end
    }

    fn rests(&self) -> bool {
        self.calm >= REST
    }

    /// Something is missing before `nxt`, or a repair came: segments from there on are remembered.
    fn wake(&mut self, nxt: Sn) {
        if self.rests() {
            self.since = nxt;
        }
        self.calm = 0;
    }

    /// A datagram came and nothing is missing. After some of these nothing is remembered any more.
    fn calm_down(&mut self) {
        if self.loss.share.get() > 0 {
            self.calm = 0;
        } else if !self.rests() {
            self.calm += 1;
            if self.rests() {
                self.decoder.rest();
                self.segment = Vec::new();
            }
        }
    }
}

impl Loss {
    /// The segment `sn`, sent at `ts`, has arrived. The outcome of a number is known once three newer ones were seen: it
    /// is lost if it is missing then, or was sent after newer ones.
    fn came(&mut self, sn: Sn, ts: Millis) {
        if sn.is_before(self.end) {
            return self.came_late(sn, ts);
        }
        let newer = sn.0.wrapping_sub(self.end.0).saturating_add(1);
        self.seen = self.seen.checked_shl(newer).unwrap_or(0) | 1;
        self.resent = self.resent.checked_shl(newer).unwrap_or(0);
        (self.end, self.newest) = (sn.add(1), ts);
        let judged = self.end.sub(3);
        if judged.distance(self.next) > JUDGED_MAX {
            self.next = judged.sub(JUDGED_MAX.unsigned_abs()); // of so many, most are lost
        }
        while self.next.is_before(judged) {
            let bit = self.bit(self.next);
            self.share.judge(self.seen & bit == 0 || self.resent & bit != 0);
            self.next = self.next.add(1);
        }
    }

    /// A segment that is not newer than all seen. If it counts as lost, it was only late, unless this is a resend. That
    /// counts for less: a repair would have been faster, but nothing had to be sent again.
    fn came_late(&mut self, sn: Sn, ts: Millis) {
        let bit = self.bit(sn);
        let is_first = self.seen & bit == 0;
        if bit == 0 || !(is_first || self.resent & bit != 0) {
            return;
        }
        self.seen |= bit;
        if ts.since(self.newest) > 0 {
            self.resent |= bit;
            return;
        }
        self.resent &= !bit;
        if sn.is_before(self.next) {
            self.share.was_late();
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

    /// Notes the PUSH segments in `taken`, which are stored, and rebuilds what has become possible.
    pub(in crate::kcp) fn remember(&mut self, now: Time, taken: &[u8]) {
        let (nxt, parked, rcv_wnd) = (self.receiver.nxt, self.receiver.parked, self.config.rcv_wnd);
        let work = self.work.get_or_insert_default();
        if work.rebuild.is_none() && parked == 0 {
            return;
        }
        let rebuild = work.rebuild.get_or_insert_with(|| Box::new(Rebuild::new(nxt, self.config.rcv_mtu)));
        if parked > 0 {
            rebuild.wake(nxt);
        }
        let mut rest = taken;
        while let Some((head, data)) = RawHeader::split(rest)
            && let Some((data, after)) = data.split_at_checked(head.len() as usize)
        {
            rebuild.waits.came(head.len());
            if head.sn().is_before(nxt.add(rcv_wnd.into())) {
                rebuild.loss.came(head.sn(), head.ts());
                if !rebuild.rests() {
                    rebuild.decoder.received(head.sn(), head.frg(), data);
                }
            }
            rest = after;
        }
        if parked == 0 {
            rebuild.calm_down();
        }
        rebuild.decoder.forget_before(nxt.sub(REMEMBERED.into()));
        self.wait_for_others(now);
        self.store_rebuilt();
    }

    /// The segment `head` arrived alone, in order, and [is only noted](Rebuild::only_notes).
    #[inline]
    pub(in crate::kcp) fn note(&mut self, now: Time, head: RawHeader<'_>) {
        if let Some(Work { rebuild: Some(rebuild), .. }) = self.work.as_deref_mut() {
            rebuild.waits.came(head.len());
            rebuild.loss.came(head.sn(), head.ts());
            self.wait_for_others(now);
        }
    }

    /// Decides whether acknowledgements of a datagram that was just accepted wait for others.
    fn wait_for_others(&mut self, now: Time) {
        let trouble = (self.receiver.parked, self.counters.duplicates);
        if let Some(Work { rebuild: Some(rebuild), acks, by_time, .. }) = self.work.as_deref_mut() {
            rebuild.waits.took(now, acks.len(), trouble, by_time.protection.gap.ride(now, &self.rtt));
        }
    }

    /// Takes the repair that is the payload of a WINS.
    pub(in crate::kcp) fn apply_repair(&mut self, head: RawHeader<'_>, payload: &[u8]) {
        let (nxt, wnd) = (self.receiver.nxt, self.config.rcv_wnd);
        let work = self.work.get_or_insert_default();
        let is_first = work.rebuild.is_none();
        let rebuild = work.rebuild.get_or_insert_with(|| Box::new(Rebuild::new(nxt, self.config.rcv_mtu)));
        match rebuild.decoder.repair(head.sn(), head.ts(), payload, nxt, wnd) {
            Ok(()) => {}
            // An honest peer cannot know since when we remember segments.
            Err(RepairError::Forgotten { sn }) if rebuild.rests() || sn.is_before(rebuild.since) => {}
            Err(error) => {
                if is_first {
                    work.rebuild = None;
                }
                log::trace!("conv {}: repair refused: {error}", self.conv);
                return count(&mut self.counters.rejected.repair);
            }
        }
        rebuild.wake(nxt);
        rebuild.waits.allow(head.frg());
        self.store_rebuilt();
    }

    /// Stores what can be rebuilt, and owes the peer an ACK for it with the token of a repair.
    fn store_rebuilt(&mut self) {
        let Self { work, receiver, counters, config, .. } = self;
        let Some(Work { rebuild: Some(rebuild), acks, .. }) = work.as_deref_mut() else { return };
        let Rebuild { decoder, segment, waits, .. } = &mut **rebuild;
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
/// Most segments remembered to rebuild others, and their bytes: more than the 32 that a repair covers, of any usual length.
const REMEMBERED: u16 = 256;
const REMEMBERED_BYTES: u32 = 64 << 10;
/// Datagrams without a sign of loss after which no segments are remembered.
const REST: u16 = 64;
