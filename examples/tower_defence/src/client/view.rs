//! What a screen draws: a copy of all that is to be seen at one moment.

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

/// What is to be seen at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Whether the server has been heard of the last second. If not, what is seen is old.
    pub is_live: bool,
    /// The client's tick, ahead of the server's by what the network takes.
    pub tick: u32,
    /// Who we are; `None`: a spectator, or not let in yet.
    pub you: Option<PlayerId>,
    /// What we do.
    pub role: Role,
    /// Our money, life, tokens and so on.
    pub purse: Purse,
    /// What the world is doing.
    pub phase: Phase,
    /// Until the phase is over, if not earlier.
    pub phase_left: Duration,
    /// Which wave it is, from 1 on.
    pub wave: u16,
    /// What is left of the base.
    pub base: u16,
    /// The cells, with turrets that are not confirmed yet.
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
    /// Runners that die give twice as much.
    pub is_bounty: bool,
    /// Who plays.
    pub players: Vec<PlayerView>,
    /// What has happened and was said, the oldest first: at most [`LINES`](Self::LINES).
    pub lines: VecDeque<Line>,
    /// How the network is doing.
    pub figures: Figures,
}

impl View {
    /// Most lines that are kept.
    pub const LINES: usize = 64;

    /// Of a client now; `None`: it has not heard of a world yet.
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

/// Ours as predicted, others as they were.
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

/// Where our runner is between the last tick and the one before, cells: a tick late, and so without a guess.
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

/// Ticks for which a shot is seen.
const SHOT: u32 = 5;

/// A turret.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurretView {
    /// Its number.
    pub id: TurretId,
    /// Where it is.
    pub at: At,
    /// Whom it hurts most.
    pub colour: Colour,
    /// What it does.
    pub kind: Kind,
    /// 1 to 4.
    pub level: u8,
    /// What one level more costs; `None`: it has all.
    pub upgrade_cost: Option<u16>,
    /// Whether the server has not said yet that it is there.
    pub is_guess: bool,
}

/// A runner on the board. Places are in cells, the upper left corner of the board is (0, 0).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunnerView {
    /// Who steers it.
    pub player: PlayerId,
    /// Whether that is us.
    pub is_you: bool,
    /// Where it is drawn: ours is predicted, others are interpolated; both smoothly.
    pub x: f32,
    /// See `x`.
    pub y: f32,
    /// Cells a second.
    pub velocity: (f32, f32),
    /// What it can be hurt by most.
    pub colours: Colours,
    /// 0 to 1.
    pub health: f32,
    /// Whether it is slowed.
    pub is_slow: bool,
    /// Whether its place is a guess from its velocity, since nothing newer has come.
    pub is_extrapolated: bool,
}

/// A shot: from the middle of a turret's cell to a runner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShotView {
    /// Whose.
    pub turret: TurretId,
    /// From where, cells.
    pub from: (f32, f32),
    /// To where, cells.
    pub to: (f32, f32),
    /// Its colour.
    pub colour: Colour,
    /// What fired.
    pub kind: Kind,
    /// 0 as it is fired, up to 1 where it is not to be seen any more.
    pub age: f32,
}

/// Somebody who plays.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlayerView {
    /// His place.
    pub player: PlayerId,
    /// His name.
    pub name: String,
    /// What he does.
    pub role: Role,
    /// Whether he is connected.
    pub is_here: bool,
}

/// Something to read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Line {
    /// Something has happened.
    Event(Event),
    /// Somebody has said something.
    Chat {
        /// Who; `None`: a spectator.
        from: Option<PlayerId>,
        /// What.
        text: String,
    },
}

/// How the network is doing, for a status bar.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Round trip, smoothed.
    pub rtt: Duration,
    /// Share of our packets that gets lost, 0 to 1; `None`: not known.
    pub loss: Option<f64>,
    /// Bytes a second that we send, in the last second.
    pub up: f64,
    /// Bytes a second that we receive, in the last second.
    pub down: f64,
    /// How far the last snapshot was from where we took ourselves to be, cells.
    pub error: f32,
    /// The largest such distance of the last two seconds, cells.
    pub error_max: f32,
    /// Snapshots received.
    pub snapshots: u64,
    /// Bytes of the last snapshot.
    pub snapshot_bytes: usize,
    /// Of the same, had it been sent in full.
    pub full_bytes: usize,
    /// How many ticks we are ahead of the last snapshot.
    pub ahead: i32,
}
