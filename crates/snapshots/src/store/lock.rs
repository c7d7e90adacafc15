//! The writer's lock on a database directory, and the checks that the directory is unchanged.
//!
//! A lock keeps other writers out, but an operator can still move, remove or replace files. So the writer compares the
//! directory with its last known state before it changes anything by name. It also does so before it answers a commit
//! that survives a power cut. After the first difference it writes nothing more.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anden_base::checksum::crc32c;
use anden_base::storage::{FileIdentity, FileStamp, Storage, StorageLock};
use parking_lot::Mutex;

use crate::{Error, Result, names};

/// The exclusive right to write a database; released on drop.
#[derive(Debug)]
pub struct WriterLock {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    held: StorageLock,
    manifest: Mutex<KnownManifest>,
    /// Set once the content of the disk is unknown, or is not what this writer wrote.
    is_poisoned: AtomicBool,
    /// The displacement that stopped all writing, if one did.
    reason: OnceLock<Error>,
}

/// The manifests that may stand in the directory.
#[derive(Debug, Default)]
struct KnownManifest {
    /// Stamp of the file that was last seen with one of `sums`.
    stamp: Option<FileStamp>,
    /// Sums of the manifest last read or written, and of the one that is about to replace it.
    sums: Vec<Sum>,
    /// Whether the directory has a manifest; a new database has none before it is published.
    is_there: bool,
}

/// Length and CRC32C of a manifest.
type Sum = (usize, u32);

fn sum(bytes: &[u8]) -> Sum {
    (bytes.len(), crc32c(bytes))
}

impl WriterLock {
    /// Locks an open directory. Until `know_manifest` is called, no manifest may stand in it.
    ///
    /// # Errors
    /// Another writer has it, or the disk failed.
    pub fn take(storage: Arc<dyn Storage>, directory: &Path) -> Result<Self> {
        let held = storage.lock(&directory.join(names::LOCK))?;
        Ok(Self {
            storage,
            directory: directory.to_owned(),
            held,
            manifest: Mutex::default(),
            is_poisoned: AtomicBool::new(false),
            reason: OnceLock::new(),
        })
    }

    /// Records these bytes, read from the file with this stamp, as the manifest.
    pub(crate) fn know_manifest(&self, stamp: Option<FileStamp>, bytes: &[u8]) {
        *self.manifest.lock() = KnownManifest { stamp, sums: vec![sum(bytes)], is_there: true };
    }

    /// Refuses to write after a failed sync, or after another process changed the directory.
    ///
    /// # Errors
    /// [`Error::Displaced`], [`Error::Poisoned`].
    pub fn require_sound(&self) -> Result<()> {
        if !self.is_poisoned() {
            return Ok(());
        }
        Err(self.reason.get().cloned().unwrap_or_else(|| Error::Poisoned { path: self.directory.clone() }))
    }

    /// Whether writing has stopped for good.
    pub fn is_poisoned(&self) -> bool {
        // Acquire: pairs with `poison`, before which `stopping` sets the reason.
        self.is_poisoned.load(Ordering::Acquire)
    }

    /// Stops all writing, because the content of the disk is unknown.
    pub fn poison(&self) {
        if !self.is_poisoned.swap(true, Ordering::AcqRel) {
            tracing::error!(path = %self.directory.display(), "this handle writes nothing more");
        }
    }

    /// Refuses to write if the directory, the lock file or the manifest is no longer this writer's. Call it before
    /// files are created, renamed or removed.
    ///
    /// Cost: reads the manifest.
    ///
    /// # Errors
    /// [`Error::Displaced`], at every call from then on; as [`require_sound`](Self::require_sound); the disk failed.
    pub fn check(&self) -> Result<()> {
        self.require_sound()?;
        self.stopping(self.compare_all())
    }

