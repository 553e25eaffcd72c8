//! A day of a server with a thousand clients in virtual time, all of whom have a bad path, move, leave, crash and come
//! back, while strangers send what they like.
//!
//! Traffic is sparse, so that a day takes minutes: a message each way a minute, and a ping each way every 10 s.

use crate::common::machine::Whole as _;
use crate::common::ms;
use crate::common::sessions::{SUITE, client_config, random, server_address, server_config};
use crate::draw::Draw;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::machine::Machine as _;
use whitewater::session::{Client, ClientState, Connection, Server};
use whitewater::{Channel, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

pub(crate) struct Day {
    pub(crate) now: Time,
    draw: Draw,
    config: (ServerConfig, ClientConfig),
    pub(crate) server: Server,
    server_wakes: Time,
    players: Vec<Player>,
    /// The server's sessions that are up, and the number of the next message of each.
    sessions: BTreeMap<SessionId, Talk>,
    agenda: BinaryHeap<Reverse<(Time, u64, What)>>,
    order: u64,
    /// Some datagrams of all that were sent, for strangers: where from, or to, and what.
    past: Vec<(bool, SocketAddr, Vec<u8>)>,
    pub(crate) tally: BTreeMap<&'static str, u64>,
    /// What differs from run to run.
    randoms: u64,
    /// Who is over stays away.
    is_ending: bool,
    buf: Vec<u8>,
}

struct Player {
    client: Client,
    address: SocketAddr,
    wakes: Time,
    /// Nothing of it comes through until then.
    cut_off: Time,
    talk: Talk,
    /// When a new session begins. `None`: there is one.
    back_at: Option<Time>,
}

/// The numbers of the next messages of one end: sent, heard.
#[derive(Clone, Copy, Default)]
struct Talk(u32, u32);

#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum What {
    ToServer(SocketAddr, Vec<u8>),
    ToPlayer(usize, SocketAddr, Vec<u8>),
    /// A timer of a player, or of the server.
    Wake(usize),
    WakeServer,
    /// Somebody says something, or does something else.
    Speak(usize),
    Fault(usize),
    Stranger,
    Restart,
}

impl Day {
    pub(crate) fn new(seed: u64, players: usize) -> Self {
        let session = SessionConfig {
            channels: vec![CHAT.into(), NEWS.into()],
            keepalive: ms(10_000),
            timeout: ms(60_000),
            path_mtu: None,
            ..SessionConfig::default()
        };
        let server =
            ServerConfig { reset_key: Some([9; 16]), max_sessions: 2048, ..server_config(&session, SUITE) };
        let client = ClientConfig { session, ..client_config(SUITE) };
        let mut day = Self {
            now: Time::from_millis(1000),
            draw: Draw(SimRng::new(seed, 7)),
            server: Server::new(&server, random(seed, 0)).unwrap(),
            config: (server, client),
            server_wakes: NEVER,
            players: Vec::new(),
            sessions: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            order: 0,
            past: Vec::new(),
            tally: BTreeMap::new(),
            randoms: 0,
            is_ending: false,
            buf: Vec::new(),
        };
        for index in 0..players {
            let client = day.client();
            let address = ([10, 0, (index / 250) as u8, (index % 250) as u8], 1000).into();
            let (wakes, cut_off) = (NEVER, Time::ZERO);
            // They come over the first minute.
            let begin = day.now + ms(day.draw.below(60_000));
            let (talk, back_at) = (Talk::default(), Some(begin));
            day.players.push(Player { client, address, wakes, cut_off, talk, back_at });
            day.plan(begin, What::Wake(index));
            day.plan_speech(index);
            day.plan_fault(index);
        }
        day.plan(day.now, What::Stranger);
        day.plan(day.now + RESTARTS, What::Restart);
        day
    }

