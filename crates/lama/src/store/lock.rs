//! The writer's lock on a database directory, and what must stand in the directory while it is held.
//!
//! A lock keeps other writers out. It keeps no operator from moving, removing or replacing files under the writer. So
//! the writer compares the directory with what it locked and wrote before it changes anything by name, and before it
//! answers a commit that survives a power cut. After the first difference it writes nothing more.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base::checksum::crc32c;
use base::storage::{FileIdentity, FileStamp, Storage, StorageLock};

use crate::{Error, Result, names};

/// The exclusive right to write a database; dropped, it is free.
#[derive(Debug)]
pub struct WriterLock {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    held: StorageLock,
    manifest: Mutex<KnownManifest>,
    /// What the disk holds is not known, or not what this writer wrote.
    is_poisoned: AtomicBool,
    /// Why, where there is more to say than that a write failed.
    reason: OnceLock<Error>,
}

/// The manifest that may stand in the directory.
#[derive(Debug, Default)]
struct KnownManifest {
    /// Of the file that was seen last with one of `sums`.
    stamp: Option<FileStamp>,
    /// The manifest that was read or written last, and the one that is about to replace it.
    sums: Vec<Sum>,
    /// Whether there was one: a new database has none before it is published.
    is_there: bool,
}

/// Tells the bytes of one manifest from those of another.
type Sum = (usize, u32);

fn sum(bytes: &[u8]) -> Sum {
    (bytes.len(), crc32c(bytes))
}

impl WriterLock {
    /// Takes the lock on a directory that was opened. Until `know_manifest` is called, no manifest may
    /// stand in it.
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

    /// These bytes were read from the file with this stamp: they are the manifest.
    pub(crate) fn know_manifest(&self, stamp: Option<FileStamp>, bytes: &[u8]) {
        *self.manifest() = KnownManifest { stamp, sums: vec![sum(bytes)], is_there: true };
    }

    /// Refuses to write once a sync failed, or another process changed the directory.
    ///
    /// # Errors
    /// [`Error::Displaced`], [`Error::Poisoned`].
    pub fn require_sound(&self) -> Result<()> {
        if !self.is_poisoned() {
            return Ok(());
        }
        Err(self.reason.get().cloned().unwrap_or_else(|| Error::Poisoned { path: self.directory.clone() }))
    }

    /// Whether nothing is written any more.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Acquire)
    }

    /// From now on nothing is written: it is not known what the disk holds.
    pub fn poison(&self) {
        self.is_poisoned.store(true, Ordering::Release);
    }

    /// Refuses to write where the directory, the lock file or the manifest is another than this writer's. To be called
    /// before files are created, renamed or removed.
    ///
    /// Cost: reads the manifest.
    ///
    /// # Errors
    /// [`Error::Displaced`], from then on always; as [`require_sound`](Self::require_sound); the disk failed.
    pub fn check(&self) -> Result<()> {
        self.require_sound()?;
        self.stopping(self.compare_all())
    }

    /// As [`check`](Self::check), after a sync of files that were created by this writer: each must stand under its
    /// name, for otherwise what is in it is lost.
    ///
    /// Cost: two calls to the system, and one for each file.
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

    /// As [`check`](Self::check), also after a write failed: whether what is in the directory may be removed.
    pub(crate) fn owns_directory(&self) -> bool {
        !self.reason.get().is_some_and(|reason| matches!(reason, Error::Displaced { .. }))
            && self.stopping(self.compare_all()).is_ok()
    }

    /// Replaces the manifest. When this returns, the new one survives a power cut.
    ///
    /// # Errors
    /// As [`check`](Self::check): the old one stands. Or the disk failed; where it is not known which one stands, the
    /// lock is poisoned.
    pub(crate) fn publish_manifest(&self, bytes: &[u8]) -> Result<()> {
        let (path, temporary) = (self.path(names::MANIFEST), self.path(&names::temporary(names::MANIFEST)));
        let identity = self.write_temporary(&temporary, bytes)?;
        self.check()?;
        self.manifest().sums.push(sum(bytes));
        let replace = || {
            self.storage.rename(&temporary, &path)?;
            self.storage.sync_dir(&self.directory)?;
            self.require_file(&path, identity)?;
            Ok(self.storage.stamp(&path)?)
        };
        // After an error from here on, either manifest may stand, and no file of either may go.
        let stamp = self.stopping(replace()).inspect_err(|_| self.poison())?;
        self.know_manifest(stamp, bytes);
        Ok(())
    }

    /// Writes a manifest under a temporary name, durably.
    fn write_temporary(&self, path: &Path, bytes: &[u8]) -> Result<FileIdentity> {
        // An attempt that failed may have left one.
        if self.storage.exists(path)? {
            self.storage.remove_file(path)?;
        }
        let file = self.storage.create(path)?;
        file.write_at(0, bytes)?;
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

    /// Refuses another file, or none, in the place of one of this writer.
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
        let mut known = self.manifest();
        match stamp {
            None if !known.is_there => return Ok(()),
            None => return Err(self.displaced(format!("{} was removed", name(&path)))),
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

    /// An answer about a file, where another kind of file in its place is an accident.
    fn known<T>(&self, path: &Path, answer: base::Result<T>) -> Result<T> {
        answer.map_err(|error| match error {
            base::Error::NotRegular { found, .. } => {
                self.displaced(format!("{found} took the place of {}", name(path)))
            }
            error => error.into(),
        })
    }

    fn displaced(&self, what: String) -> Error {
        Error::Displaced { path: self.directory.clone(), what }
    }

    /// Once something was displaced, nothing is written any more, and later calls say why.
    fn stopping<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            if matches!(error, Error::Displaced { .. }) {
                let _ = self.reason.set(error.clone());
                self.poison();
            }
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn manifest(&self) -> MutexGuard<'_, KnownManifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the bytes of the manifest are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsRead {
    /// A stamp is as coarse as the clock of the file system.
    Always,
    WhereStampDiffers,
}

fn name(path: &Path) -> String {
    format!("{:?}", path.file_name().unwrap_or_default().to_string_lossy())
}
