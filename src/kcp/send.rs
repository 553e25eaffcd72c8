//! The sending half: takes messages and holds their segments until they are acknowledged.

use super::config::{Config, WND_RCV_MIN};
use super::error::SendError;
use super::transmit::{Flight, Outgoing};
use crate::ring::{BYTES_MAX, ByteRing, Reader, Ring};
use crate::seq::Sn;
use bytes::Bytes;

/// The segments from the oldest unacknowledged one to the last waiting one, in one ring. Those before `nxt` are in
/// flight (KCP's `snd_buf`), the others wait (`snd_queue`). So a waiting segment already has its number.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) ring: Ring<Outgoing>,
    /// The first number that has not been sent.
    pub(super) nxt: Sn,
    /// Segments sent and not acknowledged.
    pub(super) in_flight: u32,
    /// Payload bytes of waiting segments.
    waiting_bytes: u32,
    /// The peer's window as last heard, segments.
    pub(super) rmt_wnd: u16,
    /// The link counts as dead.
    pub(super) dead: bool,
    /// Whether empty messages are refused.
    pub(super) refuses_empty: bool,
    /// The payloads, in the order of their segments.
    bytes: ByteRing,
    /// Payloads that share the user's buffers.
    shared: Option<Box<Ring<Bytes>>>,
}

/// Reads the payloads of consecutive segments.
pub(super) struct Payloads<'a> {
    reader: Reader<'a>,
    shared: Option<&'a Ring<Bytes>>,
}

impl Sender {
    pub(super) fn new(start: Sn) -> Self {
        let (ring, bytes) = (Ring::new(start), ByteRing::default());
        Self {
            ring,
            nxt: start,
            in_flight: 0,
            waiting_bytes: 0,
            rmt_wnd: WND_RCV_MIN,
            dead: false,
            refuses_empty: false,
            bytes,
            shared: None,
        }
    }

    #[inline]
    pub(super) fn una(&self) -> Sn {
        self.ring.start()
    }

