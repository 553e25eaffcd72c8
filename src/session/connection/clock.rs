//! The timers of a connection: keepalives, the timeout, and when it must be polled next.

use super::Connection;
use super::life::Life;
use super::transmit::PATH_FRAME;
use crate::session::config::micros;
use crate::session::event::CloseReason;
use crate::session::local_key::{Label, LocalKey};
use crate::time::Time;
use std::time::Duration;

/// The clocks of one end. Only authenticated packets count.
///
/// A session rests once the last thing sent was a sign of life, and no ping waits for its answer. Then the server
/// pings each [interval](Self::interval), and the client answers. Each session has its turn at fixed times of the
/// server's clock, on a grid that all of them share: a server with many wakes for a few hundred of them at once. The
/// client pings if that does not come. A session that does not rest is soon pinged by either end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    /// µs.
    timeout: u32,
    /// Time between two pings, in units of [`GRID`]: of a session at rest, and of another.
    interval: u8,
    brisk: u8,
    /// At a server: when its turn is, in units of [`GRID`] after the beginning of a period. Otherwise [`CLIENT`].
    slot: u8,
    /// When the peer was last heard.
    pub(super) heard: Time,
    spoke: Time,
    /// When something was last sent whose answer measures the path: a ping, or a packet that asks for an ACK.
    pub(super) asked: Time,
    /// Packets sent since then that have more than signs of life and that the peer does not answer.
    unasked: u8,
    /// Pings since one was answered.
    pings: u8,
    /// The time of the last call.
    pub(super) now: Time,
    /// When anything but signs of life was last sent or received.
    pub(super) busy: Time,
    /// The peer does not time out before this, because this end was not there to hear it.
    grace: Time,
    /// Nothing has been received yet: the peer may be waiting to hear from this end.
    unheard: bool,
    ping_now: bool,
    /// Whether the peer was at rest when it was last heard, as far as this end knows.
    is_slow: bool,
    /// The shortest time, µs, in which the peer has proven that a packet of ours arrived, by its answer to a
    /// ping or to our end of the handshake. 0: none.
    proven: u32,
}

/// What a ping contains: when it left, with a tag that only this end can make. So nobody can answer a ping
/// that has not arrived, and the answer to a ping does not pass for that to a probe of the same time.
#[derive(Clone, Copy)]
pub(super) struct Stamps(LocalKey, Label);

impl Stamps {
    pub(super) fn make(self, now: Time) -> u64 {
        let at = now.as_micros() << TAG_BITS;
        at | self.tag(at)
    }

    /// When the ping with this stamp left. `None`: there was none in the last hour.
    pub(super) fn read(self, now: Time, stamp: u64) -> Option<Time> {
        let (at, tag) = (stamp & !TAG, stamp & TAG);
        let age = (now.as_micros() << TAG_BITS).wrapping_sub(at) >> TAG_BITS;
        (tag == self.tag(at)).then(|| now.before(age))
    }

    fn tag(self, at: u64) -> u64 {
        let Self(key, label) = self;
        key.number(label, at) & TAG
    }
}

impl Keepalive {
    /// `sid`: at a server, the number of the session, which chooses its slot. A client pings often until it hears
    /// the server, which tells that its ACCEPT has arrived.
    pub(super) fn new(now: Time, interval: Duration, timeout: Duration, sid: Option<u32>) -> Self {
        let interval = u8::try_from(u64::from(micros(interval)) / GRID).unwrap_or(u8::MAX).max(1);
        let slot = sid.map_or(CLIENT, |sid| u8::try_from(sid % u32::from(interval)).unwrap_or(0));
        let asks = sid.is_none();
        Self {
            timeout: micros(timeout),
            interval,
            brisk: (interval / 4).max(BRISK.min(interval)),
            slot,
            heard: now,
            spoke: now,
            asked: now,
            unasked: 0,
            pings: 0,
            now,
            busy: now,
            grace: now,
            unheard: asks,
            ping_now: asks,
            is_slow: false,
            proven: 0,
        }
    }

