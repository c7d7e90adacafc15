//! The events of the library on standard error, as `--verbose` asks.

use std::io;

use tracing_subscriber::filter::LevelFilter;

/// Shows events from now on, up to the level of `verbose`: the number of times that the option was given. Without the
/// option there is no subscriber, and an event costs one load of an atomic number.
pub fn show(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // A line that standard error does not take is lost: reporting that there would panic.
    let lines = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).log_internal_errors(false);
    // Colors would be in the way of a program that reads the lines.
    lines.with_ansi(false).init();
}
