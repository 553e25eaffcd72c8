//! The elements around the board: what there is to know and to buy, who plays, the state of the network.

use crate::controls::{Controls, bonus};
use crate::dom::Dom;
use crate::page::Shown;
use crate::summary::carrier;
use tower_defence::client::{Figures, Line, PlayerView, View};
use tower_defence::sim::rules::{BASE, HZ, WAVES};
use tower_defence::sim::{Colour, EventKind, Improvements, Kind, Phase, Role};
use tower_defence::{choice, words};
use web_sys::Document;

pub(crate) struct Panel {
    dom: Dom,
    /// When it was shown last, ms. Ten times a second is enough to read.
    last: f64,
    /// The newest line, and when it came.
    newest: (String, f64),
}

impl Panel {
    pub(crate) const fn new(document: Document) -> Self {
        Self { dom: Dom::new(document), last: -1000.0, newest: (String::new(), 0.0) }
    }

    pub(crate) fn show(
        &mut self,
        now: f64,
        shown: &Shown,
        view: Option<&View>,
        controls: &Controls,
        fps: f64,
    ) {
        if now - self.last < 66.0 {
            return;
        }
        self.last = now;
        self.banner(shown, view);
        let is_demo = matches!(shown, Shown::Demo(_));
        self.dom.class("#play", "demo", is_demo);
        self.dom.class("#play", "here", matches!(shown, Shown::Here(_)));
        let Some(view) = view.filter(|_| !is_demo) else { return };
        self.hud(view);
        let (builds, runs) = match (view.you, view.role) {
            (None, _) => (false, false),
            (_, role) => (role == Role::Builder, role == Role::Runner),
        };
        self.dom.class("#play", "builder", builds);
        self.dom.class("#play", "runner", runs);
        self.dom.class("#play", "spectator", !builds && !runs);
        if builds {
            self.builder(view, controls);
        } else if runs {
            self.runner(view, controls);
        }
        self.lines(now, view);
        self.dom.list("#players", &players(view));
        self.status(&view.figures, carrier(shown), fps);
    }

    /// Over the board: why nothing is to be seen, and who has won.
    fn banner(&mut self, shown: &Shown, view: Option<&View>) {
        let (title, text) = match (shown, view) {
            (Shown::Demo(_), _) => (String::new(), String::new()),
            (Shown::Over(told), _) => ("The game is over for you".to_owned(), told.clone()),
            (Shown::There(there), view) => match (there.trouble(), view) {
                (Some(told), _) => ("Connecting again …".to_owned(), told.to_owned()),
                (None, None) => ("Connecting …".to_owned(), String::new()),
                (None, Some(view)) => winner(view),
            },
            (Shown::Here(_), Some(view)) => winner(view),
            (Shown::Here(_), None) => ("A moment …".to_owned(), String::new()),
        };
        self.dom.class("#banner", "shown", !title.is_empty());
        self.dom.class("#banner", "over", matches!(shown, Shown::Over(_)));
        if !title.is_empty() {
            self.dom.text("#banner-title", &title);
            self.dom.text("#banner-text", &text);
        }
    }

    fn hud(&mut self, view: &View) {
        let left = view.phase_left.as_secs_f32();
        let is_pause = view.phase == Phase::Upgrading;
        let wave = if is_pause {
            format!("Wave {} in", view.wave + 1)
        } else {
            format!("Wave {}/{WAVES}", view.wave)
        };
        self.dom.text("#wave", &wave);
        self.dom.text("#left", &format!("{left:.0} s"));
        self.dom.class("#hud", "pause", is_pause);
        self.dom.text("#base-count", &format!("{}/{BASE}", view.base));
        let share = f64::from(view.base) * 100.0 / f64::from(BASE);
        self.dom.style("#base-bar", "width", &format!("{share:.0}%"));
        self.dom.class("#base", "low", view.base * 3 < BASE);
        self.dom.text("#gold", &view.purse.money.to_string());
        self.dom.text("#tokens", &view.purse.tokens.to_string());
        self.dom.text("#lives", &view.purse.life.to_string());
        let mut flags = Vec::new();
        if view.is_overcharged {
            flags.push(("gold", "overcharge!".to_owned()));
        }
        if view.is_bounty {
            flags.push(("gold", "bounty!".to_owned()));
        }
        if view.purse.doubles {
            flags.push(("gold", "next money ×2".to_owned()));
        }
        if !view.is_live {
            flags.push(("bad", "nothing heard of the server".to_owned()));
        }
        self.dom.list("#flags", &flags);
    }

