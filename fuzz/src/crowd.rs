//! A server with an honest client and several hostile ones, which share its address, and some of them a port as well.

use super::script::Script;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::machine::Machine as _;
use whitewater::session::{Client, ClientState, Server};
use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

/// The operations of a script. The high half of the byte says which hostile client it concerns.
pub mod op {
    /// Lets this many ms pass: two bytes.
    pub const WAIT: u8 = 0;
    /// A hostile client begins anew, whatever became of it.
    pub const JOIN: u8 = 1;
    /// The server gets its next datagram.
    pub const HONEST: u8 = 2;
    /// The same with one byte changed: where, in two bytes, and by what.
    pub const FLIPPED: u8 = 3;
    /// The same truncated: where, in two bytes.
    pub const CUT: u8 = 4;
    /// The same from the address of another hostile client: which.
    pub const MOVED: u8 = 5;
    /// The start of its next datagram and the end of another client's: which, and where, in two bytes.
    pub const SPLICED: u8 = 6;
    /// An earlier datagram again: which, in two bytes.
    pub const AGAIN: u8 = 7;
    /// Raw bytes: their number in two bytes, and the bytes.
    pub const RAW: u8 = 8;
    /// It sends something: what, and how much.
    pub const SEND: u8 = 9;
    /// It loses what the server has sent it.
    pub const LOSE: u8 = 10;
    /// It closes.
    pub const CLOSE: u8 = 11;
    /// The server ends its newest hostile session.
    pub const KICK: u8 = 12;
    /// An earlier datagram with the session of the honest client written into it: which, in two bytes.
    pub const CLAIM: u8 = 13;
}

const SERVER: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
const HONEST: ([u8; 4], u16) = ([10, 0, 0, 1], 1000);
/// The first three share the honest client's address, the first two a port as well.
const HOSTILE: [([u8; 4], u16); 4] =
    [([10, 0, 0, 1], 2000), ([10, 0, 0, 1], 2000), ([10, 0, 0, 1], 2001), ([10, 0, 7, 7], 2000)];
const SESSIONS: u16 = 5;

struct World {
    server: Server,
    honest: Client,
    crowd: Vec<Client>,
    /// What the hostile clients want to send.
    outgoing: [VecDeque<Vec<u8>>; HOSTILE.len()],
    /// What the server sent to them.
    incoming: [VecDeque<Vec<u8>>; HOSTILE.len()],
    now: Time,
    /// Bytes received from each address, and sent to it.
    account: BTreeMap<SocketAddr, (usize, usize)>,
    /// The sessions that are up, in order. The first is the honest client's.
    up: Vec<SessionId>,
    sent: u32,
    received: u32,
    /// Clients made so far.
    made: u64,
}

fn client(seed: u64) -> Client {
    let config = ClientConfig::insecure(SessionConfig::default());
    let mut client = Client::new(&config, SimRng::new(seed, 2)).expect("a config");
    client.connect(Time::ZERO, &[SERVER.into()]).expect("it is new");
    client
}

impl World {
    fn new() -> Self {
        let config = ServerConfig {
            max_sessions: SESSIONS,
            half_open: 3,
            reset_key: Some([3; 16]),
            ..ServerConfig::insecure(SessionConfig::default())
        };
        let count = HOSTILE.len() as u64;
        Self {
            server: Server::new(&config, SimRng::new(1, 2)).expect("a config"),
            honest: client(2),
            crowd: (0..count).map(|at| client(3 + at)).collect(),
            outgoing: Default::default(),
            incoming: Default::default(),
            now: Time::ZERO,
            account: BTreeMap::new(),
            up: Vec::new(),
            sent: 0,
            received: 0,
            made: 3 + count,
        }
    }

