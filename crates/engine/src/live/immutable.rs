//! Checkpoints: the memtable becomes a snapshot while commits go on.
//!
//! In constant time, the memtable becomes *immutable*. A new, empty memtable, with new keys and histories, lies over
//! snapshot and immutable memtable together. The immutable memtable is then written as a delta, which takes long, but
//! no commit waits for it. At last the new memtable is laid over the new snapshot unchanged: ids stay, and the new
//! snapshot equals the versions that it lay over before. Dirty vertices are marked in the new overlay base before the
//! write guard is taken.
//!
//! If the delta cannot be written, the immutable memtable stays, and the next checkpoint makes a snapshot of it first.
//! If nothing was committed meanwhile, the immutable memtable becomes writable again, and nothing has happened.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anden_base::progress::{Progress, Silent};
use anden_snapshots::{Direction, OverlayBase, PAGE_VERTICES, SnapshotInfo, SnapshotTag, SnapshotView, Store};
use parking_lot::MutexGuard;

use super::checkpoint::write_empty_delta;
use super::delta::MemtableArcs;
use super::keys::NewKeys;
use super::rows::RowVersion;
use super::version::LiveVersion;
use super::vertices::VertexHistory;
use super::{Live, MemtableWriter, WriteGuard, empty_delta};
use crate::Result;

/// An immutable memtable: a version that is to become a snapshot.
#[derive(Debug)]
pub(super) struct ImmutableMemtable {
    pub(super) version: Arc<LiveVersion>,
    /// Its container, in case the memtable becomes writable again.
    delta: MemtableArcs,
    epoch_below: u64,
    is_being_written: bool,
    /// Whether it is a snapshot already, which the memtable does not lie over yet.
    is_written: bool,
}

/// Replaced parts of a writer, dropped outside the write guard because freeing their memory takes long.
type ReplacedMemtables = (Option<ImmutableMemtable>, Option<MemtableWriter>);

/// A running checkpoint of an immutable memtable; dropping it ends the checkpoint.
struct Writing<'a> {
    live: &'a Live,
    version: Arc<LiveVersion>,
    /// Whether no commit came since it became immutable.
    is_newest: bool,
}

impl ImmutableMemtable {
    /// Bytes in memory.
    pub(super) fn num_bytes(&self) -> u64 {
        let LiveVersion { keys, vertices, properties, edges, .. } = &*self.version;
        let history = vertices.num_bytes() + properties.history.num_bytes();
        self.delta.num_bytes() + keys.num_bytes() + history + edges.rows.num_bytes()
    }
}

impl Live {
    /// Makes a snapshot of all commits, even if there are no new ones.
    ///
    /// # Errors
    /// The name is invalid or taken; the disk failed. Commits are kept.
    pub(crate) fn checkpoint(&self, store: &Store, tag: SnapshotTag<'_>) -> Result<SnapshotInfo> {
        let _order = self.snapshot_order();
        match self.write_pending(store, tag, &Silent)? {
            Some(snapshot) => Ok(snapshot),
            None => write_empty_delta(store, tag),
        }
    }

    /// Makes a snapshot if the newest one lacks commits. Reports written bytes to `progress`, which may throttle.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub(crate) fn checkpoint_pending(&self, store: &Store, progress: &dyn Progress) -> Result<Option<SnapshotInfo>> {
        let _order = self.snapshot_order();
        self.write_pending(store, SnapshotTag::default(), progress)
    }

    /// Waits for the order of snapshots.
    pub(super) fn snapshot_order(&self) -> MutexGuard<'_, ()> {
        self.num_waiting.fetch_add(1, Ordering::Relaxed);
        let order = self.snapshots.lock();
        self.num_waiting.fetch_sub(1, Ordering::Relaxed);
        order
    }

    /// Waits for a running checkpoint, which then ignores the write budget.
    pub(crate) fn wait_for_snapshot(&self) {
        drop(self.snapshot_order());
    }

    /// Whether a caller waits for the running checkpoint.
    pub(super) fn is_snapshot_awaited(&self) -> bool {
        self.num_waiting.load(Ordering::Relaxed) > 0
    }

    fn write_pending(
        &self,
        store: &Store,
        tag: SnapshotTag<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<SnapshotInfo>> {
        // A wrong name is refused before the memtable becomes immutable.
        store.check_name(tag.name)?;
        loop {
            let mut guard = self.write_guard();
            // There may be no address space for a second memtable: write under the write guard then.
            let Ok(Some(writing)) = guard.freeze() else { return guard.write_snapshot(store, tag) };
            drop(guard);
            // A snapshot that failed before holds older changes than the caller means: the tag goes to the next one.
            let tag = if writing.is_newest { tag } else { SnapshotTag::default() };
            let snapshot = writing.write(store, tag, progress)?;
            let view = writing.prepare(store)?;
            writing.publish(&view);
            if writing.is_newest {
                return Ok(snapshot);
            }
        }
    }
}

