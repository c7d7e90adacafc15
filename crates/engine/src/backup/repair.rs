//! Saves what can be read of a damaged database, in a new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::storage::{DiskStorage, Storage};
use anden_snapshots::{DamagedStore, Loss, RestoredStore};

use super::records::RecordCopy;
use super::restore::{RestoreReport, RestoredLog, write_scratch};
use crate::log::LogPlace;
use crate::{ErrorKind, Result};

/// Result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// The new database.
    pub saved: RestoreReport,
    /// What is not in it; empty if the database was whole.
    pub losses: Vec<Loss>,
}

/// Makes a database at `to` of everything that can be read of the database at `from`, which is only read.
///
/// The new database has a new id, so it is the beginning of a new history. Everything that is saved was verified, and
/// the new database is verified as a whole before it appears. `memory`: as in [`RestoreOptions`](super::RestoreOptions).
///
/// # Errors
/// `to` exists; the manifest is damaged, so that nothing can be saved; a writer changed the database meanwhile; the
/// memory does not suffice; the disk of the new database failed; cancellation. Nothing is left behind.
pub fn repair(
    from: &Path,
    to: &Path,
    memory: Option<u64>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<RepairReport> {
    repair_in(Arc::new(DiskStorage), from, to, memory, pool, progress)
}

/// As [`repair`], on any storage.
///
/// # Errors
/// As [`repair`].
pub fn repair_in(
    storage: Arc<dyn Storage>,
    from: &Path,
    to: &Path,
    memory: Option<u64>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<RepairReport> {
    let damaged = DamagedStore::open(&*storage, from)?;
    let repaired = damaged.repair(&storage, to, pool, progress)?;
    let (restored, mut losses) = (repaired.restored, repaired.losses);
    progress.stage("saving the WAL", None);
    let saved = SavedLog::copy(&damaged, from, &restored, repaired.goes_on)?;
    losses.extend(saved.loss);
    let mut log = RestoredLog { source: from.to_owned(), segments: saved.segments, epoch: saved.epoch };
    let counts = match log.check(&restored, memory) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            tracing::warn!(path = %from.display(), %error, "the WAL does not fit the snapshot");
            losses.retain(|loss| !matches!(loss, Loss::Commits { .. }));
            losses.push(Loss::Commits { first: damaged.epoch() + 1, last: saved.last.max(Some(log.epoch)) });
            log = RestoredLog { segments: Vec::new(), epoch: damaged.epoch(), ..log };
            log.check(&restored, memory)?
        }
        counts => counts?,
    };
    let others = log.files(&restored)?;
    damaged.require_unchanged()?;
    let report = RestoreReport::new(&restored, damaged.id(), &log, counts)?;
    restored.publish(&others)?;
    tracing::info!(from = %from.display(), to = %to.display(), losses = losses.len(), "repaired the database");
    Ok(RepairReport { saved: report, losses })
}

/// The part of a WAL that was saved.
struct SavedLog {
    /// Paths of the new segments.
    segments: Vec<PathBuf>,
    /// Epoch of the last commit in them, or of the snapshot.
    epoch: u64,
    /// The last known epoch of the damaged WAL.
    last: Option<u64>,
    loss: Option<Loss>,
}

impl SavedLog {
    /// Copies the commits behind the newest snapshot, up to the first one that cannot be read. Copies none if they
    /// cannot follow the snapshot.
    fn copy(damaged: &DamagedStore, from: &Path, restored: &RestoredStore, goes_on: bool) -> Result<Self> {
        let after = damaged.epoch();
        let mut this = Self { segments: Vec::new(), epoch: after, last: None, loss: None };
        let place = LogPlace { storage: damaged.storage(), directory: from, id: damaged.id() };
        let log = match place.hold(after) {
            Ok(log) => log,
            Err(error) => {
                tracing::warn!(path = %from.display(), %error, "the WAL cannot be read");
                this.loss = Some(Loss::Commits { first: after + 1, last: None });
                return Ok(this);
            }
        };
        this.last = log.last_known_epoch().filter(|&last| last > after);
        if !goes_on {
            this.loss = this.last.map(|last| Loss::Commits { first: after + 1, last: Some(last) });
            return Ok(this);
        }
        let (storage, segments) = (restored.store().storage(), &mut this.segments);
        let mut take = |number: u32, bytes: &[u8]| {
            let path = restored.scratch(&format!("saved-{number}"));
            write_scratch(&**storage, &path, bytes)?;
            segments.push(path);
            Ok(())
        };
        let (epoch, is_whole) = RecordCopy::new(restored.store().id(), after, &mut take).run_prefix(&log)?;
        this.epoch = epoch;
        let lost = this.last.filter(|&last| last > epoch);
        if lost.is_some() || !is_whole {
            this.loss = Some(Loss::Commits { first: epoch + 1, last: lost });
        }
        Ok(this)
    }
}
