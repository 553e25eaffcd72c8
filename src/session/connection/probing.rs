//! What a connection does about the length of its datagrams: probes, and parts of what is too long.

use super::Connection;
use super::transmit::Written;
use crate::message::Message;
use crate::seq::Seq16;
use crate::session::config::{ACK_FRAME, SessionConfig};
use crate::session::event::CloseReason;
use crate::session::seal::Seal;
use crate::session::wire::{DATA_HEADER_LEN, Frame, FrameWriter, KcpPart, PART_HEAD};
use crate::time::Time;
use std::time::Duration;

impl<M: Message> Connection<M> {
    /// A probe, if one is due: a ping that is padded.
    pub(super) fn seal_probe(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<()> {
        if self.allows_at() > now {
            return None;
        }
        let patience = self.patience();
        let size = usize::from(self.mtu.poll(now, self.keepalive.heard(), patience)?);
        let end = size + DATA_HEADER_LEN - self.seal.overhead();
        let padding = end.checked_sub(PING_END)?;
        let start = Seal::begin_behind(buf);
        let mut writer = FrameWriter::new(buf, start + end);
        let stamp = now.as_micros();
        writer.push(&Frame::Ping(stamp)).ok()?;
        writer.push(&Frame::Pad(padding)).ok()?;
        self.on_data(now);
        self.mtu.on_probe(now, stamp, patience);
        self.finish(now, buf, start, Written::probe())
    }

    /// A ping was answered: it may have been a probe.
    pub(super) fn take_probe_answer(&mut self, now: Time, stamp: u64) {
        if self.mtu.on_pong(now, stamp) {
            self.set_mtu();
        }
    }

    /// Goes back to datagrams that every path carries if longer ones do not arrive any more.
    pub(super) fn shrink_if_lost(&mut self, now: Time) {
        if self.mtu.shrink_if_lost(now, self.patience()) {
            self.set_mtu();
        }
    }

    /// From now on datagrams have another length.
    pub(super) fn set_mtu(&mut self) {
        self.lanes.set_datagram(self.mtu.current() - self.repair_room());
        if self.parts.next().is_some_and(|(_, part)| part.len() > self.part_max()) {
            self.parts.drop_cut();
        }
    }

    /// Notes how long a datagram with data is; whether its arrival is of interest for that.
    pub(super) fn note_length(&mut self, now: Time, sequence: Seq16, len: usize) -> bool {
        let has_more = self.lanes.next_len().is_some();
        self.mtu.on_sent(now, sequence, len, has_more, self.patience());
        self.mtu.is_long(len)
    }

    /// A packet has arrived.
    pub(super) fn note_arrived(&mut self, now: Time, sequence: Seq16) {
        let len = usize::try_from(self.sent.bytes_sent(sequence)).unwrap_or(usize::MAX);
        if self.mtu.is_long(len) {
            self.mtu.on_long_arrived(now, sequence);
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
            self.parts.left();
            written.any = true;
            self.be_busy(self.now);
        }
        true
    }

    /// Takes a part, and the frame if it is complete.
    pub(super) fn take_part(&mut self, now: Time, part: KcpPart, bytes: &[u8]) -> Result<(), CloseReason> {
        self.take_memory(bytes.len());
        let is_whole = self.parts.join(part, bytes).map_err(|_| CloseReason::Protocol)?;
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
