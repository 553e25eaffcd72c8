//! Reassembles packets that are larger than a datagram.

use super::error::ReceiveError;
use super::header::Fragment;
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;

/// Packets that are still missing fragments.
///
/// Holds at most `places` packets, the ones with the newest numbers, each of at most `payload_max` bytes.
/// Buffers are reused: there are never more than `places` + 1.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    packets: SequenceBuffer<Partial>,
    payload_max: u32,
    /// Buffers not in use.
    spare: Vec<Vec<u8>>,
    /// The packet that was completed last.
    pub(crate) complete: Vec<u8>,
    /// Packets that were dropped for newer ones while fragments were still missing.
    pub(super) abandoned: u64,
}

impl Reassembly {
    pub(crate) fn new(places: u16, payload_max: u32) -> Self {
        let packets = SequenceBuffer::new(places);
        Self { packets, payload_max, spare: Vec::new(), complete: Vec::new(), abandoned: 0 }
    }

    /// Adds the fragment `id` of 0 to `last` unless it is a duplicate or too late. Returns `true` if that
    /// completes its packet, which then is [`complete`](Self::complete) until the next one. An error changes
    /// nothing.
    pub(crate) fn join(
        &mut self,
        sequence: Seq16,
        (id, last): (u8, u8),
        data: &[u8],
    ) -> Result<bool, ReceiveError> {
        let fragment = Fragment { id, last };
        match self.check(sequence, fragment, data) {
            Ok(()) => Ok(self.add(sequence, fragment, data)),
            Err(ReceiveError::Stale { .. } | ReceiveError::Duplicate { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        let partial = self.packets.values().map(|packet| packet.bytes.capacity()).sum::<usize>();
        let spare = self.spare.iter().map(Vec::capacity).sum::<usize>();
        self.packets.memory() + self.complete.capacity() + partial + spare
    }

    /// Checks whether a fragment can be added.
    pub(super) fn check(&self, sequence: Seq16, fragment: Fragment, data: &[u8]) -> Result<(), ReceiveError> {
        if self.packets.is_stale(sequence) {
            return Err(ReceiveError::Stale { sequence });
        }
        let first = Partial::new(fragment.last, Vec::new());
        let packet = self.packets.get(sequence).unwrap_or(&first);
        if packet.has(fragment.id) {
            return Err(ReceiveError::Duplicate { sequence });
        }
        let len = packet.least_len(fragment, data.len()).ok_or(ReceiveError::FragmentMismatch)?;
        self.check_len(len)
    }

    pub(super) fn check_len(&self, len: usize) -> Result<(), ReceiveError> {
        if len > to_usize(self.payload_max) {
            return Err(ReceiveError::TooLong { len, max: self.payload_max });
        }
        Ok(())
    }

    /// Adds a fragment that passed the [`check`](Self::check). Returns `true` if that completes its packet,
    /// which then is [`complete`](Self::complete) until the next one.
    pub(super) fn add(&mut self, sequence: Seq16, fragment: Fragment, data: &[u8]) -> bool {
        self.advance(sequence);
        if self.packets.get(sequence).is_none() {
            let bytes = self.spare.pop().unwrap_or_default();
            self.packets.insert(sequence, Partial::new(fragment.last, bytes));
        }
        let Some(packet) = self.packets.get_mut(sequence) else {
            return false;
        };
        packet.add(fragment, data, to_usize(self.payload_max));
        if !packet.is_whole() {
            return false;
        }
        if let Some(packet) = self.packets.remove(sequence) {
            let before = std::mem::replace(&mut self.complete, packet.bytes);
            self.spare.push(cleared(before));
        }
        true
    }

    /// Drops all packets and accepts any number again.
    pub(super) fn clear(&mut self) {
        if let Some(newest) = self.packets.newest() {
            self.advance(newest.add(self.packets.size()));
            self.packets.reset();
        }
    }

    /// Drops the packets that become too old when `sequence` arrives.
    pub(super) fn advance(&mut self, sequence: Seq16) {
        let Self { packets, spare, abandoned, .. } = self;
        packets.advance(sequence, |packet| {
            *abandoned += 1;
            spare.push(cleared(packet.bytes));
        });
    }
}

/// A packet that is still missing fragments.
#[derive(Clone, Debug)]
struct Partial {
    /// All fragments in their places. If only the last one is there, it lies at the front: its place depends
    /// on the size of the others.
    bytes: Vec<u8>,
    /// Number of the last fragment.
    last: u8,
    /// Size of each fragment but the last, bytes; 0 if none of them is there yet.
    size: usize,
    /// Size of the last fragment, bytes; 0 if it is not there yet.
    tail: usize,
    /// One bit for each fragment that is there.
    have: [u64; 4],
}

impl Partial {
    const fn new(last: u8, bytes: Vec<u8>) -> Self {
        Self { bytes, last, size: 0, tail: 0, have: [0; 4] }
    }

    fn has(&self, id: u8) -> bool {
        self.have.get(usize::from(id / 64)).is_some_and(|bits| bits >> (id % 64) & 1 == 1)
    }

    fn is_whole(&self) -> bool {
        self.have.iter().map(|bits| bits.count_ones()).sum::<u32>() == u32::from(self.last) + 1
    }

    /// Least size of the packet, bytes, given a fragment of `len` bytes. Returns `None` if the fragment
    /// contradicts the others: all but the last have the same size, and the last is no larger.
    fn least_len(&self, fragment: Fragment, len: usize) -> Option<usize> {
        let (size, tail) = if fragment.id == self.last { (self.size, len) } else { (len, self.tail) };
        let fits = len > 0
            && fragment.last == self.last
            && (self.size == 0 || size == self.size)
            && (size == 0 || tail <= size);
        fits.then(|| usize::from(self.last) * size.max(tail) + tail.max(1))
    }

    /// Adds a fragment for which [`least_len`](Self::least_len) is at most `max`.
    fn add(&mut self, fragment: Fragment, data: &[u8], max: usize) {
        let last = usize::from(self.last);
        if fragment.id == self.last {
            self.tail = data.len();
        } else if self.size == 0 {
            self.size = data.len();
            self.bytes.reserve_exact(((last + 1) * self.size).min(max));
            if self.tail > 0 {
                self.bytes.resize(last * self.size + self.tail, 0);
                self.bytes.copy_within(..self.tail, last * self.size);
            }
        }
        let start = usize::from(fragment.id) * self.size;
        let end = start + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(place) = self.bytes.get_mut(start..end) {
            place.copy_from_slice(data);
        }
        if let Some(bits) = self.have.get_mut(usize::from(fragment.id / 64)) {
            *bits |= 1 << (fragment.id % 64);
        }
    }
}

fn cleared(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes
}

fn to_usize(len: u32) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Most fragments per packet.
pub(super) const FRAGMENTS_MAX: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn add<'a>(
        reassembly: &'a mut Reassembly,
        sequence: u16,
        [id, last]: [u8; 2],
        data: &[u8],
    ) -> Result<Option<&'a [u8]>, ReceiveError> {
        let (sequence, fragment) = (Seq16(sequence), Fragment { id, last });
        reassembly.check(sequence, fragment, data)?;
        Ok(if reassembly.add(sequence, fragment, data) { Some(&reassembly.complete) } else { None })
    }

