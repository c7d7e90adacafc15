//! Matrix Market: banner, size and entries.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_text("mtx", input));
