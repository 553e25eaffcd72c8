//! A server, its clients and the paths between them in virtual time: addresses change, datagrams are
//! recorded, strangers interfere.

use super::machine::Whole as _;
use super::told::Proxy;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::channel::Carrier;
use whitewater::inside::session::seal::{Keys, Seal};
use whitewater::inside::session::wire;
use whitewater::kcp::Config;
use whitewater::machine::{Arrival, Ecn, Machine, Transmit, Underlay};
use whitewater::session::{self, Connection, Server, Suite};
use whitewater::{
    Channel, ChannelConfig, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId, Time,
};
use whitewater_sim::{Link, LinkConfig, LinkStats, SimRng};

/// The whole setup. Each seed gives one run.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) server: Server,
    pub(crate) clients: Vec<Client>,
    /// Sessions of the server, in the order in which they connected.
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) events: Vec<(Time, SessionId, Event)>,
    /// Sessions of the server that are over, as it handed them out.
    pub(crate) ended: BTreeMap<SessionId, Connection>,
    /// Datagrams that left, if they are recorded: when, whence, whither, what.
    pub(crate) tap: Vec<Tapped>,
    pub(crate) taps: bool,
    /// What the server sent to strangers, that is, addresses without a link.
    pub(crate) strangers: Vec<(SocketAddr, Vec<u8>)>,
    /// Whether the server is not polled. Then it neither receives nor sends.
    pub(crate) frozen: bool,
    /// What carries all datagrams.
    pub(crate) underlay: Underlay,
    /// What all datagrams pass between the paths and the server.
    pub(crate) proxy: Option<Proxy>,
    audit: BTreeMap<SocketAddr, Account>,
    seed: u64,
    buf: Vec<u8>,
}

pub(crate) type Tapped = (Time, SocketAddr, SocketAddr, Vec<u8>);

/// Bytes that the server received from an address and sent to it.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    received: u64,
    sent: u64,
    challenges: u64,
}

pub(crate) struct Client {
    pub(crate) session: session::Client,
    pub(crate) events: Vec<(Time, Event)>,
    /// The last one is in use; datagrams on the others still arrive at the server.
    routes: Vec<Route>,
    links: (LinkConfig, LinkConfig),
    pub(crate) frozen: bool,
}

impl Client {
    /// Why its session closed, if it did.
    pub(crate) fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|(_, event)| reason(event))
    }
}

/// Why a session closed, if the event says so.
pub(crate) fn reason(event: &Event) -> Option<CloseReason> {
    if let Event::Closed { reason, .. } = event { Some(*reason) } else { None }
}

struct Route {
    address: SocketAddr,
    up: Link,
    down: Link,
}

/// An ordered channel of bytes: the first is that of a default session.
pub(crate) const fn on(number: u8) -> Channel {
    Channel::ordered(number)
}

/// So many ordered channels that go by KCP with these knobs.
pub(crate) fn ordered(knobs: impl IntoIterator<Item = Config>) -> Vec<ChannelConfig> {
    (0..).zip(knobs).map(|(number, kcp)| ChannelConfig { kcp, ..on(number).config() }).collect()
}

/// The channel, in packets.
pub(crate) fn in_packets(channel: Channel) -> ChannelConfig {
    ChannelConfig { carrier: Carrier::Packets, ..channel.config() }
}

/// KCP as the first channel of a default session has it.
pub(crate) fn default_kcp() -> Config {
    on(0).config().kcp
}

pub(crate) const SERVER: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
/// When a world begins, by the clock of its server.
pub(crate) const START: Time = Time::from_millis(1000);
/// The same, seconds since 1970.
pub(crate) const NOW: u64 = 1_900_000_000;
pub(crate) const PSK: [u8; 32] = [7; 32];

pub(crate) fn server_address() -> SocketAddr {
    SERVER.into()
}

