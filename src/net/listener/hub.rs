//! The sessions of a listener without its socket: datagrams and time come in, datagrams and events
//! go out.

use super::admission::{Key, Quarantine, opens};
use super::config::{ListenerConfig, ListenerStats};
use super::session::{CloseReason, Event, Session, SessionId};
use super::timers::Timers;
use crate::arq::{ConfigError, Kcp};
use crate::net::queue_for;
use crate::rate::{AddressRate, host};
use crate::time::Time;
use crate::wire::conv_of;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Every session, found by its id or by who sends to it.
///
/// What has work to do is on the list `touched`: because a datagram came, because its timer went
/// off, or because the program looked at it. The rest costs nothing.
#[derive(Debug)]
pub(super) struct Hub {
    config: ListenerConfig,
    sessions: HashMap<SessionId, Session>,
    by_key: HashMap<Key, SessionId>,
    by_host: HashMap<IpAddr, usize>,
    next_id: u64,
    timers: Timers,
    touched: Vec<SessionId>,
    /// Sessions with datagrams to send.
    outbox: VecDeque<SessionId>,
    events: VecDeque<Event>,
    rate: AddressRate,
    quarantine: Quarantine,
    pub(super) stats: ListenerStats,
}

impl Hub {
    pub(super) fn new(config: ListenerConfig) -> Result<Self, ConfigError> {
        config.kcp.check()?; // refuse it now, not at the first peer
        Ok(Self {
            sessions: HashMap::new(),
            by_key: HashMap::new(),
            by_host: HashMap::new(),
            next_id: 0,
            timers: Timers::default(),
            touched: Vec::new(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            rate: AddressRate::new(config.accepts_per_second, config.accept_burst, hash_key()),
            quarantine: Quarantine::new(config.quarantine, config.max_sessions),
            stats: ListenerStats::default(),
            config,
        })
    }

    /// Gives a datagram to its session, or opens one for it.
    pub(super) fn handle_datagram(&mut self, now: Time, peer: SocketAddr, datagram: &[u8]) {
        self.stats.datagrams_received += 1;
        let Some(conv) = conv_of(datagram) else {
            self.stats.garbage += 1;
            return log::trace!("dropped {} bytes from {peer}: no KCP header", datagram.len());
        };
        let key = Key { peer, conv };
        match self.by_key.get(&key) {
            Some(&id) => self.deliver(now, id, datagram),
            None => self.knock(now, key, datagram),
        }
    }

    /// Touches the sessions whose timers have gone off, at most so many; returns whether there
    /// are more.
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        for _ in 0..TIMERS_PER_PUMP {
            let Some(id) = self.timers.pop(now) else { return false };
            if let Some(session) = self.sessions.get_mut(&id) {
                session.wake = None;
                touch(&mut self.touched, id, session);
            }
        }
        true
    }

