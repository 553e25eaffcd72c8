//! The client's end of a session: from the first HELLO to the last CLOSE.

mod attempt;
mod candidate;
mod config;

pub use config::{ClientConfig, ConnectError};

use super::connection::{Connection, Next, Parts, check_close};
use super::error::CloseTextError;
use super::event::{CloseReason, Event, Undelivered, code};
use super::seal::{Keys, Seal};
use super::shape::{Mismatch, Shape};
use super::stats::RejectedDatagrams;
use super::wire::{Accept, Data, DenyReason, KemKey, Msg2, Packet, PacketError};
use super::{Random, Suite, hash_key, random};
use crate::config::ConfigError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::time::Time;
use attempt::{Answer, Attempt};
use rand_core::CryptoRng;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The client's end of a session, without I/O: a [`Machine`] with events. After any call, drain
/// [`poll_transmit`](Machine::poll_transmit) and [`poll_event`](Self::poll_event), then call
/// [`poll_timeout`](Machine::poll_timeout).
///
/// It connects only once. For another session, make another client.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    random: Random,
    state: State,
    scratch: Vec<u8>,
    closed: Option<CloseReason>,
    rejection: Box<[u8]>,
    rejected: RejectedDatagrams,
    now: Time,
}

#[derive(Debug)]
enum State {
    Idle,
    Connecting(Box<Attempt>),
    /// Up, or closing after that.
    Connected(Box<Connection>),
    /// Ended before it was up.
    Failed,
}

/// The progress of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClientState {
    /// Not connected yet.
    Idle,
    /// Asking for a cookie.
    Hello,
    /// In the handshake, with a cookie or a ticket.
    Connect,
    /// Up.
    Up,
    /// Waiting until what was sent has arrived, or telling the peer that the session is over.
    Closing,
    /// Over.
    Closed,
}

