//! The event log of a control block, while it is on.
//!
//! The log is told when something is resent or is about to be acknowledged. Everything else is derived by comparing the
//! state before and after a call. So a log that is off costs only a check whether there is one.

use super::probe::Probe;
use super::stats::{Rejected, Stats};
use super::{Kcp, Work};
use crate::events::{EventLog, Field, Line, Logged, events, write_lines};
use crate::seq::{Conv, Sn};
use crate::time::Time;
use crate::wire::{Header, Output};
use std::{fmt, io};

/// A log, and the state of its control block when last compared.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) log: EventLog<Event>,
    before: Stats,
    was_dead: bool,
}

impl Observer {
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.log.memory()
    }

    /// Logs what a flush is about to send: `acks` ACKs and the due probes.
    pub(super) fn before_flush(&mut self, now: Time, header: &Header, acks: usize, probe: &Probe) {
        if let Some(n) = u32::try_from(acks).ok().filter(|n| *n > 0) {
            self.log.push(now, Event::Acks { n, una: header.una, wnd: header.wnd });
        }
        let Probe { ask, tell, .. } = *probe;
        if ask || tell {
            self.log.push(now, Event::Probe { ask, tell });
        }
    }

    fn reject(&mut self, now: Time, rejected: &Rejected) {
        let before = std::mem::replace(&mut self.before.rejected, *rejected);
        for ((reason, after), (_, before)) in rejected.by_reason().into_iter().zip(before.by_reason()) {
            if after > before {
                self.log.push(now, Event::Reject { reason, n: after - before });
            }
        }
    }

    /// Logs changed windows and queues, and stores the state for the next comparison.
    fn note(&mut self, now: Time, after: Stats) {
        for event in [window, queue] {
            if event(&after) != event(&self.before) {
                self.log.push(now, event(&after));
            }
        }
        self.before = after;
    }
}

const fn window(stats: &Stats) -> Event {
    Event::Window { cwnd: stats.cwnd, ssthresh: stats.ssthresh, rmt_wnd: stats.rmt_wnd }
}

const fn queue(stats: &Stats) -> Event {
    let Stats { snd_queue, in_flight, rcv_queue, rcv_buf, .. } = *stats;
    Event::Queue { snd_queue, in_flight, rcv_queue, rcv_buf }
}

