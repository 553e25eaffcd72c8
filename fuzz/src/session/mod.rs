//! Both ends of a session between which somebody sits who can change what is inside of the packets: the checksum is made right again, the
//! cipher is none under `cfg(fuzzing)`.

mod flow;
mod licence;
mod meddler;
mod seeds;

pub use seeds::seeds;

use super::log::SessionBook;
use super::script::Script;
use flow::{Flow, LANES};
use licence::Licence;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::Time;
use whitewater::message::channel::ChannelConfig;
use whitewater::pace::PaceConfig;
use whitewater::session::wire::{Accept, Connect, kind};
use whitewater::session::{
    Blob, ClientConfig, ClientState, Connection, Event, Random, Server, ServerConfig, Session, SessionConfig,
    SessionId, Suite, Target,
};

/// Operation bytes of a script, each with its arguments. Those with [`BACK`](op::BACK) are of what the server sends, or of the server.
pub mod op {
    /// Lets so many ms pass in which nothing arrives: u16.
    pub const WAIT: u8 = 0;
    /// The next datagram under way arrives.
    pub const ARRIVE: u8 = 1;
    /// The next datagram under way gets lost.
    pub const LOSE: u8 = 2;
    /// One that has arrived arrives again: which, u8.
    pub const AGAIN: u8 = 3;
    /// The body of the next DATA is replaced: length u8, the bytes; then it arrives.
    pub const BODY: u8 = 4;
    /// A byte of the body of the next DATA is changed: place u16, mask u8; then it arrives.
    pub const FLIP: u8 = 5;
    /// A frame is put in front of those of the next DATA (`World::frame`); then it arrives.
    pub const FRAME: u8 = 6;
    /// A byte of the next datagram is changed, whatever it is, and no checksum made right: place u16, mask u8; then it arrives.
    pub const DAMAGE: u8 = 7;
    /// Something is sent: what u8, how much u8.
    pub const SEND: u8 = 8;
    /// The end closes: code u8.
    pub const CLOSE: u8 = 9;
    /// The client's address changes.
    pub const MOVE: u8 = 10;
    /// What has arrived is taken.
    pub const TAKE: u8 = 11;
    /// For so many ms everything arrives, 10 ms later: u16.
    pub const GOOD: u8 = 12;
    /// How many there are: the low half of a byte means itself modulo this.
    pub const COUNT: u8 = 13;
    /// Of the server.
    pub const BACK: u8 = 0x10;
}

/// Two ends, the client and the server, and what an onlooker knows of each.
const CLIENT: usize = 0;
const SERVER: usize = 1;

struct World {
    suite: Suite,
    is_searching: bool,
    client: Session,
    server: Server,
    now: Time,
    session: Option<SessionId>,
    /// Under way to the other end, by which end sends, and what has arrived there.
    under_way: [VecDeque<Vec<u8>>; 2],
    arrived: [Vec<Vec<u8>>; 2],
    /// Where the client is, and bytes from each address and to it.
    address: SocketAddr,
    account: BTreeMap<SocketAddr, (usize, usize)>,
    proven: BTreeSet<SocketAddr>,
    /// The salts of both ends, which make the checksum.
    salts: [[u8; 8]; 2],
    /// What each end sends.
    flows: [Flow; 2],
    /// What each end has logged, if they do.
    books: Option<[SessionBook; 2]>,
    licences: [Licence; 2],
    /// Whether what arrives need not be what was sent, and whether the session need not live.
    meddled: bool,
    stuck: bool,
    /// When each end has received something last, and how much so far.
    heard: [(Time, u64); 2],
    closed: [bool; 2],
    live: fn() -> usize,
    baseline: usize,
}

/// Runs a script: flags, then operations [`op`].
///
/// # Panics
///
/// When a session breaks a promise.
pub fn session_script(script: &[u8]) {
    session_script_measured(script, || 0);
}

/// [`session_script`] where `live` counts the bytes allocated by the process, so that a promise about memory can be broken too.
///
/// # Panics
///
/// When a session breaks a promise.
pub fn session_script_measured(script: &[u8], live: fn() -> usize) {
    #[cfg(fuzzing)]
    #[cfg(feature = "crypto")]
    whitewater::session::seal::null::replace_ciphers();
    let mut script = Script::new(script);
    let mut world = World::new(script.u8(), live);
    let mut steps = 0;
    while !script.is_done() && steps < STEPS && world.now < END {
        world.step(&mut script);
        world.check_logs();
        world.check_memory();
        steps += 1;
    }
    world.finish();
}

