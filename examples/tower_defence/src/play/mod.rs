//! A game in real time: in this process over a simulated network, as a server for others, or on somebody else's server.

mod host;
mod key;
mod local;
mod relay;
mod remote;
mod ticket;

pub use host::Hosting;
pub use key::{Key, KeyError, PASS_MIN};
pub use local::Local;
pub use relay::Relay;
pub use remote::Remote;
pub use ticket::{state_dir, ticket};
