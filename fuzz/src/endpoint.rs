//! A server and a client of sessions, under datagrams from strangers and altered ones from their own peer.

use super::script::Script;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use whitewater::inside::session::wire::{ProxyHeader, kind};
use whitewater::machine::Machine as _;
use whitewater::session::{Client, ClientState, Server, Suite};
use whitewater::{Channel, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

/// What the first byte of a script says.
pub mod flag {
    /// The server asks its application.
    pub const ASKS: u8 = 1;
    /// The suite is hybrid. Without the feature `crypto` there is none.
    pub const HYBRID: u8 = 2;
    /// [`PROXY`](super::PROXY) is a proxy that tells where its clients are: a byte before each of its datagrams says which address, or from 0x80 on, that it
    /// has no header.
    pub const PROXIED: u8 = 4;
}

/// The operations of a script, after its first byte: an operation in the low half of a byte, an address in the high half.
pub mod op {
    /// Lets this many ms pass: two bytes.
    pub const WAIT: u8 = 0;
    /// Passes raw bytes to the end under test: their number in two bytes, and the bytes.
    pub const RAW: u8 = 1;
    /// Passes it the next datagram of its honest peer, or one that it sent itself before.
    pub const HONEST: u8 = 2;
    /// The same with one byte changed: where, in two bytes, and by what.
    pub const FLIPPED: u8 = 3;
    /// The same truncated: where, in two bytes.
    pub const CUT: u8 = 4;
    /// Sends something at either end: on which channel, and how much.
    pub const SEND: u8 = 5;
    /// Passes it an earlier datagram again: which one, in two bytes.
    pub const AGAIN: u8 = 6;
    /// Closes: which end, and the length of the text.
    pub const CLOSE: u8 = 7;
    /// The application of the server answers yes or no to the oldest or the newest request.
    pub const DECIDE: u8 = 8;
    /// The server redirects its newest client: the length of the token, in units of 8 bytes.
    pub const REDIRECT: u8 = 9;
}

const SERVER: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
/// Every fourth address.
const PROXY: [u8; 4] = [10, 0, 0, 1];
/// Most sessions of the server under test, in total and per address.
const SESSIONS: u16 = 4;

fn random(seed: u64) -> SimRng {
    SimRng::new(seed, 1)
}

fn address(number: u8) -> SocketAddr {
    ([10, 0, 0, number & 3], 1000 + u16::from(number)).into()
}

/// Both ends. One gets what the script says, the other what is sent to it.
struct World {
    server: Server,
    client: Client,
    now: Time,
    to_server: Vec<Vec<u8>>,
    to_client: Vec<Vec<u8>>,
    /// Bytes received from each address, and sent to it, by the proxy or not.
    account: BTreeMap<SocketAddr, (usize, usize)>,
    /// By each port of the proxy, whose datagrams it has passed on.
    told: BTreeMap<SocketAddr, BTreeSet<SocketAddr>>,
    is_proxied: bool,
    connected: usize,
    confirmed: BTreeSet<SessionId>,
    closed: usize,
    asks: bool,
    /// Clients that are waiting for an answer, in order, and those that were accepted.
    asking: Vec<SessionId>,
    accepted: BTreeSet<SessionId>,
}

impl World {
    fn new(flags: u8) -> Self {
        let session = SessionConfig::default();
        let asks = flags & flag::ASKS != 0;
        let is_proxied = flags & flag::PROXIED != 0;
        let is_hybrid = cfg!(feature = "crypto") && flags & flag::HYBRID != 0;
        let suite = if is_hybrid { Suite::HYBRID_TOKEN } else { Suite::Checked };
        let psk = is_hybrid.then(|| [7; 32].into());
        let server = ServerConfig {
            suites: vec![suite],
            psk: psk.clone(),
            max_sessions: SESSIONS,
            half_open: 3,
            ask: asks,
            proxies: if is_proxied { vec![PROXY.into()] } else { Vec::new() },
            ..ServerConfig::insecure(session.clone())
        };
        let client = ClientConfig { suite, psk, ..ClientConfig::insecure(session) };
        let mut client = Client::new(&client, random(1)).expect("a config");
        client.connect(Time::ZERO, &[SERVER.into()]).expect("it is new");
        Self {
            server: Server::new(&server, random(2)).expect("a config"),
            client,
            now: Time::ZERO,
            to_server: Vec::new(),
            to_client: Vec::new(),
            account: BTreeMap::new(),
            told: BTreeMap::new(),
            is_proxied,
            connected: 0,
            confirmed: BTreeSet::new(),
            closed: 0,
            asks,
            asking: Vec::new(),
            accepted: BTreeSet::new(),
        }
    }

    /// Takes the datagrams and events of both ends.
    fn drain(&mut self) {
        let mut buf = Vec::new();
        for _ in 0..DATAGRAMS {
            buf.clear();
            let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) else { break };
            let to = transmit.address;
            let is_at =
                |client| to == client || self.told.get(&to).is_some_and(|told| told.contains(&client));
            let sessions = self.confirmed.iter().filter_map(|id| self.server.connection(*id));
            let is_known = sessions.map(|session| session.peer_addr()).any(is_at);
            let is_for_client = is_at(address(0));
            // Only a session that is up looks for longer ones than every path carries. It also copies them for an
            // address where its client may be.
            let is_up = self.confirmed.iter().any(|id| self.server.connection(*id).is_some());
            assert!(buf.len() <= if is_up { 1472 } else { 1200 });
            let told = self.told.get(&to).filter(|told| !told.contains(&to));
            let is_shared = told.is_some_and(|told| told.len() > 1); // it may be for any of them
            let whose = told.and_then(|told| told.first()).copied().unwrap_or(to);
            let (received, sent) = self.account.entry(whose).or_default();
            if !is_known && !is_shared {
                *sent += buf.len();
                assert!(*sent <= *received, "{sent} bytes to {to}, which sent {received}");
            }
            if is_for_client {
                self.to_client.push(buf.clone());
            }
        }
        assert!(self.server.poll_transmit(self.now, &mut buf).is_none(), "it does not end");
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Requested => {
                    assert!(self.asks && !self.asking.contains(&id) && self.server.request(id).is_some());
                    self.asking.push(id);
                }
                Event::Connected => {
                    assert!(self.confirmed.insert(id), "it connects once");
                    assert_eq!(self.accepted.remove(&id), self.asks, "and not before it may");
                }
                Event::Closed { reason, .. } => {
                    let is_known = self.confirmed.contains(&id);
                    let was_asking = self.asking.iter().position(|asking| *asking == id);
                    let was_asking = was_asking.map(|index| self.asking.remove(index));
                    let never_came = was_asking.is_some() || self.accepted.remove(&id);
                    assert!(is_known != never_came);
                    assert!(is_known || reason == CloseReason::ConnectTimeout);
                }
                event => assert!(event != Event::Redirected, "a server stays where it is"),
            }
        }
        for _ in 0..DATAGRAMS {
            buf.clear();
            let Some(transmit) = self.client.poll_transmit(self.now, &mut buf) else { break };
            assert!(transmit.address == SERVER.into() && buf.len() <= 1472);
            self.to_server.push(buf.clone());
        }
        assert!(self.client.poll_transmit(self.now, &mut buf).is_none(), "it does not end");
        while let Some(event) = self.client.poll_event() {
            assert_eq!(self.closed, 0, "nothing follows the end");
            assert!(event != Event::Requested);
            if event == Event::Redirected {
                let token = self.client.take_redirect().expect("it was told of one");
                assert!((1..1200).contains(&token.len()) && self.client.take_redirect().is_none());
            }
            self.connected += usize::from(event == Event::Connected);
            self.closed += usize::from(matches!(event, Event::Closed { .. }));
        }
        assert!(self.connected <= 1 && self.server.len() <= SESSIONS.into());
    }

    /// What the proxy sends for a client, or by itself.
    fn passed_on(client: Option<SocketAddr>, datagram: &[u8]) -> Vec<u8> {
        let Some(SocketAddr::V4(client)) = client else { return datagram.to_vec() };
        let start = [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[0x21, 0x12, 0, 12], &client.ip().octets(), &PROXY];
        [&start.concat()[..], &client.port().to_be_bytes(), &[0, 1], datagram].concat()
    }

    fn give_server(&mut self, from: SocketAddr, datagram: &[u8]) {
        let is_proxy = self.is_proxied && from.ip() == IpAddr::from(PROXY);
        let header = ProxyHeader::decode(datagram).filter(|_| is_proxy);
        let (_, payload) = datagram.split_at(header.map_or(0, |header| header.len));
        if let Some(client) = header.and_then(|header| header.client) {
            self.told.entry(from).or_default().insert(client);
        }
        let whose = header.and_then(|header| header.client).unwrap_or(from);
        self.account.entry(whose).or_default().0 += payload.len();
        let (before, refused) = (self.server.len(), self.server.stats().rejected.proxy);
        self.server.handle_datagram(self.now, from.into(), &mut datagram.to_vec());
        let is_refused = self.server.stats().rejected.proxy > refused;
        assert_eq!(is_refused, is_proxy && header.is_none(), "a proxy says for whom it sends");
        let is_connect = payload.first() == Some(&kind::CONNECT);
        assert!(is_connect || self.server.len() <= before, "a session without a CONNECT");
        self.drain();
    }

    fn give_client(&mut self, from: SocketAddr, datagram: &[u8]) {
        let before = self.client.state();
        self.client.handle_datagram(self.now, from.into(), &mut datagram.to_vec());
        let after = self.client.state();
        let is_licensed = match (before, after) {
            (ClientState::Hello, ClientState::Connect) => datagram.first() == Some(&kind::CHALLENGE),
            (ClientState::Connect, ClientState::Up | ClientState::Closed) => {
                // A hybrid suite needs both, in any order.
                matches!(datagram.first(), Some(&(kind::ACCEPT | kind::KEM_KEY)))
            }
            (ClientState::Up, ClientState::Closing | ClientState::Closed)
            | (ClientState::Closing, ClientState::Closed) => {
                datagram.first().is_some_and(|kind| (kind::DATA..=kind::RESET).contains(kind))
            }
            (before, after) => before == after,
        };
        assert!(is_licensed, "{before:?} to {after:?} by {:?}", datagram.first());
        self.drain();
    }

    /// Answers a request. Requests that are gone were reported.
    fn decide(&mut self, answer: u8) {
        let index = if answer & 2 == 0 { 0 } else { self.asking.len().saturating_sub(1) };
        if index >= self.asking.len() {
            return;
        }
        let (id, user) = (self.asking.remove(index), &[7; 8][..usize::from(answer / 2)]);
        if answer & 1 == 0 {
            self.server.admit(self.now, id, user).expect("it asks");
            self.accepted.insert(id);
        } else {
            self.server.reject(self.now, id, 5, user).expect("it asks");
        }
        self.server.admit(self.now, id, user).expect_err("it was answered");
        self.drain();
    }

    fn redirect(&mut self, len: usize) {
        if let Some(id) = self.confirmed.last() {
            let sent = self.server.redirect(self.now, *id, &vec![7; len]);
            assert!(sent.is_err() || (1..1200).contains(&len));
        }
        self.drain();
    }

    /// Closes the server's newest session, or the client's.
    fn close(&mut self, at_server: bool, len: usize) {
        let (now, text) = (self.now, "x".repeat(len));
        let said = match self.confirmed.last().filter(|_| at_server) {
            Some(id) => self.server.close_with(now, *id, 7, &text),
            None if at_server => return,
            None => self.client.close_with(now, 7, &text),
        };
        assert_eq!(said.is_ok(), len <= 128);
        self.drain();
    }

    fn wait(&mut self, ms: u64) {
        let end = self.now + std::time::Duration::from_millis(ms);
        for _ in 0..WAKES {
            let timers = [self.server.poll_timeout(), self.client.poll_timeout()];
            let Some(at) = timers.into_iter().flatten().min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at) + std::time::Duration::from_micros(1);
            self.server.handle_timeout(self.now);
            self.client.handle_timeout(self.now);
            self.drain();
        }
        self.now = self.now.max(end);
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
        self.drain();
    }

    fn send(&mut self, what: u8, len: u8) {
        let message = vec![what; usize::from(len) * 8];
        let ends = [
            self.client.connection_mut(),
            self.confirmed.last().and_then(|id| self.server.connection_mut(*id)),
        ];
        for end in ends.into_iter().flatten() {
            if what.is_multiple_of(2) {
                let _ = end.send(CHANNEL, &message);
            } else {
                let _ = end.send_datagram(&message);
            }
            while end.recv(CHANNEL).is_some() || end.recv_datagram().is_some() {}
            while end.pop_delivered().is_some() {}
        }
        self.drain();
    }
}

