//! The receiving half: segments in, in any order, messages out.

use super::place::{Found, Place};
use super::send::SHARE_MIN;
use crate::ring::{BYTES_MAX, ByteRing, Ring};
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::{HEADER_LEN, RawHeader};
use bytes::{Bytes, BytesMut};

/// Segments from the oldest unread one to the newest that arrived: up to `nxt` they are there
/// without a gap (KCP's `rcv_queue`), from there on some are missing (`rcv_buf`).
///
/// They lie in a log as they came, each with its header. One that came in its turn is at the front
/// of the log when its turn to be read has come; where the others are says the index.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Starts at the oldest unread segment.
    index: Ring<Place>,
    /// The number expected next.
    pub(super) nxt: Sn,
    /// Segments held from `nxt` on.
    pub(super) parked: u32,
    log: ByteRing,
    /// Segments that have been read and are still in the log, because one that arrived before them
    /// has not.
    read_early: u32,
    /// `frg` of the segment before `nxt`.
    last_frg: u8,
    /// The queue is full: segments may be left parked for that.
    is_full: bool,
    /// Payloads that are part of a datagram's buffer.
    shared: Option<Box<Ring<Bytes>>>,
}

/// A segment in its place.
#[derive(Clone, Copy)]
struct Part {
    /// Where its header is in the log; `None`: it is shared.
    position: Option<u32>,
    len: usize,
    frg: u8,
}

