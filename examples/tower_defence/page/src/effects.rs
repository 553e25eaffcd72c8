//! Sparks, rings and rising words: what has changed between two views. Nothing here changes the game.

use crate::palette::{EXIT, GOLD, LIGHT, Rgb, mixed, paint};
use std::collections::BTreeMap;
use tower_defence::client::{RunnerView, ShotView, TurretView, View};
use tower_defence::sim::{At, Kind, Phase};

/// A spark. Positions are in cells, times in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Spark {
    /// Where it is.
    pub at: (f64, f64),
    /// Cells per second.
    velocity: (f64, f64),
    /// What remains of its time, and all of it.
    left: f64,
    /// See `left`.
    span: f64,
    /// Its radius, cells.
    pub size: f64,
    /// Its colour.
    pub colour: Rgb,
}

impl Spark {
    /// From 1 to 0.
    #[must_use]
    pub fn strength(&self) -> f64 {
        (self.left / self.span).clamp(0.0, 1.0)
    }
}

/// A ring that grows.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// Its middle.
    pub at: (f64, f64),
    /// Its last radius, cells.
    reach: f64,
    left: f64,
    span: f64,
    /// Its colour.
    pub colour: Rgb,
}

impl Ring {
    /// From 1 to 0.
    #[must_use]
    pub fn strength(&self) -> f64 {
        (self.left / self.span).clamp(0.0, 1.0)
    }

    /// Its radius now, cells.
    #[must_use]
    pub fn radius(&self) -> f64 {
        let rest = self.strength();
        self.reach * (1.0 - rest * rest)
    }
}

/// What a shot leaves in the air.
#[derive(Clone, Copy, Debug)]
pub struct Trail {
    /// From where it was fired.
    pub from: (f64, f64),
    /// Whom it hit, where they were then.
    pub to: (f64, f64),
    /// Its colour.
    pub colour: Rgb,
    left: f64,
}

impl Trail {
    /// From 1 to 0.
    #[must_use]
    pub fn strength(&self) -> f64 {
        (self.left / TRAIL).clamp(0.0, 1.0)
    }
}

/// A word that rises.
#[derive(Clone, Debug)]
pub struct Word {
    /// Where it began.
    pub at: (f64, f64),
    /// The word.
    pub text: String,
    /// Its colour.
    pub colour: Rgb,
    left: f64,
}