pub(crate) fn client_address(index: u8, port: u16) -> SocketAddr {
    ([10, 0, 0, index], port).into()
}

/// The strongest suite in this build.
pub(crate) const SUITE: Suite = if cfg!(feature = "crypto") { Suite::TOKEN } else { Suite::Checked };

pub(crate) fn random(seed: u64, stream: u64) -> SimRng {
    SimRng::new(seed, stream)
}

pub(crate) fn server_config(session: &SessionConfig, suite: Suite) -> ServerConfig {
    let psk = suite.needs_psk().then(|| PSK.into());
    ServerConfig { suites: vec![suite], psk, ..ServerConfig::insecure(session.clone()) }
}

/// The same for a client.
pub(crate) fn client_config(suite: Suite) -> ClientConfig {
    let psk = suite.needs_psk().then(|| PSK.into());
    ClientConfig { suite, psk, ..ClientConfig::insecure(SessionConfig::default()) }
}

impl World {
    /// A server without clients.
    pub(crate) fn new(seed: u64, config: &ServerConfig) -> Self {
        let mut server = Server::new(config, random(seed, 1000)).unwrap();
        server.set_unix_time(START, Duration::from_secs(NOW));
        Self {
            now: START,
            server,
            clients: Vec::new(),
            sessions: Vec::new(),
            events: Vec::new(),
            ended: BTreeMap::new(),
            tap: Vec::new(),
            taps: false,
            strangers: Vec::new(),
            frozen: false,
            underlay: Underlay::default(),
            proxy: None,
            audit: BTreeMap::new(),
            seed,
            buf: Vec::new(),
        }
    }

    /// A server and one client that starts to connect, over a path that is the same both ways.
    pub(crate) fn pair(seed: u64, link: &LinkConfig, session: &SessionConfig, suite: Suite) -> Self {
        let mut world = Self::new(seed, &server_config(session, suite));
        world.add(link, link, session, client_config(suite));
        world
    }

    pub(crate) fn add(
        &mut self,
        up: &LinkConfig,
        down: &LinkConfig,
        session: &SessionConfig,
        config: ClientConfig,
    ) -> usize {
        let address = client_address(1 + u8::try_from(self.clients.len() % 250).unwrap(), 1000);
        self.add_at(address, up, down, session, config)
    }

    /// The same for a client at this address.
    pub(crate) fn add_at(
        &mut self,
        address: SocketAddr,
        up: &LinkConfig,
        down: &LinkConfig,
        session: &SessionConfig,
        config: ClientConfig,
    ) -> usize {
        let index = self.clients.len();
        let config = ClientConfig { session: session.clone(), ..config };
        let mut session = session::Client::new(&config, random(self.seed, 2000 + index as u64)).unwrap();
        session.connect(self.now, &[server_address()]).unwrap();
        let links = (up.clone(), down.clone());
        self.clients.push(Client { session, events: Vec::new(), routes: Vec::new(), links, frozen: false });
        self.rebind(index, address);
        self.drain();
        index
    }

    /// From now on the client sends from another address, and what is sent to the old one is lost.
    pub(crate) fn rebind(&mut self, client: usize, address: SocketAddr) {
        let stream = 10 * (client as u64 + 1) + 1000 * self.clients[client].routes.len() as u64;
        let Client { routes, links: (up, down), .. } = &mut self.clients[client];
        let link = |config: &LinkConfig, stream| Link::new(config.clone(), self.seed, stream).unwrap();
        routes.push(Route { address, up: link(up, stream), down: link(down, stream + 1) });
    }

    /// Changes the path of a client from now on.
    pub(crate) fn set_links(&mut self, client: usize, up: &LinkConfig, down: &LinkConfig) {
        let Client { routes, links, .. } = &mut self.clients[client];
        *links = (up.clone(), down.clone());
        let route = routes.last_mut().unwrap();
        route.up.set(up.clone()).unwrap();
        route.down.set(down.clone()).unwrap();
    }

