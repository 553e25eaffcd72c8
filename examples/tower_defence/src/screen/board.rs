//! The board: cells, turrets, shots, runners, the cursor.

use super::controls::Controls;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use tower_defence::client::{RunnerView, ShotView, TurretView, View};
use tower_defence::sim::{At, Board, Cell, Colour, Colours, Kind, Role};

/// Columns and rows of the terminal per cell.
#[derive(Clone, Copy)]
struct Scale {
    x: u16,
    y: u16,
}

/// As large as the terminal allows, beside the panel and the lines.
fn scale(board: &Board, area: Rect) -> Scale {
    let fits = |scale: &Scale| {
        let (width, height) = (u16::from(board.width()) * scale.x, u16::from(board.height()) * scale.y);
        width + 2 + 26 <= area.width && height + 2 + 7 <= area.height
    };
    let sizes = [Scale { x: 6, y: 3 }, Scale { x: 4, y: 2 }];
    sizes.into_iter().find(fits).unwrap_or(Scale { x: 2, y: 1 })
}

/// Columns of the terminal, including the frame.
pub(super) fn width(view: &View, area: Rect) -> u16 {
    u16::from(view.board.width()) * scale(&view.board, area).x + 2
}

/// Rows of the terminal, including the frame.
pub(super) fn height(view: &View, area: Rect) -> u16 {
    u16::from(view.board.height()) * scale(&view.board, area).y + 2
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View, controls: &Controls) {
    let scale = scale(&view.board, frame.area());
    let block = ratatui::widgets::Block::bordered().border_style(Style::new().fg(Color::DarkGray));
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let mut canvas = Canvas { buffer: frame.buffer_mut(), area: inside, scale };
    for (at, cell) in view.board.iter() {
        canvas.cell(at, cell);
    }
    for turret in &view.turrets {
        canvas.turret(turret);
    }
    for coin in &view.coins {
        canvas.middle(*coin, "$", Style::new().fg(Color::Yellow).bold());
    }
    for shot in &view.shots {
        canvas.shot(shot);
    }
    for runner in &view.runners {
        canvas.runner(runner);
    }
    if view.role == Role::Builder && view.you.is_some() {
        canvas.cursor(controls.cursor(view));
    }
}

struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    scale: Scale,
}

impl Canvas<'_> {
    fn put(&mut self, x: u16, y: u16, symbol: &str, style: Style) {
        let position = Position::new(self.area.x.saturating_add(x), self.area.y.saturating_add(y));
        if let Some(cell) = self.area.contains(position).then(|| self.buffer.cell_mut(position)).flatten() {
            cell.set_symbol(symbol).set_style(style);
        }
    }

    fn corner(&self, at: At) -> (u16, u16) {
        (u16::from(at.x) * self.scale.x, u16::from(at.y) * self.scale.y)
    }

    fn fill(&mut self, at: At, symbol: &str, style: Style) {
        let (left, top) = self.corner(at);
        for y in top..top + self.scale.y {
            for x in left..left + self.scale.x {
                self.put(x, y, symbol, style);
            }
        }
    }

    fn middle(&mut self, at: At, symbol: &str, style: Style) {
        let (left, top) = self.corner(at);
        self.put(left + (self.scale.x - 1) / 2, top + (self.scale.y - 1) / 2, symbol, style);
    }

    fn cell(&mut self, at: At, cell: Cell) {
        match cell {
            Cell::Free => {
                let is_dark = (at.x ^ at.y) & 1 == 0;
                let shade = if is_dark { Color::Indexed(234) } else { Color::Indexed(235) };
                self.fill(at, " ", Style::new().bg(shade));
            }
            Cell::Rock => self.fill(at, "▒", Style::new().fg(Color::Indexed(240)).bg(Color::Indexed(236))),
            Cell::Start => self.fill(at, "»", Style::new().fg(Color::Green).bg(Color::Indexed(22))),
            Cell::Exit => self.fill(at, "◈", Style::new().fg(Color::Magenta).bg(Color::Indexed(53))),
            Cell::Turret(_) => self.fill(at, " ", Style::new().bg(Color::Indexed(238))),
        }
    }

    fn turret(&mut self, turret: &TurretView) {
        let symbol = match turret.kind {
            Kind::Gun => "▲",
            Kind::Frost => "✱",
            Kind::Mortar => "●",
        };
        let mut style = Style::new().fg(paint(turret.colour)).bg(Color::Indexed(238)).bold();
        if turret.is_guess {
            style = style.add_modifier(Modifier::DIM);
        }
        self.middle(turret.at, symbol, style);
        let (left, top) = self.corner(turret.at);
        let (x, y) = (left + self.scale.x / 2, top + (self.scale.y - 1) / 2);
        self.put(x.max(left + 1), y, &turret.level.to_string(), style);
    }

    /// A moving dot that gets dimmer.
    fn shot(&mut self, shot: &ShotView) {
        let style = Style::new().fg(paint(shot.colour));
        for step in 1..=3_u8 {
            let share = (shot.age + f32::from(step) / 6.0).min(1.0);
            let on = |from: f32, to: f32| from + (to - from) * share;
            let (x, y) = self.place(on(shot.from.0, shot.to.0), on(shot.from.1, shot.to.1));
            let style = if step == 3 { style.bold() } else { style };
            self.put(x, y, if shot.kind == Kind::Frost { "*" } else { "·" }, style);
        }
    }

    fn runner(&mut self, runner: &RunnerView) {
        let (x, y) = self.place(runner.x, runner.y);
        let health = match runner.health {
            health if health > 0.66 => "█",
            health if health > 0.33 => "▓",
            _ => "░",
        };
        let mut style = Style::new().fg(mixed(runner.colours)).bold();
        if runner.is_slow {
            style = style.bg(Color::Indexed(24));
        }
        if runner.is_extrapolated {
            style = style.add_modifier(Modifier::DIM);
        }
        self.put(x, y, if runner.is_you { "☻" } else { "☺" }, style);
        self.put(x.saturating_add(1), y, health, style);
    }

    /// Brackets around a cell.
    fn cursor(&mut self, at: At) {
        let (left, top) = self.corner(at);
        let (right, bottom) = (left + self.scale.x - 1, top + self.scale.y - 1);
        for y in top..=bottom {
            for (x, symbol) in [(left, "["), (right, "]")] {
                self.put(x, y, symbol, Style::new().fg(Color::White).bg(Color::Indexed(238)).bold());
            }
        }
    }

    /// The column and row in the terminal of a position on the board.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
    fn place(&self, x: f32, y: f32) -> (u16, u16) {
        let on = |place: f32, scale: u16| (place * f32::from(scale)).clamp(0.0, 1000.0) as u16;
        (on(x, self.scale.x), on(y, self.scale.y))
    }
}

pub(super) const fn paint(colour: Colour) -> Color {
    match colour {
        Colour::Red => Color::LightRed,
        Colour::Green => Color::LightGreen,
        Colour::Blue => Color::LightBlue,
    }
}

/// The colour of mixed light.
fn mixed(colours: Colours) -> Color {
    match colours.bits() {
        1 => Color::LightRed,
        2 => Color::LightGreen,
        3 => Color::LightYellow,
        4 => Color::LightBlue,
        5 => Color::LightMagenta,
        6 => Color::LightCyan,
        _ => Color::White,
    }
}