    fn builder(&mut self, view: &View, controls: &Controls) {
        let kinds = [
            ("[data-do=gun]", "#cost-gun", Kind::Gun),
            ("[data-do=frost]", "#cost-frost", Kind::Frost),
            ("[data-do=mortar]", "#cost-mortar", Kind::Mortar),
        ];
        for (button, cost, kind) in kinds {
            self.dom.class(button, "chosen", kind == controls.kind);
            self.dom.class(button, "poor", kind.cost() > view.purse.money);
            self.dom.text(cost, &kind.cost().to_string());
        }
        let colours = [
            ("[data-do=red]", Colour::Red),
            ("[data-do=green]", Colour::Green),
            ("[data-do=blue]", Colour::Blue),
        ];
        for (button, colour) in colours {
            self.dom.class(button, "chosen", colour == controls.colour);
        }
        let colour = ["red", "green", "blue"].get(usize::from(controls.colour.code())).copied();
        self.dom.attribute("#tools-builder", "data-colour", colour.unwrap_or_default());
        let at = controls.cursor(view);
        let known = view.turrets.iter().find(|turret| turret.at == at);
        let price = choice::price(view, at, controls.kind);
        let (text, cost) = match (known, price) {
            (Some(turret), Some(cost)) => (format!("Raise to {}", turret.level + 1), cost.to_string()),
            (Some(_), None) => ("Highest level".to_owned(), String::new()),
            (None, Some(cost)) => ("Build".to_owned(), cost.to_string()),
            (None, None) => ("Not here".to_owned(), String::new()),
        };
        self.dom.text("#build-text", &text);
        self.dom.text("#build-cost", &cost);
        self.dom.class("[data-do=build]", "poor", price.is_none_or(|cost| cost > view.purse.money));
        let buttons = [
            ("[data-do=bonus-1]", "#bonus-1", "bonus-1"),
            ("[data-do=bonus-2]", "#bonus-2", "bonus-2"),
            ("[data-do=bonus-3]", "#bonus-3", "bonus-3"),
            ("[data-do=bonus-4]", "#bonus-4", "bonus-4"),
        ];
        for (button, cost, name) in buttons {
            let Some(bonus) = bonus(name) else { continue };
            self.dom.class(button, "poor", !choice::can_buy(view, bonus));
            self.dom.class(button, "locked", !view.purse.has_unlocked(bonus));
            self.dom.text(cost, &bonus.cost().to_string());
        }
    }

    fn runner(&mut self, view: &View, controls: &Controls) {
        let all = [
            ("[data-do=no-red]", "#cost-no-red", Improvements::NO_RED),
            ("[data-do=no-green]", "#cost-no-green", Improvements::NO_GREEN),
            ("[data-do=no-blue]", "#cost-no-blue", Improvements::NO_BLUE),
            ("[data-do=velocity]", "#cost-velocity", Improvements::VELOCITY),
            ("[data-do=health]", "#cost-health", Improvements::HEALTH),
            ("[data-do=money]", "#cost-money", Improvements::MONEY),
        ];
        for (button, cost, one) in all {
            self.dom.class(button, "chosen", controls.improvements.has(one));
            self.dom.class(button, "poor", !choice::can_improve(view, one));
            self.dom.text(cost, &one.cost().to_string());
        }
        let chosen = controls.improvements;
        let text = match (view.phase, chosen.bits()) {
            (Phase::Running, 0) => "Improve between waves",
            (Phase::Running, _) => "Buy after this wave",
            (Phase::Upgrading, 0) => "Choose what to improve",
            (Phase::Upgrading, _) => "Buy",
        };
        self.dom.text("#improve-text", text);
        let cost = if chosen.bits() == 0 { String::new() } else { chosen.cost().to_string() };
        self.dom.text("#improve-cost", &cost);
        self.dom.class("[data-do=improve]", "poor", !choice::can_improve(view, chosen));
    }

