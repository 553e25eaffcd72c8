//! What keys, taps and buttons mean, and what is chosen.

use crate::layout::Layout;
use crate::stick::Stick;
use tower_defence::choice;
use tower_defence::client::{Command, View};
use tower_defence::sim::{At, Bonus, Colour, Improvements, Keys, Kind, Order, Role};

/// What the player has said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Nothing that we know: the browser may do with it what it likes.
    Nothing,
    /// Something was chosen.
    Chosen,
    /// A command for the game.
    Command(Command),
    /// They want to type a line.
    Talk,
    /// They want to leave.
    Leave,
}

/// What is chosen: a cell, a turret, improvements; and where a runner is steered.
#[derive(Clone, Debug)]
pub struct Controls {
    /// `None`: no cell was chosen yet.
    pub at: Option<At>,
    /// The colour of the next turret.
    pub colour: Colour,
    /// The kind of the next turret.
    pub kind: Kind,
    /// What the runner is to buy.
    pub improvements: Improvements,
    /// The finger or mouse that steers.
    pub stick: Option<Stick>,
    /// The cell below a mouse.
    pub hover: Option<At>,
    /// Directions held by keys, as on the screen.
    held: Keys,
    /// The pointer that chooses a cell, and whether that cell was already chosen.
    pointer: Option<(i32, bool)>,
    /// What the game was told last.
    steered: Keys,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            at: None,
            colour: Colour::Red,
            kind: Kind::Gun,
            improvements: Improvements::default(),
            stick: None,
            hover: None,
            held: Keys::default(),
            pointer: None,
            steered: Keys::default(),
        }
    }
}

impl Controls {
    /// The chosen cell; the centre at first.
    #[must_use]
    pub fn cursor(&self, view: &View) -> At {
        self.at.unwrap_or(At { x: view.board.width() / 2, y: view.board.height() / 2 })
    }

    /// A key is pressed or released; `key` as browsers name it.
    pub fn key(&mut self, key: &str, is_down: bool, view: &View, layout: &Layout) -> Said {
        if let Some(keys) = direction(key) {
            return self.direct(keys, is_down, view, layout);
        }
        if !is_down {
            return Said::Nothing;
        }
        match (key, view.you, view.role) {
            ("q" | "Escape", ..) => Said::Leave,
            ("t", ..) => Said::Talk,
            (_, None, _) => Said::Nothing,
            (" " | "Enter", _, Role::Builder) => self.press("build", view),
            ("r", _, Role::Builder) => self.press("red", view),
            ("g", _, Role::Builder) => self.press("green", view),
            ("b", _, Role::Builder) => self.press("blue", view),
            ("k" | "Tab", _, Role::Builder) => {
                self.kind = Kind::of(self.kind.code() + 1).unwrap_or(Kind::Gun);
                Said::Chosen
            }
            ("1" | "2" | "3" | "4", _, Role::Builder) => self.press(&format!("bonus-{key}"), view),
            (" ", _, Role::Runner) => {
                self.let_go();
                self.steer(layout)
            }
            ("Enter", _, Role::Runner) => self.press("improve", view),
            ("r", _, Role::Runner) => self.press("no-red", view),
            ("g", _, Role::Runner) => self.press("no-green", view),
            ("b", _, Role::Runner) => self.press("no-blue", view),
            ("v", _, Role::Runner) => self.press("velocity", view),
            ("h", _, Role::Runner) => self.press("health", view),
            ("m", _, Role::Runner) => self.press("money", view),
            _ => Said::Nothing,
        }
    }

    /// A button is pressed, by its name.
    pub fn press(&mut self, button: &str, view: &View) -> Said {
        let order = match button {
            "talk" => return Said::Talk,
            "leave" => return Said::Leave,
            "gun" => return self.choose_kind(Kind::Gun),
            "frost" => return self.choose_kind(Kind::Frost),
            "mortar" => return self.choose_kind(Kind::Mortar),
            "red" => return self.choose_colour(Colour::Red),
            "green" => return self.choose_colour(Colour::Green),
            "blue" => return self.choose_colour(Colour::Blue),
            "no-red" => return self.toggle(Improvements::NO_RED),
            "no-green" => return self.toggle(Improvements::NO_GREEN),
            "no-blue" => return self.toggle(Improvements::NO_BLUE),
            "velocity" => return self.toggle(Improvements::VELOCITY),
            "health" => return self.toggle(Improvements::HEALTH),
            "money" => return self.toggle(Improvements::MONEY),
            "build" => choice::build(view, self.cursor(view), self.colour, self.kind),
            "improve" if choice::can_improve(view, self.improvements) => {
                Order::Improve(std::mem::take(&mut self.improvements))
            }
            _ => match bonus(button) {
                Some(bonus) => Order::Buy { bonus },
                None => return Said::Nothing,
            },
        };
        Said::Command(Command::Order(order))
    }

