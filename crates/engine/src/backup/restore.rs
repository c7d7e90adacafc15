//! Restores a database from a full backup and its increments.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anden_base::checksum::crc32c;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::storage::{DiskStorage, Storage};
use anden_graph::Graph;
use anden_snapshots::{BackupFile, DatabaseId, LOG_MARK, RestoredStore, Store, StoreRestorer, log_name};

use super::pace::CopyPace;
use super::records::RecordCopy;
use super::source::BackupSource;
use crate::live::Live;
use crate::log::{LogPlace, mark_bytes};
use crate::phases::TracedPhases;
use crate::{Error, Result};

/// Result of a restoration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// Identity of the restored database: a new history.
    pub history: DatabaseId,
    /// The history of the backup.
    pub source_history: DatabaseId,
    /// Epoch of the last commit.
    pub epoch: u64,
    /// Number of snapshots.
    pub num_snapshots: usize,
    /// Number of vertices.
    pub num_vertices: u64,
    /// Number of edges.
    pub num_edges: u64,
    /// Number of files, WAL segments included.
    pub num_files: usize,
    /// Bytes of these files.
    pub num_bytes: u64,
}

/// Options of a restoration.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestoreOptions {
    /// Most bytes to copy in a second; `None`: as fast as the disk allows.
    pub limit_rate: Option<u64>,
    /// Most bytes of memory for the commits of the WAL, which are replayed to check them; `None`: no limit.
    pub memory: Option<u64>,
}

