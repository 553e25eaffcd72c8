//! What the screen shows and what keys do, without a terminal.

use super::controls::{Controls, Said};
use super::draw;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Duration;
use tower_defence::client::{Command, View};
use tower_defence::lab::{Lab, LinkSpec, Transport};
use tower_defence::sim::{At, Improvements, Keys, Order, Phase, Role};
use tower_defence::wire::{Hello, Wish};

/// A game after this many virtual seconds, as a player of this role sees it.
fn game(wish: Wish, seconds: u64) -> View {
    let mut lab = Lab::new(Transport::Sessions, &LinkSpec::default(), 7);
    lab.join(Hello { name: "Ada".to_owned(), wish, ticket: 1 }, false);
    for number in 2..5 {
        lab.join(Hello { name: format!("bot {number}"), wish: Wish::Any, ticket: number }, true);
    }
    let end = lab.now() + Duration::from_secs(seconds);
    lab.run_to(end);
    lab.client(0).and_then(|client| client.view()).expect("a world")
}

fn screen(view: &View, controls: &Controls, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend without I/O");
    terminal.draw(|frame| draw(frame, Some(view), controls)).expect("the same");
    terminal.backend().to_string()
}

fn key(code: KeyCode) -> Event {
    Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn all_there_is_to_know_is_on_the_screen() {
    let controls = Controls::new(false);
    let builder = screen(&game(Wish::Build, 15), &controls, 140, 40);
    for word in [
        "RTT",
        "loss",
        "kB/s",
        "prediction error",
        "snapshot",
        "wave",
        "base",
        "Builder",
        "gun",
        "Ada builds (you)",
        "»",
        "◈",
    ] {
        assert!(builder.contains(word), "{word} is missing:\n{builder}");
    }
    assert!(builder.contains('☺'), "nobody runs:\n{builder}");
    let mut unknown = game(Wish::Build, 15);
    unknown.figures.loss = None;
    assert!(screen(&unknown, &controls, 100, 40).contains("loss unknown  "));
    let runner = screen(&game(Wish::Run, 15), &controls, 100, 40);
    for word in ["Runner", "lives", "velocity", "Ada runs (you)", "☻", "▲"] {
        assert!(runner.contains(word), "{word} is missing:\n{runner}");
    }
}

#[test]
fn no_terminal_is_too_small() {
    let (view, controls) = (game(Wish::Build, 5), Controls::new(false));
    for (width, height) in [(1, 1), (10, 3), (20, 60), (79, 23), (300, 100)] {
        screen(&view, &controls, width, height);
    }
}

#[test]
fn a_builder_chooses_a_cell_and_builds() {
    let (view, mut controls) = (game(Wish::Build, 5), Controls::new(false));
    assert_eq!(view.role, Role::Builder);
    let before = controls.cursor(&view);
    for code in [KeyCode::Left, KeyCode::Up, KeyCode::Char('b'), KeyCode::Tab] {
        assert_eq!(controls.take(&key(code), Some(&view)), Said::Nothing);
    }
    let at = At { x: before.x - 1, y: before.y - 1 };
    let order = controls.take(&key(KeyCode::Char(' ')), Some(&view));
    let (colour, kind) = (controls.colour, controls.kind);
    assert_eq!(order, Said::Command(Command::Order(Order::Place { at, colour, kind })));
    for _ in 0..100 {
        controls.take(&key(KeyCode::Right), Some(&view));
        controls.take(&key(KeyCode::Down), Some(&view));
    }
    let (x, y) = (view.board.width() - 1, view.board.height() - 1);
    assert_eq!(controls.cursor(&view), At { x, y }, "the cursor stays on the board");
}

#[test]
fn a_runner_holds_keys_where_the_terminal_tells_and_else_the_last_one() {
    let view = game(Wish::Run, 5);
    let steer = |keys| Said::Command(Command::Steer(keys));
    let mut controls = Controls::new(false);
    assert_eq!(controls.take(&key(KeyCode::Right), Some(&view)), steer(Keys::RIGHT));
    assert_eq!(controls.take(&key(KeyCode::Char('w')), Some(&view)), steer(Keys::UP));
    assert_eq!(controls.take(&key(KeyCode::Char(' ')), Some(&view)), steer(Keys::default()));
    let mut controls = Controls::new(true);
    assert_eq!(controls.take(&key(KeyCode::Right), Some(&view)), steer(Keys::RIGHT));
    assert_eq!(controls.take(&key(KeyCode::Up), Some(&view)), steer(Keys::UP.and(Keys::RIGHT)));
    let released =
        KeyEvent { kind: KeyEventKind::Release, ..KeyEvent::new(KeyCode::Right, KeyModifiers::NONE) };
    assert_eq!(controls.take(&Event::Key(released), Some(&view)), steer(Keys::UP));
}

#[test]
fn a_runner_drops_one_colour_at_most_and_buys_between_waves() {
    let mut view = game(Wish::Run, 5);
    let mut controls = Controls::new(false);
    for letter in ['r', 'v', 'g', 'h', 'h'] {
        assert_eq!(controls.take(&key(KeyCode::Char(letter)), Some(&view)), Said::Nothing);
    }
    let chosen = Improvements::NO_GREEN.and(Improvements::VELOCITY);
    assert_eq!(controls.improvements, chosen);
    view.phase = Phase::Running;
    assert_eq!(controls.take(&key(KeyCode::Enter), Some(&view)), Said::Nothing);
    view.phase = Phase::Upgrading;
    let bought = Said::Command(Command::Order(Order::Improve(chosen)));
    assert_eq!(controls.take(&key(KeyCode::Enter), Some(&view)), bought);
}

#[test]
fn what_is_typed_is_said_and_is_no_command() {
    let (view, mut controls) = (game(Wish::Build, 5), Controls::new(false));
    for code in [KeyCode::Char('t'), KeyCode::Char('q'), KeyCode::Char(' '), KeyCode::Backspace] {
        assert_eq!(controls.take(&key(code), Some(&view)), Said::Nothing);
    }
    assert!(screen(&view, &controls, 100, 40).contains("say: q_"));
    let said = controls.take(&key(KeyCode::Enter), Some(&view));
    assert_eq!(said, Said::Command(Command::Chat("q".to_owned())));
    assert_eq!(controls.take(&key(KeyCode::Char('q')), Some(&view)), Said::Quit);
}

/// Spectators send no inputs, but acknowledge snapshots: that is enough to measure, after some seconds.
#[test]
fn the_loss_of_a_spectator_is_unknown_until_enough_was_sent_and_then_measured() {
    let first = game(Wish::Watch, 2);
    assert_eq!(first.figures.loss, None, "of a few packets");
    let controls = Controls::new(false);
    assert!(screen(&first, &controls, 80, 24).contains("loss unknown"));
    let later = game(Wish::Watch, 15);
    assert!(later.figures.loss.is_some_and(|loss| (0.01..0.12).contains(&loss)), "{:?}", later.figures);
}

/// 80 columns are enough: no line of the frame around the board is cut, whatever the figures are.
#[test]
fn title_status_and_help_fit_80_columns_for_each_role() {
    let controls = Controls::new(false);
    for (wish, last) in [(Wish::Build, "t say"), (Wish::Run, "t say"), (Wish::Watch, "t: say something")] {
        let mut view = game(wish, 15);
        (view.is_overcharged, view.is_bounty, view.wave) = (true, true, 10);
        view.figures.rtt = Duration::from_millis(1234);
        (view.figures.up, view.figures.down) = (99_900.0, 99_900.0);
        (view.figures.error, view.figures.error_max) = (27.78, 27.78); // from one corner of the board to another
        for (phase, loss, is_live) in
            [(Phase::Running, Some(1.0), true), (Phase::Upgrading, None, true), (Phase::Running, None, false)]
        {
            (view.phase, view.phase_left, view.is_live) = (phase, Duration::from_secs(10), is_live);
            view.figures.loss = loss;
            let shown = screen(&view, &controls, 80, 24);
            let loss = if loss.is_some() { "loss 100 %" } else { "loss unknown" };
            let bar = format!(" RTT 1234 ms  {loss}  up 99.9 kB/s  down 99.9 kB/s  error max 27.78 cells");
            for whole in [&*bar, "overcharge!  bounty!", last] {
                assert!(shown.contains(whole), "{whole} is cut:\n{shown}");
            }
        }
    }
}
