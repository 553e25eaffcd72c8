//! A path for tests of controllers: a constant delay, a bottleneck with its queue, nothing else.

use super::{Ack, CongestionControl, Loss, Sent};
use crate::seq::Sn;
use crate::time::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// What a path does.
#[derive(Clone, Copy)]
pub(super) struct Path {
    /// Bytes a second.
    pub(super) rate: u64,
    pub(super) base: Duration,
    /// Bytes that may wait.
    pub(super) queue: u64,
    /// One of so many segments gets lost; 0: none of them.
    pub(super) loses: u64,
    /// Bytes a second that the application sends; `None`: as many as may leave.
    pub(super) app: Option<u64>,
}

impl Path {
    pub(super) const fn new(rate: u64, rtt_ms: u64) -> Self {
        Self { rate, base: Duration::from_millis(rtt_ms), queue: u64::MAX, loses: 0, app: None }
    }
}

/// A sender on a path, from its first segment on.
pub(super) struct Model<C> {
    pub(super) control: C,
    pub(super) path: Path,
    pub(super) now: Time,
    /// When the bottleneck has sent all that waits.
    busy: Time,
    /// When pacing and the application let the next segment out.
    next: Time,
    under_way: VecDeque<UnderWay>,
    sent: u64,
}

struct UnderWay {
    left: Time,
    returns: Time,
    is_lost: bool,
}

/// What a while of it brought.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Part of the rate that was used.
    pub(super) share: f64,
    /// Mean time in the queue, in segments of the bottleneck.
    pub(super) queued: f64,
}

impl<C: CongestionControl> Model<C> {
    pub(super) fn new(control: C, path: Path) -> Self {
        let now = Time::from_millis(1);
        Self { control, path, now, busy: now, next: now, under_way: VecDeque::new(), sent: 0 }
    }

    pub(super) fn run(&mut self, time: Duration) -> Outcome {
        let (start, end) = (self.now, self.now + time);
        let (mut delivered, mut queued, mut acks) = (0u64, Duration::ZERO, 0u64);
        self.control.on_tick(self.now, MSS);
        while self.now < end {
            let may_send = self.in_flight() < self.control.window();
            let returns = self.under_way.front().map_or(end, |first| first.returns);
            if may_send && self.next.max(self.now) < returns {
                self.now = self.next.max(self.now);
                self.send(1);
                continue;
            }
            self.now = returns;
            let in_flight = self.in_flight();
            let Some(first) = self.under_way.pop_front() else { break };
            if first.is_lost {
                self.lose();
                continue;
            }
            let rtt = self.now.since(first.left);
            (delivered, acks, queued) =
                (delivered + u64::from(MSS), acks + 1, queued + rtt.saturating_sub(self.path.base));
            self.control.on_rtt(self.now, rtt);
            let bytes = u32::from(MSS);
            self.control.on_ack(&Ack {
                now: self.now,
                segments: 1,
                bytes,
                in_flight,
                rmt_wnd: 9999,
                mss: MSS,
            });
        }
        let seconds = self.now.since(start).as_secs_f64();
        Outcome {
            share: delivered as f64 / seconds / self.path.rate as f64,
            queued: queued.as_secs_f64() / acks.max(1) as f64 * self.path.rate as f64 / f64::from(MSS),
        }
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.under_way.len()).unwrap()
    }

    /// A segment leaves, at the rate of the pacer or of the application.
    fn send(&mut self, xmit: u16) {
        let after = |rate: u64| Duration::from_micros(u64::from(MSS) * 1_000_000 / rate.max(1));
        let (pacing, app) = (self.control.pacing_rate().map(after), self.path.app.map(after));
        self.next = self.now + pacing.max(app).unwrap_or_default();
        self.sent += 1;
        let start = self.busy.max(self.now);
        let backlog = start.since(self.now).as_micros() * u128::from(self.path.rate) / 1_000_000;
        let is_dropped = backlog + u128::from(MSS) > self.path.queue.into();
        let returns = if is_dropped { start } else { start + after(self.path.rate) };
        self.busy = returns;
        let is_lost = is_dropped || self.sent.is_multiple_of(self.path.loses);
        self.under_way.push_back(UnderWay { left: self.now, returns: returns + self.path.base, is_lost });
        let (now, in_flight) = (self.now, self.in_flight());
        self.control.on_sent(&Sent { now, sn: Sn(0), len: MSS, xmit, in_flight });
    }

    fn lose(&mut self) {
        let loss = Loss { fast: 1, in_flight: self.in_flight(), ..Loss::none(self.now) };
        self.send(2);
        self.control.on_loss(&loss);
    }
}

impl Loss {
    /// No segment sent again.
    pub(super) const fn none(now: Time) -> Self {
        Self { now, timeouts: 0, fast: 0, in_flight: 0, prior_window: 0, fast_resend: 2, mss: MSS }
    }
}

/// Payload of every segment, bytes.
pub(super) const MSS: u16 = 1000;
