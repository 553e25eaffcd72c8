//! One run: a session, and those that follow it, under random faults.

use crate::common::ms;
use crate::common::sessions::{SUITE, client_address, client_config, in_packets, server_config};
use crate::draw::{Draw, Fault};
use crate::flow::{Flow, ORDERED, SEQUENCED};
use crate::net::{CLIENT, Net, SERVER};
use std::time::Duration;
use whitewater::session::{ClientState, Connection, Suite, Undelivered, code};
use whitewater::{ClientConfig, CloseReason, Event, Repairs, ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::{LinkConfig, Loss, SimRng};

pub(crate) struct Run {
    pub(crate) net: Net,
    pub(crate) step: u32,
    /// The faults so far, in order.
    pub(crate) faults: Vec<Fault>,
    draw: Draw,
    suite: Suite,
    server: ServerConfig,
    client: ClientConfig,
    /// Each session of the client has a generation. The flows go from the client to the server and back.
    generation: u8,
    /// The server's session with this client, which may be closed.
    known: Option<SessionId>,
    up: Flow,
    down: Flow,
    /// Whether an end reads.
    reads: [bool; 2],
    excuse: Excuse,
    moves: Vec<Time>,
}

/// Reasons for which a session may have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Excuse {
    /// Nothing came through for so long that it may have timed out.
    silence: bool,
    /// Much was lost.
    rough: bool,
    /// An end did not read.
    unread: bool,
    /// The server has no state for it.
    forgotten: bool,
    /// The codes with which an end closed it.
    closed: [Option<u16>; 2],
    /// The client is where the server does not follow it.
    stuck: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// Everything arrived.
    Drained,
    /// Faults ended the session or kept it from connecting.
    Lost,
}

