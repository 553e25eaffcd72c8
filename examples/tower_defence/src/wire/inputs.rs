//! The keys that a player of role B holds: 4 bits per tick.

use super::codes::{differs, keys};
use super::fields::{Fields, message};
use super::snapshot::TICK_MAX;
use crate::sim::Keys;
use whitewater::message::BitsError;

/// The inputs of consecutive ticks: all that are not known to have arrived.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inputs {
    /// The first tick.
    pub first: u32,
    /// One per tick, the newest last: at most [`INPUTS_MAX`].
    pub keys: Vec<Keys>,
    /// Whether the client cannot read snapshots, because their base is missing.
    pub is_lost: bool,
}

impl Inputs {
    /// Each with its tick.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Keys)> + '_ {
        (self.first..).zip(self.keys.iter().copied())
    }
}

message!(Inputs, "inputs of the tower defence", Self::default());

impl Inputs {
    /// 37 bits, plus one for a tick like the one before or five for another one.
    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        fields.bool(&mut self.is_lost)?;
        fields.int(&mut self.first, 0..=TICK_MAX)?;
        let mut before = Keys::default();
        fields.list(&mut self.keys, INPUTS_MAX, |fields, held| {
            // Keys are held for a while, so most ticks are like the one before.
            if differs(*held != before, fields)? {
                keys(fields, held)?;
                if *held == before {
                    return Err(BitsError::Bounds); // there is a shorter encoding
                }
            } else {
                *held = before;
            }
            before = *held;
            Ok(())
        })
    }
}

/// Most inputs in a packet: more than a second.
pub const INPUTS_MAX: usize = 48;