    /// Lets this much time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(Reverse((at, ..))) = self.agenda.peek()
            && *at <= end
        {
            let Reverse((at, _, what)) = self.agenda.pop().unwrap();
            self.now = self.now.max(at);
            self.happen(what);
        }
        self.now = end;
    }

    fn happen(&mut self, what: What) {
        match what {
            What::ToServer(from, bytes) => {
                self.server.give(self.now, from, &bytes);
                self.poll_server();
            }
            What::ToPlayer(index, address, bytes) => {
                let Player { client, address: here, cut_off, .. } = &mut self.players[index];
                if *here == address && *cut_off <= self.now {
                    client.give(self.now, server_address(), &bytes);
                    self.poll(index);
                }
            }
            What::Wake(index) if self.players[index].back_at.is_some_and(|at| at <= self.now) => {
                self.begin(index);
            }
            What::Wake(index) if self.players[index].wakes <= self.now => {
                self.players[index].wakes = NEVER;
                self.players[index].client.handle_timeout(self.now);
                self.poll(index);
            }
            What::WakeServer if self.server_wakes <= self.now => {
                self.server_wakes = NEVER;
                self.server.handle_timeout(self.now);
                self.poll_server();
            }
            What::Wake(_) | What::WakeServer => {} // it was moved
            What::Speak(index) => self.speak(index),
            What::Fault(index) => self.fault(index),
            What::Stranger => self.stranger(),
            What::Restart => {
                self.count("restarts of the server");
                self.randoms += 1;
                self.server = Server::new(&self.config.0, random(1, self.randoms)).unwrap();
                self.server_wakes = NEVER;
                self.sessions.clear();
                self.plan(self.now + RESTARTS, What::Restart);
            }
        }
    }

    fn plan(&mut self, at: Time, what: What) {
        self.order += 1;
        self.agenda.push(Reverse((at, self.order, what)));
    }

    fn plan_speech(&mut self, index: usize) {
        let at = self.now + ms(30_000 + self.draw.below(60_000));
        self.plan(at, What::Speak(index));
    }

    fn plan_fault(&mut self, index: usize) {
        let at = self.now + ms(self.draw.below(20 * 60_000));
        self.plan(at, What::Fault(index));
    }

    fn client(&mut self) -> Client {
        self.randoms += 1;
        Client::new(&self.config.1, random(2, self.randoms)).unwrap()
    }

    /// A player starts to connect.
    fn begin(&mut self, index: usize) {
        self.count("joined");
        let mut client = self.client();
        client.connect(self.now, &[server_address()]).unwrap();
        let Player { client: old, talk, back_at, .. } = &mut self.players[index];
        (*old, *talk, *back_at) = (client, Talk::default(), None);
        self.poll(index);
    }

    fn speak(&mut self, index: usize) {
        let player = &mut self.players[index];
        let len = 8 + self.draw.below(200) as usize;
        if let Some(session) = player.client.connection_mut().filter(|session| session.is_connected()) {
            let Talk(next, _) = &mut player.talk;
            *next += u32::from(session.send(CHAT, &content(*next, len)).is_ok());
            let _ = session.send(NEWS, &content(*next, len)); // nobody minds if there is no room
            self.poll(index);
        }
        self.plan_speech(index);
    }

    fn fault(&mut self, index: usize) {
        let now = self.now;
        let port = 1000 + self.draw.below(60_000) as u16;
        match self.draw.below(8) {
            0..3 => {
                self.count("moves");
                self.players[index].address.set_port(port);
            }
            3 => {
                self.count("partitions");
                self.players[index].cut_off = now + self.draw.any_span(200_000);
            }
            4 => {
                self.count("goodbyes");
                self.players[index].client.close(now, 1);
                self.poll(index);
            }
            5 => {
                self.count("crashes");
                self.players[index].address.set_port(port);
                self.begin(index);
            }
            6 => {
                self.count("kicks");
                let address = self.players[index].address;
                let is_there = |id: &&SessionId| self.server.peer_addr(**id) == Some(address);
                if let Some(id) = self.sessions.keys().find(is_there).copied() {
                    self.server.kick(now, id, 2, "").unwrap();
                    self.poll_server();
                }
            }
            _ => {
                self.count("replays");
                let back = (index + 1) % self.past.len().max(1);
                if let Some((true, address, bytes)) = self.past.get(back).cloned() {
                    self.server.give(now, address, &bytes);
                    self.poll_server();
                }
            }
        }
        self.plan_fault(index);
    }

    /// Somebody else sends something, with any address, to the server or to a player.
    fn stranger(&mut self) {
        self.count("datagrams of strangers");
        let pick = self.draw.below(self.past.len().max(1) as u64) as usize;
        let (is_up, address, mut bytes) =
            self.past.get(pick).cloned().unwrap_or((true, server_address(), vec![0; 40]));
        match self.draw.below(4) {
            0 => {} // as it was
            1 => bytes.iter_mut().for_each(|byte| *byte = self.draw.below(256) as u8),
            2 => bytes.truncate(self.draw.below(1 + bytes.len() as u64) as usize),
            _ => {
                for _ in 0..=self.draw.below(3) {
                    let at = self.draw.below(bytes.len().max(1) as u64) as usize;
                    bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << self.draw.below(8));
                }
            }
        }
        if is_up {
            let elsewhere = SocketAddr::from(([10, 1, self.draw.below(4) as u8, 1], 9));
            let from = if self.draw.one_in(2) { address } else { elsewhere };
            self.server.give(self.now, from, &bytes);
            self.poll_server();
        } else if let Some(index) = self.players.iter().position(|player| player.address == address) {
            self.players[index].client.give(self.now, server_address(), &bytes);
            self.poll(index);
        }
        let next = self.now + ms(50 + self.draw.below(100));
        self.plan(next, What::Stranger);
    }

    /// Takes what a player's client sends and reports.
    fn poll(&mut self, index: usize) {
        let (now, mut buf) = (self.now, std::mem::take(&mut self.buf));
        loop {
            let player = &mut self.players[index];
            while let Some(event) = player.client.poll_event() {
                let is_over = matches!(event, Event::Closed { .. });
                if let Some(session) = player.client.connection_mut() {
                    hear(session, &mut player.talk, false);
                }
                if is_over {
                    *self.tally.entry(how(event)).or_default() += 1;
                }
                if is_over && !self.is_ending {
                    let at = now + ms(self.draw.below(20_000));
                    player.back_at = Some(at);
                    self.order += 1;
                    self.agenda.push(Reverse((at, self.order, What::Wake(index))));
                }
            }
            match player.client.emit_to(now, &mut buf) {
                Some(_) => {}
                None if player.client.has_events() => continue,
                None => break,
            }
            let (from, is_cut_off) = (player.address, player.cut_off > now);
            self.keep(true, from, &buf);
            if !is_cut_off {
                self.send(&buf, |bytes| What::ToServer(from, bytes));
            }
        }
        self.buf = buf;
        let player = &mut self.players[index];
        let due = player.client.poll_timeout().unwrap_or(NEVER);
        if due < player.wakes {
            player.wakes = due;
            self.plan(due, What::Wake(index));
        }
    }

    /// Takes what the server sends and reports.
    fn poll_server(&mut self) {
        let (now, mut buf) = (self.now, std::mem::take(&mut self.buf));
        loop {
            while let Some((id, event)) = self.server.poll_event() {
                if event == Event::Connected {
                    assert!(self.sessions.insert(id, Talk::default()).is_none(), "{id:?} comes up twice");
                }
                let talk = self.sessions.get_mut(&id).expect("a session that is up");
                hear(self.server.connection_mut(id).unwrap(), talk, true);
                if matches!(event, Event::Closed { .. }) {
                    self.sessions.remove(&id);
                }
            }
            let to = match self.server.emit_to(now, &mut buf) {
                Some(to) => to,
                None if self.server.has_events() => continue,
                None => break,
            };
            self.keep(false, to, &buf);
            if let Some(index) = player_at(to).filter(|index| *index < self.players.len()) {
                self.send(&buf, |bytes| What::ToPlayer(index, to, bytes));
            }
        }
        self.buf = buf;
        let due = self.server.poll_timeout().unwrap_or(NEVER);
        if due < self.server_wakes {
            self.server_wakes = due;
            self.plan(due, What::WakeServer);
        }
    }

    /// Sends a datagram over a path that loses 2 %, doubles 1 %, delays 3 % beyond others, and damages 0.5 %.
    fn send(&mut self, bytes: &[u8], what: impl Fn(Vec<u8>) -> What) {
        self.count("datagrams");
        let dice = self.draw.below(1000);
        let mut bytes = bytes.to_vec();
        let mut at = self.now + ms(15 + self.draw.below(10));
        match dice {
            0..20 => return,
            20..30 => self.plan(at + ms(7), what(bytes.clone())),
            30..60 => at = at + ms(self.draw.below(400)),
            60..65 => {
                let index = self.draw.below(bytes.len() as u64) as usize;
                bytes[index] ^= 1 << self.draw.below(8);
            }
            _ => {}
        }
        self.plan(at, what(bytes));
    }

    /// Keeps a few datagrams for strangers.
    fn keep(&mut self, is_up: bool, address: SocketAddr, bytes: &[u8]) {
        if self.past.len() < PAST {
            self.past.push((is_up, address, bytes.to_vec()));
        } else if self.draw.one_in(50) {
            let index = self.draw.below(PAST as u64) as usize;
            self.past[index] = (is_up, address, bytes.to_vec());
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    pub(crate) fn up(&self) -> usize {
        self.players.iter().filter(|player| player.client.is_connected()).count()
    }

    /// Everybody leaves for good.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
        self.agenda.retain(|Reverse((.., what))| {
            !matches!(what, What::Speak(_) | What::Fault(_) | What::Stranger | What::Restart)
        });
        for index in 0..self.players.len() {
            self.players[index].back_at = None;
            self.players[index].client.close(self.now, 0);
            self.poll(index);
        }
        self.pass(Duration::from_secs(120));
        let states: Vec<_> = self.players.iter().map(|player| player.client.state()).collect();
        assert!(states.iter().all(|state| *state == ClientState::Closed), "{states:?}");
    }
}

