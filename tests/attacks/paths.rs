//! An observer cannot take the path of a session: they see every packet, and their copies arrive first from an address of their own.
#![expect(
    clippy::cast_precision_loss,
    clippy::unwrap_used,
    reason = "a test that panics has found something, and numbers are small"
)]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, client_address, server_address};
use rand::Rng;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::{Event, Repairs, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss, SimRng};

const RTT: Duration = Duration::from_millis(120);
/// How long something of the observer's takes to either end.
const SHORT: Duration = Duration::from_millis(8);
/// A game sends a datagram each way at this interval, ms.
const TICK: u64 = 16;

/// What the observer passes on to the client of what the server sends to the observer's address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Relay {
    Nothing,
    /// All until the session has moved to them, then nothing.
    UntilMoved,
    /// What is as short as a challenge.
    Short,
}

/// Where the observer sends copies from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Copies {
    OnePort,
    /// Each copy comes from another port.
    ManyPorts,
    /// From one port, until the session is there. Then from another first and from there second, as if the client were there and
    /// had a follower.
    Adaptive,
}

/// Sees each packet of the client, and sends a copy of it that arrives first.
#[derive(Clone, Copy, Debug)]
struct Observer {
    relay: Relay,
    /// Copies one of so many packets.
    one_of: u64,
    /// Gives the client a faster copy of what the server sends, too.
    both_ways: bool,
    copies: Copies,
    /// Also sees the packets of a client that has moved.
    follows: bool,
}

/// A session under observation.
struct Game {
    world: World,
    observer: Observer,
    home: SocketAddr,
    /// The observer's port, while the session is there.
    held: Option<u16>,
    under_way: Vec<(Time, Option<SocketAddr>, Vec<u8>)>,
    rng: SimRng,
    ticks: u64,
    /// Datagrams that have arrived at the client.
    came: u64,
    /// The longest time in which the client received none, and when it received the last.
    gap: Duration,
    last: Time,
}

impl Game {
    fn new(seed: u64, path: (Duration, f64), observer: Observer) -> Self {
        Self::with(seed, path, observer, &SessionConfig::default())
    }