/// Segments stored together.
#[derive(Clone, Copy, Default)]
pub(super) struct Row {
    pub(super) count: usize,
    /// With their headers.
    pub(super) bytes: usize,
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
        let (index, log) = (Ring::new(start), ByteRing::default());
        Self { index, nxt: start, parked: 0, log, read_early: 0, last_frg: 0, is_full: false, shared: None }
    }

    /// Segments that can be read, whole messages or not.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        self.nxt.0.wrapping_sub(self.index.start().0)
    }

    /// Segments that there is room for. Source: ikcp.c `ikcp_wnd_unused`.
    #[inline]
    pub(super) fn window(&self, rcv_wnd: u16) -> u16 {
        rcv_wnd.saturating_sub(u16::try_from(self.queued()).unwrap_or(u16::MAX))
    }

    /// Stores the row of segments at the front of `datagram`, at most `most` of them: new ones that
    /// are messages of their own, each the next after the one before, alike but for their times,
    /// which `each` gets with the numbers. The row is empty where the first segment does not start
    /// one; [`store`](Self::store) says what is with that.
    pub(super) fn store_row(
        &mut self,
        datagram: &[u8],
        most: usize,
        rcv_wnd: u16,
        mut each: impl FnMut(Sn, Millis),
    ) -> Row {
        let Some((first, _)) = RawHeader::split(datagram) else { return Row::default() };
        let in_turn = first.sn() == self.nxt && self.parked == 0;
        let end = if in_turn { self.index.start() } else { self.nxt }.add(rcv_wnd.into());
        if first.frg() != 0
            || first.sn().is_before(self.nxt)
            || self.frg_before(first.sn()) != 0
            || self.log.len() as usize + datagram.len() > BYTES_MAX
        {
            return Row::default();
        }
        let most = most.min(usize::try_from(end.distance(first.sn())).unwrap_or(0));
        let (mut sn, mut rest, mut count) = (first.sn(), datagram, 0);
        while count < most
            && let Some((head, data)) = RawHeader::split(rest)
            && head.sn() == sn
            && head.common() == first.common()
            && let Some(after) = data.get(head.len() as usize..)
        {
            let place = Place::in_log(self.log.end(), datagram.len() - rest.len());
            if !in_turn && !self.index.insert_new(sn, place) {
                break;
            }
            each(sn, head.ts());
            sn = sn.add(1);
            rest = after;
            count += 1;
        }
        let bytes = datagram.len() - rest.len();
        self.log.push(datagram.get(..bytes).unwrap_or_default());
        if in_turn {
            self.nxt = sn;
            self.is_full = sn == end;
        } else {
            self.parked += sn.0.wrapping_sub(first.sn().0);
            self.deliver(rcv_wnd);
        }
        Row { count, bytes }
    }

    /// Stores a segment, and queues what is complete up to it. Source: ikcp.c `ikcp_input`,
    /// `ikcp_parse_data`.
    ///
    /// `backing` is the buffer that `data` is part of, where it can be kept: it is, instead of a
    /// copy, when `data` makes up much of it.
    #[inline(never)]
    pub(super) fn store(&mut self, segment: &[u8], backing: Option<&Bytes>, rcv_wnd: u16) -> Stored {
        let Some((head, data)) = RawHeader::split(segment) else {
            return Stored::BrokenChain;
        };
        let (sn, frg) = (head.sn(), head.frg());
        if !sn.is_before(self.nxt.add(rcv_wnd.into())) {
            return Stored::Beyond;
        }
        if sn.is_before(self.nxt) || self.index.get(sn).is_some() {
            return Stored::Duplicate;
        }
        if !self.continues_chain(sn, frg) {
            return Stored::BrokenChain;
        }
        let place = match backing {
            Some(backing) if data.len() >= SHARE_MIN.max(backing.len() / 4) => {
                self.share(sn, backing.slice_ref(data));
                Place::shared(frg)
            }
            _ => match self.log.push(segment) {
                Some(position) => Place::in_log(position, 0),
                None => return Stored::Beyond,
            },
        };
        self.index.insert(sn, place);
        self.parked += 1;
        self.deliver(rcv_wnd);
        Stored::New
    }

    /// Queues what has become complete, up to the window. Source: ikcp.c `ikcp_parse_data`,
    /// `ikcp_recv`.
    pub(super) fn deliver(&mut self, rcv_wnd: u16) {
        let before = self.nxt;
        let end = self.index.start().add(rcv_wnd.into());
        while self.parked > 0 && self.nxt.is_before(end) && self.index.get(self.nxt).is_some() {
            self.nxt = self.nxt.add(1);
            self.parked -= 1;
        }
        if self.nxt != before {
            self.last_frg = self.frg_of(self.nxt.sub(1)).unwrap_or(0);
        }
        self.is_full = !self.nxt.is_before(end);
    }

    /// Length of the next message, bytes; `None`: not all of it is there. Source: ikcp.c
    /// `ikcp_peeksize`.
    pub(super) fn peek_size(&self) -> Option<usize> {
        if self.queued() == 0 {
            return None;
        }
        let first = self.locate(self.index.start())?;
        if first.frg == 0 {
            return Some(first.len);
        }
        if self.queued() <= first.frg.into() {
            return None;
        }
        Some(self.message().map(|(_, part)| part.len).sum())
    }

    /// Copies the next message, which is all there, to `buf`, which is as long.
    pub(super) fn peek(&self, mut buf: &mut [u8]) {
        for (sn, part) in self.message() {
            let Some((to, rest)) = buf.split_at_mut_checked(part.len) else { break };
            self.copy_payload(sn, part, to);
            buf = rest;
        }
    }

    /// Moves the next message to `buf` in the most common case and returns its length: one segment,
    /// at the front of the log, and nothing waits for it to be read. `None`: not so simple.
    #[inline]
    pub(super) fn read_simple(&mut self, buf: &mut [u8]) -> Option<usize> {
        let head = RawHeader::of(self.log.front()?);
        if head.sn() != self.index.start() || head.frg() != 0 || self.is_full {
            return None;
        }
        let to = buf.get_mut(..head.len() as usize)?;
        self.index.step();
        self.log.pop_front(SKIP, to);
        if self.read_early > 0 {
            self.let_go_early();
        }
        Some(to.len())
    }

    /// The same of a segment that is anywhere in the log.
    pub(super) fn read_one(&mut self, buf: &mut [u8]) -> Option<usize> {
        let sn = self.index.start();
        let position = self.position(sn)?;
        let mut reader = self.log.reader(position);
        let bytes = reader.next_chunk();
        let head = RawHeader::of(&bytes);
        if head.sn() != sn || head.frg() != 0 || self.is_full {
            return None;
        }
        let to = buf.get_mut(..head.len() as usize)?;
        reader.copy_next(to);
        self.index.step();
        self.let_go(position, to.len());
        Some(to.len())
    }

    /// Moves the next message, which is all there, to `buf`, which is as long.
    pub(super) fn read(&mut self, mut buf: &mut [u8]) {
        let mut more = true;
        while more {
            let sn = self.index.start();
            let Some(part) = self.locate(sn) else { break };
            let Some((to, rest)) = buf.split_at_mut_checked(part.len) else { break };
            self.index.step();
            self.copy_payload(sn, part, to);
            if let Some(position) = part.position {
                self.let_go(position, part.len);
            } else if let Some(shared) = &mut self.shared {
                shared.remove(sn);
            }
            buf = rest;
            more = part.frg > 0;
        }
    }

    /// Takes the next message, which is all there and `len` bytes long; without a copy where it is
    /// one segment that is shared.
    pub(super) fn read_bytes(&mut self, len: usize) -> Bytes {
        let start = self.index.start();
        if let Some(Part { position: None, frg: 0, .. }) = self.locate(start)
            && let Some(bytes) = self.shared.as_mut().and_then(|shared| shared.remove(start))
        {
            self.index.step();
            return bytes;
        }
        let mut message = BytesMut::zeroed(len);
        self.read(&mut message);
        message.freeze()
    }

    /// Gives the memory back when nothing is held.
    pub(super) fn shrink(&mut self) {
        self.index.shrink();
        self.log.shrink();
        if self.queued() == 0 && self.parked == 0 {
            self.shared = None;
        }
    }

    /// Within a message `frg` falls by one from segment to segment. Checked against the neighbours
    /// that are there, it holds for all that are.
    fn continues_chain(&self, sn: Sn, frg: u8) -> bool {
        let before = self.frg_before(sn);
        (before == 0 || frg == before - 1)
            && (frg == 0 || self.frg_of(sn.add(1)).is_none_or(|after| after == frg - 1))
    }

    /// `frg` of the segment before `sn`, which is not before `nxt`; 0 if that has not arrived. The
    /// one before `nxt` may have been read.
    #[inline]
    fn frg_before(&self, sn: Sn) -> u8 {
        if sn == self.nxt { self.last_frg } else { self.frg_of(sn.sub(1)).unwrap_or(0) }
    }

    /// `frg` of a segment of the index.
    #[inline]
    fn frg_of(&self, sn: Sn) -> Option<u8> {
        Some(match self.index.get(sn)?.find() {
            Found::InLog(position) => RawHeader::of(&self.log.reader(position).next_chunk()).frg(),
            Found::Shared { frg } => frg,
        })
    }

    /// Where in the log the segment `sn` is, which is in the index or, if it is in the log at all,
    /// next to be read; `None`: it is shared, or the log is empty.
    #[inline]
    fn position(&self, sn: Sn) -> Option<u32> {
        match self.index.get(sn).map(|place| place.find()) {
            Some(Found::InLog(position)) => Some(position),
            Some(Found::Shared { .. }) => None,
            None => (!self.log.is_empty()).then(|| self.log.start()),
        }
    }

    /// The segment `sn`, which is in the index or next to be read.
    fn locate(&self, sn: Sn) -> Option<Part> {
        if let Some(Found::Shared { frg }) = self.index.get(sn).map(|place| place.find()) {
            let len = self.shared.as_ref()?.get(sn)?.len();
            return Some(Part { position: None, len, frg });
        }
        let position = self.position(sn)?;
        let bytes = self.log.reader(position).next_chunk();
        let head = RawHeader::of(&bytes);
        let part = Part { position: Some(position), len: head.len() as usize, frg: head.frg() };
        (head.sn() == sn).then_some(part)
    }

    /// The segments of the next message, which is all there.
    fn message(&self) -> impl Iterator<Item = (Sn, Part)> {
        let mut next = Some(self.index.start());
        std::iter::from_fn(move || {
            let sn = next?;
            let part = self.locate(sn)?;
            next = (part.frg != 0).then(|| sn.add(1));
            Some((sn, part))
        })
    }

    fn copy_payload(&self, sn: Sn, part: Part, to: &mut [u8]) {
        if let Some(position) = part.position {
            self.log.copy_to(position.wrapping_add(SKIP), to);
        } else if let Some(bytes) = self.shared.as_ref().and_then(|shared| shared.get(sn)) {
            to.copy_from_slice(bytes);
        }
    }

    /// Frees a segment that has been read, and those after it in the log that were read before.
    #[inline]
    fn let_go(&mut self, position: u32, len: usize) {
        if !self.log.starts_at(position) {
            self.read_early += 1;
            return;
        }
        self.log.release(len + HEADER_LEN);
        self.let_go_early();
    }

    /// Frees the segments at the front of the log that were read before those in front of them.
    #[inline(never)]
    fn let_go_early(&mut self) {
        while self.read_early > 0 {
            let len = match self.log.front().map(RawHeader::of) {
                Some(head) if !head.sn().is_before(self.index.start()) => break,
                Some(head) => head.len(),
                None => {
                    let bytes = self.log.reader(self.log.start()).next_chunk();
                    let head = RawHeader::of(&bytes);
                    if !head.sn().is_before(self.index.start()) {
                        break;
                    }
                    head.len()
                }
            };
            self.read_early -= 1;
            self.log.release(len as usize + HEADER_LEN);
        }
    }

    #[cold]
    fn share(&mut self, sn: Sn, data: Bytes) {
        let start = self.index.start();
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

/// From the start of a segment to its data.
const SKIP: u32 = HEADER_LEN as u32;
