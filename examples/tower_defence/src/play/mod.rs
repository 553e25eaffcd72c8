//! A game in real time: in this process over a simulated network, as a server for others, on somebody else's server,
//! or with other players, one of whom hosts.

mod host;
mod key;
mod lobby;
mod local;
mod peer;
mod relay;
mod remote;
mod ticket;

pub use host::Hosting;
pub use key::{Key, KeyError, PASS_MIN};
pub use lobby::Lobbying;
pub use local::Local;
pub use peer::Peer;
pub use relay::Relay;
pub use remote::Remote;
pub use ticket::{state_dir, ticket};
