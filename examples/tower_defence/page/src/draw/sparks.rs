//! Effects: sparks, rings, rising words, and the alarm of the base.

use super::pen::Pen;
use crate::effects::Effects;
use crate::layout::Layout;
use crate::palette::RED;

pub(super) fn all(pen: &Pen, layout: &Layout, effects: &Effects) {
    let cell = layout.cell;
    pen.adds(true);
    for trail in &effects.trails {
        let strength = trail.strength();
        pen.stroke(&trail.colour.with(0.4 * strength * strength), (cell * 0.16 * strength).max(1.0));
        pen.line(&[layout.place(trail.from.0, trail.from.1), layout.place(trail.to.0, trail.to.1)]);
    }
    for ring in &effects.rings {
        let strength = ring.strength();
        pen.stroke(&ring.colour.with(0.8 * strength), (cell * 0.1 * strength).max(1.0));
        pen.circle(layout.place(ring.at.0, ring.at.1), ring.radius() * cell);
    }
    for spark in &effects.sparks {
        pen.fill(&spark.colour.with(spark.strength()));
        pen.disc(layout.place(spark.at.0, spark.at.1), (spark.size * cell).max(1.0));
    }
    pen.adds(false);
    for word in &effects.words {
        let (x, y) = layout.place(word.at.0, word.at.1);
        let rise = (1.0 - word.strength()) * cell * 1.2 + cell * 0.9;
        let ink = word.colour.with(word.strength() * 1.5);
        pen.text(&word.text, (x, y - rise), (cell * 0.42).max(13.0), &ink);
    }
    if effects.alarm > 0.0 {
        alarm(pen, layout, effects.alarm);
    }
}

/// The edges turn red.
fn alarm(pen: &Pen, layout: &Layout, strength: f64) {
    let (x, y) = (layout.width / 2.0, layout.height / 2.0);
    let far = x.hypot(y);
    let Ok(fade) = pen.context.create_radial_gradient(x, y, far * 0.72, x, y, far) else { return };
    for (at, alpha) in [(0.0, 0.0), (1.0, 0.5 * strength * strength)] {
        let _ = fade.add_color_stop(at, &RED.with(alpha)); // both are in range
    }
    pen.context.set_fill_style_canvas_gradient(&fade);
    pen.context.fill_rect(0.0, 0.0, layout.width, layout.height);
}
