//! A server with connect tokens behind a relay, and players with good tokens who name addresses that they cannot read at: directly, by the relay, with
//! cookies of their own, or in copies of what others have sent. However they do it, no session is at such an address, and nobody there is sent more than
//! was sent in their name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use whitewater::machine::Machine as _;
use whitewater::session::token::{Order, ServerKey};
use whitewater::session::{Client, HostTicket, Server, Suite};
use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig, Time};
use whitewater_fuzz::script::Script;
use whitewater_relay::{HostGrant, RelayKey};
use whitewater_sim::SimRng;

/// The operations of a script. The high half of the byte says which player.
mod op {
    /// Time passes: ms, two bytes.
    pub(super) const WAIT: u8 = 0;
    /// A player begins anew: with a HELLO if a byte is odd.
    pub(super) const JOIN: u8 = 1;
    /// Their next datagram comes directly: from where, a byte.
    pub(super) const DIRECT: u8 = 2;
    /// The same by the relay: from where, and by which link, a byte each.
    pub(super) const RELAYED: u8 = 3;
    /// An earlier datagram again, directly: which, and from where, a byte each.
    pub(super) const AGAIN: u8 = 4;
    /// The same with one byte changed: which, from where, which byte in two, and by what.
    pub(super) const FLIPPED: u8 = 5;
    /// Raw bytes from the relay: their number, a byte, and the bytes.
    pub(super) const RAW: u8 = 6;
    /// They send a message: its length, a byte.
    pub(super) const SEND: u8 = 7;
    /// The server sends one to all.
    pub(super) const REPLY: u8 = 8;
    /// Their next datagram is lost.
    pub(super) const LOSE: u8 = 9;
}

const UNIX: u64 = 1_900_000_000;
const SERVER: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
const RELAY: ([u8; 4], u16) = ([10, 8, 8, 8], 4100);
const CHAT: Channel = Channel::ordered(0);
const PLAYERS: usize = 4;
const KEPT: usize = 64;
const DATAGRAMS: usize = 2000;
/// What the relay passes on, in either direction.
const RELAYED: u8 = 0xb3;
/// Bytes of a frame of the relay before what a guest has sent.
const HEAD: usize = 23;
const TICKET: usize = 20;

/// Half of all places can be read by the players. Two of each half are at one address.
fn place(number: u8) -> SocketAddr {
    let [ip, port] = [[1, 1], [1, 2], [2, 1], [8, 1], [8, 2], [9, 1]][usize::from(number) % 6];
    ([10, 0, 0, ip], u16::from(port)).into()
}

fn is_read(at: IpAddr) -> bool {
    [place(0), place(2)].iter().any(|place| place.ip() == at.to_canonical())
}

#[derive(Default)]
struct Account {
    received: usize,
    sent: usize,
}

struct World {
    server: Server,
    players: Vec<Client>,
    outgoing: Vec<VecDeque<Vec<u8>>>,
    given: Vec<Vec<u8>>,
    /// The address of each link of the relay.
    links: BTreeMap<[u8; 4], SocketAddr>,
    accounts: BTreeMap<SocketAddr, Account>,
    made: u64,
    now: Time,
}

fn key() -> ServerKey {
    ServerKey::new(7, 0, [2; 32])
}

fn host_ticket() -> HostTicket {
    let expires = u32::try_from(UNIX + 3600).expect("it is not 2106");
    RelayKey::new([5; 32]).host(HostGrant { host: 7, expires, guests: 100, bytes_per_second: 100_000 })
}

/// A player with a token of their own.
fn player(number: u64, asks: bool, now: Time) -> Client {
    let order = Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id: number,
        match_id: [0; 16],
        created: UNIX + 5,
        expires: UNIX + 600,
        addresses: &[SERVER.into()],
        server_key: None,
        routing_token: &[9; TICKET],
        user: b"",
    };
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    let token = key().mint(&order, [7; 32], nonce).expect("an order");
    let hello = if asks { 1199 } else { 1200 };
    let config = ClientConfig { hello, ..ClientConfig::token(SessionConfig::default(), &token) };
    let mut client = Client::new(&config, SimRng::new(number, 3)).expect("a config");
    client.connect(now, &[SERVER.into()]).expect("it is new");
    client
}

