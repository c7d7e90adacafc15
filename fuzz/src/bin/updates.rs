//! Updates, one a line, compressed or not.
#![no_main]

use std::io::Cursor;

use graph::formats::Updates;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(mut updates) = Updates::of_bytes("updates".as_ref(), Cursor::new(input.to_vec())) else { return };
    while let Ok(Some(_)) = updates.next_update() {}
});
