//! The receiving half: segments in, in any order, messages out.

use super::send::SHARE_MIN;
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
    /// `frg` of the segment before `nxt`.
    last_frg: u8,
    /// The payloads, in the order in which they arrived: each after a [`Record`].
    log: ByteRing,
    /// Segments that have been read and are still in the log, because one that arrived before them
    /// has not.
    read_early: u32,
    /// Payloads that are part of a datagram's buffer.
    shared: Option<Box<Ring<Bytes>>>,
}

/// A segment that arrived; 8 bytes.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Its `frg` does not go on from its neighbour's: no honest peer sends that.
    BrokenChain,
    /// No position is left for its bytes: a window of 2 GiB is full.
    NoRoom,
}

impl Receiver {
    pub(super) fn new(start: Sn) -> Self {
        let (ring, log) = (Ring::new(start), ByteRing::default());
        Self { ring, nxt: start, parked: 0, last_frg: 0, log, read_early: 0, shared: None }
    }

    /// Segments that can be read, whole messages or not.
    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "nxt is never before the start")]
    pub(super) fn queued(&self) -> u32 {
        self.nxt.distance(self.ring.start()) as u32
    }

    /// Segments that there is room for. Source: ikcp.c `ikcp_wnd_unused`.
    #[inline]
    pub(super) fn window(&self, rcv_wnd: u16) -> u16 {
        rcv_wnd.saturating_sub(u16::try_from(self.queued()).unwrap_or(u16::MAX))
    }

    /// Stores a segment of the receive window, unless it has arrived before, and queues what is
    /// complete up to it. Source: ikcp.c `ikcp_parse_data`.
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
        let is_next = sn == self.nxt && self.parked == 0;
        if !is_next {
            if sn.is_before(self.nxt) || self.ring.get(sn).is_some() {
                return Stored::Duplicate;
            }
            if !self.continues_chain(sn, frg) {
                return Stored::BrokenChain;
            }
        } else if self.last_frg > 0 && frg != self.last_frg - 1 {
            return Stored::BrokenChain;
        }
        let len = u16::try_from(data.len()).unwrap_or(u16::MAX); // a datagram is no longer
        let (position, shared) = match backing {
            Some(backing) if data.len() >= SHARE_MIN.max(backing.len() / 4) => {
                self.share(sn, backing.slice_ref(data));
                (0, true)
            }
            _ => match self.log.push_both(Record { sn, len: len.into() }.to_bytes(), data) {
                Some(position) => (position, false),
                None => return Stored::NoRoom,
            },
        };
        let segment = Incoming { position, len, frg, shared };
        if is_next && self.queued() < rcv_wnd.into() {
            self.ring.push_back(segment);
            self.nxt = sn.add(1);
            self.last_frg = frg;
        } else {
            self.ring.insert(sn, segment);
            self.parked += 1;
            self.deliver(rcv_wnd);
        }
        Stored::New
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
    }

    /// Length of the next message, bytes; `None`: not all of it is there. Source: ikcp.c
    /// `ikcp_peeksize`.
    #[inline]
    pub(super) fn peek_size(&self) -> Option<usize> {
        let first = self.ring.get(self.ring.start()).filter(|_| self.queued() > 0)?;
        if first.frg == 0 { Some(first.len.into()) } else { self.sum_fragments(first.frg) }
    }

    #[inline(never)]
    fn sum_fragments(&self, frg: u8) -> Option<usize> {
        (self.queued() > frg.into())
            .then(|| self.message().map(|(_, segment)| usize::from(segment.len)).sum())
    }

    /// Copies the next message, which is all there, to `buf`, which is as long.
    pub(super) fn peek(&self, mut buf: &mut [u8]) {
        for (sn, segment) in self.message() {
            buf = self.copy_payload(sn, segment, buf);
        }
    }

    /// Moves the next message to `buf` in the most common case, and returns its length: one segment,
    /// the oldest in the log, and nothing else to do after it. `None`: not so simple.
    #[inline]
    pub(super) fn read_simple(&mut self, buf: &mut [u8], rcv_wnd: u16) -> Option<usize> {
        let &Incoming { position, len, frg: 0, shared: false } = self.ring.get(self.ring.start())? else {
            return None;
        };
        let queued = self.queued();
        if queued == 0
            || queued >= rcv_wnd.into()
            || self.parked + self.read_early > 0
            || self.log.start().wrapping_add(Record::LEN) != position
        {
            return None;
        }
        let to = buf.get_mut(..usize::from(len))?;
        self.ring.pop_front();
        self.log.pop_front(Record::LEN, to);
        Some(len.into())
    }

    /// Moves the next message, which is all there, to `buf`, which is as long.
    pub(super) fn read(&mut self, mut buf: &mut [u8]) {
        loop {
            let sn = self.ring.start();
            let Some(segment) = self.ring.pop_front() else { break };
            buf = self.copy_payload(sn, &segment, buf);
            self.let_go(sn, &segment);
            if segment.frg == 0 {
                break;
            }
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
    /// that are there, it holds for all that are.
    fn continues_chain(&self, sn: Sn, frg: u8) -> bool {
        let before = self.ring.get(sn.sub(1)).map_or(0, |segment| segment.frg);
        if before > 0 && frg != before - 1 {
            return false;
        }
        frg == 0 || self.ring.get(sn.add(1)).is_none_or(|after| after.frg == frg - 1)
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

    /// Copies the payload of a segment to the front of `buf` and returns the rest of it.
    fn copy_payload<'a>(&self, sn: Sn, segment: &Incoming, buf: &'a mut [u8]) -> &'a mut [u8] {
        let Some((to, rest)) = buf.split_at_mut_checked(segment.len.into()) else {
            return &mut [];
        };
        if !segment.shared {
            self.log.copy_to(segment.position, to);
        } else if let Some(bytes) = self.shared.as_ref().and_then(|shared| shared.get(sn)) {
            to.copy_from_slice(bytes);
        }
        rest
    }

    /// Frees the payload of a segment that has been read, and those after it in the log that were
    /// read before.
    fn let_go(&mut self, sn: Sn, segment: &Incoming) {
        if segment.shared {
            if let Some(shared) = &mut self.shared {
                shared.remove(sn);
            }
            return;
        }
        if self.log.start().wrapping_add(Record::LEN) != segment.position {
            self.read_early += 1;
            return;
        }
        self.log.release_to(segment.position.wrapping_add(segment.len.into()));
        while self.read_early > 0 {
            let record = self.oldest_record();
            if !record.sn.is_before(self.ring.start()) {
                break;
            }
            self.read_early -= 1;
            self.log.release_to(self.log.start().wrapping_add(Record::LEN + record.len));
        }
    }

    fn oldest_record(&self) -> Record {
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
            **shared = Ring::new(start);
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

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    #[inline]
    fn from_bytes(bytes: [u8; 8]) -> Self {
        let word = u64::from_ne_bytes(bytes);
        Self { sn: Sn((word >> 32) as u32), len: word as u32 }
    }
}
