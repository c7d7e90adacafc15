//! A database directory.
//!
//! Readers take the current [`State`] and keep it; writers, one at a time, write new files, replace the manifest, and
//! put a new state in the place of the old one.

mod append;
mod counts;
mod draft;
mod history;
mod index;
mod info;
mod levels;
mod lock;
mod merge;
mod state;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use base::storage::Storage;

use crate::builder::StoreBuilder;
use crate::dictionary::Dictionary;
use crate::manifest::Manifest;
use crate::options::{DatabaseId, GraphOptions, Identity, Retention, now};
use crate::verify::{self, VerifyReport};
use crate::view::View;
use crate::{Error, Result, names};

pub use append::{LevelChanges, NewRows};
pub use history::{Diff, EdgeChanges};
pub use index::{IndexDraft, IndexInfo};
pub use info::{SnapshotInfo, Stats};
pub use lock::WriterLock;
pub use merge::{MergeReport, MergeScope};

pub(crate) use append::check_arcs;
pub(crate) use counts::net_counts;
pub(crate) use draft::give_name;
pub(crate) use levels::SMALL_FILE_BYTES;
pub(crate) use state::State;

/// The longest name of a snapshot, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// A database directory, open. Any number of threads may use it: readers wait for nobody, writers for each other.
#[derive(Debug)]
pub struct Store {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    options: GraphOptions,
    state: RwLock<Arc<State>>,
    /// Only the one writer of a database has it.
    writer: Option<Mutex<Writer>>,
    /// Held by who merges everything, which takes long: others write meanwhile. It is taken before `writer`.
    merging: Mutex<()>,
    /// Those who wait for `writer`.
    num_waiting: AtomicUsize,
    /// The bytes that merges may take; the largest number stands for no limit.
    memory: AtomicU64,
    /// The time of new snapshots; `None` asks the clock.
    unix_time: Option<u64>,
    /// Of the writer.
    lock: Option<Arc<WriterLock>>,
}

/// What a writer holds.
#[derive(Debug)]
struct Writer {
    /// The number of the next file: those of failed attempts are not used again either.
    next_file: u32,
    /// The names that files are to have which somebody writes while others write too.
    aside: Vec<String>,
}

impl Store {
    /// Begins a new database; nothing is visible before [`StoreBuilder::publish`].
    ///
    /// # Errors
    /// [`Error::Exists`] where something is already, except what a failed attempt left behind; another process creates
    /// the same database; the disk failed.
    pub fn create(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions) -> Result<StoreBuilder> {
        Self::create_as(storage, path, options, Identity::random())
    }

