#![doc = include_str!("../README.md")]

mod counts;
mod host;
mod hosts;
mod links;
mod rate;
mod relay;
mod serve;
mod slab;
mod ticket;
mod wire;

pub use counts::Counts;
pub use host::{Registration, RelayedGuests};
pub use relay::{Now, Passed, Relay, RelayConfig};
pub use serve::serve;
pub use ticket::{GUEST_LEN, GuestTicket, HostGrant, HostTicket, RelayKey};
