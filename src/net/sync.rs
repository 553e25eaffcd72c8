//! What threads are made of and share, under the names of std. `tests/threads` replaces this file, to try every order
//! of their steps.

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize};
pub(super) use std::sync::mpsc;
pub(super) use std::thread;
pub(super) use whitewater_udp::Bell;
