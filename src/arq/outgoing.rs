//! A segment on its way out, and what sending it again changes in it.

use crate::time::Millis;

/// A segment on its way out; 24 bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Outgoing {
    /// Where its payload starts, or would, if it is shared.
    pub(super) position: u32,
    pub(super) len: u16,
    pub(super) frg: u8,
    pub(super) shared: bool,
    pub(super) flight: Flight,
}

/// What sending fills in. Recovery by time uses only `ts`, `resend_at` and `xmit`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Flight {
    /// What it was sent with last: the time, or a token made of it.
    pub(super) ts: Millis,
    /// When it counts as lost; by time, what it was sent with the time before.
    pub(super) resend_at: Millis,
    /// Its own timeout, ms, which grows with every one.
    pub(super) rto: u32,
    /// How often it has been sent.
    pub(super) xmit: u16,
    /// Datagrams that acknowledged later segments.
    pub(super) fastack: u16,
}

/// Whether and why a segment is to be sent again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    NotYet,
    Timeout,
    FastResend,
}

impl Flight {
    /// The first transmission. Without nodelay it has an eighth more time. Source: ikcp.c
    /// `ikcp_flush`.
    pub(super) fn first(now: Millis, rto: u32, nodelay: u8) -> Self {
        let grace = if nodelay == 0 { rto / 8 } else { 0 };
        Self { ts: now, resend_at: now.add(rto + grace), rto, xmit: 1, fastack: 0 }
    }

    /// Commits a resend because the time was out. Source: ikcp.c `ikcp_flush`.
    pub(super) fn resend_after_timeout(&mut self, now: Millis, rto: u32, nodelay: u8) {
        self.rto = back_off(self.rto, rto, nodelay);
        self.resend(now);
    }

    /// Commits a resend because later segments were acknowledged. Source: ikcp.c `ikcp_flush`.
    pub(super) fn resend_fast(&mut self, now: Millis) {
        self.fastack = 0;
        self.resend(now);
    }

    /// Commits a resend with the token `ts`.
    pub(super) fn resend_by_time(&mut self, ts: Millis) {
        self.resend_at = self.ts;
        self.send_as(ts);
    }

    fn resend(&mut self, now: Millis) {
        self.send_as(now);
        self.resend_at = now.add(self.rto);
    }

    fn send_as(&mut self, ts: Millis) {
        self.xmit = self.xmit.saturating_add(1);
        self.ts = ts;
    }
}

/// RTO of a segment after one more timeout, ms. Source: ikcp.c `ikcp_flush`, where it has no end
/// and the comparison of times flips at 2^31 ms.
fn back_off(segment_rto: u32, rto: u32, nodelay: u8) -> u32 {
    let step = match nodelay {
        0 => segment_rto.max(rto),
        1 => segment_rto / 2,
        _ => rto / 2,
    };
    (segment_rto + step).min(BACK_OFF_MAX)
}

/// Longest RTO of a segment, ms: half the reach of the wire's clock.
const BACK_OFF_MAX: u32 = 1 << 30;
