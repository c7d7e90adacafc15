//! Parquet: footer, pages and values.
#![no_main]

libfuzzer_sys::fuzz_target!(
    // libFuzzer ends the process in its panic hook, but the reader turns panics of the decoder into errors. A panic
    // that leaves the reader still ends the process. All panics are in the log.
    init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))),
    |input: &[u8]| anden_fuzz::read_text("parquet", input)
);
