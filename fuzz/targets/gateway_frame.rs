//! Lines that a gateway sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_contract::fuzzing::gateway_frame(data));
