//! The server's end of sessions: many on one socket, and no state for strangers whose address is not proven, but for
//! a few with a connect token.
//!
//! `admission` leads from a first datagram to a client that may join, with a token if one is required, and `unproven`
//! says who may before its address is proven.
//! `claims` are the addresses that it came from, and `half_open` says who goes when many who were never heard
//! from fill the room. `opening` asks the application, and makes the session or rejects the client. `replies`
//! answers strangers, and limits how often. `seat` holds a client from its request to the end of its session:
//! `table` finds seats by id, which `shuffle` takes the order from and `names` knows the other numbers of,
//! `memory` counts what they hold. `deliver` handles sessions that are up, and decides which datagram is sent
//! next.

mod admission;
mod claims;
mod clients;
mod config;
mod deliver;
mod half_open;
mod kem;
mod memory;
mod names;
mod opening;
mod proxies;
mod relayed;
mod replies;
mod seat;
mod shuffle;
mod stats;
mod table;
mod tickets;
mod unproven;

pub use admission::Pass;
pub use config::ServerConfig;
pub use opening::Request;
pub use stats::{RejectedRequests, ServerStats};
pub use table::{SHARDS_MAX, SessionId, shard_of};

use super::connection::{Connection, check_close};
use super::cookie::CookieKey;
use super::error::{CloseTextError, RedirectError};
use super::event::Event;
use super::seats::TIMERS_EACH;
use super::shape::Shape;
use super::wire::{KemCiphertext, Packet, PacketError};
use super::{Random, SessionConfig, Suite, hash_key, random};
use crate::config::ConfigError;
use crate::machine::{Arrival, Machine, Transmit, is_beside_udp};
use crate::time::Time;
use admission::Tokens;
use proxies::Proxies;
use rand_core::CryptoRng;
use relayed::Relayed;
use replies::{REPLIES_MAX, Rates, Reply};
use seat::{Peer, Seats};
use stats::{Quiet, Refusal};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tickets::Tickets;

/// The sessions of a server, without I/O: a [`Machine`] with events. After any call, drain
/// [`poll_transmit`](Machine::poll_transmit) and [`poll_event`](Self::poll_event), then call
/// [`poll_timeout`](Machine::poll_timeout).
pub struct Server {
    config: ServerConfig,
    /// The part of `config` that all sessions share.
    session: Arc<SessionConfig>,
    shape: Shape,
    random: Random,
    cookies: CookieKey,
    tickets: Tickets,
    hash_key: [u8; 16],
    seats: Seats,
    /// Events for the application about clients that ask to join.
    notices: VecDeque<(SessionId, Event)>,
    ended: Option<(SessionId, Box<Peer>)>,
    /// Where each goes.
    replies: VecDeque<(SocketAddr, Reply)>,
    rates: Rates,
    quiet: Quiet,
    tokens: Option<Tokens>,
    /// Where clients are behind proxies.
    proxies: Option<Proxies>,
    /// Where guests come by a relay.
    relayed: Option<Relayed>,
    stats: ServerStats,
    now: Time,
    scratch: Vec<u8>,
}

printed_without_secrets! { Server { config, seats, stats, now } }

impl Server {
    /// A server without sessions. `rng` must be unpredictable and never repeat: keys and session numbers come from it.
    ///
    /// # Errors
    ///
    /// A field of `config` is wrong.
    pub fn new(
        config: &ServerConfig,
        rng: impl CryptoRng + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random_source = Random(Box::new(rng));
        let rng = &mut *random_source.0;
        let rates = Rates::new(config, rng); // draws first
        Ok(Self {
            config: config.clone(),
            session: Arc::new(config.session.clone()),
            shape: Shape::of(&config.session),
            cookies: CookieKey::new(random(rng)),
            tickets: Tickets::default(),
            hash_key: random(rng),
            seats: Seats::new(config, hash_key(rng)),
            notices: VecDeque::new(),
            ended: None,
            replies: VecDeque::with_capacity(REPLIES_MAX),
            rates,
            quiet: Quiet::default(),
            tokens: Tokens::of(config),
            proxies: Proxies::new(&config.proxies, || hash_key(rng)),
            relayed: config.relay.clone().map(Relayed::new),
            stats: ServerStats::default(),
            now: Time::ZERO,
            scratch: Vec::new(),
            random: random_source,
        })
    }

