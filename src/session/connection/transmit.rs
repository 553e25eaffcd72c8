//! A datagram out: what is due, the most urgent first, sealed.

use super::Connection;
use super::acks::low;
use super::keepalive::Sent;
use super::life::Life;
use super::pacing::DATAGRAMS;
use super::receive::DELAY_UNIT;
use crate::message::Message;
use crate::packet::{AckTracker, Acks};
use crate::session::config::SessionConfig;
use crate::session::event::CloseReason;
use crate::session::seal::Seal;
use crate::session::wire::{AckFrame, DATA_HEADER_LEN, FRAMES_MAX, Frame, FrameWriter};
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// What a connection has for its owner's socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::session) enum Next {
    /// A datagram was written that goes there.
    Datagram(SocketAddr),
    /// None before then, if nothing else happens.
    Timeout(Option<Time>),
}

/// What a datagram carries that its owner wants to know about later.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    /// Something that has to leave.
    pub(super) any: bool,
    is_data: bool,
    is_ping: bool,
    /// More than signs of life.
    works: bool,
    /// A probe is not acknowledged as others are, and its loss is not one.
    is_probe: bool,
    datagrams: u16,
    is_packed: bool,
    is_redirect: bool,
}

impl Written {
    pub(super) fn probe() -> Self {
        Self { is_probe: true, ..Self::default() }
    }

    const fn sent(&self, asks: bool) -> Sent {
        match self {
            _ if asks => Sent::Asks,
            Self { is_ping: true, .. } => Sent::Ping,
            Self { works: true, .. } => Sent::Unasked,
            _ => Sent::Sign,
        }
    }
}

impl<M: Message> Connection<M> {
    /// Writes the next datagram that is due behind what is in `buf`, or says when there may be one.
    pub(in crate::session) fn append_transmit(&mut self, now: Time, buf: &mut Vec<u8>) -> Next {
        self.keepalive.tick(now);
        self.events.writable |= self.regains_room();
        let is_due = std::mem::take(&mut self.turns.is_eager) && self.is_up(); // as good as certain, and not asked
        if !is_due {
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
            to = self.append_due(now, buf); // a lane was given up meanwhile: there is a goodbye to say
        }
        if to.is_none() {
            buf.truncate(start);
        }
        self.observe(now);
        to.map_or_else(|| Next::Timeout(self.poll_timeout()), Next::Datagram)
    }

    /// Where a datagram goes of what is due; if there is none, there may be a beginning of one.
    fn append_due(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        let start = buf.len();
        if let Some((candidate, copy)) = self.path.pop_copy() {
            buf.extend_from_slice(&copy);
            self.stats.sent += 1;
            self.stats.bytes_sent += copy.len() as u64;
            return Some(candidate);
        }
        let question = self.seal.overhead() + PATH_FRAME;
        let asked = self.path.poll(now, question);
        if let Some((candidate, challenge)) = asked.filter(|_| !self.is_closed()) {
            self.seal_one(now, buf, &Frame::PathChallenge(challenge))?;
            return Some(candidate);
        }
        match &mut self.life {
            Life::Closed { owes_answer, .. } => {
                if !std::mem::take(owes_answer) {
                    return None;
                }
                self.seal_one(now, buf, &Frame::Close(CLOSE_ANSWER, ""))?;
            }
            Life::Closing(closing) => {
                if !closing.poll(now) {
                    return None;
                }
                let reason = closing.reason;
                self.seal_close(now, buf, reason)?;
            }
            Life::Up | Life::Draining { .. } => {
                if self.seal_probe(now, buf).is_none() {
                    self.seal_data(now, buf)?;
                }
            }
        }
        // The peer may not be any more where it was. A packet counts once, so a copy does no harm.
        let question = if self.is_closed() { 0 } else { question };
        self.path.copy(buf.get(start..).unwrap_or_default(), question);
        Some(self.path.address())
    }

