//! A congestion control of the program, as the library wants one.

use super::block::{IKCPCB, IKCPOPS};
use std::time::Duration;
use ww::Time;
use ww::arq::congestion::{Ack, CongestionControl, Loss, Sent};

/// The callbacks of a control block, and that block: its fields `cwnd`, `ssthresh` and `incr` are the state.
#[derive(Debug)]
pub(super) struct Callbacks {
    ops: *const IKCPOPS,
    kcp: *mut IKCPCB,
}

// SAFETY: a control block with all that belongs to it is used by one thread at a time, as the program has promised.
unsafe impl Send for Callbacks {}

impl Callbacks {
    /// # Safety
    ///
    /// Both live longer than this, and whoever calls this has no reference to either.
    pub(super) const unsafe fn new(ops: *const IKCPOPS, kcp: *mut IKCPCB) -> Self {
        Self { ops, kcp }
    }

    fn ops(&self) -> &IKCPOPS {
        // SAFETY: see `new`.
        unsafe { &*self.ops }
    }

    fn block(&self) -> &IKCPCB {
        // SAFETY: see `new`; no callback runs while this is used.
        unsafe { &*self.kcp }
    }

    fn block_mut(&mut self) -> &mut IKCPCB {
        // SAFETY: the same.
        unsafe { &mut *self.kcp }
    }

    /// A window, and what it has grown by.
    fn set(&mut self, cwnd: u32, mss: u32) {
        let block = self.block_mut();
        block.cwnd = cwnd;
        block.incr = cwnd.saturating_mul(mss);
    }

    /// Doubles up to `ssthresh`, then a segment a window: ikcp.c's `ikcp_input`.
    fn grow(&mut self, ack: &Ack) {
        let mss = u32::from(ack.mss).max(1);
        let block = self.block_mut();
        if ack.segments == 0 || block.cwnd >= u32::from(ack.rmt_wnd) {
            return;
        }
        if block.cwnd < block.ssthresh {
            let cwnd = block.cwnd.saturating_add(1);
            block.incr = block.incr.saturating_add(mss);
            block.cwnd = cwnd;
        } else {
            block.incr = block.incr.max(mss);
            block.incr = block.incr.saturating_add(mss.saturating_mul(mss) / block.incr + mss / 16);
            if block.cwnd.saturating_add(1).saturating_mul(mss) <= block.incr {
                block.cwnd = block.incr.div_ceil(mss);
            }
        }
        block.cwnd = block.cwnd.min(ack.rmt_wnd.into());
    }
}

impl CongestionControl for Callbacks {
    fn window(&self) -> u32 {
        self.block().cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        Some(self.block().ssthresh)
    }

    fn on_ack(&mut self, ack: &Ack) {
        match self.ops().on_ack {
            // SAFETY: see `new`.
            Some(on_ack) => unsafe { on_ack(self.kcp, ack.segments, ack.bytes, ack.in_flight) },
            None => self.grow(ack),
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let mss = loss.mss.into();
        if loss.fast > 0 {
            match self.ops().on_fast_retransmit {
                // SAFETY: see `new`.
                Some(on_fast) => unsafe { on_fast(self.kcp, loss.fast, loss.in_flight, loss.prior_window) },
                None => {
                    let ssthresh = (loss.in_flight / 2).max(2);
                    self.block_mut().ssthresh = ssthresh;
                    self.set(ssthresh.saturating_add(loss.fast_resend.into()), mss);
                }
            }
        }
        if loss.timeouts > 0 {
            match self.ops().on_timeout {
                // SAFETY: see `new`.
                Some(on_timeout) => unsafe { on_timeout(self.kcp, loss.prior_window) },
                None => {
                    self.block_mut().ssthresh = (loss.prior_window / 2).max(2);
                    self.set(1, mss);
                }
            }
        }
    }

    fn on_rtt(&mut self, _: Time, rtt: Duration) {
        if let Some(on_rtt) = self.ops().on_rtt {
            // SAFETY: see `new`.
            unsafe { on_rtt(self.kcp, i32::try_from(rtt.as_millis()).unwrap_or(i32::MAX)) }
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        if let Some(on_sent) = self.ops().on_pkt_sent {
            let Sent { now, sn, len, xmit, in_flight, .. } = *sent;
            // SAFETY: see `new`.
            unsafe { on_sent(self.kcp, sn.0, now.wire().0, len.into(), in_flight, xmit.into()) }
        }
    }

    fn on_app_limited(&mut self, in_flight: u32) {
        if let Some(on_app_limited) = self.ops().on_app_limited {
            // SAFETY: see `new`.
            unsafe { on_app_limited(self.kcp, in_flight) }
        }
    }

    fn on_tick(&mut self, _: Time, _: u16) {
        if let Some(on_tick) = self.ops().on_tick {
            // SAFETY: see `new`.
            unsafe { on_tick(self.kcp) }
        }
    }

    fn pacing_rate(&self) -> Option<u64> {
        let rate = self.ops().pacing_rate?;
        // SAFETY: see `new`.
        let a_flush = unsafe { rate(self.kcp) };
        let flushes_a_second = 1000 / u64::from(self.block().interval.max(1));
        i32::try_from(a_flush).is_ok().then(|| u64::from(a_flush) * flushes_a_second.max(1))
    }
}
