//! Newtypes for numbers: conversations, and the wrapping numbers of segments and packets.

use std::fmt;

/// The number of a conversation. Both ends put the same one into every segment.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "a newtype over a number")]
pub struct Conv(pub u32);

/// Declares numbers that wrap. They have a distance but no `Ord`: an order on wrapping numbers is not
/// transitive.
macro_rules! wrapping {
    ($($(#[$doc:meta])* $name:ident: $int:ident, $signed:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        #[expect(clippy::exhaustive_structs, reason = "a newtype over a number")]
        pub struct $name(pub $int);

        impl $name {
            /// The number that comes `count` after this one.
            #[inline]
            #[must_use]
            pub const fn add(self, count: $int) -> Self {
                Self(self.0.wrapping_add(count))
            }

            /// The number that comes `count` before this one.
            #[inline]
            #[must_use]
            pub const fn sub(self, count: $int) -> Self {
                Self(self.0.wrapping_sub(count))
            }

            /// How far `self` lies after `earlier`; negative if it lies before. Source: ikcp.c `_itimediff`.
            #[inline]
            #[must_use]
            pub const fn distance(self, earlier: Self) -> $signed {
                self.0.wrapping_sub(earlier.0).cast_signed()
            }

            /// Whether `self` lies before `other`, going the shorter way round. Two numbers half of the range
            /// apart each lie before the other.
            #[inline]
            #[must_use]
            pub const fn is_before(self, other: Self) -> bool {
                self.distance(other) < 0
            }

            /// The index of `self` in the window `[start, start + len)`, or `None` if it lies outside.
            #[inline]
            #[must_use]
            pub const fn offset_in(self, start: Self, len: $int) -> Option<$int> {
                let offset = self.0.wrapping_sub(start.0);
                if offset < len { Some(offset) } else { None }
            }
        }
    )*};
}

wrapping! {
    /// A segment number. It wraps at 2^32, so it has a distance but no order.
    Sn: u32, i32;
    /// A packet number or a message id. It wraps at 2^16, so it has a distance but no order, like [`Sn`].
    Seq16: u16, i16;
}

macro_rules! displayed {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
displayed! { Conv Sn Seq16 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_continues_across_the_wrap() {
        let start = Sn(u32::MAX - 1);
        assert_eq!(Sn(1).offset_in(start, 4), Some(3));
        assert_eq!(Sn(2).offset_in(start, 4), None);
        assert_eq!(Sn(u32::MAX - 2).offset_in(start, 4), None);
        assert!(Sn(u32::MAX).is_before(Sn(0)));
    }

    #[test]
    fn a_packet_number_is_before_the_half_of_the_range_that_follows_it() {
        let after = |start: Seq16| (0..=u16::MAX).filter(move |step| start.is_before(start.add(*step)));
        for start in [0, 1, 0x7fff, 0x8000, 0xffff].map(Seq16) {
            assert!(after(start).eq(1..=0x8000));
            assert_eq!(start.add(9).offset_in(start, 10), Some(9));
            assert_eq!(start.sub(1).offset_in(start, 10), None);
        }
    }
}
