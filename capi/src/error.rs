//! What a function answers that could not do what it was asked: less than zero.

/// Not now: nothing to take, or no room. Try again later.
pub const WW_AGAIN: i32 = -1;
/// The message does not fit into the buffer, and stays; or it is too long to be sent.
pub const WW_TOO_LONG: i32 = -2;
/// The session is over, or not up yet, or there is no such session.
pub const WW_CLOSED: i32 = -3;
/// A null pointer, a negative length, an index that there is none of, an address that is none, a call from within a callback.
pub const WW_MISUSE: i32 = -4;
/// The socket has failed, or could not be made.
pub const WW_IO: i32 = -5;
/// A value of a configuration is out of range.
pub const WW_CONFIG: i32 = -6;
/// There was a panic, now or earlier: this object is of no use any more. A bug of this library.
pub const WW_PANIC: i32 = -7;
