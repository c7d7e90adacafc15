//! The files of a database, with checksums that are always valid.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_database(input));
