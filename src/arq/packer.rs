//! Packs segments into datagrams.

use super::stats::Counters;
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::{HEADER_LEN, Header, Output};

/// Fills a datagram with segments and hands it over when the next one does not fit.
pub(super) struct Packer<'a, O> {
    /// Room for a datagram of the mtu, and for the largest segment that waits.
    buffer: &'a mut [u8],
    len: usize,
    mtu: usize,
    output: &'a mut O,
    segments: u64,
    counters: &'a mut Counters,
}

impl<'a, O: Output> Packer<'a, O> {
    pub(super) fn new(buffer: &'a mut [u8], mtu: u16, output: &'a mut O, counters: &'a mut Counters) -> Self {
        Self { buffer, len: 0, mtu: mtu.into(), output, segments: 0, counters }
    }

    /// Appends a segment and returns the room for its `len` bytes of data.
    #[inline]
    pub(super) fn push(&mut self, header: &Header, len: u16) -> &mut [u8] {
        let mut end = self.len + HEADER_LEN + usize::from(len);
        if end > self.mtu {
            end -= self.len;
            self.finish();
        }
        let room = self.buffer.get_mut(self.len..end);
        let Some((head, data)) = room.and_then(<[u8]>::split_first_chunk_mut) else {
            return &mut [];
        };
        *head = header.to_bytes(len.into());
        self.len = end;
        self.segments += 1;
        data
    }

    /// Segments in the datagram being packed.
    pub(super) fn segments(&self) -> u32 {
        u32::try_from(self.segments).unwrap_or(u32::MAX)
    }

    /// Whether a segment of `len` bytes goes into the datagram being packed.
    pub(super) fn fits(&self, len: u16) -> bool {
        self.len + HEADER_LEN + usize::from(len) <= self.mtu
    }

    /// Appends a segment like `header`, without data, for each of the numbers and times.
    pub(super) fn push_all(&mut self, header: &Header, mut each: &[(Sn, Millis)]) {
        while !each.is_empty() {
            if self.len + HEADER_LEN > self.mtu {
                self.finish();
            }
            let fit = (self.mtu - self.len) / HEADER_LEN;
            let (fitting, later) = each.split_at_checked(fit).unwrap_or((each, &[]));
            let room = self.buffer.get_mut(self.len..).unwrap_or_default();
            for (bytes, &(sn, ts)) in room.as_chunks_mut().0.iter_mut().zip(fitting) {
                *bytes = Header { sn, ts, ..*header }.to_bytes(0);
            }
            self.len += fitting.len() * HEADER_LEN;
            self.segments += fitting.len() as u64;
            each = later;
        }
    }

    /// Hands over what has been packed.
    #[inline(never)]
    pub(super) fn finish(&mut self) {
        if let Some(datagram) = self.buffer.get(..self.len)
            && self.len > 0
        {
            self.counters.bytes_sent += self.len as u64;
            self.counters.segments_sent += std::mem::take(&mut self.segments);
            self.output.output(datagram);
        }
        self.len = 0;
    }
}
