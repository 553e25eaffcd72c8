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
    /// The payloads, in the order in which they arrived: each after a [`Record`].
    log: ByteRing,
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
}

impl Receiver {
    pub(super) fn new(start: Sn) -> Self {
        Self { ring: Ring::new(start), nxt: start, parked: 0, log: ByteRing::default(), shared: None }
    }

    /// Segments that can be read, whole messages or not.
    #[expect(clippy::cast_sign_loss, reason = "nxt is never before the start")]
    pub(super) fn queued(&self) -> u32 {
        self.nxt.distance(self.ring.start()) as u32
    }

    /// Segments that there is room for. Source: ikcp.c `ikcp_wnd_unused`.
    pub(super) fn window(&self, rcv_wnd: u16) -> u16 {
        rcv_wnd.saturating_sub(u16::try_from(self.queued()).unwrap_or(u16::MAX))
    }

    /// Whether `sn` has arrived already; it must not lie beyond the window.
    pub(super) fn has(&self, sn: Sn) -> bool {
        sn.is_before(self.nxt) || self.ring.get(sn).is_some()
    }

    /// Stores a segment of the receive window that has not arrived before, and queues what is
    /// complete up to it. Source: ikcp.c `ikcp_parse_data`.
    ///
    /// `backing` is the buffer that `data` is part of, where it can be kept: it is, instead of a
    /// copy, when `data` makes up much of it.
    pub(super) fn store(
        &mut self,
        sn: Sn,
        frg: u8,
        data: &[u8],
        backing: Option<&Bytes>,
        rcv_wnd: u16,
    ) -> Stored {
        if self.has(sn) {
            return Stored::Duplicate;
        }
        if !self.continues_chain(sn, frg) {
            return Stored::BrokenChain;
        }
        let len = u16::try_from(data.len()).unwrap_or(u16::MAX); // a datagram is no longer
        let segment = match backing {
            Some(backing) if len as usize >= SHARE_MIN.max(backing.len() / 4) => {
                let start = self.ring.start();
                let shared = self.shared.get_or_insert_with(|| Box::new(Ring::new(start)));
                shared.insert(sn, backing.slice_ref(data));
                Incoming { position: 0, len, frg, shared: true }
            }
            _ => {
                self.log.push(&Record { sn, len: len.into() }.to_bytes());
                Incoming { position: self.log.push(data), len, frg, shared: false }
            }
        };
        self.ring.insert(sn, segment);
        self.parked += 1;
        self.deliver(rcv_wnd);
        Stored::New
    }

    /// Queues what has become complete, up to the window. Source: ikcp.c `ikcp_parse_data`,
    /// `ikcp_recv`.
    pub(super) fn deliver(&mut self, rcv_wnd: u16) {
        while self.parked > 0 && self.queued() < rcv_wnd.into() && self.ring.get(self.nxt).is_some() {
            self.nxt = self.nxt.add(1);
            self.parked -= 1;
        }
    }

    /// Length of the next message, bytes; `None`: not all of it is there. Source: ikcp.c
    /// `ikcp_peeksize`.
    pub(super) fn peek_size(&self) -> Option<usize> {
        let first = self.ring.get(self.ring.start()).filter(|_| self.queued() > 0)?;
        if first.frg == 0 {
            return Some(first.len.into());
        }
        if self.queued() <= first.frg.into() {
            return None;
        }
        Some(self.message().map(|(_, segment)| usize::from(segment.len)).sum())
    }

    /// Copies the next message, which is all there, to `buf`.
    pub(super) fn copy_to(&self, buf: &mut [u8]) {
        let mut at = 0;
        for (sn, segment) in self.message() {
            let (first, second) = self.payload(sn, segment);
            for part in [first, second] {
                if let Some(to) = buf.get_mut(at..at + part.len()) {
                    to.copy_from_slice(part);
                    at += part.len();
                }
            }
        }
    }

    /// The next message, which is all there and `len` bytes long; without a copy where it is one
    /// segment that is shared.
    pub(super) fn bytes(&self, len: usize) -> Bytes {
        let start = self.ring.start();
        if let Some(Incoming { frg: 0, shared: true, .. }) = self.ring.get(start)
            && let Some(bytes) = self.shared.as_ref().and_then(|shared| shared.get(start))
        {
            return bytes.clone();
        }
        let mut message = BytesMut::with_capacity(len);
        for (sn, segment) in self.message() {
            let (first, second) = self.payload(sn, segment);
            message.extend_from_slice(first);
            message.extend_from_slice(second);
        }
        message.freeze()
    }

    /// Lets go of the next message, which is all there.
    pub(super) fn consume(&mut self) {
        while let Some(segment) = self.ring.remove(self.ring.start()) {
            let next = self.ring.start().add(1);
            self.ring.advance(next);
            if segment.frg == 0 {
                break;
            }
        }
        let start = self.ring.start();
        if let Some(shared) = &mut self.shared {
            let to = if shared.end().is_before(start) { shared.end() } else { start };
            let mut sn = shared.start();
            while let Some(held) = shared.next_held(sn, to) {
                shared.remove(held);
                sn = held.add(1);
            }
            shared.advance(to);
        }
        while let Some(record) = self.oldest_record()
            && record.sn.is_before(start)
        {
            self.log.release_to(self.log.start().wrapping_add(Record::LEN + record.len));
        }
    }

    /// Gives the memory back when nothing is held.
    pub(super) fn shrink(&mut self) {
        self.ring.shrink();
        self.log.shrink();
        if self.ring.is_empty() {
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

    fn payload(&self, sn: Sn, segment: &Incoming) -> (&[u8], &[u8]) {
        if segment.shared {
            let bytes = self.shared.as_ref().and_then(|shared| shared.get(sn));
            return (bytes.map_or(&[], |bytes| &bytes[..]), &[]);
        }
        self.log.slices(segment.position, segment.len.into())
    }

    fn oldest_record(&self) -> Option<Record> {
        let (first, second) = self.log.slices(self.log.start(), Record::LEN as usize);
        let mut bytes = [0; Record::LEN as usize];
        for (to, from) in bytes.iter_mut().zip(first.iter().chain(second)) {
            *to = *from;
        }
        (!first.is_empty()).then(|| Record::from_bytes(bytes))
    }
}

impl Record {
    const LEN: u32 = 8;

    fn to_bytes(&self) -> [u8; 8] {
        (u64::from(self.sn.0) << 32 | u64::from(self.len)).to_be_bytes()
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    fn from_bytes(bytes: [u8; 8]) -> Self {
        let word = u64::from_be_bytes(bytes);
        Self { sn: Sn((word >> 32) as u32), len: word as u32 }
    }
}
