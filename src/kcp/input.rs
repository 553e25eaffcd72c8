//! Takes a datagram: checks it as a whole, then applies it segment by segment.

use super::congestion::Ack;
use super::modern::Arrivals;
use super::recv::Stored;
use super::rtt::SAMPLE_MAX;
use super::stats::count;
use super::transmit::Flight;
use super::{InputError, Kcp, Work};
use crate::seq::Sn;
use crate::time::{Millis, Time};
use crate::wire::{Command, HEADER_LEN, Output, RawHeader, compact};
use bytes::Bytes;
use std::time::Duration;

impl<O: Output> Kcp<O> {
    /// Takes a datagram from the peer. Source: ikcp.c `ikcp_input`.
    ///
    /// The whole datagram is checked first. On an error nothing has changed except a counter of
    /// [`Stats::rejected`](super::Stats). The next flush sends the response.
    ///
    /// # Errors
    ///
    /// No honest peer of this conversation sends this datagram now. Drop it.
    pub fn input(&mut self, now: Time, datagram: &[u8]) -> Result<(), InputError> {
        self.input_from(now, datagram, None)
    }

    /// [`input`](Self::input) that keeps large payloads as part of `datagram` instead of copying them. The datagram
    /// should have a buffer of its own, which lives as long as its messages.
    ///
    /// # Errors
    ///
    /// The same as [`input`](Self::input).
    pub fn input_bytes(&mut self, now: Time, datagram: &Bytes) -> Result<(), InputError> {
        self.input_from(now, datagram, Some(datagram))
    }

    /// Takes a datagram that was rebuilt from others and is therefore older than they are. Its data and
    /// acknowledgements count as if it had arrived; its window and timestamps do not. Source: kcp-go `KCP.Input` with
    /// `regular` false.
    ///
    /// # Errors
    ///
    /// The same as [`input`](Self::input).
    pub fn input_rebuilt(&mut self, now: Time, datagram: &[u8]) -> Result<(), InputError> {
        self.input_any(now, datagram, None, true)
    }

    #[inline]
    fn input_from(&mut self, now: Time, datagram: &[u8], backing: Option<&Bytes>) -> Result<(), InputError> {
        if backing.is_none() && self.take_expected(now, datagram) {
            if self.receiver.rides {
                self.took_segments(now);
            }
            return Ok(());
        }
        self.input_any(now, datagram, backing, false)
    }

    /// Takes the most common datagram: a single segment that is a whole message, is next in order and carries no other
    /// news. `false`: it is something else, and nothing has changed.
    ///
    /// Source of the idea: header prediction, Van Jacobson 1990; RFC 7323 appendix.
    #[inline]
    fn take_expected(&mut self, now: Time, datagram: &[u8]) -> bool {
        let Some((head, data)) = RawHeader::split(datagram) else { return false };
        let Some(Work { acks, rebuild, observer: None, .. }) = self.work.as_deref_mut() else { return false };
        let is_expected = head.len() as usize == data.len()
            && head.conv() == self.conv
            && head.cmd() == Ok(Command::Push)
            && head.una() == self.sender.una()
            && datagram.len() <= self.config.rcv_mtu.into()
            && acks.room(self.config.rcv_wnd) > 0
            && rebuild.as_ref().is_none_or(|rebuild| rebuild.only_notes(head.sn()));
        if !is_expected || !self.receiver.store_next(head, datagram, self.config.rcv_wnd) {
            return false;
        }
        acks.push(head.sn(), head.ts());
        self.note(now, head);
        self.apply_wnd(head);
        self.counters.bytes_received += datagram.len() as u64;
        self.counters.segments_received += 1;
        true
    }

    #[inline(never)]
    fn input_any(
        &mut self,
        now: Time,
        datagram: &[u8],
        backing: Option<&Bytes>,
        is_rebuilt: bool,
    ) -> Result<(), InputError> {
        if let Err(error) = self.check_datagram(datagram) {
            log::trace!("conv {}: datagram refused: {error}", self.conv);
            self.counters.rejected.count(&error);
            self.log_refused(now);
            return Err(error);
        }
        self.counters.bytes_received += datagram.len() as u64;
        self.pay_for_repairs(now, datagram.len());
        let before = (self.sender.una(), self.sender.in_flight);
        let mut acked = Acked::new(self.clock(now), self.rtt.min(), is_rebuilt);
        let mut has_segments = false;
        let mut rest = datagram;
        while let Some((head, data)) = RawHeader::split(rest)
            && let Ok(cmd) = head.cmd()
        {
            rest = match cmd {
                Command::Push => {
                    has_segments = true;
                    let after = self.store_pushes(rest, backing, &mut acked);
                    if self.config.has_repairs() {
                        self.remember(now, rest.get(..rest.len() - after.len()).unwrap_or_default());
                    }
                    after
                }
                Command::Ack if self.config.is_by_time() => {
                    self.apply_acks_by_time(now, head, rest, &mut acked)
                }
                Command::Ack => self.apply_acks(now, head, rest, &mut acked),
                Command::Wask | Command::Wins => {
                    self.counters.segments_received += 1;
                    self.apply_window(head, &mut acked);
                    self.probe.tell |= cmd == Command::Wask;
                    let (payload, after) = data.split_at_checked(head.len() as usize).unwrap_or_default();
                    if cmd == Command::Wins && !payload.is_empty() && self.config.has_repairs() {
                        self.apply_repair(head, payload);
                    }
                    after
                }
            };
        }
        if self.receiver.rides && has_segments {
            self.took_segments(now);
        }
        self.after_input(now, &acked, before);
        Ok(())
    }

