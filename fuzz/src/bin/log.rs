//! The log of a database, with checksums that always fit.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_log(input));
