//! Messages longer than a datagram, and than a window: they arrive whole, at their place, and hold nobody up.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

use crate::common;
use crate::common::configs;
use crate::common::machine::Whole as _;

use allocation_counter::measure;
use common::rogue::{Rogue, open_server};
use common::sessions::{SUITE, World, client_config, in_packets, on, ordered, server_config};
use common::{Raw, ms};
use std::collections::VecDeque;
use std::time::Duration;
use whitewater::channel::{ChannelError, ChannelStats, RecvError, SendError};
use whitewater::inside::session::wire::Frame;
use whitewater::kcp::Config;
use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::session::Undelivered;
use whitewater::{Channel, ChannelConfig, CloseReason, Event, Message, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss};

/// Bytes of a part of a message that KCP carries.
const PART: usize = 16 << 10;
const UNORDERED: Channel = Channel::unordered(1);
/// More urgent than long messages, and less.
const QUICK: [Channel; 2] = [Channel::ordered(0), Channel::ordered(2)];
/// Nothing that both ends hold beside what they keep for messages.
const REST: usize = 32 << 10;

/// Channel 1 by each way that long messages have.
fn ways() -> [ChannelConfig; 3] {
    let ways = [on(1).config(), in_packets(on(1)), UNORDERED.config()];
    ways.map(|way| ChannelConfig { max_message: 8 << 20, ..way })
}

/// The channel of bytes that a config is of.
fn of(config: &ChannelConfig) -> Channel {
    config.channel.of().unwrap()
}

fn session(way: ChannelConfig) -> SessionConfig {
    SessionConfig { channels: vec![QUICK[0].into(), way, QUICK[1].into()], ..SessionConfig::default() }
}

fn path(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..common::path(loss) }
}

fn connected(seed: u64, loss: f64, session: &SessionConfig) -> World {
    let mut world = World::pair(seed, &path(loss), session, SUITE);
    world.connect();
    world.run(500);
    world
}

/// So many bytes that are the message of this number, and no other.
fn message(number: u64, len: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn read(world: &mut World, channel: Channel) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| world.session().recv(channel)).map(|message| message.to_vec()).collect()
}

/// How many times the first client was told that there is room, or that all has arrived.
fn told(world: &World) -> usize {
    world.clients[0].events.iter().filter(|(_, event)| *event == Event::Writable).count()
}

#[derive(Default)]
struct Played {
    got: Vec<Vec<u8>>,
    /// How long the messages of the others took, in ascending order.
    took: [Vec<Duration>; 2],
    /// Most bytes that each end said it held.
    held: [usize; 2],
}

impl Played {
    /// Of so many percent of the messages of both others it took so long at most.
    fn took(&self, percent: usize) -> [Duration; 2] {
        [0, 1].map(|index| self.took[index][self.took[index].len().saturating_sub(1) * percent / 100])
    }
}

/// Sends these as there is room, and for at least 5 s a message of 40 bytes each 16 ms on both other channels.
fn play(seed: u64, loss: f64, way: &ChannelConfig, messages: &[Vec<u8>]) -> (World, Played) {
    let mut world = connected(seed, loss, &session(*way));
    let (mut left, mut played) = (messages.iter().collect::<VecDeque<_>>(), Played::default());
    let mut sent = 0;
    for tick in 0..60_000u64 {
        let now = world.now;
        while left.front().is_some_and(|message| world.client().send(of(way), message).is_ok()) {
            left.pop_front();
        }
        let is_over = tick > 5_000 && played.got.len() == messages.len();
        if tick.is_multiple_of(16) && !is_over {
            let mut stamp = [0; 40];
            stamp[..8].copy_from_slice(&now.as_micros().to_le_bytes());
            QUICK.iter().for_each(|quick| world.client().send(*quick, &stamp).unwrap());
            sent += 1;
        }
        world.drain();
        world.run(1);
        let now = world.now;
        for (quick, took) in QUICK.iter().zip(&mut played.took) {
            while let Some(stamp) = world.session().recv(*quick) {
                let due = Time::from_micros(u64::from_le_bytes(stamp[..8].try_into().unwrap()));
                took.push(now.since(due));
            }
        }
        let ends = [world.client().memory(), world.session().memory()];
        ends.iter().zip(&mut played.held).for_each(|(end, held)| *held = (*held).max(*end));
        played.got.extend(read(&mut world, of(way)));
        if is_over && played.took.iter().all(|took| took.len() == sent) {
            break;
        }
    }
    assert!(played.took.iter().all(|took| took.len() == sent), "seed {seed}: {} of the others", sent);
    played.took.iter_mut().for_each(|took| took.sort_unstable());
    (world, played)
}