    /// A finger or a mouse button is put down on the canvas.
    pub fn down(&mut self, id: i32, x: f64, y: f64, view: &View, layout: &Layout) -> Said {
        match (view.you, view.role) {
            (None, _) => return Said::Nothing,
            (_, Role::Runner) => self.stick = self.stick.or(Some(Stick::new(id, (x, y)))),
            (_, Role::Builder) if self.pointer.is_none() => {
                if let Some(at) = layout.hit(x, y) {
                    self.pointer = Some((id, self.at == Some(at)));
                    self.at = Some(at);
                }
            }
            _ => {}
        }
        Said::Chosen
    }

    /// It moves: a runner follows, or another cell is chosen.
    pub fn moved(&mut self, id: i32, x: f64, y: f64, layout: &Layout) -> Said {
        if let Some(stick) = self.stick.as_mut().filter(|stick| stick.id == id) {
            stick.follow((x, y));
            return self.steer(layout);
        }
        let at = layout.hit(x, y);
        if let Some((_, was_chosen)) = self.pointer.as_mut().filter(|(pointer, _)| *pointer == id) {
            *was_chosen &= at == self.at;
            self.at = at.or(self.at);
        }
        Said::Nothing
    }

    /// It is lifted. A cell that was chosen before is built on: one tap chooses, the next one builds.
    pub fn up(&mut self, id: i32, view: &View, layout: &Layout) -> Said {
        if self.stick.is_some_and(|stick| stick.id == id) {
            self.stick = None;
            return self.steer(layout);
        }
        match self.pointer.take_if(|(pointer, _)| *pointer == id) {
            Some((_, true)) => self.press("build", view),
            _ => Said::Nothing,
        }
    }

    /// The browser took the pointer away: nothing is built by that.
    pub fn cancelled(&mut self, id: i32, layout: &Layout) -> Said {
        self.pointer.take_if(|(pointer, _)| *pointer == id);
        self.stick.take_if(|stick| stick.id == id);
        self.steer(layout)
    }

    /// The page lost the keyboard: nothing is held any more.
    pub fn blurred(&mut self, layout: &Layout) -> Said {
        self.let_go();
        self.pointer = None;
        self.steer(layout)
    }

    fn let_go(&mut self) {
        (self.held, self.stick) = (Keys::default(), None);
    }

    fn direct(&mut self, keys: Keys, is_down: bool, view: &View, layout: &Layout) -> Said {
        match (view.you, view.role) {
            (None, _) => Said::Nothing,
            (_, Role::Builder) => {
                if is_down {
                    self.at = Some(choice::moved(&view.board, self.cursor(view), layout.keys(keys)));
                }
                Said::Chosen
            }
            (_, Role::Runner) => {
                let others = self.held.bits() & !keys.bits();
                self.held = Keys::from_bits(if is_down { others | keys.bits() } else { others });
                self.steer(layout)
            }
        }
    }

    /// A finger rather than keys. The game is told what has changed.
    fn steer(&mut self, layout: &Layout) -> Said {
        let keys = layout.keys(self.stick.map_or(self.held, |stick| stick.keys()));
        if std::mem::replace(&mut self.steered, keys) == keys {
            return Said::Chosen;
        }
        Said::Command(Command::Steer(keys))
    }

    const fn choose_kind(&mut self, kind: Kind) -> Said {
        self.kind = kind;
        Said::Chosen
    }

    const fn choose_colour(&mut self, colour: Colour) -> Said {
        self.colour = colour;
        Said::Chosen
    }

    fn toggle(&mut self, one: Improvements) -> Said {
        self.improvements = choice::toggled(self.improvements, one);
        Said::Chosen
    }
}

fn direction(key: &str) -> Option<Keys> {
    Some(match key {
        "ArrowUp" | "w" => Keys::UP,
        "ArrowDown" | "s" => Keys::DOWN,
        "ArrowLeft" | "a" => Keys::LEFT,
        "ArrowRight" | "d" => Keys::RIGHT,
        _ => return None,
    })
}

/// The bonus of a button, from `bonus-1`.
#[must_use]
pub fn bonus(button: &str) -> Option<Bonus> {
    let number: u8 = button.strip_prefix("bonus-")?.parse().ok()?;
    Bonus::of(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests;
