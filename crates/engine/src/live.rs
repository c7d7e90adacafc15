//! The live graph: what was committed since the newest snapshot, in memory.
//!
//! A [`Live`] holds the changes in a [`terrace`] container and lays them over the snapshot, version after
//! version. There is one writer at a time; readers get the version that was published last, and keep it.
//!
//! Every edge that is named is looked up in the snapshot once. What it is in the changes is then blind:
//! an edge to add is added, and no longer removed, unless the snapshot has it with the same weight; an
//! edge to remove is not added any more, and removed if the snapshot has it. So nothing is read from the
//! changes, of several updates of one edge the last counts, and the changes stay effective: they hold
//! nothing that the snapshot has.
//!
//! What is committed is in the log before it is published. Who opens the database after a crash lays what the log has over
//! the newest snapshot again.
//!
//! To become a snapshot, the changes are *frozen*: what is committed from then on goes to a container of its
//! own, effective over snapshot and frozen changes together, and lies over the new snapshot as it is once that
//! is there.

mod apply;
mod background;
mod batch;
mod below;
mod budget;
mod bulk;
mod change_set;
mod checkpoint;
mod delta;
mod edges;
mod entries;
mod frozen;
mod group;
mod keys;
mod logged;
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

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use base::MAX_VERTICES;
use base::parallel::Pool;
use lama::{GraphOptions, Side, Store, Underlay, View};
use terrace::Plane;

pub(crate) use apply::EdgeUpdate;
pub use background::UpkeepHold;
pub(crate) use background::{Background, checkpoint_bytes};
pub(crate) use change_set::{AddedRows, ChangeSet, VertexValues};
pub(crate) use checkpoint::{WrittenLevel, num_edges_of};
pub(crate) use group::Group;
pub(crate) use pairs::{EdgePairs, Given};
pub use update::{Applied, EdgeAction, EdgeId, Missing, NewValue, Update};
pub use values::sought_value;
pub(crate) use values::typed;

use self::apply::{Logging, Step};
use self::batch::Batch;
use self::delta::Delta;
use self::frozen::Frozen;
use self::keys::NewKeys;
use self::properties::LiveProperties;
use self::replay::Replay;
use self::rows::RowVersion;
use self::version::LiveVersion;
use self::vertices::VertexHistory;
use crate::Result;
use crate::log::{Bookmark, Durability, HeldLog, Log, LogOwner, LogPlace, LogStats, SharedDurability};
use crate::validation::{HUGE_BATCH, ReadKey, VersionTable};

/// Vertices that may come before everything is prepared for more.
const SPARE_VERTICES: usize = 1 << 16;
/// What an underlay takes for each vertex and side, whether anything changes or not.
const UNDERLAY_BITS: u64 = 10;
/// Of changes that take hardly any memory a snapshot is made once the log has so many times the bytes of those that do:
/// it is read when the database is opened.
const LOG_SHARE: u64 = 16;

/// What was committed since the newest snapshot.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Held by whoever makes a snapshot, so that one follows the other. It is taken before all others.
    snapshots: Mutex<()>,
    /// Those who wait for it.
    num_waiting: AtomicUsize,
    /// Held by whoever waits for `writer`: who commits again and again does not pass those that wait.
    queue: Mutex<()>,
    /// Held by whoever changes something. `None` until something is changed.
    writer: Mutex<Option<Writer>>,
    /// A frozen version is a snapshot now, or could not become one.
    settled: Condvar,
    /// What readers get; `None` while nothing lies over the newest snapshot.
    published: RwLock<Option<Arc<LiveVersion>>>,
    /// Of the last commit; readers see at least what it has.
    epoch: AtomicU64,
    /// What was changed when. It is taken after all others.
    stripes: Mutex<VersionTable>,
    /// Whether there was a transaction.
    notes_changes: AtomicBool,
    /// How often an index was made or dropped.
    index_changes: AtomicU64,
    /// What is committed is written there before; `None` where nothing outlives the handle.
    log: Option<Log>,
    /// Of commits that name none.
    durability: SharedDurability,
    /// Where the log ends of which this handle shows everything, and which another process writes.
    bookmark: Mutex<Option<Bookmark>>,
}

