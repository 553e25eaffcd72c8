//! Messages and stream bytes that channels pass to KCP and take from it.

use super::lane::{Lane, queue};
use super::lanes::Lanes;
use super::large::{Joined, Left, PART};
use super::memory::SEGMENT;
use crate::channel::{ChannelKind, RecvError, SendError, cure};
use crate::kcp;
use crate::session::event::CloseReason;
use bytes::Bytes;

impl Lanes {
    /// Sends a whole message, or as much of a stream as KCP takes. Returns the bytes taken.
    #[inline]
    pub(super) fn send(&mut self, channel: u8, message: &[u8]) -> Result<usize, SendError> {
        let Some(lane) = self.used(channel) else { return Err(SendError::Closed) };
        let sent = lane.kcp.send(message);
        if sent.is_ok() && lane.wait.as_ref().is_some_and(|wait| message.len() >= wait.need as usize) {
            lane.wait = None;
        }
        self.note_full(channel, sent, message.len())
    }

    /// Sends all of the bytes on a stream, or none. The caller has checked the memory.
    pub(super) fn send_stream(&mut self, channel: u8, bytes: &[u8]) -> Result<(), SendError> {
        let Some(lane) = self.used(channel) else { return Err(SendError::Closed) };
        let (len, cut, most) = (bytes.len(), lane.kcp.config().cut(), lane.queue());
        if len.div_ceil(cut.into()) > most.saturating_sub(lane.kcp.waiting()) as usize {
            self.await_room(channel, len);
            let max = most as usize * usize::from(cut);
            let full = SendError::Full { channel };
            return Err(if len > max {
                SendError::TooLong { channel, len, max, cure: cure::WRITE }
            } else {
                full
            });
        }
        lane.wait.take_if(|wait| len >= wait.need as usize);
        bytes.chunks(PART).try_for_each(|part| self.send(channel, part).map(drop))
    }

    /// Whether a message is long, or has to wait behind a long one.
    pub(super) fn is_large(&self, channel: u8, len: usize) -> bool {
        len >= PART || self.get(channel).is_some_and(|lane| lane.waiting() > 0)
    }

    /// Sends a long message, or one behind it. The first may have any length; those that wait behind it use the
    /// shared memory.
    pub(super) fn send_large(&mut self, channel: u8, message: &[u8]) -> Result<(), SendError> {
        let ((held, max), most) = (self.send_share(channel), self.least_queue(channel));
        let Some(lane) = self.used(channel) else { return Err(SendError::Closed) };
        let len = message.len();
        if most < PART {
            return Err(SendError::TooLong { channel, len, max: most, cure: cure::SND_QUEUE }); // no part would ever leave
        }
        if lane.waiting() > 0 && (held + len + SEGMENT > max || lane.waiting() >= BEHIND_MAX) {
            return Err(SendError::Full { channel });
        }
        let Lane { large, kcp, wait, .. } = lane;
        wait.take_if(|wait| len >= wait.need as usize);
        let large = large.get_or_insert_default();
        large.push(Bytes::copy_from_slice(message));
        large.feed(kcp);
        Ok(())
    }

    /// Bytes that the queue of a channel takes in the shortest datagrams, to which the path may fall back while a message
    /// is being sent.
    fn least_queue(&self, channel: u8) -> usize {
        let least = self.max_datagram.min(self.config.max_datagram);
        let of = self.config.channels.get(usize::from(channel)).map(|of| self.config.lane(of, least));
        of.map_or(0, |kcp| queue(&kcp) as usize * usize::from(kcp.cut()))
    }

    pub(super) fn send_end(&mut self, channel: u8) -> Result<(), SendError> {
        let Some(lane) = self.used(channel) else { return Err(SendError::Closed) };
        let sent = lane.kcp.send_end().map(|()| 0);
        self.note_full(channel, sent, 0).map(drop)
    }

    /// If the queue of a channel was full, notes that its user waits for room.
    fn note_full(
        &mut self,
        channel: u8,
        sent: Result<usize, kcp::SendError>,
        len: usize,
    ) -> Result<usize, SendError> {
        sent.map_err(|error| match error {
            kcp::SendError::TooLong { max, .. } => {
                SendError::TooLong { channel, len, max, cure: cure::SND_QUEUE }
            }
            _ => {
                self.await_room(channel, len);
                SendError::Full { channel }
            }
        })
    }

    /// Notes that the user of a channel waits for room for `len` bytes in its queue.
    pub(super) fn await_room(&mut self, channel: u8, len: usize) {
        if let Some(lane) = self.used(channel) {
            let needs = len.div_ceil(lane.kcp.config().cut().into()).max(1);
            lane.needs = lane.needs.max(u16::try_from(needs).unwrap_or(u16::MAX));
            self.is_awaited = true;
        }
    }

    /// Bytes of the next message of a channel; `None`: there is none yet.
    pub(super) fn next_len(&self, channel: u8) -> Option<usize> {
        let lane = self.get(channel)?;
        match &lane.large {
            Some(large) => large.next_len(&lane.kcp),
            None => lane.kcp.peek_size(),
        }
    }

    /// Takes the next message of a channel into `buf`, and returns its length.
    #[inline]
    pub(super) fn recv_into(&mut self, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        let lane = self.get_mut(channel).ok_or(RecvError::Empty)?;
        let is_joining = lane.is_joining();
        let len = match &mut lane.large {
            Some(large) if large.has_ready() => large.recv_into(buf)?,
            _ if is_joining => return Err(RecvError::Empty),
            _ => lane.kcp.recv_into(buf).map_err(|error| match error {
                kcp::RecvError::BufferTooSmall { have, need } => RecvError::BufferTooSmall { have, need },
                kcp::RecvError::NoMessage => RecvError::Empty,
            })?,
        };
        lane.is_next_whole = false; // what comes after it may need joining
        Ok(len)
    }

    /// Takes the next message of a channel.
    pub(super) fn recv(&mut self, channel: u8) -> Option<Bytes> {
        let lane = self.get_mut(channel)?;
        lane.take_ready().or_else(|| lane.kcp.recv())
    }

    /// Joins what comes after a message that was read, in what is `left` of the memory.
    #[inline]
    pub(super) fn join_next(&mut self, channel: u8, left: Left) -> Result<Joined, CloseReason> {
        let max = self.message_max(channel);
        let position = self.position(channel);
        let index = position.filter(|index| self.lanes.get(*index).is_some_and(|lane| lane.may_join(max)));
        let Some(index) = index else { return Ok(Joined::default()) };
        let left = self.left_for(index, left);
        self.lanes.get_mut(index).map_or(Ok(Joined::default()), |lane| lane.join(max, left))
    }

    /// Longest message of a channel; `None`: it is a stream.
    pub(super) fn message_max(&self, channel: u8) -> Option<usize> {
        let of = self.config.channels.get(usize::from(channel))?;
        (of.channel.kind() != ChannelKind::Stream).then_some(of.max_message as usize)
    }

    pub(super) fn is_stream(&self, channel: u8) -> bool {
        self.message_max(channel).is_none()
    }
}

/// Most messages that wait behind a long one.
const BEHIND_MAX: usize = 1024;
