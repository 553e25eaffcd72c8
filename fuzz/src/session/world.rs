//! The two ends of a fuzzed session, the path between them, and time.

use super::super::log::SessionBook;
use super::flag;
use super::flow::{Flow, channels};
use super::licence::Licence;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::inside::session::wire::{Accept, Connect, kind};
use whitewater::machine::Machine as _;
use whitewater::pace::MaxRate;
use whitewater::session::{Client, Connection, Server, Suite};
use whitewater::{ClientConfig, Repairs, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::SimRng;

/// The indices of the client and of the server, with what an observer knows about each.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

pub(super) struct World {
    pub(super) suite: Suite,
    pub(super) is_searching: bool,
    pub(super) repairs: bool,
    pub(super) client: Client,
    pub(super) server: Server,
    pub(super) now: Time,
    pub(super) session: Option<SessionId>,
    /// Datagrams in flight to the other end, by sender, and those that have arrived there.
    pub(super) under_way: [VecDeque<Vec<u8>>; 2],
    pub(super) arrived: [Vec<Vec<u8>>; 2],
    /// The client's address, and bytes received from each address and sent to it.
    pub(super) address: SocketAddr,
    pub(super) account: BTreeMap<SocketAddr, (usize, usize)>,
    pub(super) proven: BTreeSet<SocketAddr>,
    /// The salts of both ends, from which the checksum is made.
    pub(super) salts: [[u8; 8]; 2],
    /// What each end sends.
    pub(super) flows: [Flow; 2],
    /// What each end has logged, if they do.
    pub(super) books: Option<[SessionBook; 2]>,
    pub(super) licences: [Licence; 2],
    /// Whether received data may differ from what was sent, and whether the session may die.
    pub(super) meddled: bool,
    pub(super) stuck: bool,
    /// When each end last received something, and how much so far.
    pub(super) heard: [(Time, u64); 2],
    pub(super) closed: [bool; 2],
    pub(super) live: fn() -> usize,
    pub(super) baseline: usize,
}

impl World {
    pub(super) fn new(flags: u8, live: fn() -> usize) -> Self {
        let baseline = live();
        let suite = suite(flags);
        let session = session_config(flags);
        let psk = suite.needs_psk().then(|| [7; 32].into());
        let server = ServerConfig {
            suites: vec![suite],
            psk: psk.clone(),
            max_sessions: 2,
            ..ServerConfig::insecure(session.clone())
        };
        let config = ClientConfig { suite, psk, ..ClientConfig::insecure(session) };
        let mut client = Client::new(&config, random(1)).expect("a config");
        client.connect(Time::ZERO, &[SERVER_ADDRESS.into()]).expect("it is new");
        let mut world = Self {
            suite,
            is_searching: flags & flag::SEARCH != 0,
            repairs: flags & flag::REPAIRS != 0,
            client,
            server: Server::new(&server, random(2)).expect("a config"),
            now: Time::ZERO,
            session: None,
            under_way: <[VecDeque<_>; 2]>::default(),
            arrived: <[Vec<_>; 2]>::default(),
            address: address(0),
            account: BTreeMap::new(),
            proven: BTreeSet::new(),
            salts: [[0; 8]; 2],
            flows: <[Flow; 2]>::default(),
            books: (flags & flag::QUIET == 0).then(Default::default),
            licences: [(); 2].map(|()| Licence::new(flags & flag::REPAIRS != 0)),
            meddled: false,
            stuck: false,
            heard: [(Time::ZERO, 0); 2],
            closed: [false; 2],
            live,
            baseline,
        };
        if flags & flag::CONNECTED != 0 {
            world.good(200);
        }
        world
    }

    pub(super) fn arrive(&mut self, from: usize) {
        if let Some(datagram) = self.under_way[from].pop_front() {
            self.give(from, &datagram);
            if self.arrived[from].len() < AGAIN {
                self.arrived[from].push(datagram);
            }
        }
    }

    pub(super) fn give(&mut self, from: usize, datagram: &[u8]) {
        if from == CLIENT {
            self.account.entry(self.address).or_default().0 += datagram.len();
            self.server.handle_datagram(self.now, self.address.into(), &mut datagram.to_vec());
        } else {
            let from = SocketAddr::from(SERVER_ADDRESS);
            self.client.handle_datagram(self.now, from.into(), &mut datagram.to_vec());
        }
        self.drain();
    }

    /// Lets time pass for both ends without any arrivals.
    pub(super) fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        let mut wakes = 0;
        loop {
            let timers = [self.server.poll_timeout(), self.client.poll_timeout()];
            let next = timers.into_iter().flatten().min().filter(|at| *at <= end);
            // A timer may fire early and find nothing to do, but not forever.
            self.now =
                next.map_or(end, |at| self.now.max(at) + Duration::from_micros(1)).min(end).max(self.now);
            self.server.handle_timeout(self.now);
            self.client.handle_timeout(self.now);
            self.drain();
            wakes += 1;
            assert!(wakes <= 100 + 2 * ms, "{wakes} timers in {ms} ms");
            if next.is_none() || self.now >= end {
                return;
            }
        }
    }

    /// Delivers everything, 10 ms after it was sent.
    pub(super) fn good(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(10) {
            let mut sent = std::mem::take(&mut self.under_way);
            self.wait(10);
            for (from, sent) in sent.iter_mut().enumerate() {
                for datagram in sent.drain(..) {
                    self.give(from, &datagram);
                }
            }
        }
    }

    pub(super) fn close(&mut self, end: usize, code: u16) {
        self.licences[end].close(code);
        match (end, self.session) {
            (CLIENT, _) => self.client.close(self.now, code),
            (_, Some(id)) => self.server.close(self.now, id, code),
            _ => {}
        }
        self.drain();
    }

    pub(super) fn take(&mut self, end: usize) {
        let (other, meddled) = (1 - end, self.meddled);
        let mut flow = std::mem::take(&mut self.flows[other]);
        if let Some(connection) = self.connection(end) {
            flow.take(connection, meddled);
        }
        if let Some(sender) = self.connection(other) {
            flow.told(sender, meddled);
        }
        self.flows[other] = flow;
        self.drain();
    }

    pub(super) fn connection(&mut self, end: usize) -> Option<&mut Connection> {
        if end == CLIENT { self.client.connection_mut() } else { self.server.connection_mut(self.session?) }
    }

    /// Takes the datagrams and events of both ends.
    pub(super) fn drain(&mut self) {
        let mut buf = Vec::new();
        let mut count = 0;
        loop {
            buf.clear();
            if let Some(to) = self.server.poll_transmit(self.now, &mut buf).map(|transmit| transmit.address) {
                self.check_sent(to, buf.len());
                if to == self.address {
                    self.send(SERVER, &buf);
                }
            } else if self.client.poll_transmit(self.now, &mut buf).is_some() {
                self.send(CLIENT, &buf);
            } else {
                break;
            }
            count += 1;
            assert!(count < DATAGRAMS, "what they have to say does not end");
        }
        self.listen();
        self.take_events();
    }

    pub(super) const fn longest(&self) -> usize {
        if self.is_searching { LONGEST as usize } else { 1200 }
    }

    pub(super) fn send(&mut self, from: usize, datagram: &[u8]) {
        assert!(datagram.len() <= self.longest(), "{} bytes", datagram.len());
        let salt = match datagram.first() {
            Some(&kind::CONNECT) => Connect::decode(datagram).ok().map(|connect| connect.msg1),
            Some(&kind::ACCEPT) => Accept::decode(datagram).ok().map(|accept| accept.msg2),
            _ => None,
        };
        if let Some(salt) = salt.and_then(|message| message.first_chunk()) {
            self.salts[from] = *salt;
        }
        self.under_way[from].push_back(datagram.to_vec());
        if self.under_way[from].len() > UNDER_WAY {
            self.under_way[from].pop_front();
        }
    }
}

