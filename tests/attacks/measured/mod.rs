//! What a datagram costs at most: every kind of it, at the largest settings, in the worst state that its sender can bring
//! about first. `tools/work.sh` counts instructions; as a test this only checks that every datagram does what it is meant to.

#![expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that panics has found something"
)]

mod bare;
mod sessions;
mod strangers;

use crate::common::measured::{count, count_after};

#[test]
#[ignore = "tools/work.sh counts its instructions"]
fn every_kind_of_datagram() {
    bare::all();
    sessions::all();
    strangers::all();
}
