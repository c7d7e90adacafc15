//! The program `anden`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Counts allocations, so that `run` can report the peak memory of a kernel.
#[global_allocator]
static ALLOCATOR: anden_base::memory::CountingAllocator = anden_base::memory::CountingAllocator;

fn main() -> ExitCode {
    ExitCode::from(anden_cli::main_with(std::env::args_os()))
}
