//! A number for a world: equal worlds have equal numbers.

use super::player::PlayerId;
use super::world::World;
use std::hash::{Hash, Hasher};

impl World {
    /// Of the whole world.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut fnv = self.shared_hash();
        self.purses.hash(&mut fnv);
        fnv.finish()
    }

    /// Of what a player is told. `None`: a spectator.
    #[must_use]
    pub fn hash_for(&self, player: Option<PlayerId>) -> u64 {
        let mut fnv = self.shared_hash();
        player.and_then(|player| self.purse(player)).hash(&mut fnv);
        fnv.finish()
    }

    fn shared_hash(&self) -> Fnv {
        let Self { tick, seed, board, turrets, runners, coins, phase, phase_ends, wave, base, .. } = self;
        let mut fnv = Fnv(0xcbf2_9ce4_8422_2325);
        (tick, seed, turrets, runners, coins, phase, phase_ends, wave, base).hash(&mut fnv);
        (self.kills, self.overcharge_until, self.bounty_until).hash(&mut fnv);
        board.iter().for_each(|cell| cell.hash(&mut fnv));
        fnv
    }
}

/// The FNV-1a hash, 64 bits: the same on every machine, unlike std's hashes.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write_i32(&mut self, number: i32) {
        self.write(&number.to_le_bytes());
    }

    // Lengths and discriminants: the same on 32-bit and 64-bit machines.
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64((number as i64).cast_unsigned());
    }
}