const fn suite(flags: u8) -> Suite {
    match (cfg!(feature = "crypto") && flags & flag::CIPHER != 0, flags & flag::HYBRID != 0) {
        (true, true) => Suite::HYBRID_TOKEN,
        (true, false) => Suite::TOKEN,
        _ => Suite::Checked,
    }
}

/// So many repairs that they get in the way.
const REPAIRS: Repairs = Repairs::Budget(200);

pub(super) fn session_config(flags: u8) -> SessionConfig {
    let default = SessionConfig::default();
    let key_update = if flags & flag::REKEYS != 0 { 64 } else { default.key_update };
    SessionConfig {
        channels: channels(),
        ecn: flags & flag::ECN != 0,
        max_rate: (flags & flag::ECN != 0).then(|| MaxRate { loss: Some(5), ..MaxRate::new(30) }),
        repairs: if flags & flag::REPAIRS != 0 { REPAIRS } else { Repairs::Off },
        path_mtu: (flags & flag::SEARCH != 0).then_some(LONGEST),
        timeout: Duration::from_secs(4),
        drain: Duration::from_secs(1),
        slow_peer: Duration::from_secs(5),
        key_update,
        ..default
    }
}

fn random(seed: u64) -> SimRng {
    SimRng::new(seed, 1)
}

pub(super) fn address(number: u8) -> SocketAddr {
    ([10, 0, 0, number], 1000).into()
}

pub(super) const SERVER_ADDRESS: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
/// Longest datagram to search for.
const LONGEST: u16 = 1472;
/// Most datagrams that both ends may send in a row.
const DATAGRAMS: usize = 2000;
/// Most datagrams in flight in one direction, and kept to arrive again.
const UNDER_WAY: usize = 64;
const AGAIN: usize = 16;
