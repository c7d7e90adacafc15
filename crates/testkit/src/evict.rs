//! Eviction of files from the system's cache, so that the next read waits for the disk.

use std::fs::File;
use std::path::Path;

use anden_base::{Error, Result};
use rustix::fs::{Advice, fadvise};

/// Drops the system's cached pages of a file. Pages that a process has mapped and touched may stay.
///
/// The file is synced first, because the system keeps pages that are not on the disk yet.
///
/// # Errors
/// The file cannot be opened or synced, or the system refuses the request.
pub fn evict(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    file.sync_data().map_err(|error| Error::io("sync", path, error))?;
    // No length stands for the end of the file.
    fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| Error::io("evict", path, error.into()))
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
