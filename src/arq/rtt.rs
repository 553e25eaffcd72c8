//! Round trips and the timeout that follows from them.

use super::config::{Config, RTO_MAX};

/// Estimate of the round trip, all in ms, or by time in µs. Source: ikcp.c `ikcp_update_ack`; RFC 6298.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    /// Smoothed round trip; 0: none measured yet.
    pub(super) srtt: u32,
    /// Mean deviation.
    pub(super) rttvar: u32,
    /// Retransmission timeout.
    pub(super) rto: u32,
    /// Shortest round trip measured; `u32::MAX`: none.
    min: u32,
}

impl Rtt {
    pub(super) const fn new() -> Self {
        Self { srtt: 0, rttvar: 0, rto: RTO_DEFAULT, min: u32::MAX }
    }

    /// Folds one round trip, ms, into the estimate. A sample of 0 ms leaves a fresh estimate unset,
    /// as in ikcp.c.
    #[inline]
    pub(super) fn sample(&mut self, rtt: u32) {
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (3 * self.rttvar + rtt.abs_diff(self.srtt)) / 4;
            self.srtt = ((7 * self.srtt + rtt) / 8).max(1);
        }
        self.min = self.min.min(rtt);
    }

    /// The RTO that follows from the estimate.
    ///
    /// The peer may hold an ACK for a flush interval, so the RTO stays at least that far above
    /// `srtt`: RFC 6298 (2.3) with the interval where it has the clock granularity.
    pub(super) fn update_rto(&mut self, config: &Config) {
        let rto = self.srtt + (4 * self.rttvar).max(config.interval.into());
        self.rto = rto.max(config.rto_min()).min(RTO_MAX.into());
    }

    /// Shortest round trip measured, ms.
    pub(super) fn min(&self) -> Option<u32> {
        (self.min != u32::MAX).then_some(self.min)
    }
}

/// RTO before the first sample, ms. Source: ikcp.c `IKCP_RTO_DEF`.
const RTO_DEFAULT: u32 = 200;

/// Largest round trip that is believed, ms: two of the largest RTO. An older echo is forged, or from
/// before the clock jumped.
pub(super) const SAMPLE_MAX: i32 = 2 * RTO_MAX as i32;
