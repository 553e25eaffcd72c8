//! How a connection ends: it waits until everything sent has arrived, then tells the peer until the peer confirms.

use super::Connection;
use super::transmit::{Out, Written};
use crate::session::error::CloseTextError;
use crate::session::event::code::RESERVED;
use crate::session::event::{CloseReason, Undelivered};
use crate::session::seal::Seal;
use crate::session::wire::{CLOSE_TEXT_MAX, Frame, FrameWriter, is_close_text};
use crate::time::Time;
use std::time::Duration;

#[derive(Debug)]
pub(super) enum Life {
    Up,
    /// Closed by us; what was sent may still arrive.
    Draining {
        reason: CloseReason,
        until: Time,
    },
    /// The peer is told.
    Closing(Box<Closing>),
    Closed {
        by_peer: bool,
        /// Whether the peer's CLOSE must still be answered.
        owes_answer: bool,
    },
}

/// CLOSE is sent a few times, and then in answer to whatever still comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) reason: CloseReason,
    pub(super) undelivered: Undelivered,
    since: Time,
    /// How many of [`SENDS`] have been sent.
    sent: usize,
    /// When an answer may leave next.
    answer_from: Time,
    is_asked: bool,
}

impl Closing {
    pub(super) const fn new(now: Time, reason: CloseReason, undelivered: Undelivered) -> Self {
        Self { reason, undelivered, since: now, sent: 0, answer_from: now, is_asked: false }
    }

    /// Notes that the peer has sent something: it does not know of the close yet.
    pub(super) const fn on_packet(&mut self) {
        self.is_asked = true;
    }

    pub(super) fn poll(&mut self, now: Time) -> bool {
        let next = self.next_send();
        if next > now || next == Time::NEVER {
            return false;
        }
        while self.sent < SENDS.len() && self.scheduled() <= now {
            self.sent += 1;
        }
        self.is_asked = false;
        self.answer_from = now + ANSWER_EACH;
        true
    }

    pub(super) fn ends_at(&self) -> Time {
        self.since + CLOSING
    }

    pub(super) fn check(&self) -> Time {
        self.next_send().min(self.ends_at())
    }

    fn next_send(&self) -> Time {
        let answer = if self.is_asked { self.answer_from } else { Time::NEVER };
        self.scheduled().min(answer)
    }

    fn scheduled(&self) -> Time {
        SENDS.get(self.sent).map_or(Time::NEVER, |ms| self.since + Duration::from_millis(*ms))
    }
}

impl Connection {
    /// Ends the session once everything sent has arrived, after `drain` at the latest. The peer gets `code`, which
    /// the application chooses below [`RESERVED`]; for one from there on it is 0, and an error is logged. [`Event::Closed`](crate::Event::Closed) reports what did not arrive.
    pub fn close(&mut self, now: Time, code: u16) {
        let _ = self.close_with(now, code_of_close(code), "");
    }

    /// Like [`close`](Self::close), and the peer also gets `text`: at most [`CLOSE_TEXT_MAX`] bytes, for people to
    /// read.
    ///
    /// # Errors
    ///
    /// The text is too long or has control characters, or the code is one of the library's own. Then nothing has changed.
    pub fn close_with(&mut self, now: Time, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_close(code, text)?;
        if self.is_connected() {
            self.close_text = text.into();
            self.life =
                Life::Draining { reason: CloseReason::Local(code), until: now + self.lanes.config.drain };
            self.observe(now);
        }
        Ok(())
    }

    /// Ends the session at once, and tells the peer `code` and `text`. Unlike [`close_with`](Self::close_with), it waits for nothing: what
    /// has not arrived yet is given up.
    ///
    /// # Errors
    ///
    /// The text is too long or has control characters, or the code is one of the library's own. Then nothing has changed.
    pub fn kick(&mut self, now: Time, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_close(code, text)?;
        if self.is_open() {
            self.close_text = text.into();
            self.fail(now, CloseReason::Local(code));
            self.observe(now);
        }
        Ok(())
    }

    /// For a session that nobody drives any longer: tells the peer at once, with the code and text of a close in
    /// progress.
    pub(in crate::session) fn abandon(&mut self, now: Time) {
        match &self.life {
            Life::Up => {
                let _ = self.kick(now, 0, ""); // the text is empty, so it is not refused
            }
            Life::Draining { reason, .. } => self.fail(now, *reason),
            Life::Closing(_) | Life::Closed { .. } => {}
        }
    }

    /// The text that the peer gave when it closed the session, after [`CloseReason::Peer`]; empty if there is none.
    /// It has no control characters. Trust it as far as you trust the peer.
    #[must_use]
    pub fn close_text(&self) -> &str {
        if let Life::Closed { by_peer: true, .. } = self.life { &self.close_text } else { "" }
    }

