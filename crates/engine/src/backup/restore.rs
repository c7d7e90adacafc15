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

/// Makes a database at `path` from a full backup and its increments, the newest last. Each source is a directory, an
/// archive, or `-` for an archive on standard input.
///
/// The database has a new id, so it is the beginning of a new history. Everything is verified before the database
/// appears: each file's checksums, all structures against each other, and that the commits of the WAL fit the graph.
///
/// # Errors
/// The path exists; a source is no backup, or does not follow the ones before it; a file is damaged; the disk failed;
/// or `progress` cancelled the restoration. Nothing is left behind.
pub fn restore(
    path: &Path,
    sources: &[PathBuf],
    limit_rate: Option<u64>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<RestoreReport> {
    restore_in(Arc::new(DiskStorage), path, sources, limit_rate, pool, progress)
}

/// As [`restore`], on any storage.
///
/// # Errors
/// As [`restore`].
pub fn restore_in(
    storage: Arc<dyn Storage>,
    path: &Path,
    sources: &[PathBuf],
    limit_rate: Option<u64>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<RestoreReport> {
    let _span = tracing::info_span!("restore", path = %path.display()).entered();
    let begin = Instant::now();
    let progress: &dyn Progress = &TracedPhases::new(progress);
    let mut restorer = Store::restore(Arc::clone(&storage), path)?;
    let mut pace = CopyPace::new(progress, limit_rate);
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
    let mut others: Vec<_> = (1..).zip(&segments).map(|(number, path)| (path.clone(), log_name(number))).collect();
    if let Some(youngest) = u32::try_from(segments.len()).ok().filter(|&youngest| youngest > 0) {
        // The mark certifies the last commit, so that a later loss of the WAL's end is noticed.
        let mark = restorer.scratch(LOG_MARK);
        write_scratch(&**restorer.storage(), &mark, &mark_bytes(restorer.id(), epoch, youngest))?;
        others.push((mark, LOG_MARK.to_owned()));
    }
    pace.stage("verifying", None);
    let history = restorer.id();
    let restored = restorer.finish(manifest, pool)?;
    progress.check()?;
    let (num_vertices, num_edges) = check_log(&restored, newest, &segments)?;
    let report = RestoreReport {
        history,
        source_history: manifest.id(),
        epoch,
        num_snapshots: restored.report().num_snapshots,
        num_vertices,
        num_edges,
        num_files: restored.report().num_files + segments.len(),
        num_bytes: restored.report().num_bytes + newest.list.log.iter().map(|file| file.len).sum::<u64>(),
    };
    restored.publish(&others)?;
    let (bytes, seconds) = (report.num_bytes, begin.elapsed().as_secs_f64());
    tracing::info!(epoch, %history, bytes, seconds, "restored the database");
    Ok(report)
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

fn write_scratch(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = storage.create(path)?;
    file.write_at(0, bytes)?;
    Ok(file.sync()?)
}

/// Replays the WAL over the restored store. Returns the numbers of vertices and edges.
fn check_log(restored: &RestoredStore, source: &BackupSource, segments: &[PathBuf]) -> Result<(u64, u64)> {
    let store = restored.store();
    let place = LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() };
    let names = (1..).zip(segments).map(|(number, path)| (path.clone(), source.shown(&log_name(number))));
    let live = Live::new(store.epoch());
    live.follow(&place.hold_files(&names.collect::<Vec<_>>())?, store)?;
    let view = match live.view() {
        Some(view) => view,
        None => store.view()?,
    };
    Ok((view.num_vertices() as u64, view.num_edges()))
}
