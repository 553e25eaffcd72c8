//! What is said in words when a session ends, for people and their logs.

use super::Connection;
use super::life::Life;
use super::transmit::Written;
use crate::message::Message;
use crate::session::error::CloseTextError;
use crate::session::event::CloseReason;
use crate::session::seal::Seal;
use crate::session::wire::{CLOSE_TEXT_MAX, Frame, FrameWriter, is_close_text};
use crate::time::Time;

impl<M: Message> Connection<M> {
    /// [`close`](Self::close), and the peer is told `text` as well: at most [`CLOSE_TEXT_MAX`] bytes, for people to read.
    ///
    /// # Errors
    ///
    /// The text is too long, or has control characters. Then nothing has changed.
    pub fn close_with(&mut self, now: Time, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_text(text)?;
        if self.is_up() {
            self.close_text = text.into();
            self.life =
                Life::Draining { reason: CloseReason::Local(code), until: now + self.lanes.config().drain };
            self.observe(now);
        }
        Ok(())
    }

    /// What the peer said when it closed the session, after [`CloseReason::Peer`]; empty if it said nothing. It has no control
    /// characters; believe it as much as you believe the peer.
    #[must_use]
    pub fn close_text(&self) -> &str {
        if self.is_closed() && self.is_closed_by_peer { &self.close_text } else { "" }
    }

    /// A datagram that says that the session ends. If the application ends it, in words, and after what the peer is still owed: it may
    /// wait for nothing else but to hear that all has arrived.
    pub(super) fn seal_close(&mut self, now: Time, buf: &mut Vec<u8>, reason: CloseReason) -> Option<()> {
        let CloseReason::Local(code) = reason else {
            return self.seal_one(now, buf, &Frame::Close(reason.code(), ""));
        };
        self.lanes.acknowledge(now);
        let start = Seal::begin(buf);
        let end = start + self.body_end();
        let mut writer = FrameWriter::new(buf, end - CLOSE_FRAME_MAX);
        let mut written = Written::default();
        self.write_acks(now, &mut writer);
        self.write_lanes(&mut writer, &mut written);
        writer.set_end(end);
        writer.push(&Frame::Close(code, &self.close_text)).ok()?;
        self.finish(now, buf, start, written)
    }

    /// The peer has closed the session.
    pub(super) fn on_close(&mut self, code: u16, text: &str) {
        self.farewell = true;
        self.is_closed_by_peer = true;
        self.close_text = text.into();
        self.end(CloseReason::Peer(code), self.undelivered());
    }
}

/// Most bytes of a CLOSE: its type, the code, the length of the text, the text; and two for the length of the frame before it.
const CLOSE_FRAME_MAX: usize = 4 + CLOSE_TEXT_MAX + 2;

/// Whether a CLOSE can say this.
pub(in crate::session) fn check_text(text: &str) -> Result<(), CloseTextError> {
    if text.len() > CLOSE_TEXT_MAX {
        return Err(CloseTextError::TooLong { len: text.len(), max: CLOSE_TEXT_MAX });
    }
    if is_close_text(text) { Ok(()) } else { Err(CloseTextError::Control) }
}
