//! Segments that arrived before others that precede them (KCP's `rcv_buf`).

use super::send::SHARE_MIN;
use crate::ring::{ByteRing, Ring};
use crate::seq::Sn;
use bytes::Bytes;

/// Segments by number, until those before them are there.
#[derive(Debug)]
pub(super) struct Parking {
    ring: Ring<Parked>,
    /// The payloads, in the order in which they arrived: each after a [`Record`].
    log: ByteRing,
    /// Segments that have left and are still in the log, because one that arrived before them has
    /// not.
    left_early: u32,
    /// Payloads that are part of a datagram's buffer.
    shared: Ring<Bytes>,
}

/// A parked segment; 8 bytes.
#[derive(Clone, Copy, Debug)]
struct Parked {
    /// Where its payload starts, unless it is shared.
    position: u32,
    len: u16,
    frg: u8,
    shared: bool,
}

/// Says whose bytes follow in the log, so that they can be let go in the order in which they came
/// although the segments leave in another.
struct Record {
    sn: Sn,
    len: u32,
}

/// A payload on its way from the parking to the queue.
pub(super) enum Leaving<'a> {
    /// Bytes in two parts.
    Copied(&'a [u8], &'a [u8]),
    Shared(Bytes),
}

impl Parking {
    pub(super) fn new() -> Self {
        let (ring, shared) = (Ring::new(Sn(0)), Ring::new(Sn(0)));
        Self { ring, log: ByteRing::default(), left_early: 0, shared }
    }

    /// `frg` of the segment `sn`, if it is parked.
    pub(super) fn frg(&self, sn: Sn) -> Option<u8> {
        self.ring.get(sn).map(|segment| segment.frg)
    }

    /// Parks a segment that is not parked, where `nxt` is expected next. `backing` is the buffer
    /// that `data` is part of, where it can be kept. `false`: there is no room.
    pub(super) fn park(&mut self, nxt: Sn, sn: Sn, frg: u8, data: &[u8], backing: Option<&Bytes>) -> bool {
        if self.ring.span() == 0 {
            self.ring.restart(nxt);
            self.shared.restart(nxt);
        }
        let (position, shared) = if let Some(bytes) = share(data, backing) {
            self.shared.insert(sn, bytes);
            (0, true)
        } else {
            let len = data.len() as u32;
            let Some(position) = self.log.push_both(Record { sn, len }.to_bytes(), data) else {
                return false;
            };
            (position, false)
        };
        self.ring.insert(sn, Parked { position, len: data.len() as u16, frg, shared });
        true
    }

    /// Takes out the oldest segment, if it is there: `take` gets its `frg` and its payload, and
    /// says whether it could take them.
    pub(super) fn leave(&mut self, take: impl FnOnce(u8, Leaving<'_>) -> bool) -> bool {
        let sn = self.ring.start();
        let Some(&Parked { position, len, frg, shared }) = self.ring.get(sn) else {
            return false;
        };
        let taken = if shared {
            take(frg, Leaving::Shared(self.shared.remove(sn).unwrap_or_default()))
        } else {
            let (first, second) = self.log.slices(position, len.into());
            take(frg, Leaving::Copied(first, second))
        };
        if taken {
            self.ring.pop_front();
            if self.shared.span() > 0 {
                self.shared.pop_front();
            }
            if !shared {
                self.let_go(position, len);
            }
        }
        taken
    }

    /// Frees a payload that has left, and those after it in the log that left before.
    fn let_go(&mut self, position: u32, len: u16) {
        if self.log.start().wrapping_add(Record::LEN) != position {
            self.left_early += 1;
            return;
        }
        self.log.release_to(position.wrapping_add(len.into()));
        while self.left_early > 0 {
            let record = self.oldest_record();
            if !record.sn.is_before(self.ring.start()) {
                break;
            }
            self.left_early -= 1;
            self.log.release_to(self.log.start().wrapping_add(Record::LEN + record.len));
        }
    }

    fn oldest_record(&self) -> Record {
        let mut bytes = [0; Record::LEN as usize];
        self.log.copy_to(self.log.start(), &mut bytes);
        Record::from_bytes(bytes)
    }
}

/// `data` as a part of its buffer, where it makes up enough of it: a few bytes are copied rather
/// than keep a large buffer alive.
pub(super) fn share(data: &[u8], backing: Option<&Bytes>) -> Option<Bytes> {
    let backing = backing.filter(|backing| data.len() >= SHARE_MIN.max(backing.len() / 4))?;
    Some(backing.slice_ref(data))
}

impl Record {
    const LEN: u32 = 8;

    fn to_bytes(&self) -> [u8; 8] {
        (u64::from(self.sn.0) << 32 | u64::from(self.len)).to_ne_bytes()
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    fn from_bytes(bytes: [u8; 8]) -> Self {
        let word = u64::from_ne_bytes(bytes);
        Self { sn: Sn((word >> 32) as u32), len: word as u32 }
    }
}