    /// As [`create`](Self::create), with an identity that is given: the same input gives the same bytes.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_as(
        storage: Arc<dyn Storage>,
        path: &Path,
        options: GraphOptions,
        identity: Identity,
    ) -> Result<StoreBuilder> {
        StoreBuilder::create(storage, path, options, identity)
    }

    /// Opens a database as its one writer; removes what a crash left.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`base::Error::Locked`] where another writer has it, another version,
    /// damage in manifest, headers or indexes.
    pub fn open(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let storage = open_directory(&*storage, path)?;
        let lock = WriterLock::take(Arc::clone(&storage), path)?;
        let state = State::read_locked(&*storage, path, &lock)?;
        let mut needless = unknown_files(&*storage, path, &state.manifest)?;
        needless.retain(|name| names::is_ours(name));
        if !needless.is_empty() {
            // The writer of the manifest may have been killed before it was certain to stay: what only the one before
            // names goes after it.
            storage.sync_dir(path)?;
            lock.check()?;
        }
        for name in needless {
            storage.remove_file(&path.join(name))?;
        }
        Ok(Self::with_state(storage, path, state, Some(Arc::new(lock))))
    }

    /// Opens a database for reading; writes nothing, needs no lock. It shows what was there when it was opened, until
    /// [`refresh`](Self::refresh), whatever a writer does meanwhile.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for the lock.
    pub fn open_read_only(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let storage = open_directory(&*storage, path)?;
        let state = State::read_beside_writer(&*storage, path)?;
        Ok(Self::with_state(storage, path, state, None))
    }

    pub(crate) fn with_state(
        storage: Arc<dyn Storage>,
        path: &Path,
        state: State,
        lock: Option<Arc<WriterLock>>,
    ) -> Self {
        let next_file = state.manifest.next_file;
        let writer = lock.as_ref().map(|_| Mutex::new(Writer { next_file, aside: Vec::new() }));
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
        }
    }

    /// Gives new snapshots this time, in seconds since 1970, in place of the clock's: the same input gives the same
    /// bytes.
    #[must_use]
    pub fn with_unix_time(mut self, unix_time: Option<u64>) -> Self {
        self.unix_time = unix_time;
        self
    }

    /// Sets the memory, in bytes, for pages that views write anew because levels change them; without it, a quarter of
    /// what is free when the database is opened. Pages beyond it are read in pieces, which takes longer. Best called
    /// before the first view.
    pub fn set_patch_memory(&self, num_bytes: u64) {
        self.state().base.memory().set_limit(num_bytes);
    }

    /// Sets the memory, in bytes, that a merge may take in all; `None`: as much as is fastest. A merge for which it
    /// does not suffice is refused, with the number that does, before it begins.
    pub fn set_memory(&self, num_bytes: Option<u64>) {
        self.memory.store(num_bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The memory, in bytes, that a merge may take; `None`: as much as is fastest.
    pub fn memory(&self) -> Option<u64> {
        Some(self.memory.load(Ordering::Relaxed)).filter(|&limit| limit != u64::MAX)
    }

    /// Shows what a writer in another process has published since; true where that is anything. A handle that writes
    /// knows already.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only), and [`Error::Replaced`] where the directory holds no younger state of
    /// this database; the handle then goes on showing what it did.
    pub fn refresh(&self) -> Result<bool> {
        if self.writer.is_some() {
            return Ok(false);
        }
        if self.storage.is_replaced()? {
            return Err(Error::Replaced { path: self.path.clone() });
        }
        let new = State::read_newer(&*self.storage, &self.path, &self.state())?;
        let has_changed = new.is_some();
        if let Some(new) = new {
            self.set_state(Arc::new(new));
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

    /// Whether this handle is not the writer's.
    pub fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// What tells this database from others.
    pub fn id(&self) -> DatabaseId {
        self.state().manifest.created.id
    }

    /// The disk that it is on.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The epoch of the last commit that the newest version has; 0 where there was none since the load.
    pub fn epoch(&self) -> u64 {
        self.state().manifest.epoch
    }

    /// Refuses to write where it is not known what the disk holds of what was written before.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Displaced`].
    pub fn require_sound(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), |lock| lock.require_sound())
    }

    /// The lock of the writer; all that write for the database check and poison it.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub fn lock(&self) -> Result<&Arc<WriterLock>> {
        self.lock.as_ref().ok_or_else(|| Error::ReadOnly { path: self.path.clone() })
    }

    /// The lock, where the directory is as this writer left it.
    ///
    /// # Errors
    /// As [`WriterLock::check`]; the handle only reads.
    fn check_lock(&self) -> Result<&WriterLock> {
        let lock = self.lock()?;
        lock.check()?;
        Ok(lock)
    }

    /// Which snapshots the database keeps by itself.
    pub fn retention(&self) -> Retention {
        self.state().manifest.retention
    }

    /// Whether a new snapshot can have this name; every one can have none.
    ///
    /// # Errors
    /// [`Error::Input`]: it is no name, or a snapshot has it already.
    pub fn check_name(&self, name: Option<&str>) -> Result<()> {
        check_name(name, Some(&self.state().manifest))
    }

    /// The newest version of the graph: the newest snapshot, and what a younger one that was dropped had changed.
    /// Until something is written, all these views share what was verified.
    ///
    /// # Errors
    /// Damage that was met before, or in the parts of levels that are read at once.
    pub fn view(&self) -> Result<View> {
        self.state().newest(&self.path)
    }

    /// The graph at a snapshot.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; as [`view`](Self::view).
    pub fn snapshot(&self, number: u32) -> Result<View> {
        let state = self.state();
        state.kept(number)?;
        if number == state.manifest.chain.newest().number {
            return state.newest(&self.path);
        }
        state.view(number, &self.path)
    }

    /// The edges that the snapshots `first` to `last` added and `last` has, as a graph; from the oldest snapshot on,
    /// all that `last` has. An edge whose weight changed is such an edge.
    ///
    /// Cost: the levels in between are read, and what they add is kept in memory.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; [`Error::Input`] where the window is reversed; damage.
    pub fn window(&self, first: u32, last: u32) -> Result<View> {
        if first > last {
            let what = format!("the window {first}..{last} is reversed: its first snapshot is younger than its last");
            return Err(Error::Input(what));
        }
        let state = self.state();
        state.kept(first)?;
        state.kept(last)?;
        match state.manifest.chain.kept_before(first) {
            None => self.snapshot(last),
            Some(before) => self.added_between(&state, before, last),
        }
    }

    /// What the newest snapshots added, `num_snapshots` of them or as many as there are but for the oldest: what that
    /// one has was not added. With the numbers of the first and the last; without any, a graph without edges.
    ///
    /// Cost: as [`window`](Self::window).
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn newest_window(&self, num_snapshots: u32) -> Result<(View, Option<RangeInclusive<u32>>)> {
        let state = self.state();
        let numbers: Vec<u32> = state.manifest.chain.kept().map(|version| version.number).collect();
        let (first, last) = (numbers.len().saturating_sub(num_snapshots as usize).max(1), numbers.len() - 1);
        let view = self.added_between(&state, numbers[first - 1], numbers[last])?;
        Ok((view, numbers.get(first).map(|&first| first..=numbers[last])))
    }

    fn added_between(&self, state: &State, before: u32, last: u32) -> Result<View> {
        let levels = state.levels_between(before, last);
        View::window(state.view_parts(last, &self.path)?, &levels)
    }

    /// The keys of all vertices, also of those that were removed.
    pub fn dictionary(&self) -> Arc<Dictionary> {
        Arc::clone(&self.state().dictionary)
    }

    /// Reads every byte again, whatever was verified before, and holds every structure against the others: every
    /// snapshot, too, is counted and compared with what the manifest says of it. A handle that does not write looks at
    /// what the directory holds now.
    ///
    /// Cost: reads every file twice. A handle that writes waits until a change that is under way is done; while files are
    /// read, others go on.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self, pool: &base::parallel::Pool) -> Result<VerifyReport> {
        let state = match self.hold() {
            // Nobody publishes before it is compared, and what is open then stays.
            Some(_held) => {
                let state = State::read(&*self.storage, &self.path)?;
                if state.manifest != self.state().manifest {
                    let manifest = self.path.join(names::MANIFEST);
                    return Err(base::Error::corrupt(&manifest, 0, "the manifest is not what was written last").into());
                }
                state
            }
            None => State::read_beside_writer(&*self.storage, &self.path)?,
        };
        verify::verify(&*self.storage, &self.path, &state, pool)
    }

    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_state(&self, state: Arc<State>) {
        let old = std::mem::replace(&mut *self.state.write().unwrap_or_else(PoisonError::into_inner), state);
        // Unmapping takes a while: readers need not wait for it.
        drop(old);
    }

    /// The time of a new snapshot.
    fn time(&self) -> u64 {
        self.unix_time.unwrap_or_else(now)
    }
}

