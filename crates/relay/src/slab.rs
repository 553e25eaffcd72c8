//! Things with numbers of 30 bits. A number is not given again before its place was used 1,000 times.

/// 20 bits say which place, 10 how often it was used.
const PLACE_BITS: u32 = 20;
const USES: u32 = 1 << 10;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    /// The first free place; each has the next one.
    free: Option<u32>,
    len: usize,
    most: usize,
    /// How often a new place counts as used: nobody can tell the numbers of one relay from those of another.
    first_use: u32,
    /// Where the next look for what is old begins.
    looked: usize,
}

#[derive(Debug)]
enum Place<T> {
    Used { uses: u32, thing: T },
    Free { uses: u32, next: Option<u32> },
}

impl<T> Slab<T> {
    /// Room for `most`, up to 2^20.
    pub(crate) fn new(most: usize, first_use: u32) -> Self {
        let most = most.min(1 << PLACE_BITS);
        Self { places: Vec::new(), free: None, len: 0, most, first_use: first_use % USES, looked: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// `None`: there is no room.
    pub(crate) fn insert(&mut self, thing: T) -> Option<u32> {
        if self.len >= self.most {
            return None;
        }
        let index = self.free.unwrap_or(u32::try_from(self.places.len()).ok()?);
        let mut uses = self.first_use;
        match self.places.get_mut(index as usize) {
            Some(place) => {
                if let Place::Free { uses: before, next } = *place {
                    (uses, self.free) = ((before + 1) % USES, next);
                }
                *place = Place::Used { uses, thing };
            }
            None => self.places.push(Place::Used { uses, thing }),
        }
        self.len += 1;
        Some(uses << PLACE_BITS | index)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.places.get_mut(place(number))? {
            Place::Used { uses, thing } if *uses == number >> PLACE_BITS => Some(thing),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        self.get_mut(number)?;
        let free = Place::Free { uses: number >> PLACE_BITS, next: self.free };
        let was = std::mem::replace(self.places.get_mut(place(number))?, free);
        self.free = u32::try_from(place(number)).ok();
        self.len -= 1;
        match was {
            Place::Used { thing, .. } => Some(thing),
            Place::Free { .. } => None,
        }
    }

    /// Looks at the next `count` places, all around, and returns the number of one that `is_old`.
    pub(crate) fn next_old(&mut self, count: &mut usize, is_old: impl Fn(&T) -> bool) -> Option<u32> {
        while *count > 0 && !self.places.is_empty() {
            *count -= 1;
            self.looked = (self.looked + 1) % self.places.len();
            if let Some(Place::Used { uses, thing }) = self.places.get(self.looked)
                && is_old(thing)
            {
                return Some(uses << PLACE_BITS | u32::try_from(self.looked).ok()?);
            }
        }
        None
    }

    /// Places that were ever used: how many [`next_old`](Self::next_old) has to look at.
    pub(crate) const fn places(&self) -> usize {
        self.places.len()
    }
}

const fn place(number: u32) -> usize {
    (number & ((1 << PLACE_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_given_again_before_its_place_was_used_1000_times() {
        let mut slab = Slab::new(2, 7);
        let (a, first) = (slab.insert('a').unwrap(), slab.insert('b').unwrap());
        assert!(slab.insert('c').is_none(), "there is no room");
        let mut last = first;
        for _ in 1..USES {
            assert_eq!(slab.remove(last), Some('b'));
            assert_eq!((slab.remove(last), slab.get_mut(last)), (None, None));
            last = slab.insert('b').unwrap();
            assert!(last != first && last < 1 << 31 && slab.get_mut(first).is_none());
        }
        assert_eq!(slab.remove(last), Some('b'));
        assert_eq!(slab.insert('d'), Some(first));
        assert_eq!((slab.get_mut(a).copied(), slab.len(), slab.places()), (Some('a'), 2, 2));
    }

    #[test]
    fn a_look_all_around_finds_all_that_are_old() {
        let mut slab = Slab::new(100, 7);
        let numbers: Vec<_> = (0..100).map(|thing| slab.insert(thing).unwrap()).collect();
        let (mut count, mut found) = (100, Vec::new());
        while let Some(old) = slab.next_old(&mut count, |thing| thing % 3 == 0) {
            found.push(old);
            slab.remove(old);
        }
        found.sort_unstable();
        assert_eq!(found, numbers.into_iter().step_by(3).collect::<Vec<_>>());
        assert_eq!((count, slab.len()), (0, 66));
    }
}
