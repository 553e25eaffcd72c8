//! What a screen draws: a copy of everything visible at one moment.

use super::Client;
use super::clock::TICK;
use super::past::Drawn;
use super::smooth::cells;
use crate::sim::rules::HZ;
use crate::sim::{
    At, Board, Colour, Colours, Event, Kind, Phase, PlayerId, Purse, Role, Runner, TurretId, World,
};
use std::collections::VecDeque;
use std::time::Duration;

/// Everything visible at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Whether the server was heard from in the last second. If not, the view is old.
    pub is_live: bool,
    /// The client's tick, ahead of the server's by the delay of the network.
    pub tick: u32,
    /// The own player. `None`: a spectator, or not let in yet.
    pub you: Option<PlayerId>,
    /// The own role.
    pub role: Role,
    /// The own money, life, tokens and so on.
    pub purse: Purse,
    /// The current phase.
    pub phase: Phase,
    /// Time until the phase ends, unless it ends earlier.
    pub phase_left: Duration,
    /// The number of the wave, from 1.
    pub wave: u16,
    /// Remaining health of the base.
    pub base: u16,
    /// The cells, including turrets that are not confirmed yet.
    pub board: Board,
    /// All turrets.
    pub turrets: Vec<TurretView>,
    /// All runners on the board.
    pub runners: Vec<RunnerView>,
    /// Shots of the last moments.
    pub shots: Vec<ShotView>,
    /// Where coins lie.
    pub coins: Vec<At>,
    /// All turrets fire twice as often.
    pub is_overcharged: bool,
    /// Runners that die pay twice as much.
    pub is_bounty: bool,
    /// The players.
    pub players: Vec<PlayerView>,
    /// Events and chat lines, the oldest first: at most [`LINES`](Self::LINES).
    pub lines: VecDeque<Line>,
    /// The state of the network.
    pub figures: Figures,
}

impl View {
    /// Most lines kept.
    pub const LINES: usize = 64;

    /// The view of a client now. `None`: it has received no world yet.
    pub(super) fn of(client: &Client) -> Option<Self> {
        let prediction = client.prediction.as_ref()?;
        let (world, word) = (prediction.predicted(), prediction.confirmed());
        let you = prediction.you();
        let purse = you.and_then(|you| world.purse(you)).cloned().unwrap_or_default();
        let runners = runners(client, world, word, you);
        let is_heard = |heard| client.now.since(heard) < Duration::from_secs(1);
        let left = world.phase_ends.saturating_sub(world.tick);
        let full_bytes = crate::wire::full_len(word, you);
        let ahead = i32::try_from(i64::from(world.tick) - i64::from(word.tick)).unwrap_or(0);
        Some(Self {
            is_live: client.heard.is_some_and(is_heard),
            tick: world.tick,
            you,
            role: purse.role,
            purse,
            phase: world.phase,
            phase_left: Duration::from_secs(1) * left / HZ,
            wave: world.wave,
            base: world.base,
            board: world.board.clone(),
            turrets: turrets(world, word),
            shots: shots(word, &runners),
            runners,
            coins: world.coins.iter().flatten().copied().collect(),
            is_overcharged: world.tick < world.overcharge_until,
            is_bounty: world.tick < world.bounty_until,
            players: client.news.players.clone(),
            lines: client.news.lines.clone(),
            figures: Figures { full_bytes, ahead, ..client.measured.figures() },
        })
    }
}

fn turrets(world: &World, word: &World) -> Vec<TurretView> {
    let view = |(id, turret): (u8, &crate::sim::Turret)| TurretView {
        id: TurretId(id),
        at: turret.at,
        colour: turret.colour,
        kind: turret.kind,
        level: turret.level,
        upgrade_cost: (turret.level < crate::sim::rules::TURRET_LEVELS).then(|| turret.upgrade_cost()),
        is_guess: word.turrets.get(usize::from(id)).is_none_or(|known| known.level != turret.level),
    };
    (0..).zip(&world.turrets).map(view).collect()
}

/// The own runner as predicted, others as they were.
fn runners(client: &Client, world: &World, word: &World, you: Option<PlayerId>) -> Vec<RunnerView> {
    let view = |runner: &Runner, drawn: Drawn| {
        let health = f32::from(runner.health) / f32::from(runner.full_health(word.wave).max(1));
        let each_second = |velocity: i32| cells(velocity) * 30.0;
        RunnerView {
            player: runner.player,
            is_you: you == Some(runner.player),
            x: drawn.x,
            y: drawn.y,
            velocity: (each_second(runner.velocity.x), each_second(runner.velocity.y)),
            colours: runner.colours,
            health: health.min(1.0),
            is_slow: word.tick < runner.slow_until,
            is_extrapolated: drawn.is_extrapolated,
        }
    };
    let past = client.clock.past(client.now).map_or(Vec::new(), |time| client.past.at(time));
    let others = past.into_iter().filter(|(runner, _)| Some(runner.player) != you);
    let mut all: Vec<RunnerView> = others.map(|(runner, drawn)| view(&runner, drawn)).collect();
    if let Some(runner) = you.and_then(|you| world.runner(you)).filter(|runner| runner.alive) {
        let (x, y) = client.smooth.draw(within_tick(client, runner));
        all.push(view(runner, Drawn { x, y, is_extrapolated: false }));
    }
    all
}

