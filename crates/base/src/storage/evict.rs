//! Files out of the system's cache, so that whoever reads them next waits for the disk.

use std::fs::File;
use std::path::Path;

use crate::{Error, Result};

/// Has the system forget what it holds of a file in memory; what a process has mapped and touched may stay.
///
/// What was written is synced before: the system keeps what is not on the disk yet.
///
/// # Errors
/// The file cannot be opened or synced, or the system knows no such request.
pub fn evict(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    file.sync_data().map_err(|error| Error::io("sync", path, error))?;
    forget(&file).map_err(|error| Error::io("evict", path, error))
}

#[cfg(target_os = "linux")]
fn forget(file: &File) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: a call on an open file that reads and writes no memory of ours; the length 0 stands for its end.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

#[cfg(not(target_os = "linux"))]
fn forget(_file: &File) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_as_it_is() {
        let path = std::env::temp_dir().join(format!("anden-evict-{}", std::process::id()));
        std::fs::write(&path, [7; 10_000]).unwrap();
        evict(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [7; 10_000]);
        std::fs::remove_file(&path).unwrap();
        assert!(evict(&path).is_err());
    }
}
