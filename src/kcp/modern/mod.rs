//! Modern recovery: loss is detected by timing, from when segments were sent and when later ones arrived, not by
//! counting. The clock has a resolution of 1 µs, and what is due is sent at once.
//!
//! The wire format stays KCP's. A peer only echoes the `ts` of a PUSH, so here it is a token: the time of sending in
//! µs, made unique. An ACK thus names the transmission that arrived.

mod detect;
mod hold;
mod input;
mod late;
mod protect;
mod proven;
mod rebuild;
mod resend;
mod spread;
mod timely;
mod waits;

use detect::{Rack, Sent};
pub(super) use input::Arrivals;
pub(super) use rebuild::Rebuild;
pub(super) use resend::ByTime;
pub(super) use waits::Ride;