impl Writing<'_> {
    /// Writes the immutable memtable as a snapshot, unless that is done already; `None` then.
    fn write(&self, store: &Store, tag: SnapshotTag<'_>, progress: &dyn Progress) -> Result<Option<SnapshotInfo>> {
        // An earlier checkpoint may have written the snapshot, and failed afterwards.
        if self.live.write_guard().immutable().is_some_and(|immutable| immutable.is_written) {
            return Ok(None);
        }
        self.live.settle_log(store);
        let snapshot = self.version.write_delta(store, tag, progress)?;
        // From here on, a failure must not lead to a second snapshot of these commits.
        if let Some(immutable) = self.live.write_guard().immutable() {
            immutable.is_written = true;
        }
        // The manifest has these commits durably: their records may go.
        self.live.trim_log(store);
        Ok(Some(snapshot))
    }

    /// Verifies each page of the new snapshot that changed, so that the next commits need not. Damage is found again by
    /// the next reader of the page. Lists are not read: they may lie all over a file that is larger than memory.
    fn look_at(&self, view: &SnapshotView) {
        let mut finder = view.finder();
        let mut last = None;
        for vertex in self.version.overlay_base.dirty(Direction::Out) {
            let page = vertex as usize / PAGE_VERTICES;
            if last.replace(page) != Some(page) {
                let _ = finder.check_page(vertex);
            }
        }
    }

    /// Prepares the overlay base of the new snapshot for the commits that came meanwhile. Returns the snapshot's view.
    fn prepare(&self, store: &Store) -> Result<SnapshotView> {
        let view = store.view()?;
        self.look_at(&view);
        // If commits came meanwhile, the next checkpoint comes soon: this overlay base lives briefly.
        let next = Arc::new(OverlayBase::short_lived(&view, self.version.overlay_base.capacity()));
        let mut guard = self.live.write_guard();
        // A memtable that has outgrown `next` gets another overlay base when it is laid over the snapshot.
        if let Some(writer) = guard.writer.as_mut().filter(|writer| writer.overlay_base.capacity() <= next.capacity()) {
            // Commits from now on mark dirty vertices in both overlay bases; earlier ones are copied from the newest
            // version.
            writer.next_overlay_base = Some(Arc::clone(&next));
            let (newest, overlay_base, directions) =
                (Arc::clone(&writer.newest), Arc::clone(&writer.overlay_base), writer.directions());
            drop(guard);
            // Outside the write guard: commits go on while the marks are copied.
            newest.mark_changed(&overlay_base, &next, directions);
        }
        Ok(view)
    }

    /// Lays the new memtable over the new snapshot.
    fn publish(&self, view: &SnapshotView) {
        let mut guard = self.live.write_guard();
        let remains = guard.rest_on(view);
        drop(guard);
        drop(remains);
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut guard = self.live.write_guard();
        if let Some(writer) = &mut *guard.writer {
            writer.stop_writing();
        }
        self.live.ended.notify_all();
    }
}

impl<'a> WriteGuard<'a> {
    fn immutable(&mut self) -> Option<&mut ImmutableMemtable> {
        self.writer.as_mut()?.immutable.as_mut()
    }