    /// Notes that time has passed. After a gap in which nobody called, the peer gets time to be heard.
    pub(super) fn tick(&mut self, now: Time) {
        let gap = now.micros_since(self.now);
        if gap > GAP && (gap > standstill(self.interval()) || self.timeout_at() <= now) {
            self.grace = now.after(GRACE);
            self.ping_now = true;
        }
        self.now = self.now.max(now);
    }

    /// Time between two pings of a session at rest, µs.
    fn interval(&self) -> u64 {
        u64::from(self.interval) * GRID
    }

    /// The same if it does not rest: a quarter, but no less than [`BRISK`].
    fn brisk(&self) -> u64 {
        u64::from(self.brisk) * GRID
    }

    /// Notes that the peer was heard. Returns whether that ends a standstill of this end or of the path.
    pub(super) fn on_heard(&mut self, now: Time) -> bool {
        let (silence, was_slow) = (now.micros_since(self.heard), self.is_slow);
        self.heard = now;
        self.unheard = false;
        self.is_slow = now.micros_since(self.busy) >= self.brisk();
        silence > STANDSTILL && silence > standstill(if was_slow { self.interval() } else { self.brisk() })
    }

    /// Notes that more than a sign of life was sent or received.
    fn be_busy(&mut self, now: Time) {
        self.busy = now;
        self.is_slow &= self.heard != now; // what was heard was that
    }

    /// Notes that a packet leaves. `asks`: it asks for an ACK; `pings`: it has a ping; `works`: it has more than
    /// signs of life.
    pub(super) const fn on_sent(&mut self, now: Time, asks: bool, pings: bool, works: bool) {
        self.spoke = now;
        self.ping_now &= !pings;
        if asks || pings {
            (self.asked, self.unasked) = (now, 0);
            self.pings = if asks { 0 } else { self.pings.saturating_add(1) };
        } else if works {
            self.unasked = self.unasked.saturating_add(1);
        }
    }

    /// Takes the time until a proof came.
    pub(super) fn on_proof(&mut self, took: Duration) {
        let took = micros(took).max(1);
        self.proven = if self.proven == 0 { took } else { self.proven.min(took) };
    }

    /// The peer is reached by another path.
    pub(super) const fn path_changed(&mut self) {
        self.proven = 0;
    }

    /// The shortest round trip to be believed: the peer says how long its answers have waited, and may say
    /// too much. It is half of the shortest that was proven, since a shorter path is measured sooner than
    /// proven. Source: RFC 9002 section 5.3.
    pub(super) fn least(&self) -> Duration {
        Duration::from_micros(self.least_micros())
    }

    /// The same in µs.
    pub(super) fn least_micros(&self) -> u64 {
        u64::from(self.proven / 2)
    }

    /// Whether an answer came sooner than is believed: it is a lie, or the path has become shorter.
    pub(super) fn is_surprising(&self, took: Duration) -> bool {
        took < self.least()
    }

    /// Asks for an answer that proves how long a round trip takes.
    pub(super) const fn ask_now(&mut self) {
        self.ping_now = true;
    }

    /// Asks until the peer is heard, as at the beginning.
    pub(super) const fn ask_until_heard(&mut self) {
        self.unheard = true;
    }

    pub(super) const fn on_answer(&mut self) {
        self.pings = 0;
    }

    /// When a ping must leave alone: after silence, or when none could ride.
    pub(super) fn ping_at(&self) -> Time {
        if self.ping_now {
            return self.spoke;
        }
        let silent = match self.pings {
            _ if self.unheard => self.spoke.after(UNHEARD),
            0 if self.spoke.micros_since(self.busy) >= self.brisk() => self.turn(),
            0 => self.spoke.after(self.brisk()),
            _ if self.slot == CLIENT => self.spoke.after(self.brisk()),
            _ => on_grid(self.spoke.after(self.brisk())),
        };
        let rides = self.is_unasked().then(|| self.rides_at().after(self.brisk() / 8));
        rides.map_or(silent, |at| at.min(silent))
    }

