//! How fields with bounds are encoded: called by `#[derive(Message)]`.

use super::impls::array;
use super::{BitReader, BitWriter, DEFAULT_MAX_LEN, Message, shape};
use crate::message::BitsError;
use std::marker::PhantomData;

/// A field that is encoded by the rule `R`, a type.
#[diagnostic::on_unimplemented(
    message = "the attributes of a field do not fit its type: `{Self}`",
    label = "has no such bounds",
    note = "`#[bits]` is for whole numbers up to 64 bits, `#[float]` for `f32`, `#[max_len]` for `Vec` and `String`, and each for what is in an `Option`, an array or a `Box`"
)]
pub trait Field<R>: Sized {
    /// As [`Message::SHAPE`].
    const SHAPE: u64;

    /// As [`Message::pack`].
    ///
    /// # Errors
    ///
    /// The same.
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError>;

    /// As [`Message::unpack`].
    ///
    /// # Errors
    ///
    /// The same.
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError>;

    /// As [`Message::pack_list`].
    ///
    /// # Errors
    ///
    /// The same.
    fn pack_list(items: &[Self], max: usize, to: &mut BitWriter) -> Result<(), BitsError> {
        to.list(items, max, |to, item| item.pack(to))
    }

    /// As [`Message::unpack_list`].
    ///
    /// The same.
    ///
    /// As there.
    fn unpack_list(max: usize, from: &mut BitReader<'_>) -> Result<Vec<Self>, BitsError> {
        from.list(max, Self::unpack)
    }
}

/// The rule of a field without attributes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Plain;

/// A rule from an attribute.
#[derive(Debug)]
pub struct By<K>(PhantomData<K>);

/// `#[bits(MIN..=MAX)]`
#[derive(Debug)]
#[non_exhaustive]
pub struct Bits<const MIN: i128, const MAX: i128>;

/// `#[float(MIN..=MAX, RESOLUTION)]`, each number as its bits.
#[derive(Debug)]
#[non_exhaustive]
pub struct Float<const MIN: u32, const MAX: u32, const RESOLUTION: u32>;

/// `#[max_len(MAX)]`; the rule `L` applies to its items.
#[derive(Debug)]
pub struct MaxLen<const MAX: usize, L>(PhantomData<L>);

/// Stands for a type in its own [`Message::SHAPE`], if it contains itself.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no value of it")]
pub enum Itself {}

impl Message for Itself {
    const SHAPE: u64 = shape("itself", &[]);

    fn pack(&self, _: &mut BitWriter) -> Result<(), BitsError> {
        match *self {}
    }

    fn unpack(_: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Err(BitsError::Bounds)
    }
}

impl<T: Message> Field<Plain> for T {
    const SHAPE: u64 = T::SHAPE;

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        Message::pack(self, to)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Message::unpack(from)
    }

    fn pack_list(items: &[Self], max: usize, to: &mut BitWriter) -> Result<(), BitsError> {
        Message::pack_list(items, max, to)
    }

    fn unpack_list(max: usize, from: &mut BitReader<'_>) -> Result<Vec<Self>, BitsError> {
        Message::unpack_list(max, from)
    }
}

macro_rules! int {
    ($($int:ty)*) => {$(
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_lossless,
            reason = "the bounds are values of the type, which is asserted first"
        )]
        impl<const MIN: i128, const MAX: i128> Field<By<Bits<MIN, MAX>>> for $int {
            const SHAPE: u64 = {
                assert!(MIN <= MAX, "`#[bits]`: the range is empty");
                assert!(
                    <$int>::MIN as i128 <= MIN && MAX <= <$int>::MAX as i128,
                    concat!("`#[bits]`: the range is wider than that of ", stringify!($int))
                );
                shape::int(MIN, MAX)
            };

            #[inline]
            fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
                to.int(*self, MIN as Self..=MAX as Self)
            }

            #[inline]
            fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
                from.int(MIN as Self..=MAX as Self)
            }
        }
    )*};
}

int!(u8 u16 u32 u64 usize i8 i16 i32 i64);

impl<const MIN: u32, const MAX: u32, const RESOLUTION: u32> Field<By<Float<MIN, MAX, RESOLUTION>>> for f32 {
    const SHAPE: u64 = {
        let (min, max, resolution) =
            (Self::from_bits(MIN), Self::from_bits(MAX), Self::from_bits(RESOLUTION));
        assert!(min < max && min.is_finite() && max.is_finite(), "`#[float]`: the range has no width");
        assert!(
            resolution > 0.0 && resolution.is_finite(),
            "`#[float]`: the resolution is not above 0, or not finite"
        );
        let steps = (max as f64 - min as f64) / resolution as f64;
        assert!(steps <= u32::MAX as f64, "`#[float]`: the resolution takes more than 32 bits");
        shape("float", &[MIN as u64, MAX as u64, RESOLUTION as u64])
    };

    #[inline]
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.float(*self, Self::from_bits(MIN)..=Self::from_bits(MAX), Self::from_bits(RESOLUTION))
    }

    #[inline]
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        from.float(Self::from_bits(MIN)..=Self::from_bits(MAX), Self::from_bits(RESOLUTION))
    }
}

impl<const MAX: usize> Field<By<MaxLen<MAX, Plain>>> for String {
    const SHAPE: u64 = shape("string", &[MAX as u64]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.string(self, MAX)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        from.string(MAX)
    }
}

impl<T: Field<L>, const MAX: usize, L> Field<By<MaxLen<MAX, L>>> for Vec<T> {
    const SHAPE: u64 = shape("list", &[MAX as u64, T::SHAPE]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        T::pack_list(self, MAX, to)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        T::unpack_list(MAX, from)
    }
}

/// Lists without a `max_len`, whose items have bounds.
macro_rules! lists {
    ($([$(const $bound:ident: $of:ty),*] $rule:ty),*) => {$(
        impl<T: Field<By<$rule>>, $(const $bound: $of),*> Field<By<$rule>> for Vec<T> {
            const SHAPE: u64 = shape("list", &[DEFAULT_MAX_LEN as u64, T::SHAPE]);

            fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
                T::pack_list(self, DEFAULT_MAX_LEN, to)
            }

            fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
                T::unpack_list(DEFAULT_MAX_LEN, from)
            }
        }
    )*};
}

lists!(
    [const MIN: i128, const MAX: i128] Bits<MIN, MAX>,
    [const MIN: u32, const MAX: u32, const RESOLUTION: u32] Float<MIN, MAX, RESOLUTION>
);

impl<T: Field<By<K>>, K> Field<By<K>> for Option<T> {
    const SHAPE: u64 = shape("option", &[T::SHAPE]);

    #[inline]
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.option(self.as_ref(), |to, value| value.pack(to))
    }

    #[inline]
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        from.option(T::unpack)
    }
}

impl<T: Field<By<K>>, K, const N: usize> Field<By<K>> for [T; N] {
    const SHAPE: u64 = shape("array", &[N as u64, T::SHAPE]);

    #[inline]
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.iter().try_for_each(|item| item.pack(to))
    }

    #[inline]
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        array(|| T::unpack(from))
    }
}

impl<T: Field<By<K>>, K> Field<By<K>> for Box<T> {
    const SHAPE: u64 = T::SHAPE;

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.nested(|to| T::pack(self, to))?;
        to.own(size_of::<T>())
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        let inner = from.nested(T::unpack)?;
        from.own(size_of::<T>())?;
        Ok(Self::new(inner))
    }
}
