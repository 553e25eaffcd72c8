//! The sending half: messages in, segments out, until they are acknowledged.

use super::config::Config;
use super::error::SendError;
use super::loss::{Passes, back_off};
use crate::ring::{ByteRing, Ring};
use crate::seq::Sn;
use crate::time::Millis;
use bytes::Bytes;

/// Segments from the oldest unacknowledged one to the last that waits, in one ring: up to `nxt`
/// they are in flight (KCP's `snd_buf`), from there on they wait (`snd_queue`). A waiting segment
/// thereby has its number already.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) ring: Ring<Outgoing>,
    /// The first number not sent yet.
    pub(super) nxt: Sn,
    /// Segments sent and not acknowledged.
    pub(super) in_flight: u32,
    /// Payload bytes that wait.
    waiting_bytes: u32,
    /// The payloads, in the order of their segments.
    bytes: ByteRing,
    /// Payloads that are part of the user's buffers.
    shared: Option<Box<Ring<Bytes>>>,
}

/// A segment on its way out; 24 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outgoing {
    /// Where its payload starts, or would, if it is shared.
    position: u32,
    pub(super) len: u16,
    pub(super) frg: u8,
    shared: bool,
    /// When it was sent last.
    pub(super) ts: Millis,
    /// When it counts as lost.
    pub(super) resend_at: Millis,
    /// Its own timeout, ms, which grows with every one.
    rto: u32,
    /// How often it has been sent.
    pub(super) xmit: u16,
    /// Datagrams that acknowledged later segments.
    pub(super) fastack: u16,
}

/// A message as the user hands it over.
#[derive(Clone, Copy)]
pub(super) enum Message<'a> {
    Slice(&'a [u8]),
    Shared(&'a Bytes),
}

/// What an acknowledgement freed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Freed {
    pub(super) bytes: u32,
}

impl Sender {
    pub(super) fn new(start: Sn) -> Self {
        let (ring, bytes) = (Ring::new(start), ByteRing::default());
        Self { ring, nxt: start, in_flight: 0, waiting_bytes: 0, bytes, shared: None }
    }

    /// The oldest number not acknowledged.
    pub(super) fn una(&self) -> Sn {
        self.ring.start()
    }

    /// Segments that wait.
    #[expect(clippy::cast_sign_loss, reason = "the ring ends at or after nxt")]
    pub(super) fn waiting(&self) -> u32 {
        self.ring.end().distance(self.nxt) as u32
    }

    /// Cuts a message into segments and queues them; returns the bytes taken. Source: ikcp.c
    /// `ikcp_send`.
    ///
    /// A stream fills up the last waiting segment first; where the rest would be too long for one
    /// message, only that much is taken.
    pub(super) fn send(&mut self, message: Message<'_>, config: &Config) -> Result<usize, SendError> {
        let data = message.as_slice();
        let mss = usize::from(config.mss());
        let top_up = if config.stream { self.room_in_last(mss).min(data.len()) } else { 0 };
        let rest = data.len() - top_up;
        let mut segments = rest.div_ceil(mss);
        if segments > FRAGMENTS_MAX {
            if top_up == 0 {
                return Err(SendError::TooLong { len: data.len(), max: FRAGMENTS_MAX * mss });
            }
            segments = 0;
        } else if segments == 0 && !config.stream {
            segments = 1; // an empty message
        }
        let taken = if segments == 0 { top_up } else { data.len() };
        self.check_room(segments, taken, config)?;
        let (head, tail) = data.split_at_checked(top_up).unwrap_or_default();
        self.fill_last(head);
        for index in 0..segments {
            let left = segments - index - 1;
            let frg = if config.stream { 0 } else { u8::try_from(left).unwrap_or(0) };
            let start = (index * mss).min(tail.len());
            let end = (start + mss).min(tail.len());
            match message {
                Message::Shared(bytes) if end - start >= SHARE_MIN => {
                    self.push_shared(bytes.slice(top_up + start..top_up + end), frg);
                }
                _ => self.push_copy(tail.get(start..end).unwrap_or_default(), frg),
            }
        }
        Ok(taken)
    }

    /// Takes the next waiting segment into flight.
    #[inline]
    pub(super) fn admit(&mut self, now: Millis, rto: u32, grace: u32) -> Option<(Sn, Outgoing)> {
        let sn = self.nxt;
        let segment = self.ring.get_mut(sn)?;
        segment.ts = now;
        segment.rto = rto;
        segment.resend_at = now.add(rto + grace);
        segment.xmit = 1;
        let segment = *segment;
        self.nxt = sn.add(1);
        self.in_flight += 1;
        self.waiting_bytes -= u32::from(segment.len);
        Some((sn, segment))
    }

    /// The payload of a segment, in two parts.
    #[inline]
    pub(super) fn payload(&self, sn: Sn, segment: &Outgoing) -> (&[u8], &[u8]) {
        if segment.shared {
            let bytes = self.shared.as_ref().and_then(|shared| shared.get(sn));
            return (bytes.map_or(&[], |bytes| &bytes[..]), &[]);
        }
        self.bytes.slices(segment.position, segment.len.into())
    }

    /// Frees everything before `una`, which is at most `nxt`. Source: ikcp.c `ikcp_parse_una`.
    #[inline]
    pub(super) fn acknowledge_before(&mut self, una: Sn) -> Freed {
        let mut freed = Freed::default();
        if !self.una().is_before(una) {
            return freed;
        }
        let mut sn = self.una();
        while let Some(held) = self.ring.next_held(sn, una) {
            freed.bytes += self.remove(held);
            sn = held.add(1);
        }
        self.release();
        freed
    }

