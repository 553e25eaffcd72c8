//! Commands of a player.

use crate::sim::{Keys, Order};

/// A command of a player, from keys or a bot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// Role B: hold these directions from now on.
    Steer(Keys),
    /// Build, raise, buy, improve: sent to the server, and shown at once as if granted.
    Order(Order),
    /// Say something to all.
    Chat(String),
}