/// What lies over the newest snapshot, and what was done about it since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveStats {
    /// The bytes that its lists, keys and values take in memory. Its tables by vertex do not count: ten bits for each side,
    /// and up to four bytes for each of what is added and what is removed there.
    pub delta_bytes: u64,
    /// Edges that it adds. One whose weight changed is added and removed.
    pub added: u64,
    /// Edges that it removes.
    pub removed: u64,
    /// Whether a snapshot is being made of it.
    pub is_checkpoint_running: bool,
    /// Snapshots that were made because there was enough of it.
    pub automatic_checkpoints: u64,
    /// Merges that followed these.
    pub automatic_merges: u64,
    /// The bytes a second that both write at most; `None`: as many as they can.
    pub background_write_rate: Option<u64>,
    /// The bytes that both have written so far.
    pub background_bytes: u64,
    /// How often they waited to keep to that.
    pub background_pauses: u64,
    /// Why the last of these failed, if it did: it is tried again.
    pub background_error: Option<String>,
    /// The bytes of the log's files.
    pub log_bytes: u64,
    /// Commits that were logged since the database was opened.
    pub logged_commits: u64,
    /// Syncs of the log since then.
    pub log_syncs: u64,
    /// Why the log could not be written or synced the last time, if so: also where nobody waited for it. What was not
    /// written is tried again; after a sync that failed, the handle writes nothing more.
    pub log_error: Option<String>,
}

/// The right to write.
pub(crate) struct Turn<'a> {
    live: &'a Live,
    writer: MutexGuard<'a, Option<Writer>>,
}

/// The right to make a snapshot while nobody else writes.
pub(crate) struct SnapshotTurn<'a> {
    turn: Turn<'a>,
    _order: MutexGuard<'a, ()>,
}

/// The changes, and what they are made with.
#[derive(Debug)]
struct Writer {
    delta: Delta,
    /// Room for the arcs of a batch.
    batch: Batch,
    /// Room for the steps of a plan.
    steps: Vec<Step>,
    /// Room for what is logged of a batch.
    record: Vec<u8>,
    underlay: Arc<Underlay>,
    /// What takes its place when the frozen version is a snapshot; learns what is touched meanwhile.
    next_underlay: Option<Arc<Underlay>>,
    /// What lies between the snapshot and the delta, keys and vertices here.
    frozen: Option<Frozen>,
    keys: Arc<NewKeys>,
    vertices: Arc<VertexHistory>,
    properties: LiveProperties,
    edges: RowVersion,
    vertex_bound: usize,
    num_vertices: usize,
    /// Of the next version.
    epoch: u64,
    /// Of what lies below the delta.
    epoch_below: u64,
    /// Of the last whole batch.
    newest: Arc<LiveVersion>,
    /// A batch failed half way: what was published is whole, and nothing can follow it.
    is_broken: bool,
}

impl Live {
    /// Nothing was committed yet since a snapshot that has everything up to `epoch`.
    pub(crate) fn new(epoch: u64) -> Self {
        Self { epoch: AtomicU64::new(epoch), ..Self::default() }
    }

    /// What the log in the directory of `store` has beyond the newest snapshot, and from then on what is logged there.
    ///
    /// # Errors
    /// As [`Log::open`]; the log does not fit the graph.
    pub(crate) fn open(store: &Store) -> Result<Self> {
        let mut live = Self::new(store.epoch());
        let owner = LogOwner { storage: Arc::clone(store.storage()), id: store.id(), lock: Arc::clone(store.lock()?) };
        let mut replay = Replay::new(&live, store);
        let log = Log::open(owner, store.path(), store.epoch(), &mut |group| replay.add(group))?;
        replay.finish()?;
        live.log = Some(log);
        Ok(live)
    }

