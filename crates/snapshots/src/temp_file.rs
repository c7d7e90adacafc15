//! Scratch files in the directory of a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::mapped::FileBytes;
use anden_base::storage::{FileIdentity, Storage};

use crate::{Result, names};

/// A scratch file, removed on drop. It is closed between calls: a process may have few files open, and data larger than
/// memory may need many scratch files.
#[derive(Debug)]
pub struct TempFile {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    identity: FileIdentity,
}

impl TempFile {
    /// Creates an empty file. If the program ends before the drop, the file stays until the database is next opened for
    /// writing.
    ///
    /// # Errors
    /// A scratch file with this name exists, or the disk failed.
    pub(crate) fn create(storage: &Arc<dyn Storage>, directory: &Path, name: &str) -> Result<Self> {
        let path = directory.join(names::scratch(name));
        let identity = storage.create(&path)?.identity()?;
        Ok(Self { storage: Arc::clone(storage), path, identity })
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// The disk failed.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.storage.open_write(&self.path)?.write_at(offset, bytes)?)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The written bytes. Do not write after this call.
    ///
    /// # Errors
    /// The disk failed.
    pub fn read(&self) -> Result<FileBytes> {
        Ok(self.storage.read(&self.path)?)
    }

    /// Fills `into` with the bytes from `offset` on.
    ///
    /// # Errors
    /// The file is shorter, or the disk failed.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        Ok(self.storage.read_at(&self.path, offset, into)?)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Another file with this name belongs to another writer. A file that stays is removed when the database is
        // published or opened.
        let stamp = self.storage.stamp(&self.path);
        if stamp.is_ok_and(|stamp| stamp.is_some_and(|stamp| stamp.identity() == self.identity)) {
            let _ = self.storage.remove_file(&self.path);
        }
    }
}
