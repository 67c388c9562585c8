//! Lines that a connector sends, as a gateway reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| angelia_gateway::fuzzing::connector_frame(data));
