//! The screen of a game in a terminal: draws what a [`Game`] shows, and passes on keys.

mod board;
mod chrome;
mod controls;
mod panel;

use controls::{Controls, Said};
use ratatui::crossterm::event::{
    self, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::supports_keyboard_enhancement;
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use std::io::{self, stdout};
use std::time::{Duration, Instant};
use tower_defence::client::{Game, View};

/// Time between two frames.
const FRAME: Duration = Duration::from_millis(33);
/// Time between two checks of the network.
const LOOK: Duration = Duration::from_millis(4);

/// Shows a game until its player quits.
pub(crate) fn show(game: &mut dyn Game) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    // If the terminal reports released keys, a runner stops on release; otherwise the space bar stops it.
    let tells_releases = supports_keyboard_enhancement().unwrap_or(false);
    if tells_releases {
        execute!(stdout(), PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::REPORT_EVENT_TYPES))?;
    }
    let shown = run(game, &mut terminal, tells_releases);
    if tells_releases {
        execute!(stdout(), PopKeyboardEnhancementFlags)?;
    }
    ratatui::restore();
    shown
}

fn run(game: &mut dyn Game, terminal: &mut DefaultTerminal, tells_releases: bool) -> io::Result<()> {
    let mut controls = Controls::new(tells_releases);
    let mut drawn = None::<Instant>;
    loop {
        game.pump()?;
        let view = game.view();
        if drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            drawn = Some(Instant::now());
            terminal.draw(|frame| draw(frame, view.as_ref(), &controls))?;
        }
        if event::poll(LOOK)? {
            match controls.take(&event::read()?, view.as_ref()) {
                Said::Nothing => {}
                Said::Command(command) => game.command(command),
                Said::Quit => return Ok(()),
            }
        }
    }
}

/// Draws a frame: title, board and panel, messages, the state of the network.
fn draw(frame: &mut Frame<'_>, view: Option<&View>, controls: &Controls) {
    let Some(view) = view else {
        frame.render_widget(Paragraph::new("connecting ..  (q: leave)").centered(), frame.area());
        return;
    };
    let height = board::height(view, frame.area());
    let rows = [
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [title, middle, lines, network, help] = Layout::vertical(rows).areas(frame.area());
    let columns = [Constraint::Length(board::width(view, frame.area())), Constraint::Min(20)];
    let [left, right] = Layout::horizontal(columns).areas(middle);
    chrome::title(frame, title, view);
    board::draw(frame, left, view, controls);
    panel::draw(frame, right, view, controls);
    chrome::lines(frame, lines, view, controls);
    chrome::network(frame, network, view);
    chrome::help(frame, help, view, controls);
}

#[cfg(test)]
mod tests;
