//! A tower defence over whitewater. README.md says in which order to read it.

pub mod bots;
pub mod carry;
pub mod choice;
pub mod client;
pub mod headless;
pub mod lab;
#[cfg(feature = "program")]
pub mod peers;
#[cfg(feature = "program")]
pub mod play;
mod receipts;
pub mod server;
pub mod sim;
pub mod wire;
pub mod words;
