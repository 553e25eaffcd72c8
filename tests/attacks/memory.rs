//! Clients that fill the memory of a server: what they make it hold is counted, and taken from nobody else.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::machine::Whole as _;

use allocation_counter::measure;
use common::ms;
use common::rogue::{Rogue, open_server};
use common::sessions::{World, client_config, on};
use std::time::Duration;
use whitewater::channel::{Carrier, Channels, ChannelsConfig};
use whitewater::inside::session::wire::{Frame, KcpPart};
use whitewater::message::{BitWriter, OWNED_PER_BIT, OWNED_START, Payload};
use whitewater::packet::Seq16;
use whitewater::session::Suite;
use whitewater::{
    Channel, ChannelConfig, CloseReason, Message, ServerConfig, SessionConfig, SessionId, Time,
};
use whitewater_sim::LinkConfig;

/// A message of one bit.
#[derive(Message)]
struct Bit {
    is: bool,
}

/// A type of many bytes that takes one bit if it is empty.
#[derive(Message)]
struct Large {
    rows: Option<[u64; 100]>,
}

/// Payloads with as many of these messages as the other end keeps on each channel.
fn full<P: Payload + ?Sized>(channels: &[ChannelConfig], kind: Kind<P>, message: &P::Sent) -> Vec<Vec<u8>> {
    let config = ChannelsConfig { channels: channels.to_vec(), packets: 64, ..ChannelsConfig::default() };
    let (mut end, mut payloads, mut pn) = (Channels::new(&config).unwrap(), Vec::new(), 0);
    let now = Time::from_millis(1);
    for number in (0..).take(channels.len()) {
        while end.send(now, kind(number), message).is_ok() {}
    }
    loop {
        let payload = end.write(now, ms(0)).unwrap().to_vec();
        if payload.is_empty() {
            return payloads;
        }
        payloads.push(payload);
        let number = Seq16(pn);
        end.on_sent(now, number);
        end.on_acked(number);
        pn = pn.wrapping_add(1);
    }
}

/// Makes the channel with a number.
type Kind<P> = fn(u8) -> Channel<P>;

/// What one of 50 clients sends.
type Hostile = Box<dyn Fn(&mut Rogue, &World) -> Vec<Vec<u8>>>;

fn payloads(payloads: Vec<Vec<u8>>) -> Hostile {
    Box::new(move |rogue, world| {
        payloads.iter().map(|payload| rogue.sealed(world, &[Frame::Packed(payload)])).collect()
    })
}

/// Two messages on each channel, as far apart as may be.
fn far_apart(count: usize) -> Vec<u8> {
    let mut payload = BitWriter::new(Vec::new());
    for _ in 0..count {
        payload.bool(true).unwrap();
        payload.int(2, 1..=96).unwrap();
        payload.int(1, 0..=u16::MAX).unwrap();
        for is_second in [false, true] {
            if is_second {
                payload.relative((1 << 14) - 1, 1).unwrap();
            }
            payload.bool(true).unwrap();
            payload.int(0, 0..=2047).unwrap();
        }
    }
    payload.finish()
}

fn channels<P: Payload + ?Sized>(count: u8, kind: Kind<P>) -> Vec<ChannelConfig> {
    let deepest = |number| ChannelConfig {
        carrier: Carrier::Packets,
        send_buffer: 1 << 14,
        receive_buffer: 1 << 14,
        messages_per_packet: 96,
        ..kind(number).config()
    };
    (0..count).map(deepest).collect()
}

