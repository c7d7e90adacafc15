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
//! To become a snapshot, the changes are *frozen*: what is committed from then on goes to a container of its
//! own, effective over snapshot and frozen changes together, and lies over the new snapshot as it is once that
//! is there.

mod apply;
mod background;
mod batch;
mod below;
mod checkpoint;
mod delta;
mod frozen;
mod keys;
mod levelled;
mod properties;
mod records;
mod update;
mod values;
mod version;
mod vertices;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use base::VertexId;
use base::parallel::Pool;
use lama::{GraphOptions, Side, Store, Underlay, View};
use terrace::Plane;

pub(crate) use background::Background;
pub(crate) use levelled::needs_levels;
pub use update::{Applied, Missing, NewValue, Update};

use self::batch::Batch;
use self::delta::Delta;
use self::frozen::Frozen;
use self::keys::NewKeys;
use self::properties::LiveProperties;
use self::version::LiveVersion;
use self::vertices::VertexHistory;
use crate::Result;

/// Vertices that may come before everything is prepared for more.
const SPARE_VERTICES: usize = 1 << 16;

/// What was committed since the newest snapshot.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Held by whoever makes a snapshot, so that one follows the other. It is taken before all others.
    snapshots: Mutex<()>,
    /// Held by whoever waits for `writer`: who commits again and again does not pass those that wait.
    queue: Mutex<()>,
    /// Held by whoever changes something. `None` until something is changed.
    writer: Mutex<Option<Writer>>,
    /// A frozen version is a snapshot now, or could not become one.
    settled: Condvar,
    /// What readers get; `None` while nothing lies over the newest snapshot.
    published: RwLock<Option<Arc<LiveVersion>>>,
    /// Of the last commit.
    epoch: AtomicU64,
}

/// What lies over the newest snapshot, and what was done about it since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveStats {
    /// The bytes that it takes in memory.
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
    /// Why the last of these failed, if it did: it is tried again.
    pub background_error: Option<String>,
}

/// The right to write.
pub(crate) struct Turn<'a> {
    live: &'a Live,
    writer: MutexGuard<'a, Option<Writer>>,
}

/// The right to make a snapshot while nobody else writes.
pub(crate) struct SnapshotTurn<'a> {
    _turn: Turn<'a>,
    _order: MutexGuard<'a, ()>,
}

/// The changes, and what they are made with.
#[derive(Debug)]
struct Writer {
    delta: Delta,
    /// Room for the arcs of a batch.
    batch: Batch,
    underlay: Arc<Underlay>,
    /// What takes its place when the frozen version is a snapshot; learns what is touched meanwhile.
    next_underlay: Option<Arc<Underlay>>,
    /// What lies between the snapshot and the delta, keys and vertices here.
    frozen: Option<Frozen>,
    keys: Arc<NewKeys>,
    vertices: Arc<VertexHistory>,
    properties: LiveProperties,
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
        let order = lock(&self.snapshots);
        let mut turn = self.turn();
        turn.settle(store, None)?;
        Ok(SnapshotTurn { _turn: turn, _order: order })
    }

    /// The graph with all changes; `None` where there are none.
    pub(crate) fn view(&self) -> Option<View> {
        // Only a pointer is copied under the lock.
        let newest = self.published.read().unwrap_or_else(PoisonError::into_inner).clone();
        newest.map(|newest| newest.view())
    }

    /// The bytes of changes that are in no snapshot, and of which nobody makes one.
    pub(crate) fn num_pending_bytes(&self) -> u64 {
        self.turn().num_pending_bytes()
    }

    /// What lies over the newest snapshot.
    pub(crate) fn stats(&self) -> LiveStats {
        let turn = self.turn();
        let Some(writer) = &*turn.writer else { return LiveStats::default() };
        let frozen = writer.frozen.as_ref();
        let versions = || frozen.map(|frozen| &frozen.version).into_iter().chain([&writer.newest]);
        LiveStats {
            delta_bytes: writer.num_bytes() + frozen.map_or(0, Frozen::num_bytes),
            added: versions().map(|version| version.num_edges_of(Plane::Out)).sum(),
            removed: versions().map(|version| version.num_edges_of(Plane::OutRemoved)).sum(),
            is_checkpoint_running: writer.is_being_written(),
            ..LiveStats::default()
        }
    }

    fn publish(&self, version: Option<Arc<LiveVersion>>) {
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = version;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turn<'_> {
    /// As [`Live::num_pending_bytes`].
    pub(crate) fn num_pending_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::num_pending_bytes)
    }

    /// Applies a batch: all of it, or nothing where an update is not right.
    ///
    /// # Errors
    /// A key or a weight that does not fit the graph; with [`Missing::Strict`], an update of what is not there;
    /// damage in the snapshot.
    pub(crate) fn apply(
        &mut self,
        store: &Store,
        updates: &[Update],
        missing: Missing,
        pool: &Pool,
    ) -> Result<Applied> {
        let writer = match &mut *self.writer {
            Some(writer) => writer,
            none => none.insert(Writer::new(store, self.live.epoch.load(Ordering::Relaxed))?),
        };
        let version = writer.apply(updates, missing, pool)?;
        self.live.epoch.store(version.epoch, Ordering::Relaxed);
        let applied = Applied {
            epoch: version.epoch,
            vertices: version.num_vertices as u64,
            edges: lama::Overlay::num_edges(&*version),
        };
        self.live.publish(Some(version));
        Ok(applied)
    }
}

