//! Implements messages for the types of the language.

use super::{BitReader, BitWriter, Message, shape};
use crate::message::BitsError;

/// Most items of a `Vec` and bytes of a `String` without `max_len`: the length takes 16 bits.
pub const DEFAULT_MAX_LEN: usize = 65_535;

impl Message for bool {
    const SHAPE: u64 = shape("bool", &[]);

    #[inline]
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.bool(*self)
    }

    #[inline]
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        from.bool()
    }
}

impl Message for u8 {
    const SHAPE: u64 = shape::int(0, Self::MAX as i128);

    #[inline]
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.int(*self, 0..=Self::MAX)
    }

    #[inline]
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        from.int(0..=Self::MAX)
    }

    fn pack_list(items: &[Self], max: usize, to: &mut BitWriter) -> Result<(), BitsError> {
        to.byte_vec(items, max)
    }

    fn unpack_list(max: usize, from: &mut BitReader<'_>) -> Result<Vec<Self>, BitsError> {
        from.byte_vec(max)
    }
}

/// All values of the type, in as many bits as the type has.
macro_rules! int {
    ($($int:ty)*) => {$(
        impl Message for $int {
            const SHAPE: u64 = shape::int(Self::MIN as i128, Self::MAX as i128);

            #[inline]
            fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
                to.int(*self, Self::MIN..=Self::MAX)
            }

            #[inline]
            fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
                from.int(Self::MIN..=Self::MAX)
            }
        }
    )*};
}

int!(u16 u32 u64 i8 i16 i32 i64);

/// 64 bits on every machine. A machine with fewer bits refuses what does not fit.
macro_rules! size {
    ($($size:ty as $wide:ty),*) => {$(
        impl Message for $size {
            const SHAPE: u64 = <$wide>::SHAPE;

            #[inline]
            fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
                <$wide>::try_from(*self).map_err(|_| BitsError::Bounds)?.pack(to)
            }

            #[inline]
            fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
                Self::try_from(<$wide>::unpack(from)?).map_err(|_| BitsError::Bounds)
            }
        }
    )*};
}

size!(usize as u64, isize as i64);

/// The lower half first.
macro_rules! wide {
    ($($wide:ty),*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "halves of all its bits")]
        impl Message for $wide {
            const SHAPE: u64 = shape(stringify!($wide), &[]);

            fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
                to.u64(*self as u64)?;
                to.u64((*self >> 64) as u64)
            }

            fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
                let (low, high) = (from.u64()?, from.u64()?);
                Ok((high as Self) << 64 | low as Self)
            }
        }
    )*};
}

wide!(u128, i128);

/// All bits of a float, so that infinities and all NaNs are preserved.
macro_rules! float {
    ($($float:ty as $bits:ty),*) => {$(
        impl Message for $float {
            const SHAPE: u64 = shape(stringify!($float), &[]);

            #[inline]
            fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
                self.to_bits().pack(to)
            }

            #[inline]
            fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
                <$bits>::unpack(from).map(Self::from_bits)
            }
        }
    )*};
}

float!(f32 as u32, f64 as u64);

macro_rules! tuple {
    ($($item:ident $at:tt)*) => {
        impl<$($item: Message),*> Message for ($($item,)*) {
            const SHAPE: u64 = shape("tuple", &[$($item::SHAPE),*]);

            #[inline]
            fn pack(&self, _to: &mut BitWriter) -> Result<(), BitsError> {
                $(self.$at.pack(_to)?;)*
                Ok(())
            }

            #[inline]
            fn unpack(_from: &mut BitReader<'_>) -> Result<Self, BitsError> {
                Ok(($($item::unpack(_from)?,)*))
            }
        }
    };
}

tuple!();
tuple!(A 0);
tuple!(A 0 B 1);
tuple!(A 0 B 1 C 2);
tuple!(A 0 B 1 C 2 D 3);

impl<T: Message> Message for Option<T> {
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

impl<T: Message, const N: usize> Message for [T; N] {
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

impl<T: Message> Message for Vec<T> {
    const SHAPE: u64 = shape("list", &[DEFAULT_MAX_LEN as u64, T::SHAPE]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        T::pack_list(self, DEFAULT_MAX_LEN, to)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        T::unpack_list(DEFAULT_MAX_LEN, from)
    }
}

impl Message for String {
    const SHAPE: u64 = shape("string", &[DEFAULT_MAX_LEN as u64]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.string(self, DEFAULT_MAX_LEN)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        from.string(DEFAULT_MAX_LEN)
    }
}

/// The same bits as without the box.
impl<T: Message> Message for Box<T> {
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

/// An array of the results of `next`, or its first error, after which `next` is not called again.
#[inline]
pub(super) fn array<T, const N: usize>(
    mut next: impl FnMut() -> Result<T, BitsError>,
) -> Result<[T; N], BitsError> {
    let mut error = None;
    let items: [Option<T>; N] = std::array::from_fn(|_| {
        if error.is_some() {
            return None;
        }
        next().map_err(|found| error = Some(found)).ok()
    });
    match error {
        Some(error) => Err(error),
        None => Ok(items.map(|item| match item {
            Some(item) => item,
            None => unreachable!("without an error there is each item"),
        })),
    }
}
