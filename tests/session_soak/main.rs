//! Sessions under drawn faults: what arrives is what was sent, in order where it was promised, and every session ends.
//!
//! A run is a seed. `SESSION_SOAK=<runs>` does more of them, `SESSION_SEED=<seed>` one.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test that panics has found something"
)]

#[cfg(test)]
mod common;

use common::ms;
use common::sessions::{SUITE, World, client_address, server_config, target};
use std::collections::BTreeSet;
use std::ops::Range;
use whitewater::Time;
use whitewater::message::channel::{ChannelConfig, Received};
use whitewater::session::{Blob, ClientState, Connection, Event, SessionConfig, Suite};
use whitewater::sim::{Bottleneck, Corruption, LinkConfig, Loss, Rng};

/// What one end has sent, and what the other has taken of it.
#[derive(Default)]
struct Flow {
    /// Numbers of the next message sent and expected, of each lane and the reliable channel.
    ordered: [(u32, u32); LANES + 1],
    /// The next datagram, and those that arrived.
    datagrams: (u32, BTreeSet<u32>),
    sequenced: (u32, Option<u32>),
    told: BTreeSet<u64>,
}

const LANES: usize = 2;

struct Draw(Rng);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

fn session() -> SessionConfig {
    let lane = SessionConfig::default().lanes[0];
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable_sequenced()];
    SessionConfig { lanes: vec![lane; LANES], channels, key_update: 256, ..SessionConfig::default() }
}

fn link(draw: &mut Draw) -> LinkConfig {
    let share = |draw: &mut Draw, percent: u64| draw.below(percent * 10 + 1) as f64 / 1000.0;
    let loss = match draw.below(4) {
        0 => Loss::None,
        1 => Loss::Random(share(draw, 60)),
        2 => Loss::Random(share(draw, 20)),
        _ => Loss::Bursts { good: ms(900), bad: ms(1 + draw.below(400)), in_good: 0.01, in_bad: 0.9 },
    };
    let corruption = if draw.one_in(3) {
        Corruption { flip: share(draw, 10), truncate: share(draw, 10) }
    } else {
        Corruption::default()
    };
    LinkConfig {
        delay: ms(draw.below(400)),
        jitter: ms(draw.below(100)),
        in_order: draw.one_in(2),
        loss,
        reorder: if draw.one_in(2) { share(draw, 20) } else { 0.0 },
        late: ms(draw.below(500)),
        duplicate: if draw.one_in(2) { share(draw, 20) } else { 0.0 },
        corruption,
        bottleneck: draw
            .one_in(3)
            .then(|| Bottleneck { rate: 300_000 + draw.below(5_000_000), queue: 64_000 }),
        ..LinkConfig::default()
    }
}

/// A message says which flow it is of, which one it is, and has more bytes that follow from both.
fn content(flow: u8, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![flow];
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend((0..len).map(|index| (index as u32 ^ number ^ u32::from(flow)).to_le_bytes()[0]));
    bytes
}

/// The number of a message that is one as a whole.
fn number(flow: u8, bytes: &[u8]) -> u32 {
    let number = u32::from_le_bytes(bytes[1..5].try_into().unwrap());
    assert_eq!(bytes, content(flow, number, bytes.len() - 5), "altered");
    number
}

fn send(now: Time, draw: &mut Draw, end: &mut Connection<Blob>, flow: &mut Flow) {
    for lane in 0..LANES {
        if draw.one_in(4) {
            let len = if draw.one_in(10) { draw.below(5000) } else { draw.below(200) };
            let next = &mut flow.ordered[lane].0;
            let sent = end.send(lane, &content(lane as u8, *next, len as usize));
            *next += u32::from(sent.is_ok());
        }
    }
    if draw.one_in(3) {
        let len = draw.below(900) as usize;
        let next = &mut flow.datagrams.0;
        *next += u32::from(end.send_datagram(&content(10, *next, len)).is_ok());
    }
    if draw.one_in(3) {
        let next = &mut flow.ordered[LANES].0;
        let message = Blob(content(11, *next, draw.below(300) as usize));
        *next += u32::from(end.send_message(0, now, message).is_ok());
        let next = &mut flow.sequenced.0;
        *next += u32::from(end.send_message(1, now, Blob(content(12, *next, 20))).is_ok());
    }
}

