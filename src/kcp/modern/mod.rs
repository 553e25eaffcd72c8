//! Recovery by time: what is lost follows from when it was sent and when later ones arrived, not
//! from counting; the clock runs in µs, and what is due leaves at once.
//!
//! The wire stays KCP's. The `ts` of a PUSH is only ever echoed, so here it is a token: the µs at
//! which it left, made unique, so that an ACK names the very transmission that arrived.

mod detect;
mod hold;
mod input;
mod protect;
mod rebuild;
mod resend;
mod spread;
mod waits;

use detect::{Rack, Sent};
pub(super) use input::Arrivals;
pub(super) use rebuild::Rebuild;
pub(super) use resend::ByTime;
pub(super) use waits::Ride;
