//! A player's end of the game. A screen draws a [`View`], keys give a [`Command`].
//!
//! It has no socket, and time is passed to each call. Whatever carries packets calls [`Client::receive`] and
//! [`Client::take`] with what has arrived, [`Client::advance`] once per frame, then [`Client::packet`] and
//! [`Client::pop_message`] for what to send. [`carry`](crate::carry) does this over sessions.
//!
//! ```text
//!   clock        the server's current tick, and how far ahead of it to be
//!   held         the ring of inputs: sent until they are known to have arrived, replayed on top of snapshots
//!   prediction   predicts the world from the last snapshot, our inputs and what is seen of others
//!   past         where other runners were, to draw them between two snapshots
//!   smooth       moves what is drawn to its proper position over some frames
//!   news         players, events and chat
//!   figures      the state of the network
//!   view         what a screen draws
//! ```

mod clock;
mod command;
mod end;
mod figures;
mod game;
mod held;
mod news;
mod past;
mod prediction;
mod smooth;
mod view;

pub use command::Command;
pub use end::{Client, Sample};
pub use figures::Path;
pub use game::Game;
pub use view::{Figures, Line, PlayerView, RunnerView, ShotView, TurretView, View};
