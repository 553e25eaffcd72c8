//! A server, a client and what is under way between them. Each step is one that a network, a clock or a person may take.

use crate::common::machine::Whole as _;
use crate::common::ms;
use crate::common::sessions::{client_address, random, server_address};
#[cfg(feature = "crypto")]
use crate::common::tokens::{NOW, token};
use crate::records::Records;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::machine::Machine as _;
use whitewater::session::{Client, ClientState, Connection, Server};
use whitewater::{Channel, ClientConfig, ServerConfig, SessionId, Time};

pub(crate) struct World<'a> {
    pub(crate) now: Time,
    server_config: ServerConfig,
    client_config: ClientConfig,
    token: &'a [u8],
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) records: Records,
    /// Oldest first.
    pub(crate) flight: VecDeque<Flight>,
    /// The first datagrams of all from a client, to be repeated at any time.
    pub(crate) first: Vec<Flight>,
    address: SocketAddr,
    ports: u16,
    /// Processes of the client and of the server so far.
    clients: u64,
    servers: u64,
    /// Of everything that each machine was ever told.
    told: [u64; 2],
    buf: Vec<u8>,
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Flight {
    is_up: bool,
    /// Of the client.
    address: SocketAddr,
    bytes: Vec<u8>,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Step {
    /// A datagram arrives: the oldest under way, or one behind it.
    Deliver(usize),
    /// The oldest is lost.
    Drop,
    /// The oldest arrives, and a copy comes behind the others.
    Double,
    /// Time passes until a timer of either end.
    Timer,
    /// One of the first datagrams comes again, from where it came then.
    Again(usize),
    Deed(Deed),
}

/// What a person or a system does to an end.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Deed {
    /// Either end sends a message.
    Talk,
    CloseClient,
    CloseServer,
    KickClient,
    Redirect,
    /// The client's datagrams come from another port.
    Move,
    /// A process ends without a word and starts again. A client then connects.
    RestartServer,
    RestartClient,
}

impl<'a> World<'a> {
    pub(crate) fn new(server_config: ServerConfig, client_config: &ClientConfig, token: &'a [u8]) -> Self {
        let mut world = Self {
            now: Time::from_millis(1000),
            server: Server::new(&server_config, random(1, 1000)).unwrap(),
            server_config,
            client_config: client_config.clone(),
            token,
            client: Client::new(client_config, random(1, 2000)).unwrap(),
            records: Records::default(),
            flight: VecDeque::new(),
            first: Vec::new(),
            address: client_address(1, 1000),
            ports: 1000,
            clients: 0,
            servers: 1,
            told: [0; 2],
            buf: Vec::new(),
        };
        world.begin_client();
        world
    }

    fn begin_client(&mut self) {
        self.clients += 1;
        #[cfg(feature = "crypto")]
        if self.server_config.tokens.is_some() {
            let token = token(self.clients, NOW, self.generation());
            self.client_config.psk = Some(token.psk.clone());
            self.client_config.token = Some(token);
            self.server.set_unix_time(self.now, Duration::from_secs(NOW));
        }
        self.client_config.user = vec![self.generation()];
        self.client = Client::new(&self.client_config, random(1, 2000 + self.clients)).unwrap();
        self.client.connect(self.now, &[server_address()]).unwrap();
        self.records.begin_client(self.generation());
        self.note(CLIENT, &self.clients.clone());
        self.drain();
    }

    fn generation(&self) -> u8 {
        u8::try_from(self.clients % 251).unwrap()
    }

