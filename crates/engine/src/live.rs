//! The memtable: the commits since the newest snapshot, in memory.
//!
//! A [`Live`] keeps the changes in a [`terrace`] container and lays each version of them over the snapshot. One writer
//! at a time changes it. Readers get the last published version and keep it.
//!
//! A commit looks each named edge up in the snapshot once. The change itself then needs no read of the memtable. An
//! edge to add is added, and its tombstone goes, unless the snapshot has it with the same weight. An edge to remove
//! loses its addition, and gets a tombstone if the snapshot has it. So of several updates of one edge the last counts,
//! and the memtable stays effective: it holds nothing that the snapshot has.
//!
//! A commit is in the WAL before it is published. Recovery replays the WAL over the newest snapshot.
//!
//! To become a snapshot, the memtable turns *immutable*. Later commits go to a new memtable, effective over snapshot and
//! immutable memtable together. The new memtable lies over the new snapshot unchanged.

mod append_set;
mod apply;
mod background;
mod batch;
mod below;
mod budget;
mod bulk;
mod changes;
mod checkpoint;
mod delta;
mod edges;
mod entries;
mod group;
mod immutable;
mod keys;
mod logged;
mod net_changes;
mod pairs;
mod properties;
mod records;
mod replay;
mod rows;
mod strict;
mod unique;
mod update;
mod values;
mod version;
mod vertices;
mod wal;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anden_base::MAX_VERTICES;
use anden_base::parallel::Pool;
use anden_memtable::AdjacencyTable;
use anden_snapshots::{Direction, GraphOptions, OverlayBase, PinnedFiles, SnapshotTag, SnapshotView, Store, WorkStats};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

pub(crate) use append_set::{AddedRows, AppendSet, VertexValues};
pub(crate) use apply::EdgeUpdate;
pub use background::MaintenanceHold;
pub(crate) use background::{Background, checkpoint_bytes};
pub(crate) use changes::NetChanges;
pub use changes::{AddedEdge, CommitRecord, GraphChange};
pub(crate) use checkpoint::{WrittenSnapshot, num_edges_of};
pub(crate) use group::CommitGroup;
pub(crate) use logged::encode_step;
pub(crate) use pairs::{BatchInput, EdgePairs};
pub use update::{Applied, EdgeAction, EdgeId, Missing, NewValue, Update};
pub use values::sought_value;
pub(crate) use values::{no_property, push_typed, typed};

use self::apply::{BatchStep, Logging};
use self::batch::ArcBatch;
use self::delta::MemtableArcs;
use self::immutable::ImmutableMemtable;
use self::keys::NewKeys;
use self::properties::LiveProperties;
use self::replay::WalReplay;
use self::rows::RowVersion;
use self::version::LiveVersion;
use self::vertices::VertexHistory;
use crate::log::{Durability, HeldLog, Log, LogOwner, LogPlace, LogStats, Lsn, SharedDurability};
use crate::validation::{HUGE_BATCH, ReadKey, VersionTable};
use crate::{Error, ErrorKind, Result};

/// Vertices for which room is made in advance, so that growth is rare.
const SPARE_VERTICES: usize = 1 << 16;
/// Bits that an overlay base takes for each vertex and direction, whether its list changes or not.
const OVERLAY_BASE_BITS: u64 = 10;
/// Attempts to find files and the WAL that belongs to them while a writer publishes.
const MAX_ATTEMPTS: usize = 1000;
/// Time that a caller of statistics waits for a running commit.
const STATS_WAIT: Duration = Duration::from_millis(100);
/// A checkpoint is also due once the WAL has this many times the due bytes, because recovery reads it. Changes to and
/// fro take little memory, but WAL.
const LOG_SHARE: u64 = 16;