    /// Makes the memtable immutable, or finds one that is. `None` if there is nothing to write, or only under the write
    /// guard.
    fn freeze(&mut self) -> Result<Option<Writing<'a>>> {
        let live = self.live;
        let Some(writer) = &mut *self.writer else { return Ok(None) };
        if writer.is_broken || (writer.immutable.is_none() && writer.is_empty()) {
            return Ok(None);
        }
        if writer.immutable.is_none() {
            writer.freeze()?;
            // The immutable memtable's records end a segment, so that segments can be removed as a whole.
            if let Some(log) = &live.log {
                log.rotate();
            }
            // The new memtable has room for commits that wait.
            live.ended.notify_all();
        }
        let is_newest = writer.is_empty();
        let writing = writer.immutable.as_mut().map(|immutable| {
            immutable.is_being_written = true;
            Writing { live, version: Arc::clone(&immutable.version), is_newest }
        });
        Ok(writing)
    }

    /// Makes a snapshot under the write guard, if the newest one lacks commits. Nothing lies over it afterwards.
    ///
    /// # Errors
    /// The name is invalid or taken; the disk failed. Commits are kept.
    pub(super) fn write_snapshot(&mut self, store: &Store, tag: SnapshotTag<'_>) -> Result<Option<SnapshotInfo>> {
        self.live.settle_log(store);
        let mut snapshot = None;
        let is_empty = self.writer.as_ref().is_none_or(MemtableWriter::is_empty);
        if let Some(immutable) = self.immutable() {
            if !immutable.is_written {
                let tag = if is_empty { tag } else { SnapshotTag::default() };
                snapshot = Some(immutable.version.write_delta(store, tag, &Silent)?);
                immutable.is_written = true;
            }
            self.rest_on(&store.view()?);
        }
        if let Some(writer) = self.writer.as_ref().filter(|writer| !writer.is_empty()) {
            snapshot = Some(writer.newest.write_delta(store, tag, &Silent)?);
        }
        // The snapshot has all commits by now.
        *self.writer = None;
        self.live.publish(None);
        if snapshot.is_some() {
            self.live.trim_log(store);
        }
        Ok(snapshot)
    }

    /// Lays the new memtable over `view`, the snapshot of the immutable one.
    fn rest_on(&mut self, view: &SnapshotView) -> ReplacedMemtables {
        let Some(writer) = &mut *self.writer else { return (None, None) };
        if writer.is_empty() && !writer.is_broken {
            // No commit came meanwhile, so the snapshot is the newest version.
            self.live.publish(None);
            return (None, self.writer.take());
        }
        let immutable = writer.rest_on(view);
        self.live.publish(Some(Arc::clone(&writer.newest)));
        (immutable, None)
    }
}

impl MemtableWriter {
    pub(super) fn is_being_written(&self) -> bool {
        self.immutable.as_ref().is_some_and(|immutable| immutable.is_being_written)
    }

    /// Bytes of changes in no snapshot and in no running checkpoint.
    pub(super) fn num_pending_bytes(&self) -> u64 {
        let immutable = self.immutable.as_ref().filter(|immutable| !immutable.is_being_written);
        self.num_bytes() + immutable.map_or(0, ImmutableMemtable::num_bytes)
    }

    /// Makes the memtable immutable. Cost: constant.
    fn freeze(&mut self) -> Result<()> {
        // First, because only this may fail: then the memtable is unchanged.
        let fresh = empty_delta(self.overlay_base.view().options(), self.overlay_base.capacity())?;
        let version = Arc::clone(&self.newest);
        let delta = std::mem::replace(&mut self.delta, fresh);
        let epoch_below = std::mem::replace(&mut self.epoch_below, version.epoch);
        self.keys = Arc::new(NewKeys::new(self.vertex_bound));
        self.vertices = Arc::new(VertexHistory::new(self.vertex_bound));
        self.properties.begin_history();
        self.edges = RowVersion::new(Arc::clone(&self.edges.schema), self.edges.next);
        self.newest = Arc::new(LiveVersion {
            immutable: Some(Arc::clone(&version)),
            delta: self.delta.publish(),
            keys: Arc::clone(&self.keys),
            vertices: Arc::clone(&self.vertices),
            properties: self.properties.clone(),
            edges: self.edges.clone(),
            ..LiveVersion::clone(&version)
        });
        self.immutable =
            Some(ImmutableMemtable { version, delta, epoch_below, is_being_written: false, is_written: false });
        Ok(())
    }

    /// Ends writing. The immutable memtable becomes writable again if nothing was committed over it.
    fn stop_writing(&mut self) {
        self.next_overlay_base = None;
        let is_writable_again = self.is_empty() && !self.is_broken;
        if let Some(immutable) = &mut self.immutable {
            immutable.is_being_written = false;
        }
        if let Some(immutable) = self.immutable.take_if(|immutable| is_writable_again && !immutable.is_written) {
            self.delta = immutable.delta;
            self.epoch_below = immutable.epoch_below;
            self.keys = Arc::clone(&immutable.version.keys);
            self.vertices = Arc::clone(&immutable.version.vertices);
            self.properties = immutable.version.properties.clone();
            self.edges = immutable.version.edges.clone();
            self.newest = immutable.version;
        }
    }