#[test]
fn long_messages_arrive_whole_at_their_place_and_hold_up_no_other_channel() {
    let small = |number| message(number, 100);
    let games = [
        (
            300_000,
            (0..16).map(|number| message(number, if number % 2 == 1 { 300_000 } else { 100 })).collect(),
        ),
        (5_000_000, vec![small(0), message(1, 5_000_000), small(2)]),
    ];
    for (seed, (len, messages)) in (1..=3).flat_map(|seed| games.iter().map(move |game| (seed, game))) {
        for way in ways() {
            let name = format!("{:?}, {}, {len} bytes, seed {seed}", way.carrier, way.channel);
            let (mut world, mut played) = play(seed, 0.05, &way, messages);
            println!(
                "{name}: the others {:?} {:?}, {:?} bytes held",
                played.took(50),
                played.took(95),
                played.held
            );
            // A way of 30 ms and the jitter; what is lost comes a round trip later.
            assert!(played.took(50).iter().all(|took| *took <= ms(36)), "{name}: {:?}", played.took(50));
            assert!(played.took(95).iter().all(|took| *took <= ms(110)), "{name}: {:?}", played.took(95));
            if way.channel == UNORDERED.into() {
                let by_number = |got: &Vec<u8>| messages.iter().position(|message| message == got);
                played.got.sort_by_key(by_number);
            }
            assert!(played.got == *messages, "{name}: as they were sent, {} came", played.got.len());
            // While they are under way: themselves, or the room for the longest; what waits in `send_memory`; and the windows.
            let most = [*len, way.max_message as usize].map(|len| len + (720 << 10));
            assert!(
                played.held[0] <= most[0] && played.held[1] <= most[1],
                "{name}: {:?} bytes",
                played.held
            );
            world.run(10_000);
            let held = [world.client().memory(), world.session().memory()];
            assert!(held.iter().all(|held| *held <= REST), "{name}: {held:?} bytes when all is quiet");
        }
    }
}

/// Without loss there is nothing that they could wait for.
#[test]
fn beside_a_long_message_not_one_of_another_channel_is_late() {
    for way in ways() {
        for len in [300_000, 5_000_000] {
            let (_, alone) = play(1, 0.0, &way, &[]);
            let (_, beside) = play(1, 0.0, &way, &[message(1, len)]);
            let [alone, beside] = [alone, beside].map(|played| played.took(100));
            println!("{:?}, {}, {len} bytes: {beside:?}, alone {alone:?}", way.carrier, way.channel);
            let is_late = |(alone, beside): (&Duration, &Duration)| *beside > *alone + ms(2);
            assert!(!alone.iter().zip(&beside).any(is_late), "{len} bytes: {beside:?}, alone {alone:?}");
        }
    }
}

#[test]
fn a_window_is_kept_full_while_a_long_message_leaves() {
    for way in ways() {
        let mut world = connected(1, 0.0, &session(way));
        world.client().send(of(&way), &message(1, 5_000_000)).unwrap();
        world.drain();
        let start = world.now;
        assert!(world.run_until(20_000, |world| !read(world, of(&way)).is_empty()));
        // 128 segments of 1148 bytes a round trip of 60 ms and the jitter.
        let (took, least) = (world.now.since(start), ms(66) * (5_000_000 / (128 * 1148)));
        println!("{:?} {}: {took:?}, {least:?} by the window", way.carrier, way.channel);
        assert!(took <= least * 5 / 4, "{:?} {}: {took:?}", way.carrier, way.channel);
    }
}

