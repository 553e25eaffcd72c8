//! What a connection reports: statistics, what is known to have arrived, and the event log. While the log is on, it
//! takes what the KCP of each channel logs, and compares the session's state before and after each call.

use super::Connection;
use super::acks::Arrived;
use super::life::Life;
use super::loss::PathLoss;
use crate::channel::AnyChannel;
use crate::events::{EventLog, Logged, write_lines};
use crate::kcp::Kcp;
use crate::machine::Underlay;
use crate::pace::Rtt;
use crate::seq::Sn;
use crate::session::event::{CloseReason, SessionEvent};
use crate::session::repair::RepairStats;
use crate::session::stats::ConnectionStats;
use crate::time::{Time, micros};
use std::time::Duration;
use std::{fmt, io};

/// Round trips and losses.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Measured by the end of the handshake, by pings, and by acknowledged packets.
    pub(super) rtt: Rtt,
    pub(super) in_use: Option<Box<InUse>>,
}

/// What an idle session does not need. Created on first use.
#[derive(Debug, Default)]
pub(super) struct InUse {
    /// How much of what is sent gets lost.
    pub(super) loss: PathLoss,
    pub(super) arrived: Arrived,
    /// The newest packet that the peer has acknowledged.
    pub(super) acked: u64,
    /// Packets that left before this were held by a standstill of this end or of the path, so they measure no round
    /// trip.
    pub(super) held: Time,
}

impl Measured {
    pub(super) fn in_use(&mut self) -> &mut InUse {
        self.in_use.get_or_insert_default()
    }

    /// How long an acknowledgement may take, if the peer delays it as long as we do, by `ack_delay`.
    pub(super) fn patience(&self, ack_delay: Duration) -> Duration {
        let rtt = self.rtt.smoothed_micros();
        Duration::from_micros(rtt.saturating_add(rtt / 2)) + ack_delay + SLACK
    }

    /// The peer is reached by another path from the packet `next` on.
    pub(super) fn path_changed(&mut self, next: u64) {
        self.rtt = Rtt::default();
        if let Some(in_use) = &mut self.in_use {
            in_use.loss.path_changed(next);
        }
    }

    /// Takes the round trip of a packet that left at `left`, unless a standstill held it.
    pub(super) fn on_round_trip(&mut self, left: Time, rtt: Duration) {
        if self.in_use.as_ref().is_none_or(|in_use| left >= in_use.held) {
            self.rtt.sample(left, rtt);
        }
    }
}

/// The state of a session after its handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// It accepts messages.
    Up,
    /// It was closed at this end, and waits until everything sent has arrived.
    Draining,
    /// The peer is being told that it is over.
    Closing,
    /// It is over.
    Closed,
}

impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Closing => "closing",
            Self::Closed => "closed",
        })
    }
}

/// A log, and the state of its session at the last look.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) log: EventLog<SessionEvent>,
    stats: ConnectionStats,
    /// The last event logged of each part of the [state](Connection::state_events).
    last: [Option<SessionEvent>; 6],
}

impl Connection {
    /// What carries packets, in both directions, from now on.
    #[inline]
    pub(super) fn carried_by(&mut self, Underlay { is_lossless, .. }: Underlay) {
        if is_lossless != self.lanes.is_lossless {
            self.lanes.is_lossless = is_lossless;
            self.packed.iter_mut().for_each(|channels| channels.set_lossless(is_lossless));
        }
    }

    /// When a packet last left that the peer has to answer, and the round trip, 0 before the first.
    pub(in crate::session) fn asked(&self) -> (Time, Duration) {
        (self.keepalive.asked, self.measured.rtt.smoothed())
    }

    /// When the newest packet left that the peer has answered by this path.
    pub(in crate::session) const fn answered(&self) -> Time {
        self.measured.rtt.answered()
    }