/// Checks the name that a snapshot is to have.
pub(crate) fn check_name(name: Option<&str>, manifest: Option<&Manifest>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let is_number = name.bytes().all(|b| b.is_ascii_digit());
    if is_number || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        let what = "a name is no number, has 1 to";
        let what = format!("{name:?} cannot name a snapshot: {what} {MAX_NAME_BYTES} bytes, and no control characters");
        return Err(Error::Input(what));
    }
    let holder =
        manifest.and_then(|manifest| manifest.chain.kept().find(|version| version.name.as_deref() == Some(name)));
    match holder {
        Some(version) => Err(Error::Input(format!("snapshot {} has the name {name:?} already", version.number))),
        None => Ok(()),
    }
}

/// Opens the directory of a database, and holds it.
fn open_directory(storage: &dyn Storage, path: &Path) -> Result<Arc<dyn Storage>> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let not_found = || Error::NotFound { path: path.to_owned() };
    let directory = storage.open_dir(path).map_err(|error| match error.io_kind() {
        Some(NotFound | NotADirectory) => not_found(),
        _ => error.into(),
    })?;
    if directory.exists(&path.join(names::MANIFEST))? { Ok(directory) } else { Err(not_found()) }
}

/// The names in a database directory that neither the manifest knows nor the log has.
pub(crate) fn unknown_files(storage: &dyn Storage, path: &Path, manifest: &Manifest) -> Result<Vec<String>> {
    let known: std::collections::HashSet<&str> = manifest.files.iter().map(|file| &*file.name).collect();
    let is_of_log = |name: &String| name == names::LOG_MARK || names::log_number(name).is_some();
    let is_other = |name: &String| name == names::MANIFEST || name == names::LOCK || is_of_log(name);
    let is_known = |name: &String| is_other(name) || known.contains(&**name);
    Ok(storage.list(path)?.into_iter().filter(|name| !is_known(name)).collect())
}
