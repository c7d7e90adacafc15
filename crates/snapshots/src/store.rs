//! An open database directory.
//!
//! Readers take the current [`PublishedState`] and keep it. Writers work one at a time: each writes new files, replaces
//! the manifest, and installs a new state.

mod append;
mod counts;
mod deltas;
mod draft;
mod history;
mod index;
mod info;
mod kept_wal;
mod lease;
mod lock;
mod merge;
mod preparations;
mod reserve;
mod retention;
mod state;
mod steps;
mod work;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anden_base::storage::{LockHolder, Storage};
use parking_lot::{Mutex, RwLock};

use crate::dictionary::Dictionary;
use crate::manifest::Manifest;
use crate::options::{DatabaseId, GraphOptions, now};
use crate::view::SnapshotView;
use crate::{Error, Result, names};

pub use append::{DeltaChanges, NewRows};
pub use history::{EdgeChanges, SnapshotDiff};
pub use index::{IndexDraft, IndexInfo};
pub use info::{SnapshotInfo, StorageStats};
pub use lease::{Lease, LeaseInfo};
pub use lock::WriterLock;
pub use merge::{MergeReport, MergeScope};
pub use preparations::{StoredFormFile, StoredForms};
pub use steps::{SnapshotStep, SnapshotSteps};
pub use work::{RunningWork, WorkCounters, WorkProgress, WorkStats};

pub(crate) use append::check_arcs;
pub(crate) use counts::net_counts;
pub(crate) use deltas::SMALL_FILE_BYTES;
pub(crate) use draft::give_name;
pub(crate) use preparations::verify_preparations;
pub(crate) use state::{PublishedState, open_file};

/// Maximum length of a snapshot name, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// An open database directory. Any number of threads may use it: readers do not wait for writers, writers wait for each
/// other.
#[derive(Debug)]
pub struct Store {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    options: GraphOptions,
    state: RwLock<Arc<PublishedState>>,
    /// Present only in the handle of the one writer.
    writer: Option<Mutex<StoreWriterState>>,
    /// Held during a whole merge, and taken before `writer`. Other threads write while the base is written.
    merging: Mutex<()>,
    /// Number of threads that wait for `writer`.
    num_waiting: AtomicUsize,
    /// Bytes that a merge may take; `u64::MAX` means no limit.
    memory: AtomicU64,
    /// Time of new snapshots; `None` uses the clock.
    unix_time: Option<u64>,
    /// Present only in the writer's handle.
    lock: Option<Arc<WriterLock>>,
    on_retirement: OnceLock<RetirementHook>,
    merges: WorkCounters,
    checkpoints: WorkCounters,
    reserve: reserve::Reserve,
}

/// A function that runs when snapshots or files have left the database.
struct RetirementHook(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for RetirementHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RetirementHook")
    }
}

/// State of the writer, behind its mutex.
#[derive(Debug)]
pub(crate) struct StoreWriterState {
    /// Number of the next file. Numbers of failed attempts are not reused.
    next_file: u32,
    /// Final names of files that are written while other writers work (`Draft::set_aside`).
    aside: Vec<String>,
}

impl Store {
    /// Opens a database as its one writer, and removes the files that a crash left.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no database, [`anden_base::Error::Locked`] if another writer has it; another format
    /// version; damage in manifest, headers or indexes.
    pub fn open(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let storage = open_directory(&*storage, path)?;
        // Locked before the manifest is read, so that no other writer replaces it meanwhile.
        let lock = WriterLock::take(Arc::clone(&storage), path)?;
        let state = PublishedState::read_locked(&*storage, path, &lock)?;
        let mut needless = unknown_files(&*storage, path, &state.manifest)?;
        // Other files in the directory belong to the user, and stay.
        needless.retain(|name| names::is_ours(name));
        if !needless.is_empty() {
            // A killed writer may have renamed its manifest without syncing the directory. Files that only the older
            // manifest names must not go before the newer manifest is durable.
            storage.sync_dir(path)?;
            lock.check()?;
        }
        for name in needless {
            storage.remove_file(&path.join(name))?;
        }
        Ok(Self::with_state(storage, path, state, Some(Arc::new(lock))))
    }

