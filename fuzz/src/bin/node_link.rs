//! Node-link JSON: nodes and edges.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_text("json", input));
