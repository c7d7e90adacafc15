//! Compressed text of any format that is detected by content.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_text("any", input));