impl World {
    fn new(flags: u8, live: fn() -> usize) -> Self {
        let baseline = live();
        let suite = suite(flags);
        let session = session_config(flags);
        let psk = suite.needs_psk().then_some([7; 32]);
        let server = ServerConfig {
            session: session.clone(),
            suites: vec![suite],
            psk,
            max_sessions: 2,
            ..ServerConfig::default()
        };
        let mut client =
            Session::new(&ClientConfig { session, ..ClientConfig::default() }, random(1)).expect("a config");
        let target = Target { suite, psk, ..Target::insecure(SERVER_ADDRESS.into()) };
        client.connect(Time::ZERO, target).expect("a target");
        let mut world = Self {
            suite,
            is_searching: flags & flag::SEARCH != 0,
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
            licences: <[Licence; 2]>::default(),
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

    fn step(&mut self, script: &mut Script<'_>) {
        let byte = script.u8();
        let end = usize::from(byte & op::BACK != 0);
        match (byte & 0xf) % op::COUNT {
            op::WAIT => self.wait(u64::from(script.u16()) % WAIT_MAX),
            op::ARRIVE => self.arrive(end),
            op::LOSE => drop(self.under_way[end].pop_front()),
            op::AGAIN => {
                let which = usize::from(script.u8()) % self.arrived[end].len().max(1);
                if let Some(datagram) = self.arrived[end].get(which).cloned() {
                    self.give(end, &datagram);
                }
            }
            op::BODY => {
                let len = script.u8().into();
                let bytes = script.bytes(len);
                self.meddle(end, |body| *body = bytes.to_vec());
            }
            op::FLIP => {
                let (place, mask) = (usize::from(script.u16()), script.u8());
                self.meddle(end, |body| {
                    let len = body.len().max(1);
                    body.iter_mut().skip(place % len).take(1).for_each(|byte| *byte ^= mask);
                });
            }
            op::FRAME => {
                let frame = self.frame(script);
                self.meddle(end, |body| drop(body.splice(..0, frame)));
            }
            op::DAMAGE => self.damage(end, script.u16().into(), script.u8()),
            op::SEND => {
                let (what, len) = (script.u8(), script.u8());
                let (now, mut flow) = (self.now, std::mem::take(&mut self.flows[end]));
                if let Some(connection) = self.connection(end) {
                    flow.send(now, connection, what, len.into());
                }
                self.flows[end] = flow;
                self.drain();
            }
            op::CLOSE => self.close(end, script.u8().into()),
            op::MOVE => {
                let port = self.address.port() % 60_000 + 1;
                self.address.set_port(port);
                self.stuck |= self.suite == Suite::Checked;
            }
            op::TAKE => self.take(end),
            _ => self.good(u64::from(script.u16()) % GOOD_MAX),
        }
    }

    fn arrive(&mut self, from: usize) {
        if let Some(datagram) = self.under_way[from].pop_front() {
            self.give(from, &datagram);
            if self.arrived[from].len() < AGAIN {
                self.arrived[from].push(datagram);
            }
        }
    }

    fn give(&mut self, from: usize, datagram: &[u8]) {
        if from == CLIENT {
            self.account.entry(self.address).or_default().0 += datagram.len();
            self.server.handle_datagram(self.now, self.address, datagram);
        } else {
            self.client.handle_datagram(self.now, SERVER_ADDRESS.into(), datagram);
        }
        self.drain();
    }

    /// Lets time pass for both ends; nothing arrives.
    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        let mut wakes = 0;
        loop {
            let timers = [self.server.poll_timeout(), self.client.poll_timeout()];
            let next = timers.into_iter().flatten().map(|(at, _)| at).min().filter(|at| *at <= end);
            // A timer may go off early and find nothing to do, but not for ever.
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

    /// Lets everything arrive, 10 ms after it was sent.
    fn good(&mut self, ms: u64) {
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

    fn close(&mut self, end: usize, code: u16) {
        self.licences[end].close(code);
        match (end, self.session) {
            (CLIENT, _) => self.client.close(self.now, code),
            (_, Some(id)) => self.server.close(self.now, id, code),
            _ => {}
        }
        self.drain();
    }

    fn take(&mut self, end: usize) {
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

    fn connection(&mut self, end: usize) -> Option<&mut Connection<Blob>> {
        if end == CLIENT { self.client.connection_mut() } else { self.server.session_mut(self.session?) }
    }

    /// Takes what both ends have to send and to tell.
    fn drain(&mut self) {
        let mut buf = Vec::new();
        let mut count = 0;
        loop {
            if let Some(to) = self.server.poll_transmit(self.now, &mut buf) {
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

    const fn longest(&self) -> usize {
        if self.is_searching { LONGEST as usize } else { 1200 }
    }

    /// Looks at what both ends have logged.
    fn check_logs(&mut self) {
        let Some(mut books) = self.books.take() else { return };
        for (end, book) in books.iter_mut().enumerate() {
            if let Some(connection) = self.connection(end) {
                book.check(connection);
            }
        }
        self.books = Some(books);
    }

    fn send(&mut self, from: usize, datagram: &[u8]) {
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

    /// No address that is not proven gets more bytes than came from it.
    fn check_sent(&mut self, to: SocketAddr, len: usize) {
        self.proven.extend(self.session.and_then(|id| Some(self.server.session(id)?.peer())));
        if !self.proven.contains(&to) {
            let (received, sent) = self.account.entry(to).or_default();
            *sent += len;
            assert!(*sent <= *received, "{sent} bytes to {to}, which sent {received}");
        }
    }

    /// Notes who has heard something.
    fn listen(&mut self) {
        let received = |connection: &Connection<Blob>| connection.stats().received + 1;
        let client = self.client.connection().map_or(0, received);
        let server = self.session.and_then(|id| self.server.session(id)).map_or(0, received);
        for (heard, count) in self.heard.iter_mut().zip([client, server]) {
            if heard.1 < count {
                *heard = (self.now, count);
            }
        }
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.server.poll_event() {
            if event == Event::Connected {
                assert!(self.session.replace(id).is_none(), "it connects once");
                self.listen();
            }
            assert_eq!(self.session, Some(id), "an event of a session that is not up");
            self.check_event(SERVER, event);
        }
        while let Some(event) = self.client.poll_event() {
            self.check_event(CLIENT, event);
        }
    }

    fn check_event(&mut self, end: usize, event: Event) {
        assert!(!self.closed[end], "{event:?} after the end");
        if let Event::Closed { reason, .. } = event {
            self.closed[end] = true;
            let silent = self.now.since(self.heard[end].0) >= session_config(0).timeout;
            self.licences[end].check(reason, &self.licences[1 - end], silent, self.now);
        }
    }

    fn check_memory(&self) {
        let held = (self.live)().saturating_sub(self.baseline);
        assert!(held <= MEMORY, "{held} bytes");
    }

    /// Lets an honest path have the rest, then none: what was sent arrives, and then both ends end.
    fn finish(mut self) {
        let is_up = |world: &Self| {
            let server = world.session.and_then(|id| world.server.session(id)).is_some_and(Connection::is_up);
            server && world.client.state() == ClientState::Up
        };
        if !self.meddled && !self.stuck && is_up(&self) {
            for _ in 0..300 {
                self.good(100);
                self.take(CLIENT);
                self.take(SERVER);
                if self.flows.iter().all(Flow::is_through) {
                    break;
                }
            }
            let through = self.flows.iter().all(Flow::is_through);
            assert!(through || !is_up(&self), "not delivered: {:?}", self.flows);
        }
        for _ in 0..25 {
            self.under_way.iter_mut().for_each(VecDeque::clear);
            self.wait(1000);
        }
        assert_eq!(self.client.state(), ClientState::Closed);
        assert!(self.server.is_empty(), "the server has a session");
        assert_eq!(self.closed, [true, self.session.is_some()]);
        self.check_memory();
    }
}

/// The first byte of a script.
pub mod flag {
    /// The session is up already.
    pub const CONNECTED: u8 = 1;
    /// With a cipher, in fuzzing by name only: addresses change, keys are updated.
    pub const CIPHER: u8 = 2;
    /// Keys are updated after 64 packets.
    pub const REKEYS: u8 = 4;
    /// Both ends look for longer datagrams.
    pub const SEARCH: u8 = 8;
    /// No events are logged.
    pub const QUIET: u8 = 16;
    /// Both ends heed marks.
    pub const ECN: u8 = 32;
}

const fn suite(flags: u8) -> Suite {
    if cfg!(feature = "crypto") && flags & flag::CIPHER != 0 { Suite::TOKEN } else { Suite::Checked }
}

fn session_config(flags: u8) -> SessionConfig {
    let default = SessionConfig::default();
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable_sequenced()];
    let key_update = if flags & flag::REKEYS != 0 { 64 } else { default.key_update };
    SessionConfig {
        lanes: vec![default.lanes[0]; LANES],
        channels,
        ecn: flags & flag::ECN != 0,
        pacing: (flags & flag::ECN != 0).then(|| PaceConfig { loss: Some(5), ..PaceConfig::default() }),
        path_mtu: (flags & flag::SEARCH != 0).then_some(LONGEST),
        timeout: Duration::from_secs(4),
        drain: Duration::from_secs(1),
        slow_peer: Duration::from_secs(5),
        key_update,
        ..default
    }
}

fn random(mut seed: u64) -> Random {
    Random::new(move |bytes| {
        bytes.fill_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed.to_be_bytes()[0]
        });
    })
}

fn address(number: u8) -> SocketAddr {
    ([10, 0, 0, number], 1000).into()
}

const SERVER_ADDRESS: ([u8; 4], u16) = ([10, 9, 9, 9], 4000);
/// Longest datagram that is looked for.
const LONGEST: u16 = 1472;
/// Operations and time after which a script is long enough, and ms of one operation.
const STEPS: usize = 300;
const END: Time = Time::from_millis(30_000);
const WAIT_MAX: u64 = 8192;
const GOOD_MAX: u64 = 1024;
/// Datagrams that both ends may send in a row.
const DATAGRAMS: usize = 2000;
/// Datagrams under way in one direction, and kept to arrive again.
const UNDER_WAY: usize = 64;
const AGAIN: usize = 16;
/// Bytes that both ends may hold with all that they are given, and this file with them.
const MEMORY: usize = 4 << 20;