    /// Numbers from the oldest unacknowledged to the newest sent.
    pub(super) fn span(&self) -> u32 {
        self.nxt.0.wrapping_sub(self.una().0)
    }

    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "the ring ends at or after nxt")]
    pub(super) fn waiting(&self) -> u32 {
        self.ring.end().distance(self.nxt) as u32
    }

    /// Queues a message, cut into segments, and returns the bytes taken. `backing`: the user's buffer that holds the
    /// message, if it can be shared. Source: ikcp.c `ikcp_send`.
    #[inline]
    pub(super) fn send(
        &mut self,
        message: &[u8],
        backing: Option<&Bytes>,
        config: &Config,
    ) -> Result<usize, SendError> {
        if backing.is_none() && self.send_simple(message, config) {
            return Ok(message.len());
        }
        self.send_any(message, backing, config)
    }

    /// Queues a message in the most common case: one segment, with room everywhere. `false`: it is not that case.
    #[inline]
    fn send_simple(&mut self, data: &[u8], config: &Config) -> bool {
        if data.len() > config.mss().into()
            || config.stream
            || self.ring.is_full()
            || !self.has_room(1, data.len(), config)
        {
            return false;
        }
        let Some((position, room)) = self.bytes.extend(data.len()) else { return false };
        let len = segment_len(data);
        self.ring.push_back(Outgoing { position, len, ..Outgoing::default() });
        self.waiting_bytes += u32::from(len);
        room.copy_from_slice(data);
        true
    }

    /// A stream fills up the last waiting segment first. If the rest is too long for one message, only a part is taken.
    #[inline(never)]
    fn send_any(
        &mut self,
        data: &[u8],
        backing: Option<&Bytes>,
        config: &Config,
    ) -> Result<usize, SendError> {
        let is_one = !config.stream && data.len() <= config.mss().into();
        let mss = usize::from(if is_one { config.mss() } else { config.cut() });
        let top_up = if config.stream { self.room_in_last(mss).min(data.len()) } else { 0 };
        let mut segments = (data.len() - top_up).div_ceil(mss);
        if data.is_empty() && !config.stream {
            segments = 1;
        }
        if segments > FRAGMENTS_MAX {
            if top_up == 0 {
                return Err(SendError::TooLong { len: data.len(), max: FRAGMENTS_MAX * mss });
            }
            segments = 0;
        }
        let taken = if segments == 0 { top_up } else { data.len() };
        if !self.has_room(segments, taken, config) || self.bytes.len() as usize + taken > BYTES_MAX {
            let max = (config.snd_queue as usize * mss).min(config.snd_queue_bytes as usize);
            return Err(if taken > max { SendError::TooLong { len: taken, max } } else { self.queue_full() });
        }
        let (head, mut rest) = data.split_at_checked(top_up).unwrap_or_default();
        self.fill_last(head);
        for left in (0..segments).rev() {
            let (part, after) = rest.split_at_checked(mss).unwrap_or((rest, &[]));
            let frg = if config.stream { 0 } else { u8::try_from(left).unwrap_or(0) };
            self.push(part, backing, frg);
            rest = after;
        }
        Ok(taken)
    }

    /// Sends up to `most` waiting segments, until `each` refuses one. `each` gets the segment and a reader of its
    /// payload.
    #[inline]
    pub(super) fn admit(
        &mut self,
        most: u32,
        flight: &Flight,
        mut each: impl FnMut(Sn, &Outgoing, &mut Payloads<'_>) -> bool,
    ) {
        let mut sn = self.nxt;
        let Some(first) = self.ring.get(sn) else { return };
        let mut payloads =
            Payloads { reader: self.bytes.reader(first.position), shared: self.shared.as_deref() };
        let mut bytes = 0;
        'segments: for slots in self.ring.slots_mut(sn, most) {
            for slot in slots {
                let Some(segment) = slot else { break 'segments };
                if !each(sn, segment, &mut payloads) {
                    break 'segments;
                }
                segment.flight = *flight;
                bytes += u32::from(segment.len);
                sn = sn.add(1);
            }
        }
        let taken = sn.0.wrapping_sub(self.nxt.0);
        self.in_flight += taken;
        self.waiting_bytes -= bytes;
        self.nxt = sn;
    }

    /// Copies the payload of a segment to `to`, which has the same length.
    pub(super) fn copy_payload(&self, sn: Sn, segment: &Outgoing, to: &mut [u8]) {
        let reader = self.bytes.reader(segment.position);
        Payloads { reader, shared: self.shared.as_deref() }.copy_next(sn, segment, to);
    }

    /// Frees everything before `una`, which is at most `nxt`, and returns the bytes freed. `each` sees the segments.
    /// Source: ikcp.c `ikcp_parse_una`.
    #[inline(never)]
    pub(super) fn acknowledge_before(&mut self, una: Sn, mut each: impl FnMut(&Outgoing)) -> u32 {
        let Self { ring, in_flight, shared, .. } = self;
        let (mut bytes, mut segments) = (0, 0);
        ring.pop_until(una, |sn, segment| {
            segments += 1;
            bytes += u32::from(segment.len);
            each(segment);
            if segment.shared
                && let Some(shared) = shared
            {
                shared.remove(sn);
            }
        });
        *in_flight -= segments;
        self.advance();
        bytes
    }

    /// Frees the segment `sn`, which is before `nxt`, if it is in flight. Returns its bytes. Source: ikcp.c
    /// `ikcp_parse_ack`.
    #[inline(never)]
    pub(super) fn acknowledge(&mut self, sn: Sn) -> u32 {
        self.remove(sn).map_or(0, |segment| segment.len.into())
    }

    /// The same, but returns the segment.
    #[inline]
    pub(super) fn remove(&mut self, sn: Sn) -> Option<Outgoing> {
        let segment = self.ring.remove(sn)?;
        self.in_flight -= 1;
        if segment.shared
            && let Some(shared) = &mut self.shared
        {
            shared.remove(sn);
        }
        if sn == self.una() {
            self.advance();
        }
        Some(segment)
    }

    /// Bytes of memory that it owns, used or not, without shared user buffers.
    pub(super) fn memory(&self) -> usize {
        self.ring.memory() + self.bytes.memory()
    }

    /// The part of those bytes that is in use.
    pub(super) fn held(&self) -> usize {
        self.ring.span() as usize * size_of::<Option<Outgoing>>() + self.bytes.len() as usize
    }

    /// Bytes that are not needed any more. It wraps.
    pub(super) const fn acked(&self) -> u32 {
        self.bytes.start()
    }

    /// Frees the memory if nothing is held.
    pub(super) fn shrink(&mut self) {
        self.ring.shrink();
        self.bytes.shrink();
        if self.ring.span() == 0 {
            self.shared = None;
        }
    }

    /// Moves `una` to the oldest segment held. Source: ikcp.c `ikcp_shrink_buf`.
    fn advance(&mut self) {
        while self.una() != self.nxt && self.ring.get(self.una()).is_none() {
            self.ring.pop_front();
        }
        let una = self.una();
        let position = self.ring.get(una).map_or(self.bytes.end(), |segment| segment.position);
        self.bytes.release_to(position);
        if let Some(shared) = &mut self.shared {
            while shared.span() > 0 && shared.start().is_before(una) {
                shared.pop_front();
            }
        }
    }

    /// Bytes that a stream may add to the last waiting segment.
    fn room_in_last(&self, mss: usize) -> usize {
        match self.ring.get(self.ring.end().sub(1)) {
            Some(last) if self.waiting() > 0 && !last.shared => mss.saturating_sub(last.len.into()),
            _ => 0,
        }
    }

    #[inline]
    fn has_room(&self, segments: usize, bytes: usize, config: &Config) -> bool {
        self.waiting() as usize + segments <= config.snd_queue as usize
            && self.waiting_bytes as usize + bytes <= config.snd_queue_bytes as usize
    }

    fn queue_full(&self) -> SendError {
        SendError::Full { segments: self.waiting() as usize, bytes: self.waiting_bytes as usize }
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

    /// Queues a segment with `data`. The caller has checked that there is room.
    fn push(&mut self, data: &[u8], backing: Option<&Bytes>, frg: u8) {
        let backing = backing.filter(|_| data.len() >= SHARE_MIN);
        if let Some(backing) = backing {
            self.share(backing.slice_ref(data));
        }
        let shared = backing.is_some();
        let (position, len) = (self.bytes.end(), segment_len(data));
        if !shared {
            self.bytes.push(data);
        }
        self.ring.push_back(Outgoing { position, len, frg, shared, ..Outgoing::default() });
        self.waiting_bytes += u32::from(len);
    }

    #[cold]
    fn share(&mut self, data: Bytes) {
        let sn = self.ring.end();
        let shared = self.shared.get_or_insert_with(|| Box::new(Ring::new(sn)));
        if shared.span() == 0 {
            shared.restart(sn);
        }
        shared.insert(sn, data);
    }
}

impl Payloads<'_> {
    /// Copies the payload of the next segment to `to`, which has the same length.
    #[inline]
    pub(super) fn copy_next(&mut self, sn: Sn, segment: &Outgoing, to: &mut [u8]) {
        if segment.shared {
            return self.copy_shared(sn, to);
        }
        self.reader.copy_next(to);
    }

    #[cold]
    fn copy_shared(&self, sn: Sn, to: &mut [u8]) {
        if let Some(bytes) = self.shared.and_then(|shared| shared.get(sn)) {
            to.copy_from_slice(bytes);
        }
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a datagram has less than 65,536 bytes")]
pub(super) fn segment_len(data: &[u8]) -> u16 {
    data.len() as u16
}

/// Most fragments of a message. Source: ikcp.c `ikcp_send`, which refuses `IKCP_WND_RCV` or more.
const FRAGMENTS_MAX: usize = 127;
/// Shortest payload that is shared instead of copied, bytes.
pub(super) const SHARE_MIN: usize = 256;
