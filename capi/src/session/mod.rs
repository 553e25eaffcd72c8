//! Clients and servers, each with its own socket, polled from a loop.
//!
//! The types `.._client` and `.._server` are created and freed here. Everything passed to them is copied.

pub mod client;
pub mod connection;
pub mod event;
pub mod options;
pub mod server;
#[cfg(feature = "crypto")]
pub mod token;

use crate::error::{Failure, WW_PANIC};
pub(crate) use connection::print;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::time::Duration;

/// # Safety
///
/// `text` is null, or ends with a zero byte.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::misuse("a text is null"));
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Failure::misuse("a text is not UTF-8"))
}

/// Returns what `make` makes; or null, with the error code in `error` and its text kept.
///
/// # Safety
///
/// `error` is null or points to an int.
unsafe fn made<T>(make: impl FnOnce() -> Result<*mut T, Failure>, error: *mut i32) -> *mut T {
    let panicked = || Err(Failure::new(WW_PANIC, "a panic, which is a bug in the library"));
    let made = catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|_| panicked());
    // SAFETY: as the caller says.
    if let Some(error) = unsafe { error.as_mut() } {
        *error = made.as_ref().err().map_or(0, |failure| failure.code);
    }
    made.unwrap_or_else(|failure| {
        failure.keep();
        null_mut()
    })
}

/// In ms, rounded up; -1: forever.
fn millis(wait: Option<Duration>) -> i64 {
    wait.map_or(-1, |wait| i64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX))
}
