//! A client with two networks and its server, in virtual time.

use super::sessions::{SERVER, client_address, random, server_config};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::machine::{Arrival, Machine as _};
use whitewater::session::{Client, SecondNetwork, Server, Suite};
use whitewater::{Channel, ClientConfig, Event, SessionConfig, SessionId, Time};
use whitewater_sim::{Link, LinkConfig};

/// The channel that everything is sent on, in packets.
pub(crate) const MOVES: Channel = Channel::unordered(0);

/// A channel for what is long.
pub(crate) const BULK: Channel = Channel::ordered(1);

pub(crate) struct Phone {
    pub(crate) now: Time,
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) id: Option<SessionId>,
    pub(crate) networks: Vec<Network>,
    pub(crate) moves: Vec<Event>,
    /// Bytes that the server received from an address and sent to it.
    pub(crate) accounts: BTreeMap<SocketAddr, [u64; 2]>,
    /// How often both ends have talked.
    talks: u32,
    buf: Vec<u8>,
}

/// A path from the client to the server, and back.
pub(crate) struct Network {
    /// How the server sees the client.
    pub(crate) address: SocketAddr,
    pub(crate) up: Link,
    pub(crate) down: Link,
    /// Datagrams that the client sent by it, and their bytes.
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
}

/// What arrived of messages that both ends sent each turn: how long each took, in order of sending, per direction. `None`: it did not arrive.
pub(crate) type Delays = [Vec<Option<Duration>>; 2];

impl Network {
    pub(crate) fn new(seed: u64, number: u8, up: &LinkConfig, down: &LinkConfig) -> Self {
        let link = |config: &LinkConfig, stream| Link::new(config.clone(), seed, stream).unwrap();
        let stream = 10 * u64::from(number);
        let address = client_address(1 + number, 1000);
        Self { address, up: link(up, stream), down: link(down, stream + 1), sent: 0, bytes: 0 }
    }

    pub(crate) fn set(&mut self, config: &LinkConfig) {
        self.up.set(config.clone()).unwrap();
        self.down.set(config.clone()).unwrap();
    }
}

pub(crate) fn config() -> SessionConfig {
    SessionConfig { channels: vec![MOVES.config(), BULK.config()], ..SessionConfig::default() }
}

impl Phone {
    /// A client that begins to connect by its first network.
    pub(crate) fn new(seed: u64, suite: Suite, networks: Vec<Network>) -> Self {
        let session = config();
        let server = Server::new(&server_config(&session, suite), random(seed, 1000)).unwrap();
        let config = ClientConfig { session, ..super::sessions::client_config(suite) };
        let mut client = Client::new(&config, random(seed, 2000)).unwrap();
        let now = Time::from_millis(1000);
        client.connect(now, &[SERVER.into()]).unwrap();
        let (moves, accounts) = (Vec::new(), BTreeMap::new());
        Self { now, client, server, id: None, networks, moves, accounts, talks: 0, buf: Vec::new() }
    }

    /// The same, up, with the second network for this.
    pub(crate) fn up(
        seed: u64,
        suite: Suite,
        links: [&LinkConfig; 2],
        second: Option<SecondNetwork>,
    ) -> Self {
        let networks =
            (0..).zip(links).map(|(number, link)| Network::new(seed, number, link, link)).collect();
        let mut phone = Self::new(seed, suite, networks);
        phone.client.set_second_network(phone.now, second);
        phone.connect();
        phone
    }

    pub(crate) fn connect(&mut self) {
        for _ in 0..10_000 {
            self.run(1);
            if self.id.is_some() && self.client.is_connected() {
                return;
            }
        }
        panic!("the session is not up");
    }

