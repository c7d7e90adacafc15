//! Backup and restore: options, reports, and identities.

use std::io::Write;
use std::path::{Path, PathBuf};

use anden_engine::{BackupTarget, RestoreOptions};

use crate::{Database, Error, Result, Session};

pub use anden_engine::{
    BackupId, BackupOptions, BackupReport, DatabaseId, Loss, RepairReport, RestoreReport, VertexSpan,
};

/// The ending of a backup in one file.
const ARCHIVE_ENDING: &str = ".tar.zst";
/// Extensions of names that look like archives and are none of ours.
const OTHER_ARCHIVES: [&str; 8] = ["tar", "gz", "tgz", "zst", "tzst", "bz2", "xz", "zip"];

impl Database {
    /// Copies everything committed, as of one epoch, to a new directory, or to one file if the name ends in `.tar.zst`.
    /// Commits, checkpoints and merges go on meanwhile, and each block is verified while it is copied.
    ///
    /// A handle that only reads copies the commits that the writer in another process has written by now. Those with
    /// durability `None` may still be in its memory. A database in memory makes a snapshot of its commits first.
    ///
    /// ```
    /// use anden::{Database, Options, Session, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let (backup, restored) = (folder.path().join("backup"), folder.path().join("restored.anden"));
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2)])?;
    /// db.backup(&backup)?;
    /// let report = Database::restore(&[backup], &restored, None, &Session::new(1)?)?;
    /// assert_eq!((report.num_vertices, report.num_edges), (2, 1));
    /// assert!(Database::open(&restored)?.view()?.has_edge(1, 2)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`backup_with`](Self::backup_with).
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_with(target, &BackupOptions::default())
    }

    /// As [`backup`](Self::backup), with an earlier backup to build on, or a limit of the rate.
    ///
    /// Cost: reads and writes the data files that the earlier backup lacks, and the WAL behind the newest snapshot.
    /// Files that a merge retires meanwhile take space until the end.
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists): the target. [`Error::InvalidInput`](crate::Error::InvalidInput): the
    /// earlier backup is unfinished, or of another history. [`Error::Corrupt`](crate::Error::Corrupt) with the damaged
    /// file; errors of the disk; cancellation. Nothing is left behind.
    pub fn backup_with(&self, target: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupReport> {
        let path = target.as_ref();
        let is_archive = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ARCHIVE_ENDING));
        let looks_like_one = path.extension().is_some_and(|end| OTHER_ARCHIVES.iter().any(|other| end == *other));
        if looks_like_one && !is_archive {
            let text = format!("cannot back up to {}: the name of an archive ends in {ARCHIVE_ENDING}", path.display());
            return Err(Error::InvalidInput(text.into()));
        }
        let path = path.to_owned();
        let target = if is_archive { BackupTarget::Archive(path) } else { BackupTarget::Directory(path) };
        Ok(self.inner().backup(target, options, self.session().progress())?)
    }

    /// As [`backup_with`](Self::backup_with), to a stream: a tar archive compressed by zstd. Without an error, the
    /// archive is complete; a part of it is refused by [`restore`](Self::restore).
    ///
    /// # Errors
    /// As [`backup_with`](Self::backup_with); the stream's errors name standard output.
    pub fn backup_to(&self, output: &mut (dyn Write + Send), options: &BackupOptions) -> Result<BackupReport> {
        Ok(self.inner().backup(BackupTarget::Output(output), options, self.session().progress())?)
    }

    /// Makes a database at `path` from a full backup and its increments, the newest last. Each source is a directory,
    /// a file that [`backup`](Self::backup) made, or `-` for such a file on standard input. At most `limit_rate` bytes are
    /// copied in a second.
    ///
    /// All is verified before the database appears: every checksum, all structures against each other, and that the
    /// commits in the WAL fit the graph. The database begins a new history, so increments of its origin are no
    /// increments of it.
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists): the path. [`Error::InvalidInput`](crate::Error::InvalidInput): a source
    /// is unfinished, of another history, or does not build on those before it.
    /// [`Error::Memory`](crate::Error::Memory): the commits of the WAL do not fit the session's budget.
    /// [`Error::Corrupt`](crate::Error::Corrupt) with the damaged file; errors of the disk; cancellation. Nothing is
    /// left behind.
    pub fn restore(
        sources: &[PathBuf],
        path: impl AsRef<Path>,
        limit_rate: Option<u64>,
        session: &Session,
    ) -> Result<RestoreReport> {
        let (pool, progress) = (session.pool(), session.progress());
        let options = RestoreOptions { limit_rate, memory: session.memory() };
        Ok(anden_engine::restore(path.as_ref(), sources, options, pool, progress)?)
    }

    /// Makes a database at `to` of everything that can be read of the damaged database at `from`. The damaged one is
    /// only read, also by a user without the right to write it. The report lists what is lost; the list is empty if the
    /// database is whole.
    ///
    /// If all files of the newest snapshot are whole, all snapshots are saved whose files are whole. Otherwise only the
    /// newest one is: its lists page by page, from in-lists where out-lists are damaged. The commits of the WAL follow,
    /// up to the first one that is damaged. The new database begins a new history.
    ///
    /// ```
    /// use anden::{Database, Options, Session, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let (damaged, saved) = (folder.path().join("damaged.anden"), folder.path().join("saved.anden"));
    /// let db = Database::create(&damaged, Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2)])?;
    /// db.close()?;
    /// let report = Database::repair(&damaged, &saved, &Session::new(1)?)?;
    /// assert!(report.losses.is_empty());
    /// assert_eq!(report.saved.num_edges, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists): `to`. [`Error::Corrupt`](crate::Error::Corrupt): nothing can be saved,
    /// because the manifest is damaged. [`Error::InvalidInput`](crate::Error::InvalidInput): a writer changed the
    /// database meanwhile. [`Error::Memory`](crate::Error::Memory), errors of the disk, cancellation. Nothing is left
    /// behind.
    pub fn repair(from: impl AsRef<Path>, to: impl AsRef<Path>, session: &Session) -> Result<RepairReport> {
        let (memory, pool, progress) = (session.memory(), session.pool(), session.progress());
        Ok(anden_engine::repair(from.as_ref(), to.as_ref(), memory, pool, progress)?)
    }
}
