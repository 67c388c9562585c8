//! Interactions that are posted in Discord's name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_platforms::discord::fuzzing::interaction(data));
