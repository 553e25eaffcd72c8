//! The will of a host: all that another server needs to go on with the match.

use super::codes::{keys, player, role};
use super::fields::{Fields, message};
use super::hello::NAME_MAX;
use super::snapshot::{TICK_MAX, blank, check, personal, shared};
use crate::sim::rules::{BOARD, BOARD_MAX, BOARD_MIN, PLAYERS};
use crate::sim::{Inputs, PlayerId, Role, World};
use whitewater::message::BitsError;

/// The state of a match after a tick. Random numbers follow from the seed and the tick, so they have no state of their own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Will {
    /// The world, with the purses of all.
    pub world: World,
    /// The keys that were held.
    pub inputs: Inputs,
    /// Who has which place.
    pub seats: Vec<Seat>,
}

/// A place.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Seat {
    /// Which.
    pub player: PlayerId,
    /// The name that its player asked for, and the one that they got.
    pub said: String,
    /// See `said`.
    pub name: String,
    /// By what they are known again.
    pub ticket: u64,
    /// Their role.
    pub role: Role,
    /// Whether they were there, and are expected to come back at once.
    pub is_here: bool,
}

message!(Will, "will of the tower defence", Self::blank());

impl Will {
    fn blank() -> Self {
        Self { world: blank(0, BOARD), inputs: Inputs::default(), seats: Vec::new() }
    }

    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        let mut version = VERSION;
        fields.int(&mut version, 0..=u8::MAX)?;
        let Self { world, inputs, seats } = self;
        let (mut size, mut tick) = ((world.board.width(), world.board.height()), world.tick);
        fields.u64(&mut world.seed)?;
        fields.int(&mut size.0, BOARD_MIN.0..=BOARD_MAX.0)?;
        fields.int(&mut size.1, BOARD_MIN.1..=BOARD_MAX.1)?;
        fields.int(&mut tick, 0..=TICK_MAX)?;
        let base = blank(world.seed, size);
        if F::READS {
            *world = base.clone();
            world.tick = tick;
        }
        shared(fields, world, &base)?;
        for of in PlayerId::all() {
            personal(fields, world, &base, of)?;
            let mut held = inputs.of(of);
            keys(fields, &mut held)?;
            inputs.set(of, held);
        }
        fields.list(seats, PLAYERS.into(), seat)?;
        check(fields, world.hash())?;
        let is_whole = version == VERSION && self.is_whole();
        is_whole.then_some(()).ok_or(BitsError::Bounds)
    }

    /// Whether it is a state that a server can have: each place has one player, with a purse and a runner for their role.
    fn is_whole(&self) -> bool {
        let Self { world, seats, .. } = self;
        let of = |player| seats.iter().filter(move |seat| seat.player == player);
        PlayerId::all().all(|player| {
            let role = of(player).next().map(|seat| seat.role);
            of(player).count() <= 1
                && world.purse(player).map(|purse| purse.role) == role
                && world.runner(player).is_some() == (role == Some(Role::Runner))
        })
    }
}

fn seat<F: Fields>(fields: &mut F, seat: &mut Seat) -> Result<(), BitsError> {
    player(fields, &mut seat.player)?;
    fields.string(&mut seat.said, NAME_MAX)?;
    fields.string(&mut seat.name, NAME_MAX)?;
    fields.u64(&mut seat.ticket)?;
    role(fields, &mut seat.role)?;
    fields.bool(&mut seat.is_here)
}

/// A server of another version writes and reads other wills.
const VERSION: u8 = 1;
/// Longest will, bytes: a snapshot of everything, the purses, and two names for each place.
pub const WILL_MAX: u32 = 4096;
