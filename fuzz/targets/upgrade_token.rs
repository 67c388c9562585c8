//! Tokens of an upgrade, read and signed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_contract::fuzzing::upgrade_token(data));