    /// Opens a database for reading. Writes nothing and takes no lock. The handle shows the state at its opening until
    /// [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// As [`open`](Self::open), except for the lock.
    pub fn open_read_only(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let storage = open_directory(&*storage, path)?;
        // Without a lock, so files may vanish while they are opened.
        let state = PublishedState::read_beside_writer(&*storage, path)?;
        Ok(Self::with_state(storage, path, state, None))
    }

    pub(crate) fn with_state(
        storage: Arc<dyn Storage>,
        path: &Path,
        state: PublishedState,
        lock: Option<Arc<WriterLock>>,
    ) -> Self {
        let next_file = state.manifest.next_file;
        let writer = lock.as_ref().map(|_| Mutex::new(StoreWriterState { next_file, aside: Vec::new() }));
        let options = state.manifest.created.options;
        let state = RwLock::new(Arc::new(state));
        let merging = Mutex::default();
        Self {
            storage,
            path: path.to_owned(),
            options,
            state,
            writer,
            merging,
            num_waiting: AtomicUsize::new(0),
            memory: AtomicU64::new(u64::MAX),
            unix_time: None,
            lock,
            on_retirement: OnceLock::new(),
            merges: WorkCounters::default(),
            checkpoints: WorkCounters::default(),
            reserve: reserve::Reserve::default(),
        }
    }

    /// Sets a function that runs after snapshots or files have left the database. These leave by a merge, in the
    /// background too, by a drop, by retention, and when small files are packed. A refresh that shows one of these also
    /// runs it. Only the first call has an effect. The function must not call this store.
    pub fn on_retirement(&self, hook: impl Fn() + Send + Sync + 'static) {
        // A second hook would need a list, and there is one cache.
        let _ = self.on_retirement.set(RetirementHook(Box::new(hook)));
    }

    /// Sets the time of new snapshots, in seconds since 1970, in place of the clock, so that equal input gives equal
    /// bytes.
    #[must_use]
    pub fn with_unix_time(mut self, unix_time: Option<u64>) -> Self {
        self.unix_time = unix_time;
        self
    }

    /// Sets the memory, in bytes, for pages that views patch because deltas change them. The default is a quarter of
    /// the memory that is free when the database is opened. Pages beyond the limit are read in fragments, which is
    /// slower. Best called before the first view.
    pub fn set_patch_memory(&self, num_bytes: u64) {
        self.state().base.memory().set_limit(num_bytes);
    }

    /// Sets the memory, in bytes, that a merge may take in all; `None`: as much as is fastest. A merge that needs more
    /// is refused before it begins, with the number that it needs.
    pub fn set_memory(&self, num_bytes: Option<u64>) {
        self.memory.store(num_bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The memory, in bytes, that a merge may take; `None`: as much as is fastest.
    pub fn memory(&self) -> Option<u64> {
        Some(self.memory.load(Ordering::Relaxed)).filter(|&limit| limit != u64::MAX)
    }

    /// Shows what a writer in another process has published since; returns whether anything changed. The writer's own
    /// handle is always current.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only), and [`Error::Replaced`] if the directory holds no newer state of
    /// this database. The handle then keeps showing the old state.
    pub fn refresh(&self) -> Result<bool> {
        if self.writer.is_some() {
            return Ok(false);
        }
        let (old, new) = (self.state(), self.newest_state()?);
        let has_changed = !Arc::ptr_eq(&old, &new);
        if has_changed {
            self.set_state(new);
        }
        Ok(has_changed)
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        &self.options
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this handle cannot write.
    pub fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Identity of this database.
    pub fn id(&self) -> DatabaseId {
        self.state().manifest.created.id
    }

    /// The storage that holds the directory.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Epoch of the last commit in the newest version; 0 if there was no commit since the load.
    pub fn epoch(&self) -> u64 {
        self.state().manifest.epoch
    }

    /// Counters of merges through this handle.
    pub fn merges(&self) -> &WorkCounters {
        &self.merges
    }

    /// Counters of checkpoints, which the owner of the memtable reports here.
    pub fn checkpoints(&self) -> &WorkCounters {
        &self.checkpoints
    }

    /// Refuses to write if the content of the disk is unknown after an earlier write, or is no longer this writer's.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Displaced`].
    pub fn require_sound(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), |lock| lock.require_sound())
    }

    /// The process that writes the database, if any does. Takes no lock.
    ///
    /// # Errors
    /// The disk failed.
    pub fn lock_holder(&self) -> Result<Option<LockHolder>> {
        Ok(self.storage.lock_holder(&self.path.join(names::LOCK))?)
    }

    /// The writer's lock. Every part that writes to the database checks and poisons it.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub fn lock(&self) -> Result<&Arc<WriterLock>> {
        self.lock.as_ref().ok_or_else(|| Error::ReadOnly { path: self.path.clone() })
    }

