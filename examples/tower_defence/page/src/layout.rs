//! Where the cells are on the screen. On a tall screen the board is turned, so that it fills it.

use tower_defence::sim::{At, Keys};

/// The board on a canvas. Lengths are in pixels of CSS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// The canvas.
    pub width: f64,
    /// See `width`.
    pub height: f64,
    /// The side of a cell.
    pub cell: f64,
    /// The upper left corner of the board.
    pub left: f64,
    /// See `left`.
    pub top: f64,
    /// Whether columns of the board are rows of the screen.
    pub is_turned: bool,
    /// Columns and rows of the board.
    pub board: (u8, u8),
}

impl Layout {
    /// The largest board that fits.
    #[must_use]
    pub fn fit(width: f64, height: f64, board: (u8, u8)) -> Self {
        let (columns, rows) = (f64::from(board.0.max(1)), f64::from(board.1.max(1)));
        let space = (width - 2.0 * MARGIN, height - 2.0 * MARGIN);
        let size = |across: f64, down: f64| half((space.0 / across).min(space.1 / down)).max(1.0);
        let (straight, turned) = (size(columns, rows), size(rows, columns));
        let is_turned = turned > straight;
        let (cell, across, down) =
            if is_turned { (turned, rows, columns) } else { (straight, columns, rows) };
        let (left, top) = ((width - cell * across) / 2.0, (height - cell * down) / 2.0);
        Self { width, height, cell, left: left.round(), top: top.round(), is_turned, board }
    }

    /// Where a position on the board is, which is in cells.
    #[must_use]
    pub fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (across, down) = if self.is_turned { (y, x) } else { (x, y) };
        (self.left + across * self.cell, self.top + down * self.cell)
    }

    /// The middle of a cell.
    #[must_use]
    pub fn middle(&self, at: At) -> (f64, f64) {
        self.place(f64::from(at.x) + 0.5, f64::from(at.y) + 0.5)
    }

    /// The cell at a point. `None`: it is beside the board, by more than a finger's half.
    #[must_use]
    pub fn hit(&self, x: f64, y: f64) -> Option<At> {
        let (across, down) = ((x - self.left) / self.cell, (y - self.top) / self.cell);
        let (column, row) = if self.is_turned { (down, across) } else { (across, down) };
        let beside = FINGER / self.cell;
        let index = |place: f64, count: u8| {
            let count = f64::from(count);
            (-beside..=count + beside).contains(&place).then(|| small(place.clamp(0.0, count - 1.0)))
        };
        Some(At { x: index(column, self.board.0)?, y: index(row, self.board.1)? })
    }

    /// What directions on the screen are on the board.
    #[must_use]
    pub const fn keys(&self, keys: Keys) -> Keys {
        let (x, y) = keys.direction();
        if self.is_turned { Keys::towards(y, x) } else { Keys::towards(x, y) }
    }
}

/// Rounded down to halves: edges of cells are sharp on most screens.
fn half(length: f64) -> f64 {
    (length * 2.0).floor() / 2.0
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the board")]
const fn small(place: f64) -> u8 {
    place as u8
}

/// Around the board.
const MARGIN: f64 = 7.0;
/// How far beside the board a finger still means its edge.
const FINGER: f64 = 22.0;

#[cfg(test)]
mod tests {
    use super::*;

    const SCREENS: [(f64, f64); 5] =
        [(960.0, 620.0), (390.0, 640.0), (560.0, 330.0), (320.0, 400.0), (30.0, 20.0)];

    #[test]
    fn the_board_fits_and_each_cell_is_hit_where_it_is_drawn() {
        for (width, height) in SCREENS {
            let layout = Layout::fit(width, height, (24, 14));
            for (x, y) in (0..24).flat_map(|x| (0..14).map(move |y| (x, y))) {
                let middle = layout.middle(At { x, y });
                assert_eq!(layout.hit(middle.0, middle.1), Some(At { x, y }), "{layout:?}");
            }
            if width > 100.0 {
                let (right, bottom) = layout.place(24.0, 14.0);
                assert!(layout.left >= 0.0 && layout.top >= 0.0 && right <= width && bottom <= height);
            }
        }
    }

    #[test]
    fn a_phone_held_upright_turns_the_board_and_its_directions() {
        let layout = Layout::fit(390.0, 640.0, (24, 14));
        assert!(layout.is_turned && layout.cell >= 25.0, "{layout:?}");
        assert_eq!(layout.keys(Keys::DOWN), Keys::RIGHT); // down the screen is towards the exit
        assert_eq!(layout.keys(Keys::UP.and(Keys::RIGHT)), Keys::LEFT.and(Keys::DOWN));
        let straight = Layout::fit(960.0, 620.0, (24, 14));
        assert_eq!(straight.keys(Keys::UP.and(Keys::RIGHT)), Keys::UP.and(Keys::RIGHT));
    }

    #[test]
    fn beside_the_board_is_the_edge_for_a_finger_and_nothing_further_away() {
        let layout = Layout::fit(960.0, 660.0, (24, 14));
        assert_eq!(layout.hit(layout.left - 20.0, layout.top + 1.0), Some(At { x: 0, y: 0 }));
        assert_eq!(layout.hit(layout.left + 1.0, layout.top - 30.0), None);
    }
}
