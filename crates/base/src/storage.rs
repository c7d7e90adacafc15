//! The disk behind a small trait, so that tests can own it.
//!
//! # What is assumed of a disk
//! - A write is not durable until its file is synced; a creation, rename or removal is not durable
//!   until its directory is synced.
//! - Unsynced blocks reach the disk in any order, whole or torn at 512 bytes, or not at all.
//! - A rename replaces its target atomically: after a crash the name leads to the old or to the new
//!   file.
//! - A sync that failed may have dropped the data: it is never retried.

mod called;
mod disk;
mod evict;
mod fault;
mod memory;

use std::fmt::Debug;
use std::path::Path;

pub use called::CalledStorage;
pub use disk::DiskStorage;
pub use evict::evict;
pub use fault::{FaultPlan, FaultStorage};
pub use memory::MemoryStorage;

use crate::Result;
use crate::mapped::FileBytes;

/// The calls that a database makes to the outside. Paths are passed on as they are.
///
/// # Errors
/// Every method: [`Error::Io`](crate::Error::Io) with the system's reason.
pub trait Storage: Debug + Send + Sync {
    /// Creates a directory; its parent must exist and it must not.
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// Creates a file for writing; it must not exist.
    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>>;
    /// Opens an existing file for writing.
    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>>;
    /// The bytes of a file that nobody writes any more.
    fn read(&self, path: &Path) -> Result<FileBytes>;
    /// The bytes of a file that may be growing, copied.
    fn read_copy(&self, path: &Path) -> Result<Vec<u8>>;
    /// Fills `into` with the bytes of a file from `offset` on, copied: they are not part of a map.
    ///
    /// An end of file before `into` is full is an error.
    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> Result<()> {
        let bytes = self.read_copy(path)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match bytes.get(start..).and_then(|rest| rest.get(..into.len())) {
            Some(found) => into.copy_from_slice(found),
            None => return Err(crate::Error::io("read", path, std::io::ErrorKind::UnexpectedEof.into())),
        }
        Ok(())
    }
    /// The bytes in a file.
    fn file_len(&self, path: &Path) -> Result<u64> {
        Ok(self.read_copy(path)?.len() as u64)
    }
    /// Gives a file another name in the same directory, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> Result<Vec<String>>;
    /// Whether something has this name.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Takes the exclusive lock on `path`, creating the file, without waiting. The lock ends when
    /// the returned value is dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) where another holder has it.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
}

/// A file being written. Writes at different places may come from several threads.
pub trait StorageFile: Debug + Send + Sync {
    /// Writes all of `bytes` at `offset`, growing the file where needed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Hints that `len` bytes from `offset` on, which are written, will not change: the disk may take
    /// them now, so that a later sync waits for less.
    fn hasten(&self, _offset: u64, _len: u64) {}
    /// Makes everything written so far durable.
    fn sync(&self) -> Result<()>;
    /// The same, without what nobody needs to read it, such as the time of the last change: where bytes were only
    /// replaced, that is less work for the disk.
    fn sync_data(&self) -> Result<()> {
        self.sync()
    }
    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> Result<()>;
    /// The bytes in the file.
    fn len(&self) -> Result<u64>;
    /// Whether the file holds nothing.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}