/// A server whose only honest client is at address 0: nothing is stored without a valid cookie, no unproven
/// address gets more than it sends, and every limit holds.
///
/// # Panics
///
/// If that does not hold.
pub fn server_endpoint(script: &[u8]) {
    run(script, true);
}

/// A client and its server: the client's state changes only by the packets that may change it, and by time.
///
/// # Panics
///
/// If that does not hold.
pub fn client_endpoint(script: &[u8]) {
    run(script, false);
}

fn run(script: &[u8], to_server: bool) {
    let mut script = Script::new(script);
    let mut world = World::new(script.u8());
    let mut given: Vec<Vec<u8>> = Vec::new();
    world.drain();
    while !script.is_done() {
        let byte = script.u8();
        let from = byte >> 4;
        let mut datagram = match byte & 0xf {
            op::WAIT => {
                world.wait(u64::from(script.u16()));
                continue;
            }
            op::SEND => {
                world.send(script.u8(), script.u8());
                continue;
            }
            op::CLOSE => {
                world.close(!from.is_multiple_of(2), script.u8().into());
                continue;
            }
            op::DECIDE => {
                world.decide(from);
                continue;
            }
            op::REDIRECT => {
                world.redirect(8 * usize::from(script.u8()));
                continue;
            }
            op::RAW => {
                let len = script.u16() % 1300;
                script.bytes(len.into()).to_vec()
            }
            op::AGAIN => {
                let which = usize::from(script.u16());
                given.get(which % given.len().max(1)).cloned().unwrap_or_default()
            }
            operation => {
                let queue = if to_server { &mut world.to_server } else { &mut world.to_client };
                let mut datagram = if queue.is_empty() { Vec::new() } else { queue.remove(0) };
                let place = if matches!(operation, op::FLIPPED | op::CUT) { script.u16().into() } else { 0 };
                if operation == op::CUT {
                    datagram.truncate(place % (datagram.len() + 1));
                } else if operation == op::FLIPPED {
                    let (len, mask) = (datagram.len().max(1), script.u8());
                    if let Some(byte) = datagram.get_mut(place % len) {
                        *byte ^= mask;
                    }
                }
                datagram
            }
        };
        if given.len() < 64 {
            given.push(datagram.clone());
        }
        if world.is_proxied && to_server && address(from).ip() == IpAddr::from(PROXY) {
            let client = script.u8();
            datagram = World::passed_on((client < 0x80).then(|| address(client & 0xf)), &datagram);
        }
        if to_server {
            world.give_server(address(from), &datagram);
            for answer in std::mem::take(&mut world.to_client) {
                world.give_client(SERVER.into(), &answer);
            }
        } else {
            let source = if from == 0 { SERVER.into() } else { address(from) };
            world.give_client(source, &datagram);
            for answer in std::mem::take(&mut world.to_server) {
                world.give_server(address(0), &answer);
            }
        }
    }
    world.wait(60_000);
    assert!(world.server.is_empty() || world.client.state() == ClientState::Up, "{:?}", world.client.state());
}