    fn note(&mut self, end: usize, what: &impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.told[end], self.now.as_micros()).hash(&mut hasher);
        what.hash(&mut hasher);
        self.told[end] = hasher.finish();
    }

    /// A digest of everything on which the future depends: what each end was told and when, what is under way, and the time.
    pub(crate) fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.told, &self.flight, self.now.as_micros(), self.address).hash(&mut hasher);
        hasher.finish()
    }

    /// When a timer of either end is due.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
    }

    pub(crate) fn take(&mut self, step: Step) {
        match step {
            Step::Deliver(index) => {
                let flight = self.flight.remove(index).unwrap();
                self.arrive(&flight);
            }
            Step::Drop => drop(self.flight.pop_front()),
            Step::Double => {
                let flight = self.flight.pop_front().unwrap();
                self.arrive(&flight);
                self.flight.push_back(flight);
            }
            Step::Timer => {
                let next = self.next_timer().unwrap();
                // A timer that is due but does nothing would stop the clock.
                self.now = next.max(self.now + Duration::from_micros(1));
                self.expire();
            }
            Step::Again(index) => {
                let flight = self.first[index].clone();
                self.arrive(&flight);
            }
            Step::Deed(deed) => {
                self.act(deed);
                self.drain();
            }
        }
    }

    fn arrive(&mut self, flight: &Flight) {
        self.now = self.now + HOP;
        if flight.is_up {
            self.note(SERVER, &flight);
            self.server.give(self.now, flight.address, &flight.bytes);
        } else if flight.address == self.address {
            self.note(CLIENT, &flight);
            self.client.give(self.now, server_address(), &flight.bytes);
        }
        self.expire();
    }

    /// Handles the timers that are due.
    fn expire(&mut self) {
        let now = self.now;
        if self.client.poll_timeout().is_some_and(|due| due <= now) {
            self.note(CLIENT, &());
            self.client.handle_timeout(now);
        }
        if self.server.poll_timeout().is_some_and(|due| due <= now) {
            self.note(SERVER, &());
            self.server.handle_timeout(now);
        }
        self.drain();
    }

    fn act(&mut self, deed: Deed) {
        let (now, id) = (self.now, self.session());
        self.note(CLIENT, &deed);
        self.note(SERVER, &deed);
        match deed {
            Deed::Talk => self.talk(),
            Deed::CloseClient => self.client.close(now, 1),
            Deed::CloseServer => id.into_iter().for_each(|id| self.server.close(now, id, 2)),
            Deed::KickClient => id.into_iter().for_each(|id| self.server.kick(now, id, 3, "").unwrap()),
            Deed::Redirect => {
                let is_sent = id.is_some_and(|id| self.server.redirect(now, id, self.token).is_ok());
                self.records.redirects |= is_sent;
            }
            Deed::Move => {
                self.ports += 1;
                self.address = client_address(1, self.ports);
            }
            Deed::RestartServer => {
                self.servers += 1;
                self.server = Server::new(&self.server_config, random(1, 1000 + self.servers)).unwrap();
                #[cfg(feature = "crypto")]
                self.server.set_unix_time(self.now, Duration::from_secs(NOW));
                self.records.begin_server();
            }
            Deed::RestartClient => {
                self.ports += 1;
                self.address = client_address(1, self.ports);
                self.begin_client();
            }
        }
    }

    /// Sends a message from each end that is up.
    fn talk(&mut self) {
        let (id, generation) = (self.session(), self.generation());
        if let Some(client) = self.client.connection_mut().filter(|client| client.is_connected()) {
            self.records.say(CLIENT, generation, client);
        }
        if let Some(server) = id.and_then(|id| self.server.connection_mut(id)) {
            self.records.say(SERVER, generation, server);
        }
    }

    /// The server's session with this process of the client.
    pub(crate) fn session(&self) -> Option<SessionId> {
        let is_ours = |id: &SessionId| {
            self.server.connection(*id).is_some_and(|session| session.user() == [self.generation()])
        };
        self.records.sessions().find(is_ours)
    }

    /// Whether the client and the server are up with each other.
    pub(crate) fn are_up(&self) -> [bool; 2] {
        let server = self.session().and_then(|id| self.server.connection(id));
        [self.client.is_connected(), server.is_some_and(Connection::is_connected)]
    }

    /// Whether the client has ended, and the server has no session with it.
    pub(crate) fn are_over(&self) -> bool {
        self.client.state() == ClientState::Closed && self.session().is_none()
    }

    /// Polls both ends until neither has anything to send or to report.
    pub(crate) fn drain(&mut self) {
        let (now, mut buf) = (self.now, std::mem::take(&mut self.buf));
        while self.emit(now, &mut buf) || self.report() {}
        self.buf = buf;
    }

    /// Takes what both ends send. Returns whether there was anything.
    fn emit(&mut self, now: Time, buf: &mut Vec<u8>) -> bool {
        let before = self.flight.len();
        while let Some(to) = self.client.emit_to(now, buf) {
            assert_eq!(to, server_address());
            let flight = Flight { is_up: true, address: self.address, bytes: buf.clone() };
            if self.first.len() < FIRST + usize::from(self.client_config.suite.is_hybrid()) {
                self.first.push(flight.clone());
            }
            self.flight.push_back(flight);
        }
        while let Some(address) = self.server.emit_to(now, buf) {
            self.flight.push_back(Flight { is_up: false, address, bytes: buf.clone() });
        }
        self.flight.len() > before
    }

    /// Takes what both ends report. Returns whether there was anything.
    fn report(&mut self) -> bool {
        let mut is_any = false;
        while let Some(event) = self.client.poll_event() {
            is_any = true;
            self.records.on_client(event, self.client.connection_mut());
        }
        while let Some((id, event)) = self.server.poll_event() {
            is_any = true;
            self.records.on_server(id, event, self.server.connection_mut(id));
        }
        is_any
    }
}

pub(crate) const CHAT: Channel = Channel::ordered(0);
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;
/// How long a datagram takes.
const HOP: Duration = ms(5);
/// HELLO, CONNECT, and the first packet; before that one the ciphertext of a hybrid handshake.
const FIRST: usize = 3;
