//! A level of 300 KB in one message: how long it takes on the channel that the documents recommend for bulk, and how much later a game
//! arrives beside it.
//!
//! `cargo test --release --all-features --test sessions session_bulk -- --nocapture` prints the table of docs/CHANNELS.md.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::integer_division,
    reason = "a test that panics has found something, and percentiles are rounded down"
)]

use crate::common::ms;
use crate::common::sessions::{SUITE, World};
use std::ops::RangeInclusive;
use std::time::Duration;
use whitewater::{Channel, ChannelConfig, SessionConfig, Time, kcp};
use whitewater_sim::{Bottleneck, LinkConfig, Loss};

const GAME: Channel = Channel::unreliable(0);
const LEVEL: Channel = Channel::unordered(1);
/// Bytes of a level.
const LEN: usize = 300_000;
/// The controller was tuned with 1 to 40.
const SEEDS: RangeInclusive<u64> = 101..=140;

fn usual() -> ChannelConfig {
    LEVEL.config()
}

/// As docs/CHANNELS.md recommends it.
fn bulk() -> ChannelConfig {
    ChannelConfig { kcp: kcp::Config::bulk(), ..LEVEL.config() }
}

fn free(rtt: u64, loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(rtt)) }
}

/// 2 Mbit/s behind a queue of 300 ms.
fn narrow(rtt: u64) -> LinkConfig {
    LinkConfig { bottleneck: Some(Bottleneck { rate: 2_000_000, queue: 75_000 }), ..free(rtt, 0.0) }
}

fn connected(seed: u64, link: &LinkConfig, level: ChannelConfig) -> World {
    let session = SessionConfig { channels: vec![GAME.into(), level], ..SessionConfig::default() };
    let mut world = World::pair(seed, link, &session, SUITE);
    world.connect();
    world.run(1_000 + 7 * seed);
    world
}

/// How long a level takes from the server to the client.
fn takes(seed: u64, link: &LinkConfig, level: ChannelConfig) -> Duration {
    let mut world = connected(seed, link, level);
    let start = world.now;
    world.session().send(LEVEL, &[7; LEN]).unwrap();
    world.drain();
    let arrives = |world: &mut World| world.client().recv(LEVEL).is_some();
    assert!(world.run_until(60_000, arrives), "seed {seed}: no level in a minute");
    world.now.since(start)
}

/// 60 messages of 100 bytes a second from the server to the client.
#[derive(Debug, Default)]
struct Game {
    /// How long those took, in ascending order, that were sent while the level was under way, or in 5 s without one.
    took: Vec<Duration>,
    /// How long the level took.
    level: Duration,
}

impl Game {
    fn run(seed: u64, link: &LinkConfig, level: Option<ChannelConfig>) -> Self {
        let mut world = connected(seed, link, level.unwrap_or(usual()));
        let (mut game, start) = (Self::default(), world.now);
        let mut ends: Option<Time> = None;
        for tick in 0.. {
            if level.is_some() && tick == 60 {
                world.session().send(LEVEL, &[7; LEN]).unwrap();
            }
            let mut message = [0; 100];
            message[..8].copy_from_slice(&world.now.as_micros().to_le_bytes());
            world.session().send(GAME, &message).unwrap();
            world.drain();
            let (begins, next) = (at(start, 60), at(start, tick + 1));
            world.run_to(next, |world| {
                while let Some(message) = world.client().recv(GAME) {
                    let due = Time::from_micros(u64::from_le_bytes(message[..8].try_into().unwrap()));
                    if due >= begins && ends.is_none_or(|ends| due <= ends) {
                        game.took.push(world.now.since(due));
                    }
                }
                if world.client().recv(LEVEL).is_some() {
                    (game.level, ends) = (world.now.since(begins), Some(world.now));
                }
                false
            });
            let is_over = match (level, ends) {
                (Some(_), Some(ends)) => world.now.since(ends) >= ms(1_000),
                (Some(_), None) => false,
                (None, _) => tick >= 360,
            };
            if is_over {
                break;
            }
            assert!(tick < 600, "seed {seed}: no level in 9 s");
        }
        game.took.sort_unstable();
        game
    }

