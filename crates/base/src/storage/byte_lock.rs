//! Locks on single bytes of files.
//!
//! These are locks of open file descriptions (fcntl(2), `F_OFD_SETLK`). Unlike those of `flock`, a process can ask for
//! them without taking one, so that it never stands in the way of a process that wants the lock. Unlike other record
//! locks, they stay when the process closes another descriptor of the file. The kernel does not say which process holds
//! one. Bytes beyond the end of a file can be locked too.
//!
//! Systems without such locks answer with an error of the kind `Unsupported`.

use std::fs::File;
use std::io;

/// How a byte is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteLock {
    /// Beside others that share it. The file must be open for reading.
    Shared,
    /// Alone. The file must be open for writing.
    Exclusive,
}

/// Locks a byte without waiting. Returns false if another holder is in the way.
pub(super) fn try_lock(file: &File, offset: u64, lock: ByteLock) -> io::Result<bool> {
    match system::set(file, offset, Some(lock)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied) => Ok(false),
        set => set.map(|()| true),
    }
}

/// Unlocks a byte.
pub(super) fn unlock(file: &File, offset: u64) -> io::Result<()> {
    system::set(file, offset, None)
}

/// Whether another holder has locked a byte in any way.
pub(super) fn is_locked(file: &File, offset: u64) -> io::Result<bool> {
    system::is_locked(file, offset)
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    use super::ByteLock;

    fn request(offset: u64, kind: libc::c_int) -> io::Result<libc::flock> {
        let start = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        let (kind, whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
        // The kernel wants 0 as the process.
        Ok(libc::flock { l_type: kind, l_whence: whence, l_start: start, l_len: 1, l_pid: 0 })
    }

    pub(super) fn set(file: &File, offset: u64, lock: Option<ByteLock>) -> io::Result<()> {
        let request = request(
            offset,
            match lock {
                None => libc::F_UNLCK,
                Some(ByteLock::Shared) => libc::F_RDLCK,
                Some(ByteLock::Exclusive) => libc::F_WRLCK,
            },
        )?;
        // SAFETY: the descriptor is that of an open file, and the call only reads `request`, which outlives it.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    pub(super) fn is_locked(file: &File, offset: u64) -> io::Result<bool> {
        let mut request = request(offset, libc::F_WRLCK)?;
        // SAFETY: the descriptor is that of an open file, and the call writes only to `request`, which outlives it.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(request.l_type != libc::F_UNLCK as libc::c_short),
        }
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod system {
    use std::fs::File;
    use std::io;

    use super::ByteLock;

    pub(super) fn set(_: &File, _: u64, _: Option<ByteLock>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_locked(_: &File, _: u64) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_locked_one_by_one() {
        let folder = std::env::temp_dir().join(format!("anden-bytes-{}", std::process::id()));
        std::fs::write(&folder, "").unwrap();
        let open = || File::options().read(true).write(true).open(&folder).unwrap();
        let (first, second) = (open(), open());
        assert!(try_lock(&first, 7, ByteLock::Shared).unwrap() && try_lock(&second, 7, ByteLock::Shared).unwrap());
        assert!(!try_lock(&first, 7, ByteLock::Exclusive).unwrap(), "the other one shares it");
        assert!(try_lock(&first, 8, ByteLock::Exclusive).unwrap());
        assert!(is_locked(&second, 8).unwrap() && !is_locked(&first, 8).unwrap(), "own locks do not count");
        drop(second);
        assert!(!is_locked(&first, 7).unwrap(), "closing ends a lock");
        let reader = File::open(&folder).unwrap();
        assert!(is_locked(&reader, 7).unwrap() && try_lock(&reader, 7, ByteLock::Shared).unwrap());
        unlock(&first, 7).unwrap();
        drop(reader);
        let third = open();
        assert!(!is_locked(&third, 7).unwrap() && is_locked(&third, 8).unwrap());
        std::fs::remove_file(&folder).unwrap();
    }
}