/// Around the part that KCP is given at once, and around what one packet carries.
#[test]
fn every_length_arrives_as_it_was() {
    let around = |len: usize| len - 1..=len + 1;
    let parts = [PART, 2 * PART, 3 * PART].into_iter().flat_map(around);
    let lengths: Vec<_> = parts.chain(1130..1175).chain(2046..2050).chain([0, 1, 2, 127, 128]).collect();
    let messages: Vec<_> = (0..).zip(&lengths).map(|(number, len)| message(number, *len)).collect();
    for (way, loss) in ways().into_iter().flat_map(|way| [0.0, 0.05].map(|loss| (way, loss))) {
        let name = format!("{:?}, {}, {loss} lost", way.carrier, way.channel);
        let mut world = connected(1, loss, &session(way));
        let (mut left, mut got) = (messages.iter().collect::<VecDeque<_>>(), Vec::new());
        let all = |world: &mut World| {
            while left.front().is_some_and(|message| world.client().send(of(&way), message).is_ok()) {
                left.pop_front();
            }
            world.drain();
            while let Some(len) = world.session().peek_size(of(&way)) {
                let (short, mut room) = (len.saturating_sub(1), vec![0; len]);
                let too_small = RecvError::BufferTooSmall { have: short, need: len };
                if len > 0 {
                    assert_eq!(
                        world.session().recv_into(of(&way), &mut room[..short]),
                        Err(too_small),
                        "{name}"
                    );
                }
                assert_eq!(world.session().recv_into(of(&way), &mut room), Ok(len), "{name}");
                got.push(room);
            }
            got.len() == messages.len()
        };
        assert!(world.run_until(20_000, all), "{name}: {} of {}", got.len(), messages.len());
        if way.channel == UNORDERED.into() {
            got.sort_by_key(|got| messages.iter().position(|message| message == got));
        }
        let wrong = got.iter().zip(&messages).find(|(got, message)| got != message);
        assert!(wrong.is_none(), "{name}: {:?}", wrong.map(|(got, message)| (got.len(), message.len())));
        assert!(read(&mut world, of(&way)).is_empty());
    }
}

#[test]
fn a_message_longer_than_its_channel_takes_is_too_long_and_the_longest_is_not() {
    const MAX: usize = 100_000;
    let cure = "raise its `max_message`";
    for way in ways() {
        let way = ChannelConfig { max_message: MAX as u32, ..way };
        let mut world = connected(1, 0.0, &session(way));
        let too_long = SendError::TooLong { channel: 1, len: MAX + 1, max: MAX, cure };
        assert_eq!(world.client().send(of(&way), &message(1, MAX + 1)), Err(too_long));
        assert_eq!(
            too_long.to_string(),
            "a message of 100001 bytes, where channel 1 takes 100000: raise its `max_message`"
        );
        world.client().send(of(&way), &message(2, MAX)).unwrap();
        world.run(2_000);
        assert_eq!(read(&mut world, of(&way)), [message(2, MAX)]);
        // Shorter than a part, which nobody puts together.
        let way = ChannelConfig { max_message: 500, ..way };
        let mut world = connected(1, 0.0, &session(way));
        let too_long = SendError::TooLong { channel: 1, len: 501, max: 500, cure };
        assert_eq!(world.client().send(of(&way), &message(1, 501)), Err(too_long));
        world.client().send(of(&way), &message(2, 500)).unwrap();
        world.run(2_000);
        assert_eq!(read(&mut world, of(&way)), [message(2, 500)]);
    }
}

#[test]
fn what_may_be_lost_or_come_late_has_to_fit_into_a_datagram() {
    const CHANNELS: [Channel; 2] = [Channel::sequenced(1), Channel::unreliable(1)];
    for channel in CHANNELS {
        let mut world = connected(1, 0.0, &session(channel.into()));
        let longest =
            (1..1200).rev().find(|len| world.client().send(channel, &message(1, *len)).is_ok()).unwrap();
        assert!((1140..1180).contains(&longest), "{longest}");
        for len in [1200, 300_000] {
            let refused = world.client().send(channel, &message(1, len));
            assert!(
                matches!(refused, Err(SendError::TooLong { channel: 1, len: of, .. }) if of == len),
                "{refused:?}"
            );
        }
        world.run(1_000);
        assert_eq!(read(&mut world, channel), [message(1, longest)]);
    }
}

#[test]
fn small_messages_behind_a_long_one_wait_and_come_in_order() {
    let [kcp, packets, _] = ways();
    for (way, seed) in [kcp, packets].into_iter().flat_map(|way| [1, 2, 3].map(|seed| (way, seed))) {
        let name = format!("{:?}, seed {seed}", way.carrier);
        let mut world = connected(seed, 0.05, &session(way));
        let all: Vec<_> =
            [message(0, 1 << 20)].into_iter().chain((1..=200).map(|number| message(number, 50))).collect();
        all.iter().for_each(|message| world.client().send(of(&way), message).unwrap());
        world.drain();
        let mut got = Vec::new();
        let first = |world: &mut World| {
            got.extend(read(world, of(&way)));
            !got.is_empty()
        };
        assert!(world.run_until(10_000, first), "{name}");
        assert!(got[0] == all[0], "{name}: {} bytes came first", got[0].len());
        let rest = |world: &mut World| {
            got.extend(read(world, of(&way)));
            got.len() == all.len()
        };
        assert!(world.run_until(10_000, rest), "{name}: {} of {}", got.len(), all.len());
        assert!(got == all, "{name}: in order");
    }
}

