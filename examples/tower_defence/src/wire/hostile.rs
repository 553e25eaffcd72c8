//! What must hold for any bytes. The fuzz target searches for counterexamples; the tests try many inputs.

use super::{Hello, Inputs, Message, Post, Report, Will, full_len, pack, read, unpack};
use crate::server::Server;
use crate::sim::{Bonus, Order, PlayerId, Role, World};
use std::sync::OnceLock;

/// Reads bytes as the packet that the first byte selects, and checks the result.
///
/// # Panics
///
/// A packet is written differently from how it was read, or a world that was read cannot be played, or a server accepts
/// something wrong.
pub fn any_packet(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    match which % 11 {
        0 => comes_back::<Inputs>(bytes),
        1 => comes_back::<Hello>(bytes),
        2..=5 => message(bytes),
        6 => snapshot(bytes),
        7 => server(bytes),
        8 => will(bytes),
        9 => comes_back::<Post>(bytes),
        _ => comes_back::<Report>(bytes),
    }
}

/// Packets to start from.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |name: &str, which: u8, bytes: Vec<u8>| {
        seeds.push((name.to_owned(), std::iter::once(which).chain(bytes).collect()));
    };
    let mut packed = Vec::new();
    let keys = (0..40).map(|number| crate::sim::Keys::from_bits(number / 5)).collect();
    let inputs = Inputs { first: 100, keys, is_lost: false };
    let _ = pack(&inputs, &mut packed);
    add("inputs", 0, packed.clone());
    add("inputs-server", 7, packed.clone());
    let _ = pack(&Hello { name: "Ann".to_owned(), ..Hello::default() }, &mut packed);
    add("hello", 1, packed.clone());
    let order = Order::Buy { bonus: Bonus::Repair };
    for message in [Message::Order { number: 3, order }, Message::Chat { from: None, text: "hi".to_owned() }]
    {
        let _ = pack(&message, &mut packed);
        add("message", 2, packed.clone());
    }
    let (base, mut later) = (played().clone(), played().clone());
    let _ = super::write(&mut packed, &base, Some(PlayerId(1)), None, Some(2));
    add("snapshot", 6, packed.clone());
    let inputs = later.seen_inputs();
    later.step(&inputs);
    let _ = super::write(&mut packed, &later, Some(PlayerId(1)), Some(&base), Some(2));
    add("delta", 6, packed.clone());
    let token = vec![7; 300];
    let _ = pack(&Post::Join { term: 3, token }, &mut packed);
    add("post", 9, packed.clone());
    let addresses =
        ["192.0.2.1:4000", "[2001:db8::1]:4000"].iter().filter_map(|at| at.parse().ok()).collect();
    let _ = pack(&Report::At { term: 3, addresses }, &mut packed);
    add("report", 10, packed);
    let mut host = Server::new(1);
    for (number, wish) in (0..3).zip([super::Wish::Build, super::Wish::Run, super::Wish::Run]) {
        let _ = host.let_in(&Hello { name: format!("player {number}"), wish, ticket: number });
    }
    (0..300).for_each(|_| host.tick());
    add("will", 8, super::pack_long(&host.will(None)).unwrap_or_default());
    seeds
}

/// What was read is written as the same bytes.
fn comes_back<T: whitewater::Message>(bytes: &[u8]) {
    if let Ok(value) = unpack::<T>(bytes) {
        let mut again = Vec::new();
        assert!(pack(&value, &mut again).is_ok() && again == bytes, "written otherwise than read");
    }
}

fn message(bytes: &[u8]) {
    comes_back::<Message>(bytes);
    if let Ok(message) = unpack(bytes) {
        let mut server = Server::with_world(played().clone());
        if let Ok(peer) = server.connect(&Hello::default().encode().unwrap_or_default()) {
            server.take(peer, message);
            server.tick();
        }
    }
}

/// It is refused, or gives a world that can be played.
fn snapshot(bytes: &[u8]) {
    let full = read(bytes, None, |_| None);
    let delta = read(bytes, Some(PlayerId(1)), |_| Some(played()));
    for mut world in [full, delta].into_iter().flatten().map(|read| read.world) {
        for _ in 0..40 {
            let inputs = world.seen_inputs();
            world.step(&inputs);
            world.take_events();
        }
        assert!(full_len(&world, Some(PlayerId(1))) > 0, "it cannot be told any more");
    }
}

/// It is refused, or an heir can go on from it.
fn will(bytes: &[u8]) {
    let Ok(will) = unpack::<Will>(bytes) else { return };
    if will.world.tick > super::TICK_MAX - 80 {
        return; // it plays, but nobody can be told of later ticks
    }
    let mut heir = Server::resume(will);
    let _ = heir.let_in(&Hello::default());
    for _ in 0..80 {
        heir.tick();
        let again = super::pack_long(&heir.will(None)).unwrap_or_default();
        assert!(unpack::<Will>(&again).is_ok(), "the heir cannot leave what it was left");
    }
}

/// Inputs have no effect at once, and later no more than keys can have.
fn server(bytes: &[u8]) {
    let mut server = Server::with_world(played().clone());
    let Ok(peer) = server.connect(&Hello::default().encode().unwrap_or_default()) else { return };
    let before = server.world().hash();
    server.receive(peer, bytes);
    assert!(server.world().hash() == before, "a packet has changed the world");
    (0..50).for_each(|_| server.tick());
}

/// A world in which something has happened.
fn played() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let mut world = World::new(24, 14, 1);
        world.join(PlayerId(0), Role::Builder);
        world.join(PlayerId(1), Role::Runner);
        for x in 3..8 {
            let at = crate::sim::At { x: 2 * x, y: 6 };
            let order = Order::Place { at, colour: Default::default(), kind: Default::default() };
            let _ = world.order(PlayerId(0), order);
        }
        let mut inputs = world.seen_inputs();
        inputs.set(PlayerId(1), crate::sim::Keys::RIGHT);
        (0..300).for_each(|_| world.step(&inputs));
        world
    })
}
