//! A game as a screen drives it, wherever the server is.

use super::{Command, View};
use std::io;

/// A game as a screen drives it: in this process over a simulated network, or over sockets. Call `pump` once per frame,
/// then draw `view`.
pub trait Game {
    /// Receives what has arrived, does what is due, and sends.
    ///
    /// # Errors
    ///
    /// The socket has failed, or the game is over for us; the error tells why.
    fn pump(&mut self) -> io::Result<()>;

    /// The current view. `None`: nothing is known yet.
    fn view(&self) -> Option<View>;

    /// Takes a command of the player.
    fn command(&mut self, command: Command);
}
