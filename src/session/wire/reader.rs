//! Takes numbers off the front of bytes; cannot index.

/// Fewer bytes than were asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::session) struct Short {
    /// All bytes there were.
    pub(in crate::session) have: usize,
}

/// The bytes that have not been taken.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Reader<'a> {
    rest: &'a [u8],
    have: usize,
}

impl<'a> Reader<'a> {
    pub(in crate::session) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, have: bytes.len() }
    }

    pub(in crate::session) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Nothing may be left.
    pub(in crate::session) const fn finish(self) -> Result<(), Short> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.short()) }
    }

    pub(in crate::session) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(self.short())?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(in crate::session) fn bytes(&mut self, len: impl Into<usize>) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.rest.split_at_checked(len.into()).ok_or(self.short())?;
        self.rest = rest;
        Ok(taken)
    }

    /// All that is left.
    pub(in crate::session) const fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    pub(in crate::session) fn u8(&mut self) -> Result<u8, Short> {
        self.array().map(u8::from_le_bytes)
    }

    pub(in crate::session) fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_le_bytes)
    }

    pub(in crate::session) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    pub(in crate::session) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    const fn short(&self) -> Short {
        Short { have: self.have }
    }
}
