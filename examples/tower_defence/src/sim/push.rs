//! Runners that overlap push each other apart: softly, so that each can still go where they want, and not through walls.

use super::board::Board;
use super::rules::{PLAYERS, PUSH_MAX, PUSH_PART, PUSH_REACH};
use super::runner::{Point, Runner};

/// All at once from where they are now, so that the order of players does not matter.
pub(super) fn push_apart(runners: &mut [Option<Runner>; PLAYERS as usize], board: &Board) {
    let places = runners.each_ref().map(|runner| runner.as_ref().filter(|one| one.alive).map(|one| one.at));
    for (number, runner) in runners.iter_mut().enumerate() {
        let Some(runner) = runner.as_mut().filter(|runner| runner.alive) else { continue };
        let others = (0..).zip(places).filter_map(|(other, at)| Some((other, at?)));
        let pushes = others.filter(|(other, _)| *other != number);
        let sum = pushes.fold(Point::default(), |sum, (other, at)| {
            let push = push(runner.at, at, number < other);
            Point { x: sum.x + push.x, y: sum.y + push.y }
        });
        // Less than anybody walks: a crowd carries nobody away.
        let [x, y] = [sum.x, sum.y].map(|sum| sum.clamp(-PUSH_MAX, PUSH_MAX));
        runner.slide(x, y, board);
    }
}

/// How a runner is pushed by another one, which is pushed as much in the other direction. In the same place, the first
/// goes up.
fn push(at: Point, other: Point, is_first: bool) -> Point {
    let (x, y) = (at.x - other.x, at.y - other.y);
    if x.abs() >= PUSH_REACH || y.abs() >= PUSH_REACH {
        return Point::default();
    }
    let distance = at.distance_squared(other).isqrt();
    let strength = ((PUSH_REACH - distance).max(0) / PUSH_PART).min(PUSH_MAX);
    match distance {
        0 if is_first => Point { x: 0, y: -strength },
        0 => Point { x: 0, y: strength },
        _ => Point { x: x * strength / distance, y: y * strength / distance },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rules::{CELL, SPEED};
    use crate::sim::{Cell, PlayerId};

    /// Two runners in such places, as players `one` and 5.
    fn pushed(board: &Board, one: u8, at: [Point; 2]) -> [Point; 2] {
        let mut runners = [const { None }; PLAYERS as usize];
        for (player, at) in [one, 5].into_iter().zip(at) {
            let runner = Runner { alive: true, at, ..Runner::new(PlayerId(player), 0) };
            *runners.get_mut(usize::from(player)).unwrap() = Some(runner);
        }
        push_apart(&mut runners, board);
        [one, 5].map(|player| runners.get(usize::from(player)).unwrap().as_ref().unwrap().at)
    }

    const MIDDLE: Point = Point { x: 10 * CELL, y: 6 * CELL };

    #[test]
    fn two_that_overlap_are_pushed_equally_apart_whoever_comes_first() {
        let board = Board::blank(24, 14);
        let (mut moved, mut untouched) = (0, 0);
        for x in (-200..=200).step_by(7) {
            for y in (-200..=200).step_by(7) {
                let at = [MIDDLE, Point { x: MIDDLE.x + x, y: MIDDLE.y + y }];
                let is = pushed(&board, 1, at);
                assert_eq!(
                    (is[0].x + is[1].x, is[0].y + is[1].y),
                    (2 * MIDDLE.x + x, 2 * MIDDLE.y + y),
                    "{x} {y}"
                );
                assert!(is[0].distance_squared(is[1]) >= at[0].distance_squared(at[1]), "{x} {y}: nearer");
                assert!((is[0].x - MIDDLE.x).abs().max((is[0].y - MIDDLE.y).abs()) < SPEED / 2, "{x} {y}");
                if (x, y) != (0, 0) {
                    assert_eq!(is, pushed(&board, 9, at), "{x} {y}: by number");
                }
                moved += i32::from(is != at);
                untouched += i32::from(is == at);
            }
        }
        assert!(moved > 1000 && untouched > 1000, "{moved} {untouched}");
    }

    #[test]
    fn nobody_is_pushed_into_a_wall_and_two_in_one_place_part() {
        let mut board = Board::blank(24, 14);
        let open = MIDDLE.cell();
        for at in board.neighbours(open).collect::<Vec<_>>() {
            board.set(at, Cell::Rock);
        }
        let mut at = [open.middle(); 2];
        for _ in 0..100 {
            let before = at;
            at = pushed(&board, 1, at);
            assert!(at.iter().all(|at| at.cell() == open), "{before:?} {at:?}");
        }
        assert!(at[0].y < at[1].y, "{at:?}");
    }
}
