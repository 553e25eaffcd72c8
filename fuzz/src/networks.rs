//! A client with two networks and its server, and an observer who loses, repeats, changes and forges datagrams by either of them, and asks and answers
//! for ways. However they do it: messages arrive once and in order, nobody gets more bytes than they sent, and the session goes on when they stop.

use super::script::Script;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::inside::session::wire::{Challenge, Packet};
use whitewater::machine::{Arrival, Machine as _};
use whitewater::session::{Client, SecondNetwork, Server};
use whitewater::{Channel, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

/// The operations of a script. The high half of the byte says by which network, and in which direction.
pub mod op {
    /// Lets this many ms pass: a byte.
    pub const WAIT: u8 = 0;
    /// The next datagram arrives.
    pub const PASS: u8 = 1;
    /// The next one is lost.
    pub const LOSE: u8 = 2;
    /// The next one arrives from elsewhere: where, a byte.
    pub const MOVED: u8 = 3;
    /// An earlier one again, in the direction that the operation says: which, a byte, and from where, a byte.
    pub const AGAIN: u8 = 4;
    /// The same with one byte changed: where, a byte, and by what, a byte.
    pub const FLIPPED: u8 = 5;
    /// Raw bytes: their number, a byte, and the bytes.
    pub const RAW: u8 = 6;
    /// Each end sends a message: its length, a byte.
    pub const SEND: u8 = 7;
    /// The client is told what the second network is for: a byte.
    pub const PURPOSE: u8 = 8;
    /// The first network is another one.
    pub const PATH: u8 = 9;
    /// A CHALLENGE for the newest HELLO that has left: from where, a byte.
    pub const CHALLENGE: u8 = 10;
    /// Everything arrives, for a byte of turns of 10 ms each.
    pub const CALM: u8 = 11;
}

const CHAT: Channel = Channel::ordered(0);
const MOVES: Channel = Channel::unordered(1);
const PSK: [u8; 32] = [7; 32];
const SERVER: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
/// Earlier datagrams that the observer has.
const KEPT: usize = 64;

/// How the server sees the client by each network.
fn home(network: usize) -> SocketAddr {
    ([10, 0, 0, if network == 0 { 1 } else { 2 }], 1000).into()
}

/// Where the observer is.
fn place(number: u8) -> SocketAddr {
    match number % 8 {
        0 => home(0),
        1 => home(1),
        2 => SERVER.into(),
        number => ([10, 7, 7, number], 1000).into(),
    }
}

struct World {
    now: Time,
    client: Client,
    server: Server,
    id: Option<SessionId>,
    /// What is under way, by network: to the server, and to the client.
    up: [VecDeque<Vec<u8>>; 2],
    down: [VecDeque<Vec<u8>>; 2],
    seen: Vec<Vec<u8>>,
    hello: Option<(u8, u64)>,
    /// Bytes from each address and to it.
    accounts: BTreeMap<SocketAddr, [u64; 2]>,
    sent: u32,
    /// The next number on the channel in order, and those that came on the other, in both directions.
    heard: [u32; 2],
    moves: [Vec<bool>; 2],
    is_over: bool,
}

impl World {
    fn new() -> Self {
        let session =
            SessionConfig { channels: vec![CHAT.config(), MOVES.config()], ..SessionConfig::default() };
        let server =
            Server::new(&ServerConfig::secret(session.clone(), PSK), SimRng::new(1, 1)).expect("a config");
        let mut client =
            Client::new(&ClientConfig::secret(session, PSK), SimRng::new(1, 2)).expect("a config");
        client.connect(Time::ZERO, &[SERVER.into()]).expect("it is new");
        let mut world = Self {
            now: Time::ZERO,
            client,
            server,
            id: None,
            up: Default::default(),
            down: Default::default(),
            seen: Vec::new(),
            hello: None,
            accounts: BTreeMap::new(),
            sent: 0,
            heard: [0; 2],
            moves: Default::default(),
            is_over: false,
        };
        world.calm(20);
        assert!(world.id.is_some() && world.client.is_connected(), "nobody meddled");
        world
    }

    fn note(&mut self, datagram: &[u8]) {
        if self.seen.len() == KEPT {
            self.seen.remove(0);
        }
        self.seen.push(datagram.to_vec());
    }

    fn at_server(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.accounts.entry(from).or_default()[0] += datagram.len() as u64;
        self.server.handle_datagram(self.now, from.into(), &mut datagram.to_vec());
        self.poll();
    }

    fn at_client(&mut self, network: usize, from: SocketAddr, datagram: &[u8]) {
        let from = Arrival { network: u8::from(network != 0), ..from.into() };
        self.client.handle_datagram(self.now, from, &mut datagram.to_vec());
        self.poll();
    }

    /// Lets the next datagram arrive, from another address if one is given.
    fn pass(&mut self, network: usize, is_up: bool, from: Option<SocketAddr>) -> bool {
        let queue = if is_up { &mut self.up } else { &mut self.down };
        let Some(datagram) = queue.get_mut(network).and_then(VecDeque::pop_front) else { return false };
        if is_up {
            self.at_server(from.unwrap_or_else(|| home(network)), &datagram);
        } else {
            self.at_client(network, from.unwrap_or_else(|| SERVER.into()), &datagram);
        }
        true
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.server.set_unix_time(self.now, Duration::from_secs(1_900_000_000));
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        self.poll();
    }

    fn calm(&mut self, turns: u32) {
        for _ in 0..turns {
            self.wait(10);
            for network in 0..2 {
                while self.pass(network, true, None) || self.pass(network, false, None) {}
            }
        }
    }

    fn poll(&mut self) {
        loop {
            let mut datagram = Vec::new();
            let Some(to) = self.client.poll_transmit(self.now, &mut datagram) else { break };
            assert_eq!(to.address, SERVER.into(), "there is one server");
            if let Ok(Packet::Hello(hello)) = Packet::decode(&datagram) {
                self.hello = Some((to.network, hello.cid));
            }
            self.note(&datagram);
            self.up[usize::from(to.network)].push_back(datagram);
        }
        loop {
            let mut datagram = Vec::new();
            let Some(to) = self.server.poll_transmit(self.now, &mut datagram) else { break };
            assert_eq!(to.network, 0, "a server has one network");
            self.note(&datagram);
            match (0..2).find(|network| home(*network) == to.address) {
                Some(network) => self.down[network].push_back(datagram),
                None => {
                    let [received, sent] = self.accounts.entry(to.address).or_default();
                    *sent += datagram.len() as u64;
                    assert!(*sent <= *received, "{sent} bytes to a stranger who sent {received}");
                }
            }
        }
        while let Some(event) = self.client.poll_event() {
            self.end_by(&event);
        }
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Connected if self.id.is_none() => self.id = Some(id),
                event if self.id == Some(id) => self.end_by(&event),
                _ => {}
            }
        }
        self.read();
    }

    /// The observer can let nothing through for so long, but cannot end a session otherwise.
    fn end_by(&mut self, event: &Event) {
        if let Event::Closed { reason, .. } = event {
            assert_eq!(*reason, CloseReason::Timeout);
            self.is_over = true;
        }
    }

    fn read(&mut self) {
        for end in 0..2 {
            let connection = match (end, self.id) {
                (0, _) => self.client.connection_mut(),
                (_, Some(id)) => self.server.connection_mut(id),
                (_, None) => None,
            };
            let Some(connection) = connection else { continue };
            while let Some(message) = connection.recv(CHAT) {
                assert_eq!(
                    message.first_chunk(),
                    Some(&self.heard[end].to_le_bytes()),
                    "each once, in order"
                );
                self.heard[end] += 1;
            }
            while let Some(message) = connection.recv(MOVES) {
                let number = u32::from_le_bytes(*message.first_chunk().expect("its number")) as usize;
                let came = self.moves[end].get_mut(number).expect("it was sent");
                assert!(!std::mem::replace(came, true), "{number} has come before");
            }
        }
    }

    fn send(&mut self, len: usize) {
        let Some(id) = self.id else { return };
        let (Some(client), Some(server)) = (self.client.connection_mut(), self.server.connection_mut(id))
        else {
            return;
        };
        let message = [&self.sent.to_le_bytes()[..], &vec![7; 4 * len]].concat();
        // All or none, so that both count alike.
        let has_room = [&*client, &*server].iter().all(|end| end.is_connected())
            && self.sent - self.heard[0].min(self.heard[1]) < 32;
        if has_room {
            for end in [client, server] {
                end.send(CHAT, &message).expect("there is room");
                end.send(MOVES, &message).expect("there is room");
            }
            self.sent += 1;
            self.moves.iter_mut().for_each(|moves| moves.push(false));
        }
        self.poll();
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let operation = script.u8();
        let (network, is_up) = (usize::from(operation >> 4 & 1), operation >> 5 & 1 == 0);
        match operation & 15 {
            op::WAIT => self.wait(script.u8().into()),
            op::PASS => drop(self.pass(network, is_up, None)),
            op::LOSE => {
                let queue = if is_up { &mut self.up } else { &mut self.down };
                queue[network].pop_front();
            }
            op::MOVED => {
                let from = place(script.u8());
                self.pass(network, is_up, Some(from));
            }
            code @ (op::AGAIN | op::FLIPPED) => {
                let (which, from) = (usize::from(script.u8()), place(script.u8()));
                let mut datagram = match self.seen.len() {
                    0 => return,
                    len => self.seen[which % len].clone(),
                };
                if code == op::FLIPPED {
                    let (at, by) = (usize::from(script.u8()), script.u8());
                    let len = datagram.len().max(1);
                    datagram.get_mut(at % len).into_iter().for_each(|byte| *byte ^= by);
                }
                self.inject(network, is_up, from, &datagram);
            }
            op::RAW => {
                let len = script.u8();
                let datagram = script.bytes(len.into()).to_vec();
                self.inject(network, is_up, place(len), &datagram);
            }
            op::SEND => self.send(script.u8().into()),
            op::PURPOSE => {
                let purpose = match script.u8() % 4 {
                    0 => None,
                    1 => Some(SecondNetwork::Spare),
                    2 => Some(SecondNetwork::Best),
                    _ => Some(SecondNetwork::Double),
                };
                self.client.set_second_network(self.now, purpose);
                self.poll();
            }
            op::PATH => {
                self.client.path_changed(self.now);
                self.poll();
            }
            op::CHALLENGE => {
                let from = place(script.u8());
                let Some((by, cid)) = self.hello else { return };
                let mut datagram = Vec::new();
                let challenge = Challenge { suite: 0x11, cid, client_stamp: 0, epoch: 1, cookie: [9; 16] };
                if challenge.encode(&mut datagram).is_ok() {
                    self.at_client(by.into(), from, &datagram);
                }
            }
            op::CALM => {
                let turns = script.u8();
                self.calm(turns.into());
            }
            _ => {}
        }
    }

    fn inject(&mut self, network: usize, is_up: bool, from: SocketAddr, datagram: &[u8]) {
        if is_up {
            self.at_server(from, datagram);
        } else {
            self.at_client(network, from, datagram);
        }
    }
}