/// The channels, and a flood on them.
fn floods() -> Vec<(&'static str, Vec<ChannelConfig>, Hostile)> {
    let bits: [(_, Kind<Bit>); 3] = [
        ("unreliable bits", Channel::unreliable),
        ("unordered bits", Channel::unordered),
        ("sequenced bits", Channel::sequenced),
    ];
    let bytes: [(_, Kind<[u8]>); 2] =
        [("unreliable", Channel::unreliable), ("unordered", Channel::unordered)];
    let mut floods = Vec::new();
    for (name, kind) in bits {
        let channels = channels(32, kind);
        let flood = payloads(full(&channels, kind, &Bit { is: true }));
        floods.push((name, channels, flood));
    }
    for (name, kind) in bytes {
        let channels = channels(8, kind);
        let flood = payloads(full(&channels, kind, &[]));
        floods.push((name, channels, flood));
    }
    floods.push(("far apart", channels(32, on), payloads(vec![far_apart(32)])));
    let datagrams: Hostile = Box::new(|rogue, world| {
        (0..500).map(|_| rogue.sealed(world, &[const { Frame::Dgram(&[]) }; 64])).collect()
    });
    floods.push(("empty datagrams", channels(1, on), datagrams));
    let segments: Hostile = Box::new(|rogue, world| {
        let segment = |number: u32| rogue.channel(0, &[common::Raw::push(2 * number + 1, &[])]);
        let all: Vec<_> = (0..60).map(segment).collect();
        all.iter().map(|segment| rogue.sealed(world, &[Frame::Kcp(segment)])).collect()
    });
    floods.push(("segments with gaps", vec![on(0).config()], segments));
    let edges: Hostile = Box::new(|rogue, world| {
        let segment = |channel, sn| rogue.channel(channel, &[common::Raw::push(sn, &[7])]);
        let all: Vec<_> =
            [100, 1_000, 8_191].iter().flat_map(|sn| (0..32).map(|channel| segment(channel, *sn))).collect();
        all.iter().map(|segment| rogue.sealed(world, &[Frame::Kcp(segment)])).collect()
    });
    let wide = |number| {
        let channel = on(number).config();
        ChannelConfig { kcp: whitewater::kcp::Config { rcv_wnd: 8192, ..channel.kcp }, ..channel }
    };
    floods.push(("edges of windows", (0..32).map(wide).collect(), edges));
    let parts: Hostile = Box::new(|rogue, world| {
        let part = |number| KcpPart { number: Seq16(number), id: 0, last: 255 };
        (0..200).map(|number| rogue.sealed(world, &[Frame::KcpPart(part(number), &[7])])).collect()
    });
    floods.push(("parts of frames", vec![on(0).config()], parts));
    floods
}

/// A message takes few bits on the way, and a place and a buffer at its end.
#[test]
fn what_a_peer_makes_a_server_hold_is_counted_as_it_arrives_and_stays_within_memory() {
    let limit = 64 << 20;
    for (name, channels, hostile) in floods() {
        for is_polled in [true, false] {
            let session =
                SessionConfig { channels: channels.clone(), unacked: 64, ..SessionConfig::default() };
            let config = ServerConfig {
                memory: limit,
                max_sessions: 64,
                sessions_per_address: 64, // the rogues are all in one network
                ..ServerConfig::insecure(session)
            };
            let mut world = open_server(config);
            let mut rogues: Vec<_> =
                (1..=50).map(|number| Rogue::connect(&mut world, number).unwrap()).collect();
            let before = world.server.stats().memory;
            let datagrams: Vec<_> = rogues.iter_mut().map(|rogue| hostile(rogue, &world)).collect();
            let sent: usize = datagrams.iter().flatten().map(Vec::len).sum();
            let (now, mut buf, mut most) = (world.now, Vec::with_capacity(1500), 0);
            let heap = measure(|| {
                for (rogue, datagrams) in rogues.iter().zip(&datagrams) {
                    for datagram in datagrams {
                        world.server.give(now, rogue.address, datagram);
                        while is_polled && world.server.emit_to(now, &mut buf).is_some() {}
                        most = most.max(world.server.stats().memory);
                    }
                }
            });
            let (counted, held) =
                (world.server.stats().memory - before, u64::try_from(heap.bytes_current).unwrap());
            println!("{name}: {sent} bytes sent, {held} held, {counted} counted");
            assert!(
                held <= counted + counted / 8 + (64 << 10),
                "{name}: {held} bytes held, {counted} counted"
            );
            assert!(most <= limit, "{name}: {most} bytes counted");
            assert!(heap.bytes_max <= limit + limit / 8, "{name}: {} bytes for a moment", heap.bytes_max);
        }
    }
}

