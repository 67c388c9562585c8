//! A whole `angelia.toml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia::config::fuzzing::config(data));
