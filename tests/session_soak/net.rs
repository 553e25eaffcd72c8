//! A server and a client in virtual time, each with its own clock, and the paths between them.

use crate::common::machine::Whole as _;
use crate::common::sessions::{random, server_address};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::inside::session::wire::kind;
use whitewater::machine::Machine as _;
use whitewater::session::{Client, Connection, Server};
use whitewater::{ClientConfig, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::{Link, LinkConfig};

pub(crate) struct Net {
    /// The time of the network.
    pub(crate) now: Time,
    start: Time,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) clocks: [Clock; 2],
    /// An end that is frozen neither receives nor sends.
    pub(crate) frozen: [bool; 2],
    /// Sessions that the server accepted, and the events of both ends.
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) server_events: Vec<(Time, SessionId, Event)>,
    /// The server's sessions that are over, to be read to the end.
    over: BTreeMap<SessionId, Connection>,
    pub(crate) client_events: Vec<(Time, Event)>,
    /// Old datagrams to replay.
    pub(crate) past: Vec<(bool, SocketAddr, Vec<u8>)>,
    /// Number of datagrams passed to the server, and to the client: DATA and others.
    given: (u64, [u64; 2]),
    routes: Vec<Route>,
    links: [LinkConfig; 2],
    account: BTreeMap<SocketAddr, (u64, u64)>,
    seed: u64,
    randoms: u64,
    digest: u64,
    buf: Vec<u8>,
}

struct Route {
    address: SocketAddr,
    up: Link,
    down: Link,
}

/// The time that an end believes. It may jump; if it goes back, the end treats it as standing still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// µs that it is ahead of the network.
    offset: i64,
    /// The latest time that the end was told.
    latest: u64,
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

impl Clock {
    fn starting_at(start: Time) -> Self {
        Self { offset: i64::try_from(start.as_micros()).unwrap(), latest: 0 }
    }

    fn tell(&mut self, now: Time) -> Time {
        let micros = now.as_micros().saturating_add_signed(self.offset);
        self.latest = self.latest.max(micros);
        Time::from_micros(micros)
    }

    /// The network's time at which an end wakes that asked for `at` by its own clock.
    fn real(&self, at: Time) -> Time {
        Time::from_micros(at.as_micros().saturating_add_signed(-self.offset))
    }

    pub(crate) fn jump(&mut self, by: Duration, ahead: bool) {
        let micros = i64::try_from(by.as_micros()).unwrap();
        self.offset += if ahead { micros } else { -micros };
    }

    /// How long time will stand still for the end.
    pub(crate) fn stands(&self, now: Time) -> Duration {
        Duration::from_micros(self.latest.saturating_sub(now.as_micros().saturating_add_signed(self.offset)))
    }
}

impl Net {
    /// `start` is the initial time on the clocks of both ends.
    pub(crate) fn new(seed: u64, start: Time, server: &ServerConfig, client: &ClientConfig) -> Self {
        Self {
            now: Time::ZERO,
            start,
            server: Server::new(server, random(seed, 1000)).unwrap(),
            client: Client::new(client, random(seed, 2000)).unwrap(),
            clocks: [Clock::starting_at(start); 2],
            frozen: [false; 2],
            sessions: Vec::new(),
            server_events: Vec::new(),
            over: BTreeMap::new(),
            client_events: Vec::new(),
            past: Vec::new(),
            given: (0, [0; 2]),
            routes: Vec::new(),
            links: [LinkConfig::default(), LinkConfig::default()],
            account: BTreeMap::new(),
            seed,
            randoms: 0,
            digest: 0,
            buf: Vec::new(),
        }
    }

    /// Replaces the server by a new process without any state.
    pub(crate) fn restart_server(&mut self, config: &ServerConfig) {
        self.check_server();
        self.randoms += 1;
        self.server = Server::new(config, random(self.seed, 1000 + self.randoms)).unwrap();
        (self.clocks[SERVER], self.given.0) = (Clock::starting_at(self.start), 0);
        self.sessions.clear();
        self.server_events.clear();
        self.over.clear();
    }

