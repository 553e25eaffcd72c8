//! The server's end of sessions: many on one socket, and nothing for who has not proven where he is.
//!
//! `admission` is the way from a first datagram to a client that may come in, with `tokens` if it has to bring one; `requests` asks the
//! application about it, `opening` gives it its session, or a no, which `rejections` keeps. `replies` is what strangers are answered, `rates` how often,
//! `refusal` why they are not, `crowd` who has how many, `graves` who must not come back at once. `table` finds sessions by id, `peer` is
//! what is known of each, `memory` counts what they hold, `deliver` is what happens to one that is up,
//! `transmit` whose datagram leaves next.

mod admission;
mod config;
mod crowd;
mod deliver;
mod graves;
mod id;
mod memory;
mod opening;
mod peer;
mod rates;
mod refusal;
mod rejections;
mod replies;
mod requests;
mod stats;
mod table;
mod tokens;
mod transmit;

pub use config::ServerConfig;
pub use id::SessionId;
pub use requests::Request;
pub use stats::{RejectedRequests, ServerStats};
pub use tokens::Pass;

use super::connection::{Connection, check_text};
use super::cookie::CookieKey;
use super::error::{CloseTextError, RedirectError};
use super::event::Event;
use super::random::{Random, random};
use super::reset::ResetKey;
use super::timers::Timers;
use super::turn::Turn;
use super::wire::{Packet, PacketError};
use super::{Blob, SessionConfig};
use crate::config::ConfigError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::message::Message;
use crate::time::Time;
use crowd::Crowd;
use graves::{Attempt, Graves};
use memory::Memory;
use peer::Peer;
use rand_core::CryptoRng;
use rates::Rates;
use refusal::{Quiet, Refusal};
use rejections::Rejections;
use replies::{Replies, Reply};
use requests::Pending;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use table::Table;

/// The sessions of a server, without I/O: a [`Machine`] with events. After any call, drain [`poll_transmit`](Machine::poll_transmit),
/// [`poll_event`](Self::poll_event) and ask [`poll_timeout`](Machine::poll_timeout).
#[derive(Debug)]
pub struct Server<M = Blob> {
    config: ServerConfig,
    /// Of that, what all sessions share.
    session: Arc<SessionConfig>,
    random: Random,
    cookies: CookieKey,
    resets: Option<ResetKey>,
    hash_key: [u8; 16],
    sessions: Table<Box<Peer<M>>>,
    /// Clients that the application has not answered yet.
    requests: BTreeMap<u32, Box<Pending>>,
    /// What it is told of them.
    notices: VecDeque<(SessionId, Event)>,
    rejections: Rejections,
    attempts: BTreeMap<Attempt, u32>,
    crowd: Crowd,
    memory: Memory,
    graves: Graves,
    timers: Timers<u32>,
    /// Sessions that may have something to send, and what the first of them has sent in a row.
    outbox: VecDeque<u32>,
    turn: Turn,
    /// Sessions that have something to tell.
    eventful: VecDeque<u32>,
    /// Sessions that are over.
    over: VecDeque<u32>,
    replies: Replies,
    rates: Rates,
    quiet: Quiet,
    tokens: Option<tokens::Tokens>,
    stats: ServerStats,
    now: Time,
    scratch: Vec<u8>,
}

