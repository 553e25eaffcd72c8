//! Adapts a program's congestion control to the library.
//!
//! `on_tick` and `pacing_rate` are called when a flush begins. The other callbacks run after the call has done its work
//! and updated the block, in ikcp.c's order.

use super::block::{IKCPCB, IKCPOPS};
use std::time::Duration;
use ww::Time;
use ww::kcp::congestion::{Ack, CongestionControl, Loss, Sent};

/// A control block whose fields `cwnd`, `ssthresh` and `incr` are the state, and the events to report to the callbacks
/// of its `ccops`.
#[derive(Debug)]
pub(super) struct Callbacks {
    kcp: *mut IKCPCB,
    events: *mut Vec<Event>,
    /// The last result of `pacing_rate`, in bytes per second.
    rate: Option<u64>,
}

/// An event to report to callbacks.
#[derive(Debug)]
pub(super) enum Event {
    /// A flush began with this window.
    Flush {
        window: u32,
    },
    Sent(Sent),
    Loss(Loss),
    Rtt(i32),
    Ack(Ack),
}

// SAFETY: the program has promised to use a control block, with everything that belongs to it, from one thread at a
// time.
unsafe impl Send for Callbacks {}
// SAFETY: the same promise. The library itself looks only from within calls of that thread.
unsafe impl Sync for Callbacks {}

impl Callbacks {
    /// # Safety
    ///
    /// Both live longer than this, and the caller has no reference to either.
    pub(super) const unsafe fn new(kcp: *mut IKCPCB, events: *mut Vec<Event>) -> Self {
        Self { kcp, events, rate: None }
    }

    fn block(&self) -> &IKCPCB {
        // SAFETY: see `new`; no callback runs during this borrow.
        unsafe { &*self.kcp }
    }

    fn push(&mut self, event: Event) {
        // SAFETY: see `new`.
        unsafe { (*self.events).push(event) }
    }
}

impl CongestionControl for Callbacks {
    /// ikcp.c counts from `snd_una` on; the library counts what has not arrived.
    fn window(&self) -> u32 {
        let block = self.block();
        let span = block.snd_nxt.wrapping_sub(block.snd_una);
        block.cwnd.saturating_sub(span.saturating_sub(block.nsnd_buf))
    }