    /// The lock, after a check that the directory is as this writer left it.
    ///
    /// # Errors
    /// As [`WriterLock::check`]; the handle is read-only.
    fn check_lock(&self) -> Result<&WriterLock> {
        let lock = self.lock()?;
        lock.check()?;
        Ok(lock)
    }

    /// Checks whether a new snapshot can have this name. `None` always passes.
    ///
    /// # Errors
    /// [`Error::Input`]: the name is not valid, or a snapshot has it already.
    pub fn check_name(&self, name: Option<&str>) -> Result<()> {
        check_name(name, Some(&self.state().manifest))
    }

    /// The newest version of the graph: the newest snapshot, with the changes of younger snapshots that were dropped.
    /// Until the next write, all these views share their verified pages.
    ///
    /// # Errors
    /// Damage that was met earlier, or in the parts of deltas that are read at once.
    pub fn view(&self) -> Result<SnapshotView> {
        self.state().newest(&self.path)
    }

    /// The graph at a snapshot.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; as [`view`](Self::view).
    pub fn snapshot(&self, number: u32) -> Result<SnapshotView> {
        let state = self.state();
        state.kept(number)?;
        if number == state.manifest.chain.newest().number {
            return state.newest(&self.path);
        }
        state.view(number, &self.path)
    }

    /// The edges that the snapshots `first` to `last` added and that `last` still has, as a graph. If `first` is the
    /// oldest snapshot, these are all edges of `last`. An edge whose weight changed counts as added.
    ///
    /// Cost: reads the deltas in between, and keeps their additions in memory.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; [`Error::Input`] if the window is reversed; damage.
    pub fn window(&self, first: u32, last: u32) -> Result<SnapshotView> {
        if first > last {
            let what = format!("the window {first}..{last} is reversed: its first snapshot is younger than its last");
            return Err(Error::Input(what));
        }
        // One state for all steps: a writer may publish meanwhile.
        let state = self.state();
        state.kept(first)?;
        state.kept(last)?;
        match state.manifest.chain.kept_before(first) {
            None => self.snapshot(last),
            Some(before) => self.added_between(&state, before, last),
        }
    }

    /// The window of the newest `num_snapshots` snapshots, without the oldest one, whose edges count as not added.
    /// Returns the numbers of its first and last snapshot too. An empty window is a graph without edges and `None`.
    ///
    /// Cost: as [`window`](Self::window).
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn newest_window(&self, num_snapshots: u32) -> Result<(SnapshotView, Option<RangeInclusive<u32>>)> {
        let state = self.state();
        let numbers: Vec<u32> = state.manifest.chain.kept().map(|version| version.number).collect();
        // The oldest snapshot never begins a window, because its edges count as not added.
        let (first, last) = (numbers.len().saturating_sub(num_snapshots as usize).max(1), numbers.len() - 1);
        let view = self.added_between(&state, numbers[first - 1], numbers[last])?;
        Ok((view, numbers.get(first).map(|&first| first..=numbers[last])))
    }

    fn added_between(&self, state: &PublishedState, before: u32, last: u32) -> Result<SnapshotView> {
        let deltas = state.deltas_between(before, last);
        SnapshotView::window(state.view_parts(last, &self.path)?, &deltas)
    }

    /// The keys of all vertices, removed ones included.
    pub fn dictionary(&self) -> Arc<Dictionary> {
        Arc::clone(&self.state().dictionary)
    }