    fn p99(&self) -> Duration {
        self.took[(self.took.len() - 1) * 99 / 100]
    }
}

/// When a game sends so many ticks after its start.
fn at(start: Time, tick: u64) -> Time {
    start + Duration::from_nanos(tick * 16_666_667)
}

fn mean(times: impl IntoIterator<Item = Duration>) -> Duration {
    let times: Vec<_> = times.into_iter().collect();
    times.iter().sum::<Duration>() / u32::try_from(times.len().max(1)).unwrap()
}

/// Mean over the seeds by the usual channel, and by that for bulk.
fn both(link: &LinkConfig) -> [Duration; 2] {
    [usual(), bulk()].map(|level| mean(SEEDS.map(|seed| takes(seed, link, level))))
}

/// What a level adds to the 99th percentile and to the mean of a game, and how long it takes: means over the seeds.
fn added(link: &LinkConfig, level: ChannelConfig) -> [Duration; 3] {
    let games: Vec<_> =
        SEEDS.take(5).map(|seed| [None, Some(level)].map(|level| Game::run(seed, link, level))).collect();
    let of = |figure: &dyn Fn(&Game) -> Duration| {
        mean(games.iter().map(|[alone, beside]| figure(beside) - figure(alone)))
    };
    [of(&Game::p99), of(&|game| mean(game.took.clone())), of(&|game| game.level)]
}

/// The rows of the table in docs/CHANNELS.md.
#[cfg(feature = "crypto")]
fn rows() -> Vec<String> {
    let millis = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    let free = [(20, 0.0, "20 ms"), (100, 0.0, "100 ms"), (100, 0.05, "100 ms, 5 % loss each way")];
    let free = free.into_iter().map(|(rtt, loss, name)| {
        let [usual, bulk] = both(&self::free(rtt, loss)).map(millis);
        format!("| {name} | {usual} | {bulk} | | |")
    });
    let beside = [20, 40, 100].into_iter().map(|rtt| {
        let [usual, bulk] = [usual(), bulk()].map(|level| added(&narrow(rtt), level).map(millis));
        format!("| {rtt} ms, 2 Mbit/s | {} | {} | {} | {} |", usual[2], bulk[2], usual[0], bulk[0])
    });
    free.chain(beside).collect()
}

#[test]
fn on_a_free_path_a_level_takes_a_fifth_longer_at_most_by_the_channel_for_bulk() {
    for (rtt, loss) in [(20, 0.0), (100, 0.0), (100, 0.05)] {
        let [usual, bulk] = both(&free(rtt, loss));
        println!("{rtt} ms, {loss} lost: {usual:?}, bulk {bulk:?}");
        assert!(bulk <= usual.mul_f64(1.2), "{rtt} ms, {loss} lost: {bulk:?}, usually {usual:?}, {SEEDS:?}");
    }
}

#[test]
fn a_level_by_the_channel_for_bulk_delays_a_game_beside_it_by_60_ms_at_most() {
    for rtt in [20, 40, 60, 100] {
        let [p99, mean, level] = added(&narrow(rtt), bulk());
        let [usually, _, usual] = added(&narrow(rtt), usual());
        println!("{rtt} ms: {p99:?}, mean {mean:?}, level {level:?}; usually {usually:?}, {usual:?}");
        assert!(p99 <= ms(60) && mean <= ms(40), "{rtt} ms: {p99:?}, mean {mean:?}, {SEEDS:?}");
        assert!(level <= usual.mul_f64(1.1), "{rtt} ms: {level:?}, usually {usual:?}, {SEEDS:?}");
        assert!(usually >= ms(200), "{rtt} ms: {usually:?}: the path is not narrow");
    }
}

#[test]
#[cfg(feature = "crypto")] // whose headers are longer
fn the_document_has_these_figures() {
    let rows = rows();
    println!("{}", rows.join("\n"));
    let document = include_str!("../docs/CHANNELS.md");
    let missing: Vec<_> = rows.iter().filter(|row| !document.contains(*row)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