    /// The log in the directory of `store`, held open.
    ///
    /// # Errors
    /// As [`LogPlace::hold`].
    pub(crate) fn hold_log<'a>(&self, store: &'a Store) -> Result<HeldLog<'a>> {
        LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() }.hold()
    }

    /// Shows what the log of `store` has beyond what is shown, and writes nothing.
    ///
    /// # Errors
    /// As [`LogPlace::read`]; the log does not fit the graph.
    pub(crate) fn follow(&self, log: &HeldLog<'_>, store: &Store) -> Result<()> {
        let mut replay = Replay::new(self, store);
        let bookmark = lock(&self.bookmark).take();
        let read = log.read_on(self.epoch(), bookmark, &mut |group| replay.add(group));
        match read.and_then(|bookmark| replay.finish().map(|_| bookmark)) {
            Ok(bookmark) => {
                *lock(&self.bookmark) = bookmark;
                Ok(())
            }
            Err(error) => {
                // What was replayed of it is not shown, and nothing can follow it.
                self.turn().begin_anew(store);
                Err(error)
            }
        }
    }

    /// What follows is laid over the newest snapshot, where that has anything that the one below lacks. What is shown
    /// stays until something younger is.
    pub(crate) fn rest_on_newest(&self, store: &Store) {
        let mut turn = self.turn();
        let below = turn.writer.as_ref().map_or_else(|| self.epoch(), |writer| writer.epoch_below);
        if below < store.epoch() {
            turn.begin_anew(store);
            // The writer may have begun the log anew, too.
            *lock(&self.bookmark) = None;
        }
    }

    /// Shows the newest snapshot, where nothing was found that lies over it. The log was looked at while that was the
    /// newest: beside one that has become older meanwhile, the log of a younger one may lack, and what is shown have more.
    pub(crate) fn show_what_is_below(&self) {
        if self.turn().writer.is_none() {
            self.publish(None);
        }
    }

    /// Reads the whole log in the directory of `store`.
    ///
    /// # Errors
    /// As [`LogPlace::read`].
    pub(crate) fn verify_log(&self, store: &Store) -> Result<()> {
        // Nobody appends meanwhile.
        let _turn = self.turn();
        if let Some(log) = &self.log {
            log.write()?;
            let place = LogPlace { storage: &**store.storage(), directory: store.path(), id: store.id() };
            place.read(store.epoch(), &mut |_| Ok(()))?;
        }
        Ok(())
    }

    /// The durability of commits that name none.
    pub(crate) fn durability(&self) -> Durability {
        self.durability.get()
    }

    /// Sets it.
    pub(crate) fn set_durability(&self, durability: Durability) {
        self.durability.set(durability);
    }

    /// Whether commits are written to a log.
    pub(crate) fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// Removes what the log has of commits that are in a snapshot.
    fn trim_log(&self, store: &Store) {
        if let Some(log) = &self.log {
            log.remove_through(store.epoch());
        }
    }

    fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// How often an index was made or dropped, by the time of the views that are taken from now on.
    pub(crate) fn index_changes(&self) -> u64 {
        self.index_changes.load(Ordering::Acquire)
    }

    /// An index was made or dropped.
    pub(crate) fn count_index_change(&self) {
        self.index_changes.fetch_add(1, Ordering::Release);
    }

    /// The epoch of the last commit.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Waits until nobody else writes.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let _first = lock(&self.queue);
        Turn { live: self, writer: lock(&self.writer) }
    }

    /// The same, and until less has to wait to become a snapshot: behind one that is being written, changes of
    /// `most_bytes` at most, and where one `is_ordered`, twice as many.
    pub(crate) fn turn_to_commit(&self, most_bytes: Option<u64>, is_ordered: impl Fn() -> bool) -> Turn<'_> {
        let Turn { mut writer, .. } = self.turn();
        if let Some(most_bytes) = most_bytes {
            let must_wait = |writer: &mut Option<Writer>| {
                writer.as_ref().is_some_and(|writer| match writer.is_being_written() {
                    true => writer.num_bytes() > most_bytes,
                    false => writer.num_pending_bytes() / 2 > most_bytes && is_ordered(),
                })
            };
            writer = self.settled.wait_while(writer, must_wait).unwrap_or_else(PoisonError::into_inner);
        }
        Turn { live: self, writer }
    }

    /// Who waits to commit looks again whether that must be.
    fn look_again(&self) {
        // Whoever looked just now waits by the time that the turn is given.
        drop(self.turn());
        self.settled.notify_all();
    }

    /// Waits until nobody else writes; what was committed before is a snapshot of its own then.
    ///
    /// # Errors
    /// The disk failed: what is committed stays.
    pub(crate) fn turn_at_snapshot(&self, store: &Store) -> Result<SnapshotTurn<'_>> {
        let order = self.snapshot_order();
        let mut turn = self.turn();
        turn.settle(store, None)?;
        Ok(SnapshotTurn { turn, _order: order })
    }

    /// The graph with all changes; `None` where there are none.
    pub(crate) fn view(&self) -> Option<View> {
        self.newest().map(|newest| newest.view())
    }

    /// The bytes of changes that are in no snapshot, and of which nobody makes one; what changes to and fro takes none,
    /// but is in the log.
    pub(crate) fn num_pending_bytes(&self) -> u64 {
        self.turn().num_pending_bytes()
    }

    /// What lies over the newest snapshot.
    pub(crate) fn stats(&self) -> LiveStats {
        let turn = self.turn();
        let log = self.log.as_ref().map_or_else(LogStats::default, Log::stats);
        let of_log = LiveStats {
            log_bytes: log.num_bytes,
            logged_commits: log.num_groups,
            log_syncs: log.num_syncs,
            log_error: log.failure,
            ..LiveStats::default()
        };
        let Some(writer) = &*turn.writer else { return of_log };
        let frozen = writer.frozen.as_ref();
        let versions = || frozen.map(|frozen| &frozen.version).into_iter().chain([&writer.newest]);
        LiveStats {
            delta_bytes: writer.num_bytes() + frozen.map_or(0, Frozen::num_bytes),
            added: versions().map(|version| version.num_edges_of(Plane::Out)).sum(),
            removed: versions().map(|version| version.num_edges_of(Plane::OutRemoved)).sum(),
            is_checkpoint_running: writer.is_being_written(),
            ..of_log
        }
    }

    /// What was changed when.
    pub(crate) fn stripes(&self) -> MutexGuard<'_, VersionTable> {
        lock(&self.stripes)
    }

    /// The graph with all changes, and its epoch. From now on changes are noted.
    ///
    /// # Errors
    /// Damage that was met before.
    pub(crate) fn pin(&self, store: &Store) -> Result<(View, u64)> {
        if !self.notes_changes.load(Ordering::Acquire) {
            let _turn = self.turn();
            self.stripes().begin(self.epoch());
            self.notes_changes.store(true, Ordering::Release);
        }
        if let Some(newest) = self.newest() {
            return Ok((newest.view(), newest.epoch));
        }
        // Nothing lies over the snapshot: it has all that was committed before.
        loop {
            let epoch = store.epoch();
            let view = store.view()?;
            if store.epoch() == epoch {
                return Ok((view, epoch));
            }
        }
    }

    /// What readers get; `None` while nothing lies over the newest snapshot.
    fn newest(&self) -> Option<Arc<LiveVersion>> {
        // Only a pointer is copied under the lock.
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the last commit left, or the newest snapshot has.
    ///
    /// # Errors
    /// Damage that was met before.
    pub(crate) fn applied(&self, store: &Store) -> Result<Applied> {
        let epoch = self.epoch();
        match self.newest() {
            Some(newest) => Ok(newest.applied()),
            None => {
                let view = store.view()?;
                let (vertices, edges) = (graph::Graph::num_vertices(&view), graph::Graph::num_edges(&view));
                Ok(Applied { epoch, vertices: vertices as u64, edges })
            }
        }
    }

    /// A batch was committed: readers see it, and then the epoch says so.
    fn show(&self, version: Arc<LiveVersion>) {
        let epoch = version.epoch;
        self.publish(Some(version));
        self.set_epoch(epoch);
    }

    fn publish(&self, version: Option<Arc<LiveVersion>>) {
        let before = std::mem::replace(&mut *self.published.write().unwrap_or_else(PoisonError::into_inner), version);
        // Readers do not wait until it is taken apart.
        drop(before);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turn<'_> {
    /// Forgets everything that lies over the newest snapshot.
    fn begin_anew(&mut self, store: &Store) {
        *self.writer = None;
        self.live.set_epoch(store.epoch());
    }

    /// As [`Live::num_pending_bytes`].
    pub(crate) fn num_pending_bytes(&self) -> u64 {
        let Some(writer) = &*self.writer else { return 0 };
        let logged = self.live.log.as_ref().map_or(0, Log::kept_bytes);
        writer.num_pending_bytes().max(logged / LOG_SHARE)
    }

    /// Applies a batch: all of it, or nothing where an update is not right. Before anybody sees it, it is as durable as
    /// it is to be.
    ///
    /// # Errors
    /// A key or a weight that does not fit the graph; with [`Missing::Strict`], an update of what is not there;
    /// damage in the snapshot; the log cannot be written; what the disk holds is not known.
    pub(crate) fn apply(
        &mut self,
        store: &Store,
        given: Given<'_>,
        durability: Durability,
        pool: &Pool,
    ) -> Result<Applied> {
        store.require_sound()?;
        let live = self.live;
        let logging = Logging { log: live.log.as_ref(), durability };
        let writer = self.writer_over(store)?;
        let (epoch, mut stripes) = (writer.epoch, live.stripes());
        let is_noted = stripes.are_kept() && given.len() <= HUGE_BATCH;
        let mut note = |item| stripes.change(item, epoch);
        let changed: Option<&mut dyn FnMut(ReadKey)> = if is_noted { Some(&mut note) } else { None };
        let version = match writer.apply(given, logging, pool, changed) {
            Ok(version) => version,
            Err(error) => {
                stripes.take_back(epoch);
                return Err(error);
            }
        };
        if !is_noted {
            stripes.change_everything(epoch);
        }
        drop(stripes);
        let applied = version.applied();
        live.show(version);
        Ok(applied)
    }

    /// The changes; begun where nothing was changed yet.
    fn writer_over(&mut self, store: &Store) -> Result<&mut Writer> {
        match &mut *self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(Writer::new(store, self.live.epoch())?)),
        }
    }
}

