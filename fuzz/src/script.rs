//! Reads a script: operation bytes, each with its arguments, little-endian. Every byte string is a script,
//! and anything missing at the end reads as zero.

/// The rest of a script.
#[derive(Clone, Debug)]
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// A script, from its start.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes, or what is left.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// A number in `[min, max]`, from two bytes that say how far it is from `min`.
    pub fn in_range(&mut self, min: u16, max: u16) -> u16 {
        let span = u32::from(max) - u32::from(min) + 1;
        let above = u32::from(self.u16()) % span;
        min + u16::try_from(above).unwrap_or_default()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        for (to, from) in array.iter_mut().zip(self.bytes(N)) {
            *to = *from;
        }
        array
    }
}

/// `len` payload bytes that depend on `start`. Source: `tests/vectors/kcp/README.md`, `send`.
pub fn payload(len: usize, start: u8) -> Vec<u8> {
    let byte = |i: usize| (usize::from(start) + i + 13 * (i / 256)).to_le_bytes()[0];
    (0..len).map(byte).collect()
}
