//! Watches a database that another process writes, without a memtable.

use std::path::Path;
use std::sync::Arc;

use anden_base::storage::{DiskStorage, Storage};
use anden_snapshots::Store;

use crate::log::{LogPlace, Lsn};
use crate::{Error, Result};

/// Attempts to find a snapshot and the WAL that belongs to it while a writer publishes.
const MAX_ATTEMPTS: usize = 1000;

/// Follows the commits of another process by the epochs in its WAL. The changes themselves are not kept, so it takes
/// little memory, and each look reads only what is new.
#[derive(Debug)]
pub struct CommitObserver {
    store: Store,
    /// The epoch of the last commit that was seen.
    epoch: u64,
    /// The LSN behind its record.
    lsn: Option<Lsn>,
}

impl CommitObserver {
    /// Opens a database to be observed. Writes nothing and takes no lock.
    ///
    /// # Errors
    /// As [`Engine::open_snapshots_with`](crate::Engine::open_snapshots_with).
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_in(Arc::new(DiskStorage), path)
    }

    /// As [`open`](Self::open), on any storage.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let store = Store::open_read_only(storage, path)?;
        Ok(Self { epoch: store.epoch(), lsn: None, store })
    }

    /// The snapshots, as of the last call of [`look`](Self::look).
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Looks for new snapshots and commits. Returns the epoch of the last commit on the disk. A commit with durability
    /// `None` is seen once the writer has written it.
    ///
    /// Cost: the first call reads the whole WAL, later ones what is new.
    ///
    /// # Errors
    /// Damage; another database took the place of this one; the disk failed.
    pub fn look(&mut self) -> Result<u64> {
        let mut fault: Option<Error> = None;
        for _ in 0..MAX_ATTEMPTS {
            match self.read_on() {
                Ok(true) => return Ok(self.epoch),
                Ok(false) => {}
                Err(error) => {
                    // The writer may have taken a record back, so the next attempt reads the whole WAL.
                    (self.epoch, self.lsn) = (self.store.epoch(), None);
                    // A half-written record fails at another place each time. Only damage fails twice at one place.
                    if fault.as_ref().is_some_and(|fault| fault.to_string() == error.to_string()) {
                        return Err(error);
                    }
                    fault = Some(error);
                }
            }
        }
        // The writer publishes faster than this loop looks: what was seen is true, and the next look sees more.
        fault.map_or(Ok(self.epoch), Err)
    }

    /// Reads the WAL on. Returns false if a newer snapshot was published meanwhile.
    fn read_on(&mut self) -> Result<bool> {
        let store = &self.store;
        let place = LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() };
        let log = place.hold(store.epoch());
        // If the manifest is the newest one once all segments are open, none is missing.
        if store.refresh()? {
            return Ok(false);
        }
        let after = self.epoch.max(store.epoch());
        let mut last = after;
        self.lsn = log?.read_on(after, self.lsn.take(), &mut |group| {
            last = group.epoch;
            Ok(())
        })?;
        self.epoch = last;
        Ok(true)
    }

    /// As [`Engine::oldest_epoch`](crate::Engine::oldest_epoch).
    ///
    /// # Errors
    /// The disk failed.
    pub fn oldest_epoch(&self) -> Result<u64> {
        let store = &self.store;
        let place = LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() };
        place.oldest_epoch(store.epoch())
    }

    /// The number of WAL files, and their bytes with preallocated space.
    ///
    /// # Errors
    /// The disk failed.
    pub fn log_files(&self) -> Result<(usize, u64)> {
        crate::database::directory_files(&self.store, |name| anden_snapshots::log_number(name).is_some())
    }

    /// The bytes of all files in the directory.
    ///
    /// # Errors
    /// The disk failed.
    pub fn disk_bytes(&self) -> Result<u64> {
        Ok(crate::database::directory_files(&self.store, |_| true)?.1)
    }
}

#[cfg(test)]
mod tests {
    use anden_base::parallel::Pool;
    use anden_testkit::FaultStorage;

    use super::*;
    use crate::{Durability, Engine, Missing, Update};

    #[test]
    fn commits_and_snapshots_of_the_writer_are_seen() {
        let (disk, pool) = (FaultStorage::default(), Pool::new(1).unwrap());
        let path = Path::new("db");
        let db = Engine::create_in(Arc::new(disk.clone()), path, Default::default()).unwrap();
        let mut observer = CommitObserver::open_in(Arc::new(disk.clone()), path).unwrap();
        assert_eq!(observer.look().unwrap(), 0);
        let num_calls = disk.num_calls();
        let mut num_commits = 0;
        for key in 0..60 {
            let durability = if key % 2 == 0 { Durability::Sync } else { Durability::batched() };
            db.apply_with(&[Update::add_edge(key, key + 1)], Missing::Lenient, durability, &pool).unwrap();
            num_commits += 1;
            match key % 20 {
                7 => drop(db.checkpoint(None).unwrap()),
                13 => {
                    db.merge(crate::MergeScope::All, &pool, &anden_base::progress::Silent).unwrap();
                }
                _ => {}
            }
            if key % 3 == 0 {
                assert_eq!(observer.look().unwrap(), num_commits, "after {key}");
                assert_eq!(observer.store().num_snapshots(), db.num_snapshots(), "after {key}");
            }
        }
        assert_eq!((observer.look().unwrap(), observer.look().unwrap()), (60, 60));
        assert!(observer.log_files().unwrap().1 <= observer.disk_bytes().unwrap());
        let before = disk.num_calls();
        assert!(before > num_calls);
        observer.look().unwrap();
        assert_eq!(disk.num_calls(), before, "looking changes nothing");
    }
}