    /// Replaces the client by a new process, which connects.
    pub(crate) fn restart_client(&mut self, config: &ClientConfig) {
        self.check_client();
        self.randoms += 1;
        self.client = Client::new(config, random(self.seed, 2000 + self.randoms)).unwrap();
        (self.clocks[CLIENT], self.given.1) = (Clock::starting_at(self.start), [0; 2]);
        self.client_events.clear();
        let now = self.clocks[CLIENT].tell(self.now);
        self.client.connect(now, &[server_address()]).unwrap();
        self.drain();
    }

    /// Forgets what was told of sessions that are over, what was under way, and the last client.
    pub(crate) fn forget(&mut self, address: SocketAddr) {
        self.check_client();
        self.client =
            Client::new(&ClientConfig::insecure(SessionConfig::default()), random(self.seed, 2000)).unwrap();
        self.given.1 = [0; 2];
        self.server_events = Vec::new();
        self.over.clear();
        self.past.clear();
        self.routes.clear();
        self.rebind(address);
    }

    /// From now on the client sends from there, and what is sent to its old address is lost.
    pub(crate) fn rebind(&mut self, address: SocketAddr) {
        let stream = 10 + 1000 * self.routes.len() as u64;
        let link = |config: &LinkConfig, stream| Link::new(config.clone(), self.seed, stream).unwrap();
        let [up, down] = &self.links;
        let (up, down) = (link(up, stream), link(down, stream + 1));
        self.routes.push(Route { address, up, down });
    }

    pub(crate) fn set_links(&mut self, links: [LinkConfig; 2]) {
        if let Some(Route { up, down, .. }) = self.routes.last_mut() {
            up.set(links[0].clone()).unwrap();
            down.set(links[1].clone()).unwrap();
        }
        self.links = links;
    }

    pub(crate) const fn links(&self) -> &[LinkConfig; 2] {
        &self.links
    }

    pub(crate) fn time(&mut self, end: usize) -> Time {
        self.clocks[end].tell(self.now)
    }

    /// A digest of everything that was sent, and when.
    pub(crate) fn digest(&self) -> u64 {
        let links = self.routes.iter().flat_map(|route| [route.up.digest(), route.down.digest()]);
        links.fold(self.digest ^ self.now.as_micros(), |sum, digest| sum.rotate_left(7) ^ digest)
    }

