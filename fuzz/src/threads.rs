//! Sessions on threads, with a program that calls in any order, reads late or never, and drops either end at any time.

use super::script::Script;
use std::collections::BTreeMap;
use std::time::Duration;
use whitewater::channel::SendError;
use whitewater::thread::{Client, Server, ThreadConfig};
use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig, SessionId};

/// The operations of a script, after its first byte, which says how many threads the server has. The high half of
/// the byte says which client it concerns.
pub mod op {
    /// A client connects, in the place of another.
    pub const CONNECT: u8 = 0;
    /// It is dropped.
    pub const DROP: u8 = 1;
    /// It sends so many messages.
    pub const SEND: u8 = 2;
    /// It reads so many.
    pub const READ: u8 = 3;
    /// It closes: how.
    pub const CLOSE: u8 = 4;
    /// The server takes so many events.
    pub const EVENTS: u8 = 5;
    /// It reads so many messages of its newest session.
    pub const TAKE: u8 = 6;
    /// It sends so many messages to all.
    pub const BROADCAST: u8 = 7;
    /// It ends its newest session: how.
    pub const KICK: u8 = 8;
    /// Both ends get some time.
    pub const WAIT: u8 = 9;
    /// Something runs on the threads.
    pub const RUN: u8 = 10;
}

/// A client, with the number of its next message and of the server's.
struct Side {
    client: Client,
    sent: u32,
    received: Option<u32>,
}

struct World {
    server: Server,
    clients: [Option<Side>; 2],
    /// Sessions of the server, with the number of the next message.
    sessions: BTreeMap<SessionId, u32>,
    newest: Option<SessionId>,
    broadcasts: u32,
}

/// What arrives is in order and complete, no call hangs, and no thread panics, whichever end goes first.
///
/// # Panics
///
/// If that does not hold.
pub fn thread_driver(script: &[u8]) {
    let mut script = Script::new(script);
    let shards = 1 + usize::from(script.u8()) % 2;
    let config = ServerConfig::insecure(SessionConfig::default());
    let server = Server::bind_shards("127.0.0.1:0", &config, shards, &LIMITS).expect("a port");
    let (clients, sessions) = (Default::default(), BTreeMap::new());
    let mut world = World { server, clients, sessions, newest: None, broadcasts: 0 };
    let mut steps = 0;
    while !script.is_done() && steps < STEPS {
        world.step(&mut script);
        steps += 1;
    }
    let World { server, clients, .. } = world;
    match script.u8() % 4 {
        0 => drop(server),
        1 => server.shutdown(3).expect("its threads ended well"),
        2 => {
            let rest = clients.into_iter().flatten();
            rest.for_each(|side| side.client.shutdown(4).expect("its thread ended well"));
        }
        _ => drop(clients),
    }
}