    /// All lines in the list; the newest over the board, for some seconds.
    fn lines(&mut self, now: f64, view: &View) {
        let told = |line: &Line| (kind(line), words::line(line, view));
        let all: Vec<_> = view.lines.iter().map(told).collect();
        let newest = all.last().map(|(_, text)| text.clone()).unwrap_or_default();
        if self.newest.0 != newest {
            self.newest = (newest, now);
        }
        let first = all.len().saturating_sub(4);
        self.dom.list("#lines", all.get(first..).unwrap_or_default());
        self.dom.class("#lines", "old", now - self.newest.1 > 6000.0);
        self.dom.list("#log", &all);
    }

    fn status(&mut self, figures: &Figures, carrier: &str, fps: f64) {
        let Figures { rtt, loss, up, down, error, error_max, snapshot_bytes, full_bytes, ahead, .. } =
            figures;
        let loss = loss.map_or_else(|| "unknown".to_owned(), |loss| format!("{:.0} %", loss * 100.0));
        self.dom.text("#s-carrier", carrier);
        self.dom.text("#s-rtt", &format!("{} ms", rtt.as_millis()));
        self.dom.text("#s-loss", &loss);
        self.dom.text("#s-up", &format!("{:.1}", up / 1000.0));
        self.dom.text("#s-down", &format!("{:.1} kB/s", down / 1000.0));
        self.dom.text("#s-error", &format!("{error:.2}"));
        self.dom.text("#s-max", &format!("{error_max:.2} cells"));
        self.dom.text("#s-ahead", &format!("{ahead} ticks"));
        self.dom.text("#s-snapshot", &snapshot_bytes.to_string());
        self.dom.text("#s-full", &format!("{full_bytes} B"));
        self.dom.text("#s-fps", &format!("{fps:.0}"));
    }
}

/// Who has won, for some seconds after the end.
fn winner(view: &View) -> (String, String) {
    let over = view.lines.iter().rev().find_map(|line| match line {
        Line::Event(event) if event.kind == EventKind::Over => Some(event),
        _ => None,
    });
    let Some(over) = over.filter(|over| view.tick.saturating_sub(over.tick) < 8 * HZ) else {
        return (String::new(), String::new());
    };
    let builders_win = over.data == 1;
    let title = if builders_win { "The base stands" } else { "The base has fallen" };
    let won = if builders_win { "The builders have won" } else { "The runners have won" };
    let text = match (view.you, (view.role == Role::Builder) == builders_win) {
        (None, _) => format!("{won}."),
        (_, true) => format!("{won}, and you are one of them!"),
        (_, false) => format!("{won}. Your turn comes: the next game begins."),
    };
    (title.to_owned(), text)
}

fn kind(line: &Line) -> &'static str {
    match line {
        Line::Chat { .. } => "chat",
        Line::Event(event) if event.kind == EventKind::Refused => "bad",
        Line::Event(event) if event.kind == EventKind::Over => "over",
        Line::Event(_) => "",
    }
}

/// The own player first, as in a terminal.
fn players(view: &View) -> Vec<(&'static str, String)> {
    let is_you = |player: &&PlayerView| view.you == Some(player.player);
    let you = view.players.iter().filter(is_you);
    let others = view.players.iter().filter(|player| !is_you(player));
    let told = |player: &PlayerView| {
        let class = match (player.is_here, player.role) {
            (false, _) => "gone",
            (_, Role::Builder) => "builds",
            (_, Role::Runner) => "runs",
        };
        let you = if view.you == Some(player.player) { " (you)" } else { "" };
        (class, format!("{}{you}", player.name))
    };
    you.chain(others).map(told).collect()
}
