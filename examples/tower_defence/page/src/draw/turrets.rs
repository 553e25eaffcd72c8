//! Turrets: the colour also shows by the plate, the kind by what stands on it, the level by dots.

use super::pen::{Pen, polar};
use crate::effects::Effects;
use crate::layout::Layout;
use crate::palette::{LIGHT, NIGHT, PLATE, Rgb, paint};
use std::f64::consts::{FRAC_PI_2, PI, TAU};
use tower_defence::client::{TurretView, View};
use tower_defence::sim::{Colour, Kind};

/// How many were drawn, and how many of them are guesses.
pub(super) fn all(pen: &mut Pen, layout: &Layout, view: &View, effects: &Effects) -> (u32, u32) {
    let mut count = (0, 0);
    for turret in &view.turrets {
        let aim = effects.aim(turret.id.0).unwrap_or(PI);
        let aim = if layout.is_turned { FRAC_PI_2 - aim } else { aim };
        let fires = view.shots.iter().any(|shot| shot.turret == turret.id);
        turret_at(pen, layout, turret, aim, fires || view.is_overcharged);
        count.0 += 1;
        count.1 += u32::from(turret.is_guess);
    }
    count
}

fn turret_at(pen: &mut Pen, layout: &Layout, turret: &TurretView, aim: f64, glows: bool) {
    let (at, cell) = (layout.middle(turret.at), layout.cell);
    if glows {
        pen.light(at, cell * 0.95, paint(turret.colour), 0.55);
    }
    pen.alpha(if turret.is_guess { 0.5 } else { 1.0 });
    body(pen, at, cell, (turret.colour, turret.kind), aim, turret.is_guess);
    pen.fill(&LIGHT.css());
    let (size, gap) = ((cell * 0.05).max(1.2), (cell * 0.15).max(3.4));
    for number in 0..turret.level {
        let aside = f64::from(number) - f64::from(turret.level - 1) / 2.0;
        pen.disc((at.0 + aside * gap, at.1 + cell * 0.34), size);
    }
    pen.alpha(1.0);
}

/// Plate and weapon, as on the board so in the air before it is built.
pub(super) fn body(
    pen: &Pen,
    at: (f64, f64),
    cell: f64,
    (colour, kind): (Colour, Kind),
    aim: f64,
    is_guess: bool,
) {
    let paint = paint(colour);
    pen.fill(&PLATE.css());
    pen.stroke(&paint.with(0.75), (cell * 0.06).max(1.2));
    if is_guess {
        pen.dash(cell * 0.12, cell * 0.1);
    }
    let radius = cell * 0.43;
    match colour {
        Colour::Red => {
            let (left, side) = ((at.0 - radius * 0.95, at.1 - radius * 0.95), radius * 1.9);
            pen.rounded(left, (side, side), cell * 0.08, true);
        }
        Colour::Green => {
            pen.disc(at, radius);
            pen.circle(at, radius);
        }
        Colour::Blue => pen.polygon(at, radius * 1.08, 6, 0.0, true),
    }
    pen.solid();
    match kind {
        Kind::Gun => gun(pen, at, cell, paint, aim),
        Kind::Frost => frost(pen, at, cell, paint),
        Kind::Mortar => mortar(pen, at, cell, paint, aim),
    }
}

/// A pointed barrel.
fn gun(pen: &Pen, at: (f64, f64), cell: f64, paint: Rgb, aim: f64) {
    pen.fill(&paint.css());
    let side = |radius: f64, turn: f64| polar(at, cell * radius, aim + turn);
    pen.shape(&[side(0.4, 0.0), side(0.25, 2.3), side(0.1, PI), side(0.25, -2.3)], false);
    pen.fill(&NIGHT.css());
    pen.disc(at, cell * 0.06);
}

/// A star of six rays.
fn frost(pen: &Pen, at: (f64, f64), cell: f64, paint: Rgb) {
    pen.stroke(&paint.css(), (cell * 0.08).max(1.5));
    for number in 0..6_u8 {
        let turn = TAU * f64::from(number) / 6.0 + FRAC_PI_2;
        pen.line(&[at, polar(at, cell * 0.27, turn)]);
        let knee = polar(at, cell * 0.16, turn);
        pen.line(&[polar(knee, cell * 0.1, turn + 0.9), knee, polar(knee, cell * 0.1, turn - 0.9)]);
    }
}

/// A thick ring with a short, wide barrel.
fn mortar(pen: &Pen, at: (f64, f64), cell: f64, paint: Rgb, aim: f64) {
    pen.stroke(&paint.css(), (cell * 0.17).max(2.5));
    pen.line(&[at, polar(at, cell * 0.28, aim)]);
    pen.fill(&paint.css());
    pen.disc(at, cell * 0.24);
    pen.fill(&NIGHT.css());
    pen.disc(at, cell * 0.12);
}
