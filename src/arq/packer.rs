//! Packs segments into datagrams.

use super::stats::Counters;
use crate::wire::{HEADER_LEN, Header, Output};

/// Fills a datagram with segments and hands it over when the next one does not fit.
pub(super) struct Packer<'a, O> {
    /// Room for a datagram of the mtu, and for the largest segment that waits.
    buffer: &'a mut [u8],
    len: usize,
    mtu: usize,
    output: &'a mut O,
    counters: &'a mut Counters,
}

impl<'a, O: Output> Packer<'a, O> {
    pub(super) fn new(buffer: &'a mut [u8], mtu: u16, output: &'a mut O, counters: &'a mut Counters) -> Self {
        Self { buffer, len: 0, mtu: mtu.into(), output, counters }
    }

    /// Appends a segment whose data lies in two parts.
    #[inline]
    pub(super) fn push(&mut self, header: &Header, (first, second): (&[u8], &[u8])) {
        let len = first.len() + second.len();
        if self.len + HEADER_LEN + len > self.mtu {
            self.finish();
        }
        let end = self.len + HEADER_LEN + len;
        if let Some(room) = self.buffer.get_mut(self.len..end)
            && let Some((head, body)) = room.split_first_chunk_mut::<HEADER_LEN>()
            && let Some((to_first, to_second)) = body.split_at_mut_checked(first.len())
        {
            *head = header.to_bytes(len as u32);
            to_first.copy_from_slice(first);
            if !second.is_empty() {
                to_second.copy_from_slice(second);
            }
            self.len = end;
            self.counters.segments_sent += 1;
        }
    }

    /// Appends a segment without data.
    #[inline]
    pub(super) fn push_empty(&mut self, header: &Header) {
        if self.len + HEADER_LEN > self.mtu {
            self.finish();
        }
        if let Some(room) = self.buffer.get_mut(self.len..)
            && let Some(head) = room.first_chunk_mut::<HEADER_LEN>()
        {
            *head = header.to_bytes(0);
            self.len += HEADER_LEN;
            self.counters.segments_sent += 1;
        }
    }

    /// Hands over what has been packed.
    #[inline(never)]
    pub(super) fn finish(&mut self) {
        if let Some(datagram) = self.buffer.get(..self.len)
            && self.len > 0
        {
            self.counters.bytes_sent += self.len as u64;
            self.output.output(datagram);
        }
        self.len = 0;
    }
}
