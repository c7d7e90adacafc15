//! Locks on bytes of files in storages that one process holds alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{ByteLocks, LockHolder};

/// The locked bytes of a storage in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ByteLockTable(Arc<Mutex<Vec<TableEntry>>>);

#[derive(Debug, PartialEq, Eq)]
struct TableEntry {
    path: PathBuf,
    offset: u64,
    is_shared: bool,
}

impl ByteLockTable {
    /// As [`Storage::share_byte`](super::Storage::share_byte).
    pub fn share(&self, path: &Path, offset: u64) -> Option<ByteLocks> {
        let mut entries = self.0.lock();
        let is_taken = entries.iter().any(|entry| !entry.is_shared && entry.offset == offset && entry.path == path);
        (!is_taken).then(|| self.add(&mut entries, path, &[offset], true))
    }

    /// As [`Storage::take_bytes`](super::Storage::take_bytes).
    pub fn take(&self, path: &Path, offsets: &[u64]) -> (ByteLocks, Vec<u64>) {
        let mut entries = self.0.lock();
        let is_locked = |offset: &u64| entries.iter().any(|entry| entry.offset == *offset && entry.path == path);
        let (locked, free): (Vec<u64>, Vec<u64>) = offsets.iter().copied().partition(is_locked);
        (self.add(&mut entries, path, &free, false), locked)
    }

    /// As [`Storage::byte_holders`](super::Storage::byte_holders).
    pub fn holders(&self, path: &Path, offsets: &[u64]) -> Vec<(u64, LockHolder)> {
        let entries = self.0.lock();
        let of_path = entries.iter().filter(|entry| entry.path == path && offsets.contains(&entry.offset));
        of_path.map(|entry| (entry.offset, LockHolder::this())).collect()
    }

    fn add(&self, entries: &mut Vec<TableEntry>, path: &Path, offsets: &[u64], is_shared: bool) -> ByteLocks {
        let entry = |&offset: &u64| TableEntry { path: path.to_owned(), offset, is_shared };
        entries.extend(offsets.iter().map(entry));
        let held = offsets.iter().map(entry).collect();
        ByteLocks::new(Box::new(TableLock { table: self.clone(), held }))
    }
}

struct TableLock {
    table: ByteLockTable,
    held: Vec<TableEntry>,
}

impl Drop for TableLock {
    fn drop(&mut self) {
        let mut entries = self.table.0.lock();
        for entry in &self.held {
            // Several holders may share a byte: one entry goes for each.
            if let Some(place) = entries.iter().position(|other| other == entry) {
                entries.swap_remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_bytes_are_not_taken() {
        let (table, path) = (ByteLockTable::default(), Path::new("file"));
        let (first, second) = (table.share(path, 3).unwrap(), table.share(path, 3).unwrap());
        let (taken, locked) = table.take(path, &[2, 3, 4]);
        assert_eq!((locked, table.holders(path, &[3, 9]).len()), (vec![3], 2));
        assert!(table.share(path, 2).is_none() && table.share(Path::new("other"), 2).is_some());
        drop(first);
        assert_eq!(table.take(path, &[3]).1, [3]);
        drop((second, taken));
        let (taken, locked) = table.take(path, &[2, 3, 4]);
        assert_eq!((locked, table.holders(path, &[2, 3, 4]).len()), (vec![], 3));
        drop(taken);
        assert_eq!(table.holders(path, &[2, 3, 4]), []);
    }
}
