//! UDP sockets that use the operating system to the full: many datagrams per system call where possible, and
//! the same interface on top of std's calls elsewhere.
//!
//! Only [`Port::wait`] blocks: a [`Port`] reads and sends as far as its socket allows. How to wait is up to
//! the driver: a blocking one and an async runtime use the same port, over a [`Socket`] of their own.
//!
//! ```
//! use std::net::UdpSocket;
//! use std::time::Duration;
//! use whitewater_udp::{Mode, Port};
//!
//! let mut here: Port = Port::new(UdpSocket::bind("127.0.0.1:0")?, Mode::Whole, 32)?;
//! let mut there: Port = Port::new(UdpSocket::bind("127.0.0.1:0")?, Mode::Whole, 32)?;
//! for count in 0..10 {
//!     here.stage().extend_from_slice(&[count; 100]);
//!     here.commit(there.socket().local_addr()?, 0);
//! }
//! here.flush(); // one system call, where possible
//! let mut received = 0;
//! while received < 10 {
//!     while there.has_next(usize::MAX)? && let Some(datagram) = there.pop() {
//!         assert_eq!(datagram.bytes, [received; 100]);
//!         received += 1;
//!     }
//!     there.wait(Some(Duration::from_secs(1)))?;
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod buffers;
mod counts;
mod inbox;
mod offload;
#[cfg_attr(feature = "batch", path = "many.rs")]
mod one;
mod os;
mod outbox;
mod port;
mod socket;
#[cfg(test)]
mod tests;

pub use buffers::SocketBuffers;
pub use counts::Counts;
pub use inbox::Datagram;
pub use offload::Mode;
pub use os::Bell;
pub use port::{Port, as_v4, bind, bind_shared, local_ip_for, socket_for};
pub use socket::Socket;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Room for any datagram, or any batch that the system received as one: the length field of UDP has 16 bits.
const SLOT: usize = 1 << 16;
/// A placeholder address.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
