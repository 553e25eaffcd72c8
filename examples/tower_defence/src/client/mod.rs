//! A player's end of the game: what a screen draws is a [`View`], what keys do is a [`Command`].

mod command;
mod game;
mod view;

pub use command::Command;
pub use game::Game;
pub use view::{Figures, Line, PlayerView, RunnerView, ShotView, TurretView, View};
