//! Callbacks of WeCom.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_platforms::wecom::fuzzing::callback(data));
