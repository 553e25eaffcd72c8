//! Reads values from bits.

use super::{Int, MAX_DEPTH, NEAR, Owned, bits_of, float_steps, in_span, part, to_f32, to_u32};
use crate::message::BitsError;
use std::ops::{Range, RangeInclusive};

/// Reads values from bytes that [`BitWriter`](super::BitWriter) packed, and refuses those out of range.
///
/// Each method reads one field. All of them return a [`BitsError`] if the bits end or a value is out of range.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// The bytes that were not looked at yet.
    rest: &'a [u8],
    /// The next bits, the first one lowest.
    scratch: u64,
    held: u32,
    /// Bits not read yet.
    left: usize,
    depth: u32,
    owned: Owned,
    /// Position of the message that is being read.
    start: usize,
}

#[expect(clippy::missing_errors_doc, reason = "the type says it for all of them")]
impl<'a> BitReader<'a> {
    /// A reader of all bits of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            rest: bytes,
            scratch: 0,
            held: 0,
            left: 8 * bytes.len(),
            depth: 0,
            owned: Owned::NOTHING,
            start: 0,
        }
    }

    /// A reader of the first `bits` bits, or of all of them if there are fewer.
    #[must_use]
    pub fn with_limit(bytes: &'a [u8], bits: usize) -> Self {
        let reader = Self::new(bytes);
        Self { left: reader.left.min(bits), ..reader }
    }

    /// Bits read.
    #[must_use]
    #[inline]
    pub const fn position(&self) -> usize {
        8 * (self.bytes.len() - self.rest.len()) - self.held as usize
    }

    /// Bits not read yet.
    #[must_use]
    #[inline]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Ends reading: what is left must be the padding of the last byte.
    ///
    /// # Errors
    ///
    /// There is more, or it is not zero.
    pub fn finish(mut self) -> Result<(), BitsError> {
        let padding = (self.position().wrapping_neg() % 8).min(self.left);
        let found = self.raw(part(padding, 8))?;
        if found != 0 {
            return Err(BitsError::Padding { found: low(found) });
        }
        if self.left == 0 { Ok(()) } else { Err(BitsError::Trailing { left: self.left }) }
    }

    /// A number of `count` bits, 0 to 64.
    #[inline]
    pub fn raw(&mut self, count: u32) -> Result<u64, BitsError> {
        if count == 0 {
            return Ok(0);
        }
        let mask = u64::MAX.checked_shr(64u32.wrapping_sub(count)).ok_or(BitsError::Bounds)?;
        self.take_left(count as usize)?;
        Ok(self.pull(count) & mask)
    }

    /// One bit.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, BitsError> {
        Ok(self.raw(1)? == 1)
    }

    /// An integer within `range`.
    #[inline]
    pub fn int<T: Int>(&mut self, range: RangeInclusive<T>) -> Result<T, BitsError> {
        let (min, max) = range.into_inner();
        if min > max {
            return Err(BitsError::Bounds);
        }
        let span = max.offset_from(min);
        let offset = self.raw(bits_of(span))?;
        in_span(offset, span)?;
        Ok(T::at_offset(min, offset))
    }

    /// Any 64 bits.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, BitsError> {
        self.raw(u64::BITS)
    }

    /// A number within `range`: one of evenly spread values that are at most `resolution` apart.
    #[inline]
    pub fn float(&mut self, range: RangeInclusive<f32>, resolution: f32) -> Result<f32, BitsError> {
        let (min, max) = range.into_inner();
        let (low, width, steps) = float_steps(min, max, resolution)?;
        let step = self.int(0..=to_u32(steps))?;
        Ok(to_f32(low + width * f64::from(step) / steps).clamp(min, max))
    }

    /// Fills `into` with bytes. Both ends know how many.
    pub fn bytes(&mut self, into: &mut [u8]) -> Result<(), BitsError> {
        let start = self.position();
        self.skip(into.len().saturating_mul(8))?;
        shifted(self.bytes.get(start / 8..).unwrap_or_default(), start % 8, into);
        Ok(())
    }

    /// Up to `max` bytes, after their length.
    pub fn byte_vec(&mut self, max: usize) -> Result<Vec<u8>, BitsError> {
        let len = self.len(max)?;
        let mut value = vec![0; len];
        self.bytes(&mut value)?;
        Ok(value)
    }

    /// A UTF-8 string of up to `max` bytes, after its length.
    pub fn string(&mut self, max: usize) -> Result<String, BitsError> {
        String::from_utf8(self.byte_vec(max)?).map_err(|_| BitsError::Utf8)
    }

    /// Up to `max` items, after their number. `each` reads an item. Allocates memory as items are read, not by their
    /// number. They [count](Self::own) for what a message may own.
    pub fn list<T>(
        &mut self,
        max: usize,
        mut each: impl FnMut(&mut Self) -> Result<T, BitsError>,
    ) -> Result<Vec<T>, BitsError> {
        let len = self.int(0..=max)?;
        self.nested(|from| {
            let mut items = Vec::new();
            for _ in 0..len {
                let before = from.left;
                let item = each(from)?;
                if from.left == before {
                    return Err(BitsError::EmptyItem);
                }
                from.own(size_of::<T>())?;
                if items.len() == items.capacity() {
                    // A vector by itself would have room for four where there is one.
                    items.reserve_exact(items.len().max(FEW).min(len - items.len()));
                }
                items.push(item);
            }
            Ok(items)
        })
    }

    /// A value or none, after a bit that tells which. `some` reads the value.
    pub fn option<T>(
        &mut self,
        some: impl FnOnce(&mut Self) -> Result<T, BitsError>,
    ) -> Result<Option<T>, BitsError> {
        if self.bool()? { some(self).map(Some) } else { Ok(None) }
    }

    /// A wrapping sequence number, encoded as its distance from `base`, which both ends know.
    pub fn relative(&mut self, base: u16) -> Result<u16, BitsError> {
        for near in NEAR {
            if self.bool()? {
                return Ok(base.wrapping_add(self.int(near)?));
            }
        }
        let distance = self.int(0..=u16::MAX)?;
        if NEAR.iter().any(|near| near.contains(&distance)) {
            return Err(BitsError::NotShortest { distance });
        }
        Ok(base.wrapping_add(distance))
    }

    /// A 32-bit value that both ends know. If it differs, the ends use different types, or the bytes are damaged.
    pub fn check(&mut self, expected: u32) -> Result<(), BitsError> {
        let found = low(self.raw(u32::BITS)?);
        if found == expected { Ok(()) } else { Err(BitsError::Check { found, expected }) }
    }

    /// One of `count` kinds, numbered from 0.
    #[inline]
    pub fn kind(&mut self, count: u32) -> Result<u32, BitsError> {
        let most = count.checked_sub(1).ok_or(BitsError::Bounds)?;
        let kind = low(self.raw(bits_of(most.into()))?);
        if kind <= most { Ok(kind) } else { Err(BitsError::Kind { kind }) }
    }

    /// Skips `bits` bits.
    pub fn skip(&mut self, bits: usize) -> Result<(), BitsError> {
        let end = self.position().saturating_add(bits);
        self.take_left(bits)?;
        self.rest = self.bytes.get(end / 8..).unwrap_or_default();
        (self.scratch, self.held) = (0, 0);
        let beyond = part(end, 8);
        if beyond > 0 {
            self.pull(beyond);
        }
        Ok(())
    }

    /// Appends the bits of `range`, which are positions in this reader, to the whole bytes in `into`. The first bit
    /// becomes the lowest of its byte, and zeros pad the last byte.
    ///
    /// # Errors
    ///
    /// [`BitsError::Truncated`]: the range ends after the bytes, or before its start.
    pub fn copy(&self, range: Range<usize>, into: &mut Vec<u8>) -> Result<(), BitsError> {
        let Range { start, end } = range;
        let all = 8 * self.bytes.len();
        let bits = end.checked_sub(start).filter(|_| end <= all);
        let bits = bits.ok_or(BitsError::Truncated { need: end, left: all })?;
        let old = into.len();
        into.resize(old + bits.div_ceil(8), 0);
        let new = into.get_mut(old..).unwrap_or_default();
        shifted(self.bytes.get(start / 8..).unwrap_or_default(), start % 8, new);
        if bits % 8 > 0
            && let Some(last) = new.last_mut()
        {
            *last &= 0xff >> (8 - bits % 8);
        }
        Ok(())
    }

    /// Calls `inner` one level deeper. Types that can contain themselves must read their contents with this, as [`Box`]
    /// and [`Vec`] do, so that bytes from a peer cannot overflow the stack.
    ///
    /// # Errors
    ///
    /// It is deeper than [`MAX_DEPTH`], or `inner` has failed.
    pub fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, BitsError>,
    ) -> Result<T, BitsError> {
        if self.depth == MAX_DEPTH {
            return Err(BitsError::Depth { max: MAX_DEPTH });
        }
        self.depth += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }

    /// Counts `bytes` of the heap that the value owns beyond those it was read from. [`list`](Self::list) and `Box` do
    /// it; whoever allocates in `unpack` by other means must do it as well, and count the same when writing, with
    /// [`BitWriter::own`](super::BitWriter::own).
    ///
    /// # Errors
    ///
    /// [`BitsError::Memory`]: it is more than [`OWNED_START`](super::OWNED_START), and
    /// [`OWNED_PER_BIT`](super::OWNED_PER_BIT) for each bit that was read.
    #[inline]
    pub fn own(&mut self, bytes: usize) -> Result<(), BitsError> {
        if self.owned.is_beyond_start(bytes) {
            return self.owned.check(self.position() - self.start);
        }
        Ok(())
    }

    /// A reader at the same position, where a message begins.
    pub(crate) fn at_message(&self) -> Self {
        Self { owned: Owned::NOTHING, start: self.position(), ..self.clone() }
    }

    /// How many bytes follow, at most `max`. They are there.
    fn len(&mut self, max: usize) -> Result<usize, BitsError> {
        let len = self.int(0..=max)?;
        let (need, left) = (len.saturating_mul(8), self.left);
        if need > left { Err(BitsError::Truncated { need, left }) } else { Ok(len) }
    }

    #[inline]
    fn take_left(&mut self, need: usize) -> Result<(), BitsError> {
        let left = self.left;
        self.left = left.checked_sub(need).ok_or(BitsError::Truncated { need, left })?;
        Ok(())
    }

    /// The next `count` bits, 1 to 64, with others above them. They are there.
    #[inline]
    fn pull(&mut self, count: u32) -> u64 {
        if count <= self.held {
            let value = self.scratch;
            self.held -= count;
            self.scratch = value >> 1 >> (count - 1); // shifted twice, because shifting by 64 at once is not possible
            return value;
        }
        let (word, have) = self.next_word();
        let (value, taken) = (self.scratch | word << self.held, count - self.held);
        self.scratch = word >> 1 >> (taken - 1);
        self.held = have.wrapping_sub(taken);
        value
    }

    /// The next 64 bits, or the last ones, and their number.
    #[inline]
    fn next_word(&mut self) -> (u64, u32) {
        if let Some((word, rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return (u64::from_le_bytes(*word), 64);
        }
        self.last_word()
    }

    #[cold]
    fn last_word(&mut self) -> (u64, u32) {
        let (mut word, mut have) = (0, 0);
        for byte in std::mem::take(&mut self.rest) {
            word |= u64::from(*byte) << have;
            have += 8;
        }
        (word, have)
    }
}

