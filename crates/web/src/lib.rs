//! Browsers as players of a [`whitewater`] server.

#[cfg(target_arch = "wasm32")]
mod client;
#[cfg(not(target_arch = "wasm32"))]
mod server;
