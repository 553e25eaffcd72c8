//! Sessions: one server with all of them, several for more than 16,384, and their clients. Not encrypted, like KCP, or
//! encrypted.

use super::Side;
use super::bare::{address, index, random, time};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use whitewater::machine::Machine as _;
use whitewater::session::{Cipher, Client, Connection, Pattern, Server as Sessions, Suite};
use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig, SessionId};

const SERVER: ([u8; 4], u16) = ([11, 0, 0, 1], 4000);
/// That of a default session.
pub(super) const CHANNEL: Channel = Channel::ordered(0);

const ENCRYPTED: Suite = Suite::Noise(Pattern::Nn, Cipher::AesGcm);

/// What carries the messages.
#[derive(Clone, Copy)]
pub(super) enum By {
    Channel,
    Datagrams,
}

impl By {
    fn send(self, session: &mut Connection, message: &[u8]) {
        match self {
            Self::Channel => session.send(CHANNEL, message).expect("it has room"),
            Self::Datagrams => _ = session.send_datagram(message).expect("it has room"),
        }
    }

    fn recv(self, session: &mut Connection, mut take: impl FnMut(&[u8])) {
        let mut message = [0; 1500]; // as the others do: an owned message is an allocation
        while let Ok(len) = match self {
            Self::Channel => session.recv_into(CHANNEL, &mut message),
            Self::Datagrams => session.recv_datagram_into(&mut message),
        } {
            take(&message[..len]);
        }
        while session.pop_delivered().is_some() {}
    }
}

pub(super) struct Server {
    shards: Vec<Sessions>,
    by: By,
    ids: Vec<Option<SessionId>>,
    buf: Vec<u8>,
}

impl Server {
    pub(super) fn new(count: usize, seed: u32) -> Self {
        Self::by(By::Channel, count, seed)
    }

    pub(super) fn by(by: By, count: usize, seed: u32) -> Self {
        Self::of(Suite::Checked, by, count, seed)
    }

    pub(super) fn encrypted(count: usize, seed: u32) -> Self {
        Self::of(ENCRYPTED, By::Channel, count, seed)
    }

    fn of(suite: Suite, by: By, count: usize, seed: u32) -> Self {
        let each = u16::try_from(count.min(MOST)).expect("a shard");
        let config = ServerConfig {
            suites: vec![suite],
            max_sessions: each,
            // Also the least that a network may have: all are in one.
            sessions_per_address: each,
            half_open: 16_384,
            accepts_per_second: 1_000_000,
            accept_burst: 1_000_000,
            challenges_per_second: 1_000_000,
            memory: 1 << 40, // as of bare KCP
            ..ServerConfig::insecure(SessionConfig::default())
        };
        let shard = |_| Sessions::new(&config, random(seed)).expect("it is in range");
        let shards = (0..count.div_ceil(MOST)).map(shard).collect();
        Self { shards, by, ids: vec![None; count], buf: Vec::new() }
    }
}

impl Side for Server {
    fn is_due(&self, now: u32) -> bool {
        let is_due = |shard: &Sessions| shard.poll_timeout().is_some_and(|at| at <= time(now));
        self.shards.iter().any(is_due)
    }

    fn input(&mut self, now: u32, index: usize, datagram: &[u8]) {
        self.buf.clear();
        self.buf.extend_from_slice(datagram);
        self.shards[index / MOST].handle_datagram(time(now), address(index).into(), &mut self.buf);
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        let session = self.ids[index].and_then(|id| self.shards[index / MOST].connection_mut(id));
        self.by.send(session.expect("it is up"), message);
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        for shard in &mut self.shards {
            shard.handle_timeout(time(now));
            self.buf.clear();
            while let Some(transmit) = shard.poll_transmit(time(now), &mut self.buf) {
                out(index(transmit.address), &self.buf);
                self.buf.clear();
            }
        }
    }

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        for shard in &mut self.shards {
            while let Some((id, event)) = shard.poll_event() {
                match event {
                    Event::Connected => {
                        let peer = shard.connection(id).expect("it is up").peer_addr();
                        self.ids[index(peer)] = Some(id);
                    }
                    Event::Readable => {
                        self.by.recv(shard.connection_mut(id).expect("it is up"), &mut take);
                    }
                    _ => panic!("{event:?}"),
                }
            }
        }
    }
}