impl<M: Message> Server<M> {
    /// A server without sessions. What `rng` gives nobody may guess, and it never comes again: it is in keys and numbers of sessions.
    ///
    /// # Errors
    ///
    /// When a field of `config` is out of range.
    pub fn new(config: &ServerConfig, rng: impl CryptoRng + Send + 'static) -> Result<Self, ConfigError> {
        config.check()?;
        let max_sessions = config.max_sessions;
        let mut rng = Random::new(rng);
        let rates = Rates::new(config, &mut rng);
        Ok(Self {
            config: config.clone(),
            session: Arc::new(config.session.clone()),
            cookies: CookieKey::new(random(&mut rng)),
            resets: config.reset_key.map(ResetKey::new),
            hash_key: random(&mut rng),
            sessions: Table::new(max_sessions.into(), config.shard, u32::from_le_bytes(random(&mut rng))),
            requests: BTreeMap::new(),
            notices: VecDeque::new(),
            rejections: Rejections::new(config.half_open.into(), config.half_open_per_address.into()),
            attempts: BTreeMap::new(),
            crowd: Crowd::default(),
            memory: Memory::new(config.memory, config.max_sessions),
            graves: Graves::new(usize::from(max_sessions) * GRAVES_EACH),
            timers: Timers::default(),
            outbox: VecDeque::new(),
            turn: Turn::default(),
            eventful: VecDeque::new(),
            over: VecDeque::new(),
            replies: Replies::new(),
            rates,
            quiet: Quiet::default(),
            tokens: None,
            stats: ServerStats::default(),
            now: Time::ZERO,
            scratch: Vec::new(),
            random: rng,
        })
    }

    /// Takes the next event, and the session that it is of.
    pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(notice);
        }
        while let Some(&id) = self.eventful.front() {
            if let Some(peer) = self.sessions.get_mut(id) {
                if let Some(event) = peer.connection.poll_event() {
                    return Some((SessionId(id), event));
                }
                peer.is_eventful = false;
            }
            self.eventful.pop_front();
        }
        None
    }

    /// Whether there is an event to take.
    #[must_use]
    pub fn has_events(&self) -> bool {
        let is_told = |id: &u32| self.sessions.get(*id).is_some_and(|peer| peer.connection.has_events());
        !self.notices.is_empty() || self.eventful.iter().any(is_told)
    }

    /// The knobs that all sessions share.
    #[must_use]
    pub fn session_config(&self) -> &SessionConfig {
        &self.session
    }

    /// A session that is up, or was a moment ago.
    #[must_use]
    pub fn session(&self, id: SessionId) -> Option<&Connection<M>> {
        self.sessions.get(id.0).filter(|peer| !peer.is_half_open()).map(|peer| &peer.connection)
    }

    /// The same, to send and to receive. Then drain the polls.
    pub fn session_mut(&mut self, id: SessionId) -> Option<&mut Connection<M>> {
        self.lend(id.0);
        let peer = self.sessions.get_mut(id.0).filter(|peer| !peer.is_half_open())?;
        list(&mut self.outbox, id.0, peer);
        Some(&mut peer.connection)
    }

    /// The sessions that are up, or were a moment ago, in no order.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().filter(|(_, peer)| !peer.is_half_open()).map(|(id, _)| SessionId(id))
    }

    /// What the connect token of a session said, if it takes one.
    #[must_use]
    pub fn pass(&self, id: SessionId) -> Option<&Pass> {
        let pass = self.sessions.get(id.0).and_then(|peer| peer.pass.as_deref());
        pass.or_else(|| self.pass_of_request(id.0))
    }

    /// Ends a session, see [`Connection::close`].
    pub fn close(&mut self, now: Time, id: SessionId, code: u16) {
        let now = self.tick(now);
        if let Some(connection) = self.session_mut(id) {
            connection.close(now, code);
        }
    }

    /// Closes all sessions that are up, but for some; returns whether all are over.
    pub(crate) fn close_all(&mut self, now: Time, code: u16, except: impl Fn(SessionId) -> bool) -> bool {
        let is_up = |id: &SessionId| self.session(*id).is_some_and(Connection::is_up);
        let up: Vec<_> = self.ids().filter(|id| is_up(id) && !except(*id)).collect();
        for id in up {
            self.close(now, id, code);
        }
        self.ids().all(|id| self.session(id).is_none_or(Connection::is_closed))
    }

    /// [`close`](Self::close) with a text for the client, see [`Connection::close_with`].
    ///
    /// # Errors
    ///
    /// The text is too long, or has control characters. Then nothing has changed.
    pub fn close_with(
        &mut self,
        now: Time,
        id: SessionId,
        code: u16,
        text: &str,
    ) -> Result<(), CloseTextError> {
        let now = self.tick(now);
        check_text(text)?;
        self.session_mut(id).map_or(Ok(()), |connection| connection.close_with(now, code, text))
    }

    /// Sends the client of a session to another server: `token` is what `PublicToken::encode` makes of a connect token for that one.
    /// It is repeated until it has arrived; the client gets [`Event::Redirected`]. The session goes on until either end closes it,
    /// as the client does when it is up there. Another call replaces a token that is out of date.
    ///
    /// Without encryption `token` may be any bytes, for a token would tell its secret to all who listen.
    ///
    /// # Errors
    ///
    /// The token does not fit, or is none, or the session is over. Then nothing has changed.
    pub fn redirect(&mut self, now: Time, id: SessionId, token: &[u8]) -> Result<(), RedirectError> {
        let now = self.tick(now);
        self.session_mut(id).ok_or(RedirectError::Closed)?.redirect(now, token)
    }

    /// Sessions there are: asked for, not confirmed, up, and just over.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        ServerStats { sessions: self.len(), memory: self.memory.used(), ..self.stats }
    }

    /// Writes the next datagram behind what is in `buf`.
    fn append_next(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(reply) = self.replies.pop() {
            match reply {
                Reply::Short { to, len, bytes } => {
                    buf.extend_from_slice(bytes.get(..len).unwrap_or_default());
                    return Some(to.into());
                }
                Reply::Rejection(attempt) => {
                    if let Some(accept) = self.rejections.get(&attempt) {
                        buf.extend_from_slice(accept);
                        return Some(attempt.0.into());
                    }
                }
                Reply::Accept(id, _) => {
                    if let Some(to) = self.write_accept(id, buf) {
                        return Some(to.into());
                    }
                }
            }
        }
        self.transmit(now, buf)
    }

    /// Takes what is no packet of a session that is up.
    fn take(
        &mut self,
        now: Time,
        from: SocketAddr,
        packet: Result<Packet<'_>, PacketError>,
        datagram: &[u8],
    ) {
        self.stats.datagrams += 1;
        self.stats.bytes_received += datagram.len() as u64;
        match packet {
            Ok(Packet::Hello(hello)) => self.take_hello(now, from, &hello),
            Ok(Packet::Connect(connect)) => self.take_connect(now, from, &connect),
            Err(PacketError::Version { .. }) => self.refuse_version(now, from, datagram),
            _ => self.count(now, from, Refusal::Malformed),
        }
    }

    fn tick(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }
}

