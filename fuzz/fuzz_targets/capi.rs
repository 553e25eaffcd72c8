//! The C library's own sources are part of this program, so that a sanitizer sees inside of them.
#![no_main]
#![expect(non_camel_case_types, reason = "names of C")]

extern crate whitewater as ww;

#[path = "../../capi/src/calls/mod.rs"]
mod calls;
#[path = "../../capi/src/error.rs"]
pub mod error;
#[path = "../../capi/src/guard.rs"]
mod guard;
#[path = "../../capi/src/ikcp/mod.rs"]
pub mod ikcp;
#[path = "../../capi/src/session/mod.rs"]
pub mod session;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    calls::calls(script, true);
});
