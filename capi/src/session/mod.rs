//! Clients and servers, each with its own socket, polled from a loop.
//!
//! The types `.._client` and `.._server` are created and freed here. Everything passed to them is copied.

pub mod client;
pub mod connection;
pub mod event;
pub mod options;
pub mod server;

use crate::error::{WW_MISUSE, WW_PANIC};
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::time::Duration;

/// # Safety
///
/// `text` is null, or ends with a zero byte.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, i32> {
    if text.is_null() {
        return Err(WW_MISUSE);
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| WW_MISUSE)
}

/// Returns what `make` makes; or null, with the error code in `error`.
///
/// # Safety
///
/// `error` is null or points to an int.
unsafe fn made<T>(make: impl FnOnce() -> Result<*mut T, i32>, error: *mut i32) -> *mut T {
    let made = catch_unwind(AssertUnwindSafe(make)).unwrap_or(Err(WW_PANIC));
    // SAFETY: as the caller says.
    if let Some(error) = unsafe { error.as_mut() } {
        *error = made.as_ref().err().copied().unwrap_or(0);
    }
    made.unwrap_or(null_mut())
}

/// In ms, rounded up; -1: forever.
fn millis(wait: Option<Duration>) -> i64 {
    wait.map_or(-1, |wait| i64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX))
}
