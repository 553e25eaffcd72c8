//! Internals for tests, fuzzers and benchmarks, and for the crates of this repository. Not part of the API: they change without notice.

/// Re-exports the public items of modules under the names of those modules.
macro_rules! doors {
    ($($name:ident $path:path;)*) => { $(pub mod $name { pub use $path::*; })* };
}

doors! {
    congestion crate::kcp::congestion::kcp;
    code crate::code;
    compact crate::wire::compact;
}

/// Internals of sessions.
pub mod session {
    doors! {
        cookie crate::session::cookie;
        exchange crate::session::exchange;
        replay crate::session::replay;
        seal crate::session::seal;
        wire crate::session::wire;
    }
}

/// What `#[derive(Message)]` names: it changes with the crate that derives.
pub mod message {
    pub use crate::message::BitsError;
    pub use crate::message::pack::field::{Bits, By, Field, Float, Itself, MaxLen, Plain};
    pub use crate::message::pack::{BitReader, BitWriter, Message, shape};
}
