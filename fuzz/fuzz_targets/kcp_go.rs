#![no_main]

#[path = "../kcp_go.rs"]
mod kcp_go;

use libfuzzer_sys::fuzz_target;
use whitewater_fuzz::script;

fuzz_target!(|bytes: &[u8]| kcp_go::kcp_go(bytes));