    /// The address that a client sends from.
    pub(crate) fn address(&self, client: usize) -> SocketAddr {
        self.clients[client].routes.last().unwrap().address
    }

    /// Runs for `ms` ms.
    pub(crate) fn run(&mut self, ms: u64) {
        self.run_until(ms, |_| false);
    }

    /// Runs until `done`, for at most `ms` ms. Returns whether it was done.
    pub(crate) fn run_until(&mut self, ms: u64, done: impl FnMut(&mut Self) -> bool) -> bool {
        self.run_to(Time::from_millis(self.now.as_millis() + ms), done)
    }

    /// Runs until `done`, up to then. Returns whether it was done.
    pub(crate) fn run_to(&mut self, end: Time, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            self.step();
            if done(self) {
                self.drain();
                return true;
            }
            self.drain();
            match self.next().filter(|next| *next <= end) {
                Some(next) => self.now = self.now.max(next),
                None => {
                    self.now = end;
                    self.step();
                    self.drain();
                    return done(self);
                }
            }
        }
    }

    /// Passes a stranger's datagram to the server, and collects its answers.
    pub(crate) fn inject(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.serve(from, datagram);
        self.drain();
    }

    /// Passes a datagram that claims to come from the server to a client.
    pub(crate) fn inject_client(&mut self, client: usize, datagram: &[u8]) {
        self.clients[client].session.give(self.now, server_address(), datagram);
        self.drain();
    }

    /// The first session of the server.
    pub(crate) fn session(&mut self) -> &mut Connection {
        let id = self.sessions[0];
        let ended = self.ended.get_mut(&id);
        ended.or_else(|| self.server.connection_mut(id)).expect("the session was there")
    }

    /// The session of the first client.
    pub(crate) fn client(&mut self) -> &mut Connection {
        self.clients[0].session.connection_mut().expect("the client is up")
    }

    /// Why the first closed session of the server closed.
    pub(crate) fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|(.., event)| reason(event))
    }

    /// Whether a client and the server are connected and have heard each other.
    pub(crate) fn is_up(&self) -> bool {
        !self.sessions.is_empty()
            && self.clients[0].session.connection().is_some_and(|connection| connection.stats().received > 0)
    }

    /// Connects the first client.
    pub(crate) fn connect(&mut self) {
        let seed = self.seed;
        assert!(self.run_until(12_000, |world| world.is_up()), "seed {seed}: not connected");
    }

    /// Polls both ends until neither has anything to send, and checks what they do.
    pub(crate) fn drain(&mut self) {
        let (now, mut buf) = (self.now, std::mem::take(&mut self.buf));
        while !self.frozen
            && let Some(Transmit { address: to, ecn, .. }) = self.server.poll_transmit(now, &mut buf)
        {
            let Some(to) = self.proxy.as_ref().map_or(Some(to), |proxy| proxy.passes_to(to)) else {
                buf.clear();
                continue;
            };
            self.check_sent(to, &buf);
            if self.taps {
                self.tap.push((now, server_address(), to, buf.clone()));
            }
            let route = |client: &mut Client| client.routes.last().is_some_and(|route| route.address == to);
            match self.clients.iter_mut().find_map(|client| route(client).then_some(client)) {
                Some(client) => client.routes.last_mut().unwrap().down.send_with(now, ecn, &buf),
                None => self.strangers.push((to, buf.clone())),
            }
            buf.clear();
        }
        while let Some((id, event)) = self.server.poll_event() {
            if event == Event::Connected {
                self.sessions.push(id);
            }
            if reason(&event).is_some() {
                self.ended.extend(self.server.pop_ended().map(|session| (id, session)));
            }
            self.events.push((now, id, event));
        }
        for client in &mut self.clients {
            let route = client.routes.last_mut().unwrap();
            while !client.frozen
                && let Some(Transmit { address: to, ecn, .. }) = client.session.poll_transmit(now, &mut buf)
            {
                assert_eq!(to, server_address());
                if self.taps {
                    self.tap.push((now, route.address, to, buf.clone()));
                }
                route.up.send_with(now, ecn, &buf);
                buf.clear();
            }
            while let Some(event) = client.session.poll_event() {
                client.events.push((now, event));
            }
        }
        self.buf = buf;
    }

    /// Handles what has arrived by now, and the timers.
    fn step(&mut self) {
        let now = self.now;
        for index in 0..self.clients.len() {
            for route in 0..self.clients[index].routes.len() {
                loop {
                    let route = &mut self.clients[index].routes[route];
                    let address = route.address;
                    let Some(datagram) = route.up.arrive(now).map(<[u8]>::to_vec) else { break };
                    let ecn = route.up.arrived_ecn();
                    if !self.frozen {
                        self.serve_with(address, ecn, &datagram);
                        self.drain();
                    }
                }
            }
            loop {
                let client = &mut self.clients[index];
                let down = &mut client.routes.last_mut().unwrap().down;
                let Some(mut datagram) = down.arrive(now).map(<[u8]>::to_vec) else { break };
                let ecn = down.arrived_ecn();
                if !client.frozen {
                    let (address, underlay) = (server_address(), self.underlay);
                    let from = Arrival { ecn, underlay, ..address.into() };
                    client.session.handle_datagram(now, from, &mut datagram);
                    self.drain();
                }
            }
            if !self.clients[index].frozen {
                self.clients[index].session.handle_timeout(now);
            }
        }
        if !self.frozen {
            self.server.handle_timeout(now);
        }
    }

    /// When something happens next.
    fn next(&self) -> Option<Time> {
        let server = self.server.poll_timeout().filter(|_| !self.frozen);
        let clients = self.clients.iter().flat_map(|client| {
            let arrivals = client.routes.iter().filter_map(|route| route.up.next_arrival());
            let current = client.routes.last().and_then(|route| route.down.next_arrival());
            let timer = client.session.poll_timeout().filter(|_| !client.frozen);
            arrivals.chain(current).chain(timer)
        });
        let at = clients.chain(server).min()?;
        // A timer that is due but does nothing would stop the clock.
        Some(if at <= self.now { Time::from_micros(self.now.as_micros() + 1) } else { at })
    }

    /// Accounts for `len` bytes that were passed to the server by hand.
    pub(crate) fn audited(&mut self, from: SocketAddr, len: usize) {
        self.audit.entry(from).or_default().received += len as u64;
    }

    /// What happened to the datagrams that a client sent on its current route.
    pub(crate) fn up_stats(&self, client: usize) -> LinkStats {
        self.clients[client].routes.last().unwrap().up.stats()
    }

    /// What happened to the datagrams that the server sent on it.
    pub(crate) fn down_stats(&self, client: usize) -> LinkStats {
        self.clients[client].routes.last().unwrap().down.stats()
    }

    fn serve(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.serve_with(from, None, datagram);
    }

    fn serve_with(&mut self, from: SocketAddr, ecn: Option<Ecn>, datagram: &[u8]) {
        self.audit.entry(from).or_default().received += datagram.len() as u64;
        let (address, mut datagram) = match &mut self.proxy {
            None => (from, datagram.to_vec()),
            Some(proxy) => proxy.pass(from, datagram),
        };
        let from = Arrival { ecn, underlay: self.underlay, ..address.into() };
        self.server.handle_datagram(self.now, from, &mut datagram);
    }

    /// An unproven address never gets more bytes than it sent, and cookies are at most 0.07 of that.
    fn check_sent(&mut self, to: SocketAddr, datagram: &[u8]) {
        let proven: BTreeSet<_> =
            self.sessions.iter().filter_map(|id| Some(self.server.connection(*id)?.peer_addr())).collect();
        if proven.contains(&to) {
            return;
        }
        let account = self.audit.entry(to).or_default();
        account.sent += datagram.len() as u64;
        account.challenges += u64::from(datagram[0] == wire::kind::CHALLENGE);
        let Account { received, sent, challenges } = *account;
        assert!(
            512 * challenges <= received,
            "seed {}: {challenges} cookies for {received} bytes",
            self.seed
        );
        assert!(sent <= received, "seed {}: {sent} bytes to {to}, which sent {received}", self.seed);
    }
}

