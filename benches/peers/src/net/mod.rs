//! Datagrams through sockets: the library's, beside the system's bare calls.

mod bare;
pub(crate) mod udp;
