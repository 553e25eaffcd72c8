//! Calls whose instructions `tools/work.sh` counts by callgrind, which finds these functions by their names.

#![allow(dead_code, reason = "each test binary uses its part")]

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
pub(crate) fn count(what: &str, mut act: impl FnMut()) {
    println!("counted {what}");
    begin();
    datagram(&mut act);
}

/// Counts the work of the call after it.
pub(crate) fn count_after(what: &str, mut act: impl FnMut()) {
    println!("counted {what}, and the update after it");
    begin();
    afterwards(&mut act);
}