/// One may be as long as it likes; what waits behind it shares `send_memory`.
#[test]
fn what_waits_behind_a_long_message_has_a_limit() {
    for way in ways() {
        let name = format!("{:?}, {}", way.carrier, way.channel);
        let mut world = connected(1, 0.0, &session(way));
        world.frozen = true;
        let client = world.client();
        client.send(of(&way), &message(0, 5_000_000)).unwrap();
        let behind = (0..).take_while(|_| client.send(of(&way), &message(1, 20_000)).is_ok()).count();
        // A window of it is with KCP, which counts.
        assert!((2..=13).contains(&behind), "{name}: {behind}");
        assert_eq!(
            client.send(of(&way), &message(1, 300_000)),
            Err(SendError::Full { channel: 1 }),
            "{name}"
        );
        let tiny = (0..).take_while(|_| client.send(of(&way), b"x").is_ok()).count();
        assert!(tiny <= 1024, "{name}: {tiny}");
        let held = client.memory();
        assert!(held <= 5_000_000 + (600 << 10), "{name}: {held} bytes");
        QUICK.iter().for_each(|quick| client.send(*quick, &message(2, 10_000)).unwrap());
    }
}

#[test]
fn a_close_lets_a_long_message_arrive() {
    for (way, seed) in ways().into_iter().flat_map(|way| [1, 2, 3].map(|seed| (way, seed))) {
        let name = format!("{:?}, {}, seed {seed}", way.carrier, way.channel);
        let mut world = connected(seed, 0.05, &session(way));
        let (long, now) = (message(1, 1 << 20), world.now);
        world.client().send(of(&way), &long).unwrap();
        world.client().send(of(&way), b"and the last word").unwrap();
        world.clients[0].session.close(now, 7);
        world.drain();
        assert!(world.run_until(10_000, |world| world.closed().is_some()), "{name}");
        let mut got = read(&mut world, of(&way));
        got.sort_by_key(Vec::len);
        assert!(got == [b"and the last word".to_vec(), long], "{name}: {} came", got.len());
        world.run(2_000);
        let ended = world.clients[0].events.iter().find_map(|(_, event)| match event {
            Event::Closed { reason, undelivered } => Some((*reason, *undelivered)),
            _ => None,
        });
        assert_eq!(ended, Some((CloseReason::Local(7), Undelivered::default())), "{name}");
    }
}

#[test]
fn a_close_that_cannot_wait_for_a_long_message_says_that_it_did_not_arrive() {
    for way in ways() {
        let name = format!("{:?}, {}", way.carrier, way.channel);
        let mut world = connected(1, 0.0, &SessionConfig { drain: ms(500), ..session(way) });
        let now = world.now;
        world.client().send(of(&way), &message(1, 5_000_000)).unwrap();
        world.clients[0].session.close(now, 7);
        world.drain();
        world.run(3_000);
        let Some((_, Event::Closed { reason, undelivered })) = world.clients[0].events.last() else {
            panic!("{name}: it goes on")
        };
        assert_eq!(*reason, CloseReason::Local(7), "{name}");
        assert!(undelivered.messages >= 1 && undelivered.segments > 0, "{name}: {undelivered:?}");
        assert!(read(&mut world, of(&way)).is_empty(), "{name}: a part of it is none");
        let held = world.session().memory();
        assert!(held <= (1 << 21) + REST, "{name}: {held} bytes");
    }
}

