//! Beside the board: what can be bought, and who plays.

use super::board::paint;
use super::controls::Controls;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use tower_defence::choice;
use tower_defence::client::{PlayerView, View};
use tower_defence::sim::{Bonus, Colour, Improvements, Kind, Phase, Role};
use tower_defence::words;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View, controls: &Controls) {
    let mut lines = match (view.you, view.role) {
        (None, _) => vec![Line::from("You watch.".bold())],
        (_, Role::Builder) => builder(view, controls),
        (_, Role::Runner) => runner(view, controls),
    };
    lines.push(Line::default());
    lines.extend(players(view));
    let block = Block::bordered().border_style(Style::new().fg(Color::DarkGray));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn builder<'a>(view: &View, controls: &Controls) -> Vec<Line<'a>> {
    let purse = &view.purse;
    let mut lines = vec![Line::from(vec!["Builder ".bold(), format!("{} gold", purse.money).yellow()])];
    for kind in Kind::ALL {
        let (name, symbol) = match kind {
            Kind::Gun => ("gun", "▲"),
            Kind::Frost => ("frost", "✱"),
            Kind::Mortar => ("mortar", "●"),
        };
        let text = format!("{symbol} {name:<7}{:>4}", kind.cost());
        lines.push(chosen(text, kind == controls.kind, kind.cost() <= purse.money, paint(controls.colour)));
    }
    let here = view.turrets.iter().find(|turret| turret.at == controls.cursor(view));
    lines.push(match here.map(|turret| (turret.level, turret.upgrade_cost)) {
        Some((level, Some(cost))) => Line::from(format!("raise to {}: {cost}", level + 1)),
        Some((level, None)) => Line::from(format!("level {level}: the highest")),
        None => Line::default(),
    });
    let tokens = format!("{} tokens", purse.tokens);
    lines.push(Line::from(vec!["Bonuses ".bold(), tokens.yellow()]));
    for (number, bonus) in (1..).zip(Bonus::ALL) {
        let text = format!("{number} {:<11}{}", words::bonus(bonus), bonus.cost());
        let affordable = choice::can_buy(view, bonus);
        lines.push(chosen(text, false, affordable, Color::White));
    }
    lines
}

fn runner<'a>(view: &View, controls: &Controls) -> Vec<Line<'a>> {
    let purse = &view.purse;
    let mut lines = vec![Line::from(vec!["Runner ".bold(), format!("{} gold", purse.money).yellow()])];
    lines.push(Line::from(format!("{} lives", purse.life)));
    let is_open = view.phase == Phase::Upgrading;
    lines.push(Line::from(if is_open { "improve now:" } else { "between waves:" }));
    let all = [
        ("r  without red", Improvements::NO_RED, paint(Colour::Red)),
        ("g  without green", Improvements::NO_GREEN, paint(Colour::Green)),
        ("b  without blue", Improvements::NO_BLUE, paint(Colour::Blue)),
        ("v  velocity", Improvements::VELOCITY, Color::White),
        ("h  health", Improvements::HEALTH, Color::White),
        ("m  money, next time", Improvements::MONEY, Color::White),
    ];
    for (text, one, colour) in all {
        let affordable = is_open && one.cost() <= purse.money;
        let text = format!("{text:<20}{:>3}", one.cost());
        lines.push(chosen(text, controls.improvements.has(one), affordable, colour));
    }
    if controls.improvements.bits() != 0 {
        lines.push(Line::from(format!("Enter: buy for {}", controls.improvements.cost()).bold()));
    }
    lines
}

fn chosen<'a>(text: String, is_chosen: bool, affordable: bool, colour: Color) -> Line<'a> {
    let mark = if is_chosen { "> " } else { "  " };
    let style = Style::new().fg(if affordable { colour } else { Color::DarkGray });
    Line::from(Span::styled(format!("{mark}{text}"), if is_chosen { style.bold() } else { style }))
}

/// The own player first: there may not be room for all.
fn players<'a>(view: &View) -> impl Iterator<Item = Line<'a>> {
    let is_you = |player: &PlayerView| view.you == Some(player.player);
    let you = view.players.iter().filter(move |player| is_you(player));
    let others = view.players.iter().filter(move |player| !is_you(player));
    you.chain(others).map(move |player| {
        let role = if player.role == Role::Builder { "builds" } else { "runs" };
        let you = if is_you(player) { " (you)" } else { "" };
        let text = format!("{} {role}{you}", player.name);
        Line::from(if player.is_here { text.into() } else { text.dark_gray().crossed_out() })
    })
}
