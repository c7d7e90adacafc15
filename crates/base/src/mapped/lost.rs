//! Handling of lost pages of mapped files: another process truncated the file, or the disk failed.
//!
//! The system ends a process that reads such a page with `SIGBUS`. The process cannot continue without the bytes, but
//! it can print the reason.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::Mutex;

/// Message and exit status.
static MESSAGE: OnceLock<&'static str> = OnceLock::new();
static STATUS: AtomicI32 = AtomicI32::new(1);

/// Installs a handler for reads of lost pages. The process then writes `message`, which ends with a line break, to
/// standard error and exits with `status`. No cleanup runs, as after a kill. Only the first call has an effect.
pub fn say_where_pages_are_lost(message: &'static str, status: i32) {
    static ONCE: Mutex<()> = Mutex::new(());
    let _one = ONCE.lock();
    if MESSAGE.set(message).is_err() {
        return;
    }
    STATUS.store(status, Ordering::Relaxed);
    #[cfg(unix)]
    // SAFETY: the structure is zeroed, which is an empty mask and no flags, before its handler is set; the handler
    // calls only functions that are allowed in a handler, and does not return.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = end as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// Turns a write beyond the file-size limit of the process (`SIGXFSZ`) into an error, instead of the end of the
/// process.
pub fn fail_beyond_file_limits() {
    #[cfg(unix)]
    // SAFETY: the signal is ignored: no handler runs.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

#[cfg(unix)]
extern "C" fn end(_signal: libc::c_int) {
    let message = MESSAGE.get().copied().unwrap_or_default();
    // SAFETY: both calls may be made in a handler; the message lives as long as the process. Reading the lock never
    // waits: it was written once, before the handler was set.
    unsafe {
        libc::write(2, message.as_ptr().cast(), message.len());
        libc::_exit(STATUS.load(Ordering::Relaxed))
    }
}
