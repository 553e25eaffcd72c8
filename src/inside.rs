//! What tests, fuzzers and benchmarks look into. It is no part of the API, and changes without notice.

/// The public items of modules, under the names of those modules.
macro_rules! doors {
    ($($name:ident $path:path;)*) => { $(pub mod $name { pub use $path::*; })* };
}

doors! {
    congestion crate::arq::congestion::kcp;
    code crate::code;
}

/// Of sessions.
pub mod session {
    doors! {
        cookie crate::session::cookie;
        exchange crate::session::exchange;
        replay crate::session::replay;
        seal crate::session::seal;
        wire crate::session::wire;
    }
}