    /// Applies what follows from all acknowledgements of a datagram together. `before`: the oldest segment in flight, and
    /// how many were.
    #[inline]
    pub(super) fn after_input(&mut self, now: Time, acked: &Acked, (una, in_flight): (Sn, u32)) {
        let segments = self.sender.una().0.wrapping_sub(una.0);
        self.wake();
        if self.config.is_by_time() {
            let has_progress = segments > 0 || self.sender.in_flight < in_flight;
            let had_holes = self.sender.nxt.0.wrapping_sub(una.0) != in_flight;
            self.after_acks_by_time(now, acked, segments, (has_progress, had_holes));
        } else {
            self.after_acks(acked);
        }
        if segments > 0 || acked.bytes > 0 {
            let (rmt_wnd, mss) = (self.sender.rmt_wnd, self.config.mss());
            let ack = Ack { now, segments, bytes: acked.bytes, in_flight, rmt_wnd, mss };
            self.congestion.on_ack(&ack, self.config.is_by_time());
        }
        if self.is_logging() {
            self.log_input(now, acked.bytes, acked.sample);
        }
    }

    /// The time as acknowledgements echo it: a token, or with `Classic` that of the wire.
    #[inline]
    pub(super) const fn clock(&self, now: Time) -> Millis {
        if self.config.is_by_time() { now.token() } else { now.wire() }
    }

    /// The time that an ACK of the segment `sn` echoes, of which `token` are the low bits. By time, it is that of the last
    /// transmission or of the one before. Otherwise, and without a token, it is ahead of everything sent, which measures
    /// nothing.
    pub(crate) fn echo(&self, now: Time, sn: Sn, token: Option<u16>) -> Millis {
        let found = token.and_then(|token| {
            if !self.config.is_by_time() {
                let past = now.wire().0.wrapping_sub(PAST);
                let low = u32::from(token).wrapping_sub(past) & u32::from(u16::MAX);
                return Some(Millis(past.wrapping_add(low)));
            }
            let Flight { ts, resend_at, xmit, .. } = self.sender.ring.get(sn)?.flight;
            let before = (xmit > 1).then_some(resend_at);
            [Some(ts), before].into_iter().flatten().find(|ts| compact::token(*ts) == token.to_le_bytes())
        });
        found.unwrap_or_else(|| self.clock(now).add(AHEAD))
    }

    /// Checks everything that can be checked before a datagram is applied.
    fn check_datagram(&self, datagram: &[u8]) -> Result<(), InputError> {
        let (have, max) = (datagram.len(), usize::from(self.config.rcv_mtu));
        if have < HEADER_LEN {
            return Err(InputError::TooShort { have });
        }
        if have > max {
            return Err(InputError::TooLong { have, max });
        }
        let mut rest = datagram;
        while let Some((head, data)) = RawHeader::split(rest) {
            rest = match self.check_first(head, data)? {
                Command::Ack => self.check_acks(rest)?,
                _ => check_alike(head, data)?,
            };
        }
        Ok(())
    }

    /// Checks a segment in the order of ikcp.c. The segments after it mostly share what is checked here.
    fn check_first(&self, head: RawHeader<'_>, data: &[u8]) -> Result<Command, InputError> {
        if head.conv() != self.conv {
            return Err(InputError::Conv { expected: self.conv, found: head.conv() });
        }
        if data.len() < head.len() as usize {
            return Err(InputError::Length { have: data.len(), need: head.len() });
        }
        let cmd = head.cmd().map_err(|found| InputError::Command { found })?;
        let (una, snd_nxt) = (head.una(), self.sender.nxt);
        if snd_nxt.is_before(una) {
            return Err(InputError::Una { una, snd_nxt });
        }
        let (frg, rcv_wnd) = (head.frg(), self.config.rcv_wnd);
        if cmd == Command::Push && u16::from(frg) >= rcv_wnd {
            return Err(InputError::Fragment { frg, rcv_wnd });
        }
        Ok(cmd)
    }

