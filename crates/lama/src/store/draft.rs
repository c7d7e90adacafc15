//! A change of the database on its way: files that are written, and how they become part of it at once or never.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use base::progress::{Progress, Silent};
use base::storage::Storage;

use super::{State, Store, Writer};
use crate::file::WrittenFile;
use crate::manifest::{FileRecord, Manifest};
use crate::{Error, Result, names};

/// A change that one writer prepares. Dropped before it is published, it takes its files away.
pub(super) struct Draft<'a> {
    pub store: &'a Store,
    writer: MutexGuard<'a, Writer>,
    /// What the change starts from.
    pub state: Arc<State>,
    /// Who is told of what is written.
    pub progress: &'a dyn Progress,
    /// What becomes part of the database.
    written: Vec<WrittenFile>,
    /// The bytes of these files.
    num_bytes: u64,
    /// The bytes of new changes and keys in it.
    pub num_new_bytes: u64,
    /// Names that files of this change got already.
    named: Vec<String>,
    is_finished: bool,
}

impl Store {
    /// Begins a change; others wait until it is done.
    ///
    /// # Errors
    /// The handle only reads, or is poisoned; another process changed the directory.
    pub(super) fn begin(&self) -> Result<Draft<'_>> {
        let writer = self.hold().ok_or_else(|| Error::ReadOnly { path: self.path.clone() })?;
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

    /// Keeps others from changing anything, once a change that is under way is done; `None` where the handle only reads.
    pub(super) fn hold(&self) -> Option<MutexGuard<'_, Writer>> {
        let writer = self.writer.as_ref()?;
        self.num_waiting.fetch_add(1, Ordering::Relaxed);
        let writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.num_waiting.fetch_sub(1, Ordering::Relaxed);
        Some(writer)
    }

    /// Whether anybody waits until a change that is under way is done.
    pub fn is_awaited(&self) -> bool {
        self.num_waiting.load(Ordering::Relaxed) > 0
    }
}

impl Store {
    /// Removes what is left of files that were written aside.
    pub(super) fn forget_aside(&self) {
        let Some(writer) = &self.writer else { return };
        let aside = std::mem::take(&mut writer.lock().unwrap_or_else(PoisonError::into_inner).aside);
        if !aside.is_empty() {
            self.remove_own(aside.iter().map(|name| names::temporary(name)));
        }
    }

    /// Removes files of this writer. None goes where the directory is not what the writer left: another database, or an
    /// older copy, may give these names to its own files.
    fn remove_own(&self, names: impl Iterator<Item = String>) {
        if self.lock.as_ref().is_some_and(|lock| lock.owns_directory()) {
            names.for_each(|name| {
                let _ = self.storage.remove_file(&self.path.join(name));
            });
        }
    }
}

impl<'a> Draft<'a> {
    /// The same change, which tells somebody what it writes.
    pub fn telling(mut self, progress: &'a dyn Progress) -> Self {
        self.progress = progress;
        self
    }
}

impl Draft<'_> {
    /// A number for a file, that no other file ever has.
    pub fn next_file(&mut self) -> u32 {
        let number = self.writer.next_file;
        self.writer.next_file += 1;
        number
    }

    /// Takes a number for files that are written while others write, and will have these names. They are not removed
    /// before [`Store::forget_aside`], or a change that adds them.
    pub fn set_aside(&mut self, names: impl FnOnce(u32) -> Vec<String>) -> u32 {
        let number = self.next_file();
        self.writer.aside.extend(names(number));
        number
    }

    /// Nothing was written, and nothing will be.
    pub fn end(mut self) {
        self.is_finished = true;
    }

    /// Adds files that were written aside.
    pub fn add_aside(&mut self, files: Vec<WrittenFile>) {
        self.writer.aside.clear();
        files.into_iter().for_each(|file| self.add(file));
    }

    /// Adds a file that becomes part of the database.
    pub fn add(&mut self, file: WrittenFile) {
        self.num_bytes += file.len;
        self.written.push(file);
    }

    /// The bytes of the files so far.
    pub fn num_bytes(&self) -> u64 {
        self.num_bytes
    }

    /// Makes `manifest` the database's. Its table of files and its counters are filled in here.
    ///
    /// When this returns, the change survives a power cut. What the manifest no longer names is removed then; views
    /// that use it keep it.
    ///
    /// # Errors
    /// The disk failed: the change did not happen; or it is not known whether it did, and the handle writes no more.
    pub fn publish(mut self, mut manifest: Manifest) -> Result<Arc<State>> {
        let (storage, path) = (&*self.store.storage, &*self.store.path);
        let lock = self.store.check_lock()?;
        let mut records = Vec::new();
        for file in &self.written {
            // A name that was given must be taken away again, also if it is not known whether it was.
            self.named.push(published_name(file));
            records.push(give_name(storage, path, file)?);
        }
        if !records.is_empty() {
            storage.sync_dir(path)?;
        }
        let needed = manifest.needed_files();
        let files = self.state.manifest.files.iter().cloned().chain(records);
        manifest.files = files.filter(|file| needed.contains_key(&file.name)).collect();
        manifest.next_file = self.writer.next_file;
        manifest.bytes_loaded = manifest.bytes_loaded.saturating_add(self.num_new_bytes);
        manifest.bytes_written = manifest.bytes_written.saturating_add(self.num_bytes);
        let bytes = manifest.encode();
        // Whatever could be wrong with it is found before it counts.
        let manifest = Manifest::decode(&bytes, &path.join(names::MANIFEST))?;
        let next = State::open(storage, path, manifest, bytes.len() as u64, Some(&self.state))?;
        if let Err(error) = lock.publish_manifest(&bytes) {
            // Where it is not known which manifest the disk holds, no file of either may go.
            self.is_finished = lock.is_poisoned();
            return Err(error);
        }
        self.is_finished = true;
        let next = Arc::new(next);
        self.store.set_state(Arc::clone(&next));
        self.remove_needless(&next.manifest);
        Ok(next)
    }

    /// Removes what only the old manifest names. What stays is garbage, which the next writer removes.
    fn remove_needless(&self, new: &Manifest) {
        let kept: std::collections::HashSet<&str> = new.files.iter().map(|file| &*file.name).collect();
        let published = self.named.iter().map(|name| &**name);
        let old = self.state.manifest.files.iter().map(|file| &*file.name);
        let needless = old.chain(published).filter(|name| !kept.contains(name)).map(str::to_owned);
        self.store.remove_own(needless.chain(self.temporaries()));
    }

    /// The files of this writer that have no name of their own yet. Scratch files and files that are written aside belong
    /// to other work.
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

/// The name that a written file keeps.
fn published_name(file: &WrittenFile) -> String {
    let temporary = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    temporary.strip_prefix(names::TEMPORARY).unwrap_or(&temporary).to_owned()
}

/// Gives a written file the name that it keeps.
pub(crate) fn give_name(storage: &dyn Storage, directory: &Path, file: &WrittenFile) -> Result<FileRecord> {
    let name = published_name(file);
    storage.rename(&file.path, &directory.join(&name))?;
    Ok(FileRecord { kind: file.kind, name, len: file.len, header_crc: file.header_crc })
}