impl World {
    fn new() -> Self {
        let config = ServerConfig {
            relay: Some((RELAY.into(), host_ticket())),
            routing_token: u8::try_from(TICKET).expect("it is short"),
            max_sessions: 8,
            half_open: 8,
            sessions_per_address: 2,
            ..ServerConfig::tokens(SessionConfig::default(), key())
        };
        let mut server = Server::new(&config, SimRng::new(1, 3)).expect("a config");
        server.set_unix_time(Time::ZERO, Duration::from_secs(UNIX));
        let now = Time::from_millis(1000);
        let players = (0..PLAYERS).map(|number| player(number as u64 + 1, false, now)).collect();
        let mut world = Self {
            server,
            players,
            outgoing: vec![VecDeque::new(); PLAYERS],
            given: Vec::new(),
            links: BTreeMap::new(),
            accounts: BTreeMap::new(),
            made: PLAYERS as u64,
            now,
        };
        world.drain();
        world
    }

    fn drain(&mut self) {
        let mut buf = Vec::new();
        for count in 0.. {
            assert!(count < DATAGRAMS, "it does not end");
            buf.clear();
            let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) else { break };
            let (mut to, mut datagram) = (transmit.address, &mut buf[..]);
            if to == RELAY.into() {
                let answer = datagram.split_first_mut().filter(|(kind, _)| **kind == RELAYED);
                let answer = answer.and_then(|(_, rest)| rest.split_first_chunk_mut());
                let Some((link, rest)) = answer else { continue }; // it registers
                (to, datagram) = (*self.links.get(&*link).expect("a link of ours"), rest);
            }
            let account = self.accounts.entry(to).or_default();
            account.sent += datagram.len();
            let Account { sent, received } = *account;
            assert!(is_read(to.ip()) || sent <= received, "{to} got {sent} bytes for {received}");
            if is_read(to.ip()) {
                for client in &mut self.players {
                    client.handle_datagram(self.now, SocketAddr::from(SERVER).into(), &mut datagram.to_vec());
                }
            }
        }
        while let Some((id, event)) = self.server.poll_event() {
            let at = self.server.peer_addr(id);
            let is_there = at.is_none_or(|at| is_read(at.ip()));
            assert!(is_there || matches!(event, Event::Closed { .. }), "a session is at {at:?}: {event:?}");
        }
        for id in self.server.clients().collect::<Vec<_>>() {
            let at = self.server.peer_addr(id).expect("it is up");
            assert!(is_read(at.ip()), "a session is at {at}");
            let connection = self.server.connection_mut(id).expect("it is up");
            while connection.recv(CHAT).is_some() {}
        }
        for (client, outgoing) in self.players.iter_mut().zip(&mut self.outgoing) {
            for count in 0.. {
                assert!(count < DATAGRAMS, "it does not end");
                buf.clear();
                if client.poll_transmit(self.now, &mut buf).is_none() {
                    break;
                }
                outgoing.push_back(buf.clone());
                outgoing.truncate(16); // the rest is lost
            }
            while client.poll_event().is_some() {}
            if let Some(connection) = client.connection_mut() {
                while connection.recv(CHAT).is_some() {}
            }
        }
    }

    fn give(&mut self, from: SocketAddr, datagram: &[u8]) {
        if self.given.len() < KEPT {
            self.given.push(datagram.to_vec());
        }
        self.accounts.entry(from).or_default().received += datagram.len();
        self.server.handle_datagram(self.now, from.into(), &mut datagram.to_vec());
        self.drain();
    }

    /// The relay passes on what came to it from that place.
    fn relay(&mut self, from: SocketAddr, link: u8, datagram: &[u8]) {
        let (SocketAddr::V4(v4), Some((datagram, _))) = (from, datagram.split_last_chunk::<TICKET>()) else {
            return;
        };
        let link = u32::from(link % 8).to_be_bytes();
        if *self.links.entry(link).or_insert(from) != from {
            return; // it is another guest's
        }
        let mut frame = vec![RELAYED];
        frame.extend_from_slice(&link);
        frame.extend_from_slice(&v4.ip().to_ipv6_mapped().octets());
        frame.extend_from_slice(&v4.port().to_be_bytes());
        assert_eq!(frame.len(), HEAD);
        frame.extend_from_slice(datagram);
        self.accounts.entry(from).or_default().received += datagram.len();
        self.server.handle_datagram(self.now, SocketAddr::from(RELAY).into(), &mut frame);
        self.drain();
    }

    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        for _ in 0..DATAGRAMS {
            let timers = self.players.iter().filter_map(whitewater::machine::Machine::poll_timeout);
            let Some(at) = timers.chain(self.server.poll_timeout()).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at) + Duration::from_micros(1);
            self.timers();
        }
        self.now = self.now.max(end);
        self.timers();
    }

    fn timers(&mut self) {
        self.server.handle_timeout(self.now);
        self.players.iter_mut().for_each(|client| client.handle_timeout(self.now));
        self.drain();
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let byte = script.u8();
        let who = usize::from(byte >> 4) % PLAYERS;
        match byte & 0xf {
            op::WAIT => self.wait(u64::from(script.u16()) % 12_000),
            op::JOIN => {
                self.made += 1;
                self.players[who] = player(self.made, !script.u8().is_multiple_of(2), self.now);
                self.outgoing[who].clear();
                self.drain();
            }
            op::DIRECT => {
                let (from, datagram) = (place(script.u8()), self.outgoing[who].pop_front());
                self.give(from, &datagram.unwrap_or_default());
            }
            op::RELAYED => {
                let (from, link, datagram) =
                    (place(script.u8()), script.u8(), self.outgoing[who].pop_front());
                self.relay(from, link, &datagram.unwrap_or_default());
            }
            op::AGAIN | op::FLIPPED => {
                let (which, from) = (usize::from(script.u8()) % self.given.len().max(1), place(script.u8()));
                let mut datagram = self.given.get(which).cloned().unwrap_or_default();
                if byte & 0xf == op::FLIPPED {
                    let (at, mask, len) = (usize::from(script.u16()), script.u8(), datagram.len().max(1));
                    datagram.iter_mut().skip(at % len).take(1).for_each(|byte| *byte ^= mask);
                }
                self.give(from, &datagram);
            }
            op::RAW => {
                let len = script.u8();
                let mut datagram = script.bytes(len.into()).to_vec();
                let len = datagram.len();
                // It names a place of its own, which gets no more than that.
                if let Some(at) = datagram.get_mut(1..HEAD) {
                    let guest = SocketAddr::from(([10, 0, 0, 7], 7));
                    let SocketAddr::V4(v4) = guest else { return };
                    at[..4].copy_from_slice(&77_u32.to_be_bytes());
                    at[4..20].copy_from_slice(&v4.ip().to_ipv6_mapped().octets());
                    at[20..].copy_from_slice(&v4.port().to_be_bytes());
                    self.links.insert(77_u32.to_be_bytes(), guest);
                    self.accounts.entry(guest).or_default().received += len - HEAD;
                }
                self.server.handle_datagram(self.now, SocketAddr::from(RELAY).into(), &mut datagram);
                self.drain();
            }
            op::SEND => {
                let len = usize::from(script.u8());
                if let Some(connection) = self.players[who].connection_mut() {
                    let _ = connection.send(CHAT, &vec![7; len * 16]);
                }
                self.drain();
            }
            op::REPLY => {
                for id in self.server.clients().collect::<Vec<_>>() {
                    if let Some(connection) = self.server.connection_mut(id) {
                        let _ = connection.send(CHAT, &[8; 1000]);
                    }
                }
                self.drain();
            }
            op::LOSE => _ = self.outgoing[who].pop_front(),
            _ => {}
        }
        let stats = self.server.stats();
        assert!(self.server.len() <= 8 && stats.memory < 1 << 24, "{stats:?}");
    }
}

fuzz_target!(|script: &[u8]| {
    let (mut script, mut world) = (Script::new(script), World::new());
    for _ in 0..STEPS {
        if script.is_done() {
            break;
        }
        world.step(&mut script);
    }
    world.wait(30_000);
});

const STEPS: usize = 300;