impl<M: Message> Machine for Server<M> {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        let now = self.tick(now);
        match Packet::decode(datagram) {
            Ok(Packet::Data(data, _)) => self.take_data(now, from, data.sid, datagram),
            packet => self.take(now, from.address, packet, datagram),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        let now = self.tick(now);
        for _ in 0..TIMERS_EACH {
            let Some((at, id)) = self.timers.pop(now) else { break };
            self.wake(now, id, at);
        }
        let Self { timers, sessions, requests, .. } = self;
        timers.tidy(|id| match sessions.get(id) {
            Some(peer) => peer.wake,
            None => requests.get(&id)?.wake,
        });
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let (now, start) = (self.tick(now), out.len());
        self.count_lent();
        let transmit = self.append_next(now, out)?;
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += out.len().saturating_sub(start) as u64;
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Time> {
        if !self.replies.is_empty() || !self.outbox.is_empty() {
            return Some(self.now);
        }
        self.timers.next()
    }

    /// Ends all sessions. Who comes in meanwhile is sent away.
    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        self.close_all(now, code, |_| false)
    }
}

/// Puts a session on the list of those that may have something to send.
fn list<M>(outbox: &mut VecDeque<u32>, id: u32, peer: &mut Peer<M>) {
    if !std::mem::replace(&mut peer.is_listed, true) {
        outbox.push_back(id);
    }
}

/// Timers that one call looks at: a quarter of the most sessions, so that a call a frame is often enough.
const TIMERS_EACH: usize = 4096;
/// Attempts that are kept from coming back, for each session that there may be.
const GRAVES_EACH: usize = 4;
