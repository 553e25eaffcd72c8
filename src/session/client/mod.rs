//! The client's end of a session: from the first datagram to the last CLOSE.

mod attempt;
mod candidate;
mod config;
mod network;
mod opening;
mod ways;

pub use config::{ClientConfig, ConnectError};
pub use network::SecondNetwork;

use super::connection::{Connection, Next, To, check_close};
use super::error::CloseTextError;
use super::event::{CloseReason, Event, Undelivered};
use super::stats::RejectedDatagrams;
use super::wire::{Challenge, Data, Hello, Packet, PacketError};
use super::{Random, Suite, random};
use crate::config::ConfigError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::time::Time;
use attempt::Attempt;
use network::{Hop, other};
use rand_core::CryptoRng;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use ways::{Present, WayAnswer, Ways};
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
    /// The addresses that lead to the server, while a session is up that may use another one.
    ways: Option<Box<Ways>>,
    /// What the second network is for, if there is one.
    second: Option<SecondNetwork>,
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
    /// Asking for a cookie, or with a connect token for the session.
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
            ways: None,
            second: None,
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
        let (network, scratch) = (self.network(), &mut self.scratch);
        let hop = Hop { network: from.network, address: from.address };
        match &mut self.state {
            State::Connected(connection) if connection.answers_to(header.sid) => {
                let here = Hop { network, address: connection.peer_addr() };
                if hop == here {
                    if connection.handle_data(now, from, (header, datagram), scratch)
                        && let Some(ways) = &mut self.ways
                    {
                        ways.on_heard(now, here);
                    }
                } else if self.ways.as_ref().is_some_and(|ways| ways.has(hop))
                    || (hop.network != network && connection.second_addr() == Some(hop.address))
                {
                    let is_second = hop.network != network && self.second == Some(SecondNetwork::Double);
                    connection.handle_from_elsewhere(now, from, (header, datagram), scratch, is_second);
                } else {
                    self.rejected.stranger += 1;
                }
            }
            _ => self.rejected.stranger += 1,
        }
    }

    fn on_packet(&mut self, now: Time, from: Hop, packet: Result<Packet<'_>, PacketError>) {
        let hop = from;
        let from = hop.address;
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
            (State::Connected(_), Ok(Packet::Challenge(challenge))) => {
                self.on_challenge_of_way(now, hop, &challenge)
            }
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

    /// Another way to the server has answered. Returns whether it was asked.
    fn on_challenge_of_way(&mut self, now: Time, from: Hop, challenge: &Challenge) -> bool {
        let (State::Connected(connection), Some(ways)) = (&mut self.state, &mut self.ways) else {
            return false;
        };
        let Some((answer, took)) = ways.on_challenge(now, from, challenge, present(connection)) else {
            return false;
        };
        if answer != WayAnswer::Stay && connection.is_connected() {
            let (is_dead, is_by_other) = (answer == WayAnswer::Flee, from.network != ways.network);
            ways.moved(now, connection.peer_addr(), from, took);
            if is_by_other && self.second == Some(SecondNetwork::Double) {
                connection.swap_paths(now, from.address, is_dead);
            } else {
                connection.reach_at(now, from.address, is_dead);
            }
        }
        true
    }

    /// Appends the next datagram.
    fn append_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let network = self.network();
        match &mut self.state {
            State::Connecting(attempt) => attempt.poll(now, &self.config, &mut *self.random.0, out),
            State::Connected(connection) => {
                if connection.wants_random() {
                    connection.draw(now, &Zeroizing::new(random(&mut *self.random.0)));
                }
                if let Some(ways) = self.ways.as_mut().filter(|_| connection.is_connected()) {
                    ways.update(now, present(connection), || u64::from_le_bytes(random(&mut *self.random.0)));
                    if let Some((Hop { network, address }, cid)) = ways.poll(connection.peer_addr()) {
                        let (suite, size) = (self.config.suite.code(), self.config.hello_len());
                        let (protocol_id, client_stamp) = (self.config.session.protocol_id, 0); // a time would link networks
                        Hello { suite, protocol_id, cid, client_stamp, size }.encode(out).ok()?;
                        return Some(Transmit { network, ..address.into() });
                    }
                }
                if let Some(server) = connection.write_ciphertext(now, out) {
                    return Some(Transmit { network, ..server.into() });
                }
                match connection.append_transmit(now, out) {
                    Next::Datagram(To { address, is_second }) => {
                        let network = if is_second { other(network) } else { network };
                        Some(Transmit { address, ecn: connection.transmit_ecn(), network })
                    }
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

/// The way that a session uses.
fn present(connection: &Connection) -> Present {
    let (asked, rtt) = connection.asked();
    let (address, answered) = (connection.peer_addr(), connection.answered());
    Present { address, asked, answered, rtt, patience: connection.patience() }
}

impl Machine for Client {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        let now = self.tick(now);
        match Packet::decode(datagram) {
            Ok(Packet::Data(data, _)) => self.on_data(now, from, data, datagram),
            packet => self.on_packet(now, Hop { network: from.network, address: from.address }, packet),
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
    /// nobody can tell by their bytes that both networks carry the same session; with a second network, those that leave by either. Returns whether the session
    /// is encrypted. Before the session is up, this does nothing else.
    ///
    /// Call it once for each change, before anything leaves by the other network, and send from another port
    /// there. A client has two spare numbers, and gets another one 2 s after it has used one. A client
    /// without a spare one keeps its number.
    fn path_changed(&mut self, now: Time) -> bool {
        let now = self.tick(now);
        if let State::Connected(connection) = &mut self.state {
            connection.networks_changed(now);
            if let Some(ways) = &mut self.ways {
                ways.plan(now);
            }
        }
        self.config.suite != Suite::Checked
    }

    fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Connecting(attempt) => Some(attempt.check()),
            State::Connected(connection) => {
                let ways = self.ways.as_ref().filter(|_| connection.is_connected());
                let asks = ways.map(|ways| ways.check(present(connection)));
                connection.poll_timeout().into_iter().chain(asks).min()
            }
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
