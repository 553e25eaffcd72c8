//! Values kept for the newest packets, by packet number.

use super::Ring;
use crate::seq::{Seq16, Sn};

/// Values keyed by packet number, for the newest `size` numbers. A value is found by its number modulo the
/// capacity, never by a search.
///
/// Inserting a newer number makes it the newest, and every value that becomes too old is dropped. So no value
/// from before the numbers wrapped ever reappears, however many packets were lost in between.
///
/// The memory grows with the distance from the oldest value held to the newest, up to `size` places.
#[derive(Clone, Debug)]
pub struct SequenceBuffer<T> {
    /// Starts at the oldest value. The low 16 bits of its numbers are the packet's.
    ring: Ring<T>,
    /// Follows the newest number.
    end: Sn,
    size: u16,
    /// Whether there is a newest number.
    is_used: bool,
}

impl<T> SequenceBuffer<T> {
    /// Most numbers that can be remembered: with more, older and newer numbers could not be told apart.
    pub const SIZE_MAX: u16 = 1 << 15;

    /// Creates an empty buffer for the newest `size` numbers, which is clamped to 1 to
    /// [`SIZE_MAX`](Self::SIZE_MAX). It allocates nothing yet.
    #[must_use]
    pub fn new(size: u16) -> Self {
        Self { ring: Ring::new(Sn(0)), end: Sn(0), size: size.clamp(1, Self::SIZE_MAX), is_used: false }
    }

    /// How many of the newest numbers are remembered.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// The newest number so far, whether or not a value is held there.
    #[inline]
    #[must_use]
    pub const fn newest(&self) -> Option<Seq16> {
        if self.is_used { Some(low(self.end).sub(1)) } else { None }
    }

    /// The oldest value held.
    #[inline]
    #[must_use]
    pub fn oldest(&self) -> Option<&T> {
        self.ring.get(self.ring.start())
    }

    /// Whether `seq` is too old to be remembered.
    #[inline]
    #[must_use]
    pub fn is_stale(&self, seq: Seq16) -> bool {
        self.newest().is_some_and(|newest| !newest.is_before(seq) && self.sn(seq).is_none())
    }

    /// The value held at `seq`.
    #[inline]
    #[must_use]
    pub fn get(&self, seq: Seq16) -> Option<&T> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        self.ring.get(self.sn(seq)?)
    }

    /// The value held at `seq`, mutable.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, seq: Seq16) -> Option<&mut T> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        self.ring.get_mut(self.sn(seq)?)
    }

    /// Stores `value` at `seq`. Returns the value it replaces, or `value` itself if `seq` is
    /// [stale](Self::is_stale).
    #[inline]
    pub fn insert(&mut self, seq: Seq16, value: T) -> Option<T> {
        self.advance(seq, drop);
        let Some(sn) = self.sn(seq) else { return Some(value) };
        if self.ring.span() == 0 {
            self.ring.restart(sn);
        } else if sn.is_before(self.ring.start()) {
            self.ring.reach_back(sn);
        }
        self.ring.insert(sn, value)
    }

    /// Removes and returns the value held at `seq`.
    #[inline]
    pub fn remove(&mut self, seq: Seq16) -> Option<T> {
        let removed = self.ring.remove(self.sn(seq)?);
        self.ring.trim();
        removed
    }

    /// Makes `seq` the newest number if it is newer. Passes the values that become too old to `each`, oldest
    /// first.
    #[inline]
    pub fn advance(&mut self, seq: Seq16, mut each: impl FnMut(T)) {
        let ahead = seq.0.wrapping_sub(low(self.end).0).wrapping_add(1);
        if self.newest().is_some_and(|newest| !newest.is_before(seq)) {
            return;
        }
        self.is_used = true;
        self.end = self.end.add(ahead.into());
        let start = self.end.sub(self.size.into());
        while self.ring.span() > 0 && self.ring.start().is_before(start) {
            self.ring.pop_front().into_iter().for_each(&mut each);
            self.ring.trim();
        }
    }

    /// Drops the values before `seq`.
    #[inline]
    pub(crate) fn forget_before(&mut self, seq: Seq16) {
        let Some(start) = self.sn(seq) else { return };
        while self.ring.span() > 0 && self.ring.start().is_before(start) {
            self.ring.pop_front();
            self.ring.trim();
        }
    }

    pub(crate) const fn memory(&self) -> usize {
        self.ring.memory()
    }

    /// Bytes of memory to add for `span` numbers from the oldest value to the newest.
    pub(crate) fn growth(&self, span: u16) -> usize {
        self.ring.growth(span.min(self.size).into())
    }

    /// The values held, in no particular order. Visits every slot.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.ring.values()
    }

    /// Clears all values and the newest number, and frees the memory.
    pub fn reset(&mut self) {
        *self = Self::new(self.size);
    }

    /// Where in the ring `seq` is, if it is remembered.
    #[inline]
    fn sn(&self, seq: Seq16) -> Option<Sn> {
        let age = self.newest()?.0.wrapping_sub(seq.0);
        (age < self.size).then(|| self.end.sub(u32::from(age) + 1))
    }
}