/// Seed scripts: a session that comes up and ends, and what may go wrong at each step.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let wait = |ms: u8| [op::WAIT, ms, 0];
    let honest = [op::HONEST];
    let up = [&honest[..], &wait(10), &honest, &wait(10), &honest, &wait(10)].concat();
    let traffic = [op::SEND, 0, 50, op::HONEST, op::SEND, 1, 9, op::HONEST, op::HONEST, op::WAIT, 50, 0];
    let traffic = [&traffic[..], &[op::REDIRECT, 70, op::HONEST, op::HONEST, op::WAIT, 50, 0]].concat();
    let closed = |end: u8| [&[op::CLOSE | end, 20, op::HONEST, op::HONEST], &wait(200)[..]].concat();
    let mut seeds = vec![
        ("up".to_owned(), [&[0], &up[..], &traffic, &closed(0)].concat()),
        ("closed".to_owned(), [&[0], &up[..], &traffic, &closed(0x10)].concat()),
        (
            "again".to_owned(),
            [&[0], &up[..], &[op::AGAIN, 0, 0, op::AGAIN, 1, 0, op::AGAIN | 0x10, 1, 0], &traffic].concat(),
        ),
        ("raw".to_owned(), [&[0], &up[..], &[op::RAW, 21, 0, kind::RESET], &[0; 20], &traffic].concat()),
    ];
    // A server that asks its application, with a repeated request and a late answer: yes, no, none.
    let asks =
        [&[flag::ASKS][..], &honest, &wait(10), &honest, &wait(100), &[op::AGAIN, 1, 0], &wait(200)].concat();
    for (answer, name) in [(0xc0, "yes"), (0xd0, "no"), (0x20, "newest")] {
        let decide = [op::DECIDE | answer, op::HONEST, op::AGAIN, 1, 0];
        let script = [&asks[..], &decide, &wait(100), &up, &traffic, &closed(0)].concat();
        seeds.push((format!("asks-{name}"), script));
    }
    let never = [op::WAIT, 0xff, 0x7f];
    seeds.push(("asks-never".to_owned(), [&asks[..], &never, &[op::AGAIN, 1, 0], &up].concat()));
    for (place, name) in ["hello", "connect", "data"].iter().enumerate() {
        let before = [&honest[..], &wait(10)].concat().repeat(place);
        seeds.push((
            format!("flipped-{name}"),
            [&[0], &before[..], &[op::FLIPPED, 15, 0, 4], &wait(200), &up].concat(),
        ));
        seeds.push((format!("cut-{name}"), [&[0], &before[..], &[op::CUT, 15, 0], &wait(200), &up].concat()));
    }
    let hybrid: Vec<_> = seeds
        .iter()
        .map(|(name, script)| {
            let mut script = script.clone();
            script[0] |= flag::HYBRID;
            (format!("hybrid-{name}"), script)
        })
        .collect();
    seeds.extend(hybrid);
    // The client is behind the proxy, which is started again; somebody else forges what comes by it, or sends by it as themselves.
    let by = |port: u8, client: u8| [op::HONEST | port, client, op::WAIT, 10, 0];
    let again = |port: u8, client: u8| [op::AGAIN | port, 3, 0, client];
    let up = by(0x10, 0).repeat(3);
    let restarted = [by(0x50, 0).repeat(2), traffic.clone(), by(0x50, 0).repeat(2)].concat();
    for (name, between) in [
        ("restarted", restarted.clone()),
        ("forged", [&again(0x90, 0)[..], &restarted].concat()),
        ("another", [&again(0x10, 7)[..], &by(0x10, 7), &again(0x10, 0xff), &restarted].concat()),
        ("direct", [&honest[..], &wait(10), &restarted].concat()),
    ] {
        for more in [0, flag::ASKS] {
            let start = [flag::PROXIED | more];
            let script = [&start, &up[..], &[op::DECIDE], &up, &traffic, &between, &closed(0)].concat();
            seeds.push((format!("proxied-{more}-{name}"), script));
        }
    }
    seeds
}

/// That of a default session.
const CHANNEL: Channel = Channel::ordered(0);
/// Datagrams that one end may send in a row.
const DATAGRAMS: usize = 2000;
/// Most timers that may fire in one wait.
const WAKES: usize = 4000;
