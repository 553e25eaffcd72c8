//! Messages too long for KCP or for a packet: they are cut into messages of KCP and joined again.
//!
//! A message of [`PART`] bytes or more leaves in parts of that size; a shorter part, which may be empty, ends it.
//! Shorter messages are not cut. So a small message costs nothing, and a long one is passed to KCP as its window
//! moves.

use crate::channel::RecvError;
use crate::kcp::Kcp;
use crate::session::event::CloseReason;
use crate::wire::DatagramQueue;
use bytes::Bytes;
use std::collections::VecDeque;

/// The long messages of one channel. Created for the first one in either direction.
#[derive(Debug, Default)]
pub(super) struct Large {
    /// Messages that KCP does not have completely, in order: long ones, and those that must not overtake them.
    out: VecDeque<Bytes>,
    /// Bytes of the first that KCP already has.
    sent: usize,
    /// Bytes of all of them.
    out_bytes: usize,
    /// The parts of the message that is arriving.
    joining: Option<Vec<u8>>,
    /// A complete message.
    ready: Option<Bytes>,
}

impl Large {
    pub(super) fn push(&mut self, message: Bytes) {
        self.out_bytes += message.len();
        self.out.push_back(message);
    }

    /// Messages that KCP does not have completely.
    pub(super) fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Bytes of messages behind the first that waits.
    pub(super) fn held(&self) -> usize {
        self.out_bytes - self.out.front().map_or(0, Bytes::len)
    }

    /// Passes on enough to keep KCP's window full.
    pub(super) fn feed(&mut self, kcp: &mut Kcp<DatagramQueue>) {
        while let Some(front) = self.out.front()
            && kcp.waiting() < kcp.config().snd_wnd.into()
        {
            let rest = front.get(self.sent..).unwrap_or_default();
            let part = rest.get(..PART).unwrap_or(rest);
            if kcp.send(part).is_err() {
                return; // its queue is full
            }
            self.sent += part.len();
            if part.len() < PART {
                self.out_bytes -= front.len();
                self.sent = 0;
                self.out.pop_front();
            }
        }
    }

    pub(super) const fn is_joining(&self) -> bool {
        self.joining.is_some()
    }

    pub(super) const fn has_ready(&self) -> bool {
        self.ready.is_some()
    }

    pub(super) fn ready_len(&self) -> usize {
        self.ready.as_ref().map_or(0, Bytes::len)
    }

    /// Bytes of the next message, if it is whole.
    pub(super) fn next_len(&self, kcp: &Kcp<DatagramQueue>) -> Option<usize> {
        let in_kcp = || kcp.peek_size().filter(|_| self.joining.is_none());
        self.ready.as_ref().map(Bytes::len).or_else(in_kcp)
    }

    /// Takes the message that is ready into `buf`, and returns its length.
    pub(super) fn recv_into(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        let (have, need) = (buf.len(), self.ready_len());
        let to = buf.get_mut(..need).ok_or(RecvError::BufferTooSmall { have, need })?;
        self.take_ready().iter().for_each(|ready| to.copy_from_slice(ready));
        Ok(need)
    }

    pub(super) const fn take_ready(&mut self) -> Option<Bytes> {
        self.ready.take()
    }

    /// Takes parts from KCP, up to the end of one message of at most `max` bytes. The room for them doubles while
    /// there are `left` bytes of memory.
    fn join(&mut self, kcp: &mut Kcp<DatagramQueue>, max: usize, left: u64) -> Result<Joined, CloseReason> {
        let mut joined = Joined::default();
        while self.ready.is_none()
            && let Some(len) = kcp.peek_size()
        {
            let start = self.joining.as_ref().map_or(0, Vec::len);
            let end = start + len;
            if len > PART || end > max {
                self.joining = Some(Vec::new()); // its rest is not taken for a message
                return Err(CloseReason::StreamCorrupt); // no peer with the same channels sends that
            }
            if len < PART && self.joining.is_none() {
                joined.is_next_whole = true; // a message that was not cut
                break;
            }
            let joining = self.joining.get_or_insert_default();
            let room = joining.capacity();
            if end > room {
                let left = usize::try_from(left).unwrap_or(usize::MAX).saturating_sub(joined.bytes);
                let more = start.min(left).max(start / 8);
                joining.reserve_exact((start + more).clamp(end, max) - start);
                joined.bytes += joining.capacity() - room;
            }
            joining.resize(end, 0);
            let _ = kcp.recv_into(joining.get_mut(start..).unwrap_or_default()); // it is there, and fits
            if len < PART {
                self.ready = self.joining.take().map(|message| message.into_boxed_slice().into());
                joined.is_whole = true;
            }
        }
        Ok(joined)
    }

    /// Frees the parts of an incomplete message. Its rest is not taken for a message. Returns whether there was one.
    pub(super) fn drop_joining(&mut self) -> bool {
        self.joining.as_mut().map(|joining| *joining = Vec::new()).is_some()
    }

    pub(super) fn memory(&self) -> usize {
        let out = self.out.capacity() * size_of::<Bytes>() + self.out_bytes;
        let coming = self.joining.as_ref().map_or(0, Vec::capacity);
        size_of::<Self>() + out + coming + self.ready.as_ref().map_or(0, Bytes::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty() && self.joining.is_none() && self.ready.is_none()
    }
}

/// Takes the parts of long messages that have arrived, so that the next message in `kcp` is a whole one.
pub(super) fn join(
    large: &mut Option<Box<Large>>,
    kcp: &mut Kcp<DatagramQueue>,
    max: usize,
    left: u64,
) -> Result<Joined, CloseReason> {
    match large {
        Some(large) => large.join(kcp, max, left),
        None => match kcp.peek_size() {
            Some(len) if len >= PART || len > max => large.get_or_insert_default().join(kcp, max, left),
            next => Ok(Joined { is_next_whole: next.is_some(), ..Joined::default() }),
        },
    }
}

/// What is left of the memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// Bytes that may be used.
    pub(super) bytes: u64,
    /// How many of them only one long message at a time may use.
    pub(super) alone: u64,
}

/// The result of joining parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joined {
    /// Bytes of memory that were taken for it.
    pub(super) bytes: usize,
    /// A message is complete now.
    pub(super) is_whole: bool,
    /// The next message in KCP was not cut.
    pub(super) is_next_whole: bool,
}

/// Bytes of a part: few enough for any window, and of a size that any datagram can be cut to.
pub(super) const PART: usize = 16 << 10;