/// An observer at two networks.
///
/// # Panics
///
/// If a promise is broken.
pub fn client_networks(script: &[u8]) {
    let (mut world, mut script) = (World::new(), Script::new(script.get(..1024).unwrap_or(script)));
    while !script.is_done() && !world.is_over {
        world.step(&mut script);
    }
    if world.is_over {
        return;
    }
    for _ in 0..40 {
        world.calm(100);
        world.send(1);
        let is_there = |heard: &u32| *heard == world.sent;
        if world.heard.iter().all(is_there) && world.moves.iter().flatten().all(|came| *came) {
            break;
        }
    }
    assert!(!world.is_over, "nobody meddles any longer");
    world.calm(300);
    assert_eq!(world.heard, [world.sent; 2], "everything has arrived");
    assert!(world.moves.iter().flatten().all(|came| *came), "of both channels");
}

/// Scripts to begin with.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let talk = [op::SEND, 20, op::CALM, 2].repeat(20);
    let purposes = [("spare", 1), ("best", 2), ("double", 3)];
    let mut seeds: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, purpose) in purposes {
        let begin = [op::PURPOSE, purpose, op::CALM, 50];
        seeds.push((name.to_owned(), [&begin[..], &talk].concat()));
        // The first network fails: nothing passes there, in either direction.
        let fails = [
            op::SEND,
            9,
            op::WAIT,
            20,
            op::PASS | 1 << 4,
            op::PASS | 1 << 4,
            op::PASS | 3 << 4,
            op::LOSE,
            op::LOSE | 2 << 4,
        ]
        .repeat(40);
        seeds.push((format!("{name}-fails"), [&begin[..], &talk, &fails].concat()));
        // Copies from elsewhere, sooner than the datagrams themselves.
        let copies = [op::SEND, 9, op::AGAIN, 63, 5, op::AGAIN | 1 << 4, 62, 6, op::CALM, 1].repeat(30);
        seeds.push((format!("{name}-copied"), [&begin[..], &copies].concat()));
        let moved = [op::SEND, 9, op::WAIT, 10, op::MOVED, 4, op::MOVED | 1 << 4, 5, op::CALM, 1].repeat(30);
        seeds.push((format!("{name}-moved"), [&begin[..], &moved].concat()));
        let forged =
            [op::SEND, 9, op::WAIT, 200, op::CHALLENGE, 3, op::CHALLENGE, 2, op::PASS, op::PASS | 2 << 4]
                .repeat(20);
        seeds.push((format!("{name}-forged"), [&begin[..], &forged].concat()));
    }
    let changes =
        [op::PURPOSE, 3, op::CALM, 9, op::PATH, op::CALM, 9, op::PURPOSE, 0, op::SEND, 3, op::PURPOSE, 2]
            .repeat(8);
    seeds.push(("changes".to_owned(), changes));
    seeds
}