    /// Takes the next event, with its session. After [`Event::Closed`], the session is removed. Until you ask for the
    /// next event, you can still read from it, or [take it](Self::pop_ended).
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

    /// The settings that all sessions share.
    #[must_use]
    pub fn session_config(&self) -> &SessionConfig {
        &self.session
    }

    /// Takes the session whose end the last event reported, to read later what has arrived.
    pub fn pop_ended(&mut self) -> Option<Connection> {
        self.ended.take().map(|(_, peer)| peer.connection)
    }

    /// A session that is up, or whose end was just reported.
    #[must_use]
    pub fn connection(&self, id: SessionId) -> Option<&Connection> {
        self.peer(id).filter(|peer| peer.half_open.is_none()).map(|peer| &peer.connection)
    }

    /// The same, to send and receive. Drain the polls afterwards.
    pub fn connection_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        match &mut self.ended {
            Some((ended, peer)) if *ended == id => Some(&mut peer.connection),
            _ => self.seats.lend(id.0),
        }
    }

    /// The sessions that are up, or whose end was not reported yet, in no particular order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.seats.ids().map(SessionId)
    }

    /// The contents of a session's connect token, if the server requires tokens.
    #[must_use]
    pub fn pass(&self, id: SessionId) -> Option<&Pass> {
        let of_request = || self.seats.asked(id.0)?.pass.as_ref();
        self.peer(id).and_then(|peer| peer.pass.as_deref()).or_else(of_request)
    }

    fn peer(&self, id: SessionId) -> Option<&Peer> {
        let ended = self.ended.as_ref().filter(|(ended, _)| *ended == id);
        ended.map(|(_, peer)| &**peer).or_else(|| self.seats.peer(id.0))
    }

    /// Closes a session; see [`Connection::close`].
    pub fn close(&mut self, now: Time, id: SessionId, code: u16) {
        let now = self.tick(now);
        if let Some(connection) = self.connection_mut(id) {
            connection.close(now, code);
        }
    }

    /// Closes all sessions that are up, except some. Returns whether all are over.
    pub(crate) fn close_all(&mut self, now: Time, code: u16, except: impl Fn(SessionId) -> bool) -> bool {
        for id in self.clients().filter(|id| !except(*id)) {
            self.close(now, id, code);
        }
        self.ids().all(|id| self.connection(id).is_none_or(Connection::is_closed))
    }

    /// [`close`](Self::close) with a text for the client; see [`Connection::close_with`].
    ///
    /// # Errors
    ///
    /// The text is too long or has control characters, or the code is one of the library's own. Nothing has changed then.
    pub fn close_with(
        &mut self,
        now: Time,
        id: SessionId,
        code: u16,
        text: &str,
    ) -> Result<(), CloseTextError> {
        let now = self.tick(now);
        check_close(code, text)?;
        self.connection_mut(id).map_or(Ok(()), |connection| connection.close_with(now, code, text))
    }

    /// Sends the client of a session to another server. `token` is a connect token for that server, encoded by
    /// `PublicToken::encode`. It is repeated until it has arrived, and the client gets [`Event::Redirected`]. The
    /// session continues until either end closes it, as a client does once it is connected there. Call this again to
    /// replace an expired token.
    ///
    /// Without encryption, `token` may be any bytes, because a token would reveal its secret to all who listen.
    ///
    /// # Errors
    ///
    /// The token does not fit or is invalid, or the session is over. Nothing has changed then.
    pub fn redirect(&mut self, now: Time, id: SessionId, token: &[u8]) -> Result<(), RedirectError> {
        let now = self.tick(now);
        self.connection_mut(id).ok_or(RedirectError::Closed)?.redirect(now, token)
    }

    /// The number of sessions: asked for, not confirmed, up, and over but not reported yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seats.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address at which the [relay](ServerConfig::relay) sees this server. `None`: it has not heard of it for 15 s, so no guest can come by it.
    #[must_use]
    pub fn public_addr(&self, now: Time) -> Option<SocketAddr> {
        self.relayed.as_ref()?.public(now)
    }

    #[cfg(feature = "net")]
    pub(crate) fn relay_addr(&self) -> Option<SocketAddr> {
        self.config.relay.as_ref().map(|(relay, _)| *relay)
    }

    /// The statistics.
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
    /// Takes a datagram. If it belongs to a session of another one of `shards` servers on the port, returns which.
    pub(crate) fn handle_own(
        &mut self,
        now: Time,
        from: Arrival,
        datagram: &mut [u8],
        servers: usize,
    ) -> Option<usize> {
        let (from, datagram) = self.open_relayed(now, from, datagram)?;
        let has_any = !datagram.is_empty();
        let (from, datagram) = match &mut self.proxies {
            None => (from, datagram),
            Some(proxies) => match proxies.open(from, datagram) {
                Ok((_, [])) if has_any => {
                    self.stats.datagrams += 1; // only a header
                    return None;
                }
                Ok(opened) => opened,
                Err(refusal) => {
                    self.stats.datagrams += 1;
                    self.count(now, from.address, refusal);
                    return None;
                }
            },
        };
        let routing_token = if is_beside_udp(from.address) { 0 } else { self.config.routing_token };
        let len = datagram.len().saturating_sub(routing_token.into());
        let datagram = datagram.get_mut(..len).unwrap_or_default();
        let packet = Packet::decode(datagram);
        let sid = packet.as_ref().ok().and_then(Packet::sid);
        if let Some(sid) = sid {
            let owner = SessionId(sid).shard();
            if usize::from(owner) < servers && owner != self.config.shard {
                return Some(owner.into());
            }
        }
        let (now, address) = (self.tick(now), from.address);
        self.stats.datagrams += 1;
        self.stats.bytes_received += datagram.len() as u64;
        match packet {
            Ok(Packet::Data(header, _)) => self.deliver(now, from, header, datagram),
            Ok(Packet::Hello(hello)) => self.on_hello(now, from, &hello),
            Ok(Packet::Connect(connect)) => {
                let size = u16::try_from(datagram.len()).unwrap_or_default();
                self.on_connect(now, from, &connect, size)
            }
            Ok(Packet::KemCiphertext(KemCiphertext { sid, .. })) => {
                self.on_ciphertext(now, address, sid, datagram)
            }
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
            let Some(id) = self.seats.agenda.pop(now) else { break };
            self.wake(now, id);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let (now, start) = (self.tick(now), out.len());
        self.seats.end_loan();
        let registers = self.relayed.as_mut().and_then(|relayed| relayed.append_transmit(now, out));
        let reply = registers.or_else(|| self.append_reply(out).map(Transmit::from));
        let mut transmit = reply.or_else(|| self.transmit(now, out))?;
        if let Some(relayed) = &self.relayed {
            transmit = relayed.wrap(transmit, out, start);
        }
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += out.len().saturating_sub(start) as u64;
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Time> {
        if !self.replies.is_empty() {
            return Some(self.now);
        }
        let registers = self.relayed.as_ref().map(Relayed::due);
        self.seats.agenda.poll_timeout(self.now).into_iter().chain(registers).min()
    }

    fn set_unix_time(&mut self, now: Time, unix: Duration) {
        let now = self.tick(now);
        if let Some(tokens) = &mut self.tokens {
            tokens.set_unix_time(now, unix.as_secs());
        }
    }

    /// Ends all sessions. Clients that arrive in the meantime are turned away.
    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        self.close_all(now, code, |_| false)
    }

    fn abandon(&mut self, now: Time) {
        let now = self.tick(now);
        let ids: Vec<_> = self.ids().collect(); // those that are closing as well
        for id in ids {
            if let Some(connection) = self.connection_mut(id) {
                connection.abandon(now);
            }
        }
    }
}
