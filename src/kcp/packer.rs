//! Packs segments into datagrams.

use super::stats::Counters;
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::{HEADER_LEN, Header, Output};

/// Fills a datagram with segments, and hands it over when the next one does not fit.
pub(super) struct Packer<'a, O> {
    output: &'a mut O,
    /// Holds the datagram if the output has no room for it. Allocated when needed.
    spare: &'a mut Vec<u8>,
    /// Whether the datagram is written into the output's own buffer.
    is_in_place: bool,
    len: usize,
    mtu: usize,
    /// Number of segments in the datagram.
    pub(super) segments: u32,
    counters: &'a mut Counters,
}

impl<'a, O: Output> Packer<'a, O> {
    pub(super) fn new(
        output: &'a mut O,
        spare: &'a mut Vec<u8>,
        mtu: u16,
        counters: &'a mut Counters,
    ) -> Self {
        Self { output, spare, is_in_place: false, len: 0, mtu: mtu.into(), segments: 0, counters }
    }

    /// Appends a segment and returns the room for its `len` bytes of data. Inlined into the sending loop: a call costs
    /// 29 instructions per segment.
    #[inline(always)]
    pub(super) fn push(&mut self, header: &Header, len: u16) -> &mut [u8] {
        let mut end = self.len + HEADER_LEN + usize::from(len);
        if end > self.mtu {
            end -= self.len;
            self.finish();
        }
        let start = std::mem::replace(&mut self.len, end);
        self.segments += 1;
        let room = self.room(end).get_mut(start..end);
        let Some((head, data)) = room.and_then(<[u8]>::split_first_chunk_mut) else {
            return &mut [];
        };
        *head = header.to_bytes(len.into());
        data
    }

    /// Where the datagram is written, which will be `end` bytes long.
    #[inline]
    fn room(&mut self, end: usize) -> &mut [u8] {
        let Self { output, spare, is_in_place, mtu, .. } = self;
        // Reserve for everything that may follow: the buffer must not move.
        let len = end.max(*mtu);
        let room = output.room(len);
        *is_in_place = room.is_some();
        room.unwrap_or_else(|| {
            if spare.len() < len {
                spare.resize(len, 0);
            }
            spare
        })
    }

    /// Whether a segment of `len` bytes fits into the datagram.
    pub(super) fn fits(&self, len: u16) -> bool {
        self.len + HEADER_LEN + usize::from(len) <= self.mtu
    }

    /// Whether a new segment of `len` bytes should wait: it would start another datagram, and the output has enough for
    /// now.
    #[inline]
    pub(super) fn is_full(&mut self, len: u16) -> bool {
        !self.fits(len) && self.output.is_full()
    }

    /// Appends a segment like `header`, without data, for each number and time.
    pub(super) fn push_all(&mut self, header: &Header, mut each: &[(Sn, Millis)]) {
        while !each.is_empty() {
            if self.len + HEADER_LEN > self.mtu {
                self.finish();
            }
            let fit = (self.mtu - self.len) / HEADER_LEN;
            let (fitting, later) = each.split_at_checked(fit).unwrap_or((each, &[]));
            let end = self.len + fitting.len() * HEADER_LEN;
            let start = std::mem::replace(&mut self.len, end);
            let room = self.room(end).get_mut(start..end).unwrap_or_default();
            for (bytes, &(sn, ts)) in room.as_chunks_mut().0.iter_mut().zip(fitting) {
                *bytes = Header { sn, ts, ..*header }.to_bytes(0);
            }
            self.segments += u32::try_from(fitting.len()).unwrap_or(0);
            each = later;
        }
    }

    /// Hands over the datagram.
    #[inline(never)]
    pub(super) fn finish(&mut self) {
        if self.len > 0 {
            self.counters.bytes_sent += self.len as u64;
            self.counters.segments_sent += u64::from(std::mem::take(&mut self.segments));
            if self.is_in_place {
                self.output.put(self.len);
            } else {
                self.output.output(self.spare.get(..self.len).unwrap_or_default());
            }
        }
        self.len = 0;
    }
}
