//! What a screen draws: a copy of all that is to be seen at one moment.

use crate::sim::{At, Board, Colour, Colours, Event, Kind, Phase, PlayerId, Purse, Role, TurretId};
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
}

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
    /// Share of our packets that gets lost, 0 to 1.
    pub loss: f64,
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
