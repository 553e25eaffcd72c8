//! What a player wants.

use crate::sim::{Keys, Order};

/// What a player wants, as keys or a bot say it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// Role B: these directions are held from now on.
    Steer(Keys),
    /// Build, raise, buy, improve: asked of the server, and shown at once as if it were granted.
    Order(Order),
    /// Say something to all.
    Chat(String),
}
