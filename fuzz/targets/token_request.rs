//! What clients ask `/oauth/token` with.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_connector::admin::fuzzing::token_request(data));
