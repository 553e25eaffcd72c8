//! A session and its transports, shared between the program, the transports and a timer.
//!
//! Datagrams are handed in when they arrive, and answered at once: in a tab in the background there are no frames, timers are late, and only
//! what the server sends keeps the session alive. No borrow lasts while JavaScript is called.

use super::error::ConnectError;
use super::js;
use super::link::{Link, Sent};
use super::stats::TransportStats;
use super::system::{Random, Timer, now};
use crate::dial::{Dial, Step};
use crate::limits::{LEAST, LONGEST, within};
use crate::target::{Target, Transport};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::Duration;
use whitewater::machine::{Arrival, Machine, Underlay};
use whitewater::rand_core::{TryRng, UnwrapErr};
use whitewater::session::{self, ClientState};
use whitewater::{ClientConfig, Time};

/// Which of the transports that one client has opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LinkId(u32);

pub(super) struct Shared {
    pub(super) state: RefCell<State>,
    /// Transports that were lost while the program kept the connection, and why.
    lost: RefCell<Vec<(LinkId, String)>>,
    target: Target,
    timer: Timer,
    this: Weak<Self>,
}

pub(super) struct State {
    pub(super) machine: session::Client,
    config: ClientConfig,
    began: Time,
    /// Whether a transport was ready, so that the longest datagram is decided.
    is_decided: bool,
    dial: Dial,
    /// The one that carries the session.
    link: Option<(LinkId, Link)>,
    /// When the last datagram came by it.
    heard: Time,
    /// Since when it has been full.
    full_since: Option<Time>,
    /// Those that are not ready yet.
    opening: Vec<(LinkId, Transport, Link)>,
    next_id: u32,
    pub(super) stats: TransportStats,
    /// The last error of a transport.
    pub(super) error: String,
    pub(super) waker: Option<Waker>,
}

impl Shared {
    pub(super) fn new(target: &Target, config: &ClientConfig) -> Result<Rc<Self>, ConnectError> {
        Random.try_next_u32().map_err(|_| ConnectError::NoRandom)?;
        for transport in target.transports.in_order() {
            target.url_for(*transport).ok_or_else(|| ConnectError::Url(target.url.clone()))?;
        }
        config.check()?;
        let now = now();
        let has = |transport| {
            js::has(if transport == Transport::WebTransport { "WebTransport" } else { "WebSocket" })
        };
        let dial =
            Dial::new(now, target.transports, has, target.patience).ok_or(ConnectError::NoTransport)?;
        let state = State {
            machine: session(now, &within(config, LONGEST, config.deadline))?,
            config: config.clone(),
            began: now,
            is_decided: false,
            dial,
            link: None,
            heard: now,
            full_since: None,
            opening: Vec::new(),
            next_id: 0,
            stats: TransportStats::default(),
            error: String::new(),
            waker: None,
        };
        Ok(Rc::new_cyclic(|this: &Weak<Self>| {
            let later = this.clone();
            let timer = Timer::new(move || {
                if let Some(shared) = later.upgrade() {
                    shared.timer.has_called();
                    shared.drive();
                }
            });
            Self {
                state: RefCell::new(state),
                lost: RefCell::default(),
                target: target.clone(),
                timer,
                this: this.clone(),
            }
        }))
    }

    /// Does what is due, and sends. Returns how long nothing else is due.
    pub(super) fn drive(&self) -> Option<Duration> {
        let Ok(mut state) = self.state.try_borrow_mut() else {
            // The program keeps the connection while it waits for something else.
            let now = now();
            self.timer.arm(now, now + BUSY);
            return Some(BUSY);
        };
        let now = now();
        state.machine.handle_timeout(now);
        let lost = self.lost.take().into_iter();
        let mut gone: Vec<_> = lost.filter_map(|(id, why)| state.lose(now, id, &why)).collect();
        gone.extend(state.hang_up(now));
        drop(state);
        gone.into_iter().for_each(Link::close);
        self.transmit();
        self.dial();
        self.settle()
    }

