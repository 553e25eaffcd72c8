//! Writes values as bits.

use super::{Int, MAX_DEPTH, NEAR, Owned, bits_of, float_steps, in_span, part, to_u32};
use crate::message::BitsError;
use std::ops::RangeInclusive;

/// Packs values into bytes that it owns. The first bit is the lowest of the first byte.
///
/// Each method writes one field; docs/WIRE.md describes the encodings. All of them return a [`BitsError`] if a value is
/// out of range or there is no room for it. What was written before stays.
#[derive(Clone, Debug)]
pub struct BitWriter {
    /// The bytes written, and room after them.
    bytes: Vec<u8>,
    /// Bytes written, whole words of 8.
    at: usize,
    /// Bits that are not in `bytes` yet, the first one lowest; fewer than 64.
    scratch: u64,
    held: u32,
    /// Bits that can still be written.
    left: usize,
    depth: u32,
    owned: Owned,
}

#[expect(clippy::missing_errors_doc, reason = "the type says it for all of them")]
impl BitWriter {
    /// A writer without a limit. It overwrites `bytes` and reuses their memory.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self::with_limit(bytes, usize::MAX)
    }

    /// Like [`new`](Self::new), with room for `bits`.
    #[must_use]
    pub const fn with_limit(bytes: Vec<u8>, bits: usize) -> Self {
        Self { bytes, at: 0, scratch: 0, held: 0, left: bits, depth: 0, owned: Owned::NOTHING }
    }

    /// Bits written.
    #[must_use]
    #[inline]
    pub const fn bits(&self) -> usize {
        8 * self.at + self.held as usize
    }

    /// Bits that can still be written.
    #[must_use]
    #[inline]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Pads the last byte with zeros and returns the bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let last = self.scratch.to_le_bytes();
        self.bytes.truncate(self.at);
        self.bytes.extend(last.iter().take(self.held.div_ceil(8) as usize));
        self.bytes
    }

    /// The lowest `count` bits of a number, 0 to 64. The others must be zero.
    #[inline]
    pub fn raw(&mut self, value: u64, count: u32) -> Result<(), BitsError> {
        if count == 0 {
            return in_span(value, 0);
        }
        in_span(value, u64::MAX.checked_shr(64u32.wrapping_sub(count)).ok_or(BitsError::Bounds)?)?;
        self.take_room(count as usize)?;
        self.push(value, count);
        Ok(())
    }

    /// One bit.
    #[inline]
    pub fn bool(&mut self, value: bool) -> Result<(), BitsError> {
        self.take_room(1)?;
        self.push(value.into(), 1);
        Ok(())
    }

    /// An integer within `range`, in as few bits as its largest offset needs: none if there is only one value.
    #[inline]
    pub fn int<T: Int>(&mut self, value: T, range: RangeInclusive<T>) -> Result<(), BitsError> {
        let (min, max) = range.into_inner();
        if min > max {
            return Err(BitsError::Bounds);
        }
        let (offset, span) = (value.offset_from(min), max.offset_from(min));
        in_span(offset, span)?;
        let count = bits_of(span);
        if count > 0 {
            self.take_room(count as usize)?;
            self.push(offset, count);
        }
        Ok(())
    }

    /// Any 64 bits.
    #[inline]
    pub fn u64(&mut self, value: u64) -> Result<(), BitsError> {
        self.raw(value, u64::BITS)
    }

    /// A number within `range`, rounded to the nearest of evenly spread values that are at most `resolution` apart.
    #[inline]
    pub fn float(
        &mut self,
        value: f32,
        range: RangeInclusive<f32>,
        resolution: f32,
    ) -> Result<(), BitsError> {
        let (min, max) = range.into_inner();
        let (low, width, steps) = float_steps(min, max, resolution)?;
        if !(min..=max).contains(&value) {
            return Err(BitsError::Float { value, min, max });
        }
        let step = to_u32((f64::from(value) - low) / width * steps);
        self.int(step, 0..=to_u32(steps))
    }

    /// Bytes. Both ends know how many.
    pub fn bytes(&mut self, value: &[u8]) -> Result<(), BitsError> {
        self.append(value, value.len().saturating_mul(8))
    }

    /// Up to `max` bytes, after their length.
    pub fn byte_vec(&mut self, value: &[u8], max: usize) -> Result<(), BitsError> {
        self.int(value.len(), 0..=max)?;
        self.bytes(value)
    }

    /// A UTF-8 string of up to `max` bytes, after its length.
    pub fn string(&mut self, value: &str, max: usize) -> Result<(), BitsError> {
        self.byte_vec(value.as_bytes(), max)
    }

    /// Up to `max` items, after their number. `each` writes an item, in at least one bit.
    pub fn list<T>(
        &mut self,
        items: &[T],
        max: usize,
        mut each: impl FnMut(&mut Self, &T) -> Result<(), BitsError>,
    ) -> Result<(), BitsError> {
        self.int(items.len(), 0..=max)?;
        self.nested(|to| {
            for item in items {
                let before = to.left;
                each(to, item)?;
                if to.left == before {
                    return Err(BitsError::EmptyItem);
                }
                to.own(size_of::<T>())?;
            }
            Ok(())
        })
    }

    /// A value or none, after a bit that tells which. `some` writes the value.
    pub fn option<T>(
        &mut self,
        value: Option<T>,
        some: impl FnOnce(&mut Self, T) -> Result<(), BitsError>,
    ) -> Result<(), BitsError> {
        self.bool(value.is_some())?;
        value.map_or(Ok(()), |value| some(self, value))
    }

    /// A wrapping sequence number, encoded as its distance from `base`, which both ends know: 1 bit for a distance of
    /// 1; 4, 7 and 12 bits for up to 5, 21 and 277; 20 bits for all others.
    pub fn relative(&mut self, value: u16, base: u16) -> Result<(), BitsError> {
        let distance = value.wrapping_sub(base);
        for near in NEAR {
            let is_near = near.contains(&distance);
            self.bool(is_near)?;
            if is_near {
                return self.int(distance, near);
            }
        }
        self.int(distance, 0..=u16::MAX)
    }

    /// A 32-bit value that both ends know. A reader that finds another value has lost its place.
    pub fn check(&mut self, expected: u32) -> Result<(), BitsError> {
        self.raw(expected.into(), u32::BITS)
    }

    /// One of `count` kinds, numbered from 0.
    #[inline]
    pub fn kind(&mut self, kind: u32, count: u32) -> Result<(), BitsError> {
        if kind >= count {
            return Err(BitsError::Kind { kind });
        }
        self.int(kind, 0..=count - 1)
    }

    /// The first `bits` bits of `bytes`, packed by another writer.
    ///
    /// # Errors
    ///
    /// There is no room for them, or `bytes` has fewer.
    pub fn append(&mut self, bytes: &[u8], bits: usize) -> Result<(), BitsError> {
        let left = bytes.len().saturating_mul(8);
        let (whole, rest) =
            bytes.split_at_checked(bits / 64 * 8).ok_or(BitsError::Truncated { need: bits, left })?;
        if bits > left {
            return Err(BitsError::Truncated { need: bits, left });
        }
        self.take_room(bits)?;
        let end = self.at + whole.len();
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        let to = self.bytes.get_mut(self.at..end).unwrap_or_default();
        if self.held == 0 {
            to.copy_from_slice(whole);
        } else {
            let (mut scratch, held) = (self.scratch, self.held);
            for (to, from) in to.as_chunks_mut().0.iter_mut().zip(whole.as_chunks().0) {
                let word = u64::from_le_bytes(*from);
                *to = (scratch | word << held).to_le_bytes();
                scratch = word >> (64 - held);
            }
            self.scratch = scratch;
        }
        self.at = end;
        let count = part(bits, 64);
        if count > 0 {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.push(u64::from_le_bytes(word) & u64::MAX >> (64 - count), count);
        }
        Ok(())
    }

    /// Calls `inner` one level deeper. Types that can contain themselves must write their contents with this, as
    /// [`Box`] and [`Vec`] do, so that no value overflows the stack of the peer.
    ///
    /// # Errors
    ///
    /// It is deeper than [`MAX_DEPTH`], or `inner` has failed.
    pub fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<(), BitsError>,
    ) -> Result<(), BitsError> {
        if self.depth == MAX_DEPTH {
            return Err(BitsError::Depth { max: MAX_DEPTH });
        }
        self.depth += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }

    /// Counts `bytes` that the value will own where it is read, so that both ends refuse it if that is too much. See
    /// [`BitReader::own`](super::BitReader::own). With pointers of 32 bits they count twice: so much is the most that the
    /// value may own at a peer with pointers of 64 bits.
    ///
    /// # Errors
    ///
    /// The same.
    #[inline]
    pub fn own(&mut self, bytes: usize) -> Result<(), BitsError> {
        let bytes = bytes.saturating_mul(AT_PEER);
        if self.owned.is_beyond_start(bytes) { self.owned.check(self.bits()) } else { Ok(()) }
    }

    #[inline]
    fn take_room(&mut self, need: usize) -> Result<(), BitsError> {
        let left = self.left;
        self.left = left.checked_sub(need).ok_or(BitsError::Full { need, left })?;
        Ok(())
    }

    /// Adds `count` bits, 1 to 64, for which there is room. The higher bits of `value` are zero.
    #[inline]
    fn push(&mut self, value: u64, count: u32) {
        self.scratch |= value << self.held;
        let end = self.held + count;
        if end >= 64 {
            self.store(self.scratch);
            // Shifted twice, because shifting by 64 at once is not possible.
            self.scratch = value >> 1 >> (63 - self.held);
        }
        self.held = end % 64;
    }
    #[inline]
    fn store(&mut self, word: u64) {
        if let Some(to) = self.bytes.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut) {
            *to = word.to_le_bytes();
        } else {
            // Passed by value: a reference would keep the whole writer out of registers.
            self.bytes = grown(std::mem::take(&mut self.bytes), self.at, word);
        }
        self.at += 8;
    }
}

/// The first `at` of these bytes with `word` after them, and as much room after that.
#[cold]
#[inline(never)]
fn grown(mut bytes: Vec<u8>, at: usize, word: u64) -> Vec<u8> {
    bytes.truncate(at);
    bytes.extend_from_slice(&word.to_le_bytes());
    bytes.resize((2 * bytes.len()).max(64), 0);
    bytes
}

/// How often bytes count that a value will own where it is read: see [`BitWriter::own`].
const AT_PEER: usize = if usize::BITS < 64 { 2 } else { 1 };
