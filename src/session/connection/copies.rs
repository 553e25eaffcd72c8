//! Copies of packets for an address where the peer may be now. Each copy is a packet of its own, so that
//! nobody can tell by its bytes that it carries the same session. Frames that arrive in both count once.

use super::Connection;
use super::handled::Handled;
use super::path::Route;
use super::second::To;
use super::transmit::{PATH_FRAME, Written};
use crate::session::seal::Seal;
use crate::session::wire::{Frame, FrameWriter, Frames};
use crate::time::Time;

impl Connection {
    /// Copies the frames of a packet that leaves, if another address pays for them, or there is a second path and they are urgent, and if the copy can
    /// have the next number.
    #[inline]
    pub(super) fn copy(&mut self, now: Time, frames: &[u8], is_urgent: bool) {
        if self.path.moving.is_none() || self.seal.skips_after_next() {
            return;
        }
        let overhead = self.seal.overhead();
        let question = if self.is_closed() { 0 } else { overhead + PATH_FRAME };
        if self.path.can_copy(1 + frames.len() + overhead, question) {
            self.copy_for_candidate(frames);
        } else if is_urgent && self.path.doubles(now) {
            self.copy_for_second(frames);
        }
    }

    #[cold]
    fn copy_for_candidate(&mut self, frames: &[u8]) {
        let mut copy = Vec::new();
        if self.write_copy(frames, self.mtu.current, &mut copy) {
            self.path.copy(&copy, copy.len() + self.seal.overhead());
        }
    }

    fn copy_for_second(&mut self, frames: &[u8]) {
        let mut copy = self.path.take_buffer();
        copy.clear();
        let has_copy = self.write_copy(frames, self.mtu.for_copies(), &mut copy);
        self.path.keep_buffer(copy, has_copy);
    }

    /// Writes the frames of a copy, if they fit into a datagram of `most` bytes.
    fn write_copy(&self, frames: &[u8], most: u16, copy: &mut Vec<u8>) -> bool {
        let Ok(frames) = Frames::parse(frames).map(Frames::split_repair) else { return false };
        let frames = frames.1.rest(); // what repairs cover is on its way to the same address
        let most = usize::from(most) - self.seal.overhead();
        if frames.is_empty()
            || 1 + frames.len() > most
            || FrameWriter::new(copy, most).push(&Frame::Copy()).is_err()
        {
            return false;
        }
        copy.extend_from_slice(frames);
        Frames::parse(copy).is_ok()
    }

    /// Writes the copy, as the packet after the one that was copied.
    pub(super) fn seal_copy(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<To> {
        if let Some((to, frames)) = self.path.pop_second_copy() {
            let start = Seal::begin(buf);
            buf.extend_from_slice(&frames);
            self.path.keep_buffer(frames, false);
            self.finish(now, buf, start, Written::elsewhere(to))?;
            self.stats.rare_mut().doubled += 1;
            return Some(To { address: to.address, is_second: true });
        }
        let (to, frames) = self.path.pop_copy()?;
        let start = Seal::begin(buf);
        buf.extend_from_slice(&frames);
        self.finish(now, buf, start, Written::elsewhere(to))?;
        Some(to.address.into())
    }

    /// Writes a challenge for an address where the peer may be.
    pub(super) fn seal_question(
        &mut self,
        now: Time,
        buf: &mut Vec<u8>,
        to: Route,
        question: u32,
    ) -> Option<To> {
        let start = Seal::begin(buf);
        let end = start + self.body_end();
        let challenge = Frame::PathChallenge(self.key.challenge(question));
        FrameWriter::new(buf, end).push(&challenge).ok()?;
        self.finish(now, buf, start, Written::elsewhere(to))?;
        Some(to.address.into())
    }

    /// Notes that the packet `pn` leaves. If it is a probe, or goes `elsewhere`, its loss says nothing about the path.
    #[inline]
    pub(super) fn excuse(&mut self, pn: u64, is_probe: bool, elsewhere: bool) {
        self.note_sent(is_probe);
        if elsewhere && let Some(in_use) = &mut self.measured.in_use {
            in_use.loss.on_elsewhere(pn - self.seal.skipped_up_to(self.key, pn));
        }
    }

    /// Handles a COPY: the packet has the frames of the one before. Returns whether that one had not arrived;
    /// from now on it counts as arrived.
    pub(super) fn on_copied(&mut self, now: Time, handled: &mut Handled<'_>) -> bool {
        self.received.add(now, handled.pn, None);
        if let Some(repairs) = &mut self.repairs {
            repairs.arrived(handled.pn);
        }
        let Some(copied) = handled.pn.checked_sub(1) else { return false };
        handled.pn = copied;
        self.seal.mark_rebuilt(copied).is_ok()
    }
}
