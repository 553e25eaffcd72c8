//! The screen of a game.

use std::io;
use std::thread;
use std::time::Duration;
use tower_defence::client::Game;

/// Shows a game until its player has had enough.
pub(crate) fn show(game: &mut dyn Game) -> io::Result<()> {
    for frame in 0_u64.. {
        game.pump()?;
        if let (true, Some(view)) = (frame.is_multiple_of(120), game.view()) {
            println!("tick {} wave {} {:?} {:?}", view.tick, view.wave, view.phase, view.figures);
        }
        thread::sleep(Duration::from_millis(8));
    }
    Ok(())
}
