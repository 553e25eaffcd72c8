//! Players host; the host goes, by a goodbye or without a word; another goes on with the match. In virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has found something"
)]
#![cfg(feature = "program")]

mod common;

use std::time::Duration;
use tower_defence::choice;
use tower_defence::client::{Client, Command, Line};
use tower_defence::peers::{Member, PeersLab};
use tower_defence::server::Server;
use tower_defence::sim::{At, Colour, EventKind, Kind, Order, PlayerId, World};
use tower_defence::wire::{Will, Wish};
use whitewater::Time;

const LINKS: [&str; 3] = ["rtt=60ms,loss=0%", "rtt=60ms,loss=5%", "rtt=60ms,loss=10%"];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Goodbye,
    Cut,
}

/// A host sends a will each half second.
const WILL_EACH: u32 = 15;
const WAYS: [Way; 2] = [Way::Goodbye, Way::Cut];

fn member(lab: &PeersLab, number: usize) -> &Member {
    lab.members().nth(number).unwrap()
}

fn client(lab: &PeersLab, number: usize) -> &Client {
    &member(lab, number).guest.game
}

fn game(lab: &PeersLab, number: usize) -> Option<&Server> {
    member(lab, number).game()
}

/// A match of this many that has gone on for a while. Player 1 builds.
fn lab(link: &str, seed: u64, players: u8, builder_is_bot: bool) -> PeersLab {
    let mut lab = PeersLab::new(&common::link(link), seed);
    for number in 0..players {
        let wish = if number == 1 { Wish::Build } else { Wish::Run };
        lab.join(common::hello(number, wish), number != 1 || builder_is_bot);
        while lab.lobby().present() <= number.into() {
            lab.run_for(Duration::from_millis(100)); // one after another
        }
    }
    lab.run_for(Duration::from_secs(10));
    assert!(member(&lab, 0).hosts(), "{link}, seed {seed}: the first to come hosts");
    for number in 0..players.into() {
        let tick = client(&lab, number).confirmed().map(|world| world.tick);
        assert!(tick > Some(200), "{link}, seed {seed}: player {number} is at {tick:?}");
    }
    lab
}

fn go(lab: &mut PeersLab, number: usize, way: Way) {
    match way {
        Way::Goodbye => lab.leave(number),
        Way::Cut => lab.cut(number, true),
    }
}

/// Runs until these players see a match that goes on in this term. Returns when that is.
fn run_until_all_see(lab: &mut PeersLab, players: &[usize], term: u32, what: &str) -> Time {
    let start = lab.now();
    loop {
        let sees = |number: &usize| {
            let heard = client(lab, *number).heard().unwrap();
            member(lab, *number).term() == term && lab.now().since(heard) < Duration::from_millis(60)
        };
        if lab.lobby().term().0 == term && players.iter().all(sees) {
            return lab.now();
        }
        assert!(lab.now().since(start) < Duration::from_secs(20), "{what}: it does not go on");
        lab.run_for(Duration::from_millis(5));
    }
}

fn money(world: &World) -> Vec<Option<u16>> {
    PlayerId::all().map(|player| world.purse(player).map(|purse| purse.money)).collect()
}

/// Lets the host go, and runs until the heir hosts. Returns the will that the heir had then.
fn run_until_the_heir_hosts(lab: &mut PeersLab, way: Way, what: &str) -> Will {
    let before = lab.now();
    go(lab, 0, way);
    let mut will = None;
    while !member(lab, 1).hosts() {
        will = member(lab, 1).guest.will.clone().or(will);
        lab.run_for(Duration::from_millis(1));
        assert!(lab.now().since(before) < Duration::from_secs(20), "{what}: nobody hosts");
    }
    will.unwrap()
}

