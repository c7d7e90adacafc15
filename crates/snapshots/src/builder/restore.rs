//! Restores a store from the files of a backup, as a new database with an id of its own.
//!
//! The restored database goes its own way from here on: its next files get the names that the original gives to others.
//! So it gets a new id, which every header carries. A file or a WAL of the original is then refused in its directory,
//! and so is an incremental backup of the original.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::storage::Storage;

use super::{UnpublishedDirectory, parent};
use crate::backup::{BackupFile, BackupManifest};
use crate::file::{FramedFile, WrittenFile, give_id};
use crate::manifest::{FileRecord, Manifest};
use crate::options::{DatabaseId, Identity};
use crate::store::{PublishedState, Store, WriterLock, give_name};
use crate::verify::verify_state;
use crate::{Error, Result, VerifyReport, names};

/// A database under restoration. Nothing is visible before [`RestoredStore::publish`], and dropping removes it.
#[derive(Debug)]
pub struct StoreRestorer {
    directory: UnpublishedDirectory,
    id: DatabaseId,
    files: Vec<FileRecord>,
}

/// A database whose files are in place and that is not published yet. Dropping removes it.
#[derive(Debug)]
pub struct RestoredStore {
    directory: UnpublishedDirectory,
    lock: Arc<WriterLock>,
    manifest: Vec<u8>,
    store: Store,
    report: VerifyReport,
}

impl Store {
    /// Begins a database that is restored from a backup.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn restore(storage: Arc<dyn Storage>, path: &Path) -> Result<StoreRestorer> {
        let directory = UnpublishedDirectory::prepare(storage, path)?;
        Ok(StoreRestorer { directory, id: Identity::random().id, files: Vec::new() })
    }
}

impl StoreRestorer {
    /// The id of the new database.
    pub fn id(&self) -> DatabaseId {
        self.id
    }

    /// The storage that holds the new directory.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.directory.storage
    }

    /// Path of a scratch file in the new directory. All scratch files are removed at the end.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.directory.path.join(names::scratch(name))
    }

    /// Verifies a data file that was copied to `scratch`, and gives it the id of the new database and its final name.
    /// Errors name the file `shown`, from which it was copied.
    ///
    /// # Errors
    /// The file is damaged, or another one than the backup names; the disk failed.
    pub fn place(
        &mut self,
        manifest: &BackupManifest,
        file: &BackupFile,
        scratch: &Path,
        shown: &Path,
        pool: &Pool,
    ) -> Result<()> {
        let record = manifest.0.files.iter().find(|record| BackupFile::from(*record) == *file);
        let record = record.ok_or_else(|| Error::Input(format!("the backup has no file {:?}", file.name)))?;
        self.place_record(manifest.id(), record, scratch, shown, pool)
    }

    /// As [`place`](Self::place), for a file of the database `id`.
    pub(crate) fn place_record(
        &mut self,
        id: DatabaseId,
        record: &FileRecord,
        scratch: &Path,
        shown: &Path,
        pool: &Pool,
    ) -> Result<()> {
        let UnpublishedDirectory { storage, path, .. } = &self.directory;
        let mut header = {
            let copied = FramedFile::of_bytes(storage.read(scratch)?, shown, record.kind, id)?;
            if (copied.len(), copied.header_crc()) != (record.len, record.header_crc) {
                return Err(copied.corrupt("the file is not the one that the backup names"));
            }
            copied.verify(pool)?;
            copied.header().to_vec()
            // The map ends here: the file is about to change.
        };
        let header_crc = give_id(&mut header, self.id);
        let written = storage.open_write(scratch)?;
        written.write_at(0, &header)?;
        written.sync()?;
        storage.rename(scratch, &path.join(&record.name))?;
        self.files.push(FileRecord { header_crc, ..record.clone() });
        Ok(())
    }

    /// Gives its name to a file that was written for the new database.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn add(&mut self, file: &WrittenFile) -> Result<()> {
        self.files.push(give_name(&*self.directory.storage, &self.directory.path, file)?);
        Ok(())
    }

    /// Path of the new directory.
    pub(crate) fn path(&self) -> &Path {
        &self.directory.path
    }

    /// Opens the restored files as a store, and verifies all of it. `manifest` is that of the backup.
    ///
    /// # Errors
    /// A file of the manifest was not placed; the files do not fit together; the disk failed.
    pub fn finish(self, manifest: &BackupManifest, pool: &Pool) -> Result<RestoredStore> {
        self.finish_as(manifest.0.clone(), pool)
    }

    /// As [`finish`](Self::finish). The files and the id of `manifest` become those of the new database.
    pub(crate) fn finish_as(self, manifest: Manifest, pool: &Pool) -> Result<RestoredStore> {
        let Self { directory, id, files } = self;
        let (storage, path) = (Arc::clone(&directory.storage), directory.path.clone());
        let lock = directory.lock.clone().ok_or_else(|| Error::ReadOnly { path: path.clone() })?;
        let mut manifest = Manifest { files, ..manifest };
        manifest.created.id = id;
        let bytes = manifest.encode();
        // Decoded, because that checks whether every file was placed.
        let manifest = Manifest::decode(&bytes, &path.join(names::MANIFEST))?;
        let open = || PublishedState::open(&*storage, &path, manifest.clone(), bytes.len() as u64, None);
        let report = verify_state(&*storage, &path, &open()?, pool)?;
        let store = Store::with_state(Arc::clone(&storage), &path, open()?, Some(Arc::clone(&lock)));
        Ok(RestoredStore { directory, lock, manifest: bytes, store, report })
    }
}

impl RestoredStore {
    /// The restored store, to read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Path of a scratch file in the new directory, as [`StoreRestorer::scratch`].
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.directory.path.join(names::scratch(name))
    }

    /// Result of the verification.
    pub fn report(&self) -> &VerifyReport {
        &self.report
    }

    /// Publishes the database. Before that, `others`, synced scratch files that no manifest names, get their names.
    /// When this returns, the database survives a power cut.
    ///
    /// # Errors
    /// The disk failed, or another process changed the directory. The database is then removed.
    pub fn publish(mut self, others: &[(PathBuf, String)]) -> Result<()> {
        self.lock.check()?;
        let named = self.name_and_publish(others);
        named?;
        self.directory.is_published = true;
        // The first thing that is done with it may be a drop on a full disk.
        self.store.keep_reserve();
        // After an error it stays, and the next writer removes it.
        let _ = self.directory.storage.remove_file(&self.directory.path.join(names::RESTORING));
        Ok(())
    }

    fn name_and_publish(&self, others: &[(PathBuf, String)]) -> Result<()> {
        let UnpublishedDirectory { storage, path, outside, .. } = &self.directory;
        if !others.is_empty() {
            // Durable before the WAL has its name, so that a crash leaves a directory that is known to be no database.
            storage.create(&path.join(names::RESTORING))?.sync()?;
            storage.sync_dir(path)?;
        }
        for (scratch, name) in others {
            storage.rename(scratch, &path.join(name))?;
        }
        let unneeded = |name: &String| name.starts_with(names::TEMPORARY) && name != names::RESTORING;
        for scratch in storage.list(path)?.iter().filter(|name| unneeded(name)) {
            storage.remove_file(&path.join(scratch))?;
        }
        // All names, and that of the directory, must be durable before the manifest refers to them.
        storage.sync_dir(path)?;
        outside.sync_dir(parent(path))?;
        self.lock.publish_manifest(&self.manifest)
    }
}
