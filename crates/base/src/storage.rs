//! File access behind a small trait, so that tests can replace the disk.
//!
//! # Assumptions about a disk
//! - A write is durable only after a sync of its file. A creation, rename or removal is durable only after a sync of
//!   its directory.
//! - Unsynced blocks reach the disk in any order: whole, torn at 512 bytes, or not at all.
//! - A rename replaces its target atomically: after a crash, the name leads to the old or to the new file.
//! - A failed sync may have dropped the data, so it is never retried.

mod appended;
mod byte_lock;
mod byte_table;
mod called;
mod disk;
mod holder;
mod memory;

use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::Arc;

pub use crate::holder::LockHolder;
pub use appended::{AppendedFile, GRAIN_BYTES};
pub use byte_table::ByteLockTable;
pub use called::CalledStorage;
pub use disk::DiskStorage;
pub use memory::MemoryStorage;

use crate::Result;
use crate::mapped::FileBytes;

/// All calls of a database to the file system. Paths are passed on unchanged.
///
/// A database calls [`open_dir`](Self::open_dir) once, and makes all other calls on its result. The default methods
/// on files open the directory of the file for one call, so what `open_dir` returns must implement them itself.
///
/// # Errors
/// Every method: [`Error::Io`](crate::Error::Io) with the system's reason. Methods on files return
/// [`Error::NotRegular`](crate::Error::NotRegular) for a symbolic link, directory, FIFO, socket or device. Then they
/// follow no link, do not block, and change no file.
pub trait Storage: Debug + Send + Sync {
    /// Creates a directory. Its parent must exist, and it must not exist itself.
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// Opens a directory. Calls on the result reach only this directory and the files directly in it, by paths that
    /// begin with `path`. They still do if the directory is renamed or another directory takes its path.
    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>>;
    /// Creates a file for writing. It must not exist.
    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        self.open_dir(parent(path))?.create(path)
    }
    /// Opens an existing file for writing.
    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        self.open_dir(parent(path))?.open_write(path)
    }
    /// Opens a file for reading, even one that grows. It stays readable when its name is removed.
    fn open_read(&self, path: &Path) -> Result<Box<dyn HeldFile>> {
        self.open_dir(parent(path))?.open_read(path)
    }
    /// Bytes of a file that is never written again.
    fn read(&self, path: &Path) -> Result<FileBytes> {
        self.open_dir(parent(path))?.read(path)
    }
    /// Copies the bytes of a file that may be growing.
    fn read_copy(&self, path: &Path) -> Result<Vec<u8>> {
        self.open_read(path)?.read_all()
    }
    /// As [`HeldFile::read_at`].
    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> Result<()> {
        self.open_read(path)?.read_at(offset, into)
    }
    /// Length of a file in bytes.
    fn file_len(&self, path: &Path) -> Result<u64> {
        self.open_read(path)?.len()
    }
    /// Renames a file within its directory. Replaces the file that had the new name.
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.open_dir(parent(from))?.rename(from, to)
    }
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.open_dir(parent(path))?.remove_file(path)
    }
    /// Removes an empty directory. An opened directory removes itself only if its path still leads to it.
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.open_dir(path)?.remove_dir(path)
    }
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.open_dir(path)?.sync_dir(path)
    }
    /// Names in a directory, sorted.
    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.open_dir(path)?.list(path)
    }
    /// Whether the name exists.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Stamp of the file with this name now, or `None` if the name does not exist.
    ///
    /// Cost: one system call, for an opened directory.
    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        self.open_dir(parent(path))?.stamp(path)
    }
    /// Identity of the file with this name. An opened directory does not ask for the times of the file if the system
    /// allows that: the kernel would record the time of the next write exactly, which slows the next sync.
    fn identity_at(&self, path: &Path) -> Result<Option<FileIdentity>> {
        Ok(self.stamp(path)?.map(|stamp| stamp.identity()))
    }
    /// Whether the path that opened this directory now leads to another directory. A path that leads nowhere does not
    /// count: its directory was renamed or removed.
    fn is_replaced(&self) -> Result<bool> {
        Ok(false)
    }
    /// Takes the exclusive lock on `path`, without waiting, and creates the file. Also locks its directory if the
    /// file system can, so that removing the file does not admit a second holder.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) if another holder has the lock.
    fn lock(&self, path: &Path) -> Result<StorageLock> {
        self.open_dir(parent(path))?.lock(path)
    }
    /// Locks one byte of `path` beside others that share it, without waiting, and creates the file if it does not exist.
    /// `None`: another holder has [taken](Self::take_bytes) it. The byte need not exist.
    ///
    /// # Errors
    /// Also [`Error::Io`](crate::Error::Io) of the kind `Unsupported`, if the system has no such locks.
    fn share_byte(&self, path: &Path, offset: u64) -> Result<Option<ByteLocks>> {
        self.open_dir(parent(path))?.share_byte(path, offset)
    }
    /// Locks bytes of `path` alone, without waiting, and creates the file if it does not exist. Returns the locks, and
    /// the bytes that other holders have locked. A system without such locks has no other holder.
    fn take_bytes(&self, path: &Path, offsets: &[u64]) -> Result<(ByteLocks, Vec<u64>)> {
        self.open_dir(parent(path))?.take_bytes(path, offsets)
    }
    /// The processes that have locked these bytes of `path`, by byte. A holder that the system does not tell has no
    /// number. Takes no lock.
    fn byte_holders(&self, path: &Path, offsets: &[u64]) -> Result<Vec<(u64, LockHolder)>> {
        self.open_dir(parent(path))?.byte_holders(path, offsets)
    }
    /// The process that holds the [`lock`](Self::lock) on `path`; `None` if no process holds it, or if the file is no
    /// file that this process may read. Takes no lock, and so keeps no process from taking it.
    fn lock_holder(&self, path: &Path) -> Result<Option<LockHolder>> {
        self.open_dir(parent(path))?.lock_holder(path)
    }
}