    /// Checks the numbers of the ACKs at the front of `datagram`, which is otherwise checked already. Returns the rest.
    fn check_acks<'a>(&self, datagram: &'a [u8]) -> Result<&'a [u8], InputError> {
        let (snd_nxt, (acks, rest)) = (self.sender.nxt, acks_alike(datagram));
        match acks.iter().map(|ack| RawHeader::of(ack).sn()).find(|sn| !sn.is_before(snd_nxt)) {
            Some(sn) => Err(InputError::AckUnsent { sn, snd_nxt }),
            None => Ok(rest),
        }
    }

    /// Applies what every segment carries: the peer's window, and what it expects next.
    #[inline]
    fn apply_window(&mut self, head: RawHeader<'_>, acked: &mut Acked) {
        if !acked.is_rebuilt {
            self.apply_wnd(head);
        }
        self.apply_una(head, acked);
    }

    /// Applies the peer's window. With modern recovery, once it is known, a segment with the same `una` can only open
    /// it: a smaller window is older news that was overtaken on the way.
    #[inline]
    pub(super) fn apply_wnd(&mut self, head: RawHeader<'_>) {
        let ahead = head.una().distance(self.sender.una());
        if ahead > 0 || !self.receiver.hears_wnd || !self.config.is_by_time() {
            self.receiver.hears_wnd = true;
            self.sender.rmt_wnd = head.wnd();
        } else if ahead == 0 {
            self.sender.rmt_wnd = self.sender.rmt_wnd.max(head.wnd());
        }
    }

    #[inline]
    pub(super) fn apply_una(&mut self, head: RawHeader<'_>, acked: &mut Acked) {
        if self.sender.una().is_before(head.una()) && self.believes_una(acked.arrivals.now, head.una()) {
            self.free_before(head.una(), acked);
        }
    }

    #[inline]
    pub(super) fn free_before(&mut self, una: Sn, acked: &mut Acked) {
        let arrivals = &mut acked.arrivals;
        acked.bytes += if self.config.is_by_time() {
            self.sender.acknowledge_before(una, |segment| arrivals.freed(&segment.flight))
        } else {
            self.sender.acknowledge_before(una, |_| {})
        };
    }

    /// Takes the ACKs at the front of `datagram`, starting with `first`. Each frees a segment and measures the round
    /// trip of the transmission whose time it echoes.
    #[inline(never)]
    fn apply_acks<'a>(
        &mut self,
        now: Time,
        first: RawHeader<'_>,
        datagram: &'a [u8],
        acked: &mut Acked,
    ) -> &'a [u8] {
        self.apply_window(first, acked);
        let (wire, mut rtt, una) = (now.wire(), self.rtt, self.sender.una());
        let (acks, rest) = acks_alike(datagram);
        for ack in acks.iter().map(RawHeader::of) {
            if una.distance(ack.sn()) >= LONG_AGO {
                continue; // to no segment of ours: a listener asked before there was a control block
            }
            let age = wire.since(ack.ts());
            if acked.is_rebuilt {
                // A rebuilt echo is late by the time that the rebuilding took.
            } else if (0..=SAMPLE_MAX).contains(&age) {
                rtt.sample(age.cast_unsigned());
                self.congestion.on_rtt(now, Duration::from_millis(age.cast_unsigned().into()));
                acked.sample = Some(age.cast_unsigned());
            } else if age > 0 {
                count(&mut self.counters.rejected.ts_age); // a time ahead of our clock is no error
            }
            if !ack.sn().is_before(una) && self.believes_classic(wire, (ack.sn(), first.una())) {
                acked.bytes += self.sender.acknowledge(ack.sn());
            }
            if !acked.is_rebuilt {
                acked.see(ack.sn(), ack.ts());
            }
        }
        self.rtt = rtt;
        self.counters.segments_received += acks.len() as u64;
        rest
    }

    /// Takes the PUSH segments at the front: stores each, and owes the peer an ACK for it.
    #[inline]
    fn store_pushes<'a>(
        &mut self,
        datagram: &'a [u8],
        backing: Option<&Bytes>,
        acked: &mut Acked,
    ) -> &'a [u8] {
        let rcv_wnd = self.config.rcv_wnd;
        let mut rest = datagram;
        while let Some((head, data)) = RawHeader::split(rest)
            && head.cmd() == Ok(Command::Push)
        {
            self.apply_window(head, acked);
            let is_last = head.len() as usize == data.len();
            let acks = &mut self.work.get_or_insert_default().acks;
            let most = acks.room(rcv_wnd);
            if backing.is_none() && is_last && most > 0 && self.receiver.store_next(head, rest, rcv_wnd) {
                acks.push(head.sn(), head.ts());
                self.counters.segments_received += 1;
                return &[];
            }
            if backing.is_none() {
                let row = self.receiver.store_row(rest, most, rcv_wnd, |sn, ts| acks.push(sn, ts));
                if row.count > 0 {
                    self.counters.segments_received += row.count as u64;
                    rest = rest.get(row.bytes..).unwrap_or_default();
                    continue;
                }
            }
            self.counters.segments_received += 1;
            let rcv_nxt = self.receiver.nxt;
            let (segment, after) =
                rest.split_at_checked(HEADER_LEN + head.len() as usize).unwrap_or_default();
            rest = after;
            match self.receiver.store(segment, backing, rcv_wnd) {
                Stored::New => {}
                Stored::Duplicate => count(&mut self.counters.duplicates),
                Stored::Beyond => {
                    count(&mut self.counters.rejected.window);
                    continue;
                }
                Stored::BrokenChain => {
                    count(&mut self.counters.rejected.fragment_chain);
                    continue;
                }
            }
            if !acks.try_push(head.sn(), head.ts(), rcv_nxt, rcv_wnd) {
                count(&mut self.counters.rejected.ack_overflow);
            }
        }
        rest
    }

    /// Applies what follows from all ACKs of a datagram together.
    #[inline]
    fn after_acks(&mut self, acked: &Acked) {
        if acked.sample.is_some() {
            self.rtt.update_rto(&self.config);
        }
        if self.sender.in_flight == 0
            && let Some(work) = &mut self.work
        {
            work.classic.clear();
        }
        if let Some((sn, ts)) = acked.newest
            && !sn.is_before(self.sender.una())
        {
            self.work.get_or_insert_default().classic.pass(sn, ts, &mut self.sender);
        }
    }
}

