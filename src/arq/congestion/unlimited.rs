use super::CongestionControl;

/// No congestion control: only the windows of both ends limit what is in flight.
///
/// The knob `nc` has the same effect and keeps the built-in controller counting, as ikcp.c does, so
/// that it can be switched back; this one has no state at all.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Unlimited;

impl CongestionControl for Unlimited {
    fn window(&self) -> u32 {
        u32::MAX
    }
}
