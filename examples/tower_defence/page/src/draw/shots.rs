//! Shots, which fade: a straight beam, a jagged one, a shell that flies.

use super::pen::{Pen, polar};
use crate::layout::Layout;
use crate::palette::{ICE, LIGHT, paint};
use tower_defence::client::{ShotView, View};
use tower_defence::sim::Kind;

/// How many were drawn.
pub(super) fn all(pen: &mut Pen, layout: &Layout, view: &View) -> u32 {
    let mut count = 0;
    for shot in &view.shots {
        let from = layout.place(shot.from.0.into(), shot.from.1.into());
        let to = layout.place(shot.to.0.into(), shot.to.1.into());
        let turn = (to.1 - from.1).atan2(to.0 - from.0);
        let muzzle = polar(from, layout.cell * 0.4, turn);
        match shot.kind {
            Kind::Gun => beam(pen, layout, shot, muzzle, to),
            Kind::Frost => jagged(pen, layout, shot, muzzle, to),
            Kind::Mortar => shell(pen, layout, shot, muzzle, to),
        }
        count += 1;
    }
    count
}

fn rest(shot: &ShotView) -> f64 {
    1.0 - f64::from(shot.age.clamp(0.0, 1.0))
}

fn beam(pen: &mut Pen, layout: &Layout, shot: &ShotView, from: (f64, f64), to: (f64, f64)) {
    let (colour, rest) = (paint(shot.colour), rest(shot));
    pen.adds(true);
    pen.stroke(&colour.with(0.3 * rest), layout.cell * 0.34);
    pen.line(&[from, to]);
    pen.adds(false);
    pen.stroke(&colour.css(), (layout.cell * 0.13 * rest).max(1.4));
    pen.line(&[from, to]);
    pen.stroke(&LIGHT.with(0.9 * rest), (layout.cell * 0.04).max(0.8));
    pen.line(&[from, to]);
    pen.light(from, layout.cell * 0.4, colour, 0.9 * rest);
    pen.light(to, layout.cell * 0.5, colour, 0.9 * rest);
}

fn jagged(pen: &mut Pen, layout: &Layout, shot: &ShotView, from: (f64, f64), to: (f64, f64)) {
    let (colour, rest) = (paint(shot.colour), rest(shot));
    let on = |share: f64, aside: f64| {
        let (x, y) = (to.0 - from.0, to.1 - from.1);
        let length = x.hypot(y).max(1.0);
        let aside = aside * layout.cell * 0.22;
        (from.0 + x * share - y / length * aside, from.1 + y * share + x / length * aside)
    };
    // The other way round with each step of its age.
    let side = if (rest * 5.0).round() % 2.0 < 0.5 { 1.0 } else { -1.0 };
    let points = [on(0.0, 0.0), on(0.2, side), on(0.4, -side), on(0.6, side), on(0.8, -side), on(1.0, 0.0)];
    pen.adds(true);
    pen.stroke(&colour.with(0.3 * rest), layout.cell * 0.3);
    pen.line(&points);
    pen.adds(false);
    pen.stroke(&colour.css(), (layout.cell * 0.09 * rest).max(1.4));
    pen.line(&points);
    pen.light(to, layout.cell * 0.8, ICE, 0.7 * rest);
}

/// It hits at once, as the server says; what flies is only for the eye.
fn shell(pen: &mut Pen, layout: &Layout, shot: &ShotView, from: (f64, f64), to: (f64, f64)) {
    let (colour, share) = (paint(shot.colour), 1.0 - rest(shot));
    let on = |share: f64| {
        let rise = layout.cell * 1.1 * 4.0 * share * (1.0 - share);
        (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share - rise)
    };
    let trail: Vec<(f64, f64)> =
        (0..6_u8).map(|step| on((share - f64::from(step) * 0.06).max(0.0))).collect();
    pen.stroke(&colour.with(0.55), (layout.cell * 0.1).max(1.6));
    pen.line(&trail);
    pen.fill(&colour.css());
    pen.disc(on(share), (layout.cell * 0.13).max(2.2));
    pen.light(on(share), layout.cell * 0.7, colour, 0.9);
    pen.light(to, layout.cell * 1.4, colour, 0.55 * share);
}
