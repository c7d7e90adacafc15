//! The database: a directory that holds one graph.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_base::storage::{DiskStorage, LockHolder, MemoryStorage, Storage};
use anden_formats::InputPath;
use anden_graph::Graph;
use anden_snapshots::{
    Dictionary, DictionaryKeys, EdgeChanges, GraphOptions, KeyScheme, Lease, LeaseInfo, MergeReport, MergeScope,
    Retention, SnapshotDiff, SnapshotInfo, SnapshotTag, SnapshotView, StorageStats, Store, VerifyReport,
};
use parking_lot::Mutex;

use crate::commit_queue::Commits;
use crate::live::{Background, Live, LiveStats, MaintenanceHold};
use crate::load::{LoadOptions, LoadReport};
use crate::log::{Durability, ReadFaults};
use crate::{Error, Io, Result};

/// Attempts of a reader to find a snapshot and the WAL that belongs to it while a writer publishes.
const MAX_ATTEMPTS: usize = 1000;

/// The path of a database in memory, for error messages.
const IN_MEMORY: &str = "(in memory)";

/// An open database: its store, its memtable, its commit queue and its background threads.
///
/// One handle writes, in one process; any number of handles read. Dropping a writing handle makes a snapshot of the
/// commits since the newest one. [`close`](Self::close) does so too, and reports errors.
#[derive(Debug)]
pub struct Engine {
    store: Arc<Store>,
    /// The memtable, and the right to write.
    live: Arc<Live>,
    background: Background,
    commits: Commits,
    /// Held while a reader refreshes: snapshot and WAL must belong to one moment.
    refreshing: Mutex<()>,
    /// Dropping the handle makes no snapshot: it is done already, or nothing can outlive the handle.
    ends_silently: AtomicBool,
}

impl Engine {
    /// Creates an empty database at `path`.
    ///
    /// # Errors
    /// The path exists, the options contradict each other, or the disk failed. No files are left behind.
    pub fn create(path: &Path, options: GraphOptions) -> Result<Self> {
        Self::create_in(Arc::new(DiskStorage), path, options)
    }

