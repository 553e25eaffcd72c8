//! Reads values from the front of bytes and appends values, without indexing.

use crate::seq::Seq16;

/// A value with exactly one way to write and read it.
pub(crate) trait Value<'a>: Sized {
    /// Length in bytes; for bytes with a length prefix, the length of the prefix.
    const LEN: usize;
    fn write(&self, to: &mut Vec<u8>);
    fn read(from: &mut Reader<'a>) -> Result<Self, Short>;
}

/// Declares structs whose fields are encoded one after another in this order.
macro_rules! values {
    ($($(#[$on:meta])* $name:ident $(<$life:lifetime>)? { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$on])*
        pub struct $name $(<$life>)? { $($(#[$doc])* pub $field: $type,)* }

        impl<'a> Value<'a> for $name $(<$life>)? {
            const LEN: usize = 0 $(+ <$type as Value<'a>>::LEN)*;

            #[inline]
            fn write(&self, to: &mut Vec<u8>) {
                $(Value::write(&self.$field, to);)*
            }

            fn read(from: &mut Reader<'a>) -> Result<Self, Short> {
                Ok(Self { $($field: Value::read(from)?,)* })
            }
        }
    )*};
}
pub(crate) use values;

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Value<'_> for $number {
            const LEN: usize = size_of::<Self>();

            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, Short> {
                from.$number()
            }
        }

        impl Reader<'_> {
            pub(crate) fn $number(&mut self) -> Result<$number, Short> {
                self.array().map(<$number>::from_le_bytes)
            }
        }
    )*};
}
numbers!(u8 u16 u32 u64);

impl Value<'_> for Seq16 {
    const LEN: usize = 2;

    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Short> {
        from.u16().map(Self)
    }
}

impl<const N: usize> Value<'_> for [u8; N] {
    const LEN: usize = N;

    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Short> {
        from.array()
    }
}

/// Encoded after their length. The caller has checked that the length fits.
impl<'a> Value<'a> for &'a [u8] {
    const LEN: usize = 2;

    fn write(&self, to: &mut Vec<u8>) {
        u16::try_from(self.len()).unwrap_or(u16::MAX).write(to);
        to.extend_from_slice(self);
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, Short> {
        let len = from.u16()?;
        from.bytes(len)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Short {
    pub(crate) have: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    have: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, have: bytes.len() }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn finish(self) -> Result<(), Short> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.short()) }
    }

    /// Reads everything that is left, which must be exactly this value.
    pub(crate) fn whole<T: Value<'a>>(mut self) -> Result<T, Short> {
        let value = T::read(&mut self)?;
        self.finish().map(|()| value)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(self.short())?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn bytes(&mut self, len: impl Into<usize>) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.rest.split_at_checked(len.into()).ok_or(self.short())?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) const fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    const fn short(&self) -> Short {
        Short { have: self.have }
    }
}