#[test]
fn whichever_way_the_host_goes_everybody_plays_on_within_three_seconds() {
    let (mut longest, mut late) = (Duration::ZERO, 0);
    for (link, way, seed) in cases(1..=4) {
        let what = format!("{link}, {way:?}, seed {seed}");
        let mut lab = lab(link, seed, 5, true);
        let (since, last) = (lab.now(), game(&lab, 0).unwrap().world().clone());
        let you = |lab: &PeersLab| [1, 2, 3, 4].map(|number| client(lab, number).you().unwrap());
        let before = you(&lab);
        let will = run_until_the_heir_hosts(&mut lab, way, &what);
        let heir = game(&lab, 1).unwrap();
        assert_eq!(heir.world().hash(), will.world.hash(), "{what}: it goes on from something else");
        let age = last.tick - will.world.tick;
        match way {
            Way::Goodbye => assert_eq!(heir.world().hash(), last.hash(), "{what}: {age} ticks are lost"),
            Way::Cut => {
                // What a will takes to arrive comes to that. If it is lost more than once, the next one waits for it.
                assert!(age <= 3 * WILL_EACH, "{what}: {age} ticks are lost");
                late += u32::from(age > WILL_EACH + 9);
            }
        }
        // Nobody's screen stands still meanwhile.
        let passed = u32::try_from(lab.now().since(since).as_millis()).unwrap() * 30 / 1000;
        for number in 1..=4 {
            let predicted = client(&lab, number).predicted().unwrap().tick;
            assert!(predicted + 5 > last.tick + passed, "{what}: player {number} predicts {predicted}");
        }
        let took = run_until_all_see(&mut lab, &[1, 2, 3, 4], 2, &what).since(since);
        assert!(took <= Duration::from_secs(3), "{what}: it took {took:?}");
        longest = longest.max(took);
        assert_eq!(you(&lab), before, "{what}: not the same places");
        let heir = game(&lab, 1).unwrap();
        assert_eq!(heir.peers().count(), 4, "{what}");
        assert!(heir.world().purse(PlayerId(0)).is_some(), "{what}: the place of who is gone is kept");
        // Their inputs arrive as before.
        lab.run_for(Duration::from_secs(1));
        let counts = game(&lab, 1).unwrap().counts();
        lab.run_for(Duration::from_secs(3));
        let later = game(&lab, 1).unwrap().counts();
        let (in_time, guessed) = (later.in_time - counts.in_time, later.guessed - counts.guessed);
        assert!(in_time > 20 * guessed, "{what}: {in_time} inputs in time, {guessed} guessed");
        assert!([1, 2, 3, 4].into_iter().all(|number| client(&lab, number).unreadable() == 0), "{what}");
    }
    println!("the longest took {longest:?}");
    assert!(late <= 1, "{late} wills of 12 came late");
}

/// Without orders, which would be steps of their own: the builder builds before.
#[test]
fn the_heir_steps_on_from_the_will() {
    for (link, way, seed) in cases(7..=8) {
        let what = format!("{link}, {way:?}, seed {seed}");
        let mut lab = lab(link, seed, 4, false);
        for x in 0..4 {
            let (at, colour, kind) = (At { x: 5 + 3 * x, y: 6 }, Colour::Red, Kind::Gun);
            let order = Command::Order(Order::Place { at, colour, kind }); // if there is no rock
            lab.member_mut(1).unwrap().guest.game.command(order);
        }
        lab.run_for(Duration::from_secs(2));
        let mut model = run_until_the_heir_hosts(&mut lab, way, &what).world;
        assert!(!model.turrets.is_empty(), "{what}: nothing was built");
        let end = model.tick + 150;
        while model.tick < end {
            lab.run_for(Duration::from_millis(1));
            let term = lab.lobby().term();
            let heir = game(&lab, 1).unwrap_or_else(|| panic!("{what}: {term:?}"));
            if heir.world().tick > model.tick {
                model.step(heir.inputs());
                model.take_events();
                assert_eq!(heir.world().hash_for(None), model.hash_for(None), "{what}: {}", model.tick);
                assert_eq!(money(heir.world()), money(&model), "{what}: {}", model.tick);
            }
        }
    }
}

#[test]
fn an_order_that_is_given_while_nobody_hosts_is_done_once() {
    for (link, way, seed) in cases(31..=32) {
        let what = format!("{link}, {way:?}, seed {seed}");
        let mut lab = lab(link, seed, 4, false);
        go(&mut lab, 0, way);
        lab.run_for(Duration::from_millis(if way == Way::Cut { 500 } else { 150 }));
        assert!(!member(&lab, 1).hosts(), "{what}: too late");
        let view = client(&lab, 1).view().unwrap();
        let at = view.board.places().find(|at| choice::price(&view, *at, Kind::Gun).is_some()).unwrap();
        let money = view.purse.money;
        let order = choice::build(&view, at, Colour::Red, Kind::Gun);
        lab.member_mut(1).unwrap().guest.game.command(Command::Order(order));
        assert_eq!(client(&lab, 1).view().unwrap().turrets.len(), 1, "{what}: not on the screen");
        run_until_all_see(&mut lab, &[1, 2, 3], 2, &what);
        lab.run_for(Duration::from_secs(2));
        let world = game(&lab, 1).unwrap().world();
        assert_eq!((world.turrets.len(), world.turrets[0].at), (1, at), "{what}");
        let purse = world.purse(client(&lab, 1).you().unwrap()).unwrap();
        assert_eq!((purse.money, purse.decided), (money - Kind::Gun.cost(), 1), "{what}");
    }
}