#[test]
fn a_message_is_delivered_when_all_of_it_has_arrived_and_who_asked_is_told_once() {
    for (way, len) in ways().into_iter().flat_map(|way| [10, PART, 300_000].map(|len| (way, len))) {
        for seed in 1..=5 {
            let name = format!("{:?}, {}, {len} bytes, seed {seed}", way.carrier, way.channel);
            let mut world = connected(seed, 0.05, &session(way));
            assert!(world.client().is_delivered(of(&way)), "{name}: nothing is under way");
            world.client().send(of(&way), &message(1, len)).unwrap();
            assert!(!world.client().is_delivered(of(&way)), "{name}: it has not even left");
            assert!(world.client().is_delivered(QUICK[0]), "{name}: of the others nothing is under way");
            world.drain();
            assert!(world.run_until(10_000, |world| told(world) > 0), "{name}: not told");
            assert!(world.client().is_delivered(of(&way)), "{name}");
            assert_eq!(read(&mut world, of(&way)), [message(1, len)], "{name}: delivered, and not there");
            world.run(3_000);
            assert_eq!(told(&world), 1, "{name}");
        }
    }
}

#[test]
fn a_stream_takes_all_that_it_is_given_or_nothing_however_long_it_is() {
    let stream = Channel::stream(1);
    let session = SessionConfig { send_memory: 4 << 20, receive_memory: 1 << 20, ..session(stream.into()) };
    let mut world = connected(1, 0.05, &session);
    let (mut all, mut got, mut number) = (Vec::new(), Vec::new(), 0);
    // A little first: the rest of its segment is filled up.
    for len in [1, 100, 200_000, 3, 150_000, 16_384, 400_000] {
        let bytes = message(number, len);
        number += 1;
        let mut is_sent = false;
        let sent = |world: &mut World| {
            is_sent = is_sent || world.client().send(stream, &bytes).is_ok();
            world.drain();
            got.extend(read(world, stream).concat());
            is_sent
        };
        assert!(world.run_until(10_000, sent), "{len} bytes");
        all.extend(bytes);
    }
    let come = |world: &mut World| {
        got.extend(read(world, stream).concat());
        got.len() == all.len()
    };
    assert!(world.run_until(10_000, come), "{} of {} bytes", got.len(), all.len());
    assert!(got == all);
    // What can never be taken changes nothing for the others.
    let refused = world.client().send(stream, &vec![1; 5 << 20]);
    assert!(matches!(refused, Err(SendError::TooLong { channel: 1, .. })), "{refused:?}");
    world.drain();
    world.frozen = true;
    let room = (0..).take_while(|_| world.client().send(QUICK[0], &[1; 10_000]).is_ok()).count();
    assert!(room * 10_000 > 1_000_000, "{room} messages of 10 kB");
}

#[test]
fn who_reads_only_when_told_that_there_is_something_gets_everything() {
    for (way, seed) in ways().into_iter().flat_map(|way| [1, 2, 3].map(|seed| (way, seed))) {
        let name = format!("{:?}, {}, seed {seed}", way.carrier, way.channel);
        let mut world = connected(seed, 0.1, &session(way));
        let lengths = [100, 30_000, 100, 1500, PART, 200_000, 3, 100];
        let mut left: VecDeque<_> = (0..).zip(lengths).map(|(number, len)| message(number, len)).collect();
        let (mut told, mut got) = (world.events.len(), 0);
        let all = |world: &mut World| {
            while left.front().is_some_and(|message| world.client().send(of(&way), message).is_ok()) {
                left.pop_front();
            }
            world.drain();
            let events = &world.events[told..];
            let is_told = events.iter().any(|(.., event)| *event == Event::Readable);
            told = world.events.len();
            got += if is_told { read(world, of(&way)).len() } else { 0 };
            got == lengths.len()
        };
        assert!(world.run_until(10_000, all), "{name}: {got} of {}", lengths.len());
    }
}

/// A message of a type, as long as a file.
#[derive(Debug, PartialEq)]
struct Level(Vec<u8>);

impl Message for Level {
    const SHAPE: u64 = shape("Level: bytes", &[1 << 24]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.bool(true)?;
        to.byte_vec(&self.0, 1 << 24)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        from.bool()?;
        from.byte_vec(1 << 24).map(Self)
    }
}

