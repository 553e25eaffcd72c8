//! What a connection does about the length of its datagrams: probes, and parts of what is too long.

use super::Connection;
use super::transmit::Written;
use crate::message::Message;
use crate::session::config::{ACK_FRAME, SessionConfig};
use crate::session::event::CloseReason;
use crate::session::seal::Seal;
use crate::session::wire::{DATA_HEADER_LEN, Frame, FrameWriter, KcpPart, PART_HEAD};
use crate::time::Time;
use std::time::Duration;

impl<M: Message> Connection<M> {
    /// A probe, if one is due: a ping that is padded.
    pub(super) fn seal_probe(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<()> {
        if !self.mtu.is_searched() || self.allows_at() > now {
            return None;
        }
        let patience = self.patience();
        let size = usize::from(self.mtu.poll(now, self.keepalive.heard(), patience)?);
        let end = size + DATA_HEADER_LEN - self.seal.overhead();
        let padding = end.checked_sub(PING_END)?;
        let start = Seal::begin(buf);
        let mut writer = FrameWriter::new(buf, start + end);
        let stamp = now.as_micros();
        writer.push(&Frame::Ping(stamp)).ok()?;
        writer.push(&Frame::Pad(padding)).ok()?;
        self.on_data(now);
        self.mtu.on_probe(now, stamp, patience);
        self.finish(now, buf, start, Written::probe())
    }

    /// From now on datagrams have another length.
    pub(super) fn set_mtu(&mut self) {
        self.lanes.set_datagram(self.mtu.current() - self.repair_room());
        if self.parts.next().is_some_and(|(_, part)| part.len() > self.part_max()) {
            self.parts.drop_cut();
        }
    }

    /// Most bytes of the content of a KCP frame.
    pub(super) fn frame_max(&self) -> usize {
        SessionConfig::frame_max(self.mtu.current() - self.repair_room()).into()
    }

    /// Most bytes of a part of one: it fits behind an ACK.
    pub(super) fn part_max(&self) -> usize {
        self.frame_max() - PART_HEAD - usize::from(ACK_FRAME)
    }

    /// Writes parts of what is too long; whether none is left that does not fit.
    pub(super) fn write_parts(&mut self, writer: &mut FrameWriter<'_>, written: &mut Written) -> bool {
        while let Some((part, bytes)) = self.parts.next() {
            if writer.room().is_none_or(|room| PART_HEAD + bytes.len() > room)
                || writer.push(&Frame::KcpPart(part, bytes)).is_err()
            {
                return false;
            }
            self.parts.on_sent();
            written.any = true;
            self.be_busy(self.now);
        }
        true
    }

    /// Takes a part, and the frame if it is complete.
    pub(super) fn on_part(&mut self, now: Time, part: KcpPart, bytes: &[u8]) -> Result<(), CloseReason> {
        self.take_memory(bytes.len());
        let is_whole = self.parts.join(part, bytes)?;
        if is_whole {
            self.lanes.input(now, self.parts.joined(), self.memory_left)?;
            self.after_segments(self.parts.joined().len());
        }
        Ok(())
    }

    /// How long an acknowledgement may take, if the peer lets it wait as long as we do.
    pub(super) fn patience(&self) -> Duration {
        let rtt = self.rtt.smoothed_micros();
        Duration::from_micros(rtt.saturating_add(rtt / 2).saturating_add(self.ack_delay.into())) + SLACK
    }
}

/// Where the ping of a probe ends.
const PING_END: usize = DATA_HEADER_LEN + 9;
/// What a round trip may take longer than the last ones, and half of it.
const SLACK: Duration = Duration::from_millis(20);
