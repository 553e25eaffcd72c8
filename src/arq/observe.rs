//! The event log of a control block, while it is switched on.
//!
//! Where something was sent again, or is about to be acknowledged, the log is told; everything else follows from how the control block
//! stands after a call and how it stood before, so that a log that is off costs a look at whether there is one.

use super::event::{Cause, KcpEvent};
use super::outgoing::Outgoing;
use super::stats::{Counters, Rejected};
use super::{Kcp, Work};
use crate::events::{EventLog, Logged, write_lines};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::{Header, Output};
use std::io;

/// A log, and how its control block stood when it was last looked at.
#[derive(Debug)]
pub(super) struct Observer {
    log: EventLog<KcpEvent>,
    snd_una: Sn,
    snd_nxt: Sn,
    rcv_nxt: Sn,
    in_flight: u32,
    counters: Counters,
    window: Option<KcpEvent>,
    queue: Option<KcpEvent>,
    dead: bool,
}

impl Observer {
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.log.memory()
    }

    /// A flush begins that sends so many ACKs, and the probes that are due.
    pub(super) fn before_flush(
        &mut self,
        now: Time,
        header: &Header,
        acks: usize,
        (ask, tell): (bool, bool),
    ) {
        if let Some(n) = u32::try_from(acks).ok().filter(|n| *n > 0) {
            self.log.push(now, KcpEvent::Acks { n, una: header.una, wnd: header.wnd });
        }
        if ask || tell {
            self.log.push(now, KcpEvent::Probe { ask, tell });
        }
    }

    /// A segment was sent again.
    pub(super) fn resent(&mut self, now: Time, sn: Sn, segment: &Outgoing, cause: Cause) {
        let (bytes, xmit) = (segment.len, segment.flight.xmit);
        self.log.push(now, KcpEvent::Resend { sn, bytes, xmit, cause });
    }

    pub(super) fn path_changed(&mut self, now: Time) {
        self.log.push(now, KcpEvent::Path);
    }

    /// Tells what was refused since it was last looked.
    fn reject(&mut self, now: Time, rejected: &Rejected) {
        let before = std::mem::replace(&mut self.counters.rejected, *rejected);
        for ((reason, after), (_, before)) in rejected.by_reason().into_iter().zip(before.by_reason()) {
            if after > before {
                self.log.push(now, KcpEvent::Reject { reason, n: after - before });
            }
        }
    }
}

impl<O: Output> Kcp<O> {
    /// Logs what happens from now on and keeps the newest `most` events, 40 bytes each, until they are [taken](Self::poll_log); 0
    /// switches the log off and forgets them. May be called at any time. A log that is on goes on with the new bound.
    ///
    /// Off, it costs a few instructions a flush and a datagram.
    pub fn log_events(&mut self, now: Time, most: usize) {
        if most == 0 {
            if let Some(work) = &mut self.work {
                work.observer = None;
            }
            return;
        }
        if let Some(observer) = self.observer() {
            return observer.log.set_most(most);
        }
        let (snd_una, snd_nxt, rcv_nxt) = (self.sender.una(), self.sender.nxt, self.receiver.nxt);
        let mut log = EventLog::new(most);
        let (conv, mss) = (self.conv, self.config.mss());
        log.push(now, KcpEvent::Start { conv, snd_una, snd_nxt, rcv_nxt, mss });
        let (in_flight, counters, dead) = (self.sender.in_flight, self.counters, self.dead);
        let (window, queue) = (None, None);
        let observer = Observer { log, snd_una, snd_nxt, rcv_nxt, in_flight, counters, window, queue, dead };
        self.work.get_or_insert_default().observer = Some(Box::new(observer));
        self.log_state(now);
    }

