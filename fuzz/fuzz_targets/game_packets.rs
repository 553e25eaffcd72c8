#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| tower_defence::wire::hostile::any_packet(packet));