/// The commits since the newest snapshot, and the state to add more.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Held while a snapshot is made: the order of snapshots. The first lock taken.
    snapshots: Mutex<()>,
    /// Callers that wait for it.
    num_waiting: AtomicUsize,
    /// FIFO gate before `writer`: one busy caller cannot starve the others.
    queue: Mutex<()>,
    /// Held while the memtable changes. `None` until the first change.
    writer: Mutex<Option<MemtableWriter>>,
    /// Signals that an immutable memtable became a snapshot, or could not.
    ended: Condvar,
    /// The version that readers get; `None` while nothing lies over the newest snapshot.
    published: RwLock<Option<Arc<LiveVersion>>>,
    /// The epoch of the last commit; readers see at least its changes.
    epoch: AtomicU64,
    /// The version table. The last lock taken.
    versions: Mutex<VersionTable>,
    /// Whether a transaction ever began.
    notes_changes: AtomicBool,
    /// Number of times that an index was made or dropped.
    index_changes: AtomicU64,
    /// The WAL of a writing handle; `None` if nothing outlives the handle.
    log: Option<Log>,
    /// The default durability of commits.
    durability: SharedDurability,
    /// In a reader: the epoch through which its WAL was durable, as far as records and mark tell.
    certified: AtomicU64,
    /// In a reader: the LSN up to which another process's WAL is shown.
    lsn: Mutex<Option<Lsn>>,
    /// The figures of the memtable at the last call of `stats`.
    last_stats: Mutex<LiveStats>,
}

/// The size of the memtable, and counters since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveStats {
    /// Bytes of its lists, keys and values. Tables by vertex do not count: ten bits for each direction, and up to four
    /// bytes for each of its additions and removals.
    pub delta_bytes: u64,
    /// Edges that it adds. A changed weight counts as added and removed.
    pub added: u64,
    /// Edges that it removes.
    pub removed: u64,
    /// Whether a checkpoint is running.
    pub is_checkpoint_running: bool,
    /// All checkpoints of this handle, at an order or by the background.
    pub checkpoints: WorkStats,
    /// All merges of this handle, at an order or by the background.
    pub merges: WorkStats,
    /// Checkpoints that the background made.
    pub automatic_checkpoints: u64,
    /// Merges that the background made.
    pub automatic_merges: u64,
    /// Limit of the bytes a second that both write; `None`: no limit.
    pub background_write_rate: Option<u64>,
    /// Bytes that both have written.
    pub background_bytes: u64,
    /// Pauses to keep to the limit.
    pub background_pauses: u64,
    /// The error of the last background attempt, if it failed; it is tried again.
    pub background_error: Option<String>,
    /// Bytes of the WAL's files.
    pub log_bytes: u64,
    /// Bytes of those files that a snapshot covers, kept for the change feed.
    pub retained_log_bytes: u64,
    /// Commits that were logged since the database was opened.
    pub logged_commits: u64,
    /// Bytes of their records that were written to the WAL's files since then.
    pub log_written_bytes: u64,
    /// Syncs of the WAL since then.
    pub log_syncs: u64,
    /// The time that these syncs took, directory entries included.
    pub log_sync_time: Duration,
    /// The error of the last write or sync of the WAL, even if no commit waited for it. Unwritten records are tried
    /// again; after a failed sync, the handle writes nothing more.
    pub log_error: Option<String>,
}

/// The write guard: the right to change the memtable.
pub(crate) struct WriteGuard<'a> {
    live: &'a Live,
    writer: MutexGuard<'a, Option<MemtableWriter>>,
}

/// The write guard together with the order of snapshots.
pub(crate) struct SnapshotWriteGuard<'a> {
    guard: WriteGuard<'a>,
    _order: MutexGuard<'a, ()>,
}

/// The writable memtable, and buffers for its changes.
#[derive(Debug)]
struct MemtableWriter {
    delta: MemtableArcs,
    /// Buffer for the arcs of a batch.
    batch: ArcBatch,
    /// Buffer for the steps of a plan.
    steps: Vec<BatchStep>,
    /// Buffer for the WAL record of a batch.
    record: Vec<u8>,
    overlay_base: Arc<OverlayBase>,
    /// Replaces `overlay_base` once the immutable memtable is a snapshot; dirty vertices are marked in both until then.
    next_overlay_base: Option<Arc<OverlayBase>>,
    /// The immutable memtable, between the snapshot and the memtable here.
    immutable: Option<ImmutableMemtable>,
    keys: Arc<NewKeys>,
    vertices: Arc<VertexHistory>,
    properties: LiveProperties,
    edges: RowVersion,
    vertex_bound: usize,
    num_vertices: usize,
    /// The epoch of the next version.
    epoch: u64,
    /// The epoch of the versions below the memtable.
    epoch_below: u64,
    /// The version after the last whole batch.
    newest: Arc<LiveVersion>,
    /// A batch failed half way: the published version is whole, and no other can follow it.
    is_broken: bool,
}