    /// When a session at rest is pinged: at the server's next turn but what is very soon, and by the client if
    /// that has not come.
    fn turn(&self) -> Time {
        let interval = self.interval();
        if self.slot == CLIENT {
            return self.spoke.after(interval + interval / 4);
        }
        let soonest = self.spoke.after(interval / 4);
        let left = u64::from(self.slot) * GRID + interval - soonest.as_micros() % interval;
        soonest.after(left % interval)
    }

    /// Whether a ping rides with a packet that has more than signs of life, so that an end whose packets nobody
    /// answers measures the path as well. `patience` is how long an answer may take; without one, a few more pings
    /// ride soon.
    pub(super) fn rides(&self, now: Time, patience: impl FnOnce() -> Duration) -> bool {
        let is_due = self.is_unasked() && self.rides_at() <= now;
        let wait = || if self.pings > 1 { AGAIN } else { patience() };
        is_due || self.ping_now || ((1..=TRIES).contains(&self.pings) && now.since(self.asked) >= wait())
    }

    fn rides_at(&self) -> Time {
        self.asked.after(self.brisk())
    }

    /// Whether this end sends packets that nobody answers.
    pub(super) const fn is_unasked(&self) -> bool {
        self.unasked >= UNASKED
    }

    pub(super) fn timeout_at(&self) -> Time {
        self.heard.after(self.timeout.into()).max(self.grace)
    }
}

impl Connection {
    /// The stamps of pings, or those of probes.
    pub(super) const fn stamps(&self, label: Label) -> Stamps {
        Stamps(self.key, label)
    }

    /// Takes the answer to a ping or to a probe, which waited at the peer for `delay`.
    pub(super) fn on_pong(&mut self, now: Time, stamp: u64, delay: Duration) {
        let left = self.stamps(Label::Ping).read(now, stamp);
        let Some(left) = left.or_else(|| self.stamps(Label::Probe).read(now, stamp)) else {
            self.stats.rare_mut().false_acks += 1;
            return;
        };
        if self.mtu.on_pong(now, stamp) {
            self.set_mtu();
        }
        let took = now.since(left);
        if took < PONG_MAX {
            self.keepalive.on_answer();
            self.keepalive.on_proof(took);
            let rtt = took.saturating_sub(delay).max(self.keepalive.least());
            self.measured.on_round_trip(left, rtt);
        }
    }

    /// Does everything that is due, except sending.
    pub(in crate::session) fn handle_timeout(&mut self, now: Time) {
        self.do_what_is_due(now);
        self.observe(now);
    }

    fn do_what_is_due(&mut self, now: Time) {
        self.keepalive.tick(now);
        if let Some(old) = self.path.switch(now) {
            self.on_moved(now, old);
        }
        if self.is_closed() {
            return;
        }
        if self.keepalive.timeout_at() <= now {
            return self.end_unless_ending(CloseReason::Timeout);
        }
        match &self.life {
            Life::Closing(closing) if closing.ends_at() <= now => {
                self.end(closing.reason, closing.undelivered)
            }
            Life::Draining { reason, until } if *until <= now || self.is_drained() => self.fail(now, *reason),
            _ => {}
        }
    }

