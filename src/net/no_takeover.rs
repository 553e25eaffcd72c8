//! Where a socket cannot be taken over: the same items as in `takeover`.

use super::shards::{Give, Wake};
use crate::machine::{Arrival, Machine};
use crate::time::Time;
use std::convert::Infallible;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) const LOOK_EACH: Duration = Duration::MAX;

#[derive(Debug)]
pub(super) struct Claim {
    pub(super) shard: u8,
    nobody: Infallible,
}

impl Claim {
    pub(super) fn new(_: &Path) -> io::Result<Self> {
        let why = "a socket can be taken over only on Linux, with the feature `batch`";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

#[derive(Debug)]
pub(super) struct Generations<M> {
    pub(super) handed_on: u64,
    pub(super) not_handed_on: u64,
    nobody: Infallible,
    machine: PhantomData<fn(M)>,
}

#[expect(clippy::needless_pass_by_ref_mut, reason = "same signatures as where a socket can be taken over")]
impl<M: Machine> Generations<M> {
    pub(super) fn take_over(claim: Claim, _: Arc<dyn Wake>, _: Give<M>) -> io::Result<Self> {
        match claim.nobody {}
    }

    pub(super) const fn is_superseded(&self) -> bool {
        match self.nobody {}
    }

    pub(super) const fn hand_in(&mut self, _: Time, _: &mut M, _: Arrival, _: &mut [u8]) {
        match self.nobody {}
    }

    pub(super) fn look(&mut self, _: Time, _: impl FnOnce() -> bool) {
        match self.nobody {}
    }

    pub(super) const fn hand_in_stray(&mut self, _: Time, _: &mut M) -> bool {
        match self.nobody {}
    }

    pub(super) const fn answer(&mut self) {
        match self.nobody {}
    }

    pub(super) const fn flush(&mut self, _: Time) {
        match self.nobody {}
    }

    pub(super) const fn is_clogged(&self) -> bool {
        match self.nobody {}
    }
}
