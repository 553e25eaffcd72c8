//! Writes datagrams: what is due, the most urgent first, sealed.

use super::Connection;
use super::acks::low;
use super::life::Life;
use super::path::Route;
use super::rate::DATAGRAMS;
use super::receive::KCP_MAX;
use super::second::To;
use crate::kcp::PathHint;
use crate::packet::{AckTracker, PacketConfig};
use crate::session::event::CloseReason;
use crate::session::local_key::Label;
use crate::session::seal::Seal;
use crate::session::wire::{AckFrame, DATA_HEADER_LEN, FRAMES_MAX, Frame, FrameWriter};
use crate::time::Time;

/// What a connection has for its owner's socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::session) enum Next {
    /// A datagram was written.
    Datagram(To),
    /// There is none before this time, if nothing else happens.
    Timeout(Option<Time>),
}

/// A datagram that is being written.
pub(super) struct Out<'a> {
    pub(super) now: Time,
    pub(super) frames: FrameWriter<'a>,
    pub(super) written: Written,
    /// Frames of segments, and their bytes with whole headers.
    segments: usize,
    whole: usize,
}

impl<'a> Out<'a> {
    pub(super) fn new(now: Time, frames: FrameWriter<'a>) -> Self {
        Self { now, frames, written: Written::default(), segments: 0, whole: 0 }
    }

    /// Writes what has to leave, if it fits.
    pub(super) fn push(&mut self, frame: &Frame<'_>) -> bool {
        let fits = self.frames.push(frame).is_ok();
        self.written.any |= fits;
        fits
    }

    /// Whether there is room for a frame with `len` bytes of content.
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.frames.room().is_some_and(|room| len <= room)
    }
}

/// What a datagram carries that its owner wants to know about later.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    /// Something that has to leave.
    any: bool,
    is_data: bool,
    is_ping: bool,
    /// More than signs of life.
    works: bool,
    /// Bulk data, which goes by one path only.
    is_bulk: bool,
    /// A probe is not acknowledged like other packets, and its loss does not count.
    is_probe: bool,
    datagrams: u16,
    is_packed: bool,
    is_redirect: bool,
    pub(super) is_half: bool,
    /// Where it goes, if that is not the peer's address.
    to: Option<Route>,
}

impl Written {
    pub(super) fn probe() -> Self {
        Self { is_probe: true, ..Self::default() }
    }

    /// Leaves for another address. Its loss does not count either.
    pub(super) fn elsewhere(to: Route) -> Self {
        Self { is_probe: true, to: Some(to), ..Self::default() }
    }
}

impl Connection {
    /// Writes the next datagram that is due behind what is in `buf`, or says when there may be one.
    pub(in crate::session) fn append_transmit(&mut self, now: Time, buf: &mut Vec<u8>) -> Next {
        self.keepalive.tick(now);
        self.events.writable |= self.regains_room();
        let is_certain = std::mem::take(&mut self.turns.is_eager) && self.is_connected(); // as good as
        if !is_certain {
            let due = self.poll_timeout();
            if due.is_none_or(|at| at > now) {
                self.observe(now);
                return Next::Timeout(due);
            }
        }
        let start = buf.len();
        let mut to = self.append_due(now, buf);
        if to.is_none() && matches!(self.life, Life::Closing(_)) {
            buf.truncate(start);
            to = self.append_due(now, buf); // a lane has failed meanwhile: the peer must be told
        }
        self.observe(now);
        if let Some(to) = to {
            return Next::Datagram(to);
        }
        buf.truncate(start);
        Next::Timeout(self.poll_timeout())
    }

