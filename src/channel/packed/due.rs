//! Which stored messages are due. Finding the first takes a few steps, however many are stored.

use crate::seq::Seq16;

/// A set of ids of the newest messages. Two ids never differ by a multiple of its size.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// A bit for each id, modulo their number, which is a power of two. Created for the first id.
    words: Box<[u64]>,
    /// A bit for each word that is not 0.
    any: [u64; WORDS_MAX / 64],
    count: u16,
}

impl Due {
    /// Adds an id. `size`: the ids in the set differ by less.
    pub(super) fn insert(&mut self, id: Seq16, size: u16) {
        if self.words.is_empty() {
            let words = usize::from(size).next_power_of_two().div_ceil(64).min(WORDS_MAX);
            self.words = vec![0; words].into();
        }
        let (word, bit) = self.place(id);
        if let Some(bits) = self.words.get_mut(word).filter(|bits| **bits & bit == 0) {
            *bits |= bit;
            self.count += 1;
            self.note(word, true);
        }
    }

    pub(super) fn remove(&mut self, id: Seq16) {
        let (word, bit) = self.place(id);
        if let Some(bits) = self.words.get_mut(word).filter(|bits| **bits & bit != 0) {
            *bits &= !bit;
            self.count -= 1;
            if *bits == 0 {
                self.note(word, false);
            }
        }
    }

    /// The first id from `id` on that is in the set.
    pub(super) fn first_from(&self, id: Seq16) -> Option<Seq16> {
        if self.count == 0 {
            return None;
        }
        let (word, bit) = self.place(id);
        let rest = self.words.get(word)? & !(bit - 1);
        let (word, bits) = if rest != 0 {
            (word, rest)
        } else {
            let word = self.word_after(word)?;
            (word, *self.words.get(word)?)
        };
        let bits = if rest == 0 && word == self.place(id).0 { bits & (bit - 1) } else { bits };
        let slot = u16::try_from(64 * word).ok()? + u16::try_from(bits.trailing_zeros()).ok()?;
        let ids = u16::try_from(64 * self.words.len()).ok()?;
        Some(id.add(slot.wrapping_sub(id.0) & (ids - 1)))
    }

    pub(super) const fn memory(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// The next word that is not 0, which may be the same one if there is no other.
    fn word_after(&self, word: usize) -> Option<usize> {
        let (group, bit) = (word / 64, word % 64);
        let after = |any: u64| if bit == 63 { 0 } else { any & (u64::MAX << (bit + 1)) };
        let first = |group: usize, any: u64| (any != 0).then(|| 64 * group + any.trailing_zeros() as usize);
        first(group, after(*self.any.get(group)?)).or_else(|| {
            let groups = self.any.len();
            (1..=groups)
                .map(|step| (group + step) % groups)
                .find_map(|group| first(group, *self.any.get(group)?))
        })
    }

    fn note(&mut self, word: usize, is_used: bool) {
        if let Some(any) = self.any.get_mut(word / 64) {
            let bit = 1 << (word % 64);
            *any = if is_used { *any | bit } else { *any & !bit };
        }
    }

    fn place(&self, id: Seq16) -> (usize, u64) {
        let slot = usize::from(id.0) & (64 * self.words.len()).wrapping_sub(1);
        (slot / 64, 1 << (slot % 64))
    }
}

/// Words for the most messages that a channel may store.
const WORDS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_finds_what_a_set_model_finds(size in 1..=1u16 << 14, start: u16, steps in prop::collection::vec((any::<bool>(), any::<u16>(), any::<u16>()), 1..200)) {
            let (mut due, mut model) = (Due::default(), BTreeSet::new());
            for (is_new, at, from) in steps {
                let (at, from) = (at % size, from % size);
                if is_new {
                    due.insert(Seq16(start).add(at), size);
                    model.insert(at);
                } else {
                    due.remove(Seq16(start).add(at));
                    model.remove(&at);
                }
                prop_assert_eq!(usize::from(due.count), model.len());
                let found = due.first_from(Seq16(start).add(from)).map(|id| id.0.wrapping_sub(start));
                let ahead = model.range(from..).next().copied();
                prop_assert_eq!(found.filter(|at| *at >= from && *at < size), ahead, "from {} of {:?}", from, model);
            }
        }
    }
}
