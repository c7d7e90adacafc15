//! Parquet: footer, pages and values.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_text("parquet", input));