#[test]
fn two_hosts_go_and_all_who_are_left_see_the_same_end() {
    for (link, way, seed) in cases(11..=11) {
        let what = format!("{link}, {way:?}, seed {seed}");
        let mut lab = lab(link, seed, 6, true);
        go(&mut lab, 0, way);
        run_until_all_see(&mut lab, &[1, 2, 3, 4, 5], 2, &what);
        lab.run_for(Duration::from_secs(10));
        go(&mut lab, 1, way);
        let left = [2, 3, 4, 5];
        run_until_all_see(&mut lab, &left, 3, &what);
        let mut ends = left.map(|_| None);
        let start = lab.now();
        while ends.contains(&None) {
            lab.run_for(Duration::from_millis(500));
            assert!(lab.now().since(start) < Duration::from_secs(500), "{what}: no end: {ends:?}");
            for (number, end) in left.into_iter().zip(&mut ends) {
                let lines = client(&lab, number).view().unwrap().lines;
                *end = end.or_else(|| lines.iter().find_map(over));
            }
        }
        assert!(ends.iter().all(|end| *end == ends[0]), "{what}: {ends:?}");
        assert_eq!(lab.lobby().term(), (3, Some(3)), "{what}");
    }
}

/// The tick at which the match was over, and who has won.
fn over(line: &Line) -> Option<(u32, u16)> {
    match line {
        Line::Event(event) if event.kind == EventKind::Over => Some((event.tick, event.data)),
        _ => None,
    }
}

#[test]
fn a_host_that_was_cut_off_is_a_guest_with_its_place_when_it_comes_back() {
    for seed in 1..=3 {
        let mut lab = lab(LINKS[1], seed, 4, true);
        let you = client(&lab, 0).you();
        lab.cut(0, true);
        lab.run_for(Duration::from_secs(10));
        assert!(member(&lab, 0).hosts() && member(&lab, 1).hosts(), "seed {seed}: it cannot know yet");
        lab.cut(0, false);
        lab.run_for(Duration::from_secs(5));
        assert!(!member(&lab, 0).hosts() && member(&lab, 1).hosts(), "seed {seed}");
        assert_eq!(client(&lab, 0).you(), you, "seed {seed}");
        assert_eq!(game(&lab, 1).unwrap().peers().count(), 4, "seed {seed}");
        run_until_all_see(&mut lab, &[0, 1, 2, 3], 2, &format!("seed {seed}"));
    }
}

#[test]
fn one_who_does_not_hear_the_host_does_not_move_the_match() {
    for seed in 1..=3 {
        let mut lab = lab(LINKS[1], seed, 4, true);
        lab.cut(3, true);
        lab.run_for(Duration::from_millis(1500)); // long enough to notice
        lab.cut(3, false);
        lab.run_for(Duration::from_secs(5));
        assert_eq!(lab.lobby().term(), (1, Some(1)), "seed {seed}");
        run_until_all_see(&mut lab, &[0, 1, 2, 3], 1, &format!("seed {seed}"));
    }
}

#[test]
fn if_the_heir_goes_with_the_host_the_next_heir_has_a_will_too() {
    for seed in 1..=3 {
        let what = format!("seed {seed}");
        let mut lab = lab(LINKS[1], seed, 5, true);
        let (since, last) = (lab.now(), game(&lab, 0).unwrap().world().tick);
        lab.cut(0, true);
        lab.cut(1, true);
        let took = run_until_all_see(&mut lab, &[2, 3, 4], 3, &what).since(since);
        assert!(member(&lab, 2).hosts() && took < Duration::from_secs(8), "{what}: {took:?}");
        let tick = game(&lab, 2).unwrap().world().tick;
        assert!(tick > last - 30, "{what}: a new match at {tick}, not the one of {last}");
    }
}

#[test]
fn a_player_alone_hosts_and_is_followed_by_who_comes_when_they_are_gone() {
    let mut lab = PeersLab::new(&common::link(LINKS[1]), 5);
    lab.join(common::hello(0, Wish::Run), true);
    lab.run_for(Duration::from_secs(3));
    assert!(client(&lab, 0).confirmed().is_some());
    lab.leave(0);
    lab.run_for(Duration::from_secs(1));
    assert_eq!(lab.lobby().present(), 0);
    lab.join(common::hello(1, Wish::Run), true);
    lab.run_for(Duration::from_secs(3));
    assert!(member(&lab, 1).hosts());
    let tick = client(&lab, 1).confirmed().unwrap().tick;
    assert!(tick < 90, "nobody has left a will, so it is a new match, not at {tick}");
}

#[test]
fn wills_of_eight_players_take_less_than_two_kilobytes_a_second_for_each_heir() {
    let lab = lab(LINKS[0], 3, 8, true);
    let will = game(&lab, 0).unwrap().will(None);
    let bytes = tower_defence::wire::pack_long(&will).unwrap().len();
    println!("{bytes} bytes each half second");
    assert!((200..1000).contains(&bytes), "{bytes}");
}

fn cases(seeds: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = (&'static str, Way, u64)> {
    let of_link = move |link| WAYS.into_iter().map(move |way| (link, way));
    LINKS
        .into_iter()
        .flat_map(of_link)
        .flat_map(move |(link, way)| seeds.clone().map(move |seed| (link, way, seed)))
}