pub(super) struct Clients {
    clients: Vec<Client>,
    by: By,
    /// When each of them is looked at, and those of each ms.
    due: Vec<u32>,
    agenda: BTreeMap<u32, Vec<usize>>,
    heard: Vec<usize>,
    buf: Vec<u8>,
}

impl Clients {
    pub(super) fn new(count: usize, seed: u32) -> Self {
        Self::of(Suite::Checked, By::Channel, count, seed)
    }

    pub(super) fn by(by: By, count: usize, seed: u32) -> Self {
        Self::of(Suite::Checked, by, count, seed)
    }

    pub(super) fn encrypted(count: usize, seed: u32) -> Self {
        Self::of(ENCRYPTED, By::Channel, count, seed)
    }

    fn of(suite: Suite, by: By, count: usize, seed: u32) -> Self {
        let config = ClientConfig { suite, ..ClientConfig::insecure(SessionConfig::default()) };
        let client = |index: usize| {
            let number = seed + u32::try_from(index).expect("thousands");
            Client::new(&config, random(number)).expect("it is in range")
        };
        let mut agenda: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let start = |index: usize| u32::try_from(index / STARTS).expect("thousands");
        (0..count).for_each(|index| agenda.entry(start(index)).or_default().push(index));
        Self {
            clients: (0..count).map(client).collect(),
            by,
            due: (0..count).map(start).collect(),
            agenda,
            heard: Vec::new(),
            buf: Vec::new(),
        }
    }

    fn touch(&mut self, now: u32, index: usize) {
        if self.due[index] > now {
            self.due[index] = now;
            self.agenda.entry(now).or_default().push(index);
        }
    }
}

impl Side for Clients {
    fn input(&mut self, now: u32, index: usize, datagram: &[u8]) {
        self.buf.clear();
        self.buf.extend_from_slice(datagram);
        self.clients[index].handle_datagram(time(now), SocketAddr::from(SERVER).into(), &mut self.buf);
        self.heard.push(index);
        self.touch(now, index);
    }

    fn send(&mut self, now: u32, index: usize, message: &[u8]) {
        let Some(session) = self.clients[index].connection_mut() else { return };
        self.by.send(session, message);
        self.touch(now, index);
    }

    fn update(&mut self, now: u32, mut out: impl FnMut(usize, &[u8])) {
        for index in self.agenda.remove(&now).unwrap_or_default() {
            if self.due[index] != now {
                continue;
            }
            let client = &mut self.clients[index];
            if client.connection().is_none() && now == u32::try_from(index / STARTS).expect("thousands") {
                client.connect(time(now), &[SERVER.into()]).expect("it is idle");
            }
            client.handle_timeout(time(now));
            self.buf.clear();
            while client.poll_transmit(time(now), &mut self.buf).is_some() {
                out(index, &self.buf);
                self.buf.clear();
            }
            let next =
                client.poll_timeout().map_or(u32::MAX, |at| at.as_micros().div_ceil(1000) as u32 - 1000);
            self.due[index] = next.max(now + 1);
            self.agenda.entry(self.due[index]).or_default().push(index);
        }
    }

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        for index in self.heard.drain(..) {
            let client = &mut self.clients[index];
            while let Some(event) = client.poll_event() {
                assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
            }
            let Some(session) = client.connection_mut() else { continue };
            self.by.recv(session, &mut take);
        }
    }
}

/// Sessions of a server.
const MOST: usize = 1 << 14;
/// Clients that connect in the same ms.
const STARTS: usize = 20;