/// Directory of the file `path`.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Distinguishes a file from all other files that exist at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file with this number on this device. A storage without devices chooses both.
    pub fn new(device: u64, inode: u64) -> Self {
        Self { device, inode }
    }
}

/// Identity of a file, and a mark that changes with its bytes: length and times, as precise as the system keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    identity: FileIdentity,
    mark: [u64; 5],
}

impl FileStamp {
    /// Stamp of a file. `mark` must change with the bytes of the file.
    pub fn new(identity: FileIdentity, mark: [u64; 5]) -> Self {
        Self { identity, mark }
    }

    /// Identity of the file.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }
}

/// A lock, held until this value is dropped or the process ends in any way.
pub struct StorageLock {
    identity: FileIdentity,
    _held: Box<dyn Send + Sync>,
}

impl StorageLock {
    /// The lock on a file. Dropping `held` releases it.
    pub fn new(identity: FileIdentity, held: Box<dyn Send + Sync>) -> Self {
        Self { identity, _held: held }
    }

    /// Identity of the locked file.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }
}

impl Debug for StorageLock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StorageLock").field(&self.identity).finish()
    }
}

/// Locks on bytes of a file, held until this value is dropped or the process ends in any way.
pub struct ByteLocks {
    _held: Box<dyn Send + Sync>,
}

impl ByteLocks {
    /// Locks that dropping `held` releases.
    pub fn new(held: Box<dyn Send + Sync>) -> Self {
        Self { _held: held }
    }
}

impl Debug for ByteLocks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ByteLocks")
    }
}

/// A file held open for reading.
pub trait HeldFile: Debug + Send + Sync {
    /// Length in bytes.
    fn len(&self) -> Result<u64>;
    /// Whether the length is 0.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Copies the bytes from `offset` on to `into`, outside any map.
    ///
    /// An end of file before `into` is full is an error.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()>;
    /// Copies all bytes.
    fn read_all(&self) -> Result<Vec<u8>>;
}

/// A file open for writing. Several threads may write at different offsets.
pub trait StorageFile: Debug + Send + Sync {
    /// Writes all of `bytes` at `offset`, and grows the file if needed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Hints that the written bytes at `offset` will not change. The disk may take them now, so that a later sync is
    /// shorter.
    fn hasten(&self, _offset: u64, _len: u64) {}
    /// Makes all earlier writes durable.
    fn sync(&self) -> Result<()>;
    /// As [`sync`](Self::sync), without metadata that reading does not need, such as the time of the last change.
    /// Cheaper for the disk if bytes were only replaced.
    fn sync_data(&self) -> Result<()> {
        self.sync()
    }
    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Length in bytes.
    fn len(&self) -> Result<u64>;
    /// Whether the length is 0.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Identity of the file.
    fn identity(&self) -> Result<FileIdentity>;
}
