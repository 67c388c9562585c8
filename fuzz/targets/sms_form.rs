//! Posts of Twilio.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_platforms::sms::fuzzing::form(data));
