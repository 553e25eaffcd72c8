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

/// Marks the start of a call.
#[inline(never)]
fn begin() {
    std::hint::black_box(());
}

/// The calls whose instructions are counted.
#[inline(never)]
fn datagram(act: &mut dyn FnMut()) {
    act();
}

/// The same, for what one makes due.
#[inline(never)]
fn afterwards(act: &mut dyn FnMut()) {
    act();
}

/// Counts the work of a datagram of this kind. Where several are counted, the worst is of interest.
fn count(what: &str, mut act: impl FnMut()) {
    println!("counted {what}");
    begin();
    datagram(&mut act);
}

/// Counts the work of the call after it.
fn count_after(what: &str, mut act: impl FnMut()) {
    println!("counted {what}, and the update after it");
    begin();
    afterwards(&mut act);
}

#[test]
#[ignore = "tools/work.sh counts its instructions"]
fn every_kind_of_datagram() {
    bare::all();
    sessions::all();
}