    pub(in crate::session) fn poll_timeout(&self) -> Option<Time> {
        let now = self.keepalive.now;
        if self.path.has_copy() {
            return Some(now);
        }
        match &self.life {
            &Life::Closed { owes_answer, .. } => return owes_answer.then_some(now),
            Life::Closing(closing) => {
                return Some(closing.check().min(self.path_due()));
            }
            Life::Up | Life::Draining { .. } => {}
        }
        let mut data = self.lanes.check(now);
        if data <= now && !self.turns.is_limited() {
            return Some(data); // nothing is sooner
        }
        let mut next = self.keepalive.timeout_at().min(self.keepalive.ping_at());
        next = next.min(self.path_due()).min(self.control_due(now));
        if let Life::Draining { until, .. } = self.life {
            next = next.min(if self.is_drained() { now } else { until });
        }
        if self.lane_waits() || self.datagrams.next_len().is_some() || self.repair_is_due() {
            data = now;
        }
        if let Some(channels) = &self.packed {
            data = data.min(channels.check(now, self.measured.rtt.smoothed()).unwrap_or(Time::NEVER));
        }
        data = data.min(self.mtu.check());
        if data != Time::NEVER {
            next = next.min(data.max(self.turns.allows_at()));
        }
        Some(next)
    }

    /// Notes that more than a sign of life was sent or received.
    pub(super) fn be_busy(&mut self, now: Time) {
        self.keepalive.be_busy(now);
        self.seal.wake();
    }

    /// Frees the memory of a quiet session, since no packet is expected soon.
    pub(super) fn rest_if_quiet(&mut self, now: Time) {
        if now.since(self.keepalive.busy) >= QUIET {
            self.shrink();
            self.seal.rest();
        }
    }

    /// When control frames are due next.
    pub(super) fn control_due(&self, now: Time) -> Time {
        if self.path.response.is_some() {
            return now;
        }
        let mut due =
            self.received.due.min(self.answer_due(now)).min(self.redirects.due()).min(self.ids_due());
        if let Some(marks) = &self.marks {
            due = due.min(marks.due);
        }
        due.min(self.tells_due())
    }

    /// When a packet must leave for numbers of the session.
    pub(super) fn ids_due(&self) -> Time {
        self.ids.as_ref().map_or(Time::NEVER, |ids| ids.due())
    }

    /// Whether a lane has made a datagram that has not left.
    pub(super) fn lane_waits(&self) -> bool {
        self.lanes.next_frame().is_some() || self.parts.next().is_some()
    }

    fn path_due(&self) -> Time {
        self.path.check(self.seal.overhead() + PATH_FRAME)
    }
}

/// The low bits of a stamp are its tag, the others the low half of its time, µs.
const TAG_BITS: u32 = 32;
const TAG: u64 = (1 << TAG_BITS) - 1;
/// Longer round trips are ignored.
const PONG_MAX: Duration = Duration::from_secs(60);
/// A ping rides after this many packets that nobody answers. An end that sends only now and then pings after a
/// silence.
const UNASKED: u8 = 4;
/// How many pings follow one that was not answered in time, and the time between them.
const TRIES: u8 = 4;
const AGAIN: Duration = Duration::from_millis(20);
/// A session that has only sent and received signs of life for this long frees its memory.
const QUIET: Duration = Duration::from_secs(5);
/// The slot of a client, which has none.
const CLIENT: u8 = u8::MAX;
/// Time between two slots, µs: when a server pings sessions that rest.
const GRID: u64 = 100_000;
/// Least time between two pings of a session that does not rest, in units of [`GRID`], if its interval is not shorter.
const BRISK: u8 = 5;
/// A longer silence, µs, that is also longer than two and a half times what was expected, is a standstill.
const STANDSTILL: u64 = 1_000_000;
/// If two calls are further apart than this, µs, and than two and a half keepalive intervals, or if the peer has timed out between
/// them, this end was frozen.
const GAP: u64 = 5_000_000;
/// How long the peer then has to be heard, µs: time for a few pings and their answers.
const GRACE: u64 = 2_000_000;
/// Time between two pings until the first packet of the peer, µs.
const UNHEARD: u64 = 100_000;

/// The first time of the grid that is not before `at`.
const fn on_grid(at: Time) -> Time {
    let late = at.as_micros() % GRID;
    if late == 0 { at } else { at.after(GRID - late) }
}

/// After how long, µs, a silence is no accident, if a sign of life was expected each `interval`.
const fn standstill(interval: u64) -> u64 {
    interval * 5 / 2
}
