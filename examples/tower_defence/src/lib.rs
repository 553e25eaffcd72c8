//! A tower defence over whitewater. README.md says in which order to read it.

pub mod client;
pub mod headless;
mod receipts;
pub mod server;
pub mod sim;
pub mod wire;
