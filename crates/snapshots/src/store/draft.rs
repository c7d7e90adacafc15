//! A change of the database in progress: its files become part of the database together, or never.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anden_base::progress::{Progress, Silent};
use anden_base::storage::Storage;
use parking_lot::MutexGuard;

use super::{PublishedState, Store, StoreWriterState};
use crate::file::WrittenFile;
use crate::manifest::{FileRecord, Manifest};
use crate::{Error, Result, names};

/// A change that one writer prepares. Dropping it unpublished removes its files.
pub(super) struct Draft<'a> {
    pub store: &'a Store,
    writer: MutexGuard<'a, StoreWriterState>,
    /// The state that the change starts from.
    pub state: Arc<PublishedState>,
    /// Receives the numbers of written bytes.
    pub progress: &'a dyn Progress,
    /// Files that become part of the database.
    written: Vec<WrittenFile>,
    /// Bytes of these files.
    num_bytes: u64,
    /// Bytes of new changes and keys among them.
    pub num_new_bytes: u64,
    /// Final names that files of this change have already.
    named: Vec<String>,
    is_finished: bool,
}

impl Store {
    /// Begins a change; other changes wait until it ends.
    ///
    /// # Errors
    /// The handle is read-only, or poisoned; another process changed the directory.
    pub(super) fn begin(&self) -> Result<Draft<'_>> {
        let writer = self.hold().ok_or_else(|| Error::ReadOnly { path: self.path.clone() })?;
        // Checked under the mutex: the change before may have poisoned the lock.
        self.check_lock()?;
        Ok(Draft {
            store: self,
            writer,
            state: self.state(),
            progress: &Silent,
            written: Vec::new(),
            num_bytes: 0,
            num_new_bytes: 0,
            named: Vec::new(),
            is_finished: false,
        })
    }

    /// Waits for a change that is under way, then keeps others from starting; `None` if the handle is read-only.
    pub(crate) fn hold(&self) -> Option<MutexGuard<'_, StoreWriterState>> {
        let writer = self.writer.as_ref()?;
        // Counted so that a writer that is slowed down sees that others wait.
        self.num_waiting.fetch_add(1, Ordering::Relaxed);
        let writer = writer.lock();
        self.num_waiting.fetch_sub(1, Ordering::Relaxed);
        Some(writer)
    }

    /// Whether another thread waits for a change that is under way.
    pub fn is_awaited(&self) -> bool {
        self.num_waiting.load(Ordering::Relaxed) > 0
    }
}

impl Store {
    /// Removes the remains of files that were set aside.
    pub(super) fn forget_aside(&self) {
        let Some(writer) = &self.writer else { return };
        let aside = std::mem::take(&mut writer.lock().aside);
        if !aside.is_empty() {
            self.remove_own(aside.iter().map(|name| names::temporary(name)));
        }
    }

    /// Removes files of this writer, but only if the directory is as the writer left it. Another database, or an older
    /// copy, may give these names to its own files.
    fn remove_own(&self, names: impl Iterator<Item = String>) {
        if self.lock.as_ref().is_some_and(|lock| lock.owns_directory()) {
            names.for_each(|name| {
                // A file that stays is garbage, which the next writer removes.
                let _ = self.storage.remove_file(&self.path.join(name));
            });
        }
    }
}

impl<'a> Draft<'a> {
    /// Reports what this change writes to `progress`.
    pub fn telling(mut self, progress: &'a dyn Progress) -> Self {
        self.progress = progress;
        self
    }
}

