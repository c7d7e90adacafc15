//! BVGraph: properties and lists.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_bvgraph(input));
