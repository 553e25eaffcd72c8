//! A congestion window in bytes, for a trait that counts segments.

use super::{Ack, Sent};

/// A congestion window in bytes. Counted in segments it is larger where they are short, so that a
/// game's small messages do not wait for a window that is made for large ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Bytes; 0: the size of a segment is not known yet.
    bytes: u64,
    /// Mean payload of the segments sent, in 1/16 bytes.
    mean: u64,
}

impl Window {
    pub(super) const fn new() -> Self {
        Self { bytes: 0, mean: 0 }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets it to `bytes`, but for the least and the largest of segments of `mss` bytes.
    pub(super) fn set(&mut self, bytes: u64, mss: u16) {
        let mss = u64::from(mss);
        self.bytes = bytes.clamp(LEAST * mss, MOST * mss);
    }

    /// Opens it, when it is still closed.
    pub(super) fn open(&mut self, mss: u16) {
        if self.bytes == 0 {
            self.set(INITIAL * u64::from(mss), mss);
        }
    }

    /// In segments of the size that is sent.
    pub(super) fn segments(&self) -> u32 {
        let segments = if self.bytes == 0 { INITIAL } else { self.in_segments(self.bytes).max(LEAST) };
        u32::try_from(segments).unwrap_or(u32::MAX)
    }

    /// `bytes` in segments of the size that is sent.
    pub(super) fn in_segments(&self, bytes: u64) -> u64 {
        bytes / (self.mean / 16).max(SHORT)
    }

    /// `quarters` / 4 of it each `rtt` µs, in bytes a second; `None`: it is closed.
    pub(super) fn rate(&self, quarters: u64, rtt: u64) -> Option<u64> {
        let rate = self.bytes.saturating_mul(250_000 * quarters) / rtt.max(1);
        (self.bytes > 0).then_some(rate.max(1))
    }

    /// Learns the size of what is sent.
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let len = u64::from(sent.len);
        self.mean = if self.mean == 0 { 16 * len } else { self.mean - self.mean / 16 + len };
    }

    /// Whether half of it at least was in use. Else it is the application that limits what is in
    /// flight, and what is acknowledged says nothing of the window. Source: RFC 7661.
    pub(super) fn is_used(&self, ack: &Ack) -> bool {
        ack.in_flight >= self.segments() / 2
    }
}

/// Window to begin with, segments. Source: RFC 6928.
const INITIAL: u64 = 10;
/// Least window, segments: enough that what is acknowledged keeps coming. Source: BBR,
/// draft-cardwell-iccrg-bbr-congestion-control, `BBRMinPipeCwnd`.
const LEAST: u64 = 4;
/// Largest window, segments: twice what may be in flight.
const MOST: u64 = 1 << 17;
/// What shorter segments count as, bytes.
const SHORT: u64 = 64;
