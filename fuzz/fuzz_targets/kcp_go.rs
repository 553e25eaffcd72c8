#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| whitewater_fuzz::kcp_go::kcp_go(script));
