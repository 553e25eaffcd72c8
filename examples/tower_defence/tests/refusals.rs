//! Whatever a client may not do is refused with an event, and changes nothing.

#![allow(clippy::unwrap_used, reason = "a test that panics has found something")]

mod common;

use tower_defence::server::{PeerId, Server};
use tower_defence::sim::rules::TURRETS;
use tower_defence::sim::{
    At, Bonus, Cell, Colour, EventKind, Improvements, Keys, Kind, Order, Phase, PlayerId, Refusal, TurretId,
};
use tower_defence::wire::{self, Inputs, Message, Wish};

struct Table {
    server: Server,
    builder: PeerId,
    runner: PeerId,
    number: u16,
}

impl Table {
    fn new() -> Self {
        let mut server = Server::new(5);
        let mut come = |number, wish| server.connect(&common::hello(number, wish).encode().unwrap()).unwrap();
        let (builder, runner) = (come(0, Wish::Build), come(1, Wish::Run));
        let mut table = Self { server, builder, runner, number: 0 };
        table.tick(3);
        table.hear(builder);
        table.hear(runner);
        table
    }

    fn tick(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.server.tick();
        }
    }

    fn until(&mut self, phase: Phase) {
        while self.server.world().phase != phase {
            self.server.tick();
        }
    }

    fn order(&mut self, peer: PeerId, order: Order) {
        self.number += 1;
        self.server.take(peer, Message::Order { number: self.number, order });
    }

    /// The refusals that a peer was told about since the last call.
    fn hear(&mut self, peer: PeerId) -> Vec<Refusal> {
        let mut heard = Vec::new();
        while let Some(message) = self.server.pop_message(peer) {
            if let Message::Event(event) = message
                && event.kind == EventKind::Refused
            {
                assert_eq!(Some(event.id), self.server.player(peer));
                heard.push(Refusal::of(u8::try_from(event.data).unwrap()).unwrap());
            }
        }
        heard
    }

    /// An order is refused for this reason, and nothing has changed except that it was decided.
    fn refused(&mut self, peer: PeerId, order: Order, refusal: Refusal) {
        self.tick(31); // so that it is told again
        match order {
            Order::Improve(_) if refusal == Refusal::Phase => self.until(Phase::Running),
            Order::Improve(_) => self.until(Phase::Upgrading),
            _ => {}
        }
        self.hear(peer);
        let mut before = self.server.world().clone();
        self.order(peer, order);
        before.decide(self.server.player(peer).unwrap(), self.number);
        assert_eq!(*self.server.world(), before, "{order:?} has changed something");
        assert_eq!(self.hear(peer), [refusal], "{order:?}");
    }

    fn place(at: At) -> Order {
        Order::Place { at, colour: Colour::Red, kind: Kind::Gun }
    }

    /// A cell on which a turret may be built, off the way of runners.
    fn free(&self) -> At {
        let board = &self.server.world().board;
        let free = |at: &At| board.cell(*at) == Cell::Free && at.x > 4 && !board.would_block(*at, &[]);
        board.places().find(free).unwrap()
    }

    fn inputs(&mut self, first: u32, keys: &[Keys]) {
        let mut bytes = Vec::new();
        wire::pack(&Inputs { first, keys: keys.to_vec(), is_lost: false }, &mut bytes).unwrap();
        self.server.receive(self.runner, &bytes);
    }
}

#[test]
fn what_cannot_be_built_is_refused() {
    let mut table = Table::new();
    let (builder, runner, at) = (table.builder, table.runner, table.free());
    table.order(builder, Table::place(at));
    assert_eq!(table.server.world().turrets.len(), 1, "that is allowed");
    table.refused(builder, Table::place(at), Refusal::Taken);
    table.refused(builder, Table::place(At { x: 31, y: 17 }), Refusal::Taken); // not on this board
    let start = table.server.world().board.start();
    table.refused(builder, Table::place(start), Refusal::Taken);
    let rock = table.server.world().board.iter().find(|(_, cell)| *cell == Cell::Rock).unwrap().0;
    table.refused(builder, Table::place(rock), Refusal::Taken);
    table.refused(runner, Table::place(table.free()), Refusal::Role);
    table.refused(builder, Order::Upgrade { turret: TurretId(1) }, Refusal::NoTurret);
    table.refused(builder, Order::Upgrade { turret: TurretId(TURRETS - 1) }, Refusal::NoTurret);
    table.refused(runner, Order::Upgrade { turret: TurretId(0) }, Refusal::Role);
}