#[test]
fn a_long_message_of_a_type_arrives_and_its_memory_is_given_back() {
    const LEVELS: Channel<Level> = Channel::ordered(1);
    for config in [LEVELS.config(), Channel::<Level>::unordered(1).config()] {
        let level: Channel<Level> = config.channel.of().unwrap();
        let config = ChannelConfig { max_message: 8 << 20, ..config };
        let mut world = connected(1, 0.05, &session(config));
        world.client().send(level, &Level(message(1, 5_000_000))).unwrap();
        world.client().send(level, &Level(message(2, 10))).unwrap();
        world.drain();
        let mut got = Vec::new();
        let all = |world: &mut World| {
            got.extend(world.session().recv(level));
            got.len() == 2
        };
        assert!(world.run_until(20_000, all), "{} came", got.len());
        got.sort_by_key(|level| level.0.len());
        assert!(got == [Level(message(2, 10)), Level(message(1, 5_000_000))]);
        world.run(10_000);
        let held = [world.client().memory(), world.session().memory()];
        assert!(held.iter().all(|held| *held <= REST), "{held:?} bytes when all is quiet");
        let heap = world.clients.pop().unwrap().session;
        let heap = -measure(|| drop(heap)).bytes_current;
        assert!(usize::try_from(heap).unwrap() <= 2 * REST, "{heap} bytes of a client that is quiet");
    }
}

/// A server with one channel that takes so much, and a client that sends what it likes.
fn attacked(way: ChannelConfig) -> (World, Rogue) {
    let session = session(way);
    let mut world = open_server(ServerConfig::insecure(session));
    let rogue = Rogue::connect(&mut world, 1).unwrap();
    (world, rogue)
}

/// The segments of a message of KCP, from number `sn` on.
fn cut(sn: u32, message: &[u8]) -> Vec<Raw> {
    let count = message.len().div_ceil(1100).max(1) as u32;
    let segment = |(n, data): (u32, &[u8])| Raw { frg: (count - 1 - n) as u8, ..Raw::push(sn + n, data) };
    let chunks = message.chunks(1100).chain(message.is_empty().then_some(&message[..0]));
    (0..).zip(chunks).map(segment).collect()
}

/// Sends messages of KCP on channel 1, from number `sn` on, until the session ends.
fn flood(world: &mut World, rogue: &mut Rogue, sn: &mut u32, messages: &[Vec<u8>]) {
    for message in messages {
        for segment in cut(*sn, message) {
            let bytes = rogue.channel(1, &[segment]);
            let datagram = rogue.sealed(world, &[Frame::Kcp(&bytes)]);
            let (now, from) = (world.now, rogue.address);
            world.audited(from, datagram.len());
            world.server.give(now, from, &datagram);
            *sn += 1;
        }
        world.drain();
        world.strangers.clear();
    }
}

#[test]
fn a_peer_that_sends_more_than_a_message_may_have_ends_its_session_and_takes_no_more_memory() {
    const MAX: usize = 100_000;
    for way in ways() {
        let way = ChannelConfig { max_message: MAX as u32, ..way };
        let short = ChannelConfig { max_message: 500, ..way };
        let part = || message(1, PART);
        let cases = [
            ("parts without an end", way, vec![part(); 20], 6),
            (
                "an end that is too much",
                way,
                vec![part(), part(), part(), part(), part(), part(), message(1, 1697)],
                6,
            ),
            ("what is longer than a part", way, vec![message(1, PART + 1)], 0),
            ("a part that is longer than a part", way, vec![part(), message(1, PART + 1)], 1),
            ("what is shorter than a part, and longer than it may be", short, vec![message(1, 501)], 0),
            ("a part where none may be", short, vec![part()], 0),
        ];
        for (what, way, messages, good) in cases {
            let name = format!("{what}: {:?}, {}", way.carrier, way.channel);
            let (mut world, mut rogue) = attacked(way);
            let (before, mut sn) = (world.session().memory(), 0);
            world.drain();
            let heap = measure(|| flood(&mut world, &mut rogue, &mut sn, &messages[..good]));
            assert!(world.session().is_connected(), "{name}: as much may come");
            let held = world.session().memory() - before;
            println!("{name}: {held} bytes, of the heap {} at most", heap.bytes_max);
            flood(&mut world, &mut rogue, &mut sn, &messages[good..]);
            assert!(!world.session().is_connected(), "{name}: it goes on");
            world.run(1_100);
            assert_eq!(world.closed(), Some(CloseReason::StreamCorrupt), "{name}");
            let most = MAX + PART + REST;
            assert!(held <= most, "{name}: {held} bytes");
            // Twice, for the moment in which it is moved.
            assert!(heap.bytes_max as usize <= most + MAX, "{name}: {} bytes of the heap", heap.bytes_max);
            let read = world.session().recv(of(&way)).map(|message| message.len());
            assert_eq!(read, None, "{name}: nothing of it is a message");
        }
    }
}

