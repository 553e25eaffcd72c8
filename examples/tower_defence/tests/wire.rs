//! Every packet is read as it was written, and nothing that a stranger sends does harm.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

mod common;

use common::Game;
use proptest::prelude::*;
use rand::RngExt;
use std::collections::BTreeMap;
use tower_defence::sim::rules::MONEY_MAX;
use tower_defence::sim::{Event, EventKind, Keys, Order, PlayerId, Role, World};
use tower_defence::wire::{
    self, AGE_MAX, CHAT_MAX, Hello, INPUTS_MAX, Inputs, Message, NAME_MAX, PACKET_MAX, ReadError, Will, Wish,
    hostile,
};
use whitewater_sim::SimRng;

fn any_player() -> impl Strategy<Value = PlayerId> {
    (0..24_u8).prop_map(PlayerId)
}

fn any_text(max: usize) -> impl Strategy<Value = String> {
    ".{0,40}".prop_map(move |mut text: String| {
        while text.len() > max {
            text.pop();
        }
        text
    })
}

fn any_order() -> impl Strategy<Value = Order> {
    any::<u64>().prop_map(|seed| common::any_order(&mut SimRng::new(seed, 0)))
}

fn any_event() -> impl Strategy<Value = Event> {
    let fields = (0..1_u32 << 31, 0..14_u8, any::<bool>(), 0..=MONEY_MAX, any_player(), 0..256_u16);
    fields.prop_map(|(tick, kind, running, money, id, data)| Event {
        tick,
        kind: EventKind::of(kind).unwrap(),
        running,
        money,
        id,
        data,
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (any::<u16>(), any_order()).prop_map(|(number, order)| Message::Order { number, order }),
        (prop::option::of(any_player()), any_text(CHAT_MAX))
            .prop_map(|(from, text)| Message::Chat { from, text }),
        any_event().prop_map(Message::Event),
        (any_player(), any::<bool>(), any::<bool>(), any_text(NAME_MAX)).prop_map(
            |(player, runs, is_here, name)| {
                let role = if runs { Role::Runner } else { Role::Builder };
                Message::Player { player, role, is_here, name }
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_message_comes_back(message in any_message()) {
        let mut bytes = Vec::new();
        wire::pack(&message, &mut bytes).unwrap();
        prop_assert_eq!(wire::unpack::<Message>(&bytes), Ok(message));
    }

    #[test]
    fn any_inputs_come_back(first in 0..1_u32 << 30, keys in prop::collection::vec(0..16_u8, 0..=INPUTS_MAX), is_lost: bool) {
        let inputs = Inputs { first, keys: keys.into_iter().map(Keys::from_bits).collect(), is_lost };
        let mut bytes = Vec::new();
        wire::pack(&inputs, &mut bytes).unwrap();
        prop_assert!(bytes.len() <= 5 + (INPUTS_MAX * 5).div_ceil(8));
        prop_assert_eq!(wire::unpack::<Inputs>(&bytes), Ok(inputs));
    }

    #[test]
    fn any_hello_comes_back(name in any_text(NAME_MAX), ticket: u64, wish in 0..4_u8) {
        let wish = [Wish::Any, Wish::Build, Wish::Run, Wish::Watch][usize::from(wish)];
        let hello = Hello { name, wish, ticket };
        prop_assert_eq!(Hello::decode(&hello.encode().unwrap()), Ok(hello));
    }

    #[test]
    fn any_bytes_are_refused_or_are_what_is_written(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        hostile::any_packet(&bytes);
    }

    /// Packets of every kind that were damaged on the way.
    #[test]
    fn damaged_packets_do_no_harm(damage in prop::collection::vec((any::<usize>(), 1..=255_u8), 1..6)) {
        for (_, mut bytes) in hostile::seeds() {
            for (at, flip) in &damage {
                let at = 1 + at % (bytes.len() - 1);
                bytes[at] ^= flip;
            }
            hostile::any_packet(&bytes);
        }
    }

    /// Whatever a damaged snapshot says, it is refused, or gives a world that can be played on.
    #[test]
    fn a_damaged_snapshot_is_refused_or_can_be_played(seed in 0..200_u64, damage in prop::collection::vec((any::<usize>(), 1..=255_u8), 1..4)) {
        let game = played(seed, 400);
        let mut bytes = Vec::new();
        wire::write(&mut bytes, &game.world, Some(PlayerId(1)), None, Some(1)).unwrap();
        for (at, flip) in damage {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        if let Ok(read) = wire::read(&bytes, None, |_| None) {
            play_on(read.world);
        }
    }
}

fn played(seed: u64, ticks: u32) -> Game {
    let mut game = Game::new(seed);
    (0..ticks).for_each(|_| game.step());
    game
}

/// It does not panic, and can be sent.
fn play_on(mut world: World) {
    for _ in 0..40 {
        let inputs = world.seen_inputs();
        world.step(&inputs);
        world.take_events();
    }
    let _ = wire::full_len(&world, Some(PlayerId(1)));
}

/// As a client does: it keeps what it could read, and the server uses what is known to have arrived as a base.
#[test]
fn ten_thousand_sequences_with_loss_give_the_worlds_that_were_sent() {
    let (mut snapshots, mut deltas, mut lost, mut bytes, mut full) = (0_u64, 0_u64, 0_u64, 0, 0);
    let mut game = Game::new(0);
    for seed in 0..10_000_u64 {
        let mut rng = SimRng::new(seed, 9);
        let chance = rng.random::<f64>() * 0.6;
        if seed % 100 == 0 {
            game = Game::new(seed); // otherwise it continues where the last sequence ended
        }
        let you = [None, Some(PlayerId(0)), Some(PlayerId(1))][usize::from(common::below(&mut rng, 3))];
        let mut sent: BTreeMap<u32, World> = BTreeMap::new();
        let mut has: BTreeMap<u32, World> = BTreeMap::new();
        let mut acked = None;
        let mut packet = Vec::new();
        for _ in 0..12 {
            (0..=common::below(&mut rng, 8)).for_each(|_| game.step());
            let world = &game.world;
            let oldest = world.tick.saturating_sub(AGE_MAX.into());
            let base = acked.and_then(|tick| sent.get(&tick)).filter(|base: &&World| base.tick >= oldest);
            deltas += u64::from(base.is_some());
            wire::write(&mut packet, world, you, base, None).unwrap();
            sent.insert(world.tick, world.clone());
            snapshots += 1;
            bytes += packet.len();
            full += wire::full_len(world, you);
            if rng.random::<f64>() < chance {
                lost += 1;
                continue;
            }
            let read = wire::read(&packet, you, |tick| has.get(&tick)).unwrap_or_else(|error| {
                panic!("seed {seed}: tick {}: {error}", world.tick);
            });
            assert_eq!(read.world.hash_for(you), world.hash_for(you), "seed {seed}");
            assert_eq!(read.world.board, world.board, "seed {seed}");
            assert_eq!(read.world.turrets, world.turrets, "seed {seed}");
            assert!(read.world.runners().eq(world.runners()), "seed {seed}");
            has.insert(read.world.tick, read.world);
            if rng.random::<f64>() >= chance {
                acked = Some(world.tick); // an acknowledgement may get lost, too
            }
        }
    }
    println!("{snapshots} snapshots, {deltas} deltas, {lost} lost, {bytes} bytes, {full} in full");
    assert!(
        deltas > snapshots / 2 && lost > snapshots / 5 && bytes * 2 < full,
        "{deltas} {lost} {bytes} {full}"
    );
}

#[test]
fn a_snapshot_without_its_base_is_refused_and_says_so() {
    let game = played(3, 50);
    let (base, mut later) = (game.world.clone(), game);
    later.step();
    let mut bytes = Vec::new();
    wire::write(&mut bytes, &later.world, None, Some(&base), None).unwrap();
    assert_eq!(wire::read(&bytes, None, |_| None).unwrap_err(), ReadError::NoBase);
    // With another base than its own, it does not give a third world.
    let mut other = played(4, 50).world;
    other.tick = base.tick;
    assert!(wire::read(&bytes, None, |_| Some(&other)).is_err());
}

#[test]
fn the_largest_world_fits_into_a_datagram() {
    let mut world = World::new(32, 18, 7);
    for number in 0..24 {
        world.join(PlayerId(number), if number < 20 { Role::Runner } else { Role::Builder });
    }
    let mut rng = SimRng::new(1, 1);
    let mut inputs = world.seen_inputs();
    let mut largest = 0;
    for tick in 0..4000 {
        let builder = PlayerId(20 + common::below(&mut rng, 4));
        let _ = world.order(builder, common::any_order(&mut rng));
        inputs.set(PlayerId(common::below(&mut rng, 20)), Keys::from_bits(8 | common::below(&mut rng, 4)));
        world.step(&inputs);
        if tick % 50 == 0 {
            largest = largest.max(wire::full_len(&world, Some(PlayerId(0))));
        }
    }
    assert!(world.turrets.len() > 10, "{} turrets", world.turrets.len());
    assert!((300..PACKET_MAX).contains(&largest), "{largest} bytes");
}

/// A lying host's wills: of arbitrary bytes, cut off anywhere, and with any bit turned.
#[test]
fn no_will_harms_an_heir() {
    let (_, seed) = hostile::seeds().into_iter().find(|(name, _)| name == "will").unwrap();
    hostile::any_packet(&seed);
    let (kind, will) = seed.split_first().unwrap();
    let whole: Will = wire::unpack(will).unwrap();
    assert_eq!(wire::pack_long(&whole).unwrap(), will);
    for end in 0..will.len() {
        assert!(wire::unpack::<Will>(&will[..end]).is_err(), "{end} bytes are no will");
    }
    for bit in 0..8 * will.len() {
        let mut other = seed.clone();
        other[1 + bit / 8] ^= 1 << (bit % 8);
        hostile::any_packet(&other);
    }
    let mut rng = SimRng::new(41, 1);
    for _ in 0..20_000 {
        let len = usize::try_from(rng.next_u64() % 400).unwrap();
        let bytes: Vec<u8> =
            std::iter::once(*kind).chain((0..len).map(|_| common::below(&mut rng, 256))).collect();
        hostile::any_packet(&bytes);
    }
}

/// A host that writes what no server has, with the right check.
#[test]
fn a_will_whose_places_purses_and_runners_do_not_belong_together_is_refused() {
    let (_, seed) = hostile::seeds().into_iter().find(|(name, _)| name == "will").unwrap();
    let will: Will = wire::unpack(&seed[1..]).unwrap();
    let mut twice = will.clone();
    twice.seats.push(will.seats[0].clone());
    let mut without = will.clone();
    without.seats.pop();
    let mut other = will.clone();
    other.seats[0].role = Role::Runner;
    let mut gone = will;
    gone.world.leave(PlayerId(1));
    for wrong in [twice, without, other, gone] {
        assert!(wire::pack_long(&wrong).is_err());
    }
}
