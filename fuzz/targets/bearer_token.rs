//! Signed tokens of identity providers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_connector::admin::fuzzing::bearer_token(data));