/// A message that waits to be read, and what its window has room for: the next one is not put together before that is read.
#[test]
fn long_messages_that_nobody_reads_take_no_more_than_one_of_them_and_the_window() {
    const MAX: usize = 400_000;
    for way in ways() {
        let name = format!("{:?}, {}", way.carrier, way.channel);
        let way = ChannelConfig { max_message: MAX as u32, ..way };
        let (mut world, mut rogue) = attacked(way);
        let parts = MAX / PART;
        let one = || (0..parts).map(|_| message(1, PART)).chain([message(1, MAX - parts * PART)]);
        let (before, mut sn) = (world.session().memory(), 0);
        world.drain();
        let messages: Vec<_> = one().chain(one()).chain(one()).collect();
        let heap = measure(|| flood(&mut world, &mut rogue, &mut sn, &messages));
        assert!(world.session().is_connected(), "{name}: {:?}", world.closed());
        let held = world.session().memory() - before;
        println!("{name}: {held} bytes, {} of the heap", heap.bytes_current);
        let most = MAX + (256 << 10) + REST;
        assert!(
            held <= most && usize::try_from(heap.bytes_current).unwrap() <= most,
            "{name}: {held}, {}",
            heap.bytes_current
        );
    }
}

#[test]
fn a_server_whose_memory_is_used_up_by_long_messages_keeps_its_limit() {
    let limit = 4 << 20;
    let [way, ..] = ways();
    let session = session(ChannelConfig { max_message: 1 << 20, ..way });
    let mut world =
        World::new(1, &ServerConfig { memory: limit, max_sessions: 32, ..server_config(&session, SUITE) });
    for _ in 0..4 {
        world.add(&path(0.0), &path(0.0), &session, client_config(SUITE));
    }
    assert!(world.run_until(5_000, |world| world.sessions.len() == 4));
    for client in &mut world.clients {
        client.session.connection_mut().unwrap().send(of(&way), &message(1, 1 << 20)).unwrap();
    }
    world.drain();
    for _ in 0..150 {
        world.run(100);
        let used = world.server.stats().memory;
        assert!(used <= limit + (64 << 10), "{used} bytes");
    }
    // Who cannot go on, because nobody reads, is let go, and the memory is there again when what has come is read.
    assert_eq!(world.closed(), Some(CloseReason::NoMemory));
    for id in world.sessions.clone() {
        while world.server.connection_mut(id).is_some_and(|end| end.recv(of(&way)).is_some()) {}
    }
    world.drain();
    world.run(10_000);
    let used = world.server.stats().memory;
    assert!(used <= limit / 4, "{used} bytes when all is over: {:?}", world.closed());
}

