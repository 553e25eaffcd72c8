//! whitewater for programs in C, and all languages that can call C.
//!
//! `ikcp` has the functions of ikcp.h under their names, with ikcp.c's decisions, so that a program that was written for it is linked with this
//! instead. `session` has what is beyond them under the prefix `ww_`: clients and servers with their sockets.
//!
//! A pointer is null, or it is what its type says: one that was handed out here and not freed yet, used by one thread at a time; as many bytes as
//! the length beside it says; a text that ends with a zero. Nobody can check more than the first. Whatever else is wrong is an answer, see [`error`]. A panic ends where it would cross into C: the object answers `WW_PANIC` from then
//! on, and does nothing.

pub mod error;
mod guard;
pub mod ikcp;
pub mod session;
