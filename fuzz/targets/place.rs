//! Places as operators write them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_platforms::fuzzing::place(data));
