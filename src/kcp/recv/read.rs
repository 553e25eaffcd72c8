//! Reads messages.

use super::{Found, Receiver};
use crate::seq::Sn;
use crate::wire::{HEADER_LEN, RawHeader};
use bytes::{Bytes, BytesMut};

/// A located segment.
#[derive(Clone, Copy)]
struct Part {
    /// The position of its header in the log. `None`: the segment is shared.
    position: Option<u32>,
    len: usize,
    frg: u8,
}

impl Receiver {
    /// Length of the next message, bytes. `None`: it has not arrived in full. Source: ikcp.c `ikcp_peeksize`.
    pub(in crate::kcp) fn peek_size(&self) -> Option<usize> {
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

    /// Whether there is a whole message.
    #[inline]
    pub(in crate::kcp) fn is_readable(&self) -> bool {
        // If the newest segment in order ends a message, everything before it is whole messages.
        let first = || self.locate(self.index.start());
        self.queued() > 0
            && (self.last_frg == 0 || first().is_some_and(|first| self.queued() > first.frg.into()))
    }

    /// Bytes of segments in the log that can be read, of complete messages or not, headers included.
    pub(in crate::kcp) fn in_order(&self) -> u32 {
        let (mut at, mut left, mut bytes) = (self.log.start(), self.log.len(), 0);
        while left > 0 {
            let head = self.log.reader(at).next_chunk();
            let head = RawHeader::of(&head);
            let len = SKIP + head.len();
            if head.sn().is_before(self.nxt) && !head.sn().is_before(self.index.start()) {
                bytes += len;
            }
            (at, left) = (at.wrapping_add(len), left.saturating_sub(len));
        }
        bytes
    }

    /// Copies the next message, which is complete, to `buf`, which has its length.
    pub(in crate::kcp) fn peek(&self, mut buf: &mut [u8]) {
        for (sn, part) in self.message() {
            let Some((to, rest)) = buf.split_at_mut_checked(part.len) else { break };
            self.copy_payload(sn, part, to);
            buf = rest;
        }
    }

    /// Moves the next message to `buf` in the most common case and returns its length: one segment, at the front of the
    /// log, with nothing waiting behind it. `None`: it is not that case.
    #[inline]
    pub(in crate::kcp) fn read_simple(&mut self, buf: &mut [u8]) -> Option<usize> {
        let head = RawHeader::of(self.log.front()?);
        if head.sn() != self.index.start() || head.frg() != 0 || self.was_full {
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

    /// The same for a single segment anywhere in the log.
    pub(in crate::kcp) fn read_one(&mut self, buf: &mut [u8]) -> Option<usize> {
        let sn = self.index.start();
        let position = self.position(sn)?;
        let mut reader = self.log.reader(position);
        let bytes = reader.next_chunk();
        let head = RawHeader::of(&bytes);
        if head.sn() != sn || head.frg() != 0 || self.was_full {
            return None;
        }
        let to = buf.get_mut(..head.len() as usize)?;
        reader.copy_next(to);
        self.index.step();
        self.let_go(position, to.len());
        Some(to.len())
    }

    /// Moves the next message, which is complete, to `buf`, which has its length.
    pub(in crate::kcp) fn read(&mut self, mut buf: &mut [u8]) {
        let mut more = true;
        while more {
            let sn = self.index.start();
            let Some(part) = self.locate(sn) else { break };
            let Some((to, rest)) = buf.split_at_mut_checked(part.len) else { break };
            self.index.step();
            self.copy_payload(sn, part, to);
            if let Some(position) = part.position {
                self.let_go(position, part.len);
            } else {
                self.unshare(sn);
            }
            buf = rest;
            more = part.frg > 0;
        }
    }

    /// Returns the next message, which is complete and `len` bytes long. A single shared segment is not copied.
    pub(in crate::kcp) fn read_bytes(&mut self, len: usize) -> Bytes {
        let start = self.index.start();
        if let Some(Part { position: None, frg: 0, .. }) = self.locate(start) {
            self.index.step();
            return self.unshare(start).unwrap_or_default();
        }
        let mut message = BytesMut::zeroed(len);
        self.read(&mut message);
        message.freeze()
    }

    /// Position in the log of the segment `sn`, which is in the index or next to be read. `None`: it is shared, or the
    /// log is empty.
    #[inline]
    fn position(&self, sn: Sn) -> Option<u32> {
        match self.index.get(sn).map(|place| place.find()) {
            Some(Found::InLog(position)) => Some(position),
            Some(Found::Shared { .. }) => None,
            None => (!self.log.is_empty()).then(|| self.log.start()),
        }
    }

    /// Locates the segment `sn`, which is in the index or next to be read.
    fn locate(&self, sn: Sn) -> Option<Part> {
        if let Some(Found::Shared { frg }) = self.index.get(sn).map(|place| place.find()) {
            let len = self.shared()?.get(sn)?.len();
            return Some(Part { position: None, len, frg });
        }
        let position = self.position(sn)?;
        let bytes = self.log.reader(position).next_chunk();
        let head = RawHeader::of(&bytes);
        let part = Part { position: Some(position), len: head.len() as usize, frg: head.frg() };
        (head.sn() == sn).then_some(part)
    }

    /// The segments of the next message, which is complete.
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
        } else if let Some(bytes) = self.shared().and_then(|shared| shared.get(sn)) {
            to.copy_from_slice(bytes);
        }
    }

    /// Frees a segment that has been read, and the following ones in the log that were read earlier.
    #[inline]
    fn let_go(&mut self, position: u32, len: usize) {
        if !self.log.starts_at(position) {
            self.read_early += 1;
            return;
        }
        self.log.release(len + HEADER_LEN);
        self.let_go_early();
    }

    /// Frees the segments at the front of the log that were read earlier.
    #[inline(never)]
    fn let_go_early(&mut self) {
        while self.read_early > 0 {
            let across;
            let head = RawHeader::of(match self.log.front() {
                Some(bytes) => bytes,
                None => {
                    across = self.log.reader(self.log.start()).next_chunk();
                    &across
                }
            });
            if !head.sn().is_before(self.index.start()) {
                break;
            }
            self.read_early -= 1;
            self.log.release(head.len() as usize + HEADER_LEN);
        }
    }
}

/// Distance from the start of a segment to its data.
#[expect(clippy::cast_possible_truncation, reason = "it is 24")]
const SKIP: u32 = HEADER_LEN as u32;
