//! Sessions in virtual time.

use super::{ClientEnd, ServerEnd};
use crate::carry::{Guest, Host, session};
use crate::client::Client;
use crate::server::Server;
use crate::wire::Hello;
use std::net::SocketAddr;
use whitewater::machine::Machine as _;
use whitewater::session::{self, ClientState};
use whitewater::{ClientConfig, Event, ServerConfig, Time};
use whitewater_sim::SimRng;

pub(super) struct ServerOf {
    sessions: session::Server,
    host: Host,
}

impl ServerOf {
    #[expect(clippy::expect_used, reason = "the config is a constant")]
    pub(super) fn new(seed: u64, game: Server) -> Self {
        let config = ServerConfig {
            sessions_per_address: 64, // a client that was restarted has the old address
            ..ServerConfig::secret(session(), SECRET)
        };
        let sessions = session::Server::new(&config, random(seed, 1)).expect("it is in range");
        Self { sessions, host: Host::new(game) }
    }

    fn drain(&mut self, now: Time) {
        while let Some((id, event)) = self.sessions.poll_event() {
            self.host.on_event(&mut self.sessions, now, id, event);
        }
    }
}

impl ServerEnd for ServerOf {
    fn game(&self) -> &Server {
        &self.host.game
    }

    fn game_mut(&mut self) -> &mut Server {
        &mut self.host.game
    }

    fn expect(&mut self, _: usize, _: &Hello) {}

    fn input(&mut self, now: Time, guest: usize, datagram: &[u8]) {
        self.sessions.handle_datagram(now, address(guest).into(), &mut datagram.to_vec());
        self.drain(now);
    }

    fn poll(&mut self, now: Time) {
        self.sessions.handle_timeout(now);
        self.drain(now);
    }

    fn tick(&mut self, _: Time) {
        self.host.tick(&mut self.sessions);
    }

    fn pop(&mut self, now: Time, datagram: &mut Vec<u8>) -> Option<usize> {
        datagram.clear();
        let transmit = self.sessions.poll_transmit(now, datagram)?;
        Some(usize::from(transmit.address.port() - PORT))
    }

    fn wake(&self, _: Time) -> Option<Time> {
        self.sessions.poll_timeout()
    }
}

pub(super) struct ClientOf {
    session: session::Client,
    guest: Guest,
}

impl ClientOf {
    #[expect(clippy::expect_used, reason = "the config is a constant, but for a short name")]
    pub(super) fn new(now: Time, seed: u64, number: usize, hello: &Hello) -> Self {
        let user = hello.encode().unwrap_or_default();
        let config = ClientConfig { user, ..ClientConfig::secret(session(), SECRET) };
        let stream = 100 + number as u64 + now.as_micros(); // a different one after a restart
        let mut session = session::Client::new(&config, random(seed, stream)).expect("it is in range");
        session.connect(now, &[server()]).expect("it connects once");
        Self { session, guest: Guest::default() }
    }

    fn drain(&mut self, now: Time) {
        while let Some(event) = self.session.poll_event() {
            if event == Event::Readable
                && let Some(connection) = self.session.connection_mut()
            {
                self.guest.read(connection, now);
            }
        }
    }
}

impl ClientEnd for ClientOf {
    fn game(&self) -> &Client {
        &self.guest.game
    }

    fn game_mut(&mut self) -> &mut Client {
        &mut self.guest.game
    }

    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.session.handle_datagram(now, server().into(), &mut datagram.to_vec());
        self.drain(now);
    }

    fn poll(&mut self, now: Time) {
        self.session.handle_timeout(now);
        self.drain(now);
    }

    fn advance(&mut self, now: Time) {
        if let Some(connection) = self.session.connection_mut() {
            self.guest.read(connection, now);
            self.guest.advance(connection, now);
        }
    }

    fn pop(&mut self, now: Time, datagram: &mut Vec<u8>) -> bool {
        datagram.clear();
        self.session.poll_transmit(now, datagram).is_some()
    }

    fn wake(&self, _: Time) -> Option<Time> {
        self.session.poll_timeout()
    }

    fn is_over(&self) -> bool {
        self.session.state() == ClientState::Closed
    }
}

fn random(seed: u64, stream: u64) -> SimRng {
    SimRng::new(seed, stream)
}

fn server() -> SocketAddr {
    ([10, 0, 0, 1], 4000).into()
}

fn address(guest: usize) -> SocketAddr {
    ([10, 0, 0, 2], PORT.saturating_add(u16::try_from(guest).unwrap_or(u16::MAX))).into()
}

/// The port of the first client.
const PORT: u16 = 5000;
/// Everything is in one process: there is nobody to hide it from.
const SECRET: [u8; 32] = *b"nobody is here but we ourselves.";