    /// Updates the sessions that have something to do. Drain [`Hub::poll_transmit`] after it.
    pub(super) fn service(&mut self, now: Time) {
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            session.touched = false;
            session.kcp.update(now);
            if std::mem::take(&mut session.flush) || self.config.eager {
                session.kcp.flush(now);
            }
            self.settle(now, id);
        }
        self.touched = touched; // its memory, for the next time
    }

    /// The next datagram to send, and where to.
    pub(super) fn poll_transmit(&mut self) -> Option<(&[u8], SocketAddr)> {
        while let Some(id) = self.outbox.front() {
            match self.sessions.get_mut(id) {
                Some(session) if session.kcp.output().is_empty() => session.sending = false,
                Some(_) => break,
                None => {}
            }
            self.outbox.pop_front();
        }
        let session = self.sessions.get_mut(self.outbox.front()?)?;
        let peer = session.peer_addr();
        Some((session.kcp.output_mut().pop()?, peer))
    }

    /// The moment of the next timer.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Readable(id) | Event::Writable(id) = event
            && let Some(session) = self.sessions.get_mut(&id)
        {
            match event {
                Event::Readable(_) => session.told_readable = false,
                _ => session.told_writable = false,
            }
        }
        Some(event)
    }

    /// The session for the program to use, and on the list for the next pump.
    pub(super) fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        let session = self.sessions.get_mut(&id)?;
        touch(&mut self.touched, id, session);
        Some(session)
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.keys().copied()
    }

    /// Ends a session. What it has not sent yet is the answer.
    pub(super) fn close(&mut self, now: Time, id: SessionId) -> Option<Session> {
        let mut session = self.remove(id)?;
        session.kcp.flush(now);
        self.quarantine.insert(now, key_of(&session));
        self.stats.closed_here += 1;
        log::debug!("session {id} of {} closed here", session.peer_addr());
        Some(session)
    }

    /// A datagram for a session that is here.
    fn deliver(&mut self, now: Time, id: SessionId, datagram: &[u8]) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Err(error) = session.kcp.input(now, datagram) {
            self.stats.rejected += 1;
            return log::trace!("rejected a datagram of session {id}: {error}");
        }
        session.heard = now;
        session.shrunk = false;
        touch(&mut self.touched, id, session);
        if !session.told_readable && session.kcp.peek_size().is_some() {
            session.told_readable = true;
            self.events.push_back(Event::Readable(id));
        }
    }

    /// A datagram for a session that is not here.
    fn knock(&mut self, now: Time, key: Key, datagram: &[u8]) {
        let Some(refused) = self.refusal(now, key, datagram) else { return self.accept(now, key, datagram) };
        *refused.counter(&mut self.stats) += 1;
        log::trace!("dropped a datagram from {} with conv {}: {refused:?}", key.peer, key.conv);
    }

    /// Why `datagram` opens no session. The question that costs a token comes last.
    fn refusal(&mut self, now: Time, key: Key, datagram: &[u8]) -> Option<Refused> {
        let fits = datagram.len() <= self.config.kcp.rcv_mtu.into();
        match opens(datagram, key.conv, self.config.kcp.rcv_wnd.into()) {
            Ok(true) if fits => {}
            Ok(_) if fits => return Some(Refused::Stray),
            _ => return Some(Refused::Garbage),
        }
        let host = host(key.peer);
        if self.quarantine.holds(now, key) {
            return Some(Refused::Quarantined);
        }
        let unheeded = self.events.len() / EVENTS_PER_SESSION;
        if self.sessions.len().max(unheeded) >= self.config.max_sessions {
            return Some(Refused::Full);
        }
        if self.by_host.get(&host).is_some_and(|&here| here >= self.config.max_sessions_per_address) {
            return Some(Refused::PerAddress);
        }
        (!self.rate.take(now, host)).then_some(Refused::Rate)
    }

    fn accept(&mut self, now: Time, key: Key, datagram: &[u8]) {
        let Ok(mut kcp) = Kcp::new(key.conv, &self.config.kcp, queue_for(&self.config.kcp)) else { return };
        if let Err(error) = kcp.input(now, datagram) {
            self.stats.strays += 1;
            return log::trace!("dropped a first datagram from {}: {error}", key.peer);
        }
        let id = SessionId(self.next_id);
        self.next_id += 1;
        let mut session = Session::new(kcp, key.peer, now);
        self.events.push_back(Event::Accepted(id));
        if session.kcp.peek_size().is_some() {
            session.told_readable = true;
            self.events.push_back(Event::Readable(id));
        }
        touch(&mut self.touched, id, &mut session);
        self.sessions.insert(id, session);
        self.by_key.insert(key, id);
        *self.by_host.entry(host(key.peer)).or_default() += 1;
        self.stats.accepted += 1;
        log::debug!("session {id} of {} accepted, conv {}", key.peer, key.conv);
    }

    /// After an update: has the session ended, can it be written to, when does it need care again.
    fn settle(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let idle_at = session.heard + self.config.idle_timeout;
        if session.kcp.is_dead() {
            return self.end(id, CloseReason::DeadLink);
        }
        if now >= idle_at {
            return self.end(id, CloseReason::Idle);
        }
        if session.blocked && session.kcp.stats().snd_queue <= self.config.kcp.snd_queue / 2 {
            session.blocked = false;
            if !std::mem::replace(&mut session.told_writable, true) {
                self.events.push_back(Event::Writable(id));
            }
        }
        let quiet_at = session.heard + QUIET;
        if !session.shrunk && now >= quiet_at && session.kcp.is_idle() {
            session.kcp.shrink();
            session.kcp.output_mut().shrink();
            session.shrunk = true;
        }
        if !session.kcp.output().is_empty() && !std::mem::replace(&mut session.sending, true) {
            self.outbox.push_back(id);
        }
        let quiet_at = (!session.shrunk).then_some(quiet_at).filter(|at| *at > now);
        let wake = [session.kcp.check(now), quiet_at].into_iter().flatten().fold(idle_at, Time::min);
        // An earlier timer stays: moving it for every datagram costs more than one look too many.
        if session.wake.is_none_or(|armed| wake < armed) {
            self.timers.set(id, session.wake.replace(wake), wake);
        }
    }

    fn end(&mut self, id: SessionId, reason: CloseReason) {
        let Some(session) = self.remove(id) else { return };
        match reason {
            CloseReason::Idle => self.stats.closed_idle += 1,
            CloseReason::DeadLink => self.stats.closed_dead += 1,
        }
        self.events.push_back(Event::Closed { id, reason });
        log::debug!("session {id} of {} closed: {reason:?}", session.peer_addr());
    }

    fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.by_key.remove(&key_of(&session));
        self.timers.clear(id, session.wake);
        let host = host(session.peer_addr());
        if let Some(here) = self.by_host.get_mut(&host) {
            *here -= 1;
            if *here == 0 {
                self.by_host.remove(&host);
            }
        }
        Some(session)
    }
}

/// Why a datagram opens no session.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Garbage,
    Stray,
    Quarantined,
    Full,
    PerAddress,
    Rate,
}

impl Refused {
    const fn counter(self, stats: &mut ListenerStats) -> &mut u64 {
        match self {
            Self::Garbage => &mut stats.garbage,
            Self::Stray => &mut stats.strays,
            Self::Quarantined => &mut stats.quarantined,
            Self::Full => &mut stats.refused_full,
            Self::PerAddress => &mut stats.refused_per_address,
            Self::Rate => &mut stats.refused_rate,
        }
    }
}

/// Puts a session on the list for the next pump, once.
fn touch(touched: &mut Vec<SessionId>, id: SessionId, session: &mut Session) {
    if !std::mem::replace(&mut session.touched, true) {
        touched.push(id);
    }
}

/// A key that no stranger knows, so that none finds addresses which share a bucket.
fn hash_key() -> [u64; 2] {
    [0, 1].map(|half| RandomState::new().hash_one(half))
}

fn key_of(session: &Session) -> Key {
    Key { peer: session.peer_addr(), conv: session.conv() }
}

/// Timers that one pump looks at; the rest is for the next, which comes at once.
const TIMERS_PER_PUMP: usize = 512;

/// Events of one session that can wait at a time: accepted, readable, writable, closed. A program
/// that takes no events gets no sessions, so the list of events is bounded.
const EVENTS_PER_SESSION: usize = 4;

/// Quiet after which a session gives memory back.
const QUIET: Duration = Duration::from_secs(2);
