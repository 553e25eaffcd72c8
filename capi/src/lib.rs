//! whitewater for C, and for all languages that can call C.
//!
//! `ikcp` has the functions of ikcp.h under their names and decides as ikcp.c does, so a program written for ikcp.c can
//! be linked with this instead. `session` adds clients and servers with their sockets, under the prefix `ww_`.
//!
//! A pointer must be null or valid for its type: an object that was created here and not freed, used by one thread at a
//! time; as many bytes as the length beside it says; or a text that ends with a zero byte. Only null can be checked.
//! Any other mistake is reported by an error code; see [`error`]. A panic never crosses into C: the object then returns
//! `WW_PANIC` from every call and does nothing.

#[cfg(test)]
mod calls;
pub mod error;
mod guard;
pub mod ikcp;
pub mod session;