    fn ssthresh(&self) -> Option<u32> {
        Some(self.block().ssthresh)
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.segments > 0 {
            self.push(Event::Ack(*ack));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.push(Event::Loss(*loss));
    }

    fn on_rtt(&mut self, _: Time, rtt: Duration) {
        self.push(Event::Rtt(i32::try_from(rtt.as_millis()).unwrap_or(i32::MAX)));
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.push(Event::Sent(*sent));
    }

    fn on_flush(&mut self, now: Time) {
        let kcp = self.kcp;
        // SAFETY: see `new`.
        unsafe {
            (*kcp).current = now.wire().0;
            if let Some(on_tick) = ops(kcp).and_then(|ops| ops.on_tick) {
                on_tick(kcp);
            }
            let a_flush = ops(kcp).and_then(|ops| ops.pacing_rate).map(|rate| rate(kcp));
            let a_flush = a_flush.filter(|bytes| i32::try_from(*bytes).is_ok());
            let interval = u64::from((*kcp).interval.max(1));
            self.rate = a_flush.map(|bytes| u64::from(bytes) * 1000 / interval);
        }
        self.push(Event::Flush { window: self.block().cwnd });
    }

    fn on_tick(&mut self, _: Time, _: u16) {
        // SAFETY: see `new`.
        unsafe { keep_open(self.kcp) }
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.rate
    }
}

/// # Safety
///
/// `kcp` is a control block, and its `ccops` is null or valid.
unsafe fn ops<'a>(kcp: *mut IKCPCB) -> Option<&'a IKCPOPS> {
    // SAFETY: as the caller says.
    unsafe { (*kcp).ccops.as_ref() }
}

/// Calls the callbacks, or does what ikcp.c does if one is null.
///
/// # Safety
///
/// `kcp` is an up-to-date control block to which nobody has a reference; its `ccops` is null or valid.
pub(super) unsafe fn tell(kcp: *mut IKCPCB, events: &[Event]) {
    let mut prior_window = 0;
    for event in events {
        // SAFETY: as the caller says.
        unsafe {
            let Some(ops) = ops(kcp) else { return };
            let in_flight = (*kcp).nsnd_buf;
            match event {
                Event::Flush { window } => {
                    prior_window = *window;
                    let most = prior_window.min((*kcp).snd_wnd).min((*kcp).rmt_wnd);
                    if let (0, true, Some(limited)) = ((*kcp).nsnd_que, in_flight < most, ops.on_app_limited)
                    {
                        limited(kcp, in_flight);
                    }
                }
                Event::Sent(Sent { now, sn, len, xmit, .. }) => {
                    if let Some(on_sent) = ops.on_pkt_sent {
                        on_sent(kcp, sn.0, now.wire().0, (*len).into(), in_flight, (*xmit).into());
                    }
                }
                Event::Loss(loss) => lost(kcp, loss, prior_window),
                Event::Rtt(rtt) => {
                    if let Some(on_rtt) = ops.on_rtt {
                        on_rtt(kcp, *rtt);
                    }
                }
                Event::Ack(ack) => match ops.on_ack {
                    Some(on_ack) => on_ack(kcp, ack.segments, ack.bytes, ack.in_flight),
                    None => grow(&mut *kcp),
                },
            }
        }
    }
    if events.iter().any(|event| matches!(event, Event::Flush { .. })) {
        // SAFETY: as the caller says.
        unsafe { keep_open(kcp) }
    }
}

/// # Safety
///
/// As [`tell`].
unsafe fn lost(kcp: *mut IKCPCB, loss: &Loss, prior_window: u32) {
    // SAFETY: as the caller says.
    unsafe {
        if loss.fast > 0 {
            match ops(kcp).and_then(|ops| ops.on_fast_retransmit) {
                Some(on_fast) => on_fast(kcp, loss.fast, (*kcp).nsnd_buf, prior_window),
                None => {
                    (*kcp).ssthresh = (loss.in_flight / 2).max(2);
                    set(&mut *kcp, (*kcp).ssthresh.saturating_add(loss.fast_resend.into()));
                }
            }
        }
        if loss.timeouts > 0 {
            match ops(kcp).and_then(|ops| ops.on_timeout) {
                Some(on_timeout) => on_timeout(kcp, prior_window),
                None => {
                    (*kcp).ssthresh = (prior_window / 2).max(2);
                    set(&mut *kcp, 1);
                }
            }
        }
    }
}

/// Sets the window, in segments and in bytes.
pub(super) const fn set(block: &mut IKCPCB, cwnd: u32) {
    block.cwnd = cwnd;
    block.incr = cwnd.saturating_mul(block.mss);
}

/// A flush does not end with a window of 0. Source: ikcp.c `ikcp_flush`.
///
/// # Safety
///
/// As [`tell`].
unsafe fn keep_open(kcp: *mut IKCPCB) {
    // SAFETY: as the caller says.
    unsafe {
        if (*kcp).cwnd < 1 {
            set(&mut *kcp, 1);
        }
    }
}

/// Doubles up to `ssthresh`, then adds a segment per window. Source: ikcp.c `ikcp_input`.
fn grow(block: &mut IKCPCB) {
    let mss = block.mss.max(1);
    if block.cwnd >= block.rmt_wnd {
        return;
    }
    if block.cwnd < block.ssthresh {
        block.cwnd += 1;
        block.incr = block.incr.saturating_add(mss);
    } else {
        block.incr = block.incr.max(mss);
        block.incr = block.incr.saturating_add(mss.saturating_mul(mss) / block.incr + mss / 16);
        if (block.cwnd + 1).saturating_mul(mss) <= block.incr {
            block.cwnd = block.incr.div_ceil(mss);
        }
    }
    if block.cwnd > block.rmt_wnd {
        set(block, block.rmt_wnd);
    }
}
