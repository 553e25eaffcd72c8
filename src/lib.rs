#![cfg_attr(feature = "net", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "net"),
    doc = "Game networking over UDP, without I/O: sessions, channels of messages, packets, and bare KCP."
)]
//!
//! # The layers
//!
//! A module uses its own layer and those below, never above; `tests/layers.rs` holds that.
//!
//! ```text
//!            your game: messages out, messages in
//!  ─────────────────────────────────────────────────────────────────────
//!   thread   Server, Client                  the same as below, on threads that pump by themselves
//!   tokio    Server, Client, Session         the same as tasks, with streams
//!   metrics  Measures                        all statistics by one set of names
//!  ─────────────────────────────────────────────────────────────────────
//!   net      Server, Client                  a socket and a clock: the
//!            kcp::Socket, kcp::Listener      only layer with them
//!            Driver                          pumps any machine: datagrams in, time, datagrams out
//!  ─────────────────────────────────────────────────────────────────────
//!   session  Client, Server: sans-IO          handshake, encryption, keepalive, migration;
//!              Connection                     channels and datagrams in one session: by KCP, in packets
//!              wire: packets, frames          cookie, exchange, seal, token: who may come in,
//!              bytes <-> values               under which keys, and what is authentic
//!            kcp::Peers: sans-IO              bare KCP of many peers, under limits
//!  ─────────────────────────────────────────────────────────────────────
//!   channel  Channel, ChannelConfig           what a program sends on, and how it arrives
//!              packed                         Channels: many messages share packets
//!                                             of which it is known whether they arrived
//!  ─────────────────────────────────────────────────────────────────────
//!   message  Message: values <-> bits         BitWriter, BitReader: derived for a type
//!              Payload                        what a channel carries: a type, or bytes
//!  ─────────────────────────────────────────────────────────────────────
//!   kcp      Kcp: send recv input update flush check
//!              send  recv                     segments on their way out and in
//!              acks  probe                    what the peer is owed and asked
//!              rtt                            round trips
//!              classic                        what is lost as ikcp.c finds it
//!              modern                         what is lost by time; repairs out and in
//!              congestion                     how much may leave, and how fast
//!              flush  transmit  packer        all of that into datagrams, and when
//!              config  error  stats           what is set, refused, counted
//!   packet   Endpoint: send receive update check: acked, never resent
//!              acks                           which packets arrived, both ways
//!              header  fragment               bytes <-> values, large packets in parts
//!              config  error  stats  rate     as above; kcp and packet do not know each other
//!  ─────────────────────────────────────────────────────────────────────
//!   wire     Segment: bytes <-> values        Output, DatagramQueue: where
//!                                             finished datagrams go
//!   code     Encoder: segments -> a repair    Decoder: repairs and what arrived
//!              Protector: repairs of what     -> the segments that are missing
//!              is under way
//!   pace     Rtt, Loss: measured              Pace: good or bad mode by them,
//!                                             how often to send
//!   machine  Machine: datagrams and time in, datagrams out, when next: what all drivers drive
//!   rate     how often strangers may do something, all of them and each address
//!  ─────────────────────────────────────────────────────────────────────
//!   values   Sn, Seq16, Conv (seq)   Time, Millis (time)   ConfigError (config)   Logged (events)   Measures (counters)
//!            Ring, SequenceBuffer, ByteRing (ring)   Keyed (hash): tables that strangers cannot fill unevenly
//! ```
//!
//! A datagram of KCP comes in: `net` reads it, [`Kcp::input`](kcp::Kcp::input) checks all of it and then applies it segment by segment. One goes out:
//! [`Kcp::flush`](kcp::Kcp::flush) decides what is due, packs it and hands each datagram to the [`Output`](machine::Output). Nothing calls up: a part returns values,
//! its owner acts. The time comes in with each call, so the same calls give the same bytes.
//! [`packet::Endpoint`] is the same for packets that are acknowledged and never resent.
//!
//! Below `net` is the crate `whitewater-udp`: sockets as the systems have them, which know nothing of what is in a datagram.
//! The crate `whitewater-sim` connects two ends by bad links in virtual time; it sees of this one what its users see.
/// The code of the pages in docs/ is doc tests, as that of the README above.
#[cfg(doctest)]
mod book {
    macro_rules! pages {
        ($($(#[$with:meta])* $name:ident $path:literal)*) => {
            $($(#[$with])* #[doc = include_str!($path)] mod $name {})*
        };
    }
    pages! {
        #[cfg(all(feature = "crypto", feature = "net"))] start "../docs/START.md"
        #[cfg(feature = "net")] channels "../docs/CHANNELS.md"
        #[cfg(all(feature = "crypto", feature = "net"))] networks "../docs/NETWORKS.md"
        #[cfg(all(feature = "crypto", feature = "net", unix))] updates "../docs/UPDATES.md"
        #[cfg(feature = "net")] from_enet "../docs/migrate/enet.md"
        #[cfg(feature = "net")] from_ikcp "../docs/migrate/ikcp.md"
        #[cfg(feature = "tokio")] from_quinn "../docs/migrate/quinn.md"
        #[cfg(feature = "net")] from_renet "../docs/migrate/renet.md"
        #[cfg(feature = "tokio")] from_tokio_kcp "../docs/migrate/tokio_kcp.md"
    }
}

#[macro_use]
mod config;
#[macro_use]
mod counters;

pub mod channel;
mod code;
pub mod events;
mod hash;
#[doc(hidden)]
pub mod inside;
pub mod kcp;
pub mod machine;
pub mod message;
pub mod metrics;
#[cfg(feature = "net")]
pub mod net;
pub mod pace;
pub mod packet;
mod rate;
mod ring;
mod seq;
pub mod session;
#[cfg(feature = "net")]
pub mod thread;
mod time;
#[cfg(feature = "tokio")]
pub mod tokio;
mod wire;

pub use channel::config::ChannelConfig;
pub use channel::handle::Channel;
pub use code::budget::Repairs;
pub use config::ConfigError;
pub use message::pack::Message;
#[cfg(feature = "net")]
pub use net::front::{Client, Server};
pub use rand_core;
pub use session::front::{ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId};
pub use time::Time;
