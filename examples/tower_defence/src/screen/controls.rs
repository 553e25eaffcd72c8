//! The meaning of keys, and the current selection.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tower_defence::choice;
use tower_defence::client::{Command, View};
use tower_defence::sim::{At, Bonus, Colour, Improvements, Keys, Kind, Order, Phase, Role};

/// The meaning of a key.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Nothing,
    Command(Command),
    Quit,
}

/// The selection: a cell, a turret, improvements; and the text being typed.
pub(super) struct Controls {
    /// `None`: the cursor was not moved yet.
    at: Option<At>,
    pub(super) colour: Colour,
    pub(super) kind: Kind,
    pub(super) improvements: Improvements,
    /// The chat line being typed.
    pub(super) chat: Option<String>,
    held: Keys,
    /// Whether the terminal reports released keys.
    tells_releases: bool,
}

impl Controls {
    pub(super) fn new(tells_releases: bool) -> Self {
        let (colour, kind) = (Colour::Red, Kind::Gun);
        let (improvements, held) = (Improvements::default(), Keys::default());
        Self { at: None, colour, kind, improvements, chat: None, held, tells_releases }
    }

    /// The selected cell; the centre at first.
    pub(super) fn cursor(&self, view: &View) -> At {
        self.at.unwrap_or(At { x: view.board.width() / 2, y: view.board.height() / 2 })
    }

    pub(super) fn take(&mut self, event: &Event, view: Option<&View>) -> Said {
        let Event::Key(key) = event else { return Said::Nothing };
        if key.kind == KeyEventKind::Release {
            return self.release(key, view);
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Said::Quit;
        }
        if self.chat.is_some() {
            return self.type_on(key.code);
        }
        match (key.code, view) {
            (KeyCode::Char('q') | KeyCode::Esc, _) => Said::Quit,
            (KeyCode::Char('t'), _) => {
                self.chat = Some(String::new());
                Said::Nothing
            }
            (_, None) => Said::Nothing,
            (_, Some(view)) if view.you.is_none() => Said::Nothing,
            (code, Some(view)) if view.role == Role::Builder => self.build(code, view),
            (code, Some(view)) => self.run(code, view),
        }
    }

    fn type_on(&mut self, code: KeyCode) -> Said {
        let text = self.chat.get_or_insert_default();
        match code {
            KeyCode::Esc => self.chat = None,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(letter) if text.len() < CHAT => text.push(letter),
            KeyCode::Enter => {
                return match self.chat.take() {
                    Some(text) if !text.is_empty() => Said::Command(Command::Chat(text)),
                    _ => Said::Nothing,
                };
            }
            _ => {}
        }
        Said::Nothing
    }

    fn build(&mut self, code: KeyCode, view: &View) -> Said {
        let order = match code {
            KeyCode::Char(' ') | KeyCode::Enter => {
                Some(choice::build(view, self.cursor(view), self.colour, self.kind))
            }
            KeyCode::Char(digit @ '1'..='4') => bonus(digit).map(|bonus| Order::Buy { bonus }),
            KeyCode::Char('r') => self.choose(Colour::Red),
            KeyCode::Char('g') => self.choose(Colour::Green),
            KeyCode::Char('b') => self.choose(Colour::Blue),
            KeyCode::Tab | KeyCode::Char('k') => {
                self.kind = Kind::of(self.kind.code() + 1).unwrap_or(Kind::Gun);
                None
            }
            code => {
                let keys = direction(code).unwrap_or_default();
                self.at = Some(choice::moved(&view.board, self.cursor(view), keys));
                None
            }
        };
        order.map_or(Said::Nothing, |order| Said::Command(Command::Order(order)))
    }

    const fn choose(&mut self, colour: Colour) -> Option<Order> {
        self.colour = colour;
        None
    }

    fn run(&mut self, code: KeyCode, view: &View) -> Said {
        if let Some(keys) = direction(code) {
            self.held = if self.tells_releases { self.held.and(keys) } else { keys };
            return Said::Command(Command::Steer(self.held));
        }
        let toggled = match code {
            KeyCode::Char(' ') => {
                self.held = Keys::default();
                return Said::Command(Command::Steer(self.held));
            }
            KeyCode::Enter if view.phase == Phase::Upgrading && self.improvements.bits() != 0 => {
                let improvements = std::mem::take(&mut self.improvements);
                return Said::Command(Command::Order(Order::Improve(improvements)));
            }
            KeyCode::Char('r') => Improvements::NO_RED,
            KeyCode::Char('g') => Improvements::NO_GREEN,
            KeyCode::Char('b') => Improvements::NO_BLUE,
            KeyCode::Char('v') => Improvements::VELOCITY,
            KeyCode::Char('h') => Improvements::HEALTH,
            KeyCode::Char('m') => Improvements::MONEY,
            _ => return Said::Nothing,
        };
        self.improvements = choice::toggled(self.improvements, toggled);
        Said::Nothing
    }

    fn release(&mut self, key: &KeyEvent, view: Option<&View>) -> Said {
        match (direction(key.code), view) {
            (Some(keys), Some(view)) if view.role == Role::Runner => {
                self.held = Keys::from_bits(self.held.bits() & !keys.bits());
                Said::Command(Command::Steer(self.held))
            }
            _ => Said::Nothing,
        }
    }
}

fn bonus(digit: char) -> Option<Bonus> {
    let number = u8::try_from(digit.to_digit(10)?).ok()?;
    Bonus::of(number.checked_sub(1)?)
}

const fn direction(code: KeyCode) -> Option<Keys> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('w') => Keys::UP,
        KeyCode::Down | KeyCode::Char('s') => Keys::DOWN,
        KeyCode::Left | KeyCode::Char('a') => Keys::LEFT,
        KeyCode::Right | KeyCode::Char('d') => Keys::RIGHT,
        _ => return None,
    })
}

/// Most bytes of a typed line.
const CHAT: usize = 80;
