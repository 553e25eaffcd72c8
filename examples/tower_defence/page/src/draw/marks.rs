//! Start, exit, coins; the chosen cell; the finger that steers; the last seconds before a wave.

use super::pen::{Pen, polar};
use super::turrets;
use crate::controls::Controls;
use crate::layout::Layout;
use crate::palette::{EXIT, GOLD, LIGHT, NIGHT, RED, Rgb, START, paint};
use crate::stick::{REACH, Stick};
use std::f64::consts::{FRAC_PI_2, PI, TAU};
use tower_defence::choice;
use tower_defence::client::View;
use tower_defence::sim::rules::{BASE, CELL};
use tower_defence::sim::{At, Cell, Phase, Role};

pub(super) fn ends(pen: &mut Pen, layout: &Layout, view: &View, seconds: f64) {
    let cell = layout.cell;
    let start = layout.middle(view.board.start());
    pen.light(start, cell * 1.3, START, 0.45);
    pen.stroke(&START.css(), (cell * 0.09).max(1.6));
    let towards = if layout.is_turned { FRAC_PI_2 } else { 0.0 };
    for number in 0..3_u8 {
        let share = (f64::from(number) / 3.0 + seconds * 0.6).fract();
        pen.alpha(1.0 - (2.0 * share - 1.0).abs());
        let tip = polar(start, cell * (share * 0.9 - 0.35), towards);
        let side = |turn: f64| polar(tip, cell * 0.24, towards + turn);
        pen.line(&[side(2.4), tip, side(-2.4)]);
    }
    pen.alpha(1.0);
    let exit = layout.middle(view.board.exit());
    let pulse = 0.5 + 0.5 * (seconds * 2.4).sin();
    pen.light(exit, cell * (1.5 + 0.2 * pulse), EXIT, 0.6);
    pen.fill(&NIGHT.css());
    pen.stroke(&EXIT.css(), (cell * 0.08).max(1.6));
    pen.polygon(exit, cell * 0.42, 4, 0.0, true);
    pen.fill(&EXIT.css());
    pen.polygon(exit, cell * (0.2 + 0.03 * pulse), 4, 0.0, false);
    // What is left of the base, around the exit.
    pen.stroke(&LIGHT.with(0.15), (cell * 0.07).max(1.4));
    pen.circle(exit, cell * 0.6);
    let share = f64::from(view.base) / f64::from(BASE);
    pen.stroke(&if share < 0.34 { RED } else { EXIT }.css(), (cell * 0.07).max(1.4));
    pen.arc(exit, cell * 0.6, -FRAC_PI_2, TAU * share - FRAC_PI_2);
}

pub(super) fn coins(pen: &mut Pen, layout: &Layout, view: &View, seconds: f64) -> u32 {
    let mut count = 0;
    for coin in &view.coins {
        let (at, cell) = (layout.middle(*coin), layout.cell);
        pen.light(at, cell * 0.55, GOLD, 0.4);
        let turn = (seconds * 3.0 + f64::from(coin.x)).cos().abs().max(0.18);
        let point = |angle: f64| (at.0 + cell * 0.19 * turn * angle.cos(), at.1 + cell * 0.19 * angle.sin());
        let edge: Vec<(f64, f64)> = (0..16_u8).map(|step| point(TAU * f64::from(step) / 16.0)).collect();
        pen.fill(&GOLD.css());
        pen.stroke(&LIGHT.with(0.7), 1.0);
        pen.shape(&edge, true);
        count += 1;
    }
    count
}

/// For a builder, below the turrets: the cell under the mouse, and how far the chosen turret reaches.
pub(super) fn range(pen: &Pen, layout: &Layout, view: &View, controls: &Controls, seconds: f64) {
    if !builds(view) {
        return;
    }
    if let Some(at) = controls.hover {
        let (x, y) = layout.place(at.x.into(), at.y.into());
        pen.fill(&LIGHT.with(0.07));
        pen.context.fill_rect(x, y, layout.cell, layout.cell);
    }
    let at = controls.cursor(view);
    let known = view.turrets.iter().find(|turret| turret.at == at);
    let (colour, kind) =
        known.map_or((controls.colour, controls.kind), |turret| (turret.colour, turret.kind));
    if known.is_none() && choice::price(view, at, controls.kind).is_none() {
        return;
    }
    pen.fill(&paint(colour).with(0.06));
    pen.stroke(&paint(colour).with(0.5), 1.2);
    pen.dash(5.0, 5.0);
    pen.context.set_line_dash_offset(-seconds * 8.0);
    let (middle, reach) = (layout.middle(at), f64::from(kind.range()) / f64::from(CELL) * layout.cell);
    pen.inside(layout, |pen| {
        pen.disc(middle, reach);
        pen.circle(middle, reach);
    });
    pen.context.set_line_dash_offset(0.0);
    pen.solid();
}

/// For a builder: the chosen cell, and what would be built there.
pub(super) fn chosen(pen: &Pen, layout: &Layout, view: &View, controls: &Controls, seconds: f64) {
    if !builds(view) {
        return;
    }
    let at = controls.cursor(view);
    let is_turret = matches!(view.board.cell(at), Cell::Turret(_));
    let can = choice::price(view, at, controls.kind).is_some();
    if can && !is_turret {
        pen.alpha(0.38 + 0.1 * (seconds * 4.0).sin());
        turrets::body(pen, layout.middle(at), layout.cell, (controls.colour, controls.kind), PI, true);
        pen.alpha(1.0);
    }
    brackets(pen, layout, at, if can || is_turret { LIGHT } else { RED }, seconds);
}

fn builds(view: &View) -> bool {
    view.role == Role::Builder && view.you.is_some()
}

fn brackets(pen: &Pen, layout: &Layout, at: At, colour: Rgb, seconds: f64) {
    let (x, y) = layout.middle(at);
    let half = layout.cell * (0.52 + 0.03 * (seconds * 5.0).sin());
    let arm = layout.cell * 0.22;
    pen.stroke(&colour.css(), (layout.cell * 0.07).max(2.0));
    for (across, down) in [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)] {
        let (cx, cy) = (x + across * half, y + down * half);
        pen.line(&[(cx - across * arm, cy), (cx, cy), (cx, cy - down * arm)]);
    }
}

pub(super) fn stick(pen: &mut Pen, controls: &Controls) {
    let Some(Stick { from, at, .. }) = controls.stick else { return };
    pen.fill(&LIGHT.with(0.06));
    pen.disc(from, REACH);
    pen.stroke(&LIGHT.with(0.35), 2.0);
    pen.circle(from, REACH);
    pen.light(at, 36.0, LIGHT, 0.35);
    pen.fill(&LIGHT.with(0.75));
    pen.disc(at, 17.0);
}

/// Large, so that nobody misses the start of a wave.
pub(super) fn countdown(pen: &Pen, layout: &Layout, view: &View) {
    let left = view.phase_left.as_secs_f64();
    if view.phase != Phase::Upgrading || left > 3.0 || left <= 0.0 {
        return;
    }
    let strength = left.fract();
    let size = layout.cell * (2.2 + strength);
    let middle = (layout.width / 2.0, layout.height / 2.0);
    pen.text(&format!("{:.0}", left.ceil()), middle, size, &LIGHT.with(0.15 + 0.5 * strength));
}