impl Live {
    /// Without commits, over a snapshot that has all up to `epoch`.
    pub(crate) fn new(epoch: u64) -> Self {
        Self { epoch: AtomicU64::new(epoch), ..Self::default() }
    }

    /// Replays the WAL in the directory of `store`, and logs later commits there.
    ///
    /// # Errors
    /// As [`Log::open`]; the WAL does not fit the graph.
    pub(crate) fn open(store: &Store) -> Result<Self> {
        let _span = tracing::info_span!("recovery", epoch = store.epoch()).entered();
        let begin = Instant::now();
        let mut live = Self::new(store.epoch());
        let owner = LogOwner {
            storage: Arc::clone(store.storage()),
            id: store.id(),
            lock: Arc::clone(store.lock()?),
            keep_bytes: store.keep_wal(),
        };
        let mut replay = WalReplay::new(&live, store);
        let log = Log::open(owner, store.path(), store.epoch(), &mut |group| replay.add(group))?;
        let records = replay.finish()?;
        let (path, epoch, seconds) = (store.path().display(), live.epoch(), begin.elapsed().as_secs_f64());
        tracing::info!(%path, epoch, records, seconds, "opened the database to write, and replayed the WAL");
        // Set last: replayed commits are in the WAL already.
        live.log = Some(log);
        Ok(live)
    }