impl Draft<'_> {
    /// Takes a number for a file; no other file ever gets this number.
    pub fn next_file(&mut self) -> u32 {
        let number = self.writer.next_file;
        self.writer.next_file += 1;
        number
    }

    /// Takes a number for files that are written while other writers work, under these final names. They stay until
    /// [`Store::forget_aside`], or until a change adds them.
    pub fn set_aside(&mut self, names: impl FnOnce(u32) -> Vec<String>) -> u32 {
        let number = self.next_file();
        self.writer.aside.extend(names(number));
        number
    }

    /// Ends a change that wrote nothing.
    pub fn end(mut self) {
        self.is_finished = true;
    }

    /// Adds files that were set aside.
    pub fn add_aside(&mut self, files: Vec<WrittenFile>) {
        // No longer set aside: if the change fails, its files are removed with it.
        self.writer.aside.clear();
        files.into_iter().for_each(|file| self.add(file));
    }

    /// Adds a file to the change.
    pub fn add(&mut self, file: WrittenFile) {
        self.num_bytes += file.len;
        self.written.push(file);
    }

    /// Leaves the files out of the bytes that maintenance may write: the user asked for them.
    pub fn spare_maintenance(&mut self) {
        self.num_bytes = 0;
    }

    /// Bytes of the files until now.
    pub fn num_bytes(&self) -> u64 {
        self.num_bytes
    }

    /// Publishes `manifest`, after filling in its file table and counters.
    ///
    /// When this returns, the change survives a power cut. Files that the manifest no longer names are then removed;
    /// views that use them keep them open.
    ///
    /// # Errors
    /// A file of the old state was cut; nothing has changed. The disk failed; either nothing has changed, or the outcome
    /// is unknown and the handle writes no more.
    pub fn publish(mut self, mut manifest: Manifest) -> Result<Arc<PublishedState>> {
        let (storage, path) = (&*self.store.storage, &*self.store.path);
        // Checked before the first rename, which could replace a file of another database.
        let lock = self.store.check_lock()?;
        let mut records = Vec::new();
        for file in &self.written {
            // Noted before the rename: after a failed rename, the file may have either name.
            self.named.push(published_name(file));
            records.push(give_name(storage, path, file)?);
        }
        if !records.is_empty() {
            // The names must be durable before a manifest refers to them.
            storage.sync_dir(path)?;
        }
        // A new base retires what was prepared from the one before.
        let version = manifest.chain.anchor;
        manifest.preparations.retain(|record| record.version == version);
        // Files that the new manifest does not need leave its table, and are removed below.
        let needed = manifest.needed_files();
        let files = self.state.manifest.files.iter().cloned().chain(records);
        manifest.files = files.filter(|file| needed.contains_key(&file.name)).collect();
        manifest.next_file = self.writer.next_file;
        manifest.bytes_loaded = manifest.bytes_loaded.saturating_add(self.num_new_bytes);
        manifest.bytes_written = manifest.bytes_written.saturating_add(self.num_bytes);
        let bytes = manifest.encode();
        // The new state is decoded and opened before it counts, so that a fault leaves the old one in place.
        let manifest = Manifest::decode(&bytes, &path.join(names::MANIFEST))?;
        let next = PublishedState::open(storage, path, manifest, bytes.len() as u64, Some(&self.state))?;
        // The written files come from the open ones. If one of these was cut, zeros may have been read in its place.
        self.state.check_files()?;
        if let Err(error) = lock.publish_manifest(&bytes) {
            // If it is unknown which manifest the disk holds, the files of both must stay.
            self.is_finished = lock.is_poisoned();
            return Err(error);
        }
        self.is_finished = true;
        let next = Arc::new(next);
        // Readers see the new state only once it is durable.
        self.store.set_state(Arc::clone(&next));
        // Only now: a crash before the new manifest is durable leads back to the old one and its files.
        self.remove_needless(&next.manifest);
        Ok(next)
    }

    /// Removes files that only the old manifest names. If that fails, the next writer removes them.
    fn remove_needless(&self, new: &Manifest) {
        let kept: std::collections::HashSet<&str> = new.files.iter().map(|file| &*file.name).collect();
        let published = self.named.iter().map(|name| &**name);
        let old = self.state.manifest.files.iter().map(|file| &*file.name);
        let needless = old.chain(published).filter(|name| !kept.contains(name)).map(str::to_owned);
        self.store.remove_own(needless.chain(self.temporaries()));
    }

    /// Files of this writer that still have temporary names. Scratch files and files set aside belong to other work.
    fn temporaries(&self) -> Vec<String> {
        let aside = &self.writer.aside;
        let is_ours =
            |name: &str| (names::is_data(name) || name == names::MANIFEST) && !aside.iter().any(|other| other == name);
        let mut names = self.store.storage.list(&self.store.path).unwrap_or_default();
        names.retain(|name| name.strip_prefix(names::TEMPORARY).is_some_and(is_ours));
        names
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.store.remove_own(self.named.iter().cloned().chain(self.temporaries()));
        }
    }
}

/// Final name of a written file.
fn published_name(file: &WrittenFile) -> String {
    let temporary = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    temporary.strip_prefix(names::TEMPORARY).unwrap_or(&temporary).to_owned()
}

/// Renames a written file to its final name.
pub(crate) fn give_name(storage: &dyn Storage, directory: &Path, file: &WrittenFile) -> Result<FileRecord> {
    let name = published_name(file);
    storage.rename(&file.path, &directory.join(&name))?;
    Ok(FileRecord { kind: file.kind, name, len: file.len, header_crc: file.header_crc })
}