    /// Sends what is due, as far as there is a transport and it has room. What has to wait waits in the session, but not for long: then it is
    /// dropped, so that what follows is not late as well.
    pub(super) fn transmit(&self) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bytes.clear();
            ends.clear();
            let Ok(mut state) = self.state.try_borrow_mut() else { return };
            let Some((_, link)) = state.link.clone() else { return };
            let (now, is_full) = (now(), link.is_full());
            if state.waits(now, is_full) {
                return;
            }
            while ends.len() < AT_ONCE && state.machine.poll_transmit(now, &mut bytes).is_some() {
                ends.push(bytes.len());
            }
            drop(state);
            let (mut rest, mut start, mut stats) = (bytes.as_slice(), 0, TransportStats::default());
            for end in &ends {
                let Some((datagram, others)) = rest.split_at_checked(end - start) else { break };
                (rest, start) = (others, *end);
                match if is_full { Sent::Full } else { link.send(datagram) } {
                    Sent::Away => stats.sent += 1,
                    Sent::Full => stats.queue_full += 1,
                    Sent::TooLong => stats.too_long += 1,
                }
            }
            self.state.borrow_mut().stats.add(stats);
            if ends.len() < AT_ONCE {
                return;
            }
        }
    }

    /// Opens what is due.
    fn dial(&self) {
        while let Ok(mut state) = self.state.try_borrow_mut() {
            match state.dial.poll(now()) {
                Some(Step::Open(transport)) => {
                    let id = LinkId(state.next_id);
                    state.next_id = state.next_id.wrapping_add(1);
                    drop(state);
                    let opened = Link::open(transport, &self.target, id, &self.this);
                    let mut state = self.state.borrow_mut();
                    match opened {
                        Ok(link) => state.opening.push((id, transport, link)),
                        Err(error) => {
                            state.error = js::text(&error);
                            state.dial.has_failed(now(), transport);
                        }
                    }
                }
                Some(Step::GiveUp) => {
                    "nothing was ready in time".clone_into(&mut state.error);
                    let given_up = std::mem::take(&mut state.opening);
                    drop(state);
                    given_up.into_iter().for_each(|(_, _, link)| link.close());
                }
                None => return,
            }
        }
    }

    /// Ends the transports after the session, says that something has happened, and sets the timer.
    fn settle(&self) -> Option<Duration> {
        let Ok(mut state) = self.state.try_borrow_mut() else { return Some(BUSY) };
        let waker = if state.machine.has_events() { state.waker.take() } else { None };
        let now = now();
        let is_over = state.machine.state() == ClientState::Closed;
        let links = if is_over { state.end() } else { Vec::new() };
        let due = if is_over { None } else { state.due(now) };
        drop(state);
        links.into_iter().for_each(Link::close);
        match due {
            Some(at) => self.timer.arm(now, at),
            None => self.timer.disarm(),
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        due.map(|at| at.since(now))
    }

    /// A transport is ready, and carries datagrams of at most this length if it has a limit.
    pub(super) fn is_ready(&self, id: LinkId, longest: Option<usize>) {
        let Ok(mut state) = self.state.try_borrow_mut() else {
            return self.is_lost(id, "the connection is held while a transport becomes ready");
        };
        let closing = state.take(now(), id, longest);
        drop(state);
        closing.into_iter().for_each(Link::close);
        self.drive();
    }

    /// A datagram has arrived.
    pub(super) fn has_arrived(&self, id: LinkId, datagram: &mut [u8]) {
        if let Ok(mut state) = self.state.try_borrow_mut()
            && state.link.as_ref().is_some_and(|(up, _)| *up == id)
        {
            state.stats.received += 1;
            state.heard = now();
            let heard = state.heard;
            let is_lossless = state.stats.transport == Some(Transport::WebSocket);
            let underlay = Underlay { is_lossless, ..Underlay::default() };
            state.machine.handle_datagram(heard, Arrival { underlay, ..SERVER.into() }, datagram);
        }
        self.drive();
    }

    /// A transport has ended, or was never ready.
    pub(super) fn is_lost(&self, id: LinkId, why: &str) {
        let Ok(mut state) = self.state.try_borrow_mut() else {
            // A timer looks again: whatever is done at once would keep the program from going on.
            self.lost.borrow_mut().push((id, why.to_owned()));
            let now = now();
            return self.timer.arm(now, now + BUSY);
        };
        let lost = state.lose(now(), id, why);
        drop(state);
        if let Some(link) = lost {
            link.close();
            self.drive();
        }
    }

    /// Nobody will drive it any longer: says goodbye, and ends the transports.
    pub(super) fn abandon(&self) {
        let start = now();
        self.state.borrow_mut().machine.abandon(start);
        for later in GOODBYES {
            self.state.borrow_mut().machine.handle_timeout(start + later);
            self.transmit();
        }
        self.timer.disarm();
        let links = self.state.borrow_mut().end();
        links.into_iter().for_each(Link::close);
    }
}