/// Items for which a list has room at first, if it has as many.
const FEW: usize = 4;

/// Fills `into` with the bits of `bytes` from the bit number `shift`, 0 to 7, on, and then zeros.
fn shifted(bytes: &[u8], shift: usize, into: &mut [u8]) {
    if shift == 0 {
        into.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        return;
    }
    let (words, rest) = into.as_chunks_mut();
    for (to, from) in words.iter_mut().zip(bytes.windows(9).step_by(8)) {
        if let ([word, ..], [.., next]) = (from.as_chunks().0, from) {
            *to = (u64::from_le_bytes(*word) >> shift | u64::from(*next) << (64 - shift)).to_le_bytes();
        }
    }
    // The last words, for which there are no 9 bytes, and the remaining bytes.
    let done = words.len().min(bytes.len().saturating_sub(1) / 8);
    let late = words.get_mut(done..).unwrap_or_default().as_flattened_mut().iter_mut().chain(rest);
    let from = bytes.get(8 * done..).unwrap_or_default();
    let next = from.iter().skip(1).chain(std::iter::once(&0));
    for (to, (from, next)) in late.zip(from.iter().zip(next)) {
        *to = from >> shift | next << (8 - shift);
    }
}

/// The lower half of a value without an upper half.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 32 bits")]
const fn low(value: u64) -> u32 {
    value as u32
}
