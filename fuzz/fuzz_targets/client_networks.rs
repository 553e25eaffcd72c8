#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| whitewater_fuzz::networks::client_networks(script));