impl Writer {
    /// Over the newest snapshot, or what is shown in its place, which is what was committed up to `epoch`.
    fn new(store: &Store, epoch: u64) -> Result<Self> {
        let options = store.options();
        let view = store.view()?;
        let vertex_bound = graph::Graph::vertex_bound(&view);
        let num_vertices = graph::Graph::num_vertices(&view);
        let underlay = Arc::new(Underlay::new(&view, vertex_bound + vertex_bound / 4 + SPARE_VERTICES));
        let mut delta = empty_delta(options, underlay.capacity())?;
        let keys = Arc::new(NewKeys::new(vertex_bound));
        let vertices = Arc::new(VertexHistory::new(vertex_bound));
        let properties = LiveProperties::new(&view);
        let newest = Arc::new(LiveVersion {
            epoch,
            underlay: Arc::clone(&underlay),
            frozen: None,
            delta: delta.publish(),
            keys: Arc::clone(&keys),
            vertices: Arc::clone(&vertices),
            properties: properties.clone(),
            vertex_bound,
            num_vertices,
        });
        let batch = Batch::new(options.weight_type);
        Ok(Self {
            delta,
            batch,
            underlay,
            next_underlay: None,
            frozen: None,
            keys,
            vertices,
            properties,
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

    /// From now on the list of `vertex` may differ from the snapshot's.
    fn touch(&self, side: Side, vertex: VertexId) {
        self.underlay.touch(side, vertex);
        if let Some(next) = &self.next_underlay {
            next.touch(side, vertex);
        }
    }

    /// Whether nothing was committed to what lies below the delta.
    fn is_empty(&self) -> bool {
        self.newest.epoch == self.epoch_below
    }

    /// What the delta takes, without what is frozen.
    fn num_bytes(&self) -> u64 {
        self.delta.num_bytes() + self.keys.num_bytes() + self.properties.history.num_bytes()
    }
}

/// Changes of vertices below `bound`: none yet.
fn empty_delta(options: &GraphOptions, bound: usize) -> Result<Delta> {
    let terrace_options = terrace::Options {
        direction: options.direction,
        in_lists: options.stores_in_lists(),
        ..terrace::Options::default()
    };
    let mut delta = Delta::new(options.weight_type, &terrace_options)?;
    delta.grow(bound)?;
    Ok(delta)
}