    pub(crate) fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now + Duration::from_millis(1);
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        for number in 0..self.networks.len() {
            let network = &mut self.networks[number];
            while let Some(datagram) = network.up.arrive(now) {
                self.buf.clear();
                self.buf.extend_from_slice(datagram);
                self.accounts.entry(network.address).or_default()[0] += self.buf.len() as u64;
                self.server.handle_datagram(now, network.address.into(), &mut self.buf);
            }
            while let Some(datagram) = network.down.arrive(now) {
                self.buf.clear();
                self.buf.extend_from_slice(datagram);
                let from =
                    Arrival { network: u8::try_from(number).unwrap(), ..SocketAddr::from(SERVER).into() };
                self.client.handle_datagram(now, from, &mut self.buf);
            }
        }
        self.client.handle_timeout(now);
        self.server.handle_timeout(now);
        self.flush();
    }

    pub(crate) fn flush(&mut self) {
        let now = self.now;
        loop {
            self.buf.clear();
            let Some(to) = self.client.poll_transmit(now, &mut self.buf) else { break };
            assert_eq!(to.address, SERVER.into());
            let network = &mut self.networks[usize::from(to.network)];
            network.up.send_with(now, to.ecn, &self.buf);
            network.sent += 1;
            network.bytes += self.buf.len() as u64;
        }
        loop {
            self.buf.clear();
            let Some(to) = self.server.poll_transmit(now, &mut self.buf) else { break };
            let [received, sent] = self.accounts.entry(to.address).or_default();
            *sent += self.buf.len() as u64;
            let [received, sent] = [*received, *sent];
            let network = self.networks.iter_mut().find(|network| network.address == to.address);
            match network {
                Some(network) => network.down.send_with(now, to.ecn, &self.buf),
                None => assert!(sent <= received, "{sent} bytes to a stranger that sent {received}"),
            }
        }
        while let Some(event) = self.client.poll_event() {
            assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
        }
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Connected => self.id = Some(id),
                Event::Moved { .. } => self.moves.push(event),
                Event::Closed { .. } => panic!("{event:?}"),
                _ => {}
            }
        }
    }

    /// What the client sends now, and by which network.
    pub(crate) fn sent_now(&mut self) -> Vec<(u8, Vec<u8>)> {
        let mut sent = Vec::new();
        loop {
            let mut datagram = Vec::new();
            let Some(to) = self.client.poll_transmit(self.now, &mut datagram) else { return sent };
            sent.push((to.network, datagram));
        }
    }

    /// A datagram that arrives at the server from this address.
    pub(crate) fn inject(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.accounts.entry(from).or_default()[0] += datagram.len() as u64;
        self.server.handle_datagram(self.now, from.into(), &mut datagram.to_vec());
    }

    /// Both ends send a message of `len` bytes in each of so many turns of 16 ms, and read for 5 s after that. Each arrives once at most.
    pub(crate) fn talk(&mut self, turns: u32, len: usize) -> Delays {
        let id = self.id.unwrap();
        let began = self.now;
        let mut delays: Delays = std::array::from_fn(|_| vec![None; turns as usize]);
        let mut message = vec![0; len];
        self.talks += 1;
        let talk = self.talks.to_le_bytes();
        message[4..8].copy_from_slice(&talk);
        for turn in 0..turns + 300 {
            if turn < turns {
                message[..4].copy_from_slice(&turn.to_le_bytes());
                let _ = self.client.connection_mut().unwrap().send(MOVES, &message);
                let _ = self.server.connection_mut(id).unwrap().send(MOVES, &message);
                self.flush();
            }
            for _ in 0..16 {
                self.run(1);
                let now = self.now;
                let mut note = |direction: usize, message: &[u8]| {
                    if message[4..8] != talk {
                        return; // of an earlier talk
                    }
                    let turn = u32::from_le_bytes(message[..4].try_into().unwrap());
                    let took = now.since(began + Duration::from_millis(16) * turn);
                    let before = delays[direction][turn as usize].replace(took);
                    assert_eq!(before, None, "turn {turn} arrives once");
                };
                while let Some(message) = self.server.connection_mut(id).unwrap().recv(MOVES) {
                    note(0, &message);
                }
                while let Some(message) = self.client.connection_mut().unwrap().recv(MOVES) {
                    note(1, &message);
                }
            }
        }
        delays
    }
}

/// The longest of them; all must have arrived.
pub(crate) fn longest(delays: &Delays) -> Duration {
    delays.iter().flatten().map(|took| took.expect("each arrives")).max().unwrap()
}

/// So many thousandths of the messages of both directions arrived as soon.
pub(crate) fn quantile(delays: &Delays, thousandths: usize) -> Duration {
    let mut all: Vec<_> = delays.iter().flatten().map(|took| took.unwrap_or(Duration::MAX)).collect();
    all.sort();
    all[(all.len() - 1) * thousandths / 1000]
}
