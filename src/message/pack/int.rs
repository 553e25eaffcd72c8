//! Integers as distances from the minimum of a range.

/// An integer type that a field can have.
pub trait Int: Copy + PartialOrd {
    /// How far this is above `min`, modulo 2^64.
    fn offset_from(self, min: Self) -> u64;

    /// The number that is `offset` above `min`, modulo the size of the type.
    fn at_offset(min: Self, offset: u64) -> Self;
}

macro_rules! int {
    ($($int:ty)*) => {$(
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            clippy::cast_sign_loss,
            clippy::cast_lossless,
            reason = "modulo 2^64 there, and modulo the size of the type back"
        )]
        impl Int for $int {
            #[inline]
            fn offset_from(self, min: Self) -> u64 {
                (self as u64).wrapping_sub(min as u64)
            }

            #[inline]
            fn at_offset(min: Self, offset: u64) -> Self {
                min.wrapping_add(offset as Self)
            }
        }
    )*};
}

int!(u8 u16 u32 u64 usize i8 i16 i32 i64);