    /// A datagram of one frame.
    pub(super) fn seal_one(&mut self, now: Time, buf: &mut Vec<u8>, frame: &Frame<'_>) -> Option<()> {
        let start = Seal::begin(buf);
        let end = start + self.body_end();
        FrameWriter::new(buf, end).push(frame).ok()?;
        self.finish(now, buf, start, Written::default())
    }

    /// A datagram of all that is due and fits.
    fn seal_data(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<()> {
        let may_send = self.turns.allows_at() <= now;
        if self.mtu.is_searched() && self.mtu.shrink_if_lost(now, self.patience()) {
            self.set_mtu();
        }
        let start = Seal::begin(buf);
        let end = start + self.body_end();
        let (frames_start, frames_end) = (buf.len(), end - usize::from(self.repair_room()));
        let mut first = None;
        if may_send && self.is_for_lanes(now) {
            FrameWriter::begin_kcp(buf);
            first = self.lanes.update_into(now, buf, frames_end);
            if first.is_none() {
                buf.truncate(frames_start);
            }
        } else if may_send {
            self.lanes.update(now);
        }
        // Here and not when a timer goes off: who polls often enough has done what a timer was set for before it does.
        if let Err(error) = self.lanes.judge(now) {
            self.fail(now, error);
            return None;
        }
        self.events.writable |= self.lanes.became_writable();
        let mut writer = match first {
            Some(_) => FrameWriter::behind_kcp(buf, frames_start, frames_end),
            None => FrameWriter::new(buf, frames_end),
        };
        let mut written = Written::default();
        self.write_redirect(now, &mut writer, &mut written);
        self.write_control(now, &mut writer, &mut written);
        let is_control = written.any;
        written.any = first.is_some();
        if let Some(index) = first {
            self.turns.served |= 1 << index;
            self.be_busy(now);
        }
        if may_send {
            self.write_data(now, &mut writer, &mut written);
        }
        if written.any {
            self.on_data(now);
            written.is_data = true;
        }
        let repairs = may_send && !written.any && self.repair_is_due();
        written.works |= written.any;
        written.any |= is_control;
        let pings = if written.any {
            written.works && self.keepalive.rides(now, || self.patience())
        } else {
            !repairs && self.keepalive.ping_at() <= now
        };
        if written.works {
            self.write_answer(now, &mut writer, true, &mut written);
        }
        if pings {
            // With it whoever gets it answers as if it had ridden.
            if !written.any
                && self.keepalive.is_unasked()
                && self.write_ack(&mut writer, self.received.newest(now))
            {
                let _ = writer.push(&Frame::Ecn(self.packets_received()));
            }
            written.is_ping = writer.push(&Frame::Ping(now.as_micros())).is_ok();
            written.any |= written.is_ping;
            self.stats.pings += u64::from(written.is_ping);
        }
        if !written.any && !repairs {
            return None;
        }
        if written.any {
            self.write_acks(now, &mut writer); // again, for the last ones may have got lost
            if let Some(marks) = &mut self.marks {
                marks.write(now, &mut writer, false);
            }
        }
        let has_room = writer.count() < FRAMES_MAX;
        if written.is_data {
            self.protect(now, (buf, start + DATA_HEADER_LEN, if has_room { end } else { 0 }));
        } else if repairs && !self.write_repair(now, (buf, start + DATA_HEADER_LEN, end)) && !written.any {
            return None;
        }
        self.finish(now, buf, start, written)
    }

    /// Whether the first frame of what is due, if there is any, is one of a lane that has not made it yet.
    fn is_for_lanes(&self, now: Time) -> bool {
        !self.turns.is_of_last()
            && self.channels.is_none()
            && self.marks.is_none()
            && !self.lane_waits()
            && self.datagrams.next_len().is_none()
            && self.control_due(now) > now
    }

    /// Where the peer is to go, first of all: then it fits.
    fn write_redirect(&mut self, now: Time, writer: &mut FrameWriter<'_>, written: &mut Written) {
        if self.redirects.due() > now {
            return;
        }
        if let Some(token) = self.redirects.poll(now, self.measured.rtt.smoothed()) {
            written.is_redirect = writer.push(&Frame::Redirect(token)).is_ok();
            written.any |= written.is_redirect;
            self.be_busy(now); // or what carried it would be forgotten before it is acknowledged
        }
    }

    /// All that is due, the most urgent first; but where less leaves than there is, each eighth datagram begins with what is least
    /// urgent of what none had, so that nothing waits for ever.
    fn write_data(&mut self, now: Time, writer: &mut FrameWriter<'_>, written: &mut Written) {
        if self.turns.is_of_last() {
            self.write_passed_over(now, writer, written);
        }
        self.write_messages(now, writer, written);
        self.write_datagrams(now, writer, written);
        self.write_lanes(now, writer, written);
    }

    /// The least urgent that waits and was in no datagram since all were in one; if all were again, they begin anew.
    fn write_passed_over(&mut self, now: Time, writer: &mut FrameWriter<'_>, written: &mut Written) {
        let Some(room) = writer.room() else { return };
        let mut last = self.lanes.pop_last(room, self.turns.served);
        if last.is_none() {
            if self.turns.served & DATAGRAMS == 0 && self.datagrams.next_len().is_some_and(|len| len <= room)
            {
                return self.write_datagrams(now, writer, written);
            }
            self.turns.served = 0;
            if self.turns.is_paced() {
                last = self.lanes.pop_last(room, 0);
            }
        }
        if let Some((index, segments)) = last {
            written.any |= writer.push(&Frame::Kcp(segments)).is_ok();
            self.turns.served |= 1 << index;
            self.be_busy(now);
        }
    }

    /// What the peer is owed.
    fn write_control(&mut self, now: Time, writer: &mut FrameWriter<'_>, written: &mut Written) {
        if self.received.due <= now {
            written.works |= self.write_acks(now, writer);
        }
        if self.tells_due() <= now {
            written.any |= self.write_losses(now, writer);
        }
        written.any |= written.works;
        written.any |= self.marks.as_mut().is_some_and(|marks| marks.write(now, writer, true));
        if let Some(response) = self.path.response.take() {
            written.any |= writer.push(&Frame::PathResponse(response)).is_ok();
        }
        self.write_answer(now, writer, false, written);
    }

    pub(super) fn write_acks(&mut self, now: Time, writer: &mut FrameWriter<'_>) -> bool {
        self.write_losses(now, writer); // before: what was rebuilt is not to be sent again
        let tell = self.received.peek(now);
        self.write_ack(writer, tell)
    }

    fn write_ack(&mut self, writer: &mut FrameWriter<'_>, tell: Option<(Acks, Duration)>) -> bool {
        let Some((acks, age)) = tell else { return false };
        let delay = delay_units(age);
        let is_written = writer.push(&Frame::Ack(AckFrame { ack: acks.ack, bits: acks.bits, delay })).is_ok();
        if is_written {
            self.received.told();
        }
        is_written
    }

    /// What channels have to say, if it fits whatever it is.
    fn write_messages(&mut self, now: Time, writer: &mut FrameWriter<'_>, written: &mut Written) {
        let Some(channels) = &mut self.channels else { return };
        let rtt = self.measured.rtt.smoothed();
        let room = writer.room().unwrap_or(0);
        if room < channels.payload_max() || channels.check(now, rtt).is_none_or(|at| at > now) {
            return;
        }
        match channels.write(now, rtt) {
            Ok([]) => {}
            Ok(payload) => {
                written.is_packed = writer.push(&Frame::Packed(payload)).is_ok();
                written.any |= written.is_packed;
                self.be_busy(now);
            }
            Err(error) => {
                log::error!("a message is not written as it was measured: {error}");
                self.fail(now, CloseReason::Protocol);
            }
        }
    }

    fn write_datagrams(&mut self, now: Time, writer: &mut FrameWriter<'_>, written: &mut Written) {
        while let Some(len) = self.datagrams.next_len()
            && writer.room().is_some_and(|room| len <= room)
            && let Some(datagram) = self.datagrams.pop()
        {
            written.any |= writer.push(&Frame::Dgram(datagram)).is_ok();
            self.be_busy(now);
            self.turns.served |= DATAGRAMS;
            written.datagrams += 1;
        }
    }

    pub(super) fn write_lanes(&mut self, now: Time, writer: &mut FrameWriter<'_>, written: &mut Written) {
        let (frame_max, part_max) = (self.frame_max(), self.part_max());
        while self.write_parts(now, writer, written)
            && let Some(len) = self.lanes.next_len()
            && (len > frame_max || writer.room().is_some_and(|room| len <= room))
            && let Some((index, segments)) = self.lanes.pop()
        {
            self.turns.served |= 1 << index;
            if len > frame_max {
                self.parts.cut(segments, part_max);
                continue;
            }
            written.any |= writer.push(&Frame::Kcp(segments)).is_ok();
            self.be_busy(now);
        }
    }

    /// Where the frames of a datagram end at the latest, from its beginning.
    pub(super) fn body_end(&self) -> usize {
        usize::from(self.mtu.current()) + DATA_HEADER_LEN - self.seal.overhead()
    }

    /// Seals what was written from `start` on and notes what left.
    pub(super) fn finish(
        &mut self,
        now: Time,
        buf: &mut Vec<u8>,
        start: usize,
        written: Written,
    ) -> Option<()> {
        let Ok(pn) = self.seal.seal(now, self.peer.sid, buf, start) else {
            self.end(CloseReason::Exhausted, self.undelivered());
            return None;
        };
        let len = buf.len() - start;
        if let Some(marks) = &mut self.marks {
            marks.on_sent();
        }
        self.stats.sent += 1;
        self.stats.bytes_sent += len as u64;
        // A session of lanes alone, which have acknowledgements of their own, remembers nothing.
        if written.is_data && self.mtu.is_searched() {
            let has_more = self.lanes.next_len().is_some();
            self.mtu.on_sent(now, low(pn), len, has_more, self.patience());
        }
        let is_long = written.is_data && self.mtu.is_long(len);
        let is_tracked = written.datagrams > 0 || written.is_packed || written.is_redirect || is_long;
        self.keepalive.on_sent(now, written.sent(is_tracked));
        let remembers = self.sent.as_ref().is_some_and(|sent| sent.remembers_sent());
        if is_tracked || (remembers && !written.is_probe) {
            let bytes = u32::try_from(len).unwrap_or(u32::MAX);
            let held = self.tables();
            let unacked = self.lanes.config().unacked;
            let new = || Box::new(AckTracker::new(&SessionConfig::acks(unacked)));
            let sent = self.sent.get_or_insert_with(new);
            sent.update(now);
            sent.on_sent(now, low(pn), bytes);
            self.datagrams.on_sent(pn, written.datagrams);
            self.redirects.on_sent(pn, written.is_redirect);
            if let Some(channels) = &mut self.channels {
                channels.on_sent(now, low(pn));
            }
            self.budget.grow(held, self.tables());
        }
        if now.since(self.keepalive.busy) >= QUIET {
            self.rest();
        }
        Some(())
    }

    /// Something but a sign of life was sent or received.
    pub(super) fn be_busy(&mut self, now: Time) {
        self.keepalive.busy = now;
        self.seal.wake();
    }

    /// For a session that is quiet: another packet is not expected soon.
    fn rest(&mut self) {
        self.shrink();
        self.seal.rest();
    }
}

/// How long ago something was, as an ACK has it.
pub(super) fn delay_units(age: Duration) -> u16 {
    u16::try_from(age.as_micros() / u128::from(DELAY_UNIT)).unwrap_or(u16::MAX)
}

/// Bytes of a frame that asks a path.
pub(super) const PATH_FRAME: usize = 9;
/// The code of a CLOSE that answers one.
const CLOSE_ANSWER: u16 = 0;
/// Who has sent and received nothing but signs of life for so long gives its memory back.
const QUIET: Duration = Duration::from_secs(5);
