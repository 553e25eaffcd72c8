//! A server of browsers and of native clients: two honest browsers, and hostile peers by each underlay that share their IP address and port.

use super::script::Script;
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use whitewater::machine::{Arrival, Machine as _, Underlay};
use whitewater::session::{Client, ClientState, Server, Suite};
use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

/// The operations of a script. The high half of the byte says which hostile client it concerns.
pub mod op {
    /// Lets this many ms pass: two bytes.
    pub const WAIT: u8 = 0;
    /// A hostile client begins anew: with encryption if a byte is odd.
    pub const JOIN: u8 = 1;
    /// The server gets its next datagram from where it is.
    pub const HONEST: u8 = 2;
    /// The same from elsewhere: where, a byte.
    pub const MOVED: u8 = 3;
    /// The same from each place, one after the other.
    pub const EVERYWHERE: u8 = 4;
    /// An earlier datagram again: which, in two bytes, and from where, a byte.
    pub const AGAIN: u8 = 5;
    /// The same with the session of an honest browser written into it: another byte says whose.
    pub const CLAIM: u8 = 6;
    /// The same with one byte changed: where, in two bytes, and by what.
    pub const FLIPPED: u8 = 7;
    /// Raw bytes from somewhere: where, a byte; their number in two bytes, and the bytes.
    pub const RAW: u8 = 8;
    /// It sends something: what, and how much.
    pub const SEND: u8 = 9;
    /// It closes.
    pub const CLOSE: u8 = 10;
    /// Its network has changed.
    pub const PATH: u8 = 11;
}

/// Where hostile peers are. All but the last have the IP address and port of both honest browsers.
const PLACES: usize = 7;
/// In the scope id of each browser.
const MARK: u32 = 1 << 31;
const PSK: [u8; 32] = [7; 32];

fn browser(number: u32) -> SocketAddr {
    SocketAddrV6::new(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped(), 1000, 0, number | MARK).into()
}

/// What is there arrives by which underlay, which never changes.
fn place(number: u8) -> Arrival {
    let native = Ipv4Addr::new(10, 0, 0, 1);
    let number = usize::from(number) % PLACES;
    let (address, is_private) = match number {
        0 => ((native, 1000).into(), false),
        1 => (SocketAddrV6::new(native.to_ipv6_mapped(), 1000, 0, 0).into(), false),
        2 => (SocketAddrV6::new(native.to_ipv6_mapped(), 1000, 0, 3).into(), false), // UDP by an interface
        3 => (browser(13), false), // a WebSocket without TLS
        4 => (browser(14), true),
        5 => (browser(15), true),
        _ => (([10, 0, 7, 7], 1000).into(), false),
    };
    let is_lossless = matches!(number, 3 | 5); // WebSockets
    Arrival { underlay: Underlay { is_private, is_lossless }, ..SocketAddr::into(address) }
}

/// Where the honest browsers are, both by TLS.
fn honest(number: usize) -> Arrival {
    let address = browser(u32::try_from(number).unwrap_or_default());
    Arrival { underlay: Underlay { is_private: true, is_lossless: number == 1 }, ..address.into() }
}

fn client(seed: u64, is_encrypted: bool) -> Client {
    let session = SessionConfig::default();
    let config =
        if is_encrypted { ClientConfig::secret(session, PSK) } else { ClientConfig::insecure(session) };
    let mut client = Client::new(&config, SimRng::new(seed, 3)).expect("a config");
    client.connect(Time::ZERO, &[SERVER.into()]).expect("it is new");
    client
}

/// An honest browser, which sends a numbered message ten times a second.
struct Honest {
    client: Client,
    id: Option<SessionId>,
    sent: u32,
    received: u32,
}

struct World {
    server: Server,
    /// The first is encrypted end to end, the second relies on TLS.
    honest: [Honest; 2],
    hostile: [Client; HOSTILE],
    outgoing: [VecDeque<Vec<u8>>; HOSTILE],
    incoming: VecDeque<Vec<u8>>,
    now: Time,
    /// The suite of each session that was asked for.
    suites: BTreeMap<SessionId, Suite>,
    made: u64,
}