impl World {
    fn step(&mut self, script: &mut Script<'_>) {
        let (byte, many) = (script.u8(), usize::from(script.u8()));
        let which = usize::from(byte >> 4) % self.clients.len();
        let side = &mut self.clients[which];
        match (byte & 0xf, side) {
            (op::CONNECT, side) => {
                let config = ClientConfig::insecure(SessionConfig::default());
                let client = Client::connect(self.server.local_addr(), &config, &LIMITS).expect("a port");
                *side = Some(Side { client, sent: 0, received: None });
            }
            (op::DROP, side) => *side = None,
            (op::SEND, Some(side)) => {
                for _ in 0..many {
                    if let Err(error) = side.client.send(CHANNEL, &side.sent.to_le_bytes()) {
                        let is_usual = matches!(
                            error,
                            SendError::Full { .. } | SendError::Closed | SendError::NotConnected
                        );
                        assert!(is_usual, "{error}");
                        break;
                    }
                    side.sent += 1;
                    let _ = side.client.send_datagram(&[7; 99]);
                }
            }
            (op::READ, Some(side)) => {
                while side.client.poll_event().is_some() {}
                for message in (0..many).map_while(|_| side.client.recv(CHANNEL)) {
                    let number = number(&message);
                    assert!(side.received.is_none_or(|last| last < number), "a broadcast out of order");
                    side.received = Some(number);
                }
                while side.client.recv_datagram().is_some() {}
            }
            (op::CLOSE, Some(side)) => match many % 3 {
                0 => side.client.close(1),
                1 => drop(side.client.close_with(2, "bye")),
                _ => drop(side.client.kick(3, "out")),
            },
            (op::EVENTS, _) => self.events(many),
            (op::TAKE, _) => self.take(many),
            (op::BROADCAST, _) => {
                for _ in 0..many {
                    let _ = self.server.broadcast(CHANNEL, &self.broadcasts.to_le_bytes());
                    self.broadcasts += 1;
                }
            }
            (op::KICK, _) => {
                let Some(id) = self.newest else { return };
                match many % 3 {
                    0 => self.server.close(id, 1),
                    1 => drop(self.server.close_with(id, 2, "bye")),
                    _ => drop(self.server.kick(id, 3, "out")),
                }
            }
            (op::WAIT, side) => {
                self.server.poll(Some(Duration::from_micros(many as u64 * 8)));
                if let Some(side) = side {
                    side.client.poll(Some(Duration::from_micros(many as u64 * 8)));
                }
            }
            (op::RUN, side) => {
                self.server.run(many, |server| drop(server.local_addr()));
                if let Some(side) = side {
                    side.client.run(|client| drop(client.local_addr()));
                }
            }
            _ => {}
        }
    }

    fn events(&mut self, many: usize) {
        for _ in 0..many {
            match self.server.poll_event() {
                Some((id, Event::Connected)) => {
                    assert!(self.sessions.insert(id, 0).is_none(), "it connects once");
                    self.newest = Some(id);
                }
                Some((id, Event::Closed { .. })) => {
                    assert!(self.sessions.remove(&id).is_some(), "it ends once");
                    self.newest = self.newest.filter(|newest| *newest != id);
                }
                Some((_, Event::Readable)) => self.take(many / 4),
                Some(_) => {}
                None => break,
            }
        }
    }

    fn take(&mut self, many: usize) {
        let Some(id) = self.newest else { return };
        for message in (0..many).map_while(|_| self.server.recv(id, CHANNEL)) {
            let next = self.sessions.get_mut(&id).expect("it is up");
            assert_eq!(number(&message), *next, "a message was lost or came twice");
            *next += 1;
        }
        while self.server.recv_datagram(id).is_some() {}
    }
}

fn number(message: &[u8]) -> u32 {
    u32::from_le_bytes(message.try_into().expect("a number"))
}

/// Seed scripts: sessions that come up, talk and end in each way.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let up = [
        op::CONNECT,
        0,
        op::CONNECT | 0x10,
        0,
        op::WAIT,
        255,
        op::WAIT | 0x10,
        255,
        op::WAIT,
        255,
        op::EVENTS,
        9,
    ];
    let talk = [
        op::SEND,
        200,
        op::SEND | 0x10,
        9,
        op::BROADCAST,
        200,
        op::WAIT,
        99,
        op::EVENTS,
        40,
        op::TAKE,
        99,
        op::READ,
        99,
    ];
    let ends = [[op::CLOSE, 0], [op::CLOSE, 1], [op::CLOSE, 2], [op::KICK, 0], [op::KICK, 2], [op::DROP, 0]];
    let script = |(at, end): (u8, &[u8; 2])| {
        let parts =
            [&[at][..], &up, &talk.repeat(3), end, &[op::RUN, 1, op::WAIT, 99, op::EVENTS, 99, at, 0]];
        (format!("end-{at}"), parts.concat())
    };
    (0..).zip(&ends).map(script).collect()
}

/// Small, so that they are reached.
const LIMITS: ThreadConfig = ThreadConfig { outgoing: 2048, incoming: 4096 };
/// That of a default session.
const CHANNEL: Channel = Channel::ordered(0);
const STEPS: usize = 60;