/// Each item takes a bit, and 808 bytes of memory.
#[test]
fn a_message_that_would_take_much_more_memory_than_it_has_bits_ends_its_session() {
    const LISTS: Channel<Vec<Large>> = Channel::unordered(0);
    for (items, is_good) in [(300, true), (9_000, false)] {
        let session = SessionConfig { channels: vec![LISTS.into()], ..SessionConfig::default() };
        let mut world = open_server(ServerConfig::insecure(session));
        let mut rogue = Rogue::connect(&mut world, 1).unwrap();
        let mut payload = BitWriter::new(Vec::new());
        payload.bool(true).unwrap();
        payload.int(1, 1..=64).unwrap();
        payload.int(0, 0..=u16::MAX).unwrap();
        payload.bool(true).unwrap();
        payload.int(items, 0..=65_535).unwrap();
        (0..items).for_each(|_| payload.bool(false).unwrap());
        let datagram = rogue.sealed(&world, &[Frame::Packed(&payload.finish())]);
        let (now, from) = (world.now, rogue.address);
        let heap = measure(|| world.server.give(now, from, &datagram));
        assert!(heap.bytes_max <= 2 << 20, "{} bytes for {items} items", heap.bytes_max);
        let got =
            world.session().recv(LISTS).map(|list| list.iter().filter(|item| item.rows.is_none()).count());
        assert_eq!(got, is_good.then_some(items));
        world.run(1_100);
        assert_eq!(world.closed(), (!is_good).then_some(CloseReason::Protocol));
    }
}

/// Each list takes 17 bits, and 544 bytes of memory with its only item.
#[test]
fn lists_of_one_item_each_take_no_more_memory_than_they_count_for() {
    const COUNT: usize = 1000;
    let mut writer = BitWriter::new(Vec::new());
    writer.int(COUNT, 0..=65_535).unwrap();
    for _ in 0..COUNT {
        writer.int(1, 0..=65_535).unwrap();
        writer.bool(false).unwrap();
    }
    let bytes = writer.finish();
    let heap = measure(|| {
        let lists = <Vec<Vec<Option<[u64; 64]>>> as Payload>::unpack(&bytes).unwrap();
        assert!(lists.len() == COUNT && lists.iter().all(|list| list.len() == 1));
    });
    let most = u64::try_from(OWNED_START + 8 * bytes.len() * OWNED_PER_BIT).unwrap();
    assert!(heap.bytes_max <= most, "{} bytes of {most}", heap.bytes_max);
}

const EVENTS: Channel<u64> = Channel::ordered(0);
const PICKUPS: Channel<u64> = Channel::unordered(1);
const INPUTS: Channel<u64> = Channel::unreliable(2);

const LONG: Channel = Channel::ordered(3);
/// Players that are there before the attack.
const PLAYERS: usize = 8;
/// Bytes of the longest message, which one of them sends and one receives all the time.
const BULK: usize = 300_000;

fn game() -> SessionConfig {
    let channels = vec![EVENTS.into(), PICKUPS.into(), INPUTS.into(), LONG.into()];
    SessionConfig { channels, ..SessionConfig::default() }
}

/// A game at 60 Hz: inputs and states each tick, and events. Each message is the time when it was sent.
struct Game {
    world: World,
    tick: u64,
    /// Messages that were sent, and how long those took that have arrived.
    sent: usize,
    took: Vec<Duration>,
    /// Long messages that have arrived.
    long: usize,
    /// Most bytes that all sessions counted for.
    most: u64,
}

