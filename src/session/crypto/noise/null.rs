//! A cipher that hides nothing, so that a fuzzer gets past the tag. It exists under `cfg(fuzzing)` only, which `cargo fuzz` sets, and
//! there only for a process that asks for it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_ON: AtomicBool = AtomicBool::new(false);

/// From now on no cipher of sessions encrypts in this process, and each tag is zeros.
pub fn replace_ciphers() {
    IS_ON.store(true, Relaxed);
}

pub(super) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}