/// Takes what has arrived of `flow`.
fn take(end: &mut Connection<Blob>, flow: &mut Flow) {
    let mut buf = [0; 6000];
    for lane in 0..LANES {
        while let Ok(len) = end.recv(lane, &mut buf) {
            assert_eq!(number(lane as u8, &buf[..len]), flow.ordered[lane].1, "lane {lane}");
            flow.ordered[lane].1 += 1;
        }
    }
    while let Ok(len) = end.recv_datagram(&mut buf) {
        let number = number(10, &buf[..len]);
        assert!(number < flow.datagrams.0 && flow.datagrams.1.insert(number), "datagram {number} twice");
    }
    while let Some(Received::Message(Blob(bytes))) = end.recv_message(0) {
        assert_eq!(number(11, &bytes), flow.ordered[LANES].1, "channel");
        flow.ordered[LANES].1 += 1;
    }
    while let Some(Received::Message(Blob(bytes))) = end.recv_message(1) {
        let number = number(12, &bytes);
        assert!(flow.sequenced.1.is_none_or(|last| last < number), "out of sequence");
        flow.sequenced.1 = Some(number);
    }
}

struct Run {
    world: World,
    draw: Draw,
    /// From the client to the server, and back.
    up: Flow,
    down: Flow,
    step: u32,
    /// Whether the session may change its address, and whether it should have and could not.
    moves: bool,
    is_stuck: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut draw = Draw(Rng::new(seed, 7));
        let suite = if draw.one_in(3) { Suite::Checked } else { SUITE };
        let mut world = World::new(seed, &server_config(&session(), suite));
        let (up, down) = (link(&mut draw), link(&mut draw));
        world.add(&up, &down, &session(), target(suite));
        Self {
            world,
            draw,
            up: Flow::default(),
            down: Flow::default(),
            step: 0,
            moves: suite != Suite::Checked,
            is_stuck: false,
        }
    }

    /// Both ends' data, as far as they are up.
    fn exchange(&mut self, sends: bool) {
        let Self { world, draw, up, down, step, .. } = self;
        *step += 1;
        let now = world.now;
        if let Some(client) = world.clients[0].session.connection_mut() {
            if sends {
                send(now, draw, client, up);
            }
            take(client, down);
            while let Some(id) = client.pop_delivered() {
                up.told.insert(id.0);
            }
        }
        if let Some(&id) = world.sessions.first()
            && let Some(server) = world.server.session_mut(id)
        {
            if sends {
                send(now, draw, server, down);
            }
            take(server, up);
            while let Some(id) = server.pop_delivered() {
                down.told.insert(id.0);
            }
        }
        world.drain();
    }

    fn fault(&mut self) {
        if !self.world.is_up() {
            return;
        }
        let dead = LinkConfig { loss: Loss::Random(1.0), ..LinkConfig::default() };
        let may_move = self.moves || self.draw.one_in(6);
        match self.draw.below(5) {
            0 if may_move => {
                let port = 1000 + self.step as u16;
                self.world.rebind(0, client_address(1, port));
                self.is_stuck |= !self.moves;
            }
            0 | 1 => {
                let (up, down) = (link(&mut self.draw), link(&mut self.draw));
                self.world.set_links(0, &up, &down);
            }
            2 => {
                let (up, down) = (link(&mut self.draw), link(&mut self.draw));
                self.world.set_links(0, &dead, &dead);
                let most = if self.draw.one_in(4) { 30_000 } else { 5_000 };
                self.pass(100..most, false);
                self.world.set_links(0, &up, &down);
            }
            3 => {
                self.world.clients[0].frozen = true;
                self.pass(100..12_000, false);
                self.world.clients[0].frozen = false;
            }
            _ => {
                self.world.frozen = true;
                self.pass(100..12_000, false);
                self.world.frozen = false;
            }
        }
    }

    fn pass(&mut self, span: Range<u64>, sends: bool) {
        let ms = span.start + self.draw.below(span.end - span.start);
        self.world.run(ms);
        self.exchange(sends);
    }

    fn are_up(&self) -> bool {
        let Some(&id) = self.world.sessions.first() else { return false };
        let server = self.world.server.session(id).is_some_and(Connection::is_up);
        server && self.world.clients[0].session.connection().is_some_and(Connection::is_up)
    }

    fn go(&mut self) -> &'static str {
        for _ in 0..200 {
            self.pass(1..40, true);
            if self.draw.one_in(60) {
                self.fault();
            }
        }
        let good = LinkConfig::with_rtt(ms(50));
        self.world.set_links(0, &good, &good);
        self.world.run(4000); // until what waits in the queues of the paths is through
        self.exchange(false);
        let outcome = if self.are_up() && !self.is_stuck { self.drains() } else { "lost" };
        for (ours, flow) in [(true, &self.up), (false, &self.down)] {
            let stray = flow.told.iter().find(|id| !flow.datagrams.1.contains(&(**id as u32)));
            assert!(stray.is_none(), "told of a datagram that did not arrive: {stray:?}, {ours}");
        }
        self.ends();
        outcome
    }

    /// With the faults over, everything reliable arrives soon.
    fn drains(&mut self) -> &'static str {
        for _ in 0..250 {
            self.pass(20..21, false);
            let done = |flow: &Flow| flow.ordered.iter().all(|(sent, taken)| sent == taken);
            if done(&self.up) && done(&self.down) {
                return "drained";
            }
        }
        let events = (self.world.events.last(), self.world.clients[0].events.last());
        panic!("undelivered: {:?} {:?}, {events:?}", self.up.ordered, self.down.ordered);
    }

    /// One end closes, or the path breaks: both ends end and tell so once, and nothing is left.
    fn ends(&mut self) {
        let now = self.world.now;
        match self.draw.below(3) {
            0 => self.world.clients[0].session.close(now, 1),
            1 => {
                if let Some(&id) = self.world.sessions.first() {
                    self.world.server.close(now, id, 2);
                }
            }
            _ => {
                let dead = LinkConfig { loss: Loss::Random(1.0), ..LinkConfig::default() };
                self.world.set_links(0, &dead, &dead);
            }
        }
        self.world.drain();
        for _ in 0..40 {
            self.pass(900..901, false);
        }
        assert_eq!(self.world.clients[0].session.state(), ClientState::Closed);
        let is_closed = |event: &Event| matches!(event, Event::Closed { .. });
        let client = self.world.clients[0].events.iter().filter(|(_, event)| is_closed(event)).count();
        let server = self.world.events.iter().filter(|(.., event)| is_closed(event)).count();
        assert_eq!((client, server), (1, self.world.sessions.len()));
        assert!(self.world.server.is_empty(), "{} sessions are left", self.world.server.len());
    }
}

#[test]
fn whatever_the_network_does_sessions_keep_their_promises() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("SESSION_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("SESSION_SOAK").unwrap_or(300),
    };
    let (mut drained, mut lost, count) = (0, 0, seeds.end() - seeds.start() + 1);
    for seed in seeds {
        let mut run = Run::new(seed);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.go()));
        match outcome {
            Ok("drained") => drained += 1,
            Ok(_) => lost += 1,
            Err(error) => {
                eprintln!("seed {seed}, step {}, at {}", run.step, run.world.now);
                std::panic::resume_unwind(error);
            }
        }
    }
    println!("{drained} sessions drained, {lost} were lost to their faults");
    assert!(drained * 2 > count || count < 10, "{drained} of {count} lived");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let trace = |seed| {
        let mut run = Run::new(seed);
        run.world.taps = true;
        run.go();
        (run.world.now, run.world.tap)
    };
    assert!(trace(5) == trace(5));
}
