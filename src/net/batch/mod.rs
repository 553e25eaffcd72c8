//! Datagrams in and out of one socket, many a call where the system has calls for that.
//!
//! Nothing here waits: an [`Inbox`] is filled and an [`Outbox`] emptied as far as the socket goes, and `WouldBlock` says that it
//! goes no further. Who waits, and how, is the driver's affair: a blocking one and a runtime's use the same three parts.
//!
//! What an [`Offload`] is on each system is told in [the module above](super#what-the-system-does).

mod inbox;
mod offload;
#[cfg_attr(feature = "batch", path = "many.rs")]
mod one;
mod outbox;
mod socket;
#[cfg(test)]
mod tests;

pub(in crate::net) use inbox::{Datagram, Inbox};
pub(in crate::net) use offload::{Fragments, Offload};
pub(in crate::net) use outbox::Outbox;
pub(in crate::net) use socket::Socket;

/// Room for any datagram, and for any number of them that the system received as one: UDP's length field has 16 bits.
const SLOT: usize = 1 << 16;