pub(crate) fn session(draw: &mut Draw) -> SessionConfig {
    let [first, second, packed] = ORDERED;
    let channels = vec![first.into(), second.into(), in_packets(packed), SEQUENCED.into()];
    let is_even = draw.one_in(2);
    let key_update = if is_even { 64 } else { 256 };
    let repairs = if is_even { Repairs::Budget(50) } else { Repairs::Off };
    SessionConfig { channels, key_update, repairs, ..SessionConfig::default() }
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let mut draw = Draw(SimRng::new(seed, 7));
        let suite = if draw.one_in(3) { Suite::Checked } else { SUITE };
        let session = session(&mut draw);
        let reset_key = draw.one_in(2).then_some([9; 16]);
        let server = ServerConfig {
            reset_key,
            accepts_per_second: 1000,
            accept_burst: 1000,
            ..server_config(&session, suite)
        };
        let client = ClientConfig { session, ..client_config(suite) };
        // The clock on the wire has 32 bits of milliseconds.
        let wraps_in = draw.below(4000);
        let start = if draw.one_in(3) { (1 << 32) - wraps_in } else { 2 * 3_600_000 };
        let mut net = Net::new(seed, Time::from_millis(start), &server, &client);
        net.set_links([draw.link(), draw.link()]);
        net.rebind(client_address(1, 1000));
        let mut run = Self {
            net,
            step: 0,
            faults: Vec::new(),
            draw,
            suite,
            server,
            client,
            generation: 0,
            known: None,
            up: Flow::default(),
            down: Flow::default(),
            reads: [true; 2],
            excuse: Excuse::default(),
            moves: Vec::new(),
        };
        run.begin();
        run
    }

    pub(crate) fn go(&mut self) -> Outcome {
        let mut is_up = self.comes_up(true);
        for _ in 0..PASSES {
            if !is_up {
                break;
            }
            self.pass(1..40, true);
            if self.draw.one_in(8) {
                let fault = self.draw.fault();
                is_up = self.suffer(fault);
            }
            if is_up && !self.is_up() {
                self.check_end();
                is_up = self.again();
            }
        }
        self.net.frozen = [false; 2];
        self.reads = [true; 2];
        let good = LinkConfig::with_rtt(ms(50));
        self.net.set_links([good.clone(), good]);
        self.wait(4000 + self.stands()); // until the queues of the paths have emptied
        let outcome = if self.is_up() && !self.excuse.stuck { self.drains() } else { Outcome::Lost };
        self.ends();
        outcome
    }

    /// Runs `count` sessions one after another on a good path. The last one is closed.
    pub(crate) fn lives(&mut self, count: u32) {
        let good = LinkConfig::with_rtt(ms(50));
        self.net.set_links([good.clone(), good]);
        for _ in 0..count {
            self.begin();
            assert!(self.comes_up(false), "a good path");
            (0..8).for_each(|_| self.pass(1..40, true));
            self.close_at([true, false]);
            self.settle(DRAIN + CLOSING + 1000);
            self.check_end();
        }
        self.wait(12_000);
        assert!(self.net.server.is_empty());
        self.net.forget(client_address(1, 1000));
        (self.up, self.down) = (Flow::default(), Flow::default());
    }

    /// Starts another session of the client in a new process.
    fn begin(&mut self) {
        if !self.excuse.unread {
            self.check_told(); // otherwise, what had arrived may not have been read before the session ended
        }
        self.generation += 1;
        self.known = None;
        (self.up, self.down) = (Flow::default(), Flow::default());
        (self.excuse, self.reads) = (Excuse::default(), [true; 2]);
        self.excuse.rough = true; // the first path may be anything
        self.moves.clear();
        self.client.user = vec![self.generation];
        self.net.restart_client(&self.client);
    }

    fn check_told(&self) {
        self.up.check_told();
        self.down.check_told();
    }

    /// Waits until the session is up. Faults may happen meanwhile.
    fn comes_up(&mut self, may_fail: bool) -> bool {
        for _ in 0..200 {
            self.pass(1..120, false);
            if self.is_up() {
                return true;
            }
            if self.net.client.state() == ClientState::Closed {
                return false;
            }
            if may_fail && self.draw.one_in(12) {
                match self.draw.below(6) {
                    0 => self.moves(Fault::Port),
                    1 => self.moves(Fault::Address),
                    2 => self.partition([true; 2], 2000),
                    3 => self.replay(),
                    4 => {
                        self.net.restart_server(&self.server);
                        (self.known, self.excuse.forgotten) = (None, true);
                    }
                    _ => {
                        let end = self.draw.below(2) as usize;
                        self.freeze(end, 3000);
                    }
                }
            }
        }
        false
    }

    /// Exchanges data between both ends as far as they are up.
    fn exchange(&mut self, sends: bool) {
        self.step += 1;
        self.look();
        let id = self.known;
        let Self { net, draw, up, down, reads, .. } = self;
        if let Some(client) = net.client.connection_mut() {
            if sends {
                up.send(draw, client);
            }
            if reads[CLIENT] || !client.is_connected() {
                down.take(client);
            }
            up.ask(client);
        }
        if let Some(server) = id.and_then(|id| net.connection_mut(id)) {
            if sends {
                down.send(draw, server);
            }
            if reads[SERVER] || !server.is_connected() {
                up.take(server);
            }
            down.ask(server);
        }
        net.drain();
    }

    /// Finds the server's session with this client.
    fn look(&mut self) {
        let Self { net, generation, .. } = self;
        let is_ours =
            |id: &&SessionId| net.connection(**id).is_some_and(|server| server.user() == [*generation]);
        self.known = self.known.or_else(|| net.sessions.iter().rev().find(is_ours).copied());
    }

    fn pass(&mut self, span: std::ops::Range<u64>, sends: bool) {
        let ms = span.start + self.draw.below(span.end - span.start);
        self.wait(ms.saturating_sub(400));
        self.net.run(ms.min(400));
        self.exchange(sends);
    }

    /// Lets time pass. When a session ends, a server keeps received data only for a moment, so it is read
    /// soon.
    fn wait(&mut self, ms: u64) {
        for slice in (0..ms).step_by(400) {
            self.net.run(400.min(ms - slice));
            self.exchange(false);
        }
    }

    fn is_up(&self) -> bool {
        let server = self.known.and_then(|id| self.net.connection(id)).is_some_and(Connection::is_connected);
        server && self.net.client.connection().is_some_and(Connection::is_connected)
    }

    /// Causes a fault. Returns whether there is a session afterwards.
    fn suffer(&mut self, fault: Fault) -> bool {
        self.faults.push(fault);
        match fault {
            Fault::Path => {
                let links = [self.draw.link(), self.draw.link()];
                self.excuse.rough = true;
                self.net.set_links(links);
            }
            Fault::Port | Fault::Address => self.moves(fault),
            Fault::Partition => self.partition([true; 2], 30_000),
            Fault::OneWay => {
                let up = self.draw.one_in(2);
                self.partition([up, !up], 30_000);
            }
            Fault::BlackHole => {
                let [up, down] = self.net.links().clone();
                let hole = |link: &LinkConfig| LinkConfig { mtu: Some(600), ..link.clone() };
                self.excuse.rough = true;
                self.net.set_links([hole(&up), hole(&down)]);
                self.pass(100..3000, true);
                self.net.set_links([up, down]);
            }
            Fault::FrozenClient => self.freeze(CLIENT, 12_000),
            Fault::FrozenServer => self.freeze(SERVER, 12_000),
            Fault::ClientAhead => self.jump(CLIENT, true),
            Fault::ServerAhead => self.jump(SERVER, true),
            Fault::ClientBack => self.jump(CLIENT, false),
            Fault::ServerBack => self.jump(SERVER, false),
            Fault::Unread => self.unread(),
            Fault::Replay => self.replay(),
            Fault::ServerRestart => {
                self.net.restart_server(&self.server);
                self.known = None;
                self.excuse.forgotten = true;
                self.settle(TIMEOUT + 1000);
                self.check_end();
                return self.again();
            }
            Fault::ClientRestart | Fault::ClientElsewhere => {
                if fault == Fault::ClientElsewhere {
                    self.net.rebind(client_address(2, 1000 + self.generation as u16));
                }
                self.begin();
                return self.comes_up(true);
            }
            Fault::Close => {
                self.close();
                return self.again();
            }
        }
        true
    }

    /// The client connects again, or gives up.
    fn again(&mut self) -> bool {
        if self.draw.one_in(3) {
            return false;
        }
        self.begin();
        self.comes_up(true)
    }

    fn moves(&mut self, fault: Fault) {
        let now = self.net.now;
        let host = if fault == Fault::Port { 1 } else { 1 + self.moves.len() as u8 % 200 };
        self.net.rebind(client_address(host, 2000 + self.step as u16));
        self.moves.push(now);
        let recent = self.moves.iter().filter(|at| now.since(**at) < ms(10_000)).count();
        self.excuse.stuck |= self.suite == Suite::Checked || recent > 3;
        self.excuse.rough = true;
    }

    /// Nothing arrives for a while in these directions.
    fn partition(&mut self, ways: [bool; 2], most: u64) {
        let links = self.net.links().clone();
        let mut dead = links.clone();
        for (link, is_dead) in dead.iter_mut().zip(ways) {
            if is_dead {
                link.loss = Loss::Random(1.0);
            }
        }
        let span = self.draw.any_span(most);
        self.note(span);
        self.net.set_links(dead);
        let sends = self.draw.one_in(2);
        self.wait(span.as_millis() as u64);
        self.exchange(sends);
        self.net.set_links(links);
    }

    fn freeze(&mut self, end: usize, most: u64) {
        let span = self.draw.any_span(most);
        self.note(span);
        self.net.frozen[end] = true;
        self.net.run(span.as_millis() as u64);
        self.net.frozen[end] = false;
        self.exchange(true);
    }

    fn jump(&mut self, end: usize, ahead: bool) {
        let span = self.draw.any_span(3_600_000);
        self.note(span);
        self.net.clocks[end].jump(span, ahead);
    }

    /// Records how long nothing came through, or how long an end believes that.
    fn note(&mut self, span: Duration) {
        self.excuse.rough = true;
        self.excuse.silence |= span >= ms(SILENT);
    }

    /// An end stops reading for a while and gets more than its window.
    fn unread(&mut self) {
        let end = self.draw.below(2) as usize;
        self.reads[end] = false;
        for _ in 0..4 {
            let id = self.known;
            let Self { net, up, down, .. } = self;
            let mut sent = 0;
            if end == SERVER {
                if let Some(client) = net.client.connection_mut() {
                    while sent < 80 && up.send_on(0, 3, client) {
                        sent += 1;
                    }
                }
            } else if let Some(server) = id.and_then(|id| net.connection_mut(id)) {
                while sent < 80 && down.send_on(0, 3, server) {
                    sent += 1;
                }
            }
            net.drain();
            self.pass(20..400, false);
        }
        if self.draw.one_in(10) {
            self.excuse.unread = true;
            self.wait(40_000);
        }
        self.reads[end] = true;
    }

    fn replay(&mut self) {
        for _ in 0..8 {
            let index = self.draw.below(self.net.past.len().max(1) as u64) as usize;
            let Some((up, address, datagram)) = self.net.past.get(index).cloned() else { return };
            if up { self.net.give_server(address, &datagram) } else { self.net.give_client(&datagram) }
        }
    }

    /// One end closes, or both do at once, possibly while the address changes.
    fn close(&mut self) {
        let who = self.draw.below(3);
        let (since, bound) = (self.net.now, ms(DRAIN + CLOSING + self.stands()));
        self.close_at([who != 1, who != 0]);
        if self.draw.one_in(4) {
            self.moves(Fault::Port);
        }
        self.settle(DRAIN + CLOSING + TIMEOUT + 1000);
        self.check_end();
        let closed = |event: &Event| matches!(event, Event::Closed { reason: CloseReason::Local(_), .. });
        for (at, event) in &self.net.client_events {
            assert!(
                !closed(event) || at.since(since) <= bound,
                "the client closed at {at}, asked to at {since}"
            );
        }
    }

    fn close_at(&mut self, ends: [bool; 2]) {
        let id = self.known;
        if ends[CLIENT] {
            self.excuse.closed[CLIENT] = Some(1);
            let now = self.net.time(CLIENT);
            self.net.client.close(now, 1);
        }
        if ends[SERVER]
            && let Some(id) = id
        {
            self.excuse.closed[SERVER] = Some(2);
            let now = self.net.time(SERVER);
            self.net.server.close(now, id, 2);
        }
        self.net.drain();
    }

    /// ms for which the clock of an end stands still.
    fn stands(&self) -> u64 {
        self.net
            .clocks
            .iter()
            .map(|clock| clock.stands(self.net.now).as_millis() as u64 + 1)
            .max()
            .unwrap_or(0)
    }

    /// Waits until both ends of the session have ended, for at most `most` ms.
    fn settle(&mut self, most: u64) {
        let end = self.net.now + ms(most + self.stands());
        while self.net.now < end && !(self.client_end().is_some() && self.server_end() != Some(None)) {
            self.wait(200);
        }
    }

    /// Why the client's session ended, if it did.
    fn client_end(&self) -> Option<(CloseReason, Undelivered)> {
        self.net.client_events.iter().find_map(|(_, event)| ended(event))
    }

    /// Why the server's session ended, if there was one and it did.
    fn server_end(&self) -> Option<Option<(CloseReason, Undelivered)>> {
        let id = self.known?;
        Some(
            self.net.server_events.iter().find_map(|(_, other, event)| ended(event).filter(|_| *other == id)),
        )
    }

    /// Checks that each closed end had a reason to close.
    fn check_end(&self) {
        let Excuse { silence, rough, unread, forgotten, closed: [client, server], stuck } = self.excuse;
        let ends = [(self.client_end(), client, server), (self.server_end().flatten(), server, client)];
        for (end, ours, theirs) in ends {
            let Some((reason, undelivered)) = end else { continue };
            let is_excused = match reason {
                CloseReason::Local(code) => ours == Some(code),
                CloseReason::Peer(code::DEAD_LINK) | CloseReason::DeadLink => rough,
                CloseReason::Peer(code::SLOW_PEER) | CloseReason::SlowPeer => unread || silence,
                // 0 answers a CLOSE of a peer that has not received ours.
                CloseReason::Peer(code) => theirs == Some(code) || code == 0 && ours.is_some(),
                CloseReason::Timeout => {
                    silence || stuck || forgotten || ours.or(theirs).is_some() || rough && unread
                }
                // 10 s later it also drops sessions that it has never heard from.
                CloseReason::ServerForgot => {
                    forgotten || stuck || silence || self.server_end().flatten().is_some()
                }
                CloseReason::ConnectTimeout | CloseReason::Denied(_) => true,
                _ => false,
            };
            assert!(is_excused, "{reason:?} with {:?}, {undelivered:?}", self.excuse);
        }
        for (end, flow) in [(self.client_end(), &self.up), (self.server_end().flatten(), &self.down)] {
            if let Some((CloseReason::Local(_), undelivered)) = end
                && undelivered.is_empty()
                && !forgotten
            {
                assert!(flow.is_through(), "all is said to have arrived: {:?}", flow.ordered);
            }
        }
    }

    /// With the faults over, everything reliable arrives within 5 s plus the retransmission timeout that is
    /// left from them: an end that was frozen, or whose clock jumped forward, mistakes that for a round trip.
    fn drains(&mut self) -> Outcome {
        let end = self.net.now + ms(5000) + self.longest_rto();
        while self.net.now < end {
            self.pass(20..21, false);
            if self.up.is_through() && self.down.is_through() {
                return Outcome::Drained;
            }
        }
        assert!(!self.is_up(), "undelivered: {:?} {:?}", self.up.ordered, self.down.ordered);
        self.check_end();
        Outcome::Lost
    }

    fn longest_rto(&self) -> Duration {
        let server = self.known.and_then(|id| self.net.connection(id));
        let ends = [self.net.client.connection(), server].into_iter().flatten();
        // That in packets has one for what is too long for them.
        let blocks = ends.flat_map(|end| ORDERED.into_iter().filter_map(|channel| end.kcp_stats(channel)));
        blocks.map(|stats| stats.rto).max().unwrap_or_default()
    }

    /// One end closes, both do, or the path breaks for good: both ends close, report it once, and leave
    /// nothing behind.
    fn ends(&mut self) {
        let (since, stands) = (self.net.now, self.stands());
        let who = self.draw.below(4);
        let was_up = self.is_up();
        if who == 3 {
            let dead = LinkConfig { loss: Loss::Random(1.0), ..LinkConfig::default() };
            self.net.set_links([dead.clone(), dead]);
            self.excuse.silence = true;
        } else {
            self.close_at([who != 1, who != 0]);
        }
        self.settle(DRAIN + CLOSING + TIMEOUT + GRACE + 1000);
        self.check_end();
        if who == 3 && was_up {
            let bound = ms(TIMEOUT + GRACE + 1000 + stands);
            let ends = self.net.client_events.last().map(|(at, _)| *at);
            let ends = ends.into_iter().chain(self.net.server_events.last().map(|(at, ..)| *at));
            ends.for_each(|at| assert!(at.since(since) <= bound, "cut off at {since}, ended at {at}"));
        }
        let received = self.received();
        self.wait(12_000 + TIMEOUT + stands); // older sessions time out, and unconfirmed ones are dropped
        assert_eq!(self.received(), received, "received after the end");
        self.check_told();
        assert_eq!(self.net.client.state(), ClientState::Closed);
        let client = self.net.client_events.iter().filter(|(_, event)| ended(event).is_some()).count();
        let server = self.net.server_events.iter().filter(|(.., event)| ended(event).is_some()).count();
        assert_eq!((client, server), (1, self.net.sessions.len()), "each ends once");
        assert!(
            self.net.client_events.last().is_some_and(|(_, event)| ended(event).is_some()),
            "the last event"
        );
        assert!(self.net.server.is_empty(), "{} sessions are left", self.net.server.len());
        self.net.check_server();
        self.net.check_client();
    }

    fn received(&self) -> Option<u64> {
        Some(self.net.client.connection()?.stats().received)
    }
}

fn ended(event: &Event) -> Option<(CloseReason, Undelivered)> {
    match event {
        Event::Closed { reason, undelivered } => Some((*reason, *undelivered)),
        _ => None,
    }
}

/// Steps of a run in which something is sent and faults may happen.
const PASSES: usize = 40;
/// ms after which an end may believe that the other is gone: its timeout, less the cost of a bad path.
const SILENT: u64 = 8_000;
/// From docs/BEHAVIOUR.md, ms.
const TIMEOUT: u64 = 20_000;
const DRAIN: u64 = 5_000;
const CLOSING: u64 = 1_000;
const GRACE: u64 = 2_000;