#[test]
fn what_there_is_no_money_for_is_refused() {
    let mut table = Table::new();
    let (builder, runner) = (table.builder, table.runner);
    table.refused(runner, Order::Improve(Improvements::VELOCITY), Refusal::Money);
    while table.server.world().purse(PlayerId(0)).unwrap().money >= Kind::Gun.cost() {
        let at = table.free();
        table.order(builder, Table::place(at));
        table.tick(10);
    }
    table.refused(builder, Table::place(table.free()), Refusal::Money);
    table.refused(builder, Order::Upgrade { turret: TurretId(0) }, Refusal::Money);
    table.refused(builder, Order::Buy { bonus: Bonus::Repair }, Refusal::Locked);
    table.until(Phase::Running);
    table.refused(builder, Order::Buy { bonus: Bonus::Blizzard }, Refusal::Money); // unlocked, but no token
    table.refused(runner, Order::Buy { bonus: Bonus::Blizzard }, Refusal::Role);
}

#[test]
fn a_way_cannot_be_closed() {
    let mut table = Table::new();
    let exit = table.server.world().board.exit();
    let mut blocked = false;
    for y in 0..14 {
        let at = At { x: exit.x - 3, y };
        let builder = table.builder;
        table.tick(31);
        table.hear(builder);
        table.order(builder, Table::place(at));
        blocked |= table.hear(builder).contains(&Refusal::Blocks);
        let board = &table.server.world().board;
        assert!(board.distance(board.start()).is_some(), "no way is left");
        if table.server.world().purse(PlayerId(0)).unwrap().money < 50 {
            break;
        }
    }
    let board = &table.server.world().board;
    assert!(blocked || board.distance(board.start()).is_some());
}

#[test]
fn six_bits_that_contradict_each_other_are_refused() {
    let mut table = Table::new();
    let (builder, runner) = (table.builder, table.runner);
    let (red, green, blue) = (Improvements::NO_RED, Improvements::NO_GREEN, Improvements::NO_BLUE);
    for bits in [
        red.and(green),
        red.and(blue),
        green.and(blue),
        red.and(green).and(blue),
        Improvements::from_bits(63),
    ] {
        table.refused(runner, Order::Improve(bits), Refusal::Contradiction);
    }
    table.refused(runner, Order::Improve(Improvements::default()), Refusal::Contradiction);
    table.refused(builder, Order::Improve(red), Refusal::Role);
    table.refused(runner, Order::Improve(red), Refusal::Phase);
}

#[test]
fn inputs_from_the_future_are_refused_and_those_of_the_past_do_nothing() {
    let mut table = Table::new();
    let runner = table.runner;
    let now = table.server.world().tick;
    let before = table.server.world().clone();
    table.inputs(now + 46, &[Keys::RIGHT]);
    table.inputs(now + 40, &[Keys::RIGHT; 10]); // only some of them are too early: none counts
    table.inputs(1 << 30, &[Keys::RIGHT; 48]);
    assert_eq!(table.hear(runner), [Refusal::Future], "told once a second");
    table.inputs(1, &[Keys::RIGHT]);
    assert_eq!(*table.server.world(), before);
    table.tick(60);
    let counts = table.server.counts();
    assert_eq!((counts.in_time, counts.refused), (0, 3));
}

#[test]
fn a_second_input_for_the_same_tick_does_not_replace_the_first() {
    let mut table = Table::new();
    let next = table.server.world().tick + 1;
    table.inputs(next, &[Keys::RIGHT]);
    table.inputs(next, &[Keys::LEFT]);
    table.tick(1);
    assert_eq!(table.server.inputs().of(PlayerId(1)), Keys::RIGHT);
}

#[test]
fn a_thousand_packets_a_tick_are_refused_with_one_event() {
    let mut table = Table::new();
    let runner = table.runner;
    let now = table.server.world().tick;
    let before = table.server.world().clone();
    for number in 0..1000 {
        table.inputs(now + 1 + number % 8, &[Keys::RIGHT]);
    }
    assert_eq!(table.hear(runner), [Refusal::Flood]);
    assert_eq!(*table.server.world(), before);
    assert!(table.server.counts().refused >= 900, "{:?}", table.server.counts());
    // The same for orders and chat; and a refused client is heard again soon.
    for _ in 0..1000 {
        table.order(runner, Order::Improve(Improvements::VELOCITY));
        table.server.take(runner, Message::Chat { from: None, text: "!".into() });
    }
    let others = table.builder;
    let mut said = 0;
    while let Some(message) = table.server.pop_message(others) {
        said += u32::from(matches!(message, Message::Chat { .. }));
    }
    assert!((1..=4).contains(&said), "{said} lines");
    table.tick(120);
    let next = table.server.world().tick + 1;
    table.inputs(next, &[Keys::RIGHT]);
    table.tick(1);
    assert_eq!(table.server.inputs().of(PlayerId(1)), Keys::RIGHT);
}