    /// Whether events are logged.
    #[must_use]
    pub fn is_logging(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.observer.is_some())
    }

    /// Takes the oldest event of the log; displayed, it is a line of docs/EVENTS.md.
    pub fn poll_log(&mut self) -> Option<Logged<KcpEvent>> {
        self.observer()?.log.pop()
    }

    /// Takes all events of the log and writes a line of JSON each, by many small writes; returns how many. docs/EVENTS.md has the lines, and how
    /// to draw them.
    ///
    /// # Errors
    ///
    /// What `out` says. The event that it did not take is gone.
    pub fn write_log(&mut self, out: &mut impl io::Write) -> io::Result<usize> {
        write_lines(out, || self.poll_log())
    }

    fn observer(&mut self) -> Option<&mut Observer> {
        self.work.as_mut()?.observer.as_deref_mut()
    }

    /// A datagram was refused.
    #[cold]
    pub(super) fn log_refused(&mut self, now: Time) {
        let rejected = self.counters.rejected;
        if let Some(observer) = self.observer() {
            observer.reject(now, &rejected);
        }
    }

    /// A datagram was taken, that acknowledged so many bytes and measured a round trip, or not.
    #[cold]
    pub(super) fn log_input(&mut self, now: Time, acked_bytes: u32, sample: Option<u32>) {
        let unit = if self.config.is_by_time() { 1 } else { 1000 };
        let (una, in_flight, rcv_nxt) = (self.sender.una(), self.sender.in_flight, self.receiver.nxt);
        let (rtt, counters) = (self.rtt, self.counters);
        let Some(observer) = self.observer() else { return };
        let Observer { log, counters: before, .. } = observer;
        let segments = counters.segments_received - before.segments_received;
        log.push(now, KcpEvent::In { segments, bytes: counters.bytes_received - before.bytes_received });
        if una != observer.snd_una || in_flight != observer.in_flight {
            let n = observer.in_flight.saturating_sub(in_flight);
            log.push(now, KcpEvent::Ack { una, n, bytes: acked_bytes });
        }
        if let Some(sample) = sample {
            let times = [sample, rtt.srtt, rtt.rttvar, rtt.rto];
            let [rtt, srtt, rttvar, rto] = times.map(|time| time.saturating_mul(unit));
            log.push(now, KcpEvent::Rtt { rtt, srtt, rttvar, rto });
        }
        if rcv_nxt != observer.rcv_nxt {
            log.push(now, KcpEvent::Recv { rcv_nxt, n: rcv_nxt.0.wrapping_sub(observer.rcv_nxt.0) });
        }
        let more = |after: u32, before: u32| Some(after.saturating_sub(before)).filter(|n| *n > 0);
        if let Some(n) = more(counters.duplicates, before.duplicates) {
            log.push(now, KcpEvent::Duplicate { n });
        }
        if let Some(n) = more(counters.rebuilt, before.rebuilt) {
            log.push(now, KcpEvent::Rebuilt { n });
        }
        observer.reject(now, &counters.rejected);
        self.log_state(now);
    }

    /// A flush has ended.
    #[cold]
    pub(super) fn log_flush(&mut self, now: Time) {
        let (nxt, dead, counters) = (self.sender.nxt, self.dead, self.counters);
        let Some(Work { observer: Some(observer), .. }) = self.work.as_deref_mut() else { return };
        let (first, before) = (observer.snd_nxt, observer.counters);
        let n = nxt.0.wrapping_sub(first.0);
        if n > 0 {
            let len = |offset| self.sender.ring.get(first.add(offset)).map_or(0, |one| u64::from(one.len));
            observer.log.push(now, KcpEvent::Send { sn: first, n, bytes: (0..n).map(len).sum() });
        }
        if counters.repairs_sent > before.repairs_sent {
            let n = counters.repairs_sent - before.repairs_sent;
            observer.log.push(now, KcpEvent::Repair { n });
        }
        if counters.segments_sent > before.segments_sent {
            let segments = counters.segments_sent - before.segments_sent;
            let bytes = counters.bytes_sent - before.bytes_sent;
            observer.log.push(now, KcpEvent::Out { segments, bytes });
        }
        if dead && !observer.dead {
            observer.log.push(now, KcpEvent::Dead);
        }
        observer.dead = dead;
        self.log_state(now);
    }

    /// Tells of windows and queues what has changed, and notes how all stands.
    fn log_state(&mut self, now: Time) {
        let control = self.congestion.control();
        let (cwnd, ssthresh) = (control.window(), control.ssthresh());
        let window = KcpEvent::Window { cwnd, ssthresh, rmt_wnd: self.rmt_wnd };
        let queue = KcpEvent::Queue {
            snd_queue: self.sender.waiting(),
            in_flight: self.sender.in_flight,
            rcv_queue: self.receiver.queued(),
            rcv_buf: self.receiver.parked,
        };
        let Some(Work { observer: Some(observer), .. }) = self.work.as_deref_mut() else { return };
        observer.log.tell(now, &mut observer.window, window);
        observer.log.tell(now, &mut observer.queue, queue);
        (observer.snd_una, observer.snd_nxt) = (self.sender.una(), self.sender.nxt);
        (observer.rcv_nxt, observer.in_flight) = (self.receiver.nxt, self.sender.in_flight);
        observer.counters = self.counters;
    }
}
