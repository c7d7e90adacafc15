//! The command `anden` of the package.

use std::ffi::OsString;
use std::io::Write;

use pyo3::prelude::*;

/// Counts allocations, so that results report the peak memory of a kernel.
#[global_allocator]
static ALLOCATOR: anden_base::memory::CountingAllocator = anden_base::memory::CountingAllocator;

/// Run the command ``anden`` with these arguments, the name of the program first. Returns the exit status.
///
/// The command takes over the signals of the process, so the process must end afterwards.
#[pyfunction]
pub fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        let status = anden_cli::main_with(arguments);
        // The exit of Python does not write the rest of this buffer.
        let _ = std::io::stdout().flush();
        status
    })
}