impl Client {
    /// A client that is not connected. `rng` must be unpredictable and never repeat: keys and session numbers come from
    /// it.
    ///
    /// # Errors
    ///
    /// A field of `config` is wrong.
    pub fn new(
        config: &ClientConfig,
        rng: impl CryptoRng + Send + Sync + 'static,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config: config.clone(),
            random: Random(Box::new(rng)),
            state: State::Idle,
            scratch: Vec::new(),
            closed: None,
            rejection: Box::default(),
            rejected: RejectedDatagrams::default(),
            now: Time::ZERO,
        })
    }

    /// Starts to connect to the server at `addresses`, and takes the first one that answers. Four are tried at a time, all of the family of the first
    /// of them; if none of these works within [`deadline`](ClientConfig::deadline), the next ones are. An address that is named twice is tried once.
    ///
    /// # Errors
    ///
    /// It was connected before, or there is no address.
    pub fn connect(&mut self, now: Time, addresses: &[SocketAddr]) -> Result<(), ConnectError> {
        if !matches!(self.state, State::Idle) {
            return Err(ConnectError::Used);
        }
        let (now, mut seen) = (self.tick(now), BTreeSet::new());
        let addresses: Vec<_> = addresses.iter().copied().filter(|address| seen.insert(*address)).collect();
        let attempt = Attempt::new(now, &self.config, &addresses, &mut *self.random.0)?;
        self.state = State::Connecting(Box::new(attempt));
        Ok(())
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let State::Connected(connection) = &mut self.state {
            return connection.poll_event();
        }
        let (reason, undelivered) = (self.closed.take()?, Undelivered::default());
        Some(Event::Closed { reason, undelivered })
    }

    /// Whether there is an event to take.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.connection().map_or(self.closed.is_some(), Connection::has_events)
    }

    /// The settings of the session.
    #[must_use]
    pub const fn session_config(&self) -> &super::SessionConfig {
        &self.config.session
    }

    /// Closes the session; see [`Connection::close`]. An attempt to connect ends at once.
    pub fn close(&mut self, now: Time, code: u16) {
        let now = self.tick(now);
        match &mut self.state {
            State::Connected(connection) => connection.close(now, code),
            State::Idle | State::Connecting(_) => self.fail(CloseReason::Local(code)),
            State::Failed => {}
        }
    }

    /// The same with a text for the server; see [`Connection::close_with`].
    ///
    /// # Errors
    ///
    /// The text is too long or has control characters, or the code is one of the library's own. Nothing has changed then.
    pub fn close_with(&mut self, now: Time, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_close(code, text)?;
        let now = self.tick(now);
        if let Some(connection) = self.connection_mut() {
            return connection.close_with(now, code, text);
        }
        self.close(now, code);
        Ok(())
    }

    /// Ends the session at once; see [`Connection::kick`]. An attempt to connect ends, too.
    ///
    /// # Errors
    ///
    /// The text is too long or has control characters, or the code is one of the library's own. Nothing has changed then.
    pub fn kick(&mut self, now: Time, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_close(code, text)?;
        let now = self.tick(now);
        if let Some(connection) = self.connection_mut() {
            return connection.kick(now, code, text);
        }
        self.close(now, code);
        Ok(())
    }

    /// Takes the token for another server after [`Event::Redirected`]: the token that our server passed to
    /// [`Server::redirect`](super::Server::redirect). Decode it with `PublicToken::decode`, connect another client to
    /// its addresses, and close this one when that is up; until then nothing changes here. If another token arrives, it
    /// replaces this one.
    pub fn take_redirect(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        self.connection_mut()?.pop_redirect()
    }

    /// What the server's application said when it rejected us ([`CloseReason::Rejected`]), at most 256 bytes. Otherwise
    /// empty.
    #[must_use]
    pub const fn rejection(&self) -> &[u8] {
        &self.rejection
    }

    /// The session, once it has been up.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        let State::Connected(connection) = &self.state else { return None };
        Some(connection)
    }

    /// The same, to send and receive.
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        let State::Connected(connection) = &mut self.state else { return None };
        Some(connection)
    }

    /// Whether the session is up and accepts data to send.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state() == ClientState::Up
    }

    /// The address of the server, once the session has been up.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.connection().map(Connection::peer_addr)
    }

    /// The progress of the session.
    #[must_use]
    pub fn state(&self) -> ClientState {
        match &self.state {
            State::Idle => ClientState::Idle,
            State::Connecting(attempt) if attempt.has_cookie() => ClientState::Connect,
            State::Connecting(_) => ClientState::Hello,
            State::Connected(connection) if connection.is_connected() => ClientState::Up,
            State::Connected(connection) if !connection.is_closed() => ClientState::Closing,
            State::Connected(_) | State::Failed => ClientState::Closed,
        }
    }

    /// Datagrams that changed nothing, without those that the [connection](Connection::stats) counts.
    #[must_use]
    pub const fn rejected(&self) -> RejectedDatagrams {
        self.rejected
    }

    fn on_data(&mut self, now: Time, from: Arrival, header: Data, datagram: &mut [u8]) {
        if datagram.len() > self.config.session.datagram_taken().into() {
            self.rejected.malformed += 1;
            return;
        }
        match &mut self.state {
            State::Connected(connection)
                if connection.answers_to(header.sid) && from.address == connection.peer_addr() =>
            {
                connection.handle_data(now, from, (header, datagram), &mut self.scratch);
            }
            _ => self.rejected.stranger += 1,
        }
    }

    fn on_packet(&mut self, now: Time, from: SocketAddr, packet: Result<Packet<'_>, PacketError>) {
        let is_ours = match (&mut self.state, packet) {
            (_, Err(PacketError::Version { .. })) => false,
            (_, Err(_)) => {
                self.rejected.malformed += 1;
                return;
            }
            (State::Connecting(attempt), Ok(Packet::Challenge(challenge))) => {
                attempt.on_challenge(now, from, self.config.suite, &challenge, &mut *self.random.0)
            }
            (State::Connecting(attempt), Ok(Packet::Deny(deny))) => attempt.on_deny(now, from, &deny),
            (State::Connecting(_), Ok(Packet::Accept(accept))) => self.on_accept(now, from, &accept),
            (State::Connecting(_), Ok(Packet::KemKey(key))) => self.on_kem_key(now, from, &key),
            (State::Connected(connection), Ok(Packet::Reset(reset))) => {
                let is_ours = from == connection.peer_addr() && connection.is_reset_by(&reset);
                if is_ours {
                    connection.end_unless_ending(CloseReason::ServerForgot);
                }
                is_ours
            }
            _ => false,
        };
        self.rejected.stranger += u64::from(!is_ours);
    }

    fn on_accept(&mut self, now: Time, from: SocketAddr, accept: &Accept<'_>) -> bool {
        let State::Connecting(attempt) = &mut self.state else { return false };
        let Some(answer) = attempt.on_accept(from, &self.config, accept) else { return false };
        let payload = answer.payload.clone();
        let Ok(msg2) = Msg2::decode(&payload) else { return false };
        if msg2.rejected == Some(code::SHAPE) {
            let mismatch = Shape::of(&self.config.session).compare(msg2.said.user);
            let reason = DenyReason::Shape(mismatch.unwrap_or(Mismatch::UNNAMED));
            log::debug!("denied by {from}: {reason}");
            self.fail(CloseReason::Denied(reason));
            return true;
        }
        if let Some(code) = msg2.rejected {
            self.rejection = msg2.said.user.into();
            self.fail(CloseReason::Rejected(code));
            return true;
        }
        let Some(keys) = attempt.complete(accept, msg2.server_sid, answer) else { return true };
        self.go_up(now, from, keys, &msg2)
    }

    fn on_kem_key(&mut self, now: Time, from: SocketAddr, key: &KemKey<'_>) -> bool {
        let State::Connecting(attempt) = &mut self.state else { return false };
        let Some(answer) = attempt.on_kem_key(from, self.config.suite, key) else { return false };
        let Answer { from, keys, payload } = answer;
        Msg2::decode(&payload).is_ok_and(|msg2| self.go_up(now, from, keys, &msg2))
    }

    /// The handshake is over.
    fn go_up(&mut self, now: Time, from: SocketAddr, keys: Keys, msg2: &Msg2<'_>) -> bool {
        let State::Connecting(attempt) = &mut self.state else { return false };
        let parts = Parts {
            seal: Seal::new(now, keys),
            peer_sid: msg2.server_sid,
            own_sid: attempt.client_sid,
            reset_token: msg2.reset_token,
            peer: from,
            conv: msg2.server_sid,
            max_datagram: msg2.said.max_datagram,
            features: msg2.said.features,
            moves: false, // a server keeps its address
            is_client: true,
            tail: u16::try_from(self.config.routing_token.len()).unwrap_or_default(),
            seed: hash_key(&mut *self.random.0),
            user: msg2.said.user.into(),
            ticket: msg2.ticket,
        };
        let session = Arc::new(self.config.session.clone());
        let Ok(connection) = Connection::new(now, &session, parts) else { return false };
        self.state = State::Connected(Box::new(connection));
        true
    }

    /// Appends the next datagram.
    fn append_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        match &mut self.state {
            State::Connecting(attempt) => attempt.poll(now, &self.config, &mut *self.random.0, out),
            State::Connected(connection) => {
                if connection.wants_random() {
                    connection.draw(now, &Zeroizing::new(random(&mut *self.random.0)));
                }
                if let Some(server) = connection.write_ciphertext(now, out) {
                    return Some(server.into());
                }
                match connection.append_transmit(now, out) {
                    Next::Datagram(address) => Some(Transmit { address, ecn: connection.transmit_ecn() }),
                    Next::Timeout(_) => None,
                }
            }
            State::Idle | State::Failed => None,
        }
    }

    fn fail(&mut self, reason: CloseReason) {
        self.state = State::Failed;
        self.closed = Some(reason);
    }

    fn tick(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }
}

