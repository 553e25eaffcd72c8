//! Where a segment is that arrived, in four bytes.

use std::num::NonZeroU32;

/// Where a segment is that arrived. An `Option` of it has four bytes as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(NonZeroU32);

/// What a [`Place`] says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Found {
    /// Its header is at this position of the log, of which 31 bits are enough.
    InLog(u32),
    /// Its data is part of a datagram's buffer.
    Shared { frg: u8 },
}

impl Place {
    /// `offset` bytes after `position` of the log.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an offset within a datagram")]
    pub(super) fn in_log(position: u32, offset: usize) -> Self {
        Self(IN_LOG | position.wrapping_add(offset as u32))
    }

    pub(super) fn shared(frg: u8) -> Self {
        Self(NonZeroU32::MIN.saturating_add(frg.into()))
    }

    #[inline]
    pub(super) fn find(self) -> Found {
        let bits = self.0.get();
        if bits & IN_LOG.get() == 0 {
            return Found::Shared { frg: u8::try_from(bits - 1).unwrap_or(0) };
        }
        Found::InLog(bits & !IN_LOG.get())
    }
}

/// The bit that a count of fragments never has.
const IN_LOG: NonZeroU32 = NonZeroU32::MIN.saturating_add((1 << 31) - 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_what_it_was_made_of() {
        assert_eq!(size_of::<Option<Place>>(), 4);
        assert_eq!(Place::in_log(0, 0).find(), Found::InLog(0));
        assert_eq!(Place::in_log(u32::MAX, 8).find(), Found::InLog(7));
        for frg in 0..=u8::MAX {
            assert_eq!(Place::shared(frg).find(), Found::Shared { frg });
        }
    }
}
