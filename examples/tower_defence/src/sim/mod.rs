//! The game itself, without a socket, a clock or floating point. The same world and inputs always give the same world,
//! at the server and at every client, so a client can continue from the server's state by itself.
//!
//! ```text
//!   world     the whole state, which `step` advances by a tick
//!   board     cells, and the distance of each to the exit
//!   runner    what role B steers                turret    what role A builds, and whom it hits
//!   push      runners that overlap
//!   order     what players buy, and why an order is refused
//!   phase     waves, and the time between them
//!   event     events of the game                rules     the numbers
//!   hash      one number for a world            random    numbers without a state
//! ```

mod board;
mod event;
mod hash;
mod keys;
mod order;
mod phase;
mod player;
mod push;
mod random;
pub mod rules;
mod runner;
mod turret;
mod world;

pub use board::{At, Board, Cell};
pub use event::{Event, EventKind};
pub use keys::{Inputs, Keys};
pub use order::{Bonus, Improvements, Order, Refusal};
pub use phase::Phase;
pub use player::{PlayerId, Purse, Role};
pub use random::draw;
pub use runner::{Colours, Point, Runner};
pub use turret::{Colour, Kind, Turret, TurretId};
pub use world::World;
