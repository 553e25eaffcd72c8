//! Runners: the light that they are mixed of, a ring with a part for each colour that hurts them most, and health.

use super::pen::{Pen, polar};
use crate::layout::Layout;
use crate::palette::{GOLD, ICE, LIGHT, NIGHT, RED, mixed, paint};
use std::f64::consts::{FRAC_PI_2, TAU};
use tower_defence::client::{RunnerView, View};
use tower_defence::sim::Colour;
use tower_defence::words;

/// How many were drawn. The own one is above all others.
pub(super) fn all(pen: &mut Pen, layout: &Layout, view: &View, seconds: f64) -> u32 {
    let mut count = 0;
    for is_you in [false, true] {
        for runner in view.runners.iter().filter(|runner| runner.is_you == is_you) {
            draw(pen, layout, runner, seconds);
            name(pen, layout, runner, view);
            count += 1;
        }
    }
    count
}

fn place(layout: &Layout, runner: &RunnerView) -> (f64, f64) {
    layout.place(runner.x.into(), runner.y.into())
}

fn draw(pen: &mut Pen, layout: &Layout, runner: &RunnerView, seconds: f64) {
    let (at, cell, colour) = (place(layout, runner), layout.cell, mixed(runner.colours));
    let strength = if runner.is_extrapolated { 0.55 } else { 1.0 };
    pen.light(at, cell * if runner.is_you { 1.0 } else { 0.75 }, colour, 0.5 * strength);
    pen.alpha(strength);
    pen.fill(&NIGHT.css());
    pen.disc(at, cell * 0.36);
    pen.fill(&colour.css());
    pen.disc(at, cell * 0.24);
    // Each colour has its place in the ring, so that it is known without being seen as such.
    for hurts in Colour::ALL {
        let from = TAU * f64::from(hurts.code()) / 3.0 - FRAC_PI_2 + 0.15;
        let ink = if runner.colours.has(hurts) { paint(hurts).css() } else { LIGHT.with(0.12) };
        pen.stroke(&ink, (cell * 0.085).max(1.6));
        pen.arc(at, cell * 0.32, from, from + TAU / 3.0 - 0.3);
    }
    eyes(pen, layout, runner, at);
    if runner.is_slow {
        pen.stroke(&ICE.css(), (cell * 0.06).max(1.2));
        pen.dash(cell * 0.09, cell * 0.12);
        pen.circle(at, cell * 0.42);
        pen.solid();
    }
    health(pen, runner, at, cell);
    pen.alpha(1.0);
    if runner.is_you {
        let top = at.1 - cell * (0.72 + 0.06 * (seconds * 5.0).sin());
        pen.fill(&LIGHT.css());
        let half = (cell * 0.15).max(4.0);
        pen.shape(&[(at.0 - half, top - half), (at.0 + half, top - half), (at.0, top + half * 0.5)], false);
    }
}

/// They look where they go.
fn eyes(pen: &Pen, layout: &Layout, runner: &RunnerView, at: (f64, f64)) {
    let (x, y) = (f64::from(runner.velocity.0), f64::from(runner.velocity.1));
    let (x, y) = if layout.is_turned { (y, x) } else { (x, y) };
    let turn = if x == 0.0 && y == 0.0 { FRAC_PI_2 } else { y.atan2(x) };
    pen.fill(&NIGHT.css());
    for aside in [-0.6, 0.6] {
        pen.disc(polar(at, layout.cell * 0.13, turn + aside), (layout.cell * 0.05).max(1.0));
    }
}

fn health(pen: &Pen, runner: &RunnerView, (x, y): (f64, f64), cell: f64) {
    let share = f64::from(runner.health.clamp(0.0, 1.0));
    let (width, height) = (cell * 0.72, (cell * 0.09).max(2.0));
    let (left, top) = (x - width / 2.0, y - cell * 0.5);
    pen.fill(&NIGHT.with(0.85));
    pen.rounded((left - 1.0, top - 1.0), (width + 2.0, height + 2.0), height / 2.0, false);
    let colour = match share {
        share if share > 0.6 => LIGHT,
        share if share > 0.3 => GOLD,
        _ => RED,
    };
    pen.fill(&colour.css());
    pen.rounded((left, top), (width * share, height), height / 2.0, false);
}

/// Where there is room to read it.
fn name(pen: &Pen, layout: &Layout, runner: &RunnerView, view: &View) {
    if layout.cell >= 30.0 {
        let (x, y) = place(layout, runner);
        let name = if runner.is_you { "you".to_owned() } else { words::name(runner.player, view) };
        let ink = if runner.is_you { LIGHT.css() } else { LIGHT.with(0.6) };
        pen.text(&name, (x, y + layout.cell * 0.55), 10.0, &ink);
    }
}
