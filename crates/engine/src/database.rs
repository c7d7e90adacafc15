//! A database: a directory with a graph in it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use base::parallel::Pool;
use base::progress::{Progress, Silent};
use base::storage::{DiskStorage, MemoryStorage, Storage};
use graph::Graph;
use graph::formats::InputPath;
use lama::{
    Dictionary, DictionaryKeys, Diff, EdgeChanges, GraphOptions, KeyScheme, MergeReport, MergeScope, Retention,
    SnapshotInfo, Stats, Store, VerifyReport, View,
};

use crate::commit_queue::Commits;
use crate::live::{Background, Live, LiveStats, UpkeepHold};
use crate::load::{LoadOptions, LoadReport};
use crate::log::Durability;
use crate::{Error, Io, Result};

/// How often a reader looks again because a writer published meanwhile.
const MAX_ATTEMPTS: usize = 1000;

/// What errors call the place of a database in memory.
const IN_MEMORY: &str = "(in memory)";

/// An open database.
///
/// One handle at a time writes, in one process; any number read. A handle that goes makes a snapshot of what was
/// committed since the newest one; [`close`](Self::close) says whether that went well.
#[derive(Debug)]
pub struct Database {
    store: Arc<Store>,
    /// What was committed since the newest snapshot, and the right to write.
    live: Arc<Live>,
    background: Background,
    commits: Commits,
    /// Held while a reader looks for what is new: snapshot and log have to be of one moment.
    refreshing: Mutex<()>,
    /// When the handle goes, no snapshot is made of what is in memory: there is one, or no place for one.
    ends_silently: bool,
}

impl Database {
    /// Makes an empty database at `path`.
    ///
    /// # Errors
    /// Something is there already, the options contradict each other, or the disk failed; nothing
    /// is left behind.
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

    /// Makes an empty database in memory: everything works as with files, there are none, and it is gone with this
    /// handle and the views of it.
    ///
    /// # Errors
    /// The options contradict each other, or the system has no memory for it.
    pub fn in_memory(options: GraphOptions) -> Result<Self> {
        Ok(Self::without_log(create(Arc::new(MemoryStorage::default()), Path::new(IN_MEMORY), options)?))
    }

    /// Makes a database at `path` from `inputs`.
    ///
    /// Memory: what [`LoadOptions::memory`] allows; edges beyond it wait in scratch files in the new
    /// directory, vertices do not. The result is the same, bit for bit, at any number of threads and
    /// with any memory, but for its identity ([`LoadOptions::identity`]).
    ///
    /// # Errors
    /// Something is at `path` already, an input is not what it should be (with file and line), the
    /// vertices do not fit the memory, the disk failed, or the caller wanted it; nothing is left
    /// behind.
    pub fn load(
        path: &Path,
        inputs: &[InputPath],
        options: &LoadOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<(Self, LoadReport)> {
        Self::load_in(Arc::new(DiskStorage), path, inputs, options, pool, progress)
    }

    /// As [`load`](Self::load), to a database [in memory](Self::in_memory). Files are only read.
    ///
    /// Memory: that of the database, beside what [`LoadOptions::memory`] allows; and edges beyond that wait in memory
    /// too.
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
    /// There is none, another process writes, it is of a newer version, or it is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_in(Arc::new(DiskStorage), path)
    }

