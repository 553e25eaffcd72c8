#![no_main]

mod counting;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| whitewater_fuzz::session::session_script_measured(data, counting::live));
