//! Error codes: negative values that functions return.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Display;

/// Not now: there is nothing to read, or no room. Try again later.
pub const WW_AGAIN: i32 = -1;
/// The message does not fit into the buffer, and stays queued; or it is too long to send.
pub const WW_TOO_LONG: i32 = -2;
/// The session is over or not up yet, or there is no such session.
pub const WW_CLOSED: i32 = -3;
/// A null pointer, a negative length, an unknown index, an invalid address, or a call from within a callback.
pub const WW_MISUSE: i32 = -4;
/// The socket has failed, or could not be created.
pub const WW_IO: i32 = -5;
/// A setting is missing or out of range: `ww_error_text` says which.
pub const WW_CONFIG: i32 = -6;
/// A panic, now or earlier: the object cannot be used any more. This is a bug in the library.
pub const WW_PANIC: i32 = -7;

/// Why nothing was made.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One of `WW_..`.
    pub(crate) code: i32,
    /// The same in words.
    pub(crate) text: Cow<'static, str>,
}

impl Failure {
    pub(crate) fn new(code: i32, text: impl Display) -> Self {
        Self { code, text: text.to_string().into() }
    }

    pub(crate) const fn misuse(text: &'static str) -> Self {
        Self { code: WW_MISUSE, text: Cow::Borrowed(text) }
    }

    pub(crate) const fn config(text: &'static str) -> Self {
        Self { code: WW_CONFIG, text: Cow::Borrowed(text) }
    }

    /// Keeps the text for [`ww_error_text`].
    pub(crate) fn keep(self) {
        let _ = TEXT.try_with(|text| text.set(self.text)); // a thread that is ending may have dropped it
    }
}

thread_local! {
    /// Of the last failure.
    static TEXT: Cell<Cow<'static, str>> = const { Cell::new(Cow::Borrowed("")) };
}

/// Writes why the last `ww_server_bind`, `ww_client_connect` or `ww_token_mint` of this thread that failed did so, in words, as a text that ends
/// with a zero: for example which option is missing. Returns its length without the zero, 0 if none has failed; `WW_TOO_LONG`: `size` is too
/// small, 512 is enough.
///
/// # Safety
///
/// `buffer` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_error_text(buffer: *mut u8, size: usize) -> i32 {
    // SAFETY: as the caller says.
    let Some(buffer) = (unsafe { crate::guard::bytes_mut(buffer, size) }) else { return WW_MISUSE };
    let text = TEXT.try_with(Cell::take).unwrap_or_default();
    let len = crate::session::print(&text, buffer);
    let _ = TEXT.try_with(|kept| kept.set(text));
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Sender;

    /// What a C++ program does with an object that a thread drops when it ends.
    struct Last(Sender<i32>);

    impl Drop for Last {
        fn drop(&mut self) {
            Failure::misuse("too late").keep();
            let mut buffer = [1; 100];
            // SAFETY: the buffer has that size.
            let len = unsafe { ww_error_text(buffer.as_mut_ptr(), buffer.len()) };
            self.0.send(len).unwrap();
        }
    }

    thread_local! {
        static LAST: Cell<Option<Last>> = const { Cell::new(None) };
    }

    #[test]
    fn a_failure_while_its_thread_ends_aborts_nothing_and_has_no_text() {
        let (sender, lens) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(|| {
            LAST.set(Some(Last(sender))); // first, so it is dropped last
            Failure::misuse("in time").keep();
        });
        assert_eq!(lens.recv(), Ok(0));
        thread.join().unwrap();
    }
}
