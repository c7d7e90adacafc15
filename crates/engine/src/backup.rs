//! Backup and restore.
//!
//! A backup copies the state of one epoch: the data files that a manifest names, which never change, and the commits in
//! the WAL behind the newest snapshot. It runs beside a writer, beside checkpoints and merges. The list of the backup
//! is written last; without it, files are no backup.
//!
//! An incremental backup names its parent, and leaves out the data files that the parent's state has.

mod archive;
mod pace;
mod records;
mod repair;
mod restore;
mod sink;
mod source;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anden_base::checksum::crc32c;
use anden_base::progress::Progress;
use anden_base::storage::{DiskStorage, Storage};
use anden_snapshots::{BackupFile, BackupId, BackupList, BackupManifest, DatabaseId, log_name};

use self::archive::ArchiveSink;
use self::pace::CopyPace;
use self::records::RecordCopy;
use self::sink::{BackupSink, BackupStream, DirectorySink};
use crate::database::Engine;
use crate::phases::TracedPhases;
use crate::{Error, Result};

pub use repair::{RepairReport, repair, repair_in};
pub use restore::{RestoreOptions, RestoreReport, restore, restore_in};

/// Where a backup goes.
pub enum BackupTarget<'a> {
    /// A new directory.
    Directory(PathBuf),
    /// A new file, a tar archive compressed by zstd.
    Archive(PathBuf),
    /// Such an archive as a stream.
    Output(&'a mut (dyn Write + Send)),
}

impl std::fmt::Debug for BackupTarget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(path) | Self::Archive(path) => write!(f, "BackupTarget({})", path.display()),
            Self::Output(_) => f.write_str("BackupTarget(-)"),
        }
    }
}

/// Options of a backup.
#[derive(Clone, Debug, Default)]
pub struct BackupOptions {
    /// An earlier backup, directory or archive: only files that its state lacks are copied.
    pub since: Option<PathBuf>,
    /// Most bytes to copy in a second; `None`: as fast as the disk allows.
    pub limit_rate: Option<u64>,
}

/// Result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Identity of the backup.
    pub id: BackupId,
    /// The backup that it builds on; `None` for a full one.
    pub parent: Option<BackupId>,
    /// Identity of the database, the history that the backup belongs to.
    pub history: DatabaseId,
    /// Epoch of the last commit in it.
    pub epoch: u64,
    /// Number of files that were copied, WAL segments included.
    pub num_files: usize,
    /// Bytes of these files.
    pub num_bytes: u64,
    /// Bytes of all files of the state, those that earlier backups hold included.
    pub state_bytes: u64,
}

impl Engine {
    /// Copies everything committed, as of one epoch, to a new directory or archive. Commits, checkpoints and merges go
    /// on. Each block is verified while it is copied. A database in memory makes a snapshot of its commits first.
    ///
    /// A handle that only reads copies the commits that the writer in another process has written to the WAL. Those
    /// with [`Durability::None`](crate::Durability::None) may still be in its memory.
    ///
    /// Cost: copies all data files that `since` lacks, and the WAL behind the newest snapshot. Files that leave the
    /// database meanwhile take space until the end. Commits wait while the files are opened. While this handle commits,
    /// the copy rests half of the time, so that it slows commits less.
    ///
    /// # Errors
    /// The target exists; `since` is no backup, or one of another history; damage in a file; the disk failed; or
    /// `progress` cancelled the backup. Nothing is left behind.
    pub fn backup(
        &self,
        target: BackupTarget<'_>,
        options: &BackupOptions,
        progress: &dyn Progress,
    ) -> Result<BackupReport> {
        self.backup_in(Arc::new(DiskStorage), target, options, progress)
    }

