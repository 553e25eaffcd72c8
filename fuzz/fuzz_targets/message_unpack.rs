#![no_main]

mod counting;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| whitewater_fuzz::derive::message_unpack_measured(data, counting::live));