/// Takes what has arrived: everything in order, once. The server says back what it hears.
fn hear(session: &mut Connection, talk: &mut Talk, answers: bool) {
    while let Some(message) = session.recv(CHAT) {
        let Talk(said, heard) = talk;
        assert!(message.starts_with(&heard.to_le_bytes()), "message {heard}");
        assert_eq!(message, content(*heard, message.len()));
        *heard += 1;
        if answers {
            *said += u32::from(session.send(CHAT, &message).is_ok());
        }
    }
    while session.recv(NEWS).is_some() {}
}

fn content(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(len.max(4), number.to_le_bytes()[0]);
    bytes
}

fn player_at(address: SocketAddr) -> Option<usize> {
    let SocketAddr::V4(address) = address else { return None };
    let [10, 0, high, low] = address.ip().octets() else { return None };
    Some(usize::from(high) * 250 + usize::from(low))
}

fn how(event: Event) -> &'static str {
    match event {
        Event::Closed { reason: CloseReason::Local(_), .. } => "closed",
        Event::Closed { reason: CloseReason::Peer(_), .. } => "closed by the server",
        Event::Closed { reason: CloseReason::Timeout, .. } => "timed out",
        Event::Closed { reason: CloseReason::ServerForgot, .. } => "forgotten",
        Event::Closed { reason: CloseReason::ConnectTimeout, .. } => "not connected",
        Event::Closed { reason: CloseReason::DeadLink, .. } => "dead link",
        Event::Closed { reason: CloseReason::Denied(_), .. } => "denied",
        _ => "ended otherwise",
    }
}

const CHAT: Channel = Channel::ordered(0);
const NEWS: Channel = Channel::sequenced(1);
const RESTARTS: Duration = Duration::from_secs(2 * 3600 + 600);
/// Datagrams kept for strangers.
const PAST: usize = 512;
/// No timer.
const NEVER: Time = Time::from_micros(u64::MAX);
