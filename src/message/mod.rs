//! Values as bits, and channels of them: messages and blocks over packets.
//!
//! [`channel`] sends messages, reliably or not, in packets that tell whether they arrived. What the messages are made of is said
//! here.
//!
//! # Values as bits
//!
//! A type says once, in [`Serialize::serialize`], which fields it has and within which bounds. [`Write`] packs them into bytes,
//! [`Read`] takes them out again and refuses whatever is out of bounds, [`Measure`] counts the bits.
//!
//! ```
//! use whitewater::message::{BitsError, Measure, Read, Serialize, Stream, Write};
//!
//! #[derive(Debug, Default, PartialEq)]
//! struct Turret {
//!     column: u8,
//!     row: u8,
//!     angle: f32,
//!     name: Option<String>,
//! }
//!
//! impl Serialize for Turret {
//!     fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
//!         stream.int(&mut self.column, 0..=31)?;
//!         stream.int(&mut self.row, 0..=17)?;
//!         stream.float(&mut self.angle, 0.0..=360.0, 0.5)?;
//!         stream.option(&mut self.name, |stream, name| stream.string(name, 15))
//!     }
//! }
//!
//! let mut turret = Turret { column: 3, row: 17, angle: 90.0, name: Some("Big Bertha".into()) };
//! let mut bytes = [0; 64];
//! let mut write = Write::new(&mut bytes);
//! turret.serialize(&mut write)?;
//! let len = write.finish();
//! assert_eq!(Measure::of(&mut turret)?.div_ceil(8), len); // 5 + 5 + 10 bits, 1 + 4 + 80 for the name: 14 bytes
//!
//! let mut read = Read::new(&bytes[..len]);
//! let mut copy = Turret::default();
//! copy.serialize(&mut read)?;
//! read.finish()?;
//! assert_eq!(copy, turret);
//! # assert_eq!(len, 14);
//! # Ok::<(), BitsError>(())
//! ```

mod bits;
pub mod channel;
mod error;
pub mod pack;

pub use bits::{Measure, Read, Stream, Write};
pub use error::{BitsError, ChannelSendError, ReadError};
pub use pack::Int;

/// A type that is written, read and measured by one function.
pub trait Serialize {
    /// Passes every field to `stream`, in the same order whatever stream it is. What is read replaces the fields; writing and
    /// measuring change none.
    ///
    /// # Errors
    ///
    /// The first of the stream. What has been read up to then is within its bounds, and no more than that.
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError>;
}

/// The messages of a game: a closed set of kinds, numbered from 0. Mostly an enum.
pub trait Message: Serialize + Sized {
    /// How many kinds there are. The number of a kind is written in as few bits as that allows; one beyond it refuses a packet.
    const KINDS: u32;

    /// The kind of this message, below [`KINDS`](Self::KINDS).
    fn kind(&self) -> u32;

    /// Any message of this kind, to be read into; `None`: there is no such kind.
    fn blank(kind: u32) -> Option<Self>;
}