impl Game {
    fn new(memory: u64) -> Self {
        let config = ServerConfig {
            memory,
            max_sessions: 768,
            accept_burst: 1000, // all of the attackers are in at once
            ..ServerConfig::insecure(game())
        };
        let mut game =
            Self { world: open_server(config), tick: 0, sent: 0, took: Vec::new(), long: 0, most: 0 };
        (0..PLAYERS).for_each(|_| _ = game.add());
        game.world.run(1_000);
        game.play(2_000, |_, _| {});
        game
    }

    fn add(&mut self) -> usize {
        let path = LinkConfig::with_rtt(ms(60));
        self.world.add(&path, &path, &game(), client_config(Suite::Checked))
    }

    fn session(&self, client: usize) -> Option<SessionId> {
        let address = self.world.address(client);
        let is = |id: &&SessionId| {
            self.world.server.connection(**id).is_some_and(|end| end.peer_addr() == address)
        };
        self.world.sessions.iter().find(is).copied()
    }

    /// Plays for so many ms; `others` do something in each. Returns the share of messages, in a thousand, that arrived
    /// within `most`. Those of the last 200 ms do not count.
    fn play_within(&mut self, time: u64, most: Duration, others: impl FnMut(&mut World, u64)) -> usize {
        self.play(time, others);
        1000 * self.took.iter().filter(|took| **took <= most).count() / self.sent
    }

    fn play(&mut self, time: u64, mut others: impl FnMut(&mut World, u64)) {
        (self.sent, self.took) = (0, Vec::new());
        let ids: Vec<_> = (0..self.world.clients.len())
            .filter_map(|client| Some((client, self.session(client)?)))
            .collect();
        for passed in 0..time {
            if passed % 16 == 0 && passed + 200 < time {
                self.tick += 1;
                self.say(&ids);
            }
            others(&mut self.world, passed);
            self.world.drain();
            self.world.strangers.clear();
            self.world.run(1);
            self.most = self.most.max(self.world.server.stats().memory);
            self.hear(&ids);
        }
    }

    fn say(&mut self, ids: &[(usize, SessionId)]) {
        let (now, is_event) = (self.world.now.as_micros(), self.tick.is_multiple_of(6));
        for (client, id) in ids {
            let ends =
                [self.world.server.connection_mut(*id), self.world.clients[*client].session.connection_mut()];
            for end in ends.into_iter().flatten() {
                let _ = end.send(INPUTS, &now);
                if is_event {
                    let _ = end.send(EVENTS, &now);
                    let _ = end.send(PICKUPS, &now);
                }
            }
            self.sent += if is_event { 6 } else { 2 };
        }
        self.world.drain();
    }

    fn hear(&mut self, ids: &[(usize, SessionId)]) {
        let now = self.world.now;
        for (client, id) in ids {
            let ends =
                [self.world.server.connection_mut(*id), self.world.clients[*client].session.connection_mut()];
            for end in ends.into_iter().flatten() {
                while let Some(sent) =
                    end.recv(INPUTS).or_else(|| end.recv(EVENTS)).or_else(|| end.recv(PICKUPS))
                {
                    self.took.push(now.since(Time::from_micros(sent)));
                }
                self.long += usize::from(end.recv(LONG).is_some());
            }
        }
        self.world.drain();
    }
}

type Attack = fn(&mut Rogue, &World, u32) -> Vec<u8>;

/// Segments behind one that never comes.
fn behind_a_hole(rogue: &mut Rogue, world: &World, number: u32) -> Vec<u8> {
    let bytes = rogue.channel(0, &[common::Raw::push(number + 1, &[1; 1100])]);
    rogue.sealed(world, &[Frame::Kcp(&bytes)])
}