impl<O: Output> Kcp<O> {
    /// Logs events from now on. Keeps the newest `most` events, 40 bytes each, until they are [taken](Self::poll_log).
    /// 0 switches the log off and clears it. You can call this at any time; a log that is on continues with the new
    /// limit.
    ///
    /// While off, it costs a few instructions per flush and datagram.
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
        let (before, mut log) = (self.stats(), EventLog::new(most));
        let Stats { snd_una, snd_nxt, rcv_nxt, .. } = before;
        log.push(now, Event::Start { conv: self.conv, snd_una, snd_nxt, rcv_nxt, mss: self.config.mss() });
        [window, queue].into_iter().for_each(|event| log.push(now, event(&before)));
        let observer = Observer { log, before, was_dead: self.sender.dead };
        self.work.get_or_insert_default().observer = Some(Box::new(observer));
    }

    /// Whether events are logged.
    #[must_use]
    pub fn is_logging(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.observer.is_some())
    }

    /// Takes the oldest event of the log. Its `Display` is a line of docs/EVENTS.md.
    pub fn poll_log(&mut self) -> Option<Logged<Event>> {
        self.observer()?.log.pop()
    }

    /// Takes all events of the log and writes each as a line of JSON, with many small writes. Returns how many.
    /// docs/EVENTS.md explains the lines and how to draw them.
    ///
    /// # Errors
    ///
    /// Errors of `out`. The event that could not be written is lost.
    pub fn write_log(&mut self, out: &mut impl io::Write) -> io::Result<usize> {
        write_lines(out, || self.poll_log())
    }

    fn observer(&mut self) -> Option<&mut Observer> {
        self.work.as_mut()?.observer.as_deref_mut()
    }

    #[cold]
    pub(super) fn log_refused(&mut self, now: Time) {
        let rejected = self.counters.rejected;
        if let Some(observer) = self.observer() {
            observer.reject(now, &rejected);
        }
    }

    /// Logs an accepted datagram, or acknowledgements that count later: the bytes that it acknowledged, and the round trip if it measured one.
    #[cold]
    pub(super) fn log_input(&mut self, now: Time, acked_bytes: u32, sample: Option<u32>) {
        let unit = if self.config.is_by_time() { 1 } else { 1000 };
        let (rtt, after) = (self.rtt, self.stats());
        let Some(observer) = self.observer() else { return };
        let Observer { log, before, .. } = &mut *observer;
        let segments = after.segments_received - before.segments_received;
        if segments > 0 {
            log.push(now, Event::In { segments, bytes: after.bytes_received - before.bytes_received });
        }
        let (una, in_flight) = (after.snd_una, after.in_flight);
        if (una, in_flight) != (before.snd_una, before.in_flight) {
            let n = before.in_flight.saturating_sub(in_flight);
            log.push(now, Event::Ack { una, n, bytes: acked_bytes });
        }
        if let Some(sample) = sample {
            let times = [sample, rtt.srtt, rtt.rttvar, rtt.rto];
            let [rtt, srtt, rttvar, rto] = times.map(|time| time.saturating_mul(unit));
            log.push(now, Event::Rtt { rtt, srtt, rttvar, rto });
        }
        let (rcv_nxt, n) = (after.rcv_nxt, after.rcv_nxt.0.wrapping_sub(before.rcv_nxt.0));
        if n > 0 {
            log.push(now, Event::Recv { rcv_nxt, n });
        }
        if after.duplicates > before.duplicates {
            log.push(now, Event::Duplicate { n: after.duplicates - before.duplicates });
        }
        if after.rebuilt > before.rebuilt {
            log.push(now, Event::Rebuilt { n: after.rebuilt - before.rebuilt });
        }
        observer.reject(now, &after.rejected);
        observer.note(now, after);
    }

    #[cold]
    pub(super) fn log_flush(&mut self, now: Time) {
        let (after, dead) = (self.stats(), self.sender.dead);
        let Some(Work { observer: Some(observer), .. }) = self.work.as_deref_mut() else { return };
        let Observer { log, before, was_dead } = &mut **observer;
        let (first, n) = (before.snd_nxt, after.snd_nxt.0.wrapping_sub(before.snd_nxt.0));
        if n > 0 {
            let len = |offset| self.sender.ring.get(first.add(offset)).map_or(0, |one| u64::from(one.len));
            log.push(now, Event::Send { sn: first, n, bytes: (0..n).map(len).sum() });
        }
        if after.repairs_sent > before.repairs_sent {
            log.push(now, Event::Repair { n: after.repairs_sent - before.repairs_sent });
        }
        let (segments, bytes) =
            (after.segments_sent - before.segments_sent, after.bytes_sent - before.bytes_sent);
        if segments > 0 {
            log.push(now, Event::Out { segments, bytes });
        }
        if dead && !std::mem::replace(was_dead, dead) {
            log.push(now, Event::Dead);
        }
        observer.note(now, after);
    }
}

