//! Stops panics at the border to C.

use crate::error::{WW_MISUSE, WW_PANIC};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An object behind a pointer that C holds.
pub(crate) trait Object {
    /// Whether it panicked: it is not used any more then.
    fn broken(&mut self) -> &mut bool;

    fn call(&mut self, f: impl FnOnce(&mut Self) -> i32) -> i32 {
        if *self.broken() {
            return WW_PANIC;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| f(self)));
        answer.unwrap_or_else(|_| {
            *self.broken() = true;
            WW_PANIC
        })
    }
}

/// Calls `f` with the object.
///
/// # Safety
///
/// `object` is null, or points to a value that nobody else uses in the meantime.
pub(crate) unsafe fn call<T: Object>(object: *mut T, f: impl FnOnce(&mut T) -> i32) -> i32 {
    // SAFETY: as the caller says.
    unsafe { object.as_mut() }.map_or(WW_MISUSE, |object| object.call(f))
}

/// `len` bytes from `data`. `None`: there cannot be so many.
///
/// # Safety
///
/// `data` is null, or points to `len` bytes that nobody changes during `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const u8, len: usize) -> Option<&'a [u8]> {
    // SAFETY: as the caller says.
    unsafe { array(data, len) }
}

/// `count` values from `data`. `None`: there cannot be so many.
///
/// # Safety
///
/// `data` is null, or points to `count` values that nobody changes during `'a`.
pub(crate) unsafe fn array<'a, T>(data: *const T, count: usize) -> Option<&'a [T]> {
    let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    match (data.is_null(), count) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: as the caller says; a slice is never longer than `isize::MAX` bytes.
        (false, _) => bytes.map(|_| unsafe { std::slice::from_raw_parts(data, count) }),
    }
}

/// Like [`bytes`], but writable.
///
/// # Safety
///
/// `data` is null, or points to `len` bytes that nobody else uses during `'a`.
pub(crate) unsafe fn bytes_mut<'a>(data: *mut u8, len: usize) -> Option<&'a mut [u8]> {
    // SAFETY: as the caller says.
    unsafe { array_mut(data, len) }
}

/// `count` values at `data`, to be written to.
///
/// # Safety
///
/// `data` is null, or points to `count` values that nobody else uses for `'a`.
pub(crate) unsafe fn array_mut<'a, T>(data: *mut T, count: usize) -> Option<&'a mut [T]> {
    let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    match (data.is_null(), count) {
        (_, 0) => Some(&mut []),
        (true, _) => None,
        // SAFETY: as the caller says; initialised or not, C's values are only written here.
        (false, _) => bytes.map(|_| unsafe { std::slice::from_raw_parts_mut(data, count) }),
    }
}

/// [`call`] with `len` bytes from `data`.
///
/// # Safety
///
/// As [`call`] and [`bytes`].
pub(crate) unsafe fn call_with<T: Object>(
    object: *mut T,
    data: *const u8,
    len: usize,
    f: impl FnOnce(&mut T, &[u8]) -> i32,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { bytes(data, len).map_or(WW_MISUSE, |data| call(object, |object| f(object, data))) }
}

/// [`call`] with `size` writable bytes at `data`.
///
/// # Safety
///
/// As [`call`] and [`bytes_mut`].
pub(crate) unsafe fn call_mut<T: Object>(
    object: *mut T,
    data: *mut u8,
    size: usize,
    f: impl FnOnce(&mut T, &mut [u8]) -> i32,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { bytes_mut(data, size).map_or(WW_MISUSE, |data| call(object, |object| f(object, data))) }
}

/// Frees an object.
///
/// # Safety
///
/// `object` is null, or was given to C as a box and not freed.
pub(crate) unsafe fn take_back<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: as the caller says.
        let object = unsafe { Box::from_raw(object) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
    }
}
