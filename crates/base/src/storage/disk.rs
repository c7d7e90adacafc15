//! The real disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Storage, StorageFile};
use crate::mapped::FileBytes;
use crate::process::Birthplace;
use crate::{Error, Result};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskStorage;

impl Storage for DiskStorage {
    fn create_dir(&self, path: &Path) -> Result<()> {
        std::fs::create_dir(path).map_err(|e| Error::io("create directory", path, e))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|e| Error::io("create", path, e))?;
        Ok(Box::new(OpenFile::new(Arc::new(file), path)))
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new().write(true).open(path).map_err(|e| Error::io("open for writing", path, e))?;
        Ok(Box::new(OpenFile::new(Arc::new(file), path)))
    }

    fn read(&self, path: &Path) -> Result<FileBytes> {
        let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
        FileBytes::map(&file).map_err(|e| Error::io("map", path, e))
    }

    fn read_copy(&self, path: &Path) -> Result<Vec<u8>> {
        std::fs::read(path).map_err(|e| Error::io("read", path, e))
    }

    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> Result<()> {
        let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
        file.read_exact_at(into, offset).map_err(|e| Error::io("read", path, e))
    }

    fn file_len(&self, path: &Path) -> Result<u64> {
        std::fs::metadata(path).map(|metadata| metadata.len()).map_err(|e| Error::io("look at", path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to).map_err(|e| Error::io("rename", from, e))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|e| Error::io("remove", path, e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir(path).map_err(|e| Error::io("remove directory", path, e))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        // The parent of a bare name is the empty path, which stands for the current directory.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        File::open(path).and_then(|dir| dir.sync_all()).map_err(|e| Error::io("sync directory", path, e))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let list = || -> std::io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(path)? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort_unstable();
            Ok(names)
        };
        list().map_err(|e| Error::io("list", path, e))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match path.try_exists() {
            // Nothing is below a file.
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => Ok(false),
            exists => exists.map_err(|e| Error::io("look for", path, e)),
        }
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(|e| Error::io("open for locking", path, e))?;
        match file.try_lock() {
            Ok(()) => {
                // For those who are refused: the lock itself is the kernel's, not this number.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                Ok(Box::new(Held { file, birthplace: Birthplace::here() }))
            }
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(path).ok().and_then(|number| number.trim().parse().ok());
                Err(Error::Locked { path: path.to_owned(), holder })
            }
            Err(TryLockError::Error(e)) => Err(Error::io("lock", path, e)),
        }
    }
}

/// A lock that this process holds. A forked child has the file open too, so closing it would not free the lock.
struct Held {
    file: File,
    birthplace: Birthplace,
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.birthplace.is_elsewhere() {
            // Closing the file frees it too, where no child has it.
            let _ = self.file.unlock();
        }
    }
}

/// A file of the system that is written.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: Arc<File>,
    path: PathBuf,
}

impl OpenFile {
    /// `path` is what errors call it.
    pub fn new(file: Arc<File>, path: &Path) -> Self {
        Self { file, path: path.to_owned() }
    }
}

impl StorageFile for OpenFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| Error::io("write", &self.path, e))
    }

    fn hasten(&self, offset: u64, len: u64) {
        #[cfg(target_os = "linux")]
        // SAFETY: the descriptor is that of an open file, and the call touches no memory of ours.
        unsafe {
            let (offset, len) = (offset as libc::off64_t, len as libc::off64_t);
            libc::sync_file_range(self.file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, len);
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io("sync", &self.path, e))
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| Error::io("set the length of", &self.path, e))
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| Error::io("look at", &self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_refused_and_ends_with_its_holder() {
        let dir = std::env::temp_dir().join(format!("anden-disk-{}", std::process::id()));
        let disk = DiskStorage;
        disk.create_dir(&dir).unwrap();
        let lock_path = dir.join("LOCK");
        let held = disk.lock(&lock_path).unwrap();
        let refused = disk.lock(&lock_path).err().unwrap();
        assert!(matches!(refused, Error::Locked { holder: Some(number), .. } if number == std::process::id()));
        assert!(refused.to_string().ends_with("locked by another handle of this process"), "{refused}");
        drop(held);
        drop(disk.lock(&lock_path).unwrap());

        let path = dir.join("file");
        let file = disk.create(&path).unwrap();
        file.write_at(4, b"tail").unwrap();
        file.write_at(0, b"head").unwrap();
        file.sync().unwrap();
        file.sync_data().unwrap();
        assert!(disk.create(&path).is_err());
        assert_eq!(disk.read(&path).unwrap().as_slice(), b"headtail");
        let mut part = [0; 4];
        assert_eq!(disk.file_len(&path).unwrap(), 8);
        disk.read_at(&path, 2, &mut part).unwrap();
        assert_eq!(&part, b"adta");
        assert_eq!(disk.read_at(&path, 6, &mut part).unwrap_err().io_kind(), Some(std::io::ErrorKind::UnexpectedEof));
        disk.rename(&path, &dir.join("other")).unwrap();
        disk.sync_dir(&dir).unwrap();
        assert_eq!(disk.list(&dir).unwrap(), ["LOCK", "other"]);
        disk.remove_file(&dir.join("other")).unwrap();
        disk.remove_file(&lock_path).unwrap();
        disk.remove_dir(&dir).unwrap();
        assert!(!disk.exists(&dir).unwrap());
    }
}