impl State {
    /// Takes a transport that is ready. Returns those that are not needed.
    fn take(&mut self, now: Time, id: LinkId, longest: Option<usize>) -> Vec<Link> {
        let Some(place) = self.opening.iter().position(|(it, ..)| *it == id) else { return Vec::new() };
        let (_, transport, link) = self.opening.swap_remove(place);
        let longest =
            longest.and_then(|longest| u16::try_from(longest).ok()).unwrap_or(u16::MAX).min(LONGEST);
        if !self.carries(now, longest) {
            self.error = format!("{transport:?} carries only {longest} bytes, fewer than the session needs");
            self.dial.has_failed(now, transport);
            return vec![link];
        }
        if !self.dial.is_ready(now, transport) {
            return vec![link];
        }
        if self.is_decided {
            self.machine.path_changed(now);
            self.stats.reconnects += 1;
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        self.is_decided = true;
        self.stats.transport = Some(transport);
        (self.link, self.heard, self.full_since) = (Some((id, link)), now, None);
        self.opening.drain(..).map(|(_, _, link)| link).collect()
    }

    /// Whether the session fits into datagrams of this length. Until a datagram has left, it is made to.
    fn carries(&mut self, now: Time, longest: u16) -> bool {
        if longest >= self.machine.session_config().max_datagram {
            return true;
        }
        let left = self.config.deadline.saturating_sub(now.since(self.began));
        let may_shrink = !self.is_decided && longest >= LEAST && self.machine.state() == ClientState::Hello;
        let Some(Ok(machine)) = may_shrink.then(|| session(now, &within(&self.config, longest, left))) else {
            return false;
        };
        self.machine = machine;
        true
    }

    /// Notes that a transport is lost, if it was needed, and returns it.
    fn lose(&mut self, now: Time, id: LinkId, why: &str) -> Option<Link> {
        if let Some((_, link)) = self.link.take_if(|(up, _)| *up == id) {
            why.clone_into(&mut self.error);
            self.stats.transport = None;
            self.dial.is_lost(now);
            return Some(link);
        }
        let place = self.opening.iter().position(|(it, ..)| *it == id)?;
        let (_, transport, link) = self.opening.swap_remove(place);
        why.clone_into(&mut self.error);
        self.dial.has_failed(now, transport);
        Some(link)
    }

    /// Gives up a transport by which nothing comes any more, though the server answers pings: a browser notices that only after the session has
    /// ended.
    fn hang_up(&mut self, now: Time) -> Option<Link> {
        let (id, _) = self.link.as_ref().filter(|_| self.silent_at().is_some_and(|at| at <= now))?;
        self.lose(now, *id, "nothing arrives any more")
    }

    /// When the transport that is ready has been silent for too long, unless something comes.
    fn silent_at(&self) -> Option<Time> {
        let session = self.machine.session_config();
        let is_watched = self.link.is_some() && self.machine.is_connected();
        is_watched.then(|| self.heard + (session.timeout / 4).max(session.keepalive * 2))
    }

    /// Returns all transports: none will be needed.
    fn end(&mut self) -> Vec<Link> {
        self.dial.stop();
        self.stats.transport = None;
        let opening = self.opening.drain(..).map(|(_, _, link)| link);
        opening.chain(self.link.take().map(|(_, link)| link)).collect()
    }

    /// Whether to wait until the browser has sent some of what it has.
    fn waits(&mut self, now: Time, is_full: bool) -> bool {
        self.full_since = is_full.then(|| self.full_since.unwrap_or(now));
        self.full_since.is_some_and(|since| now.since(since) < FULL_FOR)
    }

    /// When something is due next.
    fn due(&self, now: Time) -> Option<Time> {
        let session = self.machine.poll_timeout();
        // What is due may be to send, which waits for a transport, or for room.
        let pause = match (&self.link, self.full_since) {
            (None, _) => BUSY,
            (_, Some(_)) => RETRY,
            _ => Duration::ZERO,
        };
        let session = session.map(|at| at.max(now + pause));
        [session, self.dial.next(), self.silent_at()].into_iter().flatten().min()
    }
}

/// A session that begins to connect.
fn session(now: Time, config: &ClientConfig) -> Result<session::Client, ConnectError> {
    let mut session = session::Client::new(config, UnwrapErr(Random))?;
    session.connect(now, &[SERVER])?;
    Ok(session)
}

/// The server, wherever it is: a browser tells no addresses. Source: RFC 5737.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4433);
/// When to look again while nothing can be done.
const BUSY: Duration = Duration::from_millis(50);
/// The same while a transport is full, and how long what is due waits then.
const RETRY: Duration = Duration::from_millis(5);
const FULL_FOR: Duration = Duration::from_millis(100);
/// Datagrams sent before the transport is asked again whether it has room, and how often for one call.
const AT_ONCE: usize = 16;
const ROUNDS: usize = 256;
/// When a goodbye that nobody waits for is said. It leaves as often, because each may be lost.
const GOODBYES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(150), Duration::from_millis(350)];
