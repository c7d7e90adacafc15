//! Compressed text of any format that content tells.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_text("any", input));