impl Word {
    /// From 1 to 0.
    #[must_use]
    pub fn strength(&self) -> f64 {
        (self.left / WORD).clamp(0.0, 1.0)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Effects {
    /// See [`Spark`].
    pub sparks: Vec<Spark>,
    /// See [`Ring`].
    pub rings: Vec<Ring>,
    /// See [`Trail`].
    pub trails: Vec<Trail>,
    /// See [`Word`].
    pub words: Vec<Word>,
    /// How much the base was hurt just now, 1 to 0.
    pub alarm: f64,
    /// Where each turret looks, radians on the board.
    aims: BTreeMap<u8, f64>,
    before: Option<Before>,
    random: u32,
}

/// What was there in the last frame.
#[derive(Clone, Debug)]
struct Before {
    phase: Phase,
    base: u16,
    money: u16,
    runners: Vec<RunnerView>,
    turrets: Vec<TurretView>,
    shots: Vec<ShotView>,
    coins: Vec<At>,
}

impl Effects {
    /// Forgets everything: another game begins.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Where a turret looks, radians on the board. `None`: it has not fired yet.
    #[must_use]
    pub fn aim(&self, turret: u8) -> Option<f64> {
        self.aims.get(&turret).copied()
    }

    /// Compares a view with the last one.
    pub fn watch(&mut self, view: &View) {
        let now = Before {
            phase: view.phase,
            base: view.base,
            money: view.purse.money,
            runners: view.runners.clone(),
            turrets: view.turrets.clone(),
            shots: view.shots.clone(),
            coins: view.coins.clone(),
        };
        if let Some(before) = self.before.replace(now) {
            // At the end of a wave all runners are gone, and after the last one also the coins: nothing has happened to them.
            if before.phase == view.phase {
                self.runners(&before, view);
                self.coins(&before, view);
            }
            self.turrets(&before, view);
            self.shots(&before, view);
            if view.base < before.base {
                self.alarm = 1.0;
            }
            self.money(before.money, view);
        }
    }

    /// Lets time pass, in seconds.
    pub fn advance(&mut self, passed: f64) {
        self.alarm = (self.alarm - passed * 1.6).max(0.0);
        for spark in &mut self.sparks {
            spark.left -= passed;
            let drag = (1.0 - 2.5 * passed).max(0.0);
            spark.velocity = (spark.velocity.0 * drag, spark.velocity.1 * drag);
            spark.at = (spark.at.0 + spark.velocity.0 * passed, spark.at.1 + spark.velocity.1 * passed);
        }
        self.rings.iter_mut().for_each(|ring| ring.left -= passed);
        self.trails.iter_mut().for_each(|trail| trail.left -= passed);
        self.words.iter_mut().for_each(|word| word.left -= passed);
        self.sparks.retain(|spark| spark.left > 0.0);
        self.rings.retain(|ring| ring.left > 0.0);
        self.trails.retain(|trail| trail.left > 0.0);
        self.words.retain(|word| word.left > 0.0);
    }

    /// Who is gone was shot, or got through.
    fn runners(&mut self, before: &Before, view: &View) {
        let exit = middle(view.board.exit());
        for gone in &before.runners {
            if view.runners.iter().any(|runner| runner.player == gone.player) {
                continue;
            }
            let at = (f64::from(gone.x), f64::from(gone.y));
            if (at.0 - exit.0).hypot(at.1 - exit.1) < 1.3 {
                self.ring(exit, 2.2, 0.7, EXIT);
                self.burst(exit, 18, 4.0, EXIT);
            } else {
                let colour = mixed(gone.colours);
                self.ring(at, 1.1, 0.45, colour);
                self.burst(at, 22, 5.0, colour);
                self.burst(at, 8, 2.0, LIGHT);
            }
        }
    }

    fn turrets(&mut self, before: &Before, view: &View) {
        for turret in &view.turrets {
            let known = before.turrets.iter().find(|known| known.id == turret.id);
            if known.is_none_or(|known| known.level < turret.level) {
                self.ring(middle(turret.at), 0.95, 0.5, paint(turret.colour));
            }
        }
    }

    fn shots(&mut self, before: &Before, view: &View) {
        for shot in &view.shots {
            let (x, y) = (f64::from(shot.to.0 - shot.from.0), f64::from(shot.to.1 - shot.from.1));
            self.aims.insert(shot.turret.0, y.atan2(x));
            let known = before.shots.iter().find(|known| known.turret == shot.turret);
            if known.is_some_and(|known| known.age <= shot.age) {
                continue; // the same shot as before
            }
            let to = (f64::from(shot.to.0), f64::from(shot.to.1));
            if shot.kind != Kind::Mortar {
                let from = (f64::from(shot.from.0), f64::from(shot.from.1));
                self.trails.push(Trail { from, to, colour: paint(shot.colour), left: TRAIL });
            }
            match shot.kind {
                Kind::Gun => self.burst(to, 3, 2.5, paint(shot.colour)),
                Kind::Frost => self.ring(to, 0.6, 0.4, paint(shot.colour)),
                Kind::Mortar => {
                    self.ring(to, 1.0, 0.5, paint(shot.colour));
                    self.burst(to, 10, 3.5, paint(shot.colour));
                }
            }
        }
    }

    fn coins(&mut self, before: &Before, view: &View) {
        for coin in before.coins.iter().filter(|coin| !view.coins.contains(coin)) {
            self.burst(middle(*coin), 10, 3.0, GOLD);
        }
    }

    /// Money rises where it was earned: from the own runner, or the exit.
    fn money(&mut self, before: u16, view: &View) {
        let earned = view.purse.money.saturating_sub(before);
        if earned == 0 || view.you.is_none() || self.words.len() > 12 {
            return;
        }
        let you = view.runners.iter().find(|runner| runner.is_you);
        let at = you.map_or(middle(view.board.exit()), |you| (f64::from(you.x), f64::from(you.y)));
        self.words.push(Word { at, text: format!("+{earned}"), colour: GOLD, left: WORD });
    }

    fn ring(&mut self, at: (f64, f64), reach: f64, span: f64, colour: Rgb) {
        self.rings.push(Ring { at, reach, left: span, span, colour });
    }

    fn burst(&mut self, at: (f64, f64), count: u8, speed: f64, colour: Rgb) {
        for _ in 0..count {
            if self.sparks.len() >= SPARKS {
                return;
            }
            let (angle, share) = (self.draw() * std::f64::consts::TAU, self.draw());
            let speed = speed * (0.25 + 0.75 * share);
            let velocity = (angle.cos() * speed, angle.sin() * speed);
            let (span, size) = (0.3 + 0.45 * self.draw(), 0.04 + 0.06 * self.draw());
            self.sparks.push(Spark { at, velocity, left: span, span, size, colour });
        }
    }

    /// From 0 to 1, by a linear congruence: good enough for sparks.
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.random >> 8) / f64::from(1_u32 << 24)
    }
}

fn middle(at: At) -> (f64, f64) {
    (f64::from(at.x) + 0.5, f64::from(at.y) + 0.5)
}

/// Most sparks at once.
const SPARKS: usize = 400;
/// How long a trail is seen, seconds.
const TRAIL: f64 = 0.5;
/// How long a word rises, seconds.
const WORD: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tower_defence::lab::{Lab, LinkSpec, Transport};
    use tower_defence::wire::{Hello, Wish};

    #[test]
    fn a_game_makes_effects_and_they_all_end() {
        let mut lab = Lab::new(Transport::Sessions, &LinkSpec::default(), 3);
        for number in 0..6 {
            let wish = if number == 0 { Wish::Build } else { Wish::Any };
            lab.join(Hello { name: format!("bot {number}"), wish, ticket: number }, true);
        }
        let (mut effects, mut sparks, mut rings, mut words) = (Effects::default(), 0, 0, 0);
        for _ in 0..60 * 40 {
            lab.run_for(Duration::from_micros(16_667));
            if let Some(view) = lab.client(0).and_then(|client| client.view()) {
                effects.watch(&view);
            }
            effects.advance(0.016_667);
            sparks = sparks.max(effects.sparks.len());
            rings = rings.max(effects.rings.len());
            words = words.max(effects.words.len());
        }
        assert!(sparks > 3 && rings > 0 && words > 0, "{sparks} sparks, {rings} rings, {words} words");
        assert!(sparks <= SPARKS && effects.aim(0).is_some());
        effects.advance(2.0);
        assert!(effects.trails.is_empty());
        assert!(effects.sparks.is_empty() && effects.rings.is_empty() && effects.words.is_empty());
    }
}
