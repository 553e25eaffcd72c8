//! Datagrams through sockets: the library's batched I/O, which is no part of its interface, beside the system's bare calls.

#[path = "../../../../src/net/batch/mod.rs"]
#[allow(dead_code, unused_imports, reason = "not all of it is measured")]
mod batch;
#[path = "../../../../src/net/os/mod.rs"]
#[allow(dead_code, unused_imports, reason = "not all of it is measured")]
mod os;
#[path = "../../../../src/net/tally.rs"]
#[allow(dead_code, reason = "not all of it is measured")]
mod tally;

/// What its system calls wake by: nothing is woken here.
#[allow(dead_code, reason = "nothing is woken")]
mod shards {
    pub(crate) trait Wake {
        fn wake(&self);
    }
}

mod bare;
pub(crate) mod udp;
