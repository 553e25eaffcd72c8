//! Error codes: negative values that functions return.

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
/// A setting is out of range.
pub const WW_CONFIG: i32 = -6;
/// A panic, now or earlier: the object cannot be used any more. This is a bug in the library.
pub const WW_PANIC: i32 = -7;
