//! A small world with moving entities. The same seed and inputs give the same world.

use rand::RngExt;
use whitewater_sim::SimRng;

/// What a client sees of the world. Everything is already rounded to what is sent, so both ends have exactly the same,
/// and unchanged values are equal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) entities: [Entity; ENTITIES],
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Entity {
    /// Up to [`POSITION_MAX`], in 1/32 m.
    pub(crate) x: u16,
    pub(crate) y: u16,
    /// 256 in a full turn.
    pub(crate) heading: u8,
    /// Up to [`HEALTH_MAX`].
    pub(crate) health: u8,
}

/// The server's world. Entity 0 is the player's.
#[derive(Debug)]
pub(crate) struct World {
    snapshot: Snapshot,
    /// Steps per tick, x and y.
    velocities: [(i16, i16); ENTITIES],
    rng: SimRng,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = SimRng::new(seed, 7);
        let entity = |_| Entity {
            x: below(&mut rng, POSITION_MAX),
            y: below(&mut rng, POSITION_MAX),
            heading: 0,
            health: HEALTH_MAX,
        };
        let entities = std::array::from_fn(entity);
        Self { snapshot: Snapshot { entities }, velocities: [(0, 0); ENTITIES], rng }
    }

    pub(crate) const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Advances by one tick, with the keys that the player holds.
    pub(crate) fn step(&mut self, keys: u8) {
        let Self { snapshot, velocities, rng } = self;
        let pull = |less, more| 3 * (i16::from(keys & more != 0) - i16::from(keys & less != 0));
        for (index, (entity, velocity)) in snapshot.entities.iter_mut().zip(velocities).enumerate() {
            if index == 0 {
                *velocity = (pull(LEFT, RIGHT), pull(UP, DOWN));
            } else if below(rng, 60) == 0 {
                // An entity turns or stops about once a second; most of them stand still.
                let is_walking = below(rng, 3) == 0;
                let mut speed = || if is_walking { i16::try_from(below(rng, 9)).unwrap_or(0) - 4 } else { 0 };
                *velocity = (speed(), speed());
                entity.heading = below(rng, 256).to_le_bytes()[0];
            }
            entity.x = entity.x.saturating_add_signed(velocity.0).min(POSITION_MAX);
            entity.y = entity.y.saturating_add_signed(velocity.1).min(POSITION_MAX);
            if below(rng, 300) == 0 {
                entity.health = entity.health.checked_sub(10).unwrap_or(HEALTH_MAX);
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `count`")]
fn below(rng: &mut SimRng, count: u16) -> u16 {
    (rng.random::<f64>() * f64::from(count)) as u16
}

/// The keys of an input, one bit each.
pub(crate) const LEFT: u8 = 1;
pub(crate) const RIGHT: u8 = 2;
pub(crate) const UP: u8 = 4;
pub(crate) const DOWN: u8 = 8;
pub(crate) const ENTITIES: usize = 64;
pub(crate) const POSITION_MAX: u16 = 4095;
pub(crate) const HEALTH_MAX: u8 = 100;