    /// Lays the memtable over `view`, which has the immutable one, and returns the latter.
    fn rest_on(&mut self, view: &SnapshotView) -> Option<ImmutableMemtable> {
        // None is prepared if the memtable outgrew it, or under the write guard.
        let next = self.next_overlay_base.take().unwrap_or_else(|| {
            let next = Arc::new(OverlayBase::short_lived(view, self.overlay_base.capacity()));
            self.newest.mark_changed(&self.overlay_base, &next, self.directions());
            next
        });
        self.overlay_base = next;
        let mut newest = LiveVersion::clone(&self.newest);
        (newest.overlay_base, newest.immutable) = (Arc::clone(&self.overlay_base), None);
        self.newest = Arc::new(newest);
        self.immutable.take()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::ControlFlow;
    use std::path::Path;

    use anden_base::VertexId;
    use anden_base::parallel::Pool;
    use anden_graph::Graph;
    use anden_snapshots::{DictionaryKeys, GraphOptions, KeyScheme};
    use anden_testkit::{FaultStorage, Random};

    use super::*;
    use crate::live::BatchInput;
    use crate::live::{Missing, Update};
    use crate::log::Durability;

    type Edges = BTreeSet<(VertexId, VertexId)>;

    /// A memtable with its expected edges, and earlier views with theirs.
    struct Scene {
        store: Store,
        pool: Pool,
        random: Random,
        edges: Edges,
        num_vertices: u32,
        held: Vec<(SnapshotView, Edges)>,
    }

    impl Scene {
        fn new(seed: u64) -> Self {
            let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
            let builder = Store::create(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
            let dictionary = builder.write_dictionary(DictionaryKeys::Dense(0)).unwrap();
            let base = builder.base_writer(0).unwrap().finish().unwrap();
            let store = builder.publish(base, dictionary, 0, None).unwrap();
            let (pool, random) = (Pool::new(1).unwrap(), Random::new(seed));
            Self { store, pool, random, edges: Edges::new(), num_vertices: 3_000, held: Vec::new() }
        }

        /// Adds and removes some edges, sometimes far beyond the vertex bound.
        fn commit(&mut self, live: &Live, place: &str) {
            if self.random.below(6) == 0 {
                self.num_vertices += 90_000;
            }
            let mut updates = Vec::new();
            for _ in 0..30 {
                let limit = if self.random.below(3) == 0 { self.num_vertices } else { 40 };
                let (u, v) = (self.random.below(limit), self.random.below(40));
                updates.push(if self.random.below(3) > 0 {
                    self.edges.insert((u, v));
                    Update::add_edge(u64::from(u), u64::from(v))
                } else {
                    self.edges.remove(&(u, v));
                    Update::remove_edge(u64::from(u), u64::from(v))
                });
            }
            let given = BatchInput::Updates(&updates, Missing::Lenient);
            live.write_guard().apply(&self.store, given, Durability::Sync, &self.pool).unwrap();
            self.look(live, place);
        }

        fn look(&mut self, live: &Live, place: &str) {
            let view = live.view().unwrap_or_else(|| self.store.view().unwrap());
            assert!(edges(&view) == self.edges, "{place}");
            self.held.push((view, self.edges.clone()));
        }

        /// Commits, or only checks.
        fn step(&mut self, live: &Live, place: &str) {
            if self.random.below(4) > 0 { self.commit(live, place) } else { self.look(live, place) }
        }
    }

    /// The edges of a view, by its out-lists and by its in-lists.
    fn edges(view: &SnapshotView) -> Edges {
        let (mut out, mut inward) = (Edges::new(), Edges::new());
        for v in 0..view.vertex_bound() as VertexId {
            let _ = view.for_each_fragment(Direction::Out, v, |targets| {
                out.extend(targets.iter().map(|&target| (v, target)));
                ControlFlow::Continue(())
            });
            let _ = view.for_each_fragment(Direction::In, v, |sources| {
                inward.extend(sources.iter().map(|&source| (source, v)));
                ControlFlow::Continue(())
            });
        }
        assert_eq!(out.len() as u64, view.num_edges());
        assert!(out == inward, "out-lists and in-lists differ");
        out
    }

    /// An overlay base has room for whole pages, so for more vertices than its memtable.
    #[test]
    fn vertices_beyond_old_overlay_base_survive_checkpoint() {
        let (scene, live) = (Scene::new(0), Live::default());
        let add = |source: u64| {
            let updates = [Update::add_edge(source, 0)];
            let given = BatchInput::Updates(&updates, Missing::Lenient);
            live.write_guard().apply(&scene.store, given, Durability::Sync, &scene.pool).unwrap();
        };
        let capacity = || live.write_guard().writer.as_ref().unwrap().overlay_base.capacity();
        add(100_000);
        let last = capacity() - 1;
        add(last as u64);
        let writing = live.write_guard().freeze().unwrap().unwrap();
        writing.write(&scene.store, SnapshotTag::default(), &Silent).unwrap();
        add(1);
        let view = writing.prepare(&scene.store).unwrap();
        writing.publish(&view);
        drop(writing);
        assert!(capacity() > last + 1, "pages are whole");
        // The immutable memtable has no room for the vertex, and its checkpoint sees the vertex as dirty.
        let writing = live.write_guard().freeze().unwrap().unwrap();
        add(capacity() as u64 - 1);
        assert!(capacity() > last + 1);
        writing.write(&scene.store, SnapshotTag::default(), &Silent).unwrap();
        writing.publish(&writing.prepare(&scene.store).unwrap());
        drop(writing);
        assert_eq!(live.view().unwrap().num_edges(), 4);
    }

    /// Lists without earlier changes: commits mark them in the new overlay base, and the checkpoint copies the marks of
    /// before.
    #[test]
    fn commits_during_checkpoint_show_over_its_snapshot() {
        let (scene, live) = (Scene::new(0), Live::default());
        let add = |source: u64| {
            let updates = [Update::add_edge(source, source + 1)];
            let given = BatchInput::Updates(&updates, Missing::Lenient);
            live.write_guard().apply(&scene.store, given, Durability::Sync, &scene.pool).unwrap();
        };
        add(10);
        let writing = live.write_guard().freeze().unwrap().unwrap();
        add(20);
        writing.write(&scene.store, SnapshotTag::default(), &Silent).unwrap();
        add(30);
        let view = writing.prepare(&scene.store).unwrap();
        add(40);
        writing.publish(&view);
        drop(writing);
        add(50);
        let expected: Edges = [10, 20, 30, 40, 50].map(|source| (source, source + 1)).into();
        assert!(edges(&live.view().unwrap()) == expected);
    }

    /// For example, if the new snapshot could not be verified.
    #[test]
    fn written_snapshot_is_not_made_twice() {
        let at_snapshot = |live: &Live, store: &Store| drop(live.write_guard_at_snapshot(store).unwrap());
        let checkpoint = |live: &Live, store: &Store| drop(live.checkpoint_pending(store, &Silent).unwrap());
        for (way, make_next) in [at_snapshot as fn(&Live, &Store), checkpoint].into_iter().enumerate() {
            for is_followed in [false, true] {
                let place = format!("way {way}, {is_followed}");
                let (mut scene, live) = (Scene::new(way as u64), Live::default());
                scene.commit(&live, &place);
                let writing = live.write_guard().freeze().unwrap().unwrap();
                writing.write(&scene.store, SnapshotTag::default(), &Silent).unwrap().unwrap();
                let num_snapshots = scene.store.snapshots().len();
                if is_followed {
                    scene.commit(&live, &place);
                }
                drop(writing);
                scene.look(&live, &place);
                make_next(&live, &scene.store);
                scene.look(&live, &place);
                assert_eq!(scene.store.snapshots().len(), num_snapshots + usize::from(is_followed), "{place}");
                scene.commit(&live, &place);
            }
        }
    }

    #[test]
    fn commits_between_the_steps_of_a_snapshot_stay() {
        for seed in 0..5 {
            println!("seed {seed}");
            let (mut scene, live) = (Scene::new(seed), Live::default());
            for _ in 0..4 {
                scene.commit(&live, "before");
                let immutable = scene.edges.clone();
                let writing = live.write_guard().freeze().unwrap().unwrap();
                scene.step(&live, "immutable");
                let snapshot = writing.write(&scene.store, SnapshotTag::default(), &Silent).unwrap().unwrap();
                scene.step(&live, "written");
                let view = writing.prepare(&scene.store).unwrap();
                assert!(edges(&view) == immutable, "snapshot {}", snapshot.number);
                scene.step(&live, "prepared");
                writing.publish(&view);
                scene.step(&live, "published");
                drop(writing);
            }
            live.checkpoint(&scene.store, SnapshotTag::default()).unwrap();
            scene.look(&live, "at the end");
            for (view, expected) in scene.held {
                assert!(edges(&view) == expected, "a view of before");
            }
        }
    }
}
