//! A lobby, a relay and players who host, in virtual time. Nobody but the relay can reach a player from outside.

use super::{HANDOVER, Lobby, Member, Task, session};
use crate::bots::Bot;
use crate::lab::LinkSpec;
use crate::wire::Hello;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use whitewater::machine::Machine;
use whitewater::session::{Client, ClientState, Server};
use whitewater::{ClientConfig, ServerConfig, Time};
use whitewater_relay::{Counts, Now, Relay, RelayConfig, RelayKey};
use whitewater_sim::{Link, SimRng};

/// All of them, and the paths between them.
pub struct PeersLab {
    now: Time,
    seed: u64,
    net: Net,
    relay: Relay,
    lobby: Lobby,
    sessions: Server,
    nodes: Vec<Node>,
    next_look: Time,
    datagram: Vec<u8>,
}

/// A player's machine.
struct Node {
    ip: IpAddr,
    /// The last port that it has taken.
    port: u16,
    member: Member,
    hello: Hello,
    lobby: Client,
    client: Option<(SocketAddr, Client)>,
    server: Option<(SocketAddr, Server)>,
    next_frame: Time,
    /// Nothing reaches it, and nothing that it sends arrives.
    is_cut: bool,
    /// Since when it says goodbye.
    leaves: Option<Time>,
}

/// A path for each sender and receiver, made when it is first used.
struct Net {
    links: BTreeMap<(SocketAddr, SocketAddr), Link>,
    spec: LinkSpec,
    seed: u64,
}

impl Net {
    fn send(&mut self, now: Time, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let stream = 1000 + self.links.len() as u64;
        let is_here = from.ip() == to.ip();
        let spec = if is_here {
            LinkSpec { rtt: Duration::ZERO, loss: 0.0, ..LinkSpec::default() }
        } else {
            self.spec.clone()
        };
        let new = || Link::new(spec.config(), self.seed, stream);
        if !self.links.contains_key(&(from, to))
            && let Ok(link) = new()
        {
            self.links.insert((from, to), link);
        }
        if let Some(link) = self.links.get_mut(&(from, to)) {
            link.send(now, datagram);
        }
    }
}

impl PeersLab {
    /// A lobby and a relay without players. Each path between two machines is like this.
    ///
    /// # Panics
    ///
    /// A config is wrong, and these are constants.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the config is a constant")]
    pub fn new(spec: &LinkSpec, seed: u64) -> Self {
        let now = Time::from_millis(1000);
        let config = ServerConfig { sessions_per_address: 64, ..ServerConfig::secret(session(), SECRET) };
        Self {
            now,
            seed,
            net: Net { links: BTreeMap::new(), spec: spec.clone(), seed },
            relay: Relay::new(RelayKey::new(SECRET), RelayConfig { hosts: 16, links: 256 }, SECRET),
            lobby: Lobby::new(RelayKey::new(SECRET), RELAY, SimRng::new(seed, 1)),
            sessions: Server::new(&config, SimRng::new(seed, 2)).expect("it is in range"),
            nodes: Vec::new(),
            next_look: now,
            datagram: Vec::new(),
        }
    }

    /// Adds a player, maybe steered by a bot. Returns their number.
    pub fn join(&mut self, hello: Hello, is_bot: bool) -> usize {
        let number = self.nodes.len();
        let stream = 10 + number as u64;
        let bot = is_bot.then(|| Bot::new(self.seed ^ stream));
        let user = Hello { ticket: 0, ..hello.clone() }.encode().unwrap_or_default();
        let ip = IpAddr::from([10, 0, 1, u8::try_from(number).unwrap_or(u8::MAX)]);
        self.nodes.push(Node {
            ip,
            port: LOBBY_PORT,
            member: Member::new(user, bot, self.seed),
            lobby: lobby_client(self.now, self.seed, stream, &hello),
            hello,
            client: None,
            server: None,
            next_frame: self.now,
            is_cut: false,
            leaves: None,
        });
        number
    }

    /// The current time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The lobby.
    #[must_use]
    pub const fn lobby(&self) -> &Lobby {
        &self.lobby
    }

    /// What the relay has counted.
    #[must_use]
    pub fn relayed(&self) -> Counts {
        self.relay.counts()
    }

