//! GML: nested lists of keys and values.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_text("gml", input));