/// Returns the ACKs at the front of `datagram` that differ from the first only in number and time (which may have data
/// if it is alone), and the rest.
#[inline]
pub(super) fn acks_alike(datagram: &[u8]) -> (&[[u8; HEADER_LEN]], &[u8]) {
    let (chunks, _) = datagram.as_chunks();
    let Some(first) = chunks.first().map(RawHeader::of) else { return (&[], &[]) };
    let is_alike = |head: RawHeader<'_>| head.common() == first.common() && head.len() == 0;
    let data = first.len() as usize;
    let alike = chunks.iter().take_while(|bytes| is_alike(RawHeader::of(bytes))).count().max(1);
    let rest = datagram.get(alike * HEADER_LEN + data..).unwrap_or_default();
    (chunks.get(..alike).unwrap_or_default(), rest)
}

/// Checks the lengths of the segments after `first`, as long as they are like it. `datagram` starts after the header of
/// `first`. Returns the rest.
#[inline]
fn check_alike<'a>(first: RawHeader<'_>, datagram: &'a [u8]) -> Result<&'a [u8], InputError> {
    let (mut head, mut data) = (first, datagram);
    loop {
        let (have, need) = (data.len(), head.len());
        let rest = data.get(need as usize..).ok_or(InputError::Length { have, need })?;
        match RawHeader::split(rest) {
            Some((next, after)) if next.common() == first.common() => (head, data) = (next, after),
            _ => return Ok(rest),
        }
    }
}

/// The sum of the ACKs of a datagram.
pub(super) struct Acked {
    pub(super) bytes: u32,
    /// The ACK that counts as passing over older segments.
    newest: Option<(Sn, Millis)>,
    /// The last round trip measured, ms; with modern recovery, µs.
    pub(super) sample: Option<u32>,
    /// With modern recovery, what the datagram says about transmissions.
    pub(super) arrivals: Arrivals,
    /// The datagram was rebuilt, so its window and timestamps say nothing about now.
    pub(super) is_rebuilt: bool,
}

impl Acked {
    /// At `now` on the [clock](Kcp::clock) of acknowledgements; `min_rtt`: the shortest round trip measured.
    pub(super) fn new(now: Millis, min_rtt: Option<u32>, is_rebuilt: bool) -> Self {
        Self { bytes: 0, newest: None, sample: None, arrivals: Arrivals::new(now, min_rtt), is_rebuilt }
    }

    /// The first ACK counts, unless a later one has both a newer number and a newer time. Source: ikcp.c `ikcp_input`
    /// with `IKCP_FASTACK_CONSERVE`.
    #[inline]
    fn see(&mut self, sn: Sn, ts: Millis) {
        match self.newest {
            Some((newest, latest)) if ts.since(latest) <= 0 || !newest.is_before(sn) => {}
            _ => self.newest = Some((sn, ts)),
        }
    }
}

/// Numbers this far before what is in flight were never sent: no listener's question is nearer to the first segment.
pub(crate) const LONG_AGO: i32 = 1 << 30;
/// How long ago an echo may have left with `Classic`, ms: the rest of 2^16 is for clocks that were set back.
const PAST: u32 = 60_000;
/// How far ahead of the clock an echo is that measures nothing.
const AHEAD: u32 = 10_000_000;