    #[test]
    fn a_packet_is_dropped_for_newer_ones_and_when_its_number_is_reused() {
        let mut reassembly = Reassembly::new(4, 100);
        add(&mut reassembly, 10, [0, 1], b"old").unwrap();
        add(&mut reassembly, 13, [0, 1], b"new").unwrap();
        assert_eq!(add(&mut reassembly, 10, [1, 1], b"er"), Ok(Some(&b"older"[..])));
        add(&mut reassembly, 12, [0, 1], b"old").unwrap();
        reassembly.advance(Seq16(16)); // a packet without fragments
        let stale = ReceiveError::Stale { sequence: Seq16(12) };
        assert_eq!((reassembly.abandoned, add(&mut reassembly, 12, [1, 1], b"er")), (1, Err(stale)));
        for sequence in (16..=u16::MAX).step_by(20_000).chain([10]) {
            reassembly.advance(Seq16(sequence));
        }
        assert_eq!(
            add(&mut reassembly, 13, [1, 1], b"er"),
            Ok(None),
            "the first fragment belonged to an earlier packet 13"
        );
        reassembly.clear();
        assert_eq!((reassembly.abandoned, add(&mut reassembly, 12, [1, 1], b"er")), (3, Ok(None)));
    }

    proptest! {
        #[test]
        fn fragments_in_any_order_with_duplicates_yield_the_packet_once(
            len in 2..if cfg!(miri) { 200 } else { 2000usize },
            parts in 2..=256usize,
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..if cfg!(miri) { 60 } else { 600 }),
        ) {
            let packet: Vec<_> = (0..len).map(|at| (at * 7 + at / 256).to_le_bytes()[0]).collect();
            let fragments: Vec<_> = packet.chunks(len.div_ceil(parts).min(len - 1)).collect();
            let last = u8::try_from(fragments.len() - 1).unwrap();
            let mut reassembly = Reassembly::new(1, 2000);
            let mut missing: std::collections::BTreeSet<_> = (0..=last).collect();
            let any_order = order.iter().map(|index| u8::try_from(index.index(fragments.len())).unwrap());
            for id in any_order.chain(0..=last) {
                let found = add(&mut reassembly, 9, [id, last], fragments[usize::from(id)]);
                if !missing.remove(&id) {
                    prop_assert_eq!(found, Err(ReceiveError::Duplicate { sequence: Seq16(9) }));
                } else if missing.is_empty() {
                    prop_assert_eq!(found, Ok(Some(&packet[..])));
                    break;
                } else {
                    prop_assert_eq!(found, Ok(None));
                }
            }
            prop_assert!(missing.is_empty());
        }
    }
}
