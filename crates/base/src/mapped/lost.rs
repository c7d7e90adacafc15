//! What happens where a part of a mapped file is gone: another process made the file shorter, or the disk failed.
//!
//! The system ends a process that reads there with `SIGBUS`. It cannot go on, for nobody knows what would have been
//! read; but it can say why it ends.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What is said, and the status that the process ends with.
static MESSAGE: OnceLock<&'static str> = OnceLock::new();
static STATUS: AtomicI32 = AtomicI32::new(1);

/// From now on, a process that reads a part of a mapped file that is gone writes `message`, which ends with a line break,
/// to standard error and ends with `status`. Nothing is cleaned up, as after a kill. The first call counts.
pub fn say_where_pages_are_lost(message: &'static str, status: i32) {
    static ONCE: Mutex<()> = Mutex::new(());
    let _one = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    if MESSAGE.set(message).is_err() {
        return;
    }
    STATUS.store(status, Ordering::Relaxed);
    #[cfg(unix)]
    // SAFETY: the structure is zeroed, which is an empty mask and no flags, before its handler is set; the handler
    // calls nothing that a handler may not call, and does not return.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = end as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// From now on, a write that would make a file larger than the process may make files fails, with the error that the
/// system has for it, in place of ending the process (`SIGXFSZ`).
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
    // SAFETY: both calls may be made in a handler; the message lives as long as the process. Reading the lock that was
    // written once, before the handler was set, waits for nobody.
    unsafe {
        libc::write(2, message.as_ptr().cast(), message.len());
        libc::_exit(STATUS.load(Ordering::Relaxed))
    }
}