    /// As [`create`](Self::create), on any storage.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_in(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions) -> Result<Self> {
        Self::new(create(storage, path, options)?)
    }

    /// Creates an empty database in memory. All operations work as with files. The data lives as long as this handle
    /// and its views.
    ///
    /// # Errors
    /// The options contradict each other, or the system has not enough memory.
    pub fn in_memory(options: GraphOptions) -> Result<Self> {
        Ok(Self::without_log(create(Arc::new(MemoryStorage::default()), Path::new(IN_MEMORY), options)?))
    }

    /// Creates a database at `path` from `inputs`.
    ///
    /// Memory: at most [`LoadOptions::memory`]. Edges beyond the budget go to scratch files in the new directory;
    /// vertices stay in memory. The result is identical, bit for bit, at any number of threads and with any memory.
    /// Exceptions are the identity ([`LoadOptions::identity`]) and the order of the rows of edge properties.
    ///
    /// # Errors
    /// The path exists; an input is malformed (with file and line); the vertices do not fit the memory; the disk
    /// failed; or `progress` cancelled the load. No files are left behind.
    pub fn load(
        path: &Path,
        inputs: &[InputPath],
        options: &LoadOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<(Self, LoadReport)> {
        Self::load_in(Arc::new(DiskStorage), path, inputs, options, pool, progress)
    }

    /// As [`load`](Self::load), into a database [in memory](Self::in_memory). The inputs are only read.
    ///
    /// Memory: the database itself, beside [`LoadOptions::memory`]. Edges beyond the budget stay in memory too.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_in_memory(
        inputs: &[InputPath],
        options: &LoadOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<(Self, LoadReport)> {
        let storage = Arc::new(MemoryStorage::default());
        let (store, report) = crate::load::load(storage, Path::new(IN_MEMORY), inputs, options, pool, progress)?;
        Ok((Self::without_log(store), report))
    }

    /// As [`load`](Self::load), on any storage.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_in(
        storage: Arc<dyn Storage>,
        path: &Path,
        inputs: &[InputPath],
        options: &LoadOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<(Self, LoadReport)> {
        let (store, report) = crate::load::load(storage, path, inputs, options, pool, progress)?;
        Ok((Self::new(store)?, report))
    }

    /// Opens a database as its one writer.
    ///
    /// # Errors
    /// There is no database; another process writes it; a newer version wrote it; or it is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_in(Arc::new(DiskStorage), path)
    }

    /// As [`open`](Self::open), on any storage.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let _span = tracing::info_span!("open", path = %path.display(), read_only = false).entered();
        require(&*storage, path)?;
        Self::new(Store::open(storage, path)?)
    }

    /// Opens a database for reading. Another process may write it meanwhile.
    ///
    /// # Errors
    /// There is no database; a newer version wrote it; or it is damaged.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::open_read_only_with(path, Io::Mmap)
    }

    /// As [`open_read_only`](Self::open_read_only); `io` chooses how files are read.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only). With [`Io::Pread`] also: the files do not fit the free memory, or a
    /// read failed.
    pub fn open_read_only_with(path: &Path, io: Io) -> Result<Self> {
        Self::open_read_only_in(io.storage(), path)
    }

    /// As [`open_read_only`](Self::open_read_only), on any storage.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only).
    pub fn open_read_only_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let _span = tracing::info_span!("open", path = %path.display(), read_only = true).entered();
        let database = Self::open_snapshots_in(storage, path)?;
        database.catch_up()?;
        Ok(database)
    }

    /// Opens a database for reading, without its WAL. [`view`](Self::view) shows the newest snapshot until
    /// [`refresh`](Self::refresh) reads the WAL. A long WAL costs no time here, and a damaged one is no error.
    ///
    /// # Errors
    /// As [`open_read_only_with`](Self::open_read_only_with), except for the WAL.
    pub fn open_snapshots_with(path: &Path, io: Io) -> Result<Self> {
        Self::open_snapshots_in(io.storage(), path)
    }

    /// As [`open_snapshots_with`](Self::open_snapshots_with), on any storage.
    ///
    /// # Errors
    /// As [`open_snapshots_with`](Self::open_snapshots_with).
    pub fn open_snapshots_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require(&*storage, path)?;
        let store = Store::open_read_only(storage, path)?;
        tracing::info!(path = %path.display(), epoch = store.epoch(), "opened the database to read");
        let live = Live::new(store.epoch());
        Ok(Self::with_live(store, live, true))
    }

    /// Sets the memory, in bytes, for patched pages: pages whose lists are composed from base and deltas. The default
    /// is a quarter of the memory that is free when the database is opened. Pages beyond the limit are composed for
    /// each read, which is slower. Call this before the first view.
    pub fn set_patch_memory(&self, num_bytes: u64) {
        self.store.set_patch_memory(num_bytes);
    }

    /// As [`Store::on_retirement`].
    pub fn on_retirement(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.store.on_retirement(hook);
    }

    /// Sets the memory budget, in bytes, of checkpoints and merges, including the memtable. A smaller budget makes
    /// background checkpoints earlier. `None` means no limit. An operation that does not fit is refused before it
    /// begins; the error names the memory that suffices.
    pub fn set_memory(&self, num_bytes: Option<u64>) {
        self.store.set_memory(num_bytes);
        self.background.set_checkpoint_bytes(Some(crate::live::checkpoint_bytes(num_bytes)));
    }

    /// The directory. For a database in memory, the name that errors use.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        self.store.options()
    }

    /// Whether this handle cannot write.
    pub fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    /// The default durability of commits; initially [`Durability::Sync`].
    pub fn durability(&self) -> Durability {
        self.live.durability()
    }

    /// Sets the default durability of commits. A database in memory ignores it.
    pub fn set_durability(&self, durability: Durability) {
        self.live.set_durability(durability);
    }

    /// Makes commits of a writer in another process visible to a reader. Returns whether anything changed, or the WAL
    /// had to be read again from the newest snapshot on. On a writing handle, this does nothing.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only). The handle then still shows its old state, or a younger one.
    pub fn refresh(&self) -> Result<bool> {
        self.require_here()?;
        if !self.is_read_only() {
            return Ok(false);
        }
        let _refreshing = self.refreshing.lock();
        let before = self.live.epoch();
        // Commits of another process come in a new snapshot or in the WAL: both are looked at.
        let has_changed = self.store.refresh()?;
        let was_read_again = self.catch_up()?;
        Ok(has_changed || was_read_again || self.live.epoch() != before)
    }

    /// Shows the commits in the WAL. Returns whether the WAL was read again in full, because an earlier read was
    /// invalid.
    ///
    /// A writer may checkpoint meanwhile and remove WAL segments. It suffices that the snapshot is still the newest
    /// once all segments are open: then no segment is missing, and open files survive removal.
    fn catch_up(&self) -> Result<bool> {
        let mut faults = ReadFaults::default();
        for _ in 0..MAX_ATTEMPTS {
            self.live.rest_on_newest(&self.store);
            let log = self.live.hold_log(&self.store);
            if self.store.refresh()? {
                // A newer snapshot was published: the open segments may lack commits.
                continue;
            }
            let Err(error) = log.and_then(|log| self.live.follow(&log, &self.store)) else {
                self.live.show_what_is_below();
                return Ok(faults.has_any());
            };
            if faults.is_repeated(&error) {
                return Err(error);
            }
        }
        // The writer publishes faster than this reader looks, so the last attempt decides.
        self.live.follow(&self.live.hold_log(&self.store)?, &self.store)?;
        Ok(true)
    }

    /// Makes a snapshot of all commits, even if there are no new ones.
    ///
    /// Cost: proportional to the commits since the newest snapshot. Readers and commits do not wait for it. Commits
    /// that come meanwhile go to the WAL, not to this snapshot.
    ///
    /// # Errors
    /// The handle cannot write; the name is invalid or taken; the memory does not suffice
    /// ([`set_memory`](Self::set_memory)); or the disk failed. Commits are kept. If commits came meanwhile, the next
    /// call first makes a snapshot of the changes that failed here.
    pub fn checkpoint<'a>(&self, tag: impl Into<SnapshotTag<'a>>) -> Result<SnapshotInfo> {
        self.require_writer()?;
        // A snapshot that does not fit is refused before it begins.
        self.live.require_memory(&self.store)?;
        let snapshot = self.live.checkpoint(&self.store, tag.into())?;
        self.background.has_succeeded();
        Ok(snapshot)
    }

    /// As [`checkpoint`](Self::checkpoint), without a name. `None` if the newest snapshot has all commits.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn checkpoint_pending(&self) -> Result<Option<SnapshotInfo>> {
        self.require_writer()?;
        let snapshot = self.live.checkpoint_pending(&self.store, &Silent)?;
        self.background.has_succeeded();
        Ok(snapshot)
    }

    /// Sets how many bytes of changes in memory start a background checkpoint; initially 64 MB. A WAL of sixteen times
    /// as many bytes starts one too, for changes that take hardly any memory.
    ///
    /// After a snapshot the background thread rests for a while; then only four times as many bytes start one. A commit
    /// waits while more than three times as many bytes have come behind a snapshot that is being written. It also waits
    /// while six times as many are pending and a snapshot is ordered. `None`: snapshots are made on request only, and
    /// no commit waits.
    pub fn set_checkpoint_bytes(&self, num_bytes: Option<u64>) {
        self.background.set_checkpoint_bytes(num_bytes);
    }

    /// Limits the bytes a second that background checkpoints and merges write together; initially 100 MB. `None` means
    /// no limit. A checkpoint ignores the limit while an append, another snapshot or the end of the handle waits for
    /// it. Neither does it throttle while commits come fast enough that they might have to wait.
    pub fn set_background_write_rate(&self, bytes_per_second: Option<u64>) {
        self.background.set_write_rate(bytes_per_second);
    }

    /// Counters of the memtable, the WAL and the background threads. Waits for a running commit.
    pub fn live_stats(&self) -> LiveStats {
        self.with_background(self.live.stats())
    }

    /// As [`live_stats`](Self::live_stats), without a long wait: while a commit runs, the size of the memtable is that
    /// of the last call.
    pub fn live_stats_soon(&self) -> LiveStats {
        self.with_background(self.live.stats_soon())
    }

    fn with_background(&self, live: LiveStats) -> LiveStats {
        let report = self.background.report();
        LiveStats {
            checkpoints: self.store.checkpoints().stats(),
            merges: self.store.merges().stats(),
            // Counters of the background come from its report, which the memtable does not know.
            automatic_checkpoints: report.num_checkpoints,
            automatic_merges: report.num_merges,
            background_write_rate: self.background.write_rate(),
            background_bytes: report.num_bytes,
            background_pauses: report.num_pauses,
            background_error: report.error.map(|error| error.to_string()),
            ..live
        }
    }

    /// The epoch of the last commit that [`view`](Self::view) shows.
    pub fn epoch(&self) -> u64 {
        self.live.shown_epoch()
    }

    /// The reason why this handle writes nothing more; `None` while it may write.
    pub fn write_error(&self) -> Option<Error> {
        self.store.require_sound().err().map(Error::from)
    }

    /// Bytes of the snapshots' files and of the manifest.
    pub fn snapshot_bytes(&self) -> u64 {
        self.store.num_bytes()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    pub(crate) fn commits(&self) -> &Commits {
        &self.commits
    }

    /// Stops the background threads and makes a snapshot of the commits since the newest one. Dropping the handle does
    /// so too, but cannot report errors.
    ///
    /// # Errors
    /// The disk failed. Commits since the newest snapshot are in the WAL, as durable as their callers chose.
    pub fn close(self) -> Result<()> {
        self.finish()
    }

    /// As [`close`](Self::close), for a handle that others share: it ends with the last of them. Only the first call
    /// acts.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn finish(&self) -> Result<()> {
        if self.ends_silently.swap(true, Ordering::AcqRel) || self.store.is_read_only() {
            return Ok(());
        }
        self.require_here()?;
        // Stopped first, so that no background checkpoint runs beside the last one.
        self.background.stop();
        self.live.checkpoint_pending(&self.store, &Silent).map(|_| ())
    }

    /// A writing handle: replays the WAL of `store`.
    fn new(store: Store) -> Result<Self> {
        let live = Live::open(&store)?;
        // After the replay, which may have cut files.
        store.keep_reserve();
        let database = Self::with_live(store, live, false);
        // A replayed WAL may be due for a checkpoint at once.
        database.background.has_pending(database.live.num_pending_bytes());
        Ok(database)
    }

    /// A handle on a store that lives in memory only, without a WAL.
    fn without_log(store: Store) -> Self {
        // A database in memory has no WAL, and dropping it needs no snapshot.
        let live = Live::new(store.epoch());
        Self::with_live(store, live, true)
    }

    fn with_live(store: Store, live: Live, ends_silently: bool) -> Self {
        let (store, live) = (Arc::new(store), Arc::new(live));
        let background = Background::new(Arc::clone(&store), Arc::clone(&live));
        let ends_silently = AtomicBool::new(ends_silently);
        Self { store, live, background, commits: Commits::default(), refreshing: Mutex::default(), ends_silently }
    }

    /// The graph with all commits.
    ///
    /// # Errors
    /// An earlier read found damage.
    pub fn view(&self) -> Result<SnapshotView> {
        self.require_here()?;
        // A published version lies over the newest snapshot, so it is the newer one.
        match self.live.view() {
            Some(view) => Ok(view),
            None => Ok(self.store.view()?),
        }
    }

    /// The graph at a snapshot.
    ///
    /// # Errors
    /// No snapshot has this number, or it was dropped; damage in the files that it needs.
    pub fn snapshot(&self, number: u32) -> Result<SnapshotView> {
        self.require_here()?;
        Ok(self.store.snapshot(number)?)
    }

    /// The number of snapshots.
    pub fn num_snapshots(&self) -> usize {
        self.store.num_snapshots()
    }

    /// The number of the newest snapshot; `None` if there is none.
    pub fn newest_number(&self) -> Option<u32> {
        self.store.newest_number()
    }

    /// The number of the snapshot with this name; `None` if there is none.
    pub fn snapshot_number(&self, name: &str) -> Option<u32> {
        self.store.number_of(name)
    }

    /// The edges that the snapshots of `window` (both ends included) added and its last one still has. All edges of the
    /// oldest snapshot count as added.
    ///
    /// Cost: reads the deltas of the window, and keeps their additions in memory.
    ///
    /// # Errors
    /// An end is not a snapshot, or the window is reversed; damage in the files that it needs.
    pub fn window(&self, window: RangeInclusive<u32>) -> Result<SnapshotView> {
        self.require_here()?;
        Ok(self.store.window(*window.start(), *window.end())?)
    }

    /// The window over the newest `num_snapshots` snapshots, or over fewer if there are fewer; the oldest snapshot is
    /// never in it. Returns the view with the first and last number, or a graph without edges and `None`.
    ///
    /// Cost: as [`window`](Self::window).
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn newest_window(&self, num_snapshots: u32) -> Result<(SnapshotView, Option<RangeInclusive<u32>>)> {
        self.require_here()?;
        Ok(self.store.newest_window(num_snapshots)?)
    }

    /// The changes from snapshot `from` to snapshot `to`, which may be the older one.
    ///
    /// # Errors
    /// One of them is not a snapshot; damage in the files that it needs.
    pub fn diff(&self, from: u32, to: u32) -> Result<SnapshotDiff> {
        self.require_here()?;
        Ok(self.store.diff(from, to)?)
    }

    /// As [`diff`](Self::diff), in two parts: everything but the edges, and the edges, which are read a page at a time.
    ///
    /// # Errors
    /// As [`diff`](Self::diff).
    pub fn diff_by_pages(&self, from: u32, to: u32) -> Result<(SnapshotDiff, EdgeChanges)> {
        self.require_here()?;
        Ok((self.store.vertex_diff(from, to)?, self.store.edge_changes(from, to)?))
    }

    /// Merges deltas, so that appended edges read as fast as loaded ones. No snapshot is lost.
    ///
    /// Cost: with [`MergeScope::All`], writes the graph anew.
    ///
    /// # Errors
    /// The handle cannot write; the memory does not suffice ([`set_memory`](Self::set_memory)); the disk failed; or
    /// `progress` cancelled the merge. The database is unchanged.
    pub fn merge(&self, scope: MergeScope, pool: &Pool, progress: &dyn Progress) -> Result<MergeReport> {
        self.require_writer()?;
        Ok(self.store.merge(scope, pool, progress)?)
    }

    /// Merges if a merge is due, as the background does after its snapshots. Does nothing while another merge runs, or
    /// while maintenance is [held](Self::hold_maintenance).
    ///
    /// # Errors
    /// As [`merge`](Self::merge), except for the memory: a merge that needs more than half of it is not due.
    pub fn maintain(&self, pool: &Pool, progress: &dyn Progress) -> Result<Option<MergeReport>> {
        self.require_writer()?;
        let Some(_maintenance) = self.background.try_hold_maintenance() else { return Ok(None) };
        Ok(self.store.maintain(pool, progress)?)
    }

    /// Waits for a running merge, and lets no merge of maintenance begin until the guard is dropped. Such merges take
    /// up to half of the memory ([`set_memory`](Self::set_memory)).
    pub fn hold_maintenance(&self) -> MaintenanceHold<'_> {
        self.background.hold_maintenance()
    }

    /// Drops all these snapshots, or none. Changes of the newest one stay committed: the default view shows them, and
    /// the next snapshot has them.
    ///
    /// # Errors
    /// One of them does not exist, or none would be left; the handle cannot write; the disk failed; or `progress`
    /// cancelled it. The database is unchanged.
    pub fn drop_snapshots(&self, numbers: &[u32], progress: &dyn Progress) -> Result<()> {
        self.require_writer()?;
        Ok(self.store.drop_snapshots(numbers, progress)?)
    }

    /// Gives a snapshot another name, or takes its name away.
    ///
    /// # Errors
    /// The snapshot does not exist, or another one has the name; the name is not valid; the handle cannot write, or the
    /// disk failed.
    pub fn rename_snapshot(&self, number: u32, name: Option<&str>) -> Result<()> {
        self.require_writer()?;
        Ok(self.store.rename_snapshot(number, name)?)
    }

    /// Sets which snapshots are kept, now and after each new snapshot. Returns the snapshots that it dropped. Named
    /// snapshots and the newest one are always kept.
    ///
    /// # Errors
    /// A rule by days drops more than half of the snapshots ([`anden_snapshots::Error::DropsMost`]); the handle cannot
    /// write, or the disk failed.
    pub fn retain(&self, retention: Retention) -> Result<Vec<u32>> {
        self.require_writer()?;
        Ok(self.store.retain(retention)?)
    }

    /// As [`retain`](Self::retain), also if a rule by days drops more than half of the snapshots.
    ///
    /// # Errors
    /// The handle cannot write, or the disk failed.
    pub fn retain_by_force(&self, retention: Retention) -> Result<Vec<u32>> {
        self.require_writer()?;
        Ok(self.store.retain_by_force(retention)?)
    }

    /// The rule by which the database drops snapshots.
    pub fn retention(&self) -> Retention {
        self.store.retention()
    }

    /// As [`Store::held_back_snapshots`].
    pub fn held_back_snapshots(&self) -> Vec<u32> {
        self.store.held_back_snapshots()
    }

    /// Refuses in a forked child. Threads that the child does not have may hold locks there, and the right to write
    /// stays with the parent.
    pub(crate) fn require_here(&self) -> Result<()> {
        match self.background.is_elsewhere() {
            true => Err(anden_base::Error::Forked { path: self.path().to_owned() }.into()),
            false => Ok(()),
        }
    }

    pub(crate) fn require_writer(&self) -> Result<()> {
        self.require_here()?;
        match self.store.is_read_only() {
            true => Err(Error::ReadOnly { path: self.store.path().to_owned() }),
            false => Ok(()),
        }
    }

    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.store.snapshots()
    }

    /// The keys of the vertices.
    pub fn dictionary(&self) -> Arc<Dictionary> {
        self.store.dictionary()
    }

    /// Reads every byte and checks all structures against each other. The report includes the WAL and the commits that
    /// are in no snapshot.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self, pool: &Pool) -> Result<VerifyReport> {
        // A reader checks the newest state.
        self.refresh()?;
        self.live.verify_log(&self.store)?;
        let mut report = self.store.verify(pool)?;
        let (view, (num_files, num_bytes)) = (self.view()?, self.log_files()?);
        report.num_files += num_files;
        report.num_bytes += num_bytes;
        (report.num_vertices, report.num_edges) = (view.num_vertices() as u64, view.num_edges());
        report.num_arcs = view.num_arcs() * if view.options().stores_in_lists() { 2 } else { 1 };
        Ok(report)
    }

    /// The bytes of the WAL: the commits that are in no snapshot, and preallocated space.
    ///
    /// # Errors
    /// The disk failed.
    pub fn log_bytes(&self) -> Result<u64> {
        Ok(self.log_files()?.1)
    }

    /// The bytes of all files in the directory: snapshots, WAL with preallocated space, manifest, reserve, and files
    /// being written.
    ///
    /// # Errors
    /// The disk failed.
    pub fn disk_bytes(&self) -> Result<u64> {
        Ok(directory_files(&self.store, |_| true)?.1)
    }

    /// Takes a lease on a snapshot: until the lease is dropped, or its process ends, no process can drop the snapshot.
    /// Retention leaves it out. A merge loses no snapshot, so it needs no lease.
    ///
    /// # Errors
    /// The snapshot does not exist; the directory cannot be written and has no file `LEASES`; the system has no locks of
    /// open files.
    pub fn lease(&self, snapshot: u32) -> Result<Lease> {
        self.require_here()?;
        Ok(self.store.lease(snapshot)?)
    }

    /// The leases on all snapshots, of this process and others.
    ///
    /// # Errors
    /// The disk failed.
    pub fn leases(&self) -> Result<Vec<LeaseInfo>> {
        Ok(self.store.leases()?)
    }

    /// The process that writes this database, if any does. A database in memory and a writing handle name this process.
    /// Takes no lock.
    ///
    /// # Errors
    /// The disk failed.
    pub fn lock_holder(&self) -> Result<Option<LockHolder>> {
        Ok(self.store.lock_holder()?)
    }

    /// The number of WAL files, and their bytes.
    fn log_files(&self) -> Result<(usize, u64)> {
        directory_files(&self.store, |name| anden_snapshots::log_number(name).is_some())
    }

    /// Sizes of the files on disk.
    pub fn stats(&self) -> StorageStats {
        self.store.stats()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A destructor cannot return errors; `close` does.
        if let Err(error) = self.finish() {
            tracing::error!(path = %self.path().display(), %error, "no snapshot at the end of the handle");
        }
    }
}

