//! Files in memory only.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::DiskFile;
use super::{ByteLockTable, ByteLocks, FileStamp, HeldFile, LockHolder, Storage, StorageFile, StorageLock};
use crate::mapped::{FileBytes, memory_file};
use crate::{Error, Result};

/// A private file system in memory. Clones share it, and it ends with the last clone.
///
/// Maps share the memory of their file, without a copy, and on huge pages if the system grants them. The memory of a
/// removed file is freed with its last map. Files are never durable, and a sync has no effect.
///
/// Each file takes a descriptor. Systems other than Linux lack such files, so creating one fails there.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    state: Arc<Mutex<MemoryStorageState>>,
}

#[derive(Debug, Default)]
struct MemoryStorageState {
    names: BTreeMap<PathBuf, MemoryEntry>,
    locks: Vec<PathBuf>,
    bytes: ByteLockTable,
}

#[derive(Debug)]
enum MemoryEntry {
    Dir,
    File(Arc<File>),
}

impl MemoryStorage {
    /// File with this name.
    fn file(&self, path: &Path) -> io::Result<Arc<File>> {
        self.state.lock().file(path).map(Arc::clone)
    }
}

impl MemoryStorageState {
    fn file(&self, path: &Path) -> io::Result<&Arc<File>> {
        match self.names.get(path) {
            Some(MemoryEntry::File(file)) => Ok(file),
            Some(MemoryEntry::Dir) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Requires a directory, or the root, which has the empty name.
    fn require_dir(&self, path: &Path) -> io::Result<()> {
        match self.names.get(path) {
            Some(MemoryEntry::Dir) => Ok(()),
            Some(MemoryEntry::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None if path.as_os_str().is_empty() => Ok(()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Adds an unused name to an existing directory.
    fn add(&mut self, path: &Path, entry: MemoryEntry) -> io::Result<()> {
        self.require_dir(path.parent().unwrap_or(Path::new("")))?;
        if self.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.names.insert(path.to_owned(), entry);
        Ok(())
    }

    fn children<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.names.keys().map(PathBuf::as_path).filter(move |name| name.parent() == Some(path))
    }
}

impl Storage for MemoryStorage {
    fn create_dir(&self, path: &Path) -> Result<()> {
        self.state.lock().add(path, MemoryEntry::Dir).map_err(|e| Error::io("create directory", path, e))
    }

    /// Only this program reaches the files, so a directory needs no handle.
    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Storage>> {
        self.state.lock().require_dir(path).map_err(|e| Error::io("open directory", path, e))?;
        Ok(Arc::new(self.clone()))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let create = || -> io::Result<Arc<File>> {
            let file = Arc::new(memory_file()?);
            self.state.lock().add(path, MemoryEntry::File(Arc::clone(&file)))?;
            Ok(file)
        };
        let file = create().map_err(|e| Error::io("create", path, e))?;
        Ok(Box::new(DiskFile::new(file, path)))
    }

    fn open_write(&self, path: &Path) -> Result<Box<dyn StorageFile>> {
        let file = self.file(path).map_err(|e| Error::io("open for writing", path, e))?;
        Ok(Box::new(DiskFile::new(file, path)))
    }

    fn open_read(&self, path: &Path) -> Result<Box<dyn HeldFile>> {
        let file = self.file(path).map_err(|e| Error::io("open", path, e))?;
        Ok(Box::new(DiskFile::new(file, path)))
    }

    fn read(&self, path: &Path) -> Result<FileBytes> {
        let file = self.file(path).map_err(|e| Error::io("open", path, e))?;
        FileBytes::map_memory(&file).map_err(|e| Error::io("map", path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.state.lock();
        let rename = |state: &mut MemoryStorageState| -> io::Result<()> {
            let file = Arc::clone(state.file(from)?);
            state.require_dir(to.parent().unwrap_or(Path::new("")))?;
            if matches!(state.names.get(to), Some(MemoryEntry::Dir)) {
                return Err(ErrorKind::IsADirectory.into());
            }
            state.names.remove(from);
            state.names.insert(to.to_owned(), MemoryEntry::File(file));
            Ok(())
        };
        rename(&mut state).map_err(|e| Error::io("rename", from, e))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut state = self.state.lock();
        state.file(path).map_err(|e| Error::io("remove", path, e))?;
        // Taken out here, and dropped below without the lock.
        let removed = state.names.remove(path);
        drop(state);
        // Outside the lock: giving back much memory takes a while.
        drop(removed);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.state.lock();
        let is_empty = match state.names.get(path) {
            Some(MemoryEntry::Dir) if state.children(path).next().is_some() => Err(ErrorKind::DirectoryNotEmpty.into()),
            _ => state.require_dir(path),
        };
        is_empty.map_err(|e| Error::io("remove directory", path, e))?;
        state.names.remove(path);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.state.lock().require_dir(path).map_err(|e| Error::io("sync directory", path, e))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        let state = self.state.lock();
        state.require_dir(path).map_err(|e| Error::io("list", path, e))?;
        let names = state.children(path).filter_map(Path::file_name);
        Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.state.lock().names.contains_key(path))
    }

    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        match self.file(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            file => DiskFile::new(file.map_err(|e| Error::io("look at", path, e))?, path).stamp().map(Some),
        }
    }

    fn lock(&self, path: &Path) -> Result<StorageLock> {
        let mut state = self.state.lock();
        if state.locks.iter().any(|held| held == path) {
            return Err(Error::Locked { path: path.to_owned(), holder: LockHolder::this() });
        }
        if !state.names.contains_key(path) {
            let file = memory_file().and_then(|file| state.add(path, MemoryEntry::File(Arc::new(file))));
            file.map_err(|e| Error::io("lock", path, e))?;
        }
        let file = Arc::clone(state.file(path).map_err(|e| Error::io("lock", path, e))?);
        let identity = DiskFile::new(file, path).identity()?;
        state.locks.push(path.to_owned());
        Ok(StorageLock::new(identity, Box::new(MemoryLock { storage: self.clone(), path: path.to_owned() })))
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<LockHolder>> {
        let is_held = self.state.lock().locks.iter().any(|held| held == path);
        Ok(is_held.then(LockHolder::this))
    }

    fn share_byte(&self, path: &Path, offset: u64) -> Result<Option<ByteLocks>> {
        Ok(self.state.lock().bytes.share(path, offset))
    }

    fn take_bytes(&self, path: &Path, offsets: &[u64]) -> Result<(ByteLocks, Vec<u64>)> {
        Ok(self.state.lock().bytes.take(path, offsets))
    }

    fn byte_holders(&self, path: &Path, offsets: &[u64]) -> Result<Vec<(u64, LockHolder)>> {
        Ok(self.state.lock().bytes.holders(path, offsets))
    }
}

/// A lock, released when dropped.
struct MemoryLock {
    storage: MemoryStorage,
    path: PathBuf,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.storage.state.lock().locks.retain(|held| held != &self.path);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
        result.err().and_then(|error| error.io_kind())
    }

    #[test]
    fn files_are_written_renamed_and_removed() {
        let memory = MemoryStorage::default();
        let path = Path::new("db/file");
        assert_eq!(kind(memory.create(path)), Some(ErrorKind::NotFound));
        memory.create_dir("db".as_ref()).unwrap();
        assert_eq!(kind(memory.create_dir("db".as_ref())), Some(ErrorKind::AlreadyExists));
        let file = memory.create(path).unwrap();
        assert_eq!(kind(memory.create(path)), Some(ErrorKind::AlreadyExists));
        file.write_at(4, b"tail").unwrap();
        file.hasten(0, 8);
        file.sync().unwrap();
        memory.open_write(path).unwrap().write_at(0, b"head").unwrap();
        assert_eq!((file.len().unwrap(), memory.read_copy(path).unwrap()), (8, b"headtail".to_vec()));
        let mut part = [0; 4];
        memory.read_at(path, 2, &mut part).unwrap();
        assert_eq!(&part, b"adta");
        assert_eq!(kind(memory.read_at(path, 6, &mut part)), Some(ErrorKind::UnexpectedEof));
        assert_eq!(kind(memory.rename(path, "db".as_ref())), Some(ErrorKind::IsADirectory));
        drop(memory.create("db/other".as_ref()).unwrap());
        memory.rename(path, "db/other".as_ref()).unwrap();
        memory.sync_dir("db".as_ref()).unwrap();
        assert_eq!(memory.clone().list("db".as_ref()).unwrap(), ["other"]);
        assert!(memory.read("db/other".as_ref()).unwrap().as_slice() == b"headtail" && !memory.exists(path).unwrap());
        file.set_len(2).unwrap();
        assert_eq!(memory.read_copy("db/other".as_ref()).unwrap(), b"he");
        assert_eq!(kind(memory.remove_dir("db".as_ref())), Some(ErrorKind::DirectoryNotEmpty));
        memory.remove_file("db/other".as_ref()).unwrap();
        memory.remove_dir("db".as_ref()).unwrap();
        assert_eq!(kind(memory.list("db".as_ref())), Some(ErrorKind::NotFound));
        assert_eq!(kind(memory.read(path)), Some(ErrorKind::NotFound));
    }

    #[test]
    fn held_lock_is_refused_until_released() {
        let memory = MemoryStorage::default();
        let held = memory.lock("LOCK".as_ref()).unwrap();
        assert!(matches!(memory.clone().lock("LOCK".as_ref()), Err(Error::Locked { .. })));
        assert!(MemoryStorage::default().lock("LOCK".as_ref()).is_ok());
        drop(held);
        memory.lock("LOCK".as_ref()).unwrap();
        assert_eq!(memory.list("".as_ref()).unwrap(), ["LOCK"]);
    }

    #[test]
    fn map_outlives_file_name_and_shares_memory() {
        let memory = MemoryStorage::default();
        let num_bytes = 5 << 20;
        let file = memory.create("f".as_ref()).unwrap();
        file.write_at(0, &vec![7; num_bytes]).unwrap();
        drop(file);
        let maps = [memory.read("f".as_ref()).unwrap(), memory.read("f".as_ref()).unwrap()];
        memory.open_write("f".as_ref()).unwrap().write_at(num_bytes as u64 - 1, &[8]).unwrap();
        memory.remove_file("f".as_ref()).unwrap();
        for map in &maps {
            // Both maps share memory: the later byte shows.
            assert_eq!((map.len(), map.as_slice()[0], map.as_slice()[num_bytes - 1]), (num_bytes, 7, 8));
            assert!(map.as_slice().as_ptr().addr().is_multiple_of(4096));
        }
    }
}