    /// Opens the files of the WAL in the directory of `store`.
    ///
    /// # Errors
    /// As [`LogPlace::hold`].
    pub(crate) fn hold_log<'a>(&self, store: &'a Store) -> Result<HeldLog<'a>> {
        LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() }.hold(store.epoch())
    }

    /// Pins the files of `store`, and opens the WAL that belongs to them. Returns both, and the epoch of the last
    /// commit; a reader returns `None`, because only the WAL tells it. A database in memory has no WAL.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn pin_files<'a>(&self, store: &'a Store) -> Result<(PinnedFiles, Option<HeldLog<'a>>, Option<u64>)> {
        if !store.is_read_only() && self.log.is_none() {
            return Ok((store.pin_files()?, None, None));
        }
        // The write guard keeps commits from the WAL, so that it ends with the last one that is published.
        let guard = (!store.is_read_only()).then(|| self.write_guard());
        let mut num_attempts = 0;
        loop {
            num_attempts += 1;
            if let Some(log) = &self.log {
                log.write()?;
            }
            let before = store.pin_files()?;
            let log = self.hold_log(store);
            let pinned = store.pin_files()?;
            // The writer removes segments once a manifest has their commits, so one may vanish between its listing and
            // its opening, also while the manifest stays.
            let has_vanished = log.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
            // The last attempt decides. The manifest that is pinned after the opening has the commits of all segments
            // that were removed before.
            if pinned.manifest() == before.manifest() && !has_vanished || num_attempts == MAX_ATTEMPTS {
                let until = guard.as_ref().map(|_| self.epoch());
                return Ok((pinned, Some(log?), until));
            }
        }
    }

    /// Shows the commits in the WAL of `store` that are not shown yet, and writes nothing.
    ///
    /// # Errors
    /// As [`LogPlace::read`]; the WAL does not fit the graph.
    pub(crate) fn follow(&self, log: &HeldLog<'_>, store: &Store) -> Result<()> {
        self.follow_within(None, log, store)
    }

    /// As [`follow`](Self::follow), within a memory budget.
    ///
    /// # Errors
    /// As [`follow`](Self::follow); [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn follow_within(&self, memory: Option<u64>, log: &HeldLog<'_>, store: &Store) -> Result<()> {
        let mut replay = WalReplay::new(self, store);
        replay.memory = memory;
        // Taken out: after an error, the next call reads the whole WAL again.
        let lsn = self.lsn.lock().take();
        let mut certified = log.certified();
        let read = log.read_on(self.epoch(), lsn, &mut |group| {
            certified = certified.max(group.synced_through);
            replay.add(group)
        });
        match read.and_then(|lsn| Ok((lsn, replay.finish()?))) {
            Ok((lsn, records)) => {
                *self.lsn.lock() = lsn;
                self.certified.fetch_max(certified, Ordering::Relaxed);
                tracing::debug!(epoch = self.epoch(), records, "read the WAL on");
                Ok(())
            }
            Err(error) => {
                // The half-replayed state is not shown, and no version can follow it. `replay` has given its write
                // guard back.
                self.write_guard().begin_anew(store);
                Err(error)
            }
        }
    }

    /// Lays later commits over the newest snapshot, if that is newer than the one below. The shown version stays until
    /// a younger one replaces it.
    pub(crate) fn rest_on_newest(&self, store: &Store) {
        let mut guard = self.write_guard();
        // Without a memtable, nothing lies over the snapshot of this epoch.
        let below = guard.writer.as_ref().map_or_else(|| self.epoch(), |writer| writer.epoch_below);
        if below < store.epoch() {
            guard.begin_anew(store);
            // The writer may have begun a new WAL with the snapshot.
            *self.lsn.lock() = None;
        }
    }

    /// Shows the newest snapshot, if no commits lie over it. The caller has read the WAL while this was the newest
    /// snapshot. The WAL beside an older snapshot could lack commits that are shown.
    pub(crate) fn show_what_is_below(&self) {
        if self.write_guard().writer.is_none() {
            self.publish(None);
        }
    }

    /// The default durability of commits.
    pub(crate) fn durability(&self) -> Durability {
        self.durability.get()
    }

    /// Sets the default durability of commits.
    pub(crate) fn set_durability(&self, durability: Durability) {
        self.durability.set(durability);
    }

    /// Whether commits go to a WAL.
    pub(crate) fn has_log(&self) -> bool {
        self.log.is_some()
    }

    fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Number of times that an index was made or dropped, as of views taken from now on.
    pub(crate) fn index_changes(&self) -> u64 {
        self.index_changes.load(Ordering::Acquire)
    }

    /// Counts that an index was made or dropped.
    pub(crate) fn count_index_change(&self) {
        // Release: a transaction that sees this count also finds the indexes that it counts.
        self.index_changes.fetch_add(1, Ordering::Release);
    }

    /// The epoch of the last commit. In a reader after a failed refresh: of the snapshot, over which the WAL is read
    /// again.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The epoch of the version that readers get.
    pub(crate) fn shown_epoch(&self) -> u64 {
        // No clone: this is asked more often than views are taken.
        let shown = self.published.read().as_ref().map(|version| version.epoch);
        shown.unwrap_or_else(|| self.epoch())
    }

    /// Waits for the write guard.
    pub(crate) fn write_guard(&self) -> WriteGuard<'_> {
        // A mutex is not fair; the gate lets waiting callers take turns.
        let _first = self.queue.lock();
        WriteGuard { live: self, writer: self.writer.lock() }
    }

    /// Waits for the write guard, and until fewer changes wait for a snapshot. At most `most_bytes` may come behind a
    /// snapshot that is being written, and twice as many are pending at most while a snapshot `is_ordered`.
    pub(crate) fn write_guard_to_commit(
        &self,
        most_bytes: Option<u64>,
        is_ordered: impl Fn() -> bool,
    ) -> WriteGuard<'_> {
        let WriteGuard { mut writer, .. } = self.write_guard();
        if let Some(most_bytes) = most_bytes {
            let must_wait = |writer: &mut Option<MemtableWriter>| {
                writer.as_ref().is_some_and(|writer| match writer.is_being_written() {
                    true => writer.num_bytes() > most_bytes,
                    false => writer.num_pending_bytes() / 2 > most_bytes && is_ordered(),
                })
            };
            // The wait gives up the write guard, which the checkpoint needs.
            self.ended.wait_while(&mut writer, must_wait);
        }
        WriteGuard { live: self, writer }
    }

    /// Lets waiting commits check again whether they must wait.
    fn look_again(&self) {
        // A commit that has just checked waits on `ended` by the time this gets the write guard.
        drop(self.write_guard());
        self.ended.notify_all();
    }

    /// Waits for the order of snapshots and the write guard. All earlier commits are in a snapshot then.
    ///
    /// # Errors
    /// The disk failed; commits are kept.
    pub(crate) fn write_guard_at_snapshot(&self, store: &Store) -> Result<SnapshotWriteGuard<'_>> {
        let order = self.snapshot_order();
        let mut guard = self.write_guard();
        guard.write_snapshot(store, SnapshotTag::default())?;
        Ok(SnapshotWriteGuard { guard, _order: order })
    }

    /// The graph with all changes; `None` if there are none.
    pub(crate) fn view(&self) -> Option<SnapshotView> {
        self.newest().map(|newest| newest.view())
    }

    /// Bytes of changes that are in no snapshot and in no running checkpoint. Changes to and fro take no memory, but
    /// count by their WAL.
    pub(crate) fn num_pending_bytes(&self) -> u64 {
        self.write_guard().num_pending_bytes()
    }

    /// The size of the memtable, and counters of the WAL.
    pub(crate) fn stats(&self) -> LiveStats {
        let memtable = self.write_guard().memtable_stats();
        *self.last_stats.lock() = memtable.clone();
        self.with_log(memtable)
    }

    /// As [`stats`](Self::stats), without a long wait: while a commit runs, the size of the memtable is that of the
    /// last call.
    pub(crate) fn stats_soon(&self) -> LiveStats {
        // One deadline for both locks: a caller that waits in the gate keeps its place for a moment only.
        let end = Instant::now() + STATS_WAIT;
        let guard = self.queue.try_lock_until(end).and_then(|_first| self.writer.try_lock_until(end));
        let memtable = guard.map(|writer| WriteGuard { live: self, writer }.memtable_stats());
        let mut last = self.last_stats.lock();
        if let Some(memtable) = memtable {
            *last = memtable;
        }
        self.with_log(last.clone())
    }

    /// These figures of the memtable, with those of the WAL.
    fn with_log(&self, memtable: LiveStats) -> LiveStats {
        let log = self.log.as_ref().map_or_else(LogStats::default, Log::stats);
        LiveStats {
            log_bytes: log.num_bytes,
            retained_log_bytes: log.num_retained_bytes,
            logged_commits: log.num_groups,
            log_written_bytes: log.num_written_bytes,
            log_syncs: log.num_syncs,
            log_sync_time: log.sync_time,
            log_error: log.failure,
            ..memtable
        }
    }

    /// The version table.
    pub(crate) fn versions(&self) -> MutexGuard<'_, VersionTable> {
        self.versions.lock()
    }

    /// The graph with all changes, and its epoch. From the first call on, changes are noted.
    ///
    /// # Errors
    /// An earlier read found damage.
    pub(crate) fn pin(&self, store: &Store) -> Result<(SnapshotView, u64)> {
        if !self.notes_changes.load(Ordering::Acquire) {
            let _guard = self.write_guard();
            // Under the write guard: no commit runs between this epoch and the first note.
            self.versions().begin(self.epoch());
            // Stored last, so that a caller that skips this block finds a table that notes changes.
            self.notes_changes.store(true, Ordering::Release);
        }
        if let Some(newest) = self.newest() {
            return Ok((newest.view(), newest.epoch));
        }
        // Nothing lies over the snapshot, so it has all earlier commits. Repeat if another snapshot came between.
        loop {
            let epoch = store.epoch();
            let view = store.view()?;
            if store.epoch() == epoch {
                return Ok((view, epoch));
            }
        }
    }

    /// The version that readers get; `None` while nothing lies over the newest snapshot.
    fn newest(&self) -> Option<Arc<LiveVersion>> {
        // Only a pointer is copied under the lock.
        self.published.read().clone()
    }

    /// The state after the last commit, or of the newest snapshot.
    ///
    /// # Errors
    /// An earlier read found damage.
    pub(crate) fn applied(&self, store: &Store) -> Result<Applied> {
        let epoch = self.epoch();
        match self.newest() {
            Some(newest) => Ok(newest.applied()),
            None => {
                let view = store.view()?;
                let (vertices, edges) = (anden_graph::Graph::num_vertices(&view), anden_graph::Graph::num_edges(&view));
                Ok(Applied { epoch, vertices: vertices as u64, edges })
            }
        }
    }

    /// Publishes a committed version, then its epoch: a reader that sees the epoch also finds the version.
    fn show(&self, version: Arc<LiveVersion>) {
        let epoch = version.epoch;
        self.publish(Some(version));
        self.set_epoch(epoch);
    }

    fn publish(&self, version: Option<Arc<LiveVersion>>) {
        let before = std::mem::replace(&mut *self.published.write(), version);
        // Dropped outside the lock: freeing a version takes long, and readers would wait.
        drop(before);
    }
}

