//! The receiving half: segments in, in any order, messages out.

use super::parking::{Leaving, Parking};
use crate::ring::ByteRing;
use crate::seq::Sn;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// What has arrived and has not been read.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Segments without a gap before them (KCP's `rcv_queue`): each a [`Record`], then its payload.
    queue: ByteRing,
    /// Segments in the queue, whole messages or not.
    pub(super) queued: u32,
    /// The number expected next.
    pub(super) nxt: Sn,
    /// Segments from `nxt` on that wait for earlier ones (KCP's `rcv_buf`).
    pub(super) parked: u32,
    parking: Option<Box<Parking>>,
    /// Payloads of queued segments that are part of a datagram's buffer, in their order.
    shared: Option<Box<VecDeque<Bytes>>>,
    /// `frg` of the segment before `nxt`.
    last_frg: u8,
}

/// Precedes the payload of a segment in the queue; the payload is not there if it is shared.
#[derive(Clone, Copy)]
struct Record {
    len: u16,
    frg: u8,
    shared: bool,
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
        Self {
            queue: ByteRing::default(),
            queued: 0,
            nxt: start,
            parked: 0,
            parking: None,
            shared: None,
            last_frg: 0,
        }
    }

    /// Segments that there is room for. Source: ikcp.c `ikcp_wnd_unused`.
    #[inline]
    pub(super) fn window(&self, rcv_wnd: u16) -> u16 {
        rcv_wnd.saturating_sub(u16::try_from(self.queued).unwrap_or(u16::MAX))
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
        // What most segments are: the next one, and nothing waits for it.
        if sn == self.nxt
            && self.parked == 0
            && self.queued < rcv_wnd.into()
            && (self.last_frg == 0 || frg == self.last_frg - 1)
            && backing.is_none()
        {
            let record = Record { len: data.len() as u16, frg, shared: false };
            if self.queue.push_both(record.to_bytes(), data).is_none() {
                return Stored::Beyond;
            }
            self.took_next(frg);
            return Stored::New;
        }
        self.store_any(sn, frg, data, backing, rcv_wnd)
    }

    #[inline(never)]
    fn store_any(&mut self, sn: Sn, frg: u8, data: &[u8], backing: Option<&Bytes>, rcv_wnd: u16) -> Stored {
        if !sn.is_before(self.nxt.add(rcv_wnd.into())) {
            return Stored::Beyond;
        }
        if sn.is_before(self.nxt) || self.parked_frg(sn).is_some() {
            return Stored::Duplicate;
        }
        if !self.continues_chain(sn, frg) {
            return Stored::BrokenChain;
        }
        let parking = self.parking.get_or_insert_with(|| Box::new(Parking::new()));
        if !parking.park(self.nxt, sn, frg, data, backing) {
            return Stored::Beyond;
        }
        self.parked += 1;
        self.deliver(rcv_wnd);
        Stored::New
    }

    /// Queues what has become complete, up to the window. Source: ikcp.c `ikcp_parse_data`,
    /// `ikcp_recv`.
    pub(super) fn deliver(&mut self, rcv_wnd: u16) {
        while self.parked > 0 && self.queued < rcv_wnd.into() {
            let Some(parking) = &mut self.parking else { break };
            let (queue, shared) = (&mut self.queue, &mut self.shared);
            let mut last_frg = 0;
            let left = parking.leave(|frg, payload| {
                last_frg = frg;
                enqueue(queue, shared, frg, payload)
            });
            if !left {
                break;
            }
            self.parked -= 1;
            self.took_next(last_frg);
        }
    }

    /// Length of the next message, bytes; `None`: not all of it is there. Source: ikcp.c
    /// `ikcp_peeksize`.
    pub(super) fn peek_size(&self) -> Option<usize> {
        let mut records = self.records();
        let (_, first) = records.next()?;
        if self.queued <= first.frg.into() {
            return None;
        }
        let rest: usize = records.take(first.frg.into()).map(|(_, record)| usize::from(record.len)).sum();
        Some(usize::from(first.len) + rest)
    }

    /// Copies the next message, which is all there, to `buf`, which is as long.
    pub(super) fn peek(&self, mut buf: &mut [u8]) {
        let mut shared = self.shared.iter().flat_map(|shared| shared.iter());
        for (position, record) in self.records() {
            let Some((to, rest)) = buf.split_at_mut_checked(record.len.into()) else { break };
            if !record.shared {
                self.queue.copy_to(position, to);
            } else if let Some(bytes) = shared.next() {
                to.copy_from_slice(bytes);
            }
            buf = rest;
            if record.frg == 0 {
                break;
            }
        }
    }

    /// Moves the next message to `buf` in the most common case and returns its length: one segment,
    /// and nothing to do after it. `None`: not so simple.
    #[inline]
    pub(super) fn read_simple(&mut self, buf: &mut [u8], rcv_wnd: u16) -> Option<usize> {
        let record = Record::from_bytes(self.queue.front()?);
        let to = buf.get_mut(..usize::from(record.len))?;
        if record.frg > 0 || record.shared || self.parked > 0 || self.queued >= rcv_wnd.into() {
            return None;
        }
        self.queued -= 1;
        self.queue.pop_front(Record::LEN, to);
        Some(record.len.into())
    }

    /// Moves the next message, which is all there, to `buf`, which is as long.
    pub(super) fn read(&mut self, mut buf: &mut [u8]) {
        while let Some(record) = self.front() {
            let Some((to, rest)) = buf.split_at_mut_checked(record.len.into()) else { break };
            if record.shared {
                if let Some(bytes) = self.pop_shared() {
                    to.copy_from_slice(&bytes);
                }
            } else {
                self.queue.pop_front(Record::LEN, to);
            }
            self.queued -= 1;
            buf = rest;
            if record.frg == 0 {
                break;
            }
        }
    }

    /// Takes the next message, which is all there and `len` bytes long; without a copy where it is
    /// one segment that is shared.
    pub(super) fn read_bytes(&mut self, len: usize) -> Bytes {
        if let Some(Record { frg: 0, shared: true, .. }) = self.front()
            && let Some(bytes) = self.pop_shared()
        {
            self.queued -= 1;
            return bytes;
        }
        let mut message = BytesMut::zeroed(len);
        self.read(&mut message);
        message.freeze()
    }

    /// Gives the memory back when nothing is held.
    pub(super) fn shrink(&mut self) {
        self.queue.shrink();
        if self.parked == 0 {
            self.parking = None;
        }
        if self.shared.as_ref().is_some_and(|shared| shared.is_empty()) {
            self.shared = None;
        }
    }

    #[inline]
    fn took_next(&mut self, frg: u8) {
        self.nxt = self.nxt.add(1);
        self.queued += 1;
        self.last_frg = frg;
    }

    /// Within a message `frg` falls by one from segment to segment. Checked against the neighbours
    /// that are there, it holds for all that are.
    fn continues_chain(&self, sn: Sn, frg: u8) -> bool {
        let before = if sn == self.nxt { Some(self.last_frg) } else { self.parked_frg(sn.sub(1)) };
        let after = self.parked_frg(sn.add(1));
        before.is_none_or(|before| before == 0 || frg == before - 1)
            && (frg == 0 || after.is_none_or(|after| after == frg - 1))
    }

    fn parked_frg(&self, sn: Sn) -> Option<u8> {
        self.parking.as_ref().filter(|_| self.parked > 0)?.frg(sn)
    }

    /// The records of the queue, each with the position of its payload.
    fn records(&self) -> impl Iterator<Item = (u32, Record)> {
        let mut at = self.queue.start();
        (0..self.queued).map(move |_| {
            let mut bytes = [0; Record::LEN as usize];
            self.queue.copy_to(at, &mut bytes);
            let record = Record::from_bytes(bytes);
            let position = at.wrapping_add(Record::LEN);
            at = position.wrapping_add(if record.shared { 0 } else { record.len.into() });
            (position, record)
        })
    }

    fn front(&self) -> Option<Record> {
        self.records().next().map(|(_, record)| record)
    }

    fn pop_shared(&mut self) -> Option<Bytes> {
        self.queue.pop_front(Record::LEN, &mut []);
        self.shared.as_mut()?.pop_front()
    }
}

/// Appends a parked segment to the queue. `false`: there is no room.
fn enqueue(
    queue: &mut ByteRing,
    shared: &mut Option<Box<VecDeque<Bytes>>>,
    frg: u8,
    payload: Leaving<'_>,
) -> bool {
    match payload {
        Leaving::Copied(first, second) => {
            let record = Record { len: (first.len() + second.len()) as u16, frg, shared: false };
            queue.push_both(record.to_bytes(), first).is_some() && queue.push(second).is_some()
        }
        Leaving::Shared(bytes) => {
            let record = Record { len: bytes.len() as u16, frg, shared: true };
            shared.get_or_insert_default().push_back(bytes);
            queue.push(&record.to_bytes()).is_some()
        }
    }
}

impl Record {
    const LEN: u32 = 4;

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        let [low, high] = self.len.to_ne_bytes();
        [low, high, self.frg, u8::from(self.shared)]
    }

    #[inline]
    fn from_bytes([low, high, frg, shared]: [u8; 4]) -> Self {
        Self { len: u16::from_ne_bytes([low, high]), frg, shared: shared != 0 }
    }
}