/// Parts of a long message that never ends.
fn of_a_long_message(rogue: &mut Rogue, world: &World, number: u32) -> Vec<u8> {
    let frg = u8::try_from(15 - number % 16).unwrap();
    let bytes = rogue.channel(3, &[common::Raw { frg, ..common::Raw::push(number, &[1; 1024]) }]);
    rogue.sealed(world, &[Frame::Kcp(&bytes)])
}

/// The same, beside a datagram. The application reads no datagrams.
fn beside_something_unread(rogue: &mut Rogue, world: &World, number: u32) -> Vec<u8> {
    if number > 0 {
        return of_a_long_message(rogue, world, number);
    }
    let bytes = rogue.channel(3, &[common::Raw { frg: 15, ..common::Raw::push(0, &[1; 1024]) }]);
    rogue.sealed(world, &[Frame::Dgram(&[7]), Frame::Kcp(&bytes)])
}

/// 655 sessions from 41 addresses send 128 datagrams each within a second, some 90 MB, and then stay, or go on slowly.
#[test]
fn whoever_fills_the_memory_takes_no_bytes_from_players_and_no_place_from_newcomers() {
    let memory = 96 << 20;
    let attacks: [(&str, Attack, u32, u32); 4] = [
        ("a hole", behind_a_hole, 0, 5),
        ("a long message", of_a_long_message, 0, 5),
        ("a slow one", of_a_long_message, 1, 5),
        ("something unread", beside_something_unread, 1, 5),
    ];
    for (name, attack, again, seconds) in attacks {
        let mut game = Game::new(memory);
        let usual = game.took.iter().copied().max().unwrap() + ms(2);
        let rogue = |number: u16| {
            let address = ([90, u8::try_from(number / 16).unwrap(), 0, 1], 2000 + number % 16).into();
            Rogue::join(&mut game.world, address, 1000 + u64::from(number)).unwrap()
        };
        let mut rogues: Vec<_> = (0..655).map(rogue).collect();
        let (mut sent, mut next, mut long) = (0, vec![0; rogues.len()], 0);
        for second in 0..seconds {
            let newcomer = game.add();
            for is_up in [false, true] {
                let id = game.session(usize::from(is_up)).unwrap();
                let end = if is_up {
                    game.world.clients[1].session.connection_mut()
                } else {
                    game.world.server.connection_mut(id)
                };
                long += usize::from(end.unwrap().send(LONG, &[7; BULK]).is_ok());
            }
            let in_time = game.play_within(1_000, usual, |world, passed| {
                for (index, (rogue, next)) in rogues.iter_mut().zip(&mut next).enumerate() {
                    let most = if second == 0 {
                        (u32::try_from(passed).unwrap() + 1) * 128 / 1000
                    } else {
                        128 + again * second
                    };
                    if second > 0 && usize::try_from(passed).unwrap() != index {
                        continue;
                    }
                    while *next < most {
                        let datagram = attack(rogue, world, *next);
                        (sent, *next) = (sent + datagram.len(), *next + 1);
                        world.audited(rogue.address, datagram.len());
                        world.server.give(world.now, rogue.address, &datagram);
                    }
                }
            });
            println!(
                "{name}, {second} s: {in_time} in a thousand, {} sessions, {} bytes",
                game.world.server.len(),
                game.most
            );
            assert!(in_time >= 950, "{name}, {second} s: {in_time} in a thousand within {usual:?}");
            assert!(game.session(newcomer).is_some(), "{name}, {second} s: no newcomer");
        }
        println!("{name}: {sent} bytes sent, {} of {long} long messages arrived", game.long);
        assert!(game.most <= memory && game.most > memory * 3 / 4, "{name}: {} bytes", game.most);
        assert!(
            game.world.clients.iter().all(|client| client.closed().is_none()),
            "{name}: a player has to go"
        );
        let held = game.world.server.stats().memory;
        assert!(held <= memory * 7 / 8, "{name}: {held} bytes after {seconds} s");
        assert!(long >= 8 && game.long + 2 >= long, "{name}: {} of {long} long messages", game.long);
    }
}