impl Writer {
    /// Over the newest snapshot, or what is shown in its place, which is what was committed up to `epoch`.
    fn new(store: &Store, epoch: u64) -> Result<Self> {
        let view = store.view()?;
        let underlay = Underlay::new(&view, roomy(graph::Graph::vertex_bound(&view)));
        let capacity = underlay.capacity();
        Self::over(underlay, store, epoch, capacity)
    }

    /// The same, over the snapshot of `underlay`; the memtable has room for vertices below `capacity`.
    fn over(underlay: Underlay, store: &Store, epoch: u64, capacity: usize) -> Result<Self> {
        let (options, view) = (store.options(), underlay.view().clone());
        let view = &view;
        let vertex_bound = graph::Graph::vertex_bound(view);
        let num_vertices = graph::Graph::num_vertices(view);
        let underlay = Arc::new(underlay);
        let mut delta = empty_delta(options, capacity)?;
        let keys = Arc::new(NewKeys::new(vertex_bound));
        let vertices = Arc::new(VertexHistory::new(vertex_bound));
        let properties = LiveProperties::new(view);
        let edges = RowVersion::new(Arc::new(view.edge_properties().schema().clone()), store.next_row());
        let newest = Arc::new(LiveVersion {
            epoch,
            underlay: Arc::clone(&underlay),
            frozen: None,
            delta: delta.publish(),
            keys: Arc::clone(&keys),
            vertices: Arc::clone(&vertices),
            properties: properties.clone(),
            edges: edges.clone(),
            vertex_bound,
            num_vertices,
        });
        let batch = Batch::new(options);
        Ok(Self {
            delta,
            batch,
            steps: Vec::new(),
            record: Vec::new(),
            underlay,
            next_underlay: None,
            frozen: None,
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

    /// A version of what was applied so far, perhaps of half a batch: only [`Live::publish`] shows it.
    fn version(&mut self) -> Arc<LiveVersion> {
        Arc::new(LiveVersion {
            epoch: self.epoch,
            underlay: Arc::clone(&self.underlay),
            frozen: self.frozen.as_ref().map(|frozen| Arc::clone(&frozen.version)),
            delta: self.delta.publish(),
            keys: Arc::clone(&self.keys),
            vertices: Arc::clone(&self.vertices),
            properties: self.properties.clone(),
            edges: self.edges.clone(),
            vertex_bound: self.vertex_bound,
            num_vertices: self.num_vertices,
        })
    }

    /// The sides whose lists are kept.
    fn sides(&self) -> &'static [Side] {
        match self.underlay.view().options().stores_in_lists() {
            true => &[Side::Out, Side::In],
            false => &[Side::Out],
        }
    }

    /// Whether nothing was committed to what lies below the delta.
    fn is_empty(&self) -> bool {
        self.newest.epoch == self.epoch_below
    }

    /// What the delta takes, without what is frozen.
    fn num_bytes(&self) -> u64 {
        let history = self.vertices.num_bytes() + self.properties.history.num_bytes();
        self.delta.num_bytes() + self.keys.num_bytes() + history + self.edges.rows.num_bytes()
    }
}

/// So many vertices are prepared for where there are so many: a few more come without preparations.
fn roomy(bound: usize) -> usize {
    (bound + bound / 4 + SPARE_VERTICES).min(MAX_VERTICES.max(bound))
}

/// Changes of vertices below `bound`: none yet.
fn empty_delta(options: &GraphOptions, bound: usize) -> Result<Delta> {
    let terrace_options = terrace::Options {
        direction: options.direction,
        in_lists: options.stores_in_lists(),
        multigraph: options.multigraph,
        ..terrace::Options::default()
    };
    let mut delta = Delta::new(options, &terrace_options)?;
    delta.grow(bound.min(MAX_VERTICES))?;
    Ok(delta)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A mutex alone is taken by whoever has just given it back, most often.
    #[test]
    fn who_waits_for_its_turn_is_not_passed_again_and_again() {
        let (live, num_turns, is_done) = (Live::default(), AtomicUsize::new(0), AtomicBool::new(false));
        let mut passed: Vec<usize> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let _turn = live.turn();
                    num_turns.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let wait = |_| {
                let before = num_turns.load(Ordering::Relaxed);
                drop(live.turn());
                let after = num_turns.load(Ordering::Relaxed);
                while num_turns.load(Ordering::Relaxed) == after {
                    std::thread::yield_now();
                }
                after - before
            };
            let passed = (0..30).map(wait).collect();
            is_done.store(true, Ordering::Relaxed);
            passed
        });
        passed.sort_unstable();
        // One who is not scheduled in time counts turns of before it waits.
        assert_eq!(passed[15], 0, "{passed:?}");
    }
}