    /// As [`open`](Self::open), on any storage.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require(&*storage, path)?;
        Self::new(Store::open(storage, path)?)
    }

    /// Opens a database for reading, beside a writer if there is one.
    ///
    /// # Errors
    /// There is none, it is of a newer version, or it is damaged.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::open_read_only_with(path, Io::Mmap)
    }

    /// As [`open_read_only`](Self::open_read_only), with files read as `io` says.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only); with [`Io::Pread`], files that do not fit in the memory that is free,
    /// and reads that fail.
    pub fn open_read_only_with(path: &Path, io: Io) -> Result<Self> {
        Self::open_read_only_in(io.storage(), path)
    }

    /// As [`open_read_only`](Self::open_read_only), on any storage.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only).
    pub fn open_read_only_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let database = Self::open_snapshots_in(storage, path)?;
        database.catch_up()?;
        Ok(database)
    }

    /// Opens the snapshots of a database for reading, without what was committed since the newest of them: until
    /// [`refresh`](Self::refresh), which reads the log, [`view`](Self::view) shows that one. A long log takes no time,
    /// and one that is damaged is no obstacle.
    ///
    /// # Errors
    /// As [`open_read_only_with`](Self::open_read_only_with), but for the log.
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
        let live = Live::new(store.epoch());
        Ok(Self::with_live(store, live, true))
    }

    /// Sets the memory, in bytes, for pages of snapshots that are not in the files as they are; without it, a quarter of
    /// what is free when the database is opened. Pages beyond it are read in pieces, which takes longer. Best called
    /// before the first view.
    pub fn set_patch_memory(&self, num_bytes: u64) {
        self.store.set_patch_memory(num_bytes);
    }

    /// Sets the memory, in bytes, that merges and snapshots may take, what was committed since the newest snapshot
    /// included: of that a snapshot is made in the background the earlier the less there is. `None`: as much as is
    /// fastest. What does not fit is refused before it begins, with the number that does.
    pub fn set_memory(&self, num_bytes: Option<u64>) {
        self.store.set_memory(num_bytes);
        self.background.set_checkpoint_bytes(Some(crate::live::checkpoint_bytes(num_bytes)));
    }

    /// The directory; of a database in memory, what errors call it.
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

    /// The durability of commits that name none; at first [`Durability::Sync`].
    pub fn durability(&self) -> Durability {
        self.live.durability()
    }

    /// Sets the durability of commits that name none. A database in memory has none, whatever is set.
    pub fn set_durability(&self, durability: Durability) {
        self.live.set_durability(durability);
    }

    /// Shows what a writer in another process has committed since the database was opened for reading, or shown last; true
    /// where that is anything, or the log had to be read again from the newest snapshot on. A handle that writes knows
    /// already.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only); the handle then goes on showing what it did, or something younger.
    pub fn refresh(&self) -> Result<bool> {
        self.require_here()?;
        if !self.is_read_only() {
            return Ok(false);
        }
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.live.epoch();
        let has_changed = self.store.refresh()?;
        let was_read_again = self.catch_up()?;
        Ok(has_changed || was_read_again || self.live.epoch() != before)
    }

    /// Shows what the log has. Says whether what was read of the log before did not hold, and all of it was read again.
    ///
    /// A writer may make a snapshot of the log meanwhile and remove it. What counts is that the snapshot is still the
    /// newest once all files of the log are open: nothing of the log is gone then, and nothing that goes later is missed,
    /// however long reading takes.
    fn catch_up(&self) -> Result<bool> {
        let mut fault = None;
        for _ in 0..MAX_ATTEMPTS {
            self.live.rest_on_newest(&self.store);
            let log = self.live.hold_log(&self.store);
            if self.store.refresh()? {
                continue;
            }
            let Err(error) = log.and_then(|log| self.live.follow(&log, &self.store)) else {
                self.live.show_what_is_below();
                return Ok(fault.is_some());
            };
            // A record that is being written looks wrong in another place each time: damage stays.
            if fault.replace(error.to_string()).as_deref() == Some(error.to_string().as_str()) {
                return Err(error);
            }
        }
        self.live.follow(&self.live.hold_log(&self.store)?, &self.store)?;
        Ok(true)
    }

    /// Makes a snapshot of what is committed, also where that is nothing new.
    ///
    /// Cost: grows with what was committed since the newest snapshot. Nobody waits for it who reads or commits; what is
    /// committed meanwhile is in the log, and not in this snapshot.
    ///
    /// # Errors
    /// The handle cannot write, the name is no name or taken, the memory does not suffice
    /// ([`set_memory`](Self::set_memory)), or the disk failed: what is committed stays. Where
    /// something was committed meanwhile, the next snapshot is then preceded by one of what this one was to have.
    pub fn checkpoint(&self, name: Option<&str>) -> Result<SnapshotInfo> {
        self.require_writer()?;
        self.live.require_memory(&self.store)?;
        let snapshot = self.live.checkpoint(&self.store, name)?;
        self.background.has_succeeded();
        Ok(snapshot)
    }

    /// As [`checkpoint`](Self::checkpoint), without a name, where the newest snapshot lacks anything; `None` otherwise.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn checkpoint_pending(&self) -> Result<Option<SnapshotInfo>> {
        self.require_writer()?;
        let snapshot = self.live.checkpoint_pending(&self.store, &Silent)?;
        self.background.has_succeeded();
        Ok(snapshot)
    }

    /// Sets how many bytes of changes are in memory when a snapshot is made of them in the background; at first 64 MB.
    /// One is also made once the log has sixteen times as many, of changes that take hardly any memory. Where changes come
    /// so fast that it would always be making one, it makes them of four times as many bytes, or of six if it falls
    /// behind. Three times as many may be added while one is written: who commits more waits. `None`: snapshots are made
    /// only when they are asked for, and nobody waits.
    pub fn set_checkpoint_bytes(&self, num_bytes: Option<u64>) {
        self.background.set_checkpoint_bytes(num_bytes);
    }

    /// Sets how many bytes a second the background writes at most, such snapshots and the merges that follow them
    /// together; at first 100 MB. `None`: as many as it can. A snapshot does not keep to it while somebody waits for it
    /// (an append, another snapshot, the end of the handle), nor where commits come so fast that they might: nobody
    /// commits later because of it.
    pub fn set_background_write_rate(&self, bytes_per_second: Option<u64>) {
        self.background.set_write_rate(bytes_per_second);
    }

    /// What is committed and in memory only, and what is done about it.
    pub fn live_stats(&self) -> LiveStats {
        let report = self.background.report();
        LiveStats {
            automatic_checkpoints: report.num_checkpoints,
            automatic_merges: report.num_merges,
            background_write_rate: self.background.write_rate(),
            background_bytes: report.num_bytes,
            background_pauses: report.num_pauses,
            background_error: report.error.map(|error| error.to_string()),
            ..self.live.stats()
        }
    }

    /// The epoch of the last commit.
    pub fn epoch(&self) -> u64 {
        self.live.epoch()
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

    /// Ends what works in the background, and makes a snapshot of what the newest one lacks. Dropping the handle does
    /// the same, but cannot say whether it went well.
    ///
    /// # Errors
    /// The disk failed: what was committed since the newest snapshot is in the log, as far as it was durable.
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    /// A handle on a store, and on what its log has.
    fn new(store: Store) -> Result<Self> {
        let live = Live::open(&store)?;
        let database = Self::with_live(store, live, false);
        database.background.has_pending(database.live.num_pending_bytes());
        Ok(database)
    }

    /// A handle on a store that is gone with it: nothing is logged, and nothing kept before.
    fn without_log(store: Store) -> Self {
        let live = Live::new(store.epoch());
        Self::with_live(store, live, true)
    }

    fn with_live(store: Store, live: Live, ends_silently: bool) -> Self {
        let (store, live) = (Arc::new(store), Arc::new(live));
        let background = Background::new(Arc::clone(&store), Arc::clone(&live));
        Self { store, live, background, commits: Commits::default(), refreshing: Mutex::default(), ends_silently }
    }

    fn finish(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.ends_silently, true) || self.store.is_read_only() {
            return Ok(());
        }
        self.require_here()?;
        self.background.stop();
        self.live.checkpoint_pending(&self.store, &Silent).map(|_| ())
    }

    /// The graph with everything that is committed.
    ///
    /// # Errors
    /// Damage that was met before.
    pub fn view(&self) -> Result<View> {
        self.require_here()?;
        match self.live.view() {
            Some(view) => Ok(view),
            None => Ok(self.store.view()?),
        }
    }

    /// The graph at a snapshot.
    ///
    /// # Errors
    /// There is none with this number, or it was dropped; damage in the files that it needs.
    pub fn snapshot(&self, number: u32) -> Result<View> {
        self.require_here()?;
        Ok(self.store.snapshot(number)?)
    }

    /// The number of the newest snapshot; `None` where there is none.
    pub fn newest_number(&self) -> Option<u32> {
        self.store.newest_number()
    }

    /// The number of the snapshot with this name; `None` where there is none.
    pub fn snapshot_number(&self, name: &str) -> Option<u32> {
        self.store.number_of(name)
    }

    /// The edges that the snapshots of `window`, both ends included, added and its last one still has;
    /// of the oldest snapshot all edges count as added.
    ///
    /// Cost: reads the levels of the window, and keeps what they add in memory.
    ///
    /// # Errors
    /// An end is no snapshot, or the window is reversed; damage in the files that it needs.
    pub fn window(&self, window: RangeInclusive<u32>) -> Result<View> {
        self.require_here()?;
        Ok(self.store.window(*window.start(), *window.end())?)
    }

    /// What the newest snapshots added and the last of them has, `num_snapshots` of them or as many as there are but
    /// for the oldest, with the numbers of the first and the last of them; without any, a graph without edges.
    ///
    /// Cost: as [`window`](Self::window).
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn newest_window(&self, num_snapshots: u32) -> Result<(View, Option<RangeInclusive<u32>>)> {
        self.require_here()?;
        Ok(self.store.newest_window(num_snapshots)?)
    }

    /// What changes on the way from snapshot `from` to snapshot `to`, which may be the older one.
    ///
    /// # Errors
    /// One of them is no snapshot; damage in the files that it needs.
    pub fn diff(&self, from: u32, to: u32) -> Result<Diff> {
        self.require_here()?;
        Ok(self.store.diff(from, to)?)
    }

    /// The same in two parts: all but the edges, and the edges, which are read a page at a time.
    ///
    /// # Errors
    /// As [`diff`](Self::diff).
    pub fn diff_by_pages(&self, from: u32, to: u32) -> Result<(Diff, EdgeChanges)> {
        self.require_here()?;
        Ok((self.store.vertex_diff(from, to)?, self.store.edge_changes(from, to)?))
    }

    /// Folds runs, so that what was appended is read as fast as what was loaded. No snapshot is lost.
    ///
    /// Cost: with [`MergeScope::All`], that of writing the graph anew.
    ///
    /// # Errors
    /// The handle cannot write, the memory does not suffice ([`set_memory`](Self::set_memory)), the disk failed, or the
    /// caller wanted it: the database is as it was.
    pub fn merge(&self, scope: MergeScope, pool: &Pool, progress: &dyn Progress) -> Result<MergeReport> {
        self.require_writer()?;
        Ok(self.store.merge(scope, pool, progress)?)
    }

    /// Merges what is due, as is done in the background after each snapshot that is made there; nothing where somebody
    /// merges just now, or [holds](Self::hold_upkeep) others from it.
    ///
    /// # Errors
    /// As [`merge`](Self::merge), but for the memory: where half of it does not suffice, nothing is due.
    pub fn maintain(&self, pool: &Pool, progress: &dyn Progress) -> Result<Option<MergeReport>> {
        self.require_writer()?;
        let Some(_upkeep) = self.background.try_hold_upkeep() else { return Ok(None) };
        Ok(self.store.maintain(pool, progress)?)
    }

    /// Keeps merges of what is due from beginning until it is dropped, and waits for one that goes on: they take up to half
    /// of the memory ([`set_memory`](Self::set_memory)).
    pub fn hold_upkeep(&self) -> UpkeepHold<'_> {
        self.background.hold_upkeep()
    }

    /// Drops snapshots, all of them or none. What the newest changed stays committed: it is in the
    /// default view and goes into the next snapshot.
    ///
    /// # Errors
    /// One is not there, or none would be left; the handle cannot write, the disk failed, or the caller
    /// wanted it: the database is as it was.
    pub fn drop_snapshots(&self, numbers: &[u32], progress: &dyn Progress) -> Result<()> {
        self.require_writer()?;
        Ok(self.store.drop_snapshots(numbers, progress)?)
    }

    /// Sets which snapshots are kept, now and whenever a snapshot is made; returns those that it dropped.
    /// Snapshots with names and the newest one stay.
    ///
    /// # Errors
    /// The handle cannot write, or the disk failed.
    pub fn retain(&self, retention: Retention) -> Result<Vec<u32>> {
        self.require_writer()?;
        Ok(self.store.retain(retention)?)
    }

    /// Refuses in a forked child: locks may be held there by threads that are not there, and the right to write is the
    /// parent's.
    pub(crate) fn require_here(&self) -> Result<()> {
        match self.background.is_elsewhere() {
            true => Err(base::Error::Forked { path: self.path().to_owned() }.into()),
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

    /// Reads every byte and holds every structure against the others. The report counts the log as well, and what is
    /// committed beyond the newest snapshot.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self, pool: &Pool) -> Result<VerifyReport> {
        self.refresh()?;
        self.live.verify_log(&self.store)?;
        let mut report = self.store.verify(pool)?;
        let (view, (num_files, num_bytes)) = (self.view()?, self.log_files()?);
        report.num_files += num_files;
        report.num_bytes += num_bytes;
        (report.num_vertices, report.num_edges) = (view.num_vertices() as u64, view.num_edges());
        Ok(report)
    }

    /// The bytes of the log: of what is committed and in no snapshot, and room for more.
    ///
    /// # Errors
    /// The disk failed.
    pub fn log_bytes(&self) -> Result<u64> {
        Ok(self.log_files()?.1)
    }

    /// The bytes of all files in the directory: those of snapshots, the log with its room for more, the manifest, and
    /// what is being written.
    ///
    /// # Errors
    /// The disk failed.
    pub fn disk_bytes(&self) -> Result<u64> {
        Ok(self.files(|_| true)?.1)
    }

    /// How many files the log has, and their bytes.
    fn log_files(&self) -> Result<(usize, u64)> {
        self.files(|name| lama::log_number(name).is_some())
    }

    /// How many files there are with such names, and their bytes.
    fn files(&self, is_meant: impl Fn(&str) -> bool) -> Result<(usize, u64)> {
        let storage = self.store.storage();
        let names = storage.list(self.path())?.into_iter().filter(|name| is_meant(name));
        let (mut num_files, mut num_bytes) = (0, 0);
        for name in names {
            match storage.file_len(&self.path().join(name)) {
                // The writer has removed it since: a snapshot has what a log had, a merge what a snapshot had.
                Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {}
                // A reader does without `LOCK`, and a link or a FIFO in its place has no bytes of the database.
                Err(base::Error::NotRegular { .. }) => {}
                len => (num_files, num_bytes) = (num_files + 1, num_bytes + len?),
            }
        }
        Ok((num_files, num_bytes))
    }

    /// Sizes of what is on disk.
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Nobody is left to be told; who wants to know closes it.
        let _ = self.finish();
    }
}

/// Makes an empty store.
fn create(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions) -> Result<Store> {
    let builder = Store::create(storage, path, options)?;
    let dictionary = builder.write_dictionary(match options.keys {
        KeyScheme::Dense => DictionaryKeys::Dense(0),
        KeyScheme::Integer => DictionaryKeys::Integers { by_id: &[], sorted: None },
        KeyScheme::String => DictionaryKeys::Strings { text: &[], offsets: &[0], sorted: None },
    })?;
    let run = builder.run_writer(0)?.finish()?;
    Ok(builder.publish(run, dictionary, 0, None)?)
}

/// Says what to do where nothing is.
fn require(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.exists(path)? {
        true => Ok(()),
        false => Err(Error::NotFound { path: path.to_owned() }),
    }
}
