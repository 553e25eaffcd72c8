//! The server's end of sessions: many on one socket, and nothing for who has not proven where he is.
//!
//! `admission` is the way from a first datagram to a client that may come in, with a token if it has to bring one; `opening` asks the
//! application about it and gives it its session, or a no. `replies` is what strangers are answered, and how often.
//! `seat` is where a client is kept from its request to the end of its session: `table` finds seats by id, `memory` counts what they hold.
//! `deliver` is what happens to a session that is up, and whose datagram leaves next.

mod admission;
mod clients;
mod config;
mod deliver;
mod memory;
mod opening;
mod replies;
mod seat;
mod stats;
mod table;

pub use admission::Pass;
pub use config::ServerConfig;
pub use opening::Request;
pub use stats::{RejectedRequests, ServerStats};
pub use table::{SHARDS_MAX, SessionId, shard_of};

use super::connection::{Connection, check_text};
use super::cookie::{CookieKey, ResetKey};
use super::error::{CloseTextError, RedirectError};
use super::event::Event;
use super::seats::TIMERS_EACH;
use super::shape::Shape;
use super::wire::{Packet, PacketError};
use super::{Random, SessionConfig, Suite, random};
use crate::config::ConfigError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::time::Time;
use admission::Tokens;
use rand_core::CryptoRng;
use replies::{REPLIES_MAX, Rates, Reply};
use seat::{Peer, Seats};
use stats::{Quiet, Refusal};
use std::collections::VecDeque;
use std::sync::Arc;

/// The sessions of a server, without I/O: a [`Machine`] with events. After any call, drain [`poll_transmit`](Machine::poll_transmit),
/// [`poll_event`](Self::poll_event) and ask [`poll_timeout`](Machine::poll_timeout).
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    /// Of that, what all sessions share.
    session: Arc<SessionConfig>,
    shape: Shape,
    random: Random,
    cookies: CookieKey,
    resets: Option<ResetKey>,
    hash_key: [u8; 16],
    seats: Seats,
    /// What the application is told of clients that ask.
    notices: VecDeque<(SessionId, Event)>,
    ended: Option<(SessionId, Box<Peer>)>,
    replies: VecDeque<Reply>,
    rates: Rates,
    quiet: Quiet,
    tokens: Option<Tokens>,
    stats: ServerStats,
    now: Time,
    scratch: Vec<u8>,
}

impl Server {
    /// A server without sessions. What `rng` gives nobody may guess, and it never comes again: it is in keys and numbers of sessions.
    ///
    /// # Errors
    ///
    /// When a field of `config` is wrong.
    pub fn new(config: &ServerConfig, rng: impl CryptoRng + Send + 'static) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random_source = Random(Box::new(rng));
        let rng = &mut *random_source.0;
        let rates = Rates::new(config, rng); // draws first
        Ok(Self {
            config: config.clone(),
            session: Arc::new(config.session.clone()),
            shape: Shape::of(&config.session),
            cookies: CookieKey::new(random(rng)),
            resets: config.reset_key.map(ResetKey::new),
            hash_key: random(rng),
            seats: Seats::new(config, u32::from_le_bytes(random(rng))),
            notices: VecDeque::new(),
            ended: None,
            replies: VecDeque::with_capacity(REPLIES_MAX),
            rates,
            quiet: Quiet::default(),
            tokens: Tokens::of(config)?,
            stats: ServerStats::default(),
            now: Time::ZERO,
            scratch: Vec::new(),
            random: random_source,
        })
    }

