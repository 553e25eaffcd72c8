//! Messages for those who pack their own.

use crate::message::{BitsError, Message, Serialize, Stream};

/// A message of up to [`Blob::MAX`] bytes, whatever they mean.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "bytes with a name")]
pub struct Blob(pub Vec<u8>);

impl Blob {
    /// Most bytes.
    pub const MAX: usize = 1024;
}

impl Serialize for Blob {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        stream.byte_vec(&mut self.0, Self::MAX)
    }
}

impl Message for Blob {
    const KINDS: u32 = 1;

    fn kind(&self) -> u32 {
        0
    }

    fn blank(kind: u32) -> Option<Self> {
        (kind == 0).then(Self::default)
    }
}