    /// Runs for `ms` ms.
    pub(crate) fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        loop {
            self.step();
            match self.next().filter(|next| *next <= end) {
                // A timer that is due but does nothing would stop the clock.
                Some(next) => self.now = next.max(self.now + Duration::from_micros(1)),
                None => {
                    self.now = end;
                    return self.step();
                }
            }
        }
    }

    /// Handles what has arrived by now, and the timers.
    fn step(&mut self) {
        let now = self.now;
        let count = self.routes.len();
        for index in 0..count {
            while let Some(datagram) = self.routes[index].up.arrive(now) {
                let datagram = copy(std::mem::take(&mut self.buf), datagram);
                if !self.frozen[SERVER] {
                    self.give_server(self.routes[index].address, &datagram);
                }
                self.buf = datagram;
            }
            while let Some(datagram) = self.routes[index].down.arrive(now) {
                let datagram = copy(std::mem::take(&mut self.buf), datagram);
                if index + 1 == count && !self.frozen[CLIENT] {
                    self.give_client(&datagram);
                }
                self.buf = datagram;
            }
        }
        if !self.frozen[CLIENT] {
            self.client.handle_timeout(self.clocks[CLIENT].tell(now));
        }
        if !self.frozen[SERVER] {
            self.server.handle_timeout(self.clocks[SERVER].tell(now));
        }
        self.drain();
    }

    pub(crate) fn give_server(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.given.0 += 1;
        self.account.entry(from).or_default().0 += datagram.len() as u64;
        let now = self.clocks[SERVER].tell(self.now);
        self.server.give(now, from, datagram);
        self.drain();
    }

    pub(crate) fn give_client(&mut self, datagram: &[u8]) {
        let is_data = datagram.first().is_some_and(|kind| kind & 0xfe == kind::DATA);
        self.given.1[usize::from(is_data)] += 1;
        let now = self.clocks[CLIENT].tell(self.now);
        self.client.give(now, server_address(), datagram);
        self.drain();
    }

    /// When something happens next.
    fn next(&self) -> Option<Time> {
        let [client, server] = self.clocks;
        let timer = |timeout: Option<Time>, clock: Clock, frozen: bool| {
            timeout.filter(|_| !frozen).map(|at| clock.real(at))
        };
        let timers = [
            timer(self.client.poll_timeout(), client, self.frozen[CLIENT]),
            timer(self.server.poll_timeout(), server, self.frozen[SERVER]),
        ];
        let links = self.routes.iter().flat_map(|route| [route.up.next_arrival(), route.down.next_arrival()]);
        links.chain(timers).flatten().min()
    }

    /// Polls both ends until neither has anything to send.
    pub(crate) fn drain(&mut self) {
        let (now, mut buf) = (self.now, std::mem::take(&mut self.buf));
        let Some(route) = self.routes.len().checked_sub(1) else { return };
        let time = self.clocks[SERVER].tell(now);
        while !self.frozen[SERVER]
            && let Some(to) = self.server.emit_to(time, &mut buf)
        {
            self.check_sent(to, buf.len() as u64);
            let Route { address, down, .. } = &mut self.routes[route];
            if to == *address {
                down.send(now, &buf);
                remember(&mut self.past, false, to, &buf);
            }
        }
        while let Some((id, event)) = self.server.poll_event() {
            if event == Event::Connected {
                self.sessions.push(id);
            }
            self.digest = self.digest.rotate_left(5) ^ now.as_micros();
            self.server_events.push((now, id, event));
            self.over.extend(self.server.pop_ended().map(|connection| (id, connection)));
        }
        let time = self.clocks[CLIENT].tell(now);
        while !self.frozen[CLIENT]
            && let Some(to) = self.client.emit_to(time, &mut buf)
        {
            assert_eq!(to, server_address());
            let Route { address, up, .. } = &mut self.routes[route];
            up.send(now, &buf);
            remember(&mut self.past, true, *address, &buf);
        }
        while let Some(event) = self.client.poll_event() {
            self.digest = self.digest.rotate_left(9) ^ now.as_micros();
            self.client_events.push((now, event));
        }
        self.buf = buf;
    }

    /// An unproven address never gets more bytes than it sent.
    fn check_sent(&mut self, to: SocketAddr, len: u64) {
        let peer = |id: &SessionId| self.connection(*id).map(Connection::peer_addr);
        if self.sessions.iter().rev().filter_map(peer).any(|peer| peer == to) {
            return;
        }
        let (received, sent) = self.account.entry(to).or_default();
        *sent += len;
        assert!(*sent <= *received, "{sent} bytes to {to}, which sent {received}");
    }

    /// A session of the server, which may be over.
    pub(crate) fn connection(&self, id: SessionId) -> Option<&Connection> {
        self.server.connection(id).or_else(|| self.over.get(&id))
    }

    pub(crate) fn connection_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        self.server.connection_mut(id).or_else(|| self.over.get_mut(&id))
    }

    /// Checks that each datagram passed to the server is in exactly one counter, and so is each session.
    pub(crate) fn check_server(&self) {
        let stats = self.server.stats();
        assert_eq!(stats.datagrams, self.given.0);
        let half_open = stats.accepted - stats.confirmed - stats.unconfirmed;
        assert!(half_open <= self.server.len() as u64, "{stats:?}");
        assert_eq!(stats.confirmed, self.sessions.len() as u64);
    }

    /// Checks that each DATA passed to the client is in exactly one counter.
    pub(crate) fn check_client(&self) {
        let [others, data] = self.given.1;
        let (mut counted, mut taken) = (self.client.rejected().total(), 0);
        if let Some(connection) = self.client.connection() {
            let stats = connection.stats();
            taken = stats.received;
            counted += stats.received + stats.rejected.total();
        }
        assert!(
            taken <= data && counted >= data && counted <= data + others,
            "{counted} of {data} + {others}"
        );
    }
}

/// Keeps a few datagrams: the first, and some of the later ones.
fn remember(past: &mut Vec<(bool, SocketAddr, Vec<u8>)>, up: bool, address: SocketAddr, datagram: &[u8]) {
    if past.len() < PAST {
        past.push((up, address, datagram.to_vec()));
    } else if datagram.len().is_multiple_of(7) {
        past[8 + datagram.len() % (PAST - 8)] = (up, address, datagram.to_vec());
    }
}

fn copy(mut buf: Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    buf.clear();
    buf.extend_from_slice(bytes);
    buf
}

/// Most datagrams to keep for replay.
const PAST: usize = 64;
