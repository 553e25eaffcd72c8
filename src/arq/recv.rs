//! The receiving half: segments in, in any order, messages out.

use super::send::{SHARE_MIN, segment_len};
use crate::ring::{ByteRing, Ring};
use crate::seq::Sn;
use bytes::{Bytes, BytesMut};

/// Segments from the oldest unread one to the newest that arrived, in one ring: up to `nxt` they
/// are there without a gap (KCP's `rcv_queue`), from there on some are missing (`rcv_buf`).
#[derive(Debug)]
pub(super) struct Receiver {
    ring: Ring<Incoming>,
    /// The number expected next.
    pub(super) nxt: Sn,
    /// Segments held from `nxt` on.
    pub(super) parked: u32,
    /// The payloads, in the order in which they arrived: each after a [`Record`].
    log: ByteRing,
    /// Segments that have been read and are still in the log, because one that arrived before them
    /// has not.
    read_early: u32,
    /// `frg` of the segment before `nxt`.
    last_frg: u8,
    /// Segments were left parked because the queue was full.
    was_full: bool,
    /// Payloads that are part of a datagram's buffer.
    shared: Option<Box<Ring<Bytes>>>,
}

/// A segment that arrived; 8 bytes.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    /// Where its payload starts, unless it is shared.
    position: u32,
    len: u16,
    frg: u8,
    shared: bool,
}

/// Says whose bytes follow in the log, so that they can be let go in the order in which they came
/// although they are read in another.
struct Record {
    sn: Sn,
    len: u32,
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stored {
    New,
    Duplicate,
    /// It lies beyond the window, or no room is left.
    Beyond,
    /// Its `frg` does not go on from its neighbour's: no honest peer sends that.
    BrokenChain,
}

impl Receiver {
    pub(super) fn new(start: Sn) -> Self {
        let (ring, log) = (Ring::new(start), ByteRing::default());
        Self { ring, nxt: start, parked: 0, log, read_early: 0, last_frg: 0, was_full: false, shared: None }
    }

    /// Segments that can be read, whole messages or not.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        self.nxt.0.wrapping_sub(self.ring.start().0)
    }

    /// Segments that there is room for. Source: ikcp.c `ikcp_wnd_unused`.
    #[inline]
    pub(super) fn window(&self, rcv_wnd: u16) -> u16 {
        rcv_wnd.saturating_sub(u16::try_from(self.queued()).unwrap_or(u16::MAX))
    }

    /// Stores a segment, and queues what is complete up to it. Source: ikcp.c `ikcp_input`,
    /// `ikcp_parse_data`.
    ///
    /// `backing` is the buffer that `data` is part of, where it can be kept: it is, instead of a
    /// copy, when `data` makes up much of it.
    #[inline]
    pub(super) fn store(
        &mut self,
        sn: Sn,
        frg: u8,
        data: &[u8],
        backing: Option<&Bytes>,
        rcv_wnd: u16,
    ) -> Stored {
        // Most segments are the next one, while nothing waits for it.
        if sn == self.nxt
            && self.parked == 0
            && self.queued() < rcv_wnd.into()
            && (self.last_frg == 0 || frg == self.last_frg - 1)
            && backing.is_none()
            && let Some(segment) = self.log(sn, frg, data)
        {
            self.ring.push_back(segment);
            self.nxt = sn.add(1);
            self.last_frg = frg;
            return Stored::New;
        }
        self.store_any(sn, frg, data, backing, rcv_wnd)
    }