events! {
    /// Something that a control block did, from [`Kcp::poll_log`](super::Kcp::poll_log). Its `Display` is the fields of
    /// its line, which docs/EVENTS.md explains.
    Event {
        /// The log begins here.
        "start" Start {
            conv: Conv = "The conversation.",
            snd_una: Sn = "The oldest unacknowledged number.",
            snd_nxt: Sn = "The number of the next new segment.",
            rcv_nxt: Sn = "The number expected next from the peer.",
            mss: u16 = "Largest payload of a segment, bytes.",
        },
        /// Segments were sent for the first time: `n` of them from `sn` on, with `bytes` of payload in all.
        "send" Send { sn: Sn = "The first segment.", n: u32 = "How many.", bytes: u64 = "Their payload.", },
        /// A segment was sent again.
        "resend" Resend {
            sn: Sn = "Which segment.",
            bytes: u16 = "Its payload.",
            xmit: u16 = "How often it has been sent now.",
            cause: Cause = "Why.",
        },
        /// Repairs were sent, or copies to a peer that does not rebuild.
        "repair" Repair { n: u32 = "How many.", },
        /// A flush acknowledged segments.
        "acks" Acks {
            n: u32 = "ACKs that leave.",
            una: Sn = "Everything before this has arrived.",
            wnd: u16 = "The window that we advertise, segments.",
        },
        /// A flush asked for the peer's window, or told ours.
        "probe" Probe { ask: bool = "It asks.", tell: bool = "It tells.", },
        /// A flush handed out datagrams.
        "out" Out { segments: u64 = "Segments in them, of every command.", bytes: u64 = "Their total length.", },
        /// A good datagram arrived.
        "in" In { segments: u64 = "Segments in it, of every command.", bytes: u64 = "Its length.", },
        /// Segments in order were delivered.
        "recv" Recv { rcv_nxt: Sn = "The number expected next now.", n: u32 = "How many more can be read.", },
        /// Segments arrived that had arrived before.
        "duplicate" Duplicate { n: u32 = "How many.", },
        /// Segments were rebuilt from repairs.
        "rebuilt" Rebuilt { n: u32 = "How many.", },
        /// A datagram or a segment was refused or ignored.
        "reject" Reject {
            reason: &'static str = "The field of [`Rejected`](super::Rejected) that counts it.",
            n: u64 = "How many.",
        },
        /// Segments were acknowledged.
        "ack" Ack {
            una: Sn = "The oldest number unacknowledged now.",
            n: u32 = "Segments no longer in flight.",
            bytes: u32 = "Their payload.",
        },
        /// A round trip was measured. All in µs.
        "rtt" Rtt {
            rtt: u32 = "This round trip.",
            srtt: u32 = "Smoothed round trip.",
            rttvar: u32 = "Its mean deviation.",
            rto: u32 = "The resulting timeout.",
        },
        /// A window has changed. All in segments.
        "window" Window {
            cwnd: u32 = "Congestion window.",
            rmt_wnd: u16 = "The peer's, as last heard.",
            ssthresh: Option<u32> = "Window above which `cwnd` grows slowly, if the controller has one.",
        },
        /// A queue has changed. All in segments.
        "queue" Queue {
            snd_queue: u32 = "Waiting to be sent.",
            in_flight: u32 = "Sent and not acknowledged.",
            rcv_queue: u32 = "In order and not read.",
            rcv_buf: u32 = "Waiting for earlier ones.",
        },
        /// The path has changed: its measurements were cleared.
        "path" Path,
        /// The peer acknowledges nothing: see [`Kcp::is_dead`](super::Kcp::is_dead).
        "dead" Dead,
    }
}

impl Field for Event {
    fn write(&self, _name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
        line.fields(self)
    }
}

/// Why a segment was resent. [`Stats::resends_timeout`](super::Stats::resends_timeout) counts the first two,
/// [`Stats::resends_fast`](super::Stats::resends_fast) the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// Its retransmission timeout expired.
    Timeout,
    /// Nothing was acknowledged for so long that the path may be down: the oldest segment is sent as a probe.
    Silence,
    /// Enough datagrams acknowledged later segments.
    FastAck,
    /// A transmission that left later has arrived.
    Overtaken,
}

impl Field for Cause {
    fn write(&self, name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
        let cause = match self {
            Self::Timeout => "timeout",
            Self::Silence => "silence",
            Self::FastAck => "fastack",
            Self::Overtaken => "overtaken",
        };
        line.quoted(name, cause)
    }
}