#[test]
fn what_is_none_of_the_game_is_refused() {
    let mut table = Table::new();
    let (builder, runner) = (table.builder, table.runner);
    let before = table.server.world().clone();
    table.server.receive(runner, &[0xff; 40]);
    table.server.receive(runner, &[]);
    assert_eq!(table.hear(runner), [Refusal::Malformed]);
    table.server.take(builder, Message::Event(Default::default()));
    assert_eq!(table.hear(builder), [Refusal::Malformed]);
    assert_eq!(*table.server.world(), before);
    assert!(table.server.connect(b"").is_err());
    // A spectator can do nothing.
    let watcher = table.server.connect(&common::hello(9, Wish::Watch).encode().unwrap()).unwrap();
    table.order(watcher, Table::place(At { x: 9, y: 9 }));
    assert_eq!(*table.server.world(), before);
}

/// Letters that clear a screen, reverse a line, or are invisible.
const HOSTILE: [&str; 6] = ["\u{1b}[2J", "\u{9b}2J", "a\nb", "\u{202e}nnA", "An\u{200b}n", "\u{7f}"];

#[test]
fn nobody_writes_to_the_terminals_of_others_but_what_is_to_be_seen() {
    for text in HOSTILE {
        let mut table = Table::new();
        let (builder, runner) = (table.builder, table.runner);
        table.server.take(runner, Message::Chat { from: None, text: text.into() });
        assert_eq!(table.hear(runner), [Refusal::Malformed], "{text:?}");
        assert!(table.server.pop_message(builder).is_none(), "{text:?} is told to others");
        // A name loses such letters, and is then still unique.
        for said in [text, "Ann", "Ann", "Ann#4"] {
            let ticket = table.server.peers().count().try_into().unwrap();
            let hello = wire::Hello { name: said.into(), wish: Wish::Run, ticket };
            table.server.connect(&hello.encode().unwrap()).unwrap();
        }
        let mut names = std::collections::BTreeMap::new();
        while let Some(message) = table.server.pop_message(builder) {
            if let Message::Player { player, name, .. } = message {
                assert!(!name.is_empty() && name.len() <= wire::NAME_MAX && name.chars().all(wire::is_shown));
                names.insert(player, name);
            }
        }
        assert_eq!(names.len(), 4, "{names:?}");
        let different: std::collections::BTreeSet<&String> = names.values().collect();
        assert_eq!(different.len(), 4, "{names:?}");
    }
}

#[test]
fn inputs_of_who_looks_on_are_not_kept() {
    let mut table = Table::new();
    let watcher = table.server.connect(&common::hello(9, Wish::Watch).encode().unwrap()).unwrap();
    let mut bytes = Vec::new();
    for _ in 0..100 {
        let first = table.server.world().tick + 1;
        let inputs = Inputs { first, keys: vec![Keys::RIGHT; 40], is_lost: true };
        wire::pack(&inputs, &mut bytes).unwrap();
        table.server.receive(watcher, &bytes);
        table.tick(1);
    }
    assert!(table.server.snapshot(watcher, &mut bytes));
    let read = wire::read(&bytes, None, |_| None).unwrap();
    assert_eq!((read.head.lead, table.server.counts().late), (None, 0));
}

/// It takes no messages and confirms no snapshots: its cost is bounded, and all players are still told everything.
#[test]
fn a_peer_that_acknowledges_nothing_does_not_make_the_server_keep_ever_more() {
    let mut table = Table::new();
    let (builder, runner) = (table.builder, table.runner);
    let silent = table.server.connect(&common::hello(9, Wish::Watch).encode().unwrap()).unwrap();
    let (mut said, mut heard, mut bytes) = (0, 0, Vec::new());
    for second in 0..600 {
        table.server.take(runner, Message::Chat { from: None, text: format!("{second}") });
        for tick in 0..30 {
            table.tick(1);
            assert!(table.server.snapshot(silent, &mut bytes));
            table.server.sent(silent, second * 30 + tick);
        }
        said += 1;
        while let Some(message) = table.server.pop_message(builder) {
            heard += u32::from(matches!(message, Message::Chat { .. }));
        }
        table.hear(runner);
    }
    assert_eq!((heard, said), (600, 600));
    let kept = std::iter::from_fn(|| table.server.pop_message(silent)).count();
    let counts = table.server.counts();
    assert_eq!(kept, 512);
    assert!(counts.dropped >= 88, "{counts:?}");
    assert_eq!((counts.full, counts.deltas), (600 * 30, 0), "nothing is known to be there to go by");
    assert!(bytes.len() < 400, "{} bytes", bytes.len());
}