    #[inline(never)]
    fn store_any(&mut self, sn: Sn, frg: u8, data: &[u8], backing: Option<&Bytes>, rcv_wnd: u16) -> Stored {
        if !sn.is_before(self.nxt.add(rcv_wnd.into())) {
            return Stored::Beyond;
        }
        if sn.is_before(self.nxt) || self.ring.get(sn).is_some() {
            return Stored::Duplicate;
        }
        if !self.continues_chain(sn, frg) {
            return Stored::BrokenChain;
        }
        let segment = match backing {
            Some(backing) if data.len() >= SHARE_MIN.max(backing.len() / 4) => {
                self.share(sn, backing.slice_ref(data));
                Some(Incoming { position: 0, len: segment_len(data), frg, shared: true })
            }
            _ => self.log(sn, frg, data),
        };
        let Some(segment) = segment else {
            return Stored::Beyond;
        };
        self.ring.insert(sn, segment);
        self.parked += 1;
        self.deliver(rcv_wnd);
        Stored::New
    }

    /// Copies the data of a segment to the log; `None`: there is no room.
    #[inline]
    fn log(&mut self, sn: Sn, frg: u8, data: &[u8]) -> Option<Incoming> {
        let len = segment_len(data);
        let position = self.log.push_both(Record { sn, len: len.into() }.to_bytes(), data)?;
        Some(Incoming { position, len, frg, shared: false })
    }

    /// Queues what has become complete, up to the window. Source: ikcp.c `ikcp_parse_data`,
    /// `ikcp_recv`.
    #[inline]
    pub(super) fn deliver(&mut self, rcv_wnd: u16) {
        while self.parked > 0
            && self.queued() < rcv_wnd.into()
            && let Some(segment) = self.ring.get(self.nxt)
        {
            self.last_frg = segment.frg;
            self.nxt = self.nxt.add(1);
            self.parked -= 1;
        }
        self.was_full = self.queued() >= rcv_wnd.into();
    }

    /// Length of the next message, bytes; `None`: not all of it is there. Source: ikcp.c
    /// `ikcp_peeksize`.
    pub(super) fn peek_size(&self) -> Option<usize> {
        let first = self.ring.get(self.ring.start()).filter(|_| self.queued() > 0)?;
        if self.queued() <= first.frg.into() {
            return None;
        }
        Some(self.message().map(|(_, segment)| usize::from(segment.len)).sum())
    }

    /// Copies the next message, which is all there, to `buf`, which is as long.
    pub(super) fn peek(&self, mut buf: &mut [u8]) {
        for (sn, segment) in self.message() {
            let Some((to, rest)) = buf.split_at_mut_checked(segment.len.into()) else { break };
            self.copy_payload(sn, segment, to);
            buf = rest;
        }
    }

    /// Moves the next message to `buf` in the most common case and returns its length: one segment,
    /// not shared, and the window is open. `None`: not so simple.
    #[inline]
    pub(super) fn read_simple(&mut self, buf: &mut [u8], rcv_wnd: u16) -> Option<usize> {
        let Some(&Incoming { position, len, frg: 0, shared: false }) = self.ring.get(self.ring.start())
        else {
            return None;
        };
        if self.queued().wrapping_sub(1) >= u32::from(rcv_wnd) - 1 || self.was_full {
            return None; // none is queued, or as many as the window holds
        }
        let to = buf.get_mut(..usize::from(len))?;
        self.ring.pop_front();
        if self.log.start().wrapping_add(Record::LEN) == position && self.read_early == 0 {
            self.log.pop_front(Record::LEN, to);
        } else {
            self.read_disordered(position, to);
        }
        Some(len.into())
    }

    /// Copies a payload from a log that is not in order.
    #[inline(never)]
    fn read_disordered(&mut self, position: u32, to: &mut [u8]) {
        self.log.copy_to(position, to);
        self.let_go(position, segment_len(to));
    }

    /// Moves the next message, which is all there, to `buf`, which is as long.
    pub(super) fn read(&mut self, mut buf: &mut [u8]) {
        let mut more = true;
        while more {
            let sn = self.ring.start();
            let Some(segment) = self.ring.pop_front() else { break };
            let Some((to, rest)) = buf.split_at_mut_checked(segment.len.into()) else { break };
            self.copy_payload(sn, &segment, to);
            if !segment.shared {
                self.let_go(segment.position, segment.len);
            } else if let Some(shared) = &mut self.shared {
                shared.remove(sn);
            }
            buf = rest;
            more = segment.frg > 0;
        }
    }