    /// Takes what all ends send and report. What goes between server and honest client arrives at once.
    fn drain(&mut self) {
        let mut buf = Vec::new();
        for _ in 0..DATAGRAMS {
            buf.clear();
            if let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
                self.deliver(transmit.address, &buf);
            } else if self.honest.poll_transmit(self.now, &mut buf).is_some() {
                let from = SocketAddr::from(HONEST);
                self.account.entry(from).or_default().0 += buf.len();
                self.server.handle_datagram(self.now, from.into(), &mut buf);
            } else {
                break;
            }
            self.events();
        }
        assert!(self.server.poll_transmit(self.now, &mut buf).is_none(), "it does not end");
        for (client, outgoing) in self.crowd.iter_mut().zip(&mut self.outgoing) {
            for _ in 0..DATAGRAMS {
                buf.clear();
                if client.poll_transmit(self.now, &mut buf).is_none() {
                    break;
                }
                outgoing.push_back(buf.clone());
                outgoing.truncate(64); // the rest is lost
            }
            while client.poll_event().is_some() {}
        }
    }

    fn deliver(&mut self, to: SocketAddr, datagram: &[u8]) {
        let is_up = |id: &SessionId| self.server.connection(*id).is_some_and(|one| one.peer_addr() == to);
        let (received, sent) = self.account.entry(to).or_default();
        if !self.up.iter().any(is_up) {
            *sent += datagram.len();
            assert!(*sent <= *received, "{sent} bytes to {to}, which sent {received}");
        }
        if to == HONEST.into() {
            self.honest.handle_datagram(self.now, SocketAddr::from(SERVER).into(), &mut datagram.to_vec());
        }
        for (address, incoming) in HOSTILE.iter().zip(&mut self.incoming) {
            if to == (*address).into() && incoming.len() < 64 {
                incoming.push_back(datagram.to_vec());
            }
        }
    }

    fn events(&mut self) {
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Connected => self.up.push(id),
                Event::Closed { reason, .. } => {
                    assert!(self.up.first() != Some(&id), "the honest client was thrown out: {reason:?}");
                    self.up.retain(|up| *up != id);
                }
                _ => {}
            }
        }
        for (at, id) in self.up.clone().into_iter().enumerate() {
            let Some(connection) = self.server.connection_mut(id) else { continue };
            while let Some(message) = connection.recv(CHANNEL) {
                if at == 0 {
                    assert_eq!(&message[..], self.received.to_le_bytes(), "a message of the honest client");
                    self.received += 1;
                }
            }
            while connection.recv_datagram().is_some() || connection.pop_delivered().is_some() {}
        }
        while let Some(event) = self.honest.poll_event() {
            assert!(!matches!(event, Event::Closed { .. }), "the honest client was ended: {event:?}");
        }
        assert!(self.server.len() <= SESSIONS.into());
    }

    /// The honest client sends a message ten times a second.
    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        for _ in 0..WAKES {
            if self.honest.state() == ClientState::Up
                && self.now >= Time::from_millis(100 * u64::from(self.sent))
            {
                let connection = self.honest.connection_mut().expect("it is up");
                connection.send(CHANNEL, &self.sent.to_le_bytes()).expect("there is room");
                self.sent += 1;
                self.drain();
            }
            let timers = self.crowd.iter().map(|client| client.poll_timeout());
            let timers = timers.chain([self.server.poll_timeout(), self.honest.poll_timeout()]).flatten();
            let next = timers.chain([Time::from_millis(100 * u64::from(self.sent))]).min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at) + Duration::from_micros(1);
            self.timers();
        }
        self.now = self.now.max(end);
        self.timers();
    }

    fn timers(&mut self) {
        self.server.handle_timeout(self.now);
        self.honest.handle_timeout(self.now);
        self.crowd.iter_mut().for_each(|client| client.handle_timeout(self.now));
        self.drain();
    }

    /// A datagram of a hostile client arrives, and then what the server has sent it.
    fn give(&mut self, from: usize, datagram: &[u8]) {
        let address = SocketAddr::from(HOSTILE[from % HOSTILE.len()]);
        self.account.entry(address).or_default().0 += datagram.len();
        self.server.handle_datagram(self.now, address.into(), &mut datagram.to_vec());
        self.events();
        self.drain();
        for (client, incoming) in self.crowd.iter_mut().zip(&mut self.incoming) {
            for mut answer in incoming.drain(..) {
                client.handle_datagram(self.now, SocketAddr::from(SERVER).into(), &mut answer);
            }
        }
        self.drain();
    }

    fn step(&mut self, script: &mut Script<'_>, given: &mut Vec<Vec<u8>>) {
        let byte = script.u8();
        let who = usize::from(byte >> 4) % HOSTILE.len();
        let operation = byte & 0xf;
        let mut from = who;
        let datagram = match operation {
            op::WAIT => return self.wait(u64::from(script.u16()) % 4096),
            op::JOIN => {
                self.made += 1;
                self.crowd[who] = client(self.made);
                self.outgoing[who].clear();
                return self.drain();
            }
            op::SEND => {
                let (what, len) = (script.u8(), usize::from(script.u8()));
                if let Some(connection) = self.crowd[who].connection_mut() {
                    let _ = connection.send(CHANNEL, &vec![what; len * 64]);
                    let _ = connection.send_datagram(&vec![what; len * 4]);
                }
                return self.drain();
            }
            op::LOSE => return self.incoming[who].clear(),
            op::CLOSE => {
                self.crowd[who].close(self.now, 7);
                return self.drain();
            }
            op::KICK => {
                if let Some(id) = self.up.get(1..).and_then(<[SessionId]>::last).copied() {
                    let _ = self.server.kick(self.now, id, 7, "");
                }
                self.events();
                return self.drain();
            }
            op::RAW => {
                let len = script.u16() % 1300;
                script.bytes(len.into()).to_vec()
            }
            op::AGAIN | op::CLAIM => {
                let which = usize::from(script.u16()) % given.len().max(1);
                let mut datagram = given.get(which).cloned().unwrap_or_default();
                if let (op::CLAIM, Some(id)) = (operation, self.up.first()) {
                    let places = datagram.iter_mut().skip(1);
                    places.zip(id.to_bits().to_le_bytes()).for_each(|(byte, of_id)| *byte = of_id);
                }
                datagram
            }
            _ => {
                let mut datagram = self.outgoing[who].pop_front().unwrap_or_default();
                match operation {
                    op::FLIPPED => {
                        let (place, mask) = (usize::from(script.u16()), script.u8());
                        let len = datagram.len().max(1);
                        datagram.iter_mut().skip(place % len).take(1).for_each(|byte| *byte ^= mask);
                    }
                    op::CUT => datagram.truncate(usize::from(script.u16()) % (datagram.len() + 1)),
                    op::MOVED => from = script.u8().into(),
                    op::SPLICED => {
                        let other = usize::from(script.u8()) % HOSTILE.len();
                        let place = usize::from(script.u16()) % (datagram.len() + 1);
                        let other = self.outgoing[other].front().and_then(|other| other.get(place..));
                        let end = other.unwrap_or_default().to_vec();
                        datagram.truncate(place);
                        datagram.extend(end);
                    }
                    _ => {}
                }
                datagram
            }
        };
        if given.len() < 64 {
            given.push(datagram.clone());
        }
        self.give(from, &datagram);
    }
}