    /// As [`check`](Self::check), after a sync of files that this writer created. Each must still stand under its name,
    /// otherwise its content is lost.
    ///
    /// Cost: two system calls, and one for each file.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_synced<'a>(&self, files: impl Iterator<Item = (&'a Path, FileIdentity)>) -> Result<()> {
        self.require_sound()?;
        let compare = || {
            self.require_file(&self.directory.join(names::LOCK), self.held.identity())?;
            self.compare_manifest(IsRead::WhereStampDiffers)?;
            files.into_iter().try_for_each(|(path, identity)| self.require_file(path, identity))
        };
        self.stopping(compare())
    }

    /// As [`check`](Self::check), also after a failed write: whether this writer may remove files in the directory.
    pub(crate) fn owns_directory(&self) -> bool {
        // `check` refuses after a failed write, but the writer may remove files while the directory is its own.
        !self.reason.get().is_some_and(|reason| matches!(reason, Error::Displaced { .. }))
            && self.stopping(self.compare_all()).is_ok()
    }

    /// Replaces the manifest. When this returns, the new manifest survives a power cut.
    ///
    /// # Errors
    /// As [`check`](Self::check), with the old manifest in place. Or the disk failed; if it is unknown which manifest
    /// stands, the lock is poisoned.
    pub(crate) fn publish_manifest(&self, bytes: &[u8]) -> Result<()> {
        let (path, temporary) = (self.path(names::MANIFEST), self.path(&names::temporary(names::MANIFEST)));
        let identity = self.write_temporary(&temporary, bytes)?;
        // Checked right before the rename: the directory may have been replaced while the file was written.
        self.check()?;
        // Until the rename is durable, checks must accept either manifest.
        self.manifest.lock().sums.push(sum(bytes));
        let replace = || {
            self.storage.rename(&temporary, &path)?;
            // Only this makes the rename survive a power cut.
            self.storage.sync_dir(&self.directory)?;
            // Another process may have put its own file there meanwhile.
            self.require_file(&path, identity)?;
            Ok(self.storage.stamp(&path)?)
        };
        // After an error from here on, either manifest may stand, so the files of both must stay.
        let stamp = self.stopping(replace()).inspect_err(|_| self.poison())?;
        self.know_manifest(stamp, bytes);
        Ok(())
    }

    /// Writes a manifest under a temporary name, and syncs it.
    fn write_temporary(&self, path: &Path, bytes: &[u8]) -> Result<FileIdentity> {
        // A failed attempt may have left one.
        if self.storage.exists(path)? {
            self.storage.remove_file(path)?;
        }
        let file = self.storage.create(path)?;
        file.write_at(0, bytes)?;
        // Synced before the rename, so that the name never leads to incomplete bytes.
        file.sync()?;
        Ok(file.identity()?)
    }

    fn compare_all(&self) -> Result<()> {
        if self.storage.is_replaced()? {
            return Err(self.displaced("another directory took its place".into()));
        }
        self.require_file(&self.path(names::LOCK), self.held.identity())?;
        self.compare_manifest(IsRead::Always)
    }

    /// Refuses if the file of this writer is missing, or another file stands in its place.
    fn require_file(&self, path: &Path, identity: FileIdentity) -> Result<()> {
        match self.known(path, self.storage.identity_at(path))? {
            Some(found) if found == identity => Ok(()),
            Some(_) => Err(self.displaced(format!("another file took the place of {}", name(path)))),
            None => Err(self.displaced(format!("{} was removed", name(path)))),
        }
    }

    fn compare_manifest(&self, is_read: IsRead) -> Result<()> {
        let path = self.path(names::MANIFEST);
        let stamp = self.stamp(&path)?;
        let mut known = self.manifest.lock();
        match stamp {
            // A new database has no manifest before it is published.
            None if !known.is_there => return Ok(()),
            None => return Err(self.displaced(format!("{} was removed", name(&path)))),
            // Saves reading the manifest at every synced commit.
            Some(_) if stamp == known.stamp && is_read == IsRead::WhereStampDiffers => return Ok(()),
            Some(_) => {}
        }
        let bytes = self.storage.read_copy(&path)?;
        if !known.sums.contains(&sum(&bytes)) {
            return Err(self.displaced(format!("another process wrote {}", name(&path))));
        }
        known.stamp = stamp;
        Ok(())
    }

    fn stamp(&self, path: &Path) -> Result<Option<FileStamp>> {
        self.known(path, self.storage.stamp(path))
    }

    /// Reports another kind of file in the place of this one as a displacement.
    fn known<T>(&self, path: &Path, answer: anden_base::Result<T>) -> Result<T> {
        answer.map_err(|error| match error {
            anden_base::Error::NotRegular { found, .. } => {
                self.displaced(format!("{found} took the place of {}", name(path)))
            }
            error => error.into(),
        })
    }

    fn displaced(&self, what: String) -> Error {
        Error::Displaced { path: self.directory.clone(), what }
    }

    /// Stops all writing after a displacement, and keeps the reason for later calls.
    fn stopping<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if matches!(error, Error::Displaced { .. }) {
                // Set before the flag, so that a thread that sees the flag finds the reason.
                let _ = self.reason.set(error.clone());
                self.poison();
            }
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// When the bytes of the manifest are read and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsRead {
    /// A stamp is as coarse as the clock of the file system, so an equal stamp may hide a change.
    Always,
    WhereStampDiffers,
}

fn name(path: &Path) -> String {
    format!("{:?}", path.file_name().unwrap_or_default().to_string_lossy())
}