/// Makes a database at `path` from a full backup and its increments, the newest last. Each source is a directory, an
/// archive, or `-` for an archive on standard input.
///
/// The database has a new id, so it is the beginning of a new history. Everything is verified before the database
/// appears: each file's checksums, all structures against each other, and that the commits of the WAL fit the graph.
///
/// # Errors
/// The path exists; a source is no backup, or does not follow the ones before it; a file is damaged; the memory does
/// not suffice; the disk failed; or `progress` cancelled the restoration. Nothing is left behind.
pub fn restore(
    path: &Path,
    sources: &[PathBuf],
    options: RestoreOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<RestoreReport> {
    restore_in(Arc::new(DiskStorage), path, sources, options, pool, progress)
}

/// As [`restore`], on any storage.
///
/// # Errors
/// As [`restore`].
pub fn restore_in(
    storage: Arc<dyn Storage>,
    path: &Path,
    sources: &[PathBuf],
    options: RestoreOptions,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<RestoreReport> {
    let _span = tracing::info_span!("restore", path = %path.display()).entered();
    let begin = Instant::now();
    let progress: &dyn Progress = &TracedPhases::new(progress);
    let mut pace = CopyPace::new(progress, options.limit_rate, &|| 0)?;
    let mut restorer = Store::restore(Arc::clone(&storage), path)?;
    let open = |(number, path): (usize, &PathBuf)| BackupSource::open(&*storage, path, number, &restorer, &mut pace);
    let sources = sources.iter().enumerate().map(open).collect::<Result<Vec<_>>>()?;
    check_chain(&sources)?;
    let Some(newest) = sources.last() else {
        return Err(Error::options("cannot restore: no backup is named; name a full backup, then its increments"));
    };
    let (manifest, epoch) = (&newest.list.manifest, newest.list.epoch);
    pace.stage("copying", Some(manifest.files().map(|file| file.len).sum()));
    for file in manifest.files() {
        let holder = holder(&sources, &file)?;
        let scratch = holder.stage(&file.name, &restorer, &mut pace)?;
        restorer.place(manifest, &file, &scratch, &holder.shown(&file.name), pool)?;
    }
    let segments = restore_log(newest, &restorer, &mut pace)?;
    pace.stage("verifying", None);
    let restored = restorer.finish(manifest, pool)?;
    progress.check()?;
    let log = RestoredLog { source: newest.path.clone(), segments, epoch };
    let counts = log.check(&restored, options.memory)?;
    let report = RestoreReport::new(&restored, manifest.id(), &log, counts)?;
    let others = log.files(&restored)?;
    restored.publish(&others)?;
    let (history, bytes, seconds) = (report.history, report.num_bytes, begin.elapsed().as_secs_f64());
    tracing::info!(epoch, %history, bytes, seconds, "restored the database");
    Ok(report)
}

impl RestoreReport {
    /// The report on a database with these numbers of vertices and edges.
    pub(super) fn new(
        restored: &RestoredStore,
        source_history: DatabaseId,
        log: &RestoredLog,
        (num_vertices, num_edges): (u64, u64),
    ) -> Result<Self> {
        let (store, report) = (restored.store(), restored.report());
        let mut num_bytes = report.num_bytes;
        for segment in &log.segments {
            num_bytes += store.storage().file_len(segment)?;
        }
        Ok(Self {
            history: store.id(),
            source_history,
            epoch: log.epoch,
            num_snapshots: report.num_snapshots,
            num_vertices,
            num_edges,
            num_files: report.num_files + log.segments.len(),
            num_bytes,
        })
    }
}

/// The WAL of a new database, in scratch files.
pub(super) struct RestoredLog {
    /// Where it comes from, for messages.
    pub source: PathBuf,
    pub segments: Vec<PathBuf>,
    /// Epoch of the last commit, in the WAL or in the newest snapshot.
    pub epoch: u64,
}

impl RestoredLog {
    /// Replays the WAL over the new store. Returns the numbers of vertices and edges.
    ///
    /// # Errors
    /// The WAL does not fit the graph; the memory does not suffice; the disk failed.
    pub fn check(&self, restored: &RestoredStore, memory: Option<u64>) -> Result<(u64, u64)> {
        let store = restored.store();
        let place = LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() };
        let names = (1..).zip(&self.segments).map(|(number, path)| (path.clone(), self.source.join(log_name(number))));
        let live = Live::new(store.epoch());
        live.follow_within(memory, &place.hold_files(&names.collect::<Vec<_>>())?, store)?;
        let view = match live.view() {
            Some(view) => view,
            None => store.view()?,
        };
        Ok((view.num_vertices() as u64, view.num_edges()))
    }

    /// The files of the WAL with their names, the mark included.
    ///
    /// # Errors
    /// The disk failed.
    pub fn files(&self, restored: &RestoredStore) -> Result<Vec<(PathBuf, String)>> {
        let mut files: Vec<_> =
            (1..).zip(&self.segments).map(|(number, path)| (path.clone(), log_name(number))).collect();
        if let Some(youngest) = u32::try_from(files.len()).ok().filter(|&youngest| youngest > 0) {
            // The mark certifies the last commit, so that a later loss of the WAL's end is noticed.
            let (mark, store) = (restored.scratch(LOG_MARK), restored.store());
            write_scratch(&**store.storage(), &mark, &mark_bytes(store.id(), self.epoch, youngest))?;
            files.push((mark, LOG_MARK.to_owned()));
        }
        Ok(files)
    }
}

/// Refuses sources that do not follow each other.
fn check_chain(sources: &[BackupSource]) -> Result<()> {
    for (place, source) in sources.iter().enumerate() {
        let (first, path, list) = (&sources[0], source.path.display(), &source.list);
        let (theirs, ours) = (first.list.manifest.id(), list.manifest.id());
        if theirs != ours {
            return Err(Error::options(format!(
                "cannot restore: {path} is of the history {ours}, and {} of the history {theirs}; name a full backup \
                 and its own increments",
                first.path.display()
            )));
        }
        match list.parent {
            None if place > 0 => {
                return Err(Error::options(format!(
                    "cannot restore: {path} is a full backup, and {} is named before it; name one full backup first, \
                     then its increments",
                    first.path.display()
                )));
            }
            Some(parent) if !sources[..place].iter().any(|before| before.list.id == parent) => {
                return Err(Error::options(format!(
                    "cannot restore: {path} builds on the backup {parent}, which is not named before it; name the \
                     full backup first, then each increment after the one that it builds on"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The newest source that holds a file.
fn holder<'a>(sources: &'a [BackupSource], file: &BackupFile) -> Result<&'a BackupSource> {
    let holds = |source: &&BackupSource| {
        source.list.copied.contains(&file.name) && source.list.manifest.files().any(|other| other == *file)
    };
    sources.iter().rev().find(holds).ok_or_else(|| {
        Error::options(format!("cannot restore: no named backup holds {}; name all increments in between", file.name))
    })
}

/// Copies the WAL of a backup to scratch files, under the id of the new database.
fn restore_log(source: &BackupSource, restorer: &StoreRestorer, pace: &mut CopyPace<'_>) -> Result<Vec<PathBuf>> {
    let mut staged = Vec::new();
    for file in &source.list.log {
        let (scratch, shown) = (source.stage(&file.name, restorer, pace)?, source.shown(&file.name));
        let bytes = restorer.storage().read_copy(&scratch)?;
        if (bytes.len() as u64, crc32c(&bytes)) != (file.len, file.crc) {
            return Err(anden_base::Error::corrupt(&shown, 0, "the checksum of the file does not fit").into());
        }
        staged.push((scratch, shown));
    }
    let (manifest, storage) = (&source.list.manifest, restorer.storage());
    let place = LogPlace { storage: &**storage, directory: &source.path, id: manifest.id() };
    let mut written = Vec::new();
    let mut take = |number: u32, bytes: &[u8]| {
        let path = restorer.scratch(&format!("new-{}", log_name(number)));
        write_scratch(&**storage, &path, bytes)?;
        written.push(path);
        Ok(())
    };
    let copy = RecordCopy::new(restorer.id(), manifest.epoch(), &mut take);
    let through = copy.run(&place.hold_files(&staged)?, None)?;
    if through != source.list.epoch {
        let what = format!("the commits end at {through}, where {} was expected", source.list.epoch);
        return Err(anden_base::Error::corrupt(&source.path, 0, what).into());
    }
    Ok(written)
}

pub(super) fn write_scratch(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = storage.create(path)?;
    file.write_at(0, bytes)?;
    Ok(file.sync()?)
}
