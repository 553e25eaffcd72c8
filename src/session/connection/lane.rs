//! What one channel sends by KCP: its control block, the long messages that are cut for it, and its wait for room.

use super::large::{self, Joined, Large, PART};
use crate::kcp::{Config, Kcp, PathHint};
use crate::seq::Sn;
use crate::session::event::CloseReason;
use crate::time::Time;
use crate::wire::compact::{Compactor, Known};
use crate::wire::{DatagramQueue, InPacket};
use bytes::Bytes;

/// The control block of one channel, and what surrounds it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) channel: u8,
    pub(super) kcp: Kcp<DatagramQueue>,
    /// Writes what `kcp` sends.
    pub(super) compactor: Compactor,
    pub(super) large: Option<Box<Large>>,
    /// Since when the peer's window has been closed while something waits and nothing beyond `blocked_at` is
    /// acknowledged; never: it is not.
    pub(super) blocked: Time,
    pub(super) blocked_at: Sn,
    /// Since when received data has found no room in the memory of all sessions; never: there is room.
    pub(super) starved: Time,
    /// Segments that a refused message needs; 0: none was refused.
    pub(super) needs: u16,
    /// The next message is complete and was not cut, so there is nothing to join until it is read.
    pub(super) is_next_whole: bool,
    /// Somebody asked whether everything had arrived, and it had not.
    pub(super) is_asked: bool,
    pub(super) wait: Option<Box<Wait>>,
}

/// A lane's wait for room in memory. The room is reserved for it: lanes that ask later do not get it first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) need: u32,
    /// Since when it waits; once it was told that there is room, until when the room is reserved.
    pub(super) at: Time,
    pub(super) is_told: bool,
}

impl Wait {
    /// The lane with the lower turn comes first.
    pub(super) const fn turn(&self) -> Time {
        if self.is_told { Time::ZERO } else { self.at }
    }

    /// Bytes that it needs of the shared memory; a long message has its own.
    pub(super) const fn room(&self, is_stream: bool) -> usize {
        if is_stream || (self.need as usize) < PART { self.need as usize } else { 0 }
    }
}

impl Lane {
    /// Makes what is due. Returns whether something waits that has not left. `path` is what the session
    /// knows.
    pub(super) fn update_if_due(
        &mut self,
        now: Time,
        path: PathHint,
        ahead: Option<&mut InPacket<'_>>,
    ) -> bool {
        self.kcp.expect(path);
        self.feed();
        if self.kcp.output().is_empty() {
            self.kcp.update_if_due(now, ahead);
        }
        !self.kcp.output().is_empty()
    }

    /// Takes the next of its frames that wait.
    pub(super) fn pop(&mut self) -> Option<(u8, &[u8])> {
        let datagram = self.kcp.output_mut().pop_mut()?;
        let len = self.compactor.compact(self.channel, datagram);
        Some((self.channel, datagram.get(..len)?))
    }

    /// What a frame of the peer leaves out.
    pub(super) fn known(&self, is_rebuilt: bool) -> Known {
        let kcp = &self.kcp;
        Known {
            conv: kcp.conv(),
            una: kcp.snd_una(),
            wnd: kcp.rmt_wnd(),
            next: kcp.received_up_to().0,
            is_rebuilt,
        }
    }

    /// Passes long messages to KCP, as far as there is room.
    #[inline]
    pub(super) fn feed(&mut self) {
        if let Some(large) = &mut self.large {
            large.feed(&mut self.kcp);
        }
    }

    /// Whether everything sent has arrived.
    pub(super) fn is_idle(&self) -> bool {
        self.kcp.wait_snd() == 0 && self.waiting() == 0
    }

    /// Long messages that KCP does not have completely.
    pub(super) fn waiting(&self) -> usize {
        self.large.as_ref().map_or(0, |large| large.waiting())
    }

    /// Bytes of unacknowledged messages, except a long one that is being sent.
    pub(super) fn held(&self) -> usize {
        self.kcp.send_held() + self.large.as_ref().map_or(0, |large| large.held())
    }

    /// Most segments that may wait.
    pub(super) fn queue(&self) -> u32 {
        queue(self.kcp.config())
    }

    pub(super) fn is_readable(&self) -> bool {
        match &self.large {
            Some(large) => large.has_ready() || self.kcp.is_readable(),
            None => self.kcp.is_readable(),
        }
    }

    /// Bytes of memory that wait for its user, if there is a message to read.
    pub(super) fn unread(&self) -> usize {
        let ready = self.large.as_ref().map_or(0, |large| large.ready_len());
        if self.is_readable() { ready + self.kcp.receive_in_order() as usize } else { 0 }
    }

    /// Whether half of its queue is free, and as much as was refused.
    pub(super) fn has_half_room(&self) -> bool {
        let (waiting, queue) = (self.kcp.waiting(), self.queue());
        let has_room = waiting + u32::from(self.needs).min(queue) <= queue;
        self.waiting() == 0 && waiting <= self.kcp.config().snd_queue / 2 && has_room
    }

    pub(super) fn became_writable(&mut self) -> bool {
        // Whoever waits for memory is told when there is some.
        let has_room = self.needs > 0 && self.wait.is_none() && self.has_half_room();
        let is_delivered = self.is_asked && self.is_idle();
        if has_room {
            self.needs = 0;
        }
        self.is_asked &= !is_delivered;
        has_room || is_delivered
    }

    /// Whether part of a long message has arrived.
    pub(super) fn is_joining(&self) -> bool {
        self.large.as_ref().is_some_and(|large| large.is_joining())
    }

    /// Whether there may be something to join: what has arrived is enough for a part, or for a message that is too long.
    #[inline]
    pub(super) fn may_join(&self, max: Option<usize>) -> bool {
        let is_enough = |max: usize| self.kcp.receive_held() as usize >= PART.min(max) || self.is_joining();
        !self.is_next_whole && max.is_some_and(is_enough)
    }

    /// Puts long messages together, unless it is a stream.
    #[inline]
    pub(super) fn join(&mut self, max: Option<usize>, left: u64) -> Result<Joined, CloseReason> {
        let Some(max) = max.filter(|_| self.may_join(max)) else { return Ok(Joined::default()) };
        let joined = large::join(&mut self.large, &mut self.kcp, max, left)?;
        self.is_next_whole = joined.is_next_whole;
        Ok(joined)
    }

    /// Takes the next message if it was joined. What comes after it may need joining.
    pub(super) fn take_ready(&mut self) -> Option<Bytes> {
        self.is_next_whole = false;
        self.large.as_mut()?.take_ready()
    }

    /// Notes whether received data found room. `before`: the next expected number and the count of refused segments
    /// before this input.
    #[cold]
    pub(super) fn note_room(&mut self, now: Time, is_short: bool, before: (Sn, u32)) {
        let (next, refused) = self.kcp.received_up_to();
        if !is_short || next != before.0 {
            self.starved = Time::NEVER;
        } else if refused > before.1 {
            self.starved = self.starved.min(now);
        }
    }
}

/// Most segments that may wait.
pub(super) fn queue(config: &Config) -> u32 {
    config.snd_queue.min(config.snd_queue_bytes / u32::from(config.mss()))
}