impl Machine for Client {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        let now = self.tick(now);
        match Packet::decode(datagram) {
            Ok(Packet::Data(data, _)) => self.on_data(now, from, data, datagram),
            packet => self.on_packet(now, from.address, packet),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        let now = self.tick(now);
        match &mut self.state {
            State::Connecting(attempt) if attempt.deadline <= now => {
                match attempt.next(now, &self.config, &mut *self.random.0) {
                    Some(next) => **attempt = next,
                    None => {
                        let reason = attempt.denied.map_or(CloseReason::ConnectTimeout, CloseReason::Denied);
                        self.fail(reason);
                    }
                }
            }
            State::Connected(connection) => connection.handle_timeout(now),
            _ => {}
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let now = self.tick(now);
        let transmit = self.append_transmit(now, out)?;
        out.extend_from_slice(&self.config.routing_token);
        Some(transmit)
    }

    /// Call this when another network leads to the server. An encrypted session then goes on over that
    /// network: the server hears from us at once, and what was measured of the path is forgotten. If headers
    /// are [masked](super::SessionConfig::mask_headers), packets have other numbers from then on, so that
    /// nobody can tell by their bytes that both networks carry the same session. Returns whether the session
    /// is encrypted. Before the session is up, this does nothing else.
    ///
    /// Call it once for each change, before anything leaves by the other network, and send from another port
    /// there. A client has two spare numbers, and gets another one 2 s after it has used one. A client
    /// without a spare one keeps its number.
    fn path_changed(&mut self, now: Time) -> bool {
        let now = self.tick(now);
        if let Some(connection) = self.connection_mut() {
            connection.path_changed(now);
        }
        self.config.suite != Suite::Checked
    }

    fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Connecting(attempt) => Some(attempt.check()),
            State::Connected(connection) => connection.poll_timeout(),
            State::Idle | State::Failed => None,
        }
    }

    fn shutdown(&mut self, now: Time, code: u16) -> bool {
        self.close(now, code);
        self.state() == ClientState::Closed
    }

    fn abandon(&mut self, now: Time) {
        let now = self.tick(now);
        match &mut self.state {
            State::Connected(connection) => connection.abandon(now),
            State::Idle | State::Connecting(_) => self.fail(CloseReason::Local(0)),
            State::Failed => {}
        }
    }
}