    /// The newest state. A read-only handle looks for it in the directory, and may show an older one.
    ///
    /// # Errors
    /// A read-only handle: as [`refresh`](Self::refresh).
    pub(crate) fn newest_state(&self) -> Result<Arc<PublishedState>> {
        if self.writer.is_some() {
            return Ok(self.state());
        }
        // The handle would go on reading the old directory, so the name is checked.
        if self.storage.is_replaced()? {
            return Err(Error::Replaced { path: self.path.clone() });
        }
        let old = self.state();
        let new = PublishedState::read_newer(&*self.storage, &self.path, &old)?;
        Ok(new.map_or(old, Arc::new))
    }

    pub(crate) fn state(&self) -> Arc<PublishedState> {
        Arc::clone(&self.state.read())
    }

    fn set_state(&self, state: Arc<PublishedState>) {
        let old = std::mem::replace(&mut *self.state.write(), Arc::clone(&state));
        if let Some(RetirementHook(hook)) = self.on_retirement.get()
            && state.manifest.lacks_some_of(&old.manifest)
        {
            hook();
        }
        // Unmapping takes time, so it happens outside of the lock: readers need not wait for it.
        drop(old);
    }

    /// Time of a new snapshot, in seconds since 1970.
    fn time(&self) -> u64 {
        self.unix_time.unwrap_or_else(now)
    }
}

/// Checks the name of the first snapshot of a database.
///
/// # Errors
/// [`Error::Input`]: the name is not valid.
pub fn check_first_name(name: Option<&str>) -> Result<()> {
    check_name(name, None)
}

/// Checks a name for a snapshot.
pub(crate) fn check_name(name: Option<&str>, manifest: Option<&Manifest>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    // Snapshots are addressed by number or name, so a name must not look like a number. The empty name counts as one.
    let is_number = name.bytes().all(|b| b.is_ascii_digit());
    if is_number || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        let what = "a name is no number, has 1 to";
        let what = format!("{name:?} cannot name a snapshot: {what} {MAX_NAME_BYTES} bytes, and no control characters");
        return Err(Error::Input(what));
    }
    let holder =
        manifest.and_then(|manifest| manifest.chain.kept().find(|version| version.name.as_deref() == Some(name)));
    match holder {
        Some(version) => Err(Error::NameTaken { name: name.to_owned(), number: version.number }),
        None => Ok(()),
    }
}

/// Opens the directory of a database, and keeps the handle.
fn open_directory(storage: &dyn Storage, path: &Path) -> Result<Arc<dyn Storage>> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    // The open handle stays with this directory, even if another one takes over its name.
    let directory = storage.open_dir(path).map_err(|error| match error.io_kind() {
        Some(NotFound | NotADirectory) => Error::NotFound { path: path.to_owned(), hint: "" },
        _ => error.into(),
    })?;
    match is_database(&*directory, path)? {
        true => Ok(directory),
        false => Err(no_database(&*directory, path)?),
    }
}

/// Whether the directory at `path` has a database, damaged or not.
///
/// # Errors
/// The disk failed.
pub fn is_database(directory: &dyn Storage, path: &Path) -> Result<bool> {
    Ok(directory.exists(&path.join(names::MANIFEST))?)
}

/// The error for a directory without a database, which tells what it may be.
pub(crate) fn no_database(directory: &dyn Storage, path: &Path) -> Result<Error> {
    let found = directory.list(path)?;
    let hint = if found.iter().any(|name| name == names::BACKUP) {
        "; it is a backup: `anden restore` makes a database of it"
    } else if found.iter().any(|name| names::is_of_base(name)) {
        "; other files of a database are there: restore it from a backup"
    } else {
        ""
    };
    Ok(Error::NotFound { path: path.to_owned(), hint })
}

/// Names in a database directory that belong neither to the manifest nor to the WAL.
pub(crate) fn unknown_files(storage: &dyn Storage, path: &Path, manifest: &Manifest) -> Result<Vec<String>> {
    let known: std::collections::HashSet<&str> = manifest.files.iter().map(|file| &*file.name).collect();
    // Files of the WAL are in no manifest. The engine removes them itself.
    let is_of_log = |name: &String| name == names::LOG_MARK || names::log_number(name).is_some();
    let own = [names::MANIFEST, names::LOCK, names::LEASES, names::RESERVE];
    let is_other = |name: &String| own.contains(&&**name) || is_of_log(name);
    let is_known = |name: &String| is_other(name) || known.contains(&**name);
    Ok(storage.list(path)?.into_iter().filter(|name| !is_known(name)).collect())
}