    /// Whether the session is up and accepts messages.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        matches!(self.life, Life::Up)
    }

    /// Whether the session is over: nothing is sent any more, and nothing more arrives.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.life, Life::Closed { .. })
    }

    /// Whether frames are sent and accepted.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.life, Life::Up | Life::Draining { .. })
    }

    /// Tells the peer at once that the session is over, without waiting for anything.
    pub(in crate::session) fn fail(&mut self, now: Time, reason: CloseReason) {
        if self.is_open() {
            self.life = Life::Closing(Box::new(Closing::new(now, reason, self.undelivered())));
        }
    }

    /// Ends the session without telling the peer.
    pub(super) fn end(&mut self, reason: CloseReason, undelivered: Undelivered) {
        if !self.is_closed() {
            self.life = Life::Closed { by_peer: false, owes_answer: false };
            self.events.closed = Some(Box::new((reason, undelivered)));
            self.observe(self.keepalive.now);
        }
    }

    /// Ends the session without telling the peer, for this reason unless it was already ending for another.
    pub(in crate::session) fn end_unless_ending(&mut self, reason: CloseReason) {
        let reason = match &self.life {
            Life::Closing(closing) => closing.reason,
            Life::Draining { reason, .. } => *reason,
            _ => reason,
        };
        self.end(reason, self.undelivered());
    }

    pub(super) fn on_close(&mut self, code: u16, text: &str) {
        self.close_text = text.into();
        self.end(CloseReason::Peer(code), self.undelivered());
        self.life = Life::Closed { by_peer: true, owes_answer: true };
    }

    pub(super) fn undelivered(&self) -> Undelivered {
        let packed = self.packed.as_ref();
        let elsewhere = |channel| packed.map_or(0, |packed| packed.elsewhere(channel));
        Undelivered {
            segments: self.lanes.undelivered(),
            messages: packed.map_or(0, |packed| packed.unacked()) + self.lanes.waiting(elsewhere),
            datagrams: self.datagrams.waiting(),
            redirect: self.redirects.out.is_some(),
        }
    }

    /// Whether everything sent is known to have arrived, or has at least left.
    pub(super) fn is_drained(&self) -> bool {
        self.undelivered().is_empty() && !self.lane_waits()
    }

    /// Writes a datagram that ends the session. If the application ends it, the datagram has its text, and before
    /// that the ACKs that are due: the peer may be waiting only to hear that everything arrived.
    pub(super) fn seal_close(&mut self, now: Time, buf: &mut Vec<u8>, reason: CloseReason) -> Option<()> {
        let CloseReason::Local(code) = reason else {
            return self.seal_one(now, buf, &Frame::Close(reason.code(), ""));
        };
        self.lanes.acknowledge(now);
        let start = Seal::begin(buf);
        let end = start + self.body_end();
        let mut out = Out::new(now, FrameWriter::new(buf, end - CLOSE_FRAME_MAX));
        self.write_acks(&mut out);
        self.write_lanes(&mut out);
        out.frames.set_end(end);
        out.frames.push(&Frame::Close(code, &self.close_text)).ok()?;
        let written = out.written;
        self.finish(now, buf, start, written)
    }

    /// Writes a datagram of one frame.
    pub(super) fn seal_one(&mut self, now: Time, buf: &mut Vec<u8>, frame: &Frame<'_>) -> Option<()> {
        let start = Seal::begin(buf);
        let end = start + self.body_end();
        FrameWriter::new(buf, end).push(frame).ok()?;
        self.finish(now, buf, start, Written::default())
    }
}

/// Checks that an application may close with this code and this text.
pub(crate) fn check_close(code: u16, text: &str) -> Result<(), CloseTextError> {
    match text.len() {
        _ if code >= RESERVED => Err(CloseTextError::Reserved { code }),
        len if len > CLOSE_TEXT_MAX => Err(CloseTextError::TooLong { len, max: CLOSE_TEXT_MAX }),
        _ if is_close_text(text) => Ok(()),
        _ => Err(CloseTextError::Control),
    }
}

/// The code of a close that cannot fail: 0, and an error in the log, instead of one of the library's own.
pub(crate) fn code_of_close(code: u16) -> u16 {
    if let Err(error) = check_close(code, "") {
        log::error!("close: {error}");
        return 0;
    }
    code
}

/// Most bytes of a CLOSE: its type, the code, the length of the text, the text; and two for the length of the frame before it.
const CLOSE_FRAME_MAX: usize = 4 + CLOSE_TEXT_MAX + 2;
/// How long the peer is told.
pub(super) const CLOSING: Duration = Duration::from_secs(1);
/// When CLOSE is sent, ms after the start.
const SENDS: [u64; 4] = [0, 50, 150, 350];
/// Least time between a CLOSE and one in answer to a packet.
const ANSWER_EACH: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(asked_at: impl Fn(u64) -> bool) -> Vec<u64> {
        let start = Time::from_millis(1000);
        let mut closing = Closing::new(start, CloseReason::Local(1), Undelivered::default());
        let mut sent = Vec::new();
        for ms in 0..1000 {
            if asked_at(ms) {
                closing.on_packet();
            }
            if closing.poll(start + Duration::from_millis(ms)) {
                sent.push(ms);
            }
        }
        assert_eq!(closing.check(), start + CLOSING);
        sent
    }

    #[test]
    fn a_close_is_said_four_times_and_answers_ten_times_a_second_at_most() {
        assert_eq!(sends(|_| false), [0, 50, 150, 350]);
        assert_eq!(sends(|ms| ms == 700), [0, 50, 150, 350, 700]);
        let flooded = sends(|ms| ms < 990);
        assert!(flooded.len() <= 13, "{flooded:?}");
    }
}
