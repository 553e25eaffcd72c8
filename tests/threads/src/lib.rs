//! The files of `src/net/thread`, `src/net/end.rs` and `src/net/shards.rs`, as they are, over threads, atomics, queues and a bell that a
//! scheduler steps through, and over a session that says back what it hears instead of one with a socket.

#![allow(dead_code, reason = "the files have more than these tests need")]
#![allow(missing_docs, unreachable_pub, reason = "only for tests")]

pub mod model;

mod channel {
    pub(crate) use whitewater::Channel;
    pub(crate) use whitewater::channel::*;

    pub(crate) const DATAGRAMS: u8 = u8::MAX;

    pub(crate) mod cure {
        pub(crate) const MAX_MESSAGE: &str = "";
        pub(crate) const RELIABLE: &str = "";
    }
}

mod config {
    use std::ops::RangeInclusive;
    use whitewater::ConfigError;

    pub(crate) fn in_range(_: &'static str, _: u64, _: RangeInclusive<u64>) -> Result<(), ConfigError> {
        Ok(())
    }
}

mod machine {
    pub(crate) use whitewater::machine::*;
}

mod message {
    pub(crate) use whitewater::message::*;

    pub(crate) mod pack {
        pub(crate) mod payload {
            pub(crate) use whitewater::message::Payload;
        }
        pub(crate) use payload::Payload;
    }
}

mod session {
    pub(crate) use crate::channel::DATAGRAMS;
    pub(crate) use crate::model::{Connection, SessionConfig};
    pub(crate) use whitewater::{Event, SessionId};

    pub(crate) const SHARDS_MAX: usize = 64;
}

mod time {
    pub(crate) use whitewater::Time;
}

mod net {
    pub(crate) mod driver;
    #[path = "../../../../src/net/end.rs"]
    pub(crate) mod end;
    #[path = "../../../../src/net/shards.rs"]
    pub(crate) mod shards;
    pub(crate) mod sync;

    pub(crate) mod error {
        pub(crate) use whitewater::net::Error;
    }

    pub(crate) mod thread {
        #[path = "../../../../../src/net/thread/handle.rs"]
        pub(crate) mod handle;
        #[path = "../../../../../src/net/thread/inbox.rs"]
        mod inbox;
        #[path = "../../../../../src/net/thread/outbox.rs"]
        mod outbox;
        #[path = "../../../../../src/net/thread/shared.rs"]
        mod shared;
        #[path = "../../../../../src/net/thread/worker.rs"]
        mod worker;

        pub(crate) mod front;

        pub(crate) use whitewater::thread::ThreadConfig;
    }
}

pub use net::thread::front::Server;
