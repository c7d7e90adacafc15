//! The serialized graphs of the GAP benchmark suite.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_serialized(input));
