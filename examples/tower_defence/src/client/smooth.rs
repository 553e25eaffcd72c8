//! Moves what is drawn to its proper position over some frames, without jumps.

use crate::sim::Point;
use crate::sim::rules::CELL;

/// Distance between the drawn and the proper position, cells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smooth {
    x: f32,
    y: f32,
}

impl Smooth {
    /// The proper position changed from `before` to `after`. It is still drawn where it was, unless that is too far.
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

    /// Where to draw something whose proper position is `at`, cells.
    pub(super) fn draw(self, (x, y): (f32, f32)) -> (f32, f32) {
        (x + self.x, y + self.y)
    }
}

/// Converts units to cells.
#[expect(clippy::cast_precision_loss, reason = "a board has 8192 units at most")]
pub(super) const fn cells(units: i32) -> f32 {
    units as f32 / CELL as f32
}

/// What remains of the distance after a tick: a tenth after 10 ticks.
const FADE: f32 = 0.8;
/// Distance from which on it jumps, cells: the runner is at the start again.
const FAR: f32 = 2.0;