/// The number of files in the directory whose names match, and their bytes.
pub(crate) fn directory_files(store: &Store, is_meant: impl Fn(&str) -> bool) -> Result<(usize, u64)> {
    let (storage, path) = (store.storage(), store.path());
    let names = storage.list(path)?.into_iter().filter(|name| is_meant(name));
    let (mut num_files, mut num_bytes) = (0, 0);
    for name in names {
        match storage.file_len(&path.join(name)) {
            // A checkpoint or merge has removed the file since it was listed.
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {}
            // A reader works without `LOCK`. A link or a FIFO in its place holds no bytes of the database.
            Err(anden_base::Error::NotRegular { .. }) => {}
            len => (num_files, num_bytes) = (num_files + 1, num_bytes + len?),
        }
    }
    Ok((num_files, num_bytes))
}

/// Creates an empty store.
fn create(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions) -> Result<Store> {
    let builder = Store::create(storage, path, options)?;
    let dictionary = builder.write_dictionary(match options.keys {
        KeyScheme::Dense => DictionaryKeys::Dense(0),
        KeyScheme::Integer => DictionaryKeys::Integers { by_id: &[], sorted: None },
        KeyScheme::String => DictionaryKeys::Strings { text: &[], offsets: &[0], sorted: None },
    })?;
    let base = builder.base_writer(0)?.finish()?;
    Ok(builder.publish(base, dictionary, 0, None)?)
}

/// Refuses a missing path with a hint how to create a database.
fn require(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.exists(path)? {
        true => Ok(()),
        false => Err(Error::NotFound { path: path.to_owned() }),
    }
}