    /// Forgets what was measured of the path.
    pub(super) fn forget_path(&mut self, now: Time) {
        self.lanes.blocks().for_each(|(_, kcp)| kcp.path_changed(now));
        if let Some(sent) = &mut self.sent {
            sent.path_changed();
        }
        self.mtu.path_changed();
        if let Some(marks) = &mut self.marks {
            marks.path_changed();
        }
        self.set_mtu();
        self.keepalive.path_changed();
        let next = self.seal.next();
        self.measured.path_changed(next - self.seal.skipped_up_to(self.key, next));
    }

    /// What the session has counted and measured.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        let Measured { rtt, in_use } = &self.measured;
        let (loss, undelivered) = (in_use.as_ref().map(|in_use| &in_use.loss), self.undelivered());
        let probes = self.mtu.counts();
        let mut stats = ConnectionStats {
            rtt: rtt.smoothed(),
            rttvar: rtt.jitter(),
            rtt_min: rtt.min(),
            loss: loss.and_then(|loss| loss.share(self.keepalive.now, u64::MAX)),
            packets_judged: loss.map_or(0, |loss| loss.judged),
            packets_lost: loss.map_or(0, |loss| loss.lost),
            kcp: self.lanes.totals(),
            datagrams_waiting: undelivered.datagrams,
            messages_unacked: undelivered.messages,
            memory: self.memory(),
            key_updates: self.seal.updates().0,
            mtu: self.mtu.current,
            mtu_probes: probes.sent,
            mtu_probes_lost: probes.lost,
            black_holes: probes.black_holes,
            ecn: self.marks.as_ref().is_some_and(|marks| marks.is_valid()),
            congestion_marks: self.marks.as_ref().map_or(0, |marks| marks.total),
            mode: self.turns.mode(),
            repairs: self.repairs.as_ref().map_or_else(RepairStats::default, |repairs| repairs.stats()),
            ..ConnectionStats::default()
        };
        self.stats.show(&mut stats);
        self.stats.rare().show(&mut stats);
        stats
    }

    /// The number after the last segment that a channel has passed to KCP. All of it has arrived when
    /// [`acked_up_to`](Self::acked_up_to) is no longer [before](Sn::is_before) this number.
    #[must_use]
    pub fn sent_up_to(&self, channel: impl Into<AnyChannel>) -> Option<Sn> {
        self.lanes.look(self.checked(channel)?.number(), Kcp::snd_end)
    }

    /// The number before which all segments of a channel are known to have arrived.
    #[must_use]
    pub fn acked_up_to(&self, channel: impl Into<AnyChannel>) -> Option<Sn> {
        self.lanes.look(self.checked(channel)?.number(), Kcp::snd_una)
    }

    /// Logs events from now on and keeps the newest `most`, 56 bytes each, until they are [taken](Self::poll_log); 0
    /// switches the log off and drops them. May be called at any time; a log that is on continues with the new bound.
    /// The log counts as memory of the session.
    ///
    /// While it is off, it costs one check per datagram.
    pub fn log_events(&mut self, most: usize) {
        self.lanes.log_events(self.keepalive.now, most);
        if most == 0 {
            self.observer = None;
            return;
        }
        if let Some(observer) = &mut self.observer {
            return observer.log.set_most(most);
        }
        let mut log = EventLog::new(most);
        let channels = u16::try_from(self.lanes.config.channels.len()).unwrap_or(u16::MAX);
        let end = if self.peer.is_server { "client" } else { "server" };
        log.push(self.keepalive.now, SessionEvent::Start { end, channels });
        let mut last = self.state_events();
        log.push(self.keepalive.now, SessionEvent::Mtu { mtu: self.mtu.current });
        last[3..].fill(None); // so that it is logged at once
        self.observer = Some(Box::new(Observer { log, stats: self.stats(), last }));
        self.observe(self.keepalive.now);
    }

    /// Whether events are logged.
    #[must_use]
    pub const fn is_logging(&self) -> bool {
        self.observer.is_some()
    }

    /// Takes the oldest event of the log; displayed, it is a line of docs/EVENTS.md.
    pub fn poll_log(&mut self) -> Option<Logged<SessionEvent>> {
        self.observer.as_mut()?.log.pop()
    }

    /// Takes all events of the log and writes each as a line of JSON, in many small writes. Returns how many.
    /// docs/EVENTS.md describes the lines and how to draw them.
    ///
    /// # Errors
    ///
    /// An error of `out`. The event that it did not take is lost.
    pub fn write_log(&mut self, out: &mut impl io::Write) -> io::Result<usize> {
        write_lines(out, || self.poll_log())
    }

    /// Logs what has changed, after a call that changes anything.
    #[inline]
    pub(super) fn observe(&mut self, now: Time) {
        if self.observer.is_some() {
            self.observe_now(now);
        }
    }

    #[cold]
    fn observe_now(&mut self, now: Time) {
        let (stats, mut states) = (self.stats(), self.state_events());
        let Some(observer) = &mut self.observer else { return };
        let log = &mut observer.log;
        for (channel, kcp) in self.lanes.blocks() {
            let channel = channel.into();
            while let Some(Logged { at, event }) = kcp.poll_log() {
                log.push(at, SessionEvent::Kcp { channel, event });
            }
        }
        let before = std::mem::replace(&mut observer.stats, stats);
        if stats.sent > before.sent {
            let (n, bytes) = (stats.sent - before.sent, stats.bytes_sent - before.bytes_sent);
            let pn = self.seal.last(self.key);
            log.push(now, SessionEvent::Out { n, bytes, pn, pings: stats.pings - before.pings });
        }
        for ((reason, after), (_, before)) in stats.refused().zip(before.refused()) {
            if after > before {
                log.push(now, SessionEvent::Reject { reason, n: after - before });
            }
        }
        if stats.packets_judged > before.packets_judged {
            let lost = stats.packets_lost.saturating_sub(before.packets_lost);
            log.push(now, SessionEvent::Packets { n: stats.packets_judged - before.packets_judged, lost });
        }
        let more = |count: fn(&RepairStats) -> u64| count(&stats.repairs) - count(&before.repairs);
        let (sent, rebuilt, told) =
            (more(|of| of.sent), more(|of| of.rebuilt), more(|of| of.rebuilt_by_peer));
        if sent + rebuilt + told > 0 {
            log.push(now, SessionEvent::Repairs { sent, rebuilt, told });
        }
        // The reason of the end is known only until its event is taken.
        if let [.., Some(SessionEvent::State { state: ConnectionState::Closed, .. })] = observer.last {
            states[5] = None;
        }
        for (last, event) in observer.last.iter_mut().zip(states) {
            event.into_iter().for_each(|event| log.tell(now, last, event));
        }
    }

    /// The state of the session, in parts that are logged when they change.
    fn state_events(&self) -> [Option<SessionEvent>; 6] {
        let rtt = &self.measured.rtt;
        let undelivered = self.undelivered();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (state, reason): (_, Option<CloseReason>) = match &self.life {
            Life::Up => (ConnectionState::Up, None),
            Life::Draining { reason, .. } => (ConnectionState::Draining, Some(*reason)),
            Life::Closing(closing) => (ConnectionState::Closing, Some(closing.reason)),
            Life::Closed { .. } => {
                (ConnectionState::Closed, self.events.closed.as_ref().map(|closed| closed.0))
            }
        };
        [
            Some(SessionEvent::Moved { peer: self.path.route.address }),
            Some(SessionEvent::Keys { updates: self.seal.updates().0 }),
            Some(SessionEvent::Mtu { mtu: self.mtu.current }),
            (rtt.samples > 0)
                .then(|| SessionEvent::Rtt { srtt: micros(rtt.smoothed()), rttvar: micros(rtt.jitter()) }),
            Some(SessionEvent::Queue {
                segments: count(undelivered.segments),
                datagrams: count(undelivered.datagrams),
                messages: count(undelivered.messages),
            }),
            Some(SessionEvent::State { state, reason }),
        ]
    }
}

/// How long an acknowledgement may take beyond one and a half round trips and the delay.
const SLACK: Duration = Duration::from_millis(20);
