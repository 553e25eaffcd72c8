//! Packet numbers, and the replay window that accepts each of them once. A number has 64 bits; a packet
//! carries the low 32. Source: RFC 4303 section 3.4.3, RFC 6479.

/// Tracks which of the newest [`WINDOW`] packet numbers were received.
///
/// Call [`check`](Self::check) first, which is cheap; then authenticate the packet; and only then call
/// [`mark`](Self::mark). So a packet that anybody could have sent changes nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReplayWindow {
    newest: Option<u64>,
    came: Came,
}

/// A ring: the bit at `pn` modulo its length says whether `pn` was received, for numbers in the window. Other
/// bits are 0.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Came {
    All(Box<[u64; WORDS]>),
    /// While the window rests.
    Few(u64),
}

errors! {
    /// Why a packet number is rejected.
    Replayed {
        "the packet number is a duplicate" Duplicate,
        "the packet number is too old" Stale,
    }
}

impl Default for Came {
    fn default() -> Self {
        Self::All(Box::default())
    }
}

impl ReplayWindow {
    /// Shrinks the window to the newest 64 numbers and frees its memory, for a peer that sends little. Older
    /// numbers are stale from now on.
    pub(super) fn rest(&mut self) {
        let Came::All(_) = self.came else { return };
        let newest = self.newest.unwrap_or_default();
        let came = |age: &u64| newest.checked_sub(*age).is_some_and(|pn| self.has(pn));
        let few = (0..FEW).filter(came).fold(0, |few, age| few | 1 << ((newest - age) % FEW));
        self.came = Came::Few(few);
    }

    /// Extends the window to [`WINDOW`] numbers again. Numbers not tracked meanwhile count as received.
    pub(super) fn wake(&mut self) {
        let Came::Few(few) = self.came else { return };
        self.came = Came::All(Box::default());
        let Some(newest) = self.newest else { return };
        for pn in newest.saturating_sub(WINDOW - 1)..=newest {
            self.set(pn, newest - pn >= FEW || few & 1 << (pn % FEW) != 0);
        }
    }

    pub(super) const fn memory(&self) -> usize {
        match self.came {
            Came::All(_) => 8 * WORDS,
            Came::Few(_) => 0,
        }
    }

    const fn reach(&self) -> u64 {
        match self.came {
            Came::All(_) => WINDOW,
            Came::Few(_) => FEW,
        }
    }

    /// The highest number received.
    #[must_use]
    pub const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Checks whether `pn` may be new. Changes nothing.
    ///
    /// # Errors
    ///
    /// If it was received before or is too old.
    pub fn check(&self, pn: u64) -> Result<(), Replayed> {
        match self.newest {
            // Uses only the distance of two numbers: no sum could overflow.
            Some(newest) if pn <= newest && newest - pn >= self.reach() => Err(Replayed::Stale),
            Some(newest) if pn <= newest && self.has(pn) => Err(Replayed::Duplicate),
            _ => Ok(()),
        }
    }

    /// Marks `pn` as received. Call this only after authenticating the packet.
    ///
    /// # Errors
    ///
    /// If it was received before or is too old. Nothing has changed.
    pub fn mark(&mut self, pn: u64) -> Result<(), Replayed> {
        self.check(pn)?;
        let ahead = match self.newest {
            Some(newest) => pn.saturating_sub(newest),
            None => WINDOW,
        };
        if ahead >= self.reach() {
            match &mut self.came {
                Came::All(words) => **words = [0; WORDS],
                Came::Few(few) => *few = 0,
            }
        } else {
            // The window at most, and once for each new number: the bits in between belong to numbers that
            // left the window.
            for step in 0..ahead {
                self.set(pn - step, false);
            }
        }
        self.newest = self.newest.max(Some(pn));
        self.set(pn, true);
        Ok(())
    }

    fn has(&self, pn: u64) -> bool {
        let (word, bit) = place(pn);
        match &self.came {
            Came::All(words) => words.get(word).is_some_and(|word| word & bit != 0),
            Came::Few(few) => few & bit != 0,
        }
    }

    fn set(&mut self, pn: u64, came: bool) {
        let (word, bit) = place(pn);
        let word = match &mut self.came {
            Came::All(words) => words.get_mut(word),
            Came::Few(few) => Some(few),
        };
        if let Some(word) = word {
            *word = if came { *word | bit } else { *word & !bit };
        }
    }
}

/// Expands the low half `pn` to the packet number nearest to the one expected after `newest`, the highest
/// authenticated number, or nearest to 0 if that is `None`. In a tie, the higher one wins. Source: RFC 9000
/// section 17.1 and appendix A.3.
#[must_use]
pub fn expand(newest: Option<u64>, pn: u32) -> u64 {
    let expected = newest.map_or(0, |newest| newest.saturating_add(1));
    let near = (expected & !LOW) | u64::from(pn);
    let ahead = near.saturating_sub(expected);
    if ahead > HALF {
        near.checked_sub(TURN).unwrap_or(near)
    } else if expected.saturating_sub(near) >= HALF {
        near.checked_add(TURN).unwrap_or(near)
    } else {
        near
    }
}

/// The low half of a packet number, which is sent on the wire.
#[must_use]
pub fn truncate(pn: u64) -> u32 {
    u32::try_from(pn & LOW).unwrap_or_default()
}

fn place(pn: u64) -> (usize, u64) {
    let slot = pn % WINDOW;
    (usize::try_from(slot / 64).unwrap_or_default(), 1 << (slot % 64))
}

const LOW: u64 = 0xffff_ffff;
const TURN: u64 = 1 << 32;
const HALF: u64 = 1 << 31;
/// Packet numbers in the window: 5 s at 200 packets per second.
pub const WINDOW: u64 = 1024;
const WORDS: usize = 16;
/// The same while it rests: two minutes of a ping or its answer every 2 s.
const FEW: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_rested_knows_the_newest_64_and_rejects_older_ones() {
        for start in [0, 20, 1000, 1 << 40] {
            let mut window = ReplayWindow::default();
            (start..=start + 200).step_by(3).for_each(|pn| window.mark(pn).unwrap());
            let newest = window.newest().unwrap();
            window.rest();
            assert_eq!(window.memory(), 0);
            window.mark(newest + 2).unwrap();
            let newest = newest + 2;
            for is_awake in [false, true] {
                if is_awake {
                    window.wake();
                }
                for pn in newest.saturating_sub(2000)..newest {
                    let came = pn >= start && (pn - start) % 3 == 0;
                    assert_eq!(window.check(pn).is_ok(), !came && newest - pn < 64, "{pn} of {newest}");
                }
            }
            window.mark(newest + 1000).unwrap();
            assert_eq!((window.check(newest), window.check(newest + 1)), (Err(Replayed::Duplicate), Ok(())));
        }
    }
}