    fn with(seed: u64, (rtt, loss): (Duration, f64), observer: Observer, config: &SessionConfig) -> Self {
        let path = LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(rtt) };
        let mut world = World::pair(seed, &path, config, SUITE);
        world.connect();
        world.run(2_000);
        world.taps = true;
        let (home, last) = (world.address(0), world.now);
        let rng = SimRng::new(seed, 77);
        Self {
            world,
            observer,
            home,
            held: None,
            under_way: Vec::new(),
            rng,
            ticks: 0,
            came: 0,
            gap: Duration::ZERO,
            last,
        }
    }

    /// Where the observer's next copies come from.
    fn theirs(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        let ports = match self.observer.copies {
            Copies::OnePort => [Some(666), None],
            Copies::ManyPorts => [Some(1 + self.ticks % 60_000), None],
            Copies::Adaptive if self.held.is_some() => {
                let held = self.held.map(u64::from);
                [held.map(|port| 700 + (port + 1) % 100), held]
            }
            Copies::Adaptive => [Some(700), None],
        };
        ports.into_iter().flatten().map(|port| client_address(99, u16::try_from(port).unwrap()))
    }

    fn observe(&mut self) {
        let (now, theirs) = (self.world.now, client_address(99, 0).ip());
        let has_moved = self.world.session().peer_addr().ip() == theirs;
        self.held = has_moved.then(|| self.world.session().peer_addr().port());
        for (.., from, to, bytes) in std::mem::take(&mut self.world.tap) {
            let is_seen = from != server_address() && (self.observer.follows || from == self.home);
            if is_seen && self.rng.next_u64().is_multiple_of(self.observer.one_of) {
                let copies = self.theirs().map(|from| (now + SHORT, Some(from), bytes.clone()));
                self.under_way.extend(copies);
            } else if from == server_address() && to.ip() != theirs && self.observer.both_ways {
                self.under_way.push((now + SHORT, None, bytes));
            }
        }
        for (to, bytes) in std::mem::take(&mut self.world.strangers) {
            let passes = match self.observer.relay {
                Relay::Nothing => false,
                Relay::UntilMoved => !has_moved,
                Relay::Short => bytes.len() <= 60,
            };
            if to.ip() == theirs && passes {
                self.under_way.push((now + SHORT, None, bytes));
            }
        }
        let (due, later) = std::mem::take(&mut self.under_way).into_iter().partition(|(at, ..)| *at <= now);
        self.under_way = later;
        let due: Vec<_> = due;
        for (_, from, bytes) in due {
            match from {
                Some(from) => self.world.inject(from, &bytes),
                None => self.world.inject_client(0, &bytes),
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let mut buf = [0; 200];
        for _ in 0..ms {
            if self.world.now.as_millis().is_multiple_of(TICK) {
                self.ticks += 1;
                let _ = (
                    self.world.client().send_datagram(&[1; 60]),
                    self.world.session().send_datagram(&[2; 150]),
                );
                self.world.drain();
            }
            self.world.run(1);
            self.observe();
            while self.world.session().recv_datagram_into(&mut buf).is_ok() {}
            while self.world.client().recv_datagram_into(&mut buf).is_ok() {
                self.came += 1;
                self.gap = self.gap.max(self.world.now.since(self.last));
                self.last = self.world.now;
            }
        }
        self.gap = self.gap.max(self.world.now.since(self.last));
    }

    fn moves(&self) -> usize {
        self.world.events.iter().filter(|(.., event)| matches!(event, Event::Moved { .. })).count()
    }

    /// The share of datagrams that the client received since the last call.
    fn share(&mut self) -> f64 {
        let (came, ticks) = (std::mem::take(&mut self.came), std::mem::take(&mut self.ticks));
        came as f64 / ticks as f64
    }

    fn is_up(&self) -> bool {
        self.world.clients.iter().all(|client| client.closed().is_none()) && self.world.closed().is_none()
    }
}

fn observers() -> impl Iterator<Item = (u64, Observer)> {
    let relays = [Relay::Nothing, Relay::UntilMoved, Relay::Short].into_iter();
    let ways = relays.flat_map(|relay| [false, true].map(|both_ways| (relay, both_ways)));
    let copies = [(1, Copies::OnePort), (3, Copies::OnePort), (10, Copies::OnePort)].into_iter();
    let copies = copies.chain([
        (1, Copies::ManyPorts),
        (3, Copies::ManyPorts),
        (1, Copies::Adaptive),
        (3, Copies::Adaptive),
    ]);
    let all = ways.flat_map(move |(relay, both_ways)| {
        let copies = copies.clone();
        copies.map(move |(one_of, copies)| Observer { relay, one_of, both_ways, copies, follows: true })
    });
    (1..).zip(all)
}

#[test]
fn a_faster_observer_does_not_keep_the_path() {
    for (seed, observer) in observers() {
        let mut game = Game::new(seed, (RTT, 0.0), observer);
        game.run(60_000);
        assert!(game.is_up(), "{observer:?}");
        let (share, gap, moves) = (game.share(), game.gap, game.moves());
        assert!(share > 0.99 && gap <= ms(250), "{observer:?}: {share} of the datagrams, {gap:?} without");
        assert!(moves <= 6 && game.world.session().peer_addr() == game.home, "{observer:?}: {moves} moves");
    }
}

#[test]
fn nor_if_a_fifth_of_all_packets_gets_lost_and_a_round_trip_takes_300_ms() {
    for (seed, observer) in observers() {
        let mut game = Game::new(seed, (ms(300), 0.2), observer);
        game.run(60_000);
        let (share, gap) = (game.share(), game.gap);
        assert!(game.is_up() && share > 0.7 && gap <= ms(2_000), "{observer:?}: {share}, {gap:?} without");
    }
}

/// An observer who drops everything once they have the path cannot keep a peer that moves from getting it back.
#[test]
fn a_client_that_moves_while_it_is_observed_is_served_again_within_three_seconds() {
    for (seed, observer) in observers().filter(|(_, observer)| observer.relay != Relay::Short) {
        for follows in [false, true] {
            let mut game = Game::new(seed, (RTT, 0.0), Observer { follows, ..observer });
            game.run(5_000);
            game.world.rebind(0, client_address(50, 5));
            game.gap = Duration::ZERO;
            game.run(30_000);
            let gap = game.gap;
            assert!(game.is_up() && gap <= ms(3_000), "{observer:?}: {gap:?} without");
        }
    }
}

/// They wait until the client moves, and are faster at the new address too.
#[test]
fn a_client_that_moves_is_not_lost_to_an_observer_who_begins_then() {
    for (seed, observer) in observers().filter(|(_, observer)| observer.relay != Relay::Short) {
        for (rtt, loss, most) in [(RTT, 0.0, 1_500), (ms(300), 0.2, 5_000)] {
            let mut game =
                Game::new(seed, (rtt, loss), Observer { one_of: u64::MAX, both_ways: false, ..observer });
            game.run(5_000);
            game.world.rebind(0, client_address(50, 5));
            (game.observer, game.gap) = (observer, Duration::ZERO);
            game.run(30_000);
            let gap = game.gap;
            assert!(game.is_up() && gap <= ms(most), "{observer:?}, {rtt:?}: {gap:?} without");
        }
    }
}

/// The path to the client loses nothing, so nothing counts as lost, and no repairs are sent.
#[test]
fn what_goes_to_an_observer_does_not_count_as_lost() {
    for (seed, observer) in observers() {
        for repairs in [Repairs::Off, Repairs::Auto, Repairs::Budget(30)] {
            let config = SessionConfig { repairs, ..SessionConfig::default() };
            let mut game = Game::with(seed, (RTT, 0.0), observer, &config);
            game.run(20_000);
            let stats = game.world.session().stats();
            assert!(stats.packets_lost <= 5 && stats.packets_judged > 1000, "{observer:?}: {stats:?}");
            assert_eq!(stats.loss, Some(0.0), "{observer:?}");
            if observer.relay == Relay::Nothing {
                assert_eq!(stats.repairs.sent, 0, "{observer:?}");
            }
        }
    }
}

/// A tenth gets lost, and what goes to the old address after each move. What goes to the new one before it is proven counts if
/// it arrives.
#[test]
fn a_client_that_moves_every_three_seconds_hides_no_loss() {
    let nobody = Observer {
        relay: Relay::Nothing,
        one_of: u64::MAX,
        both_ways: false,
        copies: Copies::OnePort,
        follows: false,
    };
    for seed in 1..=5 {
        let mut game = Game::new(seed, (RTT, 0.1), nobody);
        for port in 2000..2040 {
            game.run(3_000);
            game.world.rebind(0, client_address(1, port));
        }
        let stats = game.world.session().stats();
        let share = stats.packets_lost as f64 / stats.packets_judged as f64;
        assert!(game.moves() >= 35 && (0.138..0.16).contains(&share), "seed {seed}: {share}, {stats:?}");
    }
}

/// They are no faster than the client, and have one packet of its last network, which they send to the server ten times a millisecond.
#[test]
fn a_client_that_moves_is_not_lost_to_replays_of_one_packet() {
    for seed in 1..=5 {
        let path = LinkConfig { jitter: ms(5), in_order: true, ..LinkConfig::with_rtt(ms(40)) };
        let mut world = World::pair(seed, &path, &SessionConfig::default(), SUITE);
        world.taps = true;
        world.connect();
        world.run(1_000);
        let (.., packet) = world.tap.iter().rfind(|(_, _, to, _)| *to == server_address()).unwrap().clone();
        let (moves_at, end) = (world.now + ms(300), world.now + ms(2_300));
        while world.now < end && world.session().peer_addr() != client_address(50, 5) {
            if world.now == moves_at {
                world.rebind(0, client_address(50, 5));
            }
            if world.now.as_micros().is_multiple_of(16_000) {
                let _ = world.client().send_datagram(&[1; 60]);
            }
            world.inject(client_address(99, 1), &packet);
            world.run_to(Time::from_micros(world.now.as_micros() + 100), |_| false);
            world.tap.clear();
        }
        let after = world.now.since(moves_at);
        assert!(world.session().peer_addr() == client_address(50, 5), "seed {seed}: not after {after:?}");
    }
}
