//! Packs segments into datagrams.

use super::stats::Counters;
use crate::wire::{HEADER_LEN, Header, Output};

/// Fills a datagram with segments and hands it over when the next one does not fit.
pub(super) struct Packer<'a, O> {
    datagram: &'a mut Vec<u8>,
    mtu: usize,
    output: &'a mut O,
    counters: &'a mut Counters,
}

impl<'a, O: Output> Packer<'a, O> {
    pub(super) fn new(
        datagram: &'a mut Vec<u8>,
        mtu: u16,
        output: &'a mut O,
        counters: &'a mut Counters,
    ) -> Self {
        datagram.clear();
        datagram.reserve(mtu.into());
        Self { datagram, mtu: mtu.into(), output, counters }
    }

    /// Appends a segment whose data lies in two parts.
    #[inline]
    pub(super) fn push(&mut self, header: &Header, first: &[u8], second: &[u8]) {
        let len = first.len() + second.len();
        if self.datagram.len() + HEADER_LEN + len > self.mtu {
            self.finish();
        }
        self.datagram.extend_from_slice(&header.to_bytes(u32::try_from(len).unwrap_or(0)));
        if len != 0 {
            self.datagram.extend_from_slice(first);
            if !second.is_empty() {
                self.datagram.extend_from_slice(second);
            }
        }
        self.counters.segments_sent += 1;
    }

    /// Hands over what has been packed.
    pub(super) fn finish(&mut self) {
        if !self.datagram.is_empty() {
            self.counters.bytes_sent += self.datagram.len() as u64;
            self.output.output(self.datagram);
            self.datagram.clear();
        }
    }
}