impl WriteGuard<'_> {
    /// Forgets the memtable.
    fn begin_anew(&mut self, store: &Store) {
        *self.writer = None;
        self.live.set_epoch(store.epoch());
    }

    /// The figures of the memtable; zeros elsewhere.
    fn memtable_stats(&self) -> LiveStats {
        let Some(writer) = &*self.writer else { return LiveStats::default() };
        let immutable = writer.immutable.as_ref();
        let versions = || immutable.map(|immutable| &immutable.version).into_iter().chain([&writer.newest]);
        LiveStats {
            delta_bytes: writer.num_bytes() + immutable.map_or(0, ImmutableMemtable::num_bytes),
            added: versions().map(|version| version.num_edges_of(AdjacencyTable::Out)).sum(),
            removed: versions().map(|version| version.num_edges_of(AdjacencyTable::OutRemoved)).sum(),
            is_checkpoint_running: writer.is_being_written(),
            ..LiveStats::default()
        }
    }

    /// As [`Live::num_pending_bytes`].
    pub(crate) fn num_pending_bytes(&self) -> u64 {
        let Some(writer) = &*self.writer else { return 0 };
        let logged = self.live.log.as_ref().map_or(0, Log::kept_bytes);
        writer.num_pending_bytes().max(logged / LOG_SHARE)
    }

    /// Applies a batch: all of it, or nothing if an update is invalid. The batch is as durable as asked before a reader
    /// sees it.
    ///
    /// # Errors
    /// A key or a weight does not fit the graph. With [`Missing::Strict`], an update names something that does not
    /// exist. Damage in the snapshot; the WAL cannot be written; the content of the disk is unknown.
    pub(crate) fn apply(
        &mut self,
        store: &Store,
        given: BatchInput<'_>,
        durability: Durability,
        pool: &Pool,
    ) -> Result<Applied> {
        // After a failed sync, the content of the disk is unknown.
        store.require_sound()?;
        let live = self.live;
        let logging = Logging { log: live.log.as_ref(), durability };
        let writer = self.writer_over(store)?;
        // Lock order: the write guard before the version table.
        let (epoch, mut versions) = (writer.epoch, live.versions());
        // A huge batch would hit most stripes: one note of everything is cheaper.
        let is_noted = versions.are_kept() && given.len() <= HUGE_BATCH;
        let mut note = |item| versions.change(item, epoch);
        let changed: Option<&mut dyn FnMut(ReadKey)> = if is_noted { Some(&mut note) } else { None };
        let version = match writer.apply(given, logging, pool, changed) {
            Ok(version) => version,
            Err(error) => {
                // The next batch gets this epoch, and its readers must not conflict with a batch that failed.
                versions.take_back(epoch);
                return Err(error);
            }
        };
        if !is_noted {
            versions.change_everything(epoch);
        }
        drop(versions);
        let applied = version.applied();
        live.show(version);
        Ok(applied)
    }

    /// The memtable; created at the first change.
    fn writer_over(&mut self, store: &Store) -> Result<&mut MemtableWriter> {
        match &mut *self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(MemtableWriter::new(store, self.live.epoch())?)),
        }
    }
}

