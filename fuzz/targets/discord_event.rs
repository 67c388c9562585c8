//! Messages of Discord's gateway.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_platforms::discord::fuzzing::event(data));