    /// The next event, and the session that it is of. After [`Event::Closed`] the session has no place here any more: until the next
    /// event is asked for it can be looked at and read, or [had](Self::pop_ended).
    pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
        self.ended = None;
        self.notices.pop_front().or_else(|| self.next_event())
    }

    /// Whether there is an event to take.
    #[must_use]
    pub fn has_events(&self) -> bool {
        let tells =
            |id: &u32| self.seats.peer(*id).is_some_and(|peer| peer.tells() && peer.connection.has_events());
        !self.notices.is_empty() || self.seats.eventful.iter().any(tells)
    }

    /// The knobs that all sessions share.
    #[must_use]
    pub fn session_config(&self) -> &SessionConfig {
        &self.session
    }

    /// The session that the last event told the end of, for whoever wants to read later what has arrived.
    pub fn pop_ended(&mut self) -> Option<Connection> {
        self.ended.take().map(|(_, peer)| peer.connection)
    }

    /// A session that is up, or whose end was told just now.
    #[must_use]
    pub fn connection(&self, id: SessionId) -> Option<&Connection> {
        self.peer(id).filter(|peer| peer.half_open.is_none()).map(|peer| &peer.connection)
    }

    /// The same, to send and to receive. Then drain the polls.
    pub fn connection_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        match &mut self.ended {
            Some((ended, peer)) if *ended == id => Some(&mut peer.connection),
            _ => self.seats.lend(id.0),
        }
    }

    /// The sessions that are up, or whose end was not told yet, in no order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.seats.ids().map(SessionId)
    }

    /// What the connect token of a session said, if it takes one.
    #[must_use]
    pub fn pass(&self, id: SessionId) -> Option<&Pass> {
        let of_request = || self.seats.asked(id.0)?.pass.as_ref();
        self.peer(id).and_then(|peer| peer.pass.as_deref()).or_else(of_request)
    }

    fn peer(&self, id: SessionId) -> Option<&Peer> {
        let ended = self.ended.as_ref().filter(|(ended, _)| *ended == id);
        ended.map(|(_, peer)| &**peer).or_else(|| self.seats.peer(id.0))
    }

    /// Ends a session, see [`Connection::close`].
    pub fn close(&mut self, now: Time, id: SessionId, code: u16) {
        let now = self.tick(now);
        if let Some(connection) = self.connection_mut(id) {
            connection.close(now, code);
        }
    }

    /// Closes all sessions that are up, but for some; returns whether all are over.
    pub(crate) fn close_all(&mut self, now: Time, code: u16, except: impl Fn(SessionId) -> bool) -> bool {
        for id in self.clients().filter(|id| !except(*id)) {
            self.close(now, id, code);
        }
        self.ids().all(|id| self.connection(id).is_none_or(Connection::is_closed))
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
        self.connection_mut(id).map_or(Ok(()), |connection| connection.close_with(now, code, text))
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
        self.connection_mut(id).ok_or(RedirectError::Closed)?.redirect(now, token)
    }

    /// Sessions there are: asked for, not confirmed, up, and over without anybody having been told.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seats.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        ServerStats { sessions: self.len(), memory: self.seats.memory.used, ..self.stats }
    }

    fn tick(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }
}

impl Server {
    /// Takes a datagram, unless it is of a session that another one of so many servers on the port has: then returns which.
    pub(crate) fn handle_own(
        &mut self,
        now: Time,
        from: Arrival,
        datagram: &mut [u8],
        servers: usize,
    ) -> Option<usize> {
        let packet = Packet::decode(datagram);
        if let Ok(Packet::Data(header, _)) = packet {
            let owner = SessionId(header.sid).shard();
            if usize::from(owner) < servers && owner != self.config.shard {
                return Some(owner.into());
            }
        }
        let (now, address) = (self.tick(now), from.address);
        self.stats.datagrams += 1;
        self.stats.bytes_received += datagram.len() as u64;
        match packet {
            Ok(Packet::Data(header, _)) => self.deliver(now, from, header, datagram),
            Ok(Packet::Hello(hello)) => self.on_hello(now, address, &hello),
            Ok(Packet::Connect(connect)) => self.on_connect(now, address, &connect),
            Err(PacketError::Version { .. }) => self.refuse_version(now, address, datagram),
            _ => self.count(now, address, Refusal::Malformed),
        }
        None
    }
}

impl Machine for Server {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        self.handle_own(now, from, datagram, 0);
    }

    fn handle_timeout(&mut self, now: Time) {
        let now = self.tick(now);
        for _ in 0..TIMERS_EACH {
            let Some((at, id)) = self.seats.agenda.pop(now) else { break };
            self.wake(now, at, id);
        }
        let Seats { table, agenda, .. } = &mut self.seats;
        agenda.tidy(table.len(), |id| Some(&table.get(id)?.place().entry));
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let (now, start) = (self.tick(now), out.len());
        self.seats.end_loan();
        let reply = self.append_reply(out).map(Transmit::from);
        let transmit = reply.or_else(|| self.transmit(now, out))?;
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += out.len().saturating_sub(start) as u64;
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.replies.is_empty() { self.seats.agenda.poll_timeout(self.now) } else { Some(self.now) }
    }

    /// Ends all sessions. Who comes in meanwhile is sent away.
    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        self.close_all(now, code, |_| false)
    }

    fn abandon(&mut self, now: Time) {
        let now = self.tick(now);
        let ids: Vec<_> = self.ids().collect(); // those that are closing as well
        for id in ids {
            let _ = self.kick(now, id, 0, ""); // there is no text to refuse
        }
    }
}
