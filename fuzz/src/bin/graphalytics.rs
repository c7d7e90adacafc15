//! The properties of a Graphalytics graph.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_properties(input));