/// Position of the own runner between the last tick and the one before, cells: a tick late, so nothing is guessed.
fn within_tick(client: &Client, runner: &Runner) -> (f32, f32) {
    let passed = client.clock.ahead(client.now).unwrap_or(0) % TICK;
    let share = u16::try_from(passed * 256 / TICK).map_or(0.0, |share| f32::from(share) / 256.0);
    let before = client.before.unwrap_or(runner.at);
    let on = |before: i32, at: i32| cells(before) + cells(at - before) * share;
    (on(before.x, runner.at.x), on(before.y, runner.at.y))
}

/// Shots of the last moments at runners that are drawn.
fn shots(word: &World, runners: &[RunnerView]) -> Vec<ShotView> {
    let view = |(id, turret): (u8, &crate::sim::Turret)| {
        let age = word.tick.checked_sub(turret.fired).filter(|age| turret.fired > 0 && *age < SHOT)?;
        let target = runners.iter().find(|runner| runner.player == turret.target)?;
        let middle = turret.at.middle();
        Some(ShotView {
            turret: TurretId(id),
            from: (cells(middle.x), cells(middle.y)),
            to: (target.x, target.y),
            colour: turret.colour,
            kind: turret.kind,
            age: f32::from(u8::try_from(age).unwrap_or(u8::MAX)) / 5.0,
        })
    };
    (0..).zip(&word.turrets).filter_map(view).collect()
}

/// Ticks for which a shot is visible.
const SHOT: u32 = 5;

/// A turret.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurretView {
    /// Its number.
    pub id: TurretId,
    /// Where it is.
    pub at: At,
    /// Which runners it hurts most.
    pub colour: Colour,
    /// Its kind.
    pub kind: Kind,
    /// 1 to 4.
    pub level: u8,
    /// The price of the next level. `None`: it has all.
    pub upgrade_cost: Option<u16>,
    /// Whether the server has not confirmed it yet.
    pub is_guess: bool,
}

/// A runner on the board. Positions are in cells; the upper left corner of the board is (0, 0).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunnerView {
    /// The player who steers it.
    pub player: PlayerId,
    /// Whether that is the own player.
    pub is_you: bool,
    /// Where to draw it: the own one predicted, others interpolated, both smoothed.
    pub x: f32,
    /// See `x`.
    pub y: f32,
    /// Cells per second.
    pub velocity: (f32, f32),
    /// Its colours.
    pub colours: Colours,
    /// 0 to 1.
    pub health: f32,
    /// Whether it is slowed.
    pub is_slow: bool,
    /// Whether its position is extrapolated from its velocity, because nothing newer has arrived.
    pub is_extrapolated: bool,
}

/// A shot: from the middle of a turret's cell to a runner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShotView {
    /// The turret that fired.
    pub turret: TurretId,
    /// From where, cells.
    pub from: (f32, f32),
    /// To where, cells.
    pub to: (f32, f32),
    /// Its colour.
    pub colour: Colour,
    /// The kind of turret that fired.
    pub kind: Kind,
    /// From 0 when it is fired to 1 when it disappears.
    pub age: f32,
}

/// A player.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlayerView {
    /// Their place.
    pub player: PlayerId,
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// Whether they are connected.
    pub is_here: bool,
}

/// A line of text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Line {
    /// An event.
    Event(Event),
    /// Chat.
    Chat {
        /// The sender. `None`: a spectator.
        from: Option<PlayerId>,
        /// The text.
        text: String,
    },
}

/// The state of the network, for a status bar.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Round trip, smoothed.
    pub rtt: Duration,
    /// Share of our packets that get lost, 0 to 1. `None`: unknown.
    pub loss: Option<f64>,
    /// Bytes sent in the last second.
    pub up: f64,
    /// Bytes received in the last second.
    pub down: f64,
    /// Distance between the last snapshot and our prediction, cells.
    pub error: f32,
    /// The largest such distance of the last two seconds, cells.
    pub error_max: f32,
    /// Snapshots received.
    pub snapshots: u64,
    /// Bytes of the last snapshot.
    pub snapshot_bytes: usize,
    /// The same if it had been sent in full.
    pub full_bytes: usize,
    /// How many ticks we are ahead of the last snapshot.
    pub ahead: i32,
}
