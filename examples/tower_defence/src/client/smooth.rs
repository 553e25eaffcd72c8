//! What is drawn goes to where it should be in some frames, and does not jump.

use crate::sim::Point;
use crate::sim::rules::CELL;

/// How far what is drawn is from where it should be, cells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smooth {
    x: f32,
    y: f32,
}

impl Smooth {
    /// What was taken to be at `before` is at `after`: it is still drawn where it was, unless that is too far.
    pub(super) fn moved(&mut self, before: Point, after: Point) {
        self.x += cells(before.x - after.x);
        self.y += cells(before.y - after.y);
        if self.x.hypot(self.y) > FAR {
            *self = Self::default();
        }
    }

    /// A tick has passed.
    pub(super) fn fade(&mut self) {
        self.x *= FADE;
        self.y *= FADE;
    }

    /// Where something is drawn that should be at `at`, cells.
    pub(super) fn draw(self, (x, y): (f32, f32)) -> (f32, f32) {
        (x + self.x, y + self.y)
    }
}

/// Units as cells.
#[expect(clippy::cast_precision_loss, reason = "a board has 8192 units at most")]
pub(super) const fn cells(units: i32) -> f32 {
    units as f32 / CELL as f32
}

/// What is left of the way after a tick: a tenth after 10 ticks.
const FADE: f32 = 0.8;
/// Cells from which on it jumps: whoever was there is at the start again.
const FAR: f32 = 2.0;
