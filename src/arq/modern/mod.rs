//! Recovery by time: what is lost follows from when it was sent and when later ones arrived, not
//! from counting; the clock runs in µs, and what is due leaves at once.
//!
//! The wire stays KCP's. The `ts` of a PUSH is only ever echoed, so here it is a token: the µs at
//! which it left, made unique, so that an ACK names the very transmission that arrived.

mod detect;
mod flights;
mod floor;
mod hold;
mod input;
mod protect;
mod rebuild;
mod resend;
mod spread;
mod waits;

use detect::{Rack, Sent};
use flights::Flights;
pub(super) use input::Arrivals;
pub(super) use rebuild::Rebuild;
pub(super) use resend::ByTime;
pub(super) use waits::Ride;

/// The parts of [`Recovery::Modern`](super::Recovery::Modern), each of which can be switched off to
/// see what it is worth. docs/TUNING.md has the figures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `Modern { .., ..Modern::default() }`")]
pub struct Modern {
    /// Send and acknowledge at once, whenever [`Kcp::update`](super::Kcp::update) is called; else at
    /// the beat of `interval`.
    pub at_once: bool,
    /// A segment is lost when one sent later has arrived, or else when its time is out; without,
    /// only when its time is out.
    pub by_time: bool,
    /// The timeout is the smoothed round trip and this many mean deviations: 1 to 8.
    pub deviations: u8,
    /// Leave out acknowledgements that `una` says as well. Towards a peer with `repairs`, they wait for the
    /// next packet or two of a steady beat as well, if those come within half a round trip.
    pub thin_acks: bool,
    /// Tell the last acknowledgement twice where losing it would cost more: with large segments that come
    /// one by one, towards a peer with `repairs`.
    pub repeat_acks: bool,
    /// Most bytes that protect what is in flight ahead of its loss, in percent of what is sent: 0 to 200.
    /// How many it is follows the loss. Towards a peer that has this above 0 too, these are repairs, of which
    /// it rebuilds what is lost without a round trip; towards any other, copies of segments of up to 400
    /// bytes. Whoever can forge a datagram can forge what is rebuilt as well.
    pub repairs: u8,
    /// Ask for a closed window after 200 ms, not 5 s, and tell four times that it has opened.
    pub early_probes: bool,
}

impl Default for Modern {
    fn default() -> Self {
        Self {
            at_once: true,
            by_time: true,
            deviations: 4,
            thin_acks: true,
            repeat_acks: true,
            repairs: 0,
            early_probes: true,
        }
    }
}
