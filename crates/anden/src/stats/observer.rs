//! What one process can tell about a database that another process writes.

use std::path::Path;

use anden_base::storage::LockHolder;
use anden_engine::{CommitObserver, LeaseInfo, SnapshotInfo};

use super::exposition::{Exposition, MetricLabels};
use crate::{Error, Result};

/// Watches a database that another process may write. It takes no lock and keeps no commit in memory.
///
/// It sees what is on the disk. Latencies, the memtable, views and the cache are known to the writing process only:
/// [`Database::metrics`](crate::Database::metrics) has them.
///
/// ```
/// use anden::stats::Observer;
/// use anden::{Database, Options, Update};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("calls.anden");
/// let db = Database::create(&path, Options::default())?;
/// let mut observer = Observer::open(&path)?;
/// db.apply(&[Update::add_edge(1, 2)])?;
/// let observed = observer.observe()?;
/// assert_eq!((observed.epoch, observed.newest.number), (1, 1));
/// assert_eq!(observed.writer.and_then(|writer| writer.process), Some(std::process::id()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Observer(CommitObserver);

/// A database as its files are at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observation {
    /// The epoch of the last commit on the disk. Epochs number commit groups, so two observations tell the groups in
    /// between.
    pub epoch: u64,
    /// The epoch of the last commit in a snapshot.
    pub snapshot_epoch: u64,
    /// Number of snapshots.
    pub snapshots: usize,
    /// The newest snapshot.
    pub newest: SnapshotInfo,
    /// Number of the base and the merged deltas.
    pub bases: usize,
    /// Number of deltas.
    pub deltas: usize,
    /// Files of snapshots, by the first part of their names.
    pub files: Vec<ObservedFiles>,
    /// Number of WAL segments.
    pub log_segments: usize,
    /// Bytes of the WAL's files, with preallocated space.
    pub log_bytes: u64,
    /// Limit of the bytes of segments that stay for the change feed.
    pub keep_wal: u64,
    /// The least epoch from which the WAL has all changes.
    pub oldest_epoch: u64,
    /// Bytes of all files in the directory.
    pub disk_bytes: u64,
    /// The process that has the database open for writing.
    pub writer: Option<LockHolder>,
    /// The leases on snapshots.
    pub leases: Vec<LeaseInfo>,
}

/// The files of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedFiles {
    /// The first part of their names, such as `base` or `delta`.
    pub kind: String,
    /// Their number.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Observer {
    /// Opens a database to be observed.
    ///
    /// # Errors
    /// As [`Database::open_read_only`](crate::Database::open_read_only), except for the WAL.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self(CommitObserver::open(path.as_ref())?))
    }

    /// Looks at the files.
    ///
    /// Cost: the first call reads the whole WAL, later ones what is new.
    ///
    /// # Errors
    /// Damage in the manifest or in the WAL; another database took the place of this one; errors of the disk.
    pub fn observe(&mut self) -> Result<Observation> {
        let epoch = self.0.look()?;
        let store = self.0.store();
        let newest = store.snapshots().pop().ok_or_else(|| Error::Internal("a database without a snapshot".into()))?;
        let (bases, deltas) = store.num_bases_and_deltas();
        let (log_segments, log_bytes) = self.0.log_files()?;
        let mut files: Vec<ObservedFiles> = Vec::new();
        for (name, bytes) in store.file_sizes() {
            let kind = name.split('-').next().unwrap_or_default();
            match files.iter_mut().find(|files| files.kind == kind) {
                Some(of_kind) => (of_kind.files, of_kind.bytes) = (of_kind.files + 1, of_kind.bytes + bytes),
                None => files.push(ObservedFiles { kind: kind.to_owned(), files: 1, bytes }),
            }
        }
        // The manifest's order depends on history.
        files.sort_by(|a, b| a.kind.cmp(&b.kind));
        Ok(Observation {
            epoch,
            snapshot_epoch: store.epoch(),
            snapshots: store.num_snapshots(),
            newest,
            bases,
            deltas,
            files,
            log_segments,
            log_bytes,
            keep_wal: store.keep_wal(),
            oldest_epoch: self.0.oldest_epoch()?,
            disk_bytes: self.0.disk_bytes()?,
            writer: store.lock_holder()?,
            leases: store.leases()?,
        })
    }
}

impl Observation {
    /// Returns this observation in the text format of Prometheus, version 0.0.4. Every metric gets `labels`.
    /// [`Metrics::to_prometheus`](super::Metrics::to_prometheus) has more, in the writing process.
    #[must_use]
    pub fn to_prometheus(&self, labels: &[(&str, &str)]) -> String {
        let mut text = Exposition::new(labels);
        text.gauge("anden_epoch", "Epoch of the last commit on the disk.", self.epoch);
        text.gauge("anden_snapshot_epoch", "Epoch of the last commit in a snapshot.", self.snapshot_epoch);
        text.gauge("anden_snapshots", "Snapshots of the database.", self.snapshots);
        text.gauge("anden_newest_snapshot", "Number of the newest snapshot.", self.newest.number);
        let help = "Time of creation of the newest snapshot, since 1970.";
        text.gauge("anden_newest_snapshot_timestamp_seconds", help, self.newest.unix_time);
        text.gauge("anden_vertices", "Vertices of the newest snapshot.", self.newest.num_vertices);
        text.gauge("anden_edges", "Edges of the newest snapshot.", self.newest.num_edges);
        text.gauge("anden_bases", "The base and the merged deltas.", self.bases);
        text.gauge("anden_deltas", "Deltas.", self.deltas);
        let labels: Vec<[(&str, &str); 1]> = self.files.iter().map(|files| [("kind", &*files.kind)]).collect();
        let of_kinds = |number: fn(&ObservedFiles) -> u64| -> Vec<(MetricLabels<'_>, u64)> {
            labels.iter().zip(&self.files).map(|(labels, files)| (&labels[..], number(files))).collect()
        };
        text.gauges("anden_files", "Files of snapshots, by kind.", of_kinds(|files| files.files as u64));
        text.gauges("anden_file_bytes", "Bytes of the files of snapshots, by kind.", of_kinds(|files| files.bytes));
        text.gauge("anden_wal_segments", "Segments of the WAL.", self.log_segments);
        text.gauge("anden_wal_bytes", "Bytes of the WAL's files.", self.log_bytes);
        let help = "Epoch from which the WAL has all changes.";
        text.gauge("anden_wal_oldest_epoch", help, self.oldest_epoch);
        text.gauge("anden_disk_bytes", "Bytes of all files in the directory.", self.disk_bytes);
        let has_writer = u8::from(self.writer.is_some());
        text.gauge("anden_writer_present", "1 while a process has the database open for writing.", has_writer);
        text.gauge("anden_leases", "Leases that processes hold on snapshots.", self.leases.len());
        text.into_text()
    }
}
