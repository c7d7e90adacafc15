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

use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::Arc;

pub use called::CalledStorage;
pub use disk::DiskStorage;
pub use evict::evict;
pub use fault::{FaultPlan, FaultStorage};
pub use memory::MemoryStorage;

use crate::Result;
use crate::mapped::FileBytes;

/// The calls that a database makes to the outside. Paths are passed on as they are.
///
/// A database calls [`open_dir`](Self::open_dir) once, and makes all other calls through what that returns. The methods
/// on files that have a default open the directory of the file for one call.
///
/// # Errors
/// Every method: [`Error::Io`](crate::Error::Io) with the system's reason. A method on files that meets a symbolic link,
/// a directory, a FIFO, a socket or a device: [`Error::NotRegular`](crate::Error::NotRegular). It follows no link, waits
/// for nothing, and changes nothing then.
pub trait Storage: Debug + Send + Sync {
    /// Creates a directory; its parent must exist and it must not.
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// Opens a directory. Calls on the result reach this directory and the files directly in it, by paths that begin
    /// with `path`, and nothing else. They go on to do so when the directory is renamed or another takes its place.
    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>>;
    /// Creates a file for writing; it must not exist.
    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        self.open_dir(parent(path))?.create(path)
    }
    /// Opens an existing file for writing.
    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        self.open_dir(parent(path))?.open_write(path)
    }
    /// Opens a file for reading, which may be growing. It stays readable when its name goes.
    fn open_read(&self, path: &Path) -> Result<Box<dyn HeldFile>> {
        self.open_dir(parent(path))?.open_read(path)
    }
    /// The bytes of a file that nobody writes any more.
    fn read(&self, path: &Path) -> Result<FileBytes> {
        self.open_dir(parent(path))?.read(path)
    }
    /// The bytes of a file that may be growing, copied.
    fn read_copy(&self, path: &Path) -> Result<Vec<u8>> {
        self.open_read(path)?.read_all()
    }
    /// As [`HeldFile::read_at`].
    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> Result<()> {
        self.open_read(path)?.read_at(offset, into)
    }
    /// The bytes in a file.
    fn file_len(&self, path: &Path) -> Result<u64> {
        self.open_read(path)?.len()
    }
    /// Gives a file another name in the same directory, replacing the file that had it.
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.open_dir(parent(from))?.rename(from, to)
    }
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.open_dir(parent(path))?.remove_file(path)
    }
    /// Removes an empty directory. A directory that was opened removes itself, where its path still leads to it.
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.open_dir(path)?.remove_dir(path)
    }
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.open_dir(path)?.sync_dir(path)
    }
    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.open_dir(path)?.list(path)
    }
    /// Whether something has this name.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// The file that has this name now; `None` where nothing has it.
    ///
    /// Cost: one call to the system, for a directory that was opened.
    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        self.open_dir(parent(path))?.stamp(path)
    }
    /// The same without times and length. Asking for these makes the next write of the file record its time exactly,
    /// which slows its next sync down.
    fn identity_at(&self, path: &Path) -> Result<Option<FileIdentity>> {
        Ok(self.stamp(path)?.map(|stamp| stamp.identity()))
    }
    /// Whether the path by which this directory was opened leads to another directory now. A path that leads nowhere is
    /// that of a directory that was renamed or removed.
    fn is_replaced(&self) -> Result<bool> {
        Ok(false)
    }
    /// Takes the exclusive lock on `path`, creating the file, without waiting, and on its directory where the file
    /// system can lock one: the removal of the file then lets no second holder in.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) where another holder has it.
    fn lock(&self, path: &Path) -> Result<StorageLock> {
        self.open_dir(parent(path))?.lock(path)
    }
}

/// The directory that holds the name of `path`.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Tells a file from every other file that exists at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

/// A file, and a mark that differs once its bytes changed: length and times, as precise as the system keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    identity: FileIdentity,
    mark: [u64; 5],
}

impl FileStamp {
    /// Which file it is, whatever its bytes.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }
}

/// A lock, held until this value is dropped or the process ends, however it ends.
pub struct StorageLock {
    identity: FileIdentity,
    _held: Box<dyn Send + Sync>,
}

impl StorageLock {
    /// The file that is locked.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }
}

impl Debug for StorageLock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StorageLock").field(&self.identity).finish()
    }
}

/// A file that is held open for reading.
pub trait HeldFile: Debug + Send + Sync {
    /// The bytes in the file.
    fn len(&self) -> Result<u64>;
    /// Whether the file holds nothing.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `into` with the bytes from `offset` on, copied: they are not part of a map.
    ///
    /// An end of file before `into` is full is an error.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()>;
    /// All bytes, copied.
    fn read_all(&self) -> Result<Vec<u8>>;
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
    /// Which file it is.
    fn identity(&self) -> Result<FileIdentity>;
}