/// The kind of a datagram: DATA whatever its key phase, which may be masked.
pub(crate) fn kind_of(datagram: &[u8]) -> u8 {
    match datagram[0] {
        phase if phase == wire::kind::DATA + 1 => wire::kind::DATA,
        kind => kind,
    }
}

/// Seals datagrams of either end of the first session of a world that records datagrams, so that a test can
/// play that end: an unencrypted session has no secrets.
pub(crate) fn forger(world: &World) -> impl Fn(Toward, &[u8]) -> Vec<u8> + use<> {
    let forge = forger_of_numbers(world);
    move |toward, body| forge(toward, 999, body) // higher than the numbers of the honest end
}

/// The same for packets with any number.
pub(crate) fn forger_of_numbers(world: &World) -> impl Fn(Toward, u64, &[u8]) -> Vec<u8> + use<> {
    let salt = |kind: u8, at: usize| {
        let (.., bytes) = world.tap.iter().find(|(.., bytes)| bytes[0] == kind).expect("it was sent");
        bytes[at..at + 8].try_into().unwrap()
    };
    let (client, server) = (salt(wire::kind::CONNECT, 48), salt(wire::kind::ACCEPT, 14));
    let sid = |to_server: bool| {
        let is = |(_, _, to, bytes): &&Tapped| {
            bytes[0] == wire::kind::DATA && (*to == server_address()) == to_server
        };
        let (.., bytes) = world.tap.iter().find(is).expect("both have spoken");
        u32::from_le_bytes(bytes[1..5].try_into().unwrap())
    };
    let sids = [sid(false), sid(true)];
    move |toward, number, body| {
        let mut seal = Seal::new(Time::ZERO, Keys::checked(client, server, 0));
        let mut datagram = Vec::new();
        for _ in 0..=number {
            datagram.clear();
            Seal::begin(&mut datagram);
            datagram.extend_from_slice(body);
            seal.seal(Time::ZERO, sids[usize::from(toward == Toward::Server)], &mut datagram, 0).unwrap();
        }
        datagram
    }
}