#[test]
fn a_handle_that_is_none_of_the_channels_is_an_error_that_says_so_in_words() {
    const NAMES: Channel<Option<String>> = Channel::ordered(1);
    let channels = vec![on(0).into(), NAMES.into()];
    let mut world = connected(1, 0.0, &SessionConfig { channels, ..SessionConfig::default() });
    let client = world.client();
    let errors = [
        (client.send(on(9), b"x"), "there is no channel 9: the session has 2"),
        (
            client.send(Channel::<[u8]>::unordered(0), &[1]),
            "channel 0 is ordered of [u8], and the handle is unordered of [u8]",
        ),
        (
            client.send(on(1), b"x"),
            "channel 1 is ordered of Option<String>, and the handle is ordered of [u8]",
        ),
        (
            client.send(Channel::<Option<String>>::ordered(0), &None),
            "channel 0 is ordered of [u8], and the handle is ordered of Option<String>",
        ),
        (
            client.send(Channel::<(u8, Vec<Level>)>::ordered(0), &(1, Vec::new())),
            "channel 0 is ordered of [u8], and the handle is ordered of (u8, Vec<Level>)",
        ),
        (
            client.write(Channel::stream(0), b"x").map(drop),
            "channel 0 is ordered of [u8], and the handle is stream of [u8]",
        ),
        (
            client.write(on(0), b"x").map(drop),
            "channel 0 is ordered of [u8], and the handle is stream of [u8]",
        ),
        (client.send_end(Channel::stream(7)), "there is no channel 7: the session has 2"),
    ];
    for (error, words) in errors {
        let error = error.unwrap_err();
        assert!(matches!(error, SendError::Channel(_)) && !error.is_full(), "{error:?}");
        assert_eq!(error.to_string(), words);
    }
    let missing = ChannelError::Missing { number: 9, count: 2 };
    assert_eq!(client.recv_into(on(9), &mut [0; 9]), Err(RecvError::Channel(missing)));
    let wrong = client.recv_into(on(1), &mut [0; 9]).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "channel 1 is ordered of Option<String>, and the handle is ordered of [u8]"
    );
    assert_eq!(client.recv(Channel::<[u8]>::unordered(0)), None);
    assert_eq!((client.peek_size(on(9)), client.peek_size(on(1))), (None, None));
    assert!(client.check(on(0)).is_ok() && client.check(NAMES).is_ok() && client.check(on(1)).is_err());
    let wrong = Channel::<[u8]>::unordered(0);
    client.send(on(0), b"under way").unwrap();
    assert!(!client.is_delivered(on(0)) && client.is_delivered(wrong) && client.is_delivered(on(9)));
    assert!(client.kcp_stats(on(0)).is_some() && client.sent_up_to(on(0)).is_some());
    for handle in [wrong, on(1), on(9)] {
        assert!(client.kcp_stats(handle).is_none() && client.peek_size(handle).is_none(), "{handle:?}");
        assert_eq!((client.sent_up_to(handle), client.acked_up_to(handle)), (None, None), "{handle:?}");
        assert_eq!(client.channel_stats(handle), ChannelStats::default(), "{handle:?}");
    }
    // And what was said with the right ones arrives.
    client.send(NAMES, &Some("one".to_owned())).unwrap();
    client.send(on(0), b"two").unwrap();
    world.run(500);
    assert_eq!(world.session().recv(on(1)), None, "it stays for who has the right handle");
    assert_eq!(world.session().recv(NAMES), Some(Some("one".to_owned())));
    assert_eq!(read(&mut world, on(0)), [&b"under way"[..], b"two"]);
}

/// With a queue of KCP that is too short for a part.
#[test]
fn a_long_message_that_can_never_leave_is_refused() {
    for kcp in
        [Config { snd_queue: 14, ..configs::turbo() }, Config { snd_queue_bytes: 16_000, ..configs::turbo() }]
    {
        let session = SessionConfig { channels: ordered([kcp]), ..SessionConfig::default() };
        let mut world = connected(1, 0.0, &session);
        let refused = world.client().send(on(0), &message(1, 300_000));
        assert!(matches!(refused, Err(SendError::TooLong { channel: 0, len: 300_000, .. })), "{refused:?}");
        world.client().send(on(0), &message(2, 10_000)).unwrap();
        world.run(1_000);
        assert_eq!(read(&mut world, on(0)), [message(2, 10_000)]);
    }
    // And with one that is just long enough it does.
    let kcp = Config { snd_queue: 15, ..configs::turbo() };
    let mut world =
        connected(1, 0.0, &SessionConfig { channels: ordered([kcp]), ..SessionConfig::default() });
    world.client().send(on(0), &message(1, 300_000)).unwrap();
    world.drain();
    world.run(10_000);
    assert_eq!(read(&mut world, on(0)), [message(1, 300_000)]);
}

#[test]
fn a_long_message_in_packets_counts_once_and_is_not_told_as_arrived_by_its_place_in_a_packet() {
    let [_, ordered, unordered] = ways();
    for (way, numbers) in [(ordered, [0, 2]), (unordered, [0, 1])] {
        let name = way.channel.to_string();
        let mut world = connected(1, 0.0, &session(ChannelConfig { receipts: true, ..way }));
        for len in [10, 5_000_000, 10] {
            world.client().send(of(&way), &message(1, len)).unwrap();
        }
        assert_eq!(world.client().stats().messages_unacked, 3, "{name}");
        world.drain();
        world.run(500);
        let told = |world: &mut World| -> Vec<_> {
            std::iter::from_fn(|| world.client().pop_delivered_message(of(&way)))
                .map(|number| number.0)
                .collect()
        };
        assert_eq!(told(&mut world), numbers, "{name}: the short ones have arrived");
        assert_eq!(world.client().stats().messages_unacked, 1, "{name}");
        assert!(!world.client().is_delivered(of(&way)), "{name}");
        let all = |world: &mut World| world.client().is_delivered(of(&way));
        assert!(world.run_until(20_000, all), "{name}");
        assert_eq!((told(&mut world), world.client().stats().messages_unacked), (Vec::new(), 0), "{name}");
    }
}