impl MemtableWriter {
    /// Over the newest snapshot, or its replacement in memory, with all commits up to `epoch`.
    fn new(store: &Store, epoch: u64) -> Result<Self> {
        let view = store.view()?;
        let overlay_base = OverlayBase::new(&view, overflow(anden_graph::Graph::vertex_bound(&view)));
        let capacity = overlay_base.capacity();
        Self::over(overlay_base, store, epoch, capacity)
    }

    /// As [`new`](Self::new), over the snapshot of `overlay_base`. The memtable has room for vertices below `capacity`.
    fn over(overlay_base: OverlayBase, store: &Store, epoch: u64, capacity: usize) -> Result<Self> {
        let (options, view) = (store.options(), overlay_base.view().clone());
        let view = &view;
        let vertex_bound = anden_graph::Graph::vertex_bound(view);
        let num_vertices = anden_graph::Graph::num_vertices(view);
        let overlay_base = Arc::new(overlay_base);
        let mut delta = empty_delta(options, capacity)?;
        let keys = Arc::new(NewKeys::new(vertex_bound));
        let vertices = Arc::new(VertexHistory::new(vertex_bound));
        let properties = LiveProperties::new(view);
        let edges = RowVersion::new(Arc::new(view.edge_properties().schema().clone()), store.next_row());
        let newest = Arc::new(LiveVersion {
            epoch,
            overlay_base: Arc::clone(&overlay_base),
            immutable: None,
            delta: delta.publish(),
            keys: Arc::clone(&keys),
            vertices: Arc::clone(&vertices),
            properties: properties.clone(),
            edges: edges.clone(),
            vertex_bound,
            num_vertices,
        });
        let batch = ArcBatch::new(options);
        Ok(Self {
            delta,
            batch,
            steps: Vec::new(),
            record: Vec::new(),
            overlay_base,
            next_overlay_base: None,
            immutable: None,
            keys,
            vertices,
            properties,
            edges,
            vertex_bound,
            num_vertices,
            epoch: epoch + 1,
            epoch_below: epoch,
            newest,
            is_broken: false,
        })
    }