    /// Writes a datagram of what is due and returns its address. If there is none, `buf` may have the beginning of
    /// one.
    fn append_due(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<To> {
        if self.path.has_copy() {
            return self.seal_copy(now, buf);
        }
        let question = self.seal.overhead() + PATH_FRAME;
        let asked = self.path.poll(now, question);
        if let Some((to, question)) = asked.filter(|_| !self.is_closed()) {
            return self.seal_question(now, buf, to, question);
        }
        match &mut self.life {
            Life::Closed { owes_answer, .. } => {
                std::mem::take(owes_answer).then_some(())?;
                self.seal_one(now, buf, &Frame::Close(CLOSE_ANSWER, ""))?;
            }
            Life::Closing(closing) => {
                let reason = closing.poll(now).then_some(closing.reason)?;
                self.seal_close(now, buf, reason)?;
            }
            Life::Up | Life::Draining { .. } => {
                self.shrink_if_lost(now); // first, since it may ask for a probe
                self.seal_probe(now, buf).or_else(|| self.seal_data(now, buf))?;
            }
        }
        Some(self.path.route.address.into())
    }

    /// Writes a datagram of everything that is due and fits.
    fn seal_data(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<()> {
        let may_send = self.turns.allows_at() <= now;
        let start = Seal::begin(buf);
        let end = start + self.body_end();
        let frames_start = buf.len();
        let mut first = None;
        if may_send {
            let is_for_lanes = self.is_for_lanes(now);
            if is_for_lanes {
                FrameWriter::begin_kcp(buf);
            }
            let path = PathHint {
                rtt: self.measured.rtt.min_micros(), // a standstill may have made others long
                least: self.keepalive.least_micros(),
                is_lossless: self.lanes.is_lossless,
            };
            first = self.lanes.update(now, path, is_for_lanes.then_some((&mut *buf, end)));
            if first.is_none() {
                buf.truncate(frames_start);
            }
        }
        // Here and not in a timer: an owner that polls often does the work before the timer fires.
        if let Err(error) = self.lanes.judge(now) {
            self.fail(now, error);
            return None;
        }
        self.events.writable |= self.lanes.became_writable();
        let writer = match first {
            Some(_) => FrameWriter::behind_kcp(buf, frames_start, end),
            None => FrameWriter::new(buf, end),
        };
        let mut out = Out::new(now, writer);
        self.write_redirect(&mut out);
        self.write_half(&mut out);
        self.write_control(&mut out);
        let is_control = std::mem::replace(&mut out.written.any, first.is_some());
        if let Some((index, len)) = first {
            (out.segments, out.whole) = (1, len);
            out.written.is_bulk = self.lanes.is_bulk(index);
            self.turns.served |= 1 << index;
            self.be_busy(now);
        }
        if may_send {
            self.write_data(&mut out);
        }
        out.written.is_data = out.written.any;
        if out.written.is_data {
            self.on_data(now);
        }
        let repairs = may_send && !out.written.is_data && self.repair_is_due();
        out.written.works |= out.written.is_data;
        out.written.any |= is_control;
        let pings = if out.written.any {
            out.written.works && self.keepalive.rides(now, || self.patience())
        } else {
            !repairs && self.keepalive.ping_at() <= now
        };
        if out.written.works {
            self.write_answer(&mut out, true);
        }
        if pings {
            // With an ACK, the receiver answers the ping as if it had ridden.
            let asks_alone = !out.written.any && self.keepalive.is_unasked();
            if asks_alone && self.write_ack(&mut out, self.received.newest(now)) {
                let _ = out.frames.push(&Frame::Ecn(self.packets_received()));
            }
            out.written.is_ping = out.push(&Frame::Ping(self.stamps(Label::Ping).make(now)));
            self.stats.pings += u64::from(out.written.is_ping);
        }
        if !out.written.any && !out.written.is_half && !repairs {
            return None;
        }
        if out.written.any {
            self.write_acks(&mut out); // again, for the last ones may have got lost
            if let Some(marks) = &mut self.marks {
                marks.write(&mut out, false);
            }
            self.write_ids(&mut out);
        }
        let (written, has_room) = (out.written, out.frames.count() < FRAMES_MAX);
        if written.is_data {
            self.protect(now, (buf, start + DATA_HEADER_LEN, if has_room { end } else { 0 }));
        } else if repairs
            && !self.write_repair(now, (buf, start + DATA_HEADER_LEN, end))
            && !written.any
            && !written.is_half
        {
            return None;
        }
        self.finish(now, buf, start, written)
    }

    /// Whether the first frame of what is due, if there is any, comes from a lane that has not made it yet.
    fn is_for_lanes(&self, now: Time) -> bool {
        !self.turns.is_of_last()
            && self.packed.is_none()
            && self.marks.is_none()
            && !self.lane_waits()
            && self.datagrams.next_len().is_none()
            && self.control_due(now) > now
            && self.seal.half().is_none()
    }

    /// Writes a redirect before everything else, so that it fits.
    fn write_redirect(&mut self, out: &mut Out<'_>) {
        if self.redirects.due() <= out.now
            && let Some(token) = self.redirects.poll(out.now, self.measured.rtt.smoothed())
        {
            out.written.is_redirect = out.push(&Frame::Redirect(token));
            self.be_busy(out.now); // or what carried it would be forgotten before it is acknowledged
        }
    }

    /// Writes everything that is due, the most urgent first. But if more waits than may leave, each eighth datagram
    /// begins with the least urgent data that none had, so that nothing waits forever.
    fn write_data(&mut self, out: &mut Out<'_>) {
        if self.turns.is_of_last() {
            self.write_passed_over(out);
        }
        self.write_messages(out);
        self.write_datagrams(out);
        self.write_lanes(out);
    }

    /// Writes the least urgent data that was in no datagram of this round. Once everything was in one, a new round
    /// begins.
    fn write_passed_over(&mut self, out: &mut Out<'_>) {
        let Some(room) = out.frames.room() else { return };
        let mut last = self.lanes.pop_last(room, self.turns.served);
        if last.is_none() {
            if self.turns.served & DATAGRAMS == 0 && self.datagrams.next_len().is_some_and(|len| len <= room)
            {
                return self.write_datagrams(out);
            }
            self.turns.served = 0;
            if self.turns.is_limited() {
                last = self.lanes.pop_last(room, 0);
            }
        }
        if let Some((len, index, segments)) = last {
            out.whole += len;
            out.segments += usize::from(out.push(&Frame::Kcp(segments)));
            self.turns.served |= 1 << index;
            self.be_busy(out.now);
        }
    }

    /// Writes control frames that are due.
    fn write_control(&mut self, out: &mut Out<'_>) {
        if self.received.due <= out.now {
            out.written.works |= self.write_acks(out);
        }
        if self.tells_due() <= out.now {
            out.written.any |= self.write_losses(out);
        }
        out.written.any |= out.written.works;
        out.written.any |= self.marks.as_mut().is_some_and(|marks| marks.write(out, true));
        if let Some(response) = self.path.response.take() {
            out.push(&Frame::PathResponse(response));
        }
        self.write_answer(out, false);
        out.written.any |= self.ids_due() <= out.now && self.write_ids(out);
    }

    pub(super) fn write_acks(&mut self, out: &mut Out<'_>) -> bool {
        self.write_losses(out); // first, so that rebuilt packets are not sent again
        self.write_ack(out, self.received.peek(out.now))
    }

    fn write_ack(&mut self, out: &mut Out<'_>, tell: Option<AckFrame>) -> bool {
        let is_written = tell.is_some_and(|acks| out.frames.push(&Frame::Ack(acks)).is_ok());
        if is_written {
            self.received.told();
        }
        is_written
    }

    /// Writes messages of channels in packets, if even the longest payload fits.
    fn write_messages(&mut self, out: &mut Out<'_>) {
        let Some(channels) = &mut self.packed else { return };
        let (now, rtt) = (out.now, self.measured.rtt.smoothed());
        if !out.has_room(channels.payload_max()) || channels.check(now, rtt).is_none_or(|at| at > now) {
            return;
        }
        if channels.is_stuck(now, rtt, self.lanes.config.slow_peer) {
            return self.fail(now, CloseReason::SlowPeer);
        }
        match channels.write(now, rtt) {
            Ok([]) => {}
            Ok(payload) => {
                out.written.is_packed = out.push(&Frame::Packed(payload));
                self.be_busy(now);
            }
            Err(error) => {
                log::error!("a message is not written as it was measured: {error}");
                self.fail(now, CloseReason::Protocol);
            }
        }
    }

    fn write_datagrams(&mut self, out: &mut Out<'_>) {
        while let Some(len) = self.datagrams.next_len()
            && out.has_room(len)
            && let Some(datagram) = self.datagrams.pop()
        {
            out.push(&Frame::Dgram(datagram));
            self.be_busy(out.now);
            self.turns.served |= DATAGRAMS;
            out.written.datagrams += 1;
        }
    }

    pub(super) fn write_lanes(&mut self, out: &mut Out<'_>) {
        let (frame_max, part_max) = (self.frame_max(), self.part_max());
        while self.write_parts(out)
            && out.segments < KCP_MAX
            && let Some(len) = self.lanes.next_frame()
            && (out.whole == 0 && len > frame_max || out.whole + len <= frame_max && out.has_room(len))
            && let Some((index, segments)) = self.lanes.pop()
        {
            self.turns.served |= 1 << index;
            if len > frame_max && !out.has_room(segments.len()) {
                self.parts.cut(segments, part_max);
                continue;
            }
            out.whole += len;
            out.segments += usize::from(out.push(&Frame::Kcp(segments)));
            out.written.is_bulk |= self.lanes.is_bulk(index);
            self.be_busy(out.now);
        }
    }

    /// Where the frames of a datagram must end, counted from its beginning.
    pub(super) fn body_end(&self) -> usize {
        usize::from(self.mtu.current) + DATA_HEADER_LEN - self.seal.overhead()
    }

    /// Seals what was written from `start` on and notes what left.
    pub(super) fn finish(
        &mut self,
        now: Time,
        buf: &mut Vec<u8>,
        start: usize,
        written: Written,
    ) -> Option<()> {
        if written.to.is_none() {
            let is_urgent = written.works && !written.is_bulk;
            self.copy(now, buf.get(start + DATA_HEADER_LEN..).unwrap_or_default(), is_urgent);
        }
        let sid = written.to.unwrap_or(self.path.route).sid;
        let Ok(pn) = self.seal.seal(now, sid, buf, start) else {
            self.end(CloseReason::Exhausted, self.undelivered());
            return None;
        };
        if written.is_half {
            self.seal.told(now);
        }
        self.excuse(pn, written.is_probe, written.to.is_some());
        self.seal.skip(self.key);
        let len = buf.len() - start;
        if let Some(marks) = &mut self.marks {
            marks.on_sent();
        }
        self.stats.sent += 1;
        self.stats.bytes_sent += len as u64;
        // If KCP carries all channels, nothing is remembered: KCP has acknowledgements of its own.
        if written.is_data && self.mtu.looks() && self.path.second().is_none() {
            let has_more = self.lanes.next_frame().is_some();
            if self.mtu.heeds(len, has_more) {
                self.mtu.on_sent(now, low(pn), len, has_more, self.patience());
            }
        }
        let is_long = written.is_data && self.mtu.is_long(len);
        let is_tracked = written.datagrams > 0 || written.is_packed || written.is_redirect || is_long;
        self.keepalive.on_sent(now, is_tracked, written.is_ping, written.works);
        let remembers = self.sent.as_ref().is_some_and(|sent| sent.remembers_sent());
        if is_tracked || (remembers && !written.is_probe) {
            let bytes = u32::try_from(len).unwrap_or(u32::MAX);
            let held = self.tables();
            let sent = self.sent.get_or_insert_with(|| {
                let sent = self.lanes.config.unacked;
                Box::new(AckTracker::new(&PacketConfig { sent, received: 1, ..PacketConfig::default() }))
            });
            sent.update(now);
            sent.on_sent(now, low(pn), bytes);
            self.datagrams.on_sent(pn, written.datagrams);
            if written.is_redirect {
                self.redirects.on_sent(pn);
            }
            if let Some(channels) = &mut self.packed {
                channels.on_sent(now, low(pn));
            }
            self.budget.grow(held, self.tables());
        }
        self.rest_if_quiet(now);
        Some(())
    }
}

/// Bytes of a path challenge frame.
pub(super) const PATH_FRAME: usize = 9;
/// The code of a CLOSE that answers one.
const CLOSE_ANSWER: u16 = 0;