impl World {
    fn new() -> Self {
        let config = ServerConfig {
            checked_in_tls: true,
            ask: true,
            max_sessions: 8,
            half_open: 4,
            reset_key: Some([3; 16]),
            ..ServerConfig::secret(SessionConfig::default(), PSK)
        };
        let honest = |seed, is_encrypted| Honest {
            client: client(seed, is_encrypted),
            id: None,
            sent: 0,
            received: 0,
        };
        Self {
            server: Server::new(&config, SimRng::new(1, 3)).expect("a config"),
            honest: [honest(2, true), honest(3, false)],
            hostile: std::array::from_fn(|at| client(4 + at as u64, false)),
            outgoing: Default::default(),
            incoming: VecDeque::new(),
            now: Time::ZERO,
            suites: BTreeMap::new(),
            made: 4 + HOSTILE as u64,
        }
    }

    /// Takes what all ends send and report. What goes between server and honest browsers arrives at once.
    fn drain(&mut self) {
        let mut buf = Vec::new();
        for _ in 0..DATAGRAMS {
            buf.clear();
            if let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
                self.deliver(transmit.address, &mut buf);
            } else if !self.honest_send(&mut buf) {
                break;
            }
            self.events();
        }
        assert!(self.server.poll_transmit(self.now, &mut buf).is_none(), "it does not end");
        for (client, outgoing) in self.hostile.iter_mut().zip(&mut self.outgoing) {
            for _ in 0..DATAGRAMS {
                buf.clear();
                if client.poll_transmit(self.now, &mut buf).is_none() {
                    break;
                }
                outgoing.push_back(buf.clone());
                outgoing.truncate(32); // the rest is lost
            }
            while client.poll_event().is_some() {}
        }
    }

    /// The next datagram of an honest browser arrives, if there is one.
    fn honest_send(&mut self, buf: &mut Vec<u8>) -> bool {
        for (number, one) in self.honest.iter_mut().enumerate() {
            if one.client.poll_transmit(self.now, buf).is_some() {
                self.server.handle_datagram(self.now, honest(number), buf);
                return true;
            }
        }
        false
    }

    /// Hostile peers share what they are sent.
    fn deliver(&mut self, to: SocketAddr, datagram: &mut [u8]) {
        for (number, one) in self.honest.iter_mut().enumerate() {
            if to == honest(number).address {
                return one.client.handle_datagram(self.now, SocketAddr::from(SERVER).into(), datagram);
            }
        }
        assert!((0..=u8::MAX).take(PLACES).any(|number| place(number).address == to), "{to} is nobody's");
        if self.incoming.len() < 64 {
            self.incoming.push_back(datagram.to_vec());
        }
    }

    fn events(&mut self) {
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Requested => {
                    let request = self.server.request(id).expect("it asks");
                    let (suite, from) = (request.suite, request.address);
                    assert!(suite != Suite::Checked || is_private(from), "{from} asks without encryption");
                    self.suites.insert(id, suite);
                    self.server.admit(self.now, id, b"").expect("it asks");
                }
                Event::Connected => {
                    let at = self.server.peer_addr(id).expect("it is up");
                    for (number, one) in self.honest.iter_mut().enumerate() {
                        if at == honest(number).address {
                            assert!(one.id.replace(id).is_none(), "one session for a browser");
                        }
                    }
                }
                Event::Closed { reason, .. } => {
                    let is_honest = self.honest.iter().any(|one| one.id == Some(id));
                    assert!(!is_honest, "an honest browser was thrown out: {reason:?}");
                    self.suites.remove(&id);
                }
                _ => {}
            }
        }
        self.check();
        for one in &mut self.honest {
            while let Some(event) = one.client.poll_event() {
                assert!(!matches!(event, Event::Closed { .. }), "an honest browser was ended: {event:?}");
            }
            let Some(connection) = one.id.and_then(|id| self.server.connection_mut(id)) else { continue };
            while let Some(message) = connection.recv(CHANNEL) {
                assert_eq!(&message[..], one.received.to_le_bytes(), "a message of an honest browser");
                one.received += 1;
            }
        }
        let ids: Vec<_> = self.suites.keys().copied().collect();
        for id in ids {
            let Some(connection) = self.server.connection_mut(id) else { continue };
            while connection.recv(CHANNEL).is_some() || connection.recv_datagram().is_some() {}
            while connection.pop_delivered().is_some() {}
        }
    }

    /// Without encryption a session is only where TLS is, and a browser's session is only its own.
    fn check(&self) {
        for (id, suite) in &self.suites {
            let Some(connection) = self.server.connection(*id) else { continue };
            let at = connection.peer_addr();
            assert!(*suite != Suite::Checked || is_private(at), "a session without encryption at {at}");
            let number = self.honest.iter().position(|one| one.id == Some(*id));
            if let Some(number) = number {
                assert_eq!(at, honest(number).address, "somebody has taken a browser's session");
            }
        }
    }

    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        for _ in 0..WAKES {
            for one in &mut self.honest {
                let is_due = self.now >= Time::from_millis(100 * u64::from(one.sent));
                if one.client.state() == ClientState::Up && is_due {
                    let connection = one.client.connection_mut().expect("it is up");
                    connection.send(CHANNEL, &one.sent.to_le_bytes()).expect("there is room");
                    one.sent += 1;
                }
            }
            self.drain();
            let honest = self.honest.iter().map(|one| one.client.poll_timeout());
            let timers = honest.chain(self.hostile.iter().map(|client| client.poll_timeout()));
            let timers = timers.chain([self.server.poll_timeout()]).flatten();
            let due = self.honest.iter().map(|one| Time::from_millis(100 * u64::from(one.sent)));
            let Some(at) = timers.chain(due).min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at) + Duration::from_micros(1);
            self.timers();
        }
        self.now = self.now.max(end);
        self.timers();
    }

    fn timers(&mut self) {
        self.server.handle_timeout(self.now);
        self.honest.iter_mut().for_each(|one| one.client.handle_timeout(self.now));
        self.hostile.iter_mut().for_each(|client| client.handle_timeout(self.now));
        self.drain();
    }

    /// A datagram arrives, and each hostile client gets what the server has sent to any of them.
    fn give(&mut self, from: u8, datagram: &[u8]) {
        self.server.handle_datagram(self.now, place(from), &mut datagram.to_vec());
        self.events();
        self.drain();
        for answer in std::mem::take(&mut self.incoming) {
            for client in &mut self.hostile {
                client.handle_datagram(self.now, SocketAddr::from(SERVER).into(), &mut answer.clone());
            }
        }
        self.drain();
    }

    fn step(&mut self, script: &mut Script<'_>, given: &mut Vec<Vec<u8>>) {
        let byte = script.u8();
        let who = usize::from(byte >> 4) % HOSTILE;
        let operation = byte & 0xf;
        // A client for each of four places; a script may take what they send elsewhere.
        let home = [0, 3, 4, 6][who];
        let (from, datagram) = match operation {
            op::WAIT => return self.wait(u64::from(script.u16()) % 4096),
            op::JOIN => {
                self.made += 1;
                self.hostile[who] = client(self.made, !script.u8().is_multiple_of(2));
                self.outgoing[who].clear();
                return self.drain();
            }
            op::SEND => {
                let (what, len) = (script.u8(), usize::from(script.u8()));
                if let Some(connection) = self.hostile[who].connection_mut() {
                    let _ = connection.send(CHANNEL, &vec![what; len * 16]);
                    let _ = connection.send_datagram(&vec![what; len * 4]);
                }
                return self.drain();
            }
            op::CLOSE => {
                self.hostile[who].close(self.now, 7);
                return self.drain();
            }
            op::PATH => {
                self.hostile[who].path_changed(self.now);
                return self.drain();
            }
            op::RAW => {
                let (from, len) = (script.u8(), script.u16() % 1300);
                (from, script.bytes(len.into()).to_vec())
            }
            op::AGAIN | op::CLAIM | op::FLIPPED => {
                let (which, from) = (usize::from(script.u16()) % given.len().max(1), script.u8());
                let mut datagram = given.get(which).cloned().unwrap_or_default();
                if operation == op::CLAIM {
                    let whose = usize::from(script.u8()) % self.honest.len();
                    let id = self.honest[whose].id.map(SessionId::to_bits).unwrap_or_default();
                    let places = datagram.iter_mut().skip(1);
                    places.zip(id.to_le_bytes()).for_each(|(byte, of_id)| *byte = of_id);
                } else if operation == op::FLIPPED {
                    let (place, mask) = (usize::from(script.u16()), script.u8());
                    let len = datagram.len().max(1);
                    datagram.iter_mut().skip(place % len).take(1).for_each(|byte| *byte ^= mask);
                }
                (from, datagram)
            }
            _ => {
                let datagram = self.outgoing[who].pop_front().unwrap_or_default();
                let from = if operation == op::MOVED { script.u8() } else { home };
                (from, datagram)
            }
        };
        if given.len() < 64 {
            given.push(datagram.clone());
        }
        if operation == op::EVERYWHERE {
            for from in (0..=u8::MAX).take(PLACES) {
                self.give(from, &datagram);
            }
        } else {
            self.give(from, &datagram);
        }
    }
}