    /// As [`backup`](Self::backup), to any storage.
    ///
    /// # Errors
    /// As [`backup`](Self::backup).
    pub fn backup_in(
        &self,
        storage: Arc<dyn Storage>,
        target: BackupTarget<'_>,
        options: &BackupOptions,
        progress: &dyn Progress,
    ) -> Result<BackupReport> {
        self.require_here()?;
        let _span = tracing::info_span!("backup", path = %self.path().display()).entered();
        let begin = Instant::now();
        let progress = &TracedPhases::new(progress);
        let epoch = || self.live().epoch();
        let pace = CopyPace::new(progress, options.limit_rate, &epoch)?;
        let since = options.since.as_deref().map(|path| source::read_list(&*storage, path)).transpose()?;
        if let (Some(path), Some(list)) = (&options.since, &since) {
            self.require_history(path, list)?;
        }
        let mut sink: Box<dyn BackupSink + '_> = match target {
            BackupTarget::Directory(path) => Box::new(DirectorySink::create(storage, &path)?),
            BackupTarget::Archive(path) => Box::new(ArchiveSink::new(BackupStream::create(storage, &path)?)?),
            BackupTarget::Output(output) => Box::new(ArchiveSink::new(BackupStream::output(output))?),
        };
        let report = self.copy_to(&mut *sink, since.as_ref(), pace)?;
        let (epoch, bytes, seconds) = (report.epoch, report.num_bytes, begin.elapsed().as_secs_f64());
        tracing::info!(epoch, bytes, seconds, "made a backup");
        Ok(report)
    }

    fn copy_to(
        &self,
        sink: &mut dyn BackupSink,
        since: Option<&BackupList>,
        mut pace: CopyPace<'_>,
    ) -> Result<BackupReport> {
        if !self.is_read_only() && !self.live().has_log() {
            // Without a WAL, commits are in no file before they are in a snapshot.
            self.checkpoint_pending()?;
        }
        let (pinned, log, until) = self.live().pin_files(self.store())?;
        let manifest = pinned.manifest();
        let mut list = BackupList::new(manifest.clone(), since.map(|since| since.id));
        let files = missing_files(manifest, since);
        let mut num_bytes = files.iter().map(|file| file.len).sum();
        pace.stage("copying", Some(num_bytes));
        for file in &files {
            sink.begin(&file.name, file.len)?;
            pinned.copy(&file.name, &mut |part| {
                sink.write(part)?;
                pace.copied(part.len())
            })?;
            sink.end()?;
            list.copied.push(file.name.clone());
        }
        if let Some(log) = log {
            pace.stage("copying the WAL", None);
            let segments = &mut list.log;
            let mut take = |number: u32, bytes: &[u8]| {
                let (name, len) = (log_name(number), bytes.len() as u64);
                sink.begin(&name, len)?;
                sink.write(bytes)?;
                sink.end()?;
                segments.push(BackupFile { name, len, crc: crc32c(bytes) });
                num_bytes += len;
                pace.copied(bytes.len())
            };
            list.epoch = RecordCopy::new(manifest.id(), manifest.epoch(), &mut take).run(&log, until)?;
            // The write guard was held while the files were opened, so they have all commits.
            if let Some(until) = until.filter(|&until| list.epoch < until) {
                let what = format!("the WAL ends at commit {}, and commit {until} is published", list.epoch);
                return Err(Error::internal(what));
            }
        }
        sink.finish(&list.encode())?;
        let of_log: u64 = list.log.iter().map(|file| file.len).sum();
        Ok(BackupReport {
            id: list.id,
            parent: list.parent,
            history: manifest.id(),
            epoch: list.epoch,
            num_files: files.len() + list.log.len(),
            num_bytes,
            state_bytes: manifest.files().map(|file| file.len).sum::<u64>() + of_log,
        })
    }

    /// Refuses an earlier backup of another history.
    fn require_history(&self, path: &Path, list: &BackupList) -> Result<()> {
        let (theirs, ours) = (list.manifest.id(), self.store().id());
        if theirs == ours {
            return Ok(());
        }
        Err(Error::options(format!(
            "cannot back up since {}: it is of the history {theirs}, the database has the history {ours}; make a full \
             backup",
            path.display()
        )))
    }
}

/// The files of a state that the state of an earlier backup lacks.
fn missing_files(manifest: &BackupManifest, since: Option<&BackupList>) -> Vec<BackupFile> {
    let known: Vec<BackupFile> = since.iter().flat_map(|since| since.manifest.files()).collect();
    manifest.files().filter(|file| !known.contains(file)).collect()
}
