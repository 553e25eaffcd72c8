//! Browsers as players of a [`whitewater`] server: WebTransport and WebSockets beside UDP, and the client for wasm32.

/// The code of the page is a doc test.
#[cfg(all(doctest, not(target_arch = "wasm32")))]
#[doc = include_str!("../../../docs/BROWSERS.md")]
mod book {}

#[cfg(target_arch = "wasm32")]
mod client;
#[cfg(any(test, target_arch = "wasm32"))]
mod dial;
#[cfg(any(test, target_arch = "wasm32"))]
mod limits;
#[cfg(not(target_arch = "wasm32"))]
mod server;

#[cfg(not(target_arch = "wasm32"))]
pub use server::{Browsers, Certificate, Web, WebConfig, WebStats, listen};
#[cfg(any(test, target_arch = "wasm32"))]
mod target;

#[cfg(target_arch = "wasm32")]
pub use client::{Client, ConnectError, TransportStats};
#[cfg(any(test, target_arch = "wasm32"))]
pub use target::{Target, Transport, Transports};
