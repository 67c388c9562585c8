//! Updates of Telegram.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_platforms::telegram::fuzzing::update(data));
