//! A finger that steers: from where it was put down, in eight directions.

use tower_defence::sim::Keys;

/// A finger on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stick {
    /// Which finger.
    pub id: i32,
    /// Where it was put down; it follows a finger that goes further than [`REACH`].
    pub from: (f64, f64),
    /// Where it is.
    pub at: (f64, f64),
}

impl Stick {
    /// A finger is put down.
    #[must_use]
    pub const fn new(id: i32, at: (f64, f64)) -> Self {
        Self { id, from: at, at }
    }

    /// The finger moves.
    pub fn follow(&mut self, at: (f64, f64)) {
        self.at = at;
        let (x, y) = self.way();
        let far = x.hypot(y);
        if far > REACH {
            // So that turning back needs no long way.
            let share = 1.0 - REACH / far;
            self.from = (self.from.0 + x * share, self.from.1 + y * share);
        }
    }

    /// The directions on the screen that it holds: none near where it was put down.
    #[must_use]
    pub fn keys(&self) -> Keys {
        let (x, y) = self.way();
        if x.hypot(y) < DEAD {
            return Keys::default();
        }
        // The sine of an eighth of a turn's half: less than that is straight.
        let sign = |way: f64| {
            let share = way / x.hypot(y);
            i32::from(share > STRAIGHT) - i32::from(share < -STRAIGHT)
        };
        Keys::towards(sign(x), sign(y))
    }

    fn way(&self) -> (f64, f64) {
        (self.at.0 - self.from.0, self.at.1 - self.from.1)
    }
}

/// How far a finger is from where it steers, at most.
pub const REACH: f64 = 44.0;
const DEAD: f64 = 9.0;
const STRAIGHT: f64 = 0.382_683;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finger_steers_in_eight_directions_and_not_near_its_start() {
        let held = |x: f64, y: f64| {
            let mut stick = Stick::new(1, (100.0, 100.0));
            stick.follow((100.0 + x, 100.0 + y));
            stick.keys()
        };
        assert_eq!(held(3.0, -4.0), Keys::default());
        assert_eq!(held(30.0, 5.0), Keys::RIGHT);
        assert_eq!(held(-25.0, 20.0), Keys::LEFT.and(Keys::DOWN));
        assert_eq!(held(2.0, -30.0), Keys::UP);
    }

    #[test]
    fn turning_back_needs_no_long_way() {
        let mut stick = Stick::new(1, (0.0, 0.0));
        stick.follow((300.0, 0.0));
        stick.follow((240.0, 0.0));
        assert_eq!(stick.keys(), Keys::LEFT);
    }
}
