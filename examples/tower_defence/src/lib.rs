//! A tower defence over whitewater. README.md says in which order to read it.

pub mod client;
pub mod headless;
pub mod sim;
