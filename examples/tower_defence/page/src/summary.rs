//! What is shown, as an object of JavaScript: tests read it from `window.towerDefence`.

use crate::page::{Page, Shown};
use crate::palette::{self, Rgb};
use js_sys::{Array, Object, Reflect};
use tower_defence::sim::{Phase, Role};
use wasm_bindgen::JsValue;

pub(crate) fn of(page: &Page) -> JsValue {
    let all = Object::new();
    let (state, told) = match &page.shown {
        Shown::Demo(_) => ("start", ""),
        Shown::Here(_) => ("playing", ""),
        Shown::There(there) if there.trouble().is_some() => ("again", there.trouble().unwrap_or_default()),
        Shown::There(_) if page.view.is_none() => ("connecting", ""),
        Shown::There(_) => ("playing", ""),
        Shown::Over(told) => ("over", told.as_str()),
    };
    set(&all, "state", state);
    set(&all, "told", told);
    set(&all, "transport", carrier(&page.shown));
    set(&all, "fps", page.frames.rate);
    set(&all, "layout", layout(page));
    set(&all, "drawn", drawn(page));
    set(&all, "palette", colours());
    set(&all, "kind", page.controls.kind.code());
    set(&all, "colour", page.controls.colour.code());
    if let Some(view) = &page.view {
        let role = match (view.you, view.role) {
            (None, _) => "spectator",
            (_, Role::Builder) => "builder",
            (_, Role::Runner) => "runner",
        };
        set(&all, "role", role);
        set(&all, "you", view.you.map_or(JsValue::NULL, |you| you.0.into()));
        set(&all, "phase", if view.phase == Phase::Running { "running" } else { "upgrading" });
        set(&all, "left", view.phase_left.as_secs_f64());
        set(&all, "wave", view.wave);
        set(&all, "tick", view.tick);
        set(&all, "base", view.base);
        set(&all, "money", view.purse.money);
        set(&all, "isLive", view.is_live);
        set(&all, "runners", number(view.runners.len()));
        set(&all, "turrets", number(view.turrets.len()));
        set(&all, "coins", number(view.coins.len()));
        set(&all, "players", number(view.players.len()));
        set(&all, "lines", number(view.lines.len()));
        set(&all, "own", own(page));
        set(&all, "chosen", at(page));
        set(&all, "figures", figures(page));
    }
    all.into()
}

/// What carries the game.
pub(crate) fn carrier(shown: &Shown) -> &'static str {
    match shown {
        Shown::Demo(_) | Shown::Here(_) => "here",
        Shown::There(there) => there.carrier(),
        Shown::Over(_) => "none",
    }
}

fn own(page: &Page) -> JsValue {
    let you = page.view.as_ref().and_then(|view| view.runners.iter().find(|runner| runner.is_you));
    let Some(you) = you else { return JsValue::NULL };
    let (place, own) = (page.layout.place(you.x.into(), you.y.into()), Object::new());
    set(&own, "x", f64::from(you.x));
    set(&own, "y", f64::from(you.y));
    set(&own, "health", f64::from(you.health));
    set(&own, "left", place.0);
    set(&own, "top", place.1);
    own.into()
}

fn at(page: &Page) -> JsValue {
    let Some(view) = &page.view else { return JsValue::NULL };
    let (at, chosen) = (page.controls.cursor(view), Object::new());
    let place = page.layout.middle(at);
    set(&chosen, "x", at.x);
    set(&chosen, "y", at.y);
    set(&chosen, "left", place.0);
    set(&chosen, "top", place.1);
    chosen.into()
}

fn figures(page: &Page) -> JsValue {
    let all = Object::new();
    let Some(figures) = page.view.as_ref().map(|view| view.figures) else { return JsValue::NULL };
    set(&all, "rtt", figures.rtt.as_secs_f64() * 1000.0);
    set(&all, "loss", figures.loss.map_or(JsValue::NULL, JsValue::from));
    set(&all, "up", figures.up);
    set(&all, "down", figures.down);
    set(&all, "error", f64::from(figures.error));
    set(&all, "errorMax", f64::from(figures.error_max));
    set(&all, "snapshots", number(usize::try_from(figures.snapshots).unwrap_or(usize::MAX)));
    set(&all, "snapshotBytes", number(figures.snapshot_bytes));
    set(&all, "fullBytes", number(figures.full_bytes));
    set(&all, "ahead", figures.ahead);
    all.into()
}

fn layout(page: &Page) -> JsValue {
    let (layout, all) = (page.layout, Object::new());
    set(&all, "width", layout.width);
    set(&all, "height", layout.height);
    set(&all, "cell", layout.cell);
    set(&all, "left", layout.left);
    set(&all, "top", layout.top);
    set(&all, "isTurned", layout.is_turned);
    all.into()
}

fn drawn(page: &Page) -> JsValue {
    let (drawn, all) = (page.drawn, Object::new());
    set(&all, "turrets", drawn.turrets);
    set(&all, "guesses", drawn.guesses);
    set(&all, "runners", drawn.runners);
    set(&all, "beams", drawn.beams);
    set(&all, "coins", drawn.coins);
    set(&all, "sparks", number(page.effects.sparks.len()));
    all.into()
}

fn colours() -> JsValue {
    let all = Object::new();
    let named = [
        ("red", palette::RED),
        ("green", palette::GREEN),
        ("blue", palette::BLUE),
        ("gold", palette::GOLD),
        ("exit", palette::EXIT),
        ("light", palette::LIGHT),
        ("plate", palette::PLATE),
    ];
    for (name, Rgb(red, green, blue)) in named {
        let parts: Array = [red, green, blue].map(JsValue::from).into_iter().collect();
        set(&all, name, parts);
    }
    all.into()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn set(object: &Object, name: &str, value: impl Into<JsValue>) {
    let _ = Reflect::set(object, &name.into(), &value.into()); // it fails for what is no object
}
