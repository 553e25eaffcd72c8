//! Random numbers that follow from the seed of the thread, by the names of `getrandom`.

#![allow(missing_docs, reason = "only for tests")]

use rand_core::{TryCryptoRng, TryRng};
use std::cell::Cell;
use std::convert::Infallible;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Starts the random numbers of this thread.
pub fn seed(seed: u64) {
    STATE.set(seed);
}

/// SplitMix64.
pub fn next() -> u64 {
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// As `getrandom::SysRng`, whose errors the library passes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct SysRng;

/// Never made.
#[derive(Clone, Copy, Debug)]
pub struct Error(Infallible);

impl std::fmt::Display for Error {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {}
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        match error.0 {}
    }
}

impl TryRng for SysRng {
    type Error = Error;

    fn try_next_u32(&mut self) -> Result<u32, Error> {
        Ok((next() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Error> {
        Ok(next())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&next().to_le_bytes()[..chunk.len()]));
        Ok(())
    }
}

impl TryCryptoRng for SysRng {}
