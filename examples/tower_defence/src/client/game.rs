//! A game as a screen drives it, wherever the server is.

use super::{Command, View};
use std::io;

/// A game as a screen drives it: in this process over a simulated network, or over sockets. Call `pump` once a frame, then draw `view`.
pub trait Game {
    /// Takes what has come, does what is due by the clock, and sends.
    ///
    /// # Errors
    ///
    /// The socket has failed, or the game is over for us; the error says why.
    fn pump(&mut self) -> io::Result<()>;

    /// What is to be seen now; `None`: nothing is known yet.
    fn view(&self) -> Option<View>;

    /// What the player wants.
    fn command(&mut self, command: Command);
}
