//! Scratch files in the directory of a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::mapped::FileBytes;
use base::storage::{FileIdentity, Storage};

use crate::{Result, names};

/// A scratch file; dropped, it is removed. Between calls it is closed: a system lets a program have few files open, and
/// what does not fit in memory may take many.
#[derive(Debug)]
pub struct TempFile {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    identity: FileIdentity,
}

impl TempFile {
    /// An empty one. Where the program ends before it is dropped, it stays until the database is opened to be written.
    ///
    /// # Errors
    /// A scratch file has this name, or the disk failed.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was written. Write no more once this is called.
    ///
    /// # Errors
    /// The disk failed.
    pub fn read(&self) -> Result<FileBytes> {
        Ok(self.storage.read(&self.path)?)
    }

    /// Fills `into` with what was written from `offset` on.
    ///
    /// # Errors
    /// That is less, or the disk failed.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        Ok(self.storage.read_at(&self.path, offset, into)?)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Another file of this name is another writer's. A file that stays is removed when the database is published, or
        // when it is opened.
        let stamp = self.storage.stamp(&self.path);
        if stamp.is_ok_and(|stamp| stamp.is_some_and(|stamp| stamp.identity() == self.identity)) {
            let _ = self.storage.remove_file(&self.path);
        }
    }
}