fn is_private(at: SocketAddr) -> bool {
    let places = (0..=u8::MAX).take(PLACES).map(place).chain((0..2).map(honest));
    places.filter(|place| place.underlay.is_private).any(|place| place.address == at)
}

/// Whatever comes by UDP, by TLS or by TCP without it: without encryption a session is only where TLS is, and nobody takes a browser's session,
/// ends it, or says something in it.
///
/// # Panics
///
/// If that does not hold.
pub fn server_underlays(script: &[u8]) {
    let mut script = Script::new(script);
    let mut world = World::new();
    world.drain();
    world.wait(10);
    assert!(world.honest.iter().all(|one| one.id.is_some() && one.client.state() == ClientState::Up));
    let mut given = Vec::new();
    let mut steps = 0;
    while !script.is_done() && steps < STEPS {
        world.step(&mut script, &mut given);
        steps += 1;
    }
    world.wait(1000);
    for Honest { sent, received, .. } in world.honest {
        assert!(sent > 9 && received + 1 >= sent, "{received} of {sent}");
    }
}

/// Seed scripts: each client joins from its own place, from elsewhere, and from everywhere at once; some claim what is not theirs.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let wait = [op::WAIT, 20, 0];
    let each = |bytes: &[u8]| -> Vec<u8> {
        let of =
            |who: u8| bytes.iter().take(1).map(move |op| op | who << 4).chain(bytes.iter().skip(1).copied());
        (0..4).flat_map(of).collect()
    };
    let script = |parts: &[&[u8]]| parts.concat();
    let round = |operation: &[u8]| [each(operation), wait.to_vec()].concat().repeat(3);
    let encrypted = each(&[op::JOIN, 1]);
    let send = [each(&[op::SEND, 7, 20]), each(&[op::HONEST]), wait.to_vec()].concat();
    let mut seeds = vec![
        ("own".to_owned(), script(&[&round(&[op::HONEST]), &send])),
        ("own-encrypted".to_owned(), script(&[&encrypted, &round(&[op::HONEST]), &send])),
        ("everywhere".to_owned(), script(&[&round(&[op::EVERYWHERE]), &send])),
        ("everywhere-encrypted".to_owned(), script(&[&encrypted, &round(&[op::EVERYWHERE]), &send])),
    ];
    for place in [0, 3, 4] {
        // What it sends, and its answers to what it is asked there.
        let moved = [each(&[op::SEND, 7, 9]), [each(&[op::MOVED, place]), wait.to_vec()].concat().repeat(4)];
        let moved = moved.concat().repeat(3);
        seeds.push((format!("joined-then-{place}"), script(&[&round(&[op::HONEST]), &send, &moved])));
        let encrypted = script(&[&encrypted, &round(&[op::HONEST]), &send, &each(&[op::PATH]), &moved]);
        seeds.push((format!("encrypted-then-{place}"), encrypted));
        let claims = each(&[op::CLAIM, 9, 0, place, 0]);
        let more = each(&[op::CLAIM, 12, 0, place, 1]);
        seeds
            .push((format!("claim-{place}"), script(&[&round(&[op::HONEST]), &send, &send, &claims, &more])));
        let again = script(&[&each(&[op::AGAIN, 4, 0, place]), &each(&[op::FLIPPED, 5, 0, place, 15, 0, 4])]);
        seeds.push((format!("again-{place}"), script(&[&round(&[op::HONEST]), &again, &each(&[op::CLOSE])])));
    }
    seeds
}

const SERVER: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
/// Hostile clients.
const HOSTILE: usize = 4;
/// That of a default session.
const CHANNEL: Channel = Channel::ordered(0);
/// Datagrams that may be sent in a row.
const DATAGRAMS: usize = 4000;
/// Most timers that may fire in one wait.
const WAKES: usize = 4000;
const STEPS: usize = 200;
