//! The tower defence in a page: the simulation, the client and the session of `tower-defence`, drawn on a canvas.
//!
//! ```text
//!   page       what JavaScript calls: frames, keys, pointers, buttons
//!   here       a game in this page, over a simulated network       net       a game on a server
//!   controls   what keys, taps and buttons mean                    stick     a finger that steers
//!   layout     where cells are on the screen                       palette   colours
//!   effects    sparks and rings: what has changed between two views
//!   draw       the canvas                                          panel     the elements around it
//! ```

pub mod controls;
pub mod effects;
pub mod layout;
pub mod palette;
pub mod stick;

#[cfg(target_arch = "wasm32")]
mod dom;
#[cfg(target_arch = "wasm32")]
mod draw;
#[cfg(target_arch = "wasm32")]
mod here;
#[cfg(target_arch = "wasm32")]
mod net;
#[cfg(target_arch = "wasm32")]
mod page;
#[cfg(target_arch = "wasm32")]
mod panel;
#[cfg(target_arch = "wasm32")]
mod summary;