/// Whatever the hostile clients do, the honest one stays, and its messages arrive.
///
/// # Panics
///
/// If that does not hold.
pub fn server_crowd(script: &[u8]) {
    let mut script = Script::new(script);
    let mut world = World::new();
    world.drain();
    world.wait(10);
    assert!(world.up.len() == 1 && world.honest.state() == ClientState::Up);
    let mut given = Vec::new();
    let mut steps = 0;
    while !script.is_done() && steps < STEPS {
        world.step(&mut script, &mut given);
        steps += 1;
    }
    world.wait(1000);
    assert!(world.sent > 9 && world.received + 1 >= world.sent, "{} of {}", world.received, world.sent);
}

/// Seed scripts: all join, one after the other or mixed; some leave, and some meddle.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let each = |operation: &[u8]| -> Vec<u8> {
        (0..4u8)
            .flat_map(|who| {
                operation.iter().take(1).map(move |op| op | who << 4).chain(operation.iter().skip(1).copied())
            })
            .collect()
    };
    let wait = [op::WAIT, 20, 0];
    let join = [each(&[op::HONEST]), wait.to_vec()].concat().repeat(3);
    let send = [each(&[op::SEND, 7, 90]), each(&[op::HONEST]).repeat(4), wait.to_vec()].concat();
    let script = |parts: &[&[u8]]| parts.concat();
    vec![
        ("join".to_owned(), join.clone()),
        ("send".to_owned(), script(&[&join, &send, &send])),
        ("leave".to_owned(), script(&[&join, &each(&[op::CLOSE]), &each(&[op::HONEST]), &[op::WAIT, 0, 8]])),
        ("again".to_owned(), script(&[&join, &each(&[op::JOIN]), &join, &each(&[op::AGAIN, 3, 0])])),
        ("moved".to_owned(), script(&[&join, &send, &each(&[op::SEND, 1, 9]), &each(&[op::MOVED, 2])])),
        (
            "spliced".to_owned(),
            script(&[&join, &send, &each(&[op::SEND, 1, 9]), &each(&[op::SPLICED, 1, 9, 0])]),
        ),
        ("claim".to_owned(), script(&[&join, &send, &each(&[op::CLAIM, 9, 0]), &each(&[op::CLAIM, 12, 0])])),
        (
            "flipped".to_owned(),
            script(&[&each(&[op::FLIPPED, 15, 0, 4]), &wait, &join, &each(&[op::CUT, 9, 0])]),
        ),
        ("kick".to_owned(), script(&[&join, &[op::KICK, op::KICK], &send, &each(&[op::LOSE])])),
    ]
}

/// That of a default session.
const CHANNEL: Channel = Channel::ordered(0);
/// Datagrams that may be sent in a row.
const DATAGRAMS: usize = 4000;
/// Most timers that may fire in one wait.
const WAKES: usize = 4000;
const STEPS: usize = 300;