    /// Takes the next message, which is all there and `len` bytes long; without a copy where it is
    /// one segment that is shared.
    pub(super) fn read_bytes(&mut self, len: usize) -> Bytes {
        let start = self.ring.start();
        if let Some(&Incoming { frg: 0, shared: true, .. }) = self.ring.get(start)
            && let Some(bytes) = self.shared.as_mut().and_then(|shared| shared.remove(start))
        {
            self.ring.pop_front();
            return bytes;
        }
        let mut message = BytesMut::zeroed(len);
        self.read(&mut message);
        message.freeze()
    }

    /// Gives the memory back when nothing is held.
    pub(super) fn shrink(&mut self) {
        self.ring.shrink();
        self.log.shrink();
        if self.ring.span() == 0 {
            self.shared = None;
        }
    }

    /// Within a message `frg` falls by one from segment to segment. Checked against the neighbours
    /// that are there, it holds for all that are. The one before `nxt` may have been read.
    #[inline]
    fn continues_chain(&self, sn: Sn, frg: u8) -> bool {
        let frg_of = |sn| self.ring.get(sn).map(|segment| segment.frg);
        let before = if sn == self.nxt { self.last_frg } else { frg_of(sn.sub(1)).unwrap_or(0) };
        (before == 0 || frg == before - 1)
            && (frg == 0 || frg_of(sn.add(1)).is_none_or(|after| after == frg - 1))
    }

    /// The segments of the next message, which is all there.
    fn message(&self) -> impl Iterator<Item = (Sn, &Incoming)> {
        let mut next = Some(self.ring.start());
        std::iter::from_fn(move || {
            let sn = next?;
            let segment = self.ring.get(sn)?;
            next = (segment.frg != 0).then(|| sn.add(1));
            Some((sn, segment))
        })
    }

    fn copy_payload(&self, sn: Sn, segment: &Incoming, to: &mut [u8]) {
        if !segment.shared {
            self.log.copy_to(segment.position, to);
        } else if let Some(bytes) = self.shared.as_ref().and_then(|shared| shared.get(sn)) {
            to.copy_from_slice(bytes);
        }
    }

    /// Frees a payload that has been read, and those after it in the log that were read before.
    #[inline(always)]
    fn let_go(&mut self, position: u32, len: u16) {
        if self.log.start().wrapping_add(Record::LEN) != position {
            self.read_early += 1;
            return;
        }
        self.log.release(Record::LEN + u32::from(len));
        while self.read_early > 0 {
            let record = self.oldest_record();
            if !record.sn.is_before(self.ring.start()) {
                break;
            }
            self.read_early -= 1;
            self.log.release(Record::LEN + record.len);
        }
    }

    #[inline]
    fn oldest_record(&self) -> Record {
        if let Some(bytes) = self.log.front() {
            return Record::from_bytes(*bytes);
        }
        let mut bytes = [0; Record::LEN as usize];
        self.log.copy_to(self.log.start(), &mut bytes);
        Record::from_bytes(bytes)
    }

    #[cold]
    fn share(&mut self, sn: Sn, data: Bytes) {
        let start = self.ring.start();
        let shared = self.shared.get_or_insert_with(|| Box::new(Ring::new(start)));
        while shared.span() > 0 && shared.start().is_before(start) {
            shared.pop_front();
        }
        if shared.span() == 0 {
            shared.restart(start);
        }
        shared.insert(sn, data);
    }
}

impl Record {
    const LEN: u32 = 8;

    #[inline]
    fn to_bytes(&self) -> [u8; 8] {
        (u64::from(self.sn.0) << 32 | u64::from(self.len)).to_ne_bytes()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    fn from_bytes(bytes: [u8; 8]) -> Self {
        let word = u64::from_ne_bytes(bytes);
        Self { sn: Sn((word >> 32) as u32), len: word as u32 }
    }
}
