//! The board: n x m cells, and the distance of each to the exit.

use super::random::draw;
use super::rules::{BOARD_MAX, BOARD_MIN, CELL};
use super::runner::Point;
use super::turret::TurretId;
use std::collections::VecDeque;

/// A cell by column and row.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct At {
    /// Column.
    pub x: u8,
    /// Row.
    pub y: u8,
}

impl At {
    /// Its centre.
    #[must_use]
    pub fn middle(self) -> Point {
        Point { x: i32::from(self.x) * CELL + CELL / 2, y: i32::from(self.y) * CELL + CELL / 2 }
    }

    /// Distance of two cells: the larger of columns and rows.
    #[must_use]
    pub fn distance(self, other: Self) -> u8 {
        self.x.abs_diff(other.x).max(self.y.abs_diff(other.y))
    }
}

/// What a cell is.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Cell {
    /// Free: runners walk here, and turrets can be built here.
    #[default]
    Free,
    /// Nobody can walk or build here.
    Rock,
    /// Where runners start.
    Start,
    /// The goal of the runners.
    Exit,
    /// A turret.
    Turret(TurretId),
}

impl Cell {
    /// Whether runners can walk here.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Free | Self::Start | Self::Exit)
    }
}

/// All cells. Boards are equal if their cells are; the distances follow from them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Board {
    width: u8,
    height: u8,
    cells: Vec<Cell>,
    /// Steps to the exit; [`FAR`] if there is no way.
    distances: Vec<u16>,
}

impl Board {
    /// A board with random rocks from a seed. The size is clamped to the limits of the rules.
    #[must_use]
    pub fn new(width: u8, height: u8, seed: u64) -> Self {
        let mut board = Self::blank(width, height);
        let rocks = u32::from(board.width) * u32::from(board.height) / 14;
        for number in 0..rocks {
            let at = At {
                x: 3 + below(seed, 2 * number, board.width - 6),
                y: below(seed, 2 * number + 1, board.height),
            };
            if board.cell(at) == Cell::Free && !board.would_block(at, &[]) {
                board.set(at, Cell::Rock);
                board.measure();
            }
        }
        board
    }

    /// A board without rocks.
    #[must_use]
    pub fn blank(width: u8, height: u8) -> Self {
        let width = width.clamp(BOARD_MIN.0, BOARD_MAX.0);
        let height = height.clamp(BOARD_MIN.1, BOARD_MAX.1);
        let cells = vec![Cell::Free; usize::from(width) * usize::from(height)];
        let mut board = Self { width, height, cells, distances: Vec::new() };
        board.set(board.start(), Cell::Start);
        board.set(board.exit(), Cell::Exit);
        board.measure();
        board
    }

    /// Columns.
    #[must_use]
    pub const fn width(&self) -> u8 {
        self.width
    }

    /// Rows.
    #[must_use]
    pub const fn height(&self) -> u8 {
        self.height
    }

    /// Where runners start.
    #[must_use]
    pub const fn start(&self) -> At {
        At { x: 0, y: self.height / 2 }
    }

    /// The goal of the runners.
    #[must_use]
    pub const fn exit(&self) -> At {
        At { x: self.width - 1, y: self.height / 2 }
    }

    /// The cell at a position; outside of the board it is rock.
    #[must_use]
    pub fn cell(&self, at: At) -> Cell {
        self.index(at).and_then(|index| self.cells.get(index)).copied().unwrap_or(Cell::Rock)
    }

    /// Every cell with its position, row by row.
    pub fn iter(&self) -> impl Iterator<Item = (At, Cell)> + '_ {
        self.places().zip(self.cells.iter().copied())
    }

    /// Every position, row by row.
    pub fn places(&self) -> impl Iterator<Item = At> + use<> {
        let width = self.width;
        (0..self.height).flat_map(move |y| (0..width).map(move |x| At { x, y }))
    }

    /// Changes a cell. Call [`measure`](Self::measure) afterwards.
    pub fn set(&mut self, at: At, cell: Cell) {
        if let Some(place) = self.index(at).and_then(|index| self.cells.get_mut(index)) {
            *place = cell;
        }
    }

    /// Steps from a cell to the exit. `None`: there is no way.
    #[must_use]
    pub fn distance(&self, at: At) -> Option<u16> {
        let distance = *self.distances.get(self.index(at)?)?;
        (distance != FAR).then_some(distance)
    }

    /// Computes the distances after cells have changed.
    pub fn measure(&mut self) {
        self.distances = self.distances_without(None);
    }

    /// Whether an obstacle at `at` would leave the start or one of these cells without a way.
    #[must_use]
    pub fn would_block(&self, at: At, from: &[At]) -> bool {
        let distances = self.distances_without(Some(at));
        let has_way = |at: At| {
            self.index(at).and_then(|index| distances.get(index)).is_some_and(|distance| *distance != FAR)
        };
        !has_way(self.start()) || from.iter().any(|at| !has_way(*at))
    }

    /// The four neighbours on the board.
    pub fn neighbours(&self, at: At) -> impl Iterator<Item = At> + use<> {
        let (width, height) = (self.width, self.height);
        [(0, -1), (-1, 0), (1, 0), (0, 1)].into_iter().filter_map(move |(x, y): (i8, i8)| {
            let at = At { x: at.x.checked_add_signed(x)?, y: at.y.checked_add_signed(y)? };
            (at.x < width && at.y < height).then_some(at)
        })
    }

    fn distances_without(&self, without: Option<At>) -> Vec<u16> {
        let mut distances = vec![FAR; self.cells.len()];
        let mut queue = VecDeque::from([(self.exit(), 0)]);
        while let Some((at, steps)) = queue.pop_front() {
            let Some(place) = self.index(at).and_then(|index| distances.get_mut(index)) else { continue };
            if *place != FAR || !self.cell(at).is_open() || without == Some(at) {
                continue;
            }
            *place = steps;
            queue.extend(self.neighbours(at).map(|next| (next, steps + 1)));
        }
        distances
    }

    fn index(&self, at: At) -> Option<usize> {
        let is_inside = at.x < self.width && at.y < self.height;
        is_inside.then(|| usize::from(at.y) * usize::from(self.width) + usize::from(at.x))
    }
}

fn below(seed: u64, number: u32, count: u8) -> u8 {
    u8::try_from(draw(seed, 0, number, count.into())).unwrap_or(0)
}

/// The distance without a way to the exit.
const FAR: u16 = u16::MAX;