/// The receiver of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Toward {
    Client,
    Server,
}

/// The first datagram of a client.
pub(crate) fn first_of(config: ClientConfig) -> Vec<u8> {
    let mut client = session::Client::new(&config, random(1, 3000)).unwrap();
    client.connect(START, &[server_address()]).unwrap();
    client.emit(START).expect("it is to connect").0
}

/// The CONNECT, with a valid cookie, of a client at `from` that then goes silent. Each number is another
/// client.
pub(crate) fn connect_of(world: &mut World, from: SocketAddr, number: u64, config: ClientConfig) -> Vec<u8> {
    let (now, mut buf) = (world.now, Vec::new());
    let config = ClientConfig { hello: 1199, ..config }; // so it asks for a cookie, even if it has a token
    let mut client: session::Client = session::Client::new(&config, random(number, 3000)).unwrap();
    client.connect(now, &[server_address()]).unwrap();
    client.emit_to(now, &mut buf).expect("a HELLO");
    world.strangers.clear();
    world.inject(from, &buf);
    let (to, challenge) = world.strangers.pop().expect("a CHALLENGE");
    assert_eq!(to, from);
    client.give(now, server_address(), &challenge);
    client.emit_to(now, &mut buf).expect("a CONNECT");
    assert_eq!(buf[0], wire::kind::CONNECT);
    buf
}