    /// The players.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.nodes.iter().map(|node| &node.member)
    }

    /// A player.
    pub fn member_mut(&mut self, number: usize) -> Option<&mut Member> {
        self.nodes.get_mut(number).map(|node| &mut node.member)
    }

    /// Cuts a machine off, or connects it again.
    pub fn cut(&mut self, number: usize, is_cut: bool) {
        if let Some(node) = self.nodes.get_mut(number) {
            node.is_cut = is_cut;
        }
    }

    /// A player leaves, and says so. Their machine goes when all has been said.
    pub fn leave(&mut self, number: usize) {
        if let Some(node) = self.nodes.get_mut(number) {
            node.leaves = Some(self.now);
            if let Some((_, sessions)) = &mut node.server {
                node.member.leave(sessions);
            }
        }
    }

    /// Lets time pass.
    pub fn run_for(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = until;
    }

    fn next(&self) -> Option<Time> {
        let arrivals = self.net.links.values().filter_map(Link::next_arrival);
        let of_node = |node: &Node| {
            let client = node.client.as_ref().and_then(|(_, client)| client.poll_timeout());
            let server = node.server.as_ref().and_then(|(_, server)| server.poll_timeout());
            [Some(node.next_frame), node.lobby.poll_timeout(), client, server].into_iter().flatten().min()
        };
        let nodes = self.nodes.iter().filter_map(of_node);
        let own = [Some(self.next_look), self.sessions.poll_timeout()].into_iter().flatten();
        arrivals.chain(nodes).chain(own).min()
    }

    /// Does everything that is due now.
    fn step(&mut self) {
        let now = self.now;
        let mut arrived = Vec::new();
        for ((from, to), link) in &mut self.net.links {
            while let Some(datagram) = link.arrive(now) {
                arrived.push((*from, *to, datagram.to_vec()));
            }
        }
        for (from, to, datagram) in arrived {
            self.deliver(from, to, datagram);
        }
        self.run_lobby();
        for node in &mut self.nodes {
            node.go_on(now, self.seed, &mut self.net, &mut self.datagram);
        }
    }

    fn deliver(&mut self, from: SocketAddr, to: SocketAddr, mut datagram: Vec<u8>) {
        let now = self.now;
        if to == RELAY {
            let clock = Now { since_start: now.since(Time::ZERO), unix: unix(now) };
            if let Some(passed) = self.relay.handle(clock, from, &datagram) {
                self.datagram.clear();
                passed.append(&mut self.datagram);
                self.net.send(now, RELAY, passed.to, &self.datagram);
            }
            return;
        }
        if to == LOBBY {
            self.sessions.handle_datagram(now, from.into(), &mut datagram);
            return;
        }
        let is_there = |node: &&mut Node| node.ip == to.ip() && !node.is_cut;
        let Some(node) = self.nodes.iter_mut().find(is_there) else { return };
        let is_let_in = [RELAY.ip(), LOBBY.ip(), node.ip].contains(&from.ip());
        match (&mut node.client, &mut node.server) {
            _ if !is_let_in => {}
            _ if to.port() == LOBBY_PORT => {
                node.lobby.handle_datagram(now, from.into(), &mut datagram);
            }
            (Some((at, client)), _) if *at == to => {
                client.handle_datagram(now, from.into(), &mut datagram);
            }
            (_, Some((at, server))) if *at == to => {
                server.handle_datagram(now, from.into(), &mut datagram);
            }
            _ => {} // the port is closed
        }
    }

    fn run_lobby(&mut self) {
        let now = self.now;
        self.sessions.handle_timeout(now);
        while let Some((id, event)) = self.sessions.poll_event() {
            self.lobby.on_event(&mut self.sessions, now, id, event);
        }
        if now >= self.next_look {
            self.next_look = now + LOOK;
            self.lobby.tick(&mut self.sessions, now, unix(now));
        }
        self.datagram.clear();
        while let Some(transmit) = self.sessions.poll_transmit(now, &mut self.datagram) {
            self.net.send(now, LOBBY, transmit.address, &self.datagram);
            self.datagram.clear();
        }
    }
}

