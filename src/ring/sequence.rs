//! What is remembered of the newest packets, by their numbers.

use crate::seq::Seq16;

/// Values keyed by packet number, of the newest `size` numbers. A value is found by its number
/// modulo the capacity, never by a search.
///
/// The newest number moves on when a newer one is inserted, and every value that thereby gets too
/// old is let go of: so nothing from before a wrap of the numbers comes alive again, however many
/// packets were lost in between.
#[derive(Clone, Debug)]
pub struct SequenceBuffer<T> {
    /// None, or a power of two of them, `size` at least. All outside of the window are empty.
    slots: Box<[Option<T>]>,
    size: u16,
    newest: Option<Seq16>,
}

impl<T> SequenceBuffer<T> {
    /// Most numbers that can be remembered: beyond, older and newer cannot be told apart.
    pub const SIZE_MAX: u16 = 1 << 15;

    /// An empty buffer of the newest `size` numbers, taken as 1 when it is 0 and as
    /// [`SIZE_MAX`](Self::SIZE_MAX) when it is more. It owns no memory yet.
    #[must_use]
    pub fn new(size: u16) -> Self {
        Self { slots: Box::default(), size: size.clamp(1, Self::SIZE_MAX), newest: None }
    }

    /// How many numbers are remembered.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// The newest number so far, whether a value is held there or not.
    #[inline]
    #[must_use]
    pub const fn newest(&self) -> Option<Seq16> {
        self.newest
    }

    /// Whether `seq` is too old to be remembered: it is not among the newest and not newer.
    #[inline]
    #[must_use]
    pub fn is_stale(&self, seq: Seq16) -> bool {
        self.newest.is_some_and(|newest| !newest.is_before(seq) && !self.is_in_window(seq))
    }

    /// The value held at `seq`.
    #[inline]
    #[must_use]
    pub fn get(&self, seq: Seq16) -> Option<&T> {
        if !self.is_in_window(seq) {
            return None;
        }
        self.slots.get(self.index(seq))?.as_ref()
    }

    /// The value held at `seq`, to change.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, seq: Seq16) -> Option<&mut T> {
        if !self.is_in_window(seq) {
            return None;
        }
        let index = self.index(seq);
        self.slots.get_mut(index)?.as_mut()
    }

    /// Holds `value` at `seq`. Returns what was held there, or the refused value when `seq` is
    /// [stale](Self::is_stale).
    #[inline]
    pub fn insert(&mut self, seq: Seq16, value: T) -> Option<T> {
        self.advance(seq, drop);
        if !self.is_in_window(seq) {
            return Some(value);
        }
        if self.slots.is_empty() {
            self.slots = std::iter::repeat_with(|| None).take(self.size.next_power_of_two().into()).collect();
        }
        let index = self.index(seq);
        self.slots.get_mut(index)?.replace(value)
    }

    /// Takes the value held at `seq`.
    #[inline]
    pub fn remove(&mut self, seq: Seq16) -> Option<T> {
        if !self.is_in_window(seq) {
            return None;
        }
        let index = self.index(seq);
        self.slots.get_mut(index)?.take()
    }

    /// Makes `seq` the newest number if it is newer; `each` gets the values that are too old then,
    /// the oldest first.
    #[inline]
    pub fn advance(&mut self, seq: Seq16, mut each: impl FnMut(T)) {
        let Some(newest) = self.newest else {
            self.newest = Some(seq);
            return;
        };
        if !newest.is_before(seq) {
            return;
        }
        let ahead = seq.0.wrapping_sub(newest.0);
        for offset in 0..ahead.min(self.size) {
            let index = self.index(self.oldest(newest).add(offset));
            if let Some(value) = self.slots.get_mut(index).and_then(Option::take) {
                each(value);
            }
        }
        self.newest = Some(seq);
    }

    pub(crate) const fn memory(&self) -> usize {
        self.slots.len() * size_of::<Option<T>>()
    }

    /// The values held, in no order; looks at every slot.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// Forgets all values and the newest number, and gives the memory back.
    pub fn reset(&mut self) {
        *self = Self { slots: Box::default(), newest: None, ..*self };
    }

    /// Forgets all values and the newest number; keeps the memory.
    pub fn clear(&mut self) {
        if self.newest.take().is_some() {
            self.slots.fill_with(|| None);
        }
    }

    #[inline]
    fn is_in_window(&self, seq: Seq16) -> bool {
        self.newest.is_some_and(|newest| seq.offset_in(self.oldest(newest), self.size).is_some())
    }

    /// The oldest number remembered.
    #[inline]
    const fn oldest(&self, newest: Seq16) -> Seq16 {
        newest.sub(self.size - 1)
    }

    #[inline]
    const fn index(&self, seq: Seq16) -> usize {
        seq.0 as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_unused_buffer_owns_no_memory() {
        assert!(SequenceBuffer::<u64>::new(1024).slots.is_empty());
    }

    /// At 99 % loss whole stretches of slots are not written between two wraps.
    #[test]
    fn nothing_from_before_a_wrap_comes_alive_again() {
        for size in [64, 300] {
            let (mut buffer, mut random) = (SequenceBuffer::new(size), 1u32);
            let mut arrived = Vec::new();
            for number in 0..20 * (1 << 16) {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let seq = Seq16(u16::try_from(number & 0xffff).unwrap());
                if random < u32::MAX / 100 {
                    buffer.insert(seq, number);
                    arrived.push(number);
                } else if number % 512 == 0 {
                    let in_window =
                        arrived.iter().rev().take_while(|old| arrived.last().unwrap() - **old < size.into());
                    assert_eq!(buffer.slots.iter().flatten().count(), in_window.count());
                }
                let held = buffer.get(seq);
                assert!(held.is_none_or(|held| *held == number), "{held:?} at {number}");
            }
            assert!(arrived.len() > 12_000, "20 wraps");
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        /// So many numbers after the newest, or before it.
        Insert(i32),
        Remove(i32),
        Advance(i32),
        Clear,
    }

    /// Mostly near by; else anywhere within the half that is newer, or older.
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
        fn it_is_a_map_of_the_newest_numbers(
            size in prop_oneof![40 => 1..200u16, 1 => Just(1 << 15)],
            start: u16,
            ops in prop::collection::vec(op(), 1..300),
        ) {
            let mut buffer = SequenceBuffer::new(size);
            let mut model = BTreeMap::new();
            let (mut newest, mut any) = (1_000_000 + i64::from(start), false);
            let seq = |number: i64| Seq16(u16::try_from(number & 0xffff).unwrap());
            for (value, op) in ops.into_iter().enumerate() {
                let (Op::Insert(offset) | Op::Remove(offset) | Op::Advance(offset)) = op else {
                    buffer.clear();
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
                    _ => prop_assert_eq!(buffer.insert(seq(number), value), model.insert(number, value)),
                }
                prop_assert_eq!(buffer.newest(), any.then(|| seq(newest)));
                prop_assert_eq!(buffer.slots.iter().flatten().count(), model.len());
                prop_assert!(model.iter().all(|(number, value)| buffer.get(seq(*number)) == Some(value)));
            }
        }
    }
}