/// The packet number in the low bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
const fn low(sn: Sn) -> Seq16 {
    Seq16(sn.0 as u16)
}

#[cfg(test)]
thread_local! {
    /// How often a value was looked up.
    pub(crate) static LOOKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Op {
        /// At this distance after the newest number, or before it.
        Insert(i32),
        Remove(i32),
        Advance(i32),
        Clear,
    }

    /// Mostly nearby; otherwise anywhere in the newer or the older half of the range.
    fn op() -> impl Strategy<Value = Op> {
        let near = -150..150i32;
        let far = -(1 << 15) + 1..=1 << 15i32;
        prop_oneof![
            12 => near.clone().prop_map(Op::Insert),
            3 => far.clone().prop_map(Op::Insert),
            4 => near.prop_map(Op::Remove),
            1 => far.prop_map(Op::Advance),
            1 => Just(Op::Clear),
        ]
    }

    proptest! {
        /// The model keeps numbers that do not wrap.
        #[test]
        fn the_buffer_is_a_map_of_the_newest_numbers(
            size in prop_oneof![40 => 1..200u16, 1 => Just(1 << 15)],
            start: u16,
            ops in prop::collection::vec(op(), 1..if cfg!(miri) { 30 } else { 300 }),
        ) {
            let mut buffer = SequenceBuffer::new(size);
            let mut model = BTreeMap::new();
            let (mut newest, mut any) = (1_000_000 + i64::from(start), false);
            let seq = |number: i64| Seq16(u16::try_from(number & 0xffff).unwrap());
            for (value, op) in ops.into_iter().enumerate() {
                let (Op::Insert(offset) | Op::Remove(offset) | Op::Advance(offset)) = op else {
                    buffer.reset();
                    model.clear();
                    any = false;
                    continue;
                };
                let number = newest + i64::from(offset);
                let before = model.clone();
                if !matches!(op, Op::Remove(_)) {
                    newest = if any { newest.max(number) } else { number };
                    any = true;
                }
                model.retain(|number, _| newest - number < i64::from(size));
                let stale = newest - number >= i64::from(size);
                match op {
                    Op::Remove(_) => prop_assert_eq!(buffer.remove(seq(number)), model.remove(&number)),
                    Op::Advance(_) => {
                        let mut gone = Vec::new();
                        buffer.advance(seq(number), |value| gone.push(value));
                        let old = before.into_iter().filter(|(number, _)| !model.contains_key(number));
                        prop_assert_eq!(gone, old.map(|(_, value)| value).collect::<Vec<_>>());
                    }
                    _ if stale => {
                        prop_assert!(buffer.is_stale(seq(number)));
                        prop_assert_eq!(buffer.insert(seq(number), value), Some(value));
                    }
                    _ => {
                        let oldest = model.keys().next().map_or(number, |oldest| *oldest.min(&number));
                        let span = u16::try_from(newest - oldest + 1).unwrap();
                        let grown = buffer.memory() + buffer.growth(span);
                        prop_assert_eq!(buffer.insert(seq(number), value), model.insert(number, value));
                        prop_assert!(buffer.memory() <= grown, "{} of {}", buffer.memory(), grown);
                    }
                }
                prop_assert_eq!(buffer.newest(), any.then(|| seq(newest)));
                prop_assert_eq!(buffer.values().count(), model.len());
                prop_assert_eq!(buffer.oldest(), model.values().next());
                let span = model.keys().next().map_or(0, |oldest| newest - oldest + 1);
                prop_assert!(i64::from(buffer.ring.span()) <= span, "{} places", buffer.ring.span());
                prop_assert!(model.iter().all(|(number, value)| buffer.get(seq(*number)) == Some(value)));
            }
        }
    }
}