    /// A version of the changes until now, perhaps of half a batch: only [`Live::publish`] shows it.
    fn version(&mut self) -> Arc<LiveVersion> {
        Arc::new(LiveVersion {
            epoch: self.epoch,
            overlay_base: Arc::clone(&self.overlay_base),
            immutable: self.immutable.as_ref().map(|immutable| Arc::clone(&immutable.version)),
            delta: self.delta.publish(),
            keys: Arc::clone(&self.keys),
            vertices: Arc::clone(&self.vertices),
            properties: self.properties.clone(),
            edges: self.edges.clone(),
            vertex_bound: self.vertex_bound,
            num_vertices: self.num_vertices,
        })
    }

    /// The directions for which lists are kept.
    fn directions(&self) -> &'static [Direction] {
        match self.overlay_base.view().options().stores_in_lists() {
            true => &[Direction::Out, Direction::In],
            false => &[Direction::Out],
        }
    }

    /// Whether the memtable has no commits.
    fn is_empty(&self) -> bool {
        self.newest.epoch == self.epoch_below
    }

    /// Makes room in the container for vertices below `bound`.
    fn grow_delta(&mut self, bound: usize) -> Result<()> {
        match self.delta.grow(bound) {
            // A container keeps the addresses that it began with. Without arcs, a larger one can take its place.
            Err(Error::Memtable(anden_memtable::Error::Vertices { .. })) if self.delta.is_empty() => {
                self.delta = empty_delta(self.overlay_base.view().options(), bound)?;
                Ok(())
            }
            grown => grown,
        }
    }

    /// Bytes of the memtable, without the immutable one.
    fn num_bytes(&self) -> u64 {
        let history = self.vertices.num_bytes() + self.properties.history.num_bytes();
        self.delta.num_bytes() + self.keys.num_bytes() + history + self.edges.rows.num_bytes()
    }
}

/// A vertex bound with room for more: growth copies tables, so a quarter more is prepared.
fn overflow(bound: usize) -> usize {
    (bound + bound / 4 + SPARE_VERTICES).min(MAX_VERTICES.max(bound))
}

/// A container without changes, for vertices below `bound`.
fn empty_delta(options: &GraphOptions, bound: usize) -> Result<MemtableArcs> {
    let terrace_options = anden_memtable::Options {
        graph_kind: options.graph_kind,
        in_lists: options.stores_in_lists(),
        multigraph: options.multigraph,
        num_vertices: bound,
        ..anden_memtable::Options::default()
    };
    let mut delta = MemtableArcs::new(options, &terrace_options)?;
    delta.grow(bound.min(MAX_VERTICES))?;
    Ok(delta)
}

#[cfg(test)]
mod tests {
    use anden_testkit::wait_until;

    use super::*;

    /// A plain mutex most often goes to the caller that has just released it.
    #[test]
    fn busy_caller_cannot_starve_a_waiting_one() {
        let (live, num_turns, is_done) = (Live::default(), AtomicUsize::new(0), AtomicBool::new(false));
        let passed: Vec<usize> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let _guard = live.write_guard();
                    num_turns.fetch_add(1, Ordering::Relaxed);
                    // Releases the guard once the other caller waits for it.
                    let is_awaited = || live.queue.try_lock().is_none();
                    wait_until("the other caller waits", || is_awaited() || is_done.load(Ordering::Relaxed));
                }
            });
            let wait = |_| {
                let before = num_turns.load(Ordering::Relaxed);
                drop(live.write_guard());
                let after = num_turns.load(Ordering::Relaxed);
                wait_until("the busy caller goes on", || num_turns.load(Ordering::Relaxed) > after);
                after - before
            };
            let passed = (0..30).map(wait).collect();
            is_done.store(true, Ordering::Relaxed);
            passed
        });
        // The first wait may begin before the busy caller has its first guard.
        assert!(passed[1..].iter().all(|&num_turns| num_turns == 0), "{passed:?}");
    }
}
