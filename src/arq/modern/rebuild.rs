//! Repairs that come in: what is lost is rebuilt of them.

use super::pace::Gap;
use crate::arq::config::OVERHEAD;
use crate::arq::recv::Stored;
use crate::arq::stats::count;
use crate::arq::{Kcp, Work};
use crate::code::{Decoder, DecoderConfig};
use crate::seq::Sn;
use crate::time::{Millis, Time};
use crate::wire::{Command, Header, Output, RawHeader};

/// What rebuilding lost segments keeps.
#[derive(Debug)]
pub(in crate::arq) struct Rebuild {
    decoder: Decoder,
    loss: Loss,
    /// A rebuilt segment, as it would have come.
    segment: Vec<u8>,
    /// The peer has sent a repair: it knows that ACKs may wait.
    is_paced: bool,
    gap: Gap,
    /// Until when the one ACK that is owed waits for company.
    waits_until: Time,
    /// Segments held out of turn and duplicates, as of the last datagram.
    trouble: (u32, u32),
}

/// How much of what the peer sends gets lost.
#[derive(Debug)]
struct Loss {
    /// The first number not judged yet.
    next: Sn,
    /// The number after the newest seen, and the time in that.
    end: Sn,
    newest: Millis,
    /// Share of the last segments that was lost, of 65,535.
    share: u32,
}

impl Rebuild {
    pub(in crate::arq) fn new(nxt: Sn, rcv_mtu: u16) -> Self {
        let mss = rcv_mtu.saturating_sub(OVERHEAD);
        let config = DecoderConfig { segments: REMEMBERED, bytes: u32::from(REMEMBERED) * 1400, mss };
        let loss = Loss { next: nxt, end: nxt, newest: Millis(0), share: 0 };
        Self {
            decoder: Decoder::new(&config),
            loss,
            segment: Vec::new(),
            is_paced: false,
            gap: Gap::default(),
            waits_until: Time::ZERO,
            trouble: (0, 0),
        }
    }

    /// Until when ACKs wait.
    pub(in crate::arq) fn waits_until(&self) -> Time {
        self.waits_until
    }

    /// A datagram of PUSHes has been taken, after which so many segments are held out of turn, and so
    /// many were duplicates so far: an ACK may wait for the next if this was one more in its turn.
    fn paced(&mut self, now: Time, acks: usize, trouble: (u32, u32)) {
        self.gap.packet(now);
        let is_calm = trouble == self.trouble && trouble.0 == 0 && acks == 1;
        self.waits_until = match self.gap.wait() {
            Some(gap) if self.is_paced && is_calm => now.after(gap + gap / 4),
            _ => now,
        };
        self.trouble = trouble;
    }

    /// What ACKs say in `frg`: that repairs are understood, and the loss of 254.
    pub(in crate::arq) fn mark(&self) -> u8 {
        1 + u8::try_from(self.loss.share * 254 / 65_535).unwrap_or(254).min(254)
    }
}

impl Loss {
    /// The segment `sn` came, sent at `ts`. Numbers are judged when three newer ones have been seen; one
    /// that was sent after newer ones was lost before.
    fn saw(&mut self, sn: Sn, ts: Millis, mut has: impl FnMut(Sn) -> bool) {
        if !sn.is_before(self.end) {
            (self.end, self.newest) = (sn.add(1), ts);
        } else if ts.since(self.newest) > 0 && !sn.is_before(self.next) {
            self.judge(true);
        }
        while self.next.add(3).is_before(self.end) {
            self.judge(!has(self.next));
            self.next = self.next.add(1);
        }
    }

    fn judge(&mut self, is_lost: bool) {
        let (share, target) = (self.share, if is_lost { 65_535 } else { 0 });
        self.share = (127 * share + target + 127 * u32::from(is_lost)).min(128 * 65_535) / 128;
    }
}

impl<O: Output> Kcp<O> {
    /// Remembers the PUSHes in `taken`, which have been stored, and rebuilds what that makes possible.
    pub(in crate::arq) fn remember(&mut self, now: Time, taken: &[u8]) {
        let (nxt, rcv_mtu, rcv_wnd) = (self.receiver.nxt, self.config.rcv_mtu, self.config.rcv_wnd);
        let work = self.work.get_or_insert_default();
        let rebuild = work.rebuild.get_or_insert_with(|| Box::new(Rebuild::new(nxt, rcv_mtu)));
        let mut rest = taken;
        while let Some((head, data)) = RawHeader::split(rest)
            && let Some((data, after)) = data.split_at_checked(head.len() as usize)
        {
            if head.sn().is_before(nxt.add(rcv_wnd.into())) {
                rebuild.decoder.received(head.sn(), head.frg(), data);
                rebuild.loss.saw(head.sn(), head.ts(), |sn| self.receiver.has(sn));
            }
            rest = after;
        }
        rebuild.decoder.forget_before(nxt.sub(REMEMBERED.into()));
        rebuild.paced(now, work.acks.len(), (self.receiver.parked, self.counters.duplicates));
        self.store_rebuilt();
    }

    /// Takes the repair that is the payload of a WINS.
    pub(in crate::arq) fn take_repair(&mut self, head: RawHeader<'_>, payload: &[u8]) {
        let Some(Work { rebuild: Some(rebuild), .. }) = self.work.as_deref_mut() else { return };
        let (nxt, wnd) = (self.receiver.nxt, self.config.rcv_wnd);
        rebuild.is_paced = true;
        if let Err(error) = rebuild.decoder.repair(head.sn(), head.ts(), payload, nxt, wnd) {
            log::trace!("conv {}: repair refused: {error}", self.conv);
            count(&mut self.counters.rejected.repair);
        }
        self.store_rebuilt();
    }

    /// Stores what can be rebuilt, and owes the peer an ACK of it with the token of a repair.
    fn store_rebuilt(&mut self) {
        let Self { work, receiver, counters, config, .. } = self;
        let Some(Work { rebuild: Some(rebuild), acks, .. }) = work.as_deref_mut() else { return };
        let Rebuild { decoder, loss, segment, waits_until, .. } = &mut **rebuild;
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
            if receiver.store(segment, None, config.rcv_wnd) == Stored::New {
                loss.judge(true);
                *waits_until = Time::ZERO;
                count(&mut counters.rebuilt);
                // What `una` says need not be said, as long as anything is.
                if acks.len() == 0 || !lost.sn.is_before(receiver.nxt) {
                    acks.try_push(lost.sn, lost.ts, rcv_nxt, config.rcv_wnd);
                }
            }
        }
    }
}

/// Segments that are remembered to rebuild others.
const REMEMBERED: u16 = 256;
