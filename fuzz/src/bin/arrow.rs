//! Arrow IPC: messages, buffers, tables and adjacency lists.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anden_fuzz::read_text("arrow", input));