    /// Frees the segment `sn`, if it is in flight. Source: ikcp.c `ikcp_parse_ack`.
    #[inline]
    pub(super) fn acknowledge(&mut self, sn: Sn) -> Freed {
        if sn.is_before(self.una()) || !sn.is_before(self.nxt) {
            return Freed::default();
        }
        let bytes = self.remove(sn);
        if sn == self.una() {
            self.release();
        }
        Freed { bytes }
    }

    /// Counts the datagrams that passed segments over, and forgets them.
    #[cold]
    pub(super) fn count_passes(&mut self, passes: &mut Passes) {
        let una = self.una();
        let passed = passes.summary(una);
        let mut sn = una;
        while let Some(held) = self.ring.next_held(sn, passed.none_beyond) {
            if let Some(segment) = self.ring.get_mut(held) {
                segment.fastack = segment.fastack.saturating_add(passed.count(held, segment.ts));
            }
            sn = held.add(1);
        }
        passes.clear();
    }

    /// Gives the memory back when nothing is held.
    pub(super) fn shrink(&mut self) {
        self.ring.shrink();
        self.bytes.shrink();
        if self.ring.is_empty() {
            self.shared = None;
        }
    }

    fn remove(&mut self, sn: Sn) -> u32 {
        let Some(segment) = self.ring.remove(sn) else {
            return 0;
        };
        self.in_flight -= 1;
        if segment.shared
            && let Some(shared) = &mut self.shared
        {
            shared.remove(sn);
        }
        segment.len.into()
    }

    /// Moves `una` to the oldest segment held. Source: ikcp.c `ikcp_shrink_buf`.
    fn release(&mut self) {
        let una = self.ring.next_held(self.una(), self.nxt).unwrap_or(self.nxt);
        self.ring.advance(una);
        let position = self.ring.get(una).map_or(self.bytes.end(), |segment| segment.position);
        self.bytes.release_to(position);
        if let Some(shared) = &mut self.shared {
            let una = if shared.end().is_before(una) { shared.end() } else { una };
            shared.advance(una);
        }
    }

    /// Bytes that a stream may add to the last waiting segment.
    fn room_in_last(&self, mss: usize) -> usize {
        match self.ring.get(self.ring.end().sub(1)) {
            Some(last) if self.waiting() > 0 && !last.shared => mss.saturating_sub(last.len.into()),
            _ => 0,
        }
    }

    fn check_room(&self, segments: usize, bytes: usize, config: &Config) -> Result<(), SendError> {
        let (waiting, waiting_bytes) = (self.waiting() as usize, self.waiting_bytes as usize);
        if waiting + segments > config.snd_queue as usize
            || waiting_bytes + bytes > config.snd_queue_bytes as usize
            || self.bytes.len() as usize + bytes > BYTES_MAX
        {
            return Err(SendError::QueueFull { segments: waiting, bytes: waiting_bytes });
        }
        Ok(())
    }

    fn fill_last(&mut self, data: &[u8]) {
        let Ok(more) = u16::try_from(data.len()) else {
            return;
        };
        if let Some(last) = self.ring.get_mut(self.ring.end().sub(1))
            && more > 0
        {
            self.bytes.push(data);
            last.len += more;
            last.frg = 0;
            self.waiting_bytes += u32::from(more);
        }
    }

    fn push_copy(&mut self, data: &[u8], frg: u8) {
        let position = self.bytes.push(data);
        self.push(Outgoing { position, frg, ..Outgoing::default() }, data.len());
    }

    fn push_shared(&mut self, data: Bytes, frg: u8) {
        let position = self.bytes.end();
        let (sn, len, una) = (self.ring.end(), data.len(), self.una());
        let shared = self.shared.get_or_insert_with(|| Box::new(Ring::new(una)));
        shared.insert(sn, data);
        self.push(Outgoing { position, frg, shared: true, ..Outgoing::default() }, len);
    }

    fn push(&mut self, segment: Outgoing, len: usize) {
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        self.ring.push_back(Outgoing { len, ..segment });
        self.waiting_bytes += u32::from(len);
    }
}

impl Outgoing {
    /// Commits a resend because the time was out. Source: ikcp.c `ikcp_flush`.
    pub(super) fn resend_after_timeout(&mut self, now: Millis, rto: u32, nodelay: u8) {
        self.xmit = self.xmit.saturating_add(1);
        self.rto = back_off(self.rto, rto, nodelay);
        self.ts = now;
        self.resend_at = now.add(self.rto);
    }

    /// Commits a resend because later segments were acknowledged. Source: ikcp.c `ikcp_flush`.
    pub(super) fn resend_fast(&mut self, now: Millis) {
        self.xmit = self.xmit.saturating_add(1);
        self.fastack = 0;
        self.ts = now;
        self.resend_at = now.add(self.rto);
    }
}

impl Message<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Slice(data) => data,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// Most fragments of a message. Source: ikcp.c `ikcp_send`, which refuses `IKCP_WND_RCV` or more.
const FRAGMENTS_MAX: usize = 127;
/// Least length worth sharing instead of copying, bytes.
pub(super) const SHARE_MIN: usize = 256;
/// Most bytes held: positions are compared over half their range.
const BYTES_MAX: usize = i32::MAX as usize;
