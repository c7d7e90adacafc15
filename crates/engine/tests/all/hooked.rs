//! A test disk that calls a hook before each change but those of the mark, and after a file was read as a whole.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anden_base::Result;
use anden_base::mapped::FileBytes;
use anden_base::storage::{
    ByteLocks, FileIdentity, FileStamp, HeldFile, LockHolder, Storage, StorageFile, StorageLock,
};
use anden_testkit::FaultStorage;

/// A hook, called with the path that is about to change.
pub type Hook = Box<dyn FnMut(&Path) + Send>;

/// A disk with hooks. Clones share both.
#[derive(Clone, Default)]
pub struct HookedStorage {
    pub disk: FaultStorage,
    hook: Arc<Mutex<Option<Hook>>>,
    read_hook: Arc<Mutex<Option<Hook>>>,
    map_hook: Arc<Mutex<Option<Hook>>>,
}

impl std::fmt::Debug for HookedStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.disk.fmt(f)
    }
}

impl HookedStorage {
    /// Sets the hook for changes.
    pub fn set_hook(&self, hook: impl FnMut(&Path) + Send + 'static) {
        *self.lock() = Some(Box::new(hook));
    }

    /// Sets a hook for the next read of a whole file, called before the reader gets the bytes.
    pub fn set_read_hook(&self, hook: impl FnMut(&Path) + Send + 'static) {
        *self.read_hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    /// Sets the hook that is called before a file is mapped.
    pub fn set_map_hook(&self, hook: impl FnMut(&Path) + Send + 'static) {
        *self.map_hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    /// Removes the hook for changes.
    pub fn clear_hook(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Hook>> {
        self.hook.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the hook for changes. Changes by the hook call no hook.
    fn call(&self, path: &Path) {
        // The log thread writes the mark at any time, and a hook expects the calls of one piece of work.
        if path.ends_with("LOG") {
            return;
        }
        let hook = self.lock().take();
        if let Some(mut hook) = hook {
            hook(path);
            self.lock().get_or_insert(hook);
        }
    }

    fn file(&self, path: &Path, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        Box::new(HookedFile { storage: self.clone(), path: path.to_owned(), file })
    }
}

impl Storage for HookedStorage {
    fn create_dir(&self, path: &Path) -> Result<()> {
        self.call(path);
        self.disk.create_dir(path)
    }

    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>> {
        self.disk.open_dir(path)?;
        Ok(Arc::new(self.clone()))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        self.call(path);
        Ok(self.file(path, self.disk.create(path)?))
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        Ok(self.file(path, self.disk.open_write(path)?))
    }

    fn open_read(&self, path: &Path) -> Result<Box<dyn HeldFile>> {
        self.disk.open_read(path)
    }

    fn read(&self, path: &Path) -> Result<FileBytes> {
        let hook = self.map_hook.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut hook) = hook {
            // Maps by the hook call no hook.
            hook(path);
            *self.map_hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(hook);
        }
        self.disk.read(path)
    }

    fn read_copy(&self, path: &Path) -> Result<Vec<u8>> {
        let bytes = self.disk.read_copy(path);
        let hook = self.read_hook.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut hook) = hook {
            hook(path);
        }
        bytes
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.call(from);
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.call(path);
        self.disk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.call(path);
        self.disk.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.call(path);
        self.disk.sync_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.disk.list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.disk.exists(path)
    }

    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        self.disk.stamp(path)
    }

    fn lock(&self, path: &Path) -> Result<StorageLock> {
        self.disk.lock(path)
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<LockHolder>> {
        self.disk.lock_holder(path)
    }

    fn share_byte(&self, path: &Path, offset: u64) -> Result<Option<ByteLocks>> {
        self.disk.share_byte(path, offset)
    }

    fn take_bytes(&self, path: &Path, offsets: &[u64]) -> Result<(ByteLocks, Vec<u64>)> {
        self.disk.take_bytes(path, offsets)
    }

    fn byte_holders(&self, path: &Path, offsets: &[u64]) -> Result<Vec<(u64, LockHolder)>> {
        self.disk.byte_holders(path, offsets)
    }
}

#[derive(Debug)]
struct HookedFile {
    storage: HookedStorage,
    path: PathBuf,
    file: Box<dyn StorageFile>,
}

impl StorageFile for HookedFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.storage.call(&self.path);
        self.file.write_at(offset, bytes)
    }

    fn sync(&self) -> Result<()> {
        self.storage.call(&self.path);
        self.file.sync()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.storage.call(&self.path);
        self.file.set_len(len)
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn identity(&self) -> Result<FileIdentity> {
        self.file.identity()
    }
}
