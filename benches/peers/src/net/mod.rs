//! Datagrams through sockets: the library's I/O compared with plain system calls.

mod bare;
pub(crate) mod udp;
pub(crate) mod uring;