impl Node {
    fn go_on(&mut self, now: Time, seed: u64, net: &mut Net, datagram: &mut Vec<u8>) {
        match self.leaves {
            Some(since) => self.say_goodbye(now, since),
            None => self.talk(now, seed),
        }
        if let Some((_, server)) = &mut self.server {
            server.set_unix_time(now, Duration::from_secs(unix(now)));
            server.handle_timeout(now);
            while let Some((id, event)) = server.poll_event() {
                self.member.on_guest(server, now, id, event);
            }
            let addresses = server.public_addr(now).into_iter().chain([RELAY]).collect::<Vec<_>>();
            let addresses = if addresses.len() > 1 { addresses } else { Vec::new() };
            self.member.serve(server, now, addresses);
        }
        if let Some((_, client)) = &mut self.client {
            client.handle_timeout(now);
            while let Some(event) = client.poll_event() {
                self.member.on_event(client.connection_mut(), now, event);
            }
        }
        if now >= self.next_frame {
            self.next_frame = now + FRAME;
            let connection = self.client.as_mut().and_then(|(_, client)| client.connection_mut());
            self.member.frame(connection, now);
        }
        let client = self.client.as_mut().map(|(at, client)| (*at, client as &mut dyn Machine));
        let server = self.server.as_mut().map(|(at, server)| (*at, server as &mut dyn Machine));
        let lobby = (SocketAddr::new(self.ip, LOBBY_PORT), &mut self.lobby as &mut dyn Machine);
        for (from, machine) in [Some(lobby), client, server].into_iter().flatten() {
            datagram.clear();
            while let Some(transmit) = machine.poll_transmit(now, datagram) {
                if !self.is_cut || transmit.address.ip() == self.ip {
                    net.send(now, from, transmit.address, datagram);
                }
                datagram.clear();
            }
        }
    }

    /// First the heirs get the match; then guests and the lobby are told, who name and join the heir at once.
    fn say_goodbye(&mut self, now: Time, since: Time) {
        self.lobby.handle_timeout(now);
        let member = &self.member;
        let has_all = self.server.as_mut().is_none_or(|(_, server)| member.is_bequeathed(server));
        if !has_all && now.since(since) < HANDOVER {
            return;
        }
        let is_told = self.server.as_mut().is_none_or(|(_, server)| server.shutdown(now, 0));
        let is_out = self.client.as_mut().is_none_or(|(_, client)| client.shutdown(now, 0));
        self.is_cut |= self.lobby.shutdown(now, 0) && is_told && is_out;
    }

    /// The session with the lobby, and what follows from it.
    fn talk(&mut self, now: Time, seed: u64) {
        self.lobby.handle_timeout(now);
        while self.lobby.poll_event().is_some() {}
        if self.lobby.state() == ClientState::Closed && !self.is_cut {
            self.lobby = lobby_client(now, seed, now.as_micros(), &self.hello);
        }
        while let Some(connection) = self.lobby.connection_mut()
            && let Some(task) = self.member.talk(connection, now)
        {
            if !self.member.hosts() {
                self.server = None;
            }
            self.port += 1;
            let at = SocketAddr::new(self.ip, self.port);
            let random = SimRng::new(seed, now.as_micros() + u64::from(self.port));
            match task {
                Task::Bind(config) => {
                    self.server = Server::new(&config, random).ok().map(|server| (at, server));
                }
                Task::Join(config, addresses) => {
                    let own = self.server.as_ref().map(|(own, _)| vec![*own]);
                    self.client = Client::new(&config, random).ok().and_then(|mut client| {
                        client.connect(now, &own.unwrap_or(addresses)).ok()?;
                        Some((at, client))
                    });
                }
            }
        }
    }
}

#[expect(clippy::expect_used, reason = "the config is a constant, but for a short name")]
fn lobby_client(now: Time, seed: u64, stream: u64, hello: &Hello) -> Client {
    let user = hello.encode().unwrap_or_default();
    let config = ClientConfig { user, ..ClientConfig::secret(session(), SECRET) };
    let mut client = Client::new(&config, SimRng::new(seed, stream)).expect("it is in range");
    client.connect(now, &[LOBBY]).expect("it connects once");
    client
}

/// s since 1970.
fn unix(now: Time) -> u64 {
    1_800_000_000 + now.since(Time::ZERO).as_secs()
}

const RELAY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 4100);
const LOBBY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 4200);
/// The port of a player's session with the lobby.
const LOBBY_PORT: u16 = 5000;
/// Everything is in one process: there is nobody to hide it from.
const SECRET: [u8; 32] = *b"nobody is here but we ourselves.";
/// How often the lobby looks what is due.
const LOOK: Duration = Duration::from_millis(50);
/// A frame of a client.
const FRAME: Duration = Duration::from_micros(16_667);
