//! How a live graph becomes a snapshot while it goes on changing.
//!
//! In constant time, the newest version is *frozen*: the delta, the new keys and the histories of vertices and
//! their values begin anew, empty, over snapshot and frozen version together. Then the frozen version is written as a
//! level, which takes long, and nobody waits for it. At last the new delta is laid over the new snapshot,
//! as it is: ids stay, and the new snapshot is what it lay over before. What is to be marked there as
//! touched is found out before anybody has to wait.
//!
//! Where the level cannot be written, the frozen version stays where it is, and becomes a snapshot of its
//! own when the next one is made. If nothing was committed meanwhile, it thaws, and nothing has happened.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use base::progress::{Progress, Silent};
use lama::{PAGE_VERTICES, Side, SnapshotInfo, Store, Underlay, View};

use super::checkpoint::write_empty_level;
use super::delta::Delta;
use super::keys::NewKeys;
use super::rows::RowVersion;
use super::version::LiveVersion;
use super::vertices::VertexHistory;
use super::{Live, Turn, Writer, empty_delta, lock};
use crate::Result;

/// A version that is to be a snapshot.
#[derive(Debug)]
pub(super) struct Frozen {
    pub(super) version: Arc<LiveVersion>,
    /// What made it, should it thaw.
    delta: Delta,
    epoch_below: u64,
    is_being_written: bool,
    /// It is a snapshot already, only nothing lies over that one yet.
    is_written: bool,
}

/// What is left of a writer, or of a part of it: it takes a while to give its memory back.
type Remains = (Option<Frozen>, Option<Writer>);

/// A frozen version that is being written; dropped, nobody writes it any more.
struct Writing<'a> {
    live: &'a Live,
    version: Arc<LiveVersion>,
    /// Whether nothing was committed since it was frozen.
    is_newest: bool,
}

impl Frozen {
    /// What it takes.
    pub(super) fn num_bytes(&self) -> u64 {
        let LiveVersion { keys, vertices, properties, edges, .. } = &*self.version;
        let history = vertices.num_bytes() + properties.history.num_bytes();
        self.delta.num_bytes() + keys.num_bytes() + history + edges.rows.num_bytes()
    }
}

impl Live {
    /// Makes a snapshot of what is committed, also where that is nothing new.
    ///
    /// # Errors
    /// The name is no name or taken; the disk failed. What is committed stays.
    pub(crate) fn checkpoint(&self, store: &Store, name: Option<&str>) -> Result<SnapshotInfo> {
        let _order = self.snapshot_order();
        match self.write_pending(store, name, &Silent)? {
            Some(snapshot) => Ok(snapshot),
            None => write_empty_level(store, name),
        }
    }

    /// Makes a snapshot of what is committed, where the newest one lacks anything; tells `progress` what it writes, and
    /// is written as slowly as that wants.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub(crate) fn checkpoint_pending(&self, store: &Store, progress: &dyn Progress) -> Result<Option<SnapshotInfo>> {
        let _order = self.snapshot_order();
        self.write_pending(store, None, progress)
    }

    /// Waits until nobody else makes a snapshot.
    pub(super) fn snapshot_order(&self) -> MutexGuard<'_, ()> {
        self.num_waiting.fetch_add(1, Ordering::Relaxed);
        let order = lock(&self.snapshots);
        self.num_waiting.fetch_sub(1, Ordering::Relaxed);
        order
    }

    /// Waits for the snapshot that is being made, if there is one, and hurries who makes it.
    pub(crate) fn wait_for_snapshot(&self) {
        drop(self.snapshot_order());
    }

    /// Whether anybody waits until the snapshot that is being made is there.
    pub(super) fn is_snapshot_awaited(&self) -> bool {
        self.num_waiting.load(Ordering::Relaxed) > 0
    }

    fn write_pending(
        &self,
        store: &Store,
        name: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Option<SnapshotInfo>> {
        store.check_name(name)?;
        loop {
            let mut turn = self.turn();
            // There may be no addresses for a second delta: everybody waits for the snapshot then.
            let Ok(Some(writing)) = turn.freeze() else { return turn.settle(store, name) };
            drop(turn);
            // What could not be written before is older than what this snapshot is to have.
            let name = name.filter(|_| writing.is_newest);
            let snapshot = writing.write(store, name, progress)?;
            let view = writing.prepare(store)?;
            writing.publish(&view);
            if writing.is_newest {
                return Ok(snapshot);
            }
        }
    }
}

impl Writing<'_> {
    /// Makes a snapshot of the frozen version, unless it is one; `None` then.
    fn write(&self, store: &Store, name: Option<&str>, progress: &dyn Progress) -> Result<Option<SnapshotInfo>> {
        if self.live.turn().frozen().is_some_and(|frozen| frozen.is_written) {
            return Ok(None);
        }
        let snapshot = self.version.write_level(store, name, progress)?;
        if let Some(frozen) = self.live.turn().frozen() {
            frozen.is_written = true;
        }
        self.live.trim_log(store);
        Ok(Some(snapshot))
    }

    /// Checks each page of the new snapshot that is not as before, so that the next commits need not wait for that. Damage
    /// is met again by the next reader of the page. Lists stay unread: they may be all over a file that is larger than
    /// memory.
    fn look_at(&self, view: &View) {
        let mut finder = view.finder();
        let mut last = None;
        for vertex in self.version.underlay.touched(Side::Out) {
            let page = vertex as usize / PAGE_VERTICES;
            if last.replace(page) != Some(page) {
                let _ = finder.check_page(vertex);
            }
        }
    }

    /// Makes the new snapshot ready to have laid over it what was committed meanwhile, and gives it.
    fn prepare(&self, store: &Store) -> Result<View> {
        let view = store.view()?;
        self.look_at(&view);
        // Where something is committed meanwhile, the next snapshot is not far.
        let next = Arc::new(Underlay::brief(&view, self.version.underlay.capacity()));
        let mut turn = self.live.turn();
        if let Some(writer) = turn.writer.as_mut().filter(|writer| writer.underlay.capacity() <= next.capacity()) {
            // What is touched from now on, both learn; what was touched before, the newest version has.
            writer.next_underlay = Some(Arc::clone(&next));
            let (newest, underlay, sides) = (Arc::clone(&writer.newest), Arc::clone(&writer.underlay), writer.sides());
            drop(turn);
            newest.touch_changed(&underlay, &next, sides);
        }
        Ok(view)
    }

    /// Lays what was committed meanwhile over the new snapshot.
    fn publish(&self, view: &View) {
        let mut turn = self.live.turn();
        let remains = turn.rest_on(view);
        drop(turn);
        drop(remains);
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut turn = self.live.turn();
        if let Some(writer) = &mut *turn.writer {
            writer.stop_writing();
        }
        self.live.settled.notify_all();
    }
}

impl<'a> Turn<'a> {
    fn frozen(&mut self) -> Option<&mut Frozen> {
        self.writer.as_mut()?.frozen.as_mut()
    }

    /// Freezes the newest version, or finds what is frozen; `None` where nothing is to become a snapshot, or not
    /// while others write.
    fn freeze(&mut self) -> Result<Option<Writing<'a>>> {
        let live = self.live;
        let Some(writer) = &mut *self.writer else { return Ok(None) };
        if writer.is_broken || (writer.frozen.is_none() && writer.is_empty()) {
            return Ok(None);
        }
        if writer.frozen.is_none() {
            writer.freeze()?;
            if let Some(log) = &live.log {
                log.rotate();
            }
            live.settled.notify_all();
        }
        let is_newest = writer.is_empty();
        let writing = writer.frozen.as_mut().map(|frozen| {
            frozen.is_being_written = true;
            Writing { live, version: Arc::clone(&frozen.version), is_newest }
        });
        Ok(writing)
    }

    /// Makes a snapshot of what is committed while everybody waits, where the newest one lacks anything; nothing lies
    /// over it then.
    ///
    /// # Errors
    /// The name is no name or taken; the disk failed. What is committed stays.
    pub(super) fn settle(&mut self, store: &Store, name: Option<&str>) -> Result<Option<SnapshotInfo>> {
        let mut snapshot = None;
        let is_empty = self.writer.as_ref().is_none_or(Writer::is_empty);
        if let Some(frozen) = self.frozen() {
            if !frozen.is_written {
                snapshot = Some(frozen.version.write_level(store, name.filter(|_| is_empty), &Silent)?);
                frozen.is_written = true;
            }
            self.rest_on(&store.view()?);
        }
        if let Some(writer) = self.writer.as_ref().filter(|writer| !writer.is_empty()) {
            snapshot = Some(writer.newest.write_level(store, name, &Silent)?);
        }
        *self.writer = None;
        self.live.publish(None);
        if snapshot.is_some() {
            self.live.trim_log(store);
        }
        Ok(snapshot)
    }

    /// Lays what is not frozen over `view`, the snapshot that has what is frozen.
    fn rest_on(&mut self, view: &View) -> Remains {
        let Some(writer) = &mut *self.writer else { return (None, None) };
        if writer.is_empty() && !writer.is_broken {
            self.live.publish(None);
            return (None, self.writer.take());
        }
        let frozen = writer.rest_on(view);
        self.live.publish(Some(Arc::clone(&writer.newest)));
        (frozen, None)
    }
}

impl Writer {
    pub(super) fn is_being_written(&self) -> bool {
        self.frozen.as_ref().is_some_and(|frozen| frozen.is_being_written)
    }

    /// What is not a snapshot yet and nobody makes one.
    pub(super) fn num_pending_bytes(&self) -> u64 {
        let frozen = self.frozen.as_ref().filter(|frozen| !frozen.is_being_written);
        self.num_bytes() + frozen.map_or(0, Frozen::num_bytes)
    }

    /// Cost: the same for every graph.
    fn freeze(&mut self) -> Result<()> {
        let fresh = empty_delta(self.underlay.view().options(), self.underlay.capacity())?;
        let version = Arc::clone(&self.newest);
        let delta = std::mem::replace(&mut self.delta, fresh);
        let epoch_below = std::mem::replace(&mut self.epoch_below, version.epoch);
        self.keys = Arc::new(NewKeys::new(self.vertex_bound));
        self.vertices = Arc::new(VertexHistory::new(self.vertex_bound));
        self.properties.begin_history();
        self.edges = RowVersion::new(Arc::clone(&self.edges.schema), self.edges.next);
        self.newest = Arc::new(LiveVersion {
            frozen: Some(Arc::clone(&version)),
            delta: self.delta.publish(),
            keys: Arc::clone(&self.keys),
            vertices: Arc::clone(&self.vertices),
            properties: self.properties.clone(),
            edges: self.edges.clone(),
            ..LiveVersion::clone(&version)
        });
        self.frozen = Some(Frozen { version, delta, epoch_below, is_being_written: false, is_written: false });
        Ok(())
    }

    /// Nobody writes what is frozen any more: it thaws, if nothing lies over it.
    fn stop_writing(&mut self) {
        self.next_underlay = None;
        let can_thaw = self.is_empty() && !self.is_broken;
        if let Some(frozen) = &mut self.frozen {
            frozen.is_being_written = false;
        }
        if let Some(frozen) = self.frozen.take_if(|frozen| can_thaw && !frozen.is_written) {
            self.delta = frozen.delta;
            self.epoch_below = frozen.epoch_below;
            self.keys = Arc::clone(&frozen.version.keys);
            self.vertices = Arc::clone(&frozen.version.vertices);
            self.properties = frozen.version.properties.clone();
            self.edges = frozen.version.edges.clone();
            self.newest = frozen.version;
        }
    }

    /// Lays the delta over `view`, which has what is frozen; gives that back.
    fn rest_on(&mut self, view: &View) -> Option<Frozen> {
        let next = self.next_underlay.take().unwrap_or_else(|| {
            let next = Arc::new(Underlay::brief(view, self.underlay.capacity()));
            self.newest.touch_changed(&self.underlay, &next, self.sides());
            next
        });
        self.underlay = next;
        let mut newest = LiveVersion::clone(&self.newest);
        (newest.underlay, newest.frozen) = (Arc::clone(&self.underlay), None);
        self.newest = Arc::new(newest);
        self.frozen.take()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::ControlFlow;
    use std::path::Path;

    use base::VertexId;
    use base::parallel::Pool;
    use base::storage::FaultStorage;
    use graph::{Graph, InEdges};
    use lama::{DictionaryKeys, GraphOptions, KeyScheme};
    use testkit::Random;

    use super::*;
    use crate::live::Given;
    use crate::live::{Missing, Update};
    use crate::log::Durability;

    type Edges = BTreeSet<(VertexId, VertexId)>;

    /// What a live graph should show, and what views of before should.
    struct Scene {
        store: Store,
        pool: Pool,
        random: Random,
        edges: Edges,
        num_vertices: u32,
        held: Vec<(View, Edges)>,
    }

    impl Scene {
        fn new(seed: u64) -> Self {
            let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
            let builder = Store::create(Arc::new(FaultStorage::default()), Path::new("db"), options).unwrap();
            let dictionary = builder.write_dictionary(DictionaryKeys::Dense(0)).unwrap();
            let run = builder.run_writer(0).unwrap().finish().unwrap();
            let store = builder.publish(run, dictionary, 0, None).unwrap();
            let (pool, random) = (Pool::new(1).unwrap(), Random::new(seed));
            Self { store, pool, random, edges: Edges::new(), num_vertices: 3_000, held: Vec::new() }
        }

        /// Adds and removes some edges, perhaps far beyond the vertices that there are.
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
            let given = Given::Updates(&updates, Missing::Lenient);
            live.turn().apply(&self.store, given, Durability::Sync, &self.pool).unwrap();
            self.look(live, place);
        }

        fn look(&mut self, live: &Live, place: &str) {
            let view = live.view().unwrap_or_else(|| self.store.view().unwrap());
            assert!(edges(&view) == self.edges, "{place}");
            self.held.push((view, self.edges.clone()));
        }

        /// Commits, or not.
        fn step(&mut self, live: &Live, place: &str) {
            if self.random.below(4) > 0 { self.commit(live, place) } else { self.look(live, place) }
        }
    }

    /// The edges of a view, as both of its sides have them.
    fn edges(view: &View) -> Edges {
        let (mut out, mut inward) = (Edges::new(), Edges::new());
        for v in 0..view.vertex_bound() as VertexId {
            let _ = view.for_each_out_fragment(v, |targets| {
                out.extend(targets.iter().map(|&target| (v, target)));
                ControlFlow::Continue(())
            });
            let _ = view.for_each_in_fragment(v, |sources| {
                inward.extend(sources.iter().map(|&source| (source, v)));
                ControlFlow::Continue(())
            });
        }
        assert_eq!(out.len() as u64, view.num_edges());
        assert!(out == inward, "out-lists and in-lists differ");
        out
    }

    /// An underlay has room for whole pages, and so for more vertices than the delta that was made for the one before.
    #[test]
    fn vertices_that_only_the_next_underlay_has_room_for_come_too() {
        let (scene, live) = (Scene::new(0), Live::default());
        let add = |source: u64| {
            let updates = [Update::add_edge(source, 0)];
            let given = Given::Updates(&updates, Missing::Lenient);
            live.turn().apply(&scene.store, given, Durability::Sync, &scene.pool).unwrap();
        };
        let capacity = || live.turn().writer.as_ref().unwrap().underlay.capacity();
        add(100_000);
        let last = capacity() - 1;
        add(last as u64);
        let writing = live.turn().freeze().unwrap().unwrap();
        writing.write(&scene.store, None, &Silent).unwrap();
        add(1);
        let view = writing.prepare(&scene.store).unwrap();
        writing.publish(&view);
        drop(writing);
        assert!(capacity() > last + 1, "pages are whole");
        // What is frozen now has no room for it either, and who writes that sees that it is touched.
        let writing = live.turn().freeze().unwrap().unwrap();
        add(capacity() as u64 - 1);
        assert!(capacity() > last + 1);
        writing.write(&scene.store, None, &Silent).unwrap();
        writing.publish(&writing.prepare(&scene.store).unwrap());
        drop(writing);
        assert_eq!(live.view().unwrap().num_edges(), 4);
    }

    /// Lists that nobody had changed before: the new snapshot is told of them by whoever changes them, and those of before
    /// by whoever makes it.
    #[test]
    fn what_is_changed_while_a_snapshot_is_prepared_is_seen_over_it() {
        let (scene, live) = (Scene::new(0), Live::default());
        let add = |source: u64| {
            let updates = [Update::add_edge(source, source + 1)];
            let given = Given::Updates(&updates, Missing::Lenient);
            live.turn().apply(&scene.store, given, Durability::Sync, &scene.pool).unwrap();
        };
        add(10);
        let writing = live.turn().freeze().unwrap().unwrap();
        add(20);
        writing.write(&scene.store, None, &Silent).unwrap();
        add(30);
        let view = writing.prepare(&scene.store).unwrap();
        add(40);
        writing.publish(&view);
        drop(writing);
        add(50);
        let expected: Edges = [10, 20, 30, 40, 50].map(|source| (source, source + 1)).into();
        assert!(edges(&live.view().unwrap()) == expected);
    }

    /// Where the new snapshot could not be looked at, say.
    #[test]
    fn what_is_a_snapshot_already_is_not_made_one_again() {
        let settle = |live: &Live, store: &Store| drop(live.turn_at_snapshot(store).unwrap());
        let checkpoint = |live: &Live, store: &Store| drop(live.checkpoint_pending(store, &Silent).unwrap());
        for (way, make_next) in [settle as fn(&Live, &Store), checkpoint].into_iter().enumerate() {
            for is_followed in [false, true] {
                let place = format!("way {way}, {is_followed}");
                let (mut scene, live) = (Scene::new(way as u64), Live::default());
                scene.commit(&live, &place);
                let writing = live.turn().freeze().unwrap().unwrap();
                writing.write(&scene.store, None, &Silent).unwrap().unwrap();
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
                let frozen = scene.edges.clone();
                let writing = live.turn().freeze().unwrap().unwrap();
                scene.step(&live, "frozen");
                let snapshot = writing.write(&scene.store, None, &Silent).unwrap().unwrap();
                scene.step(&live, "written");
                let view = writing.prepare(&scene.store).unwrap();
                assert!(edges(&view) == frozen, "snapshot {}", snapshot.number);
                scene.step(&live, "prepared");
                writing.publish(&view);
                scene.step(&live, "published");
                drop(writing);
            }
            live.checkpoint(&scene.store, None).unwrap();
            scene.look(&live, "at the end");
            for (view, expected) in scene.held {
                assert!(edges(&view) == expected, "a view of before");
            }
        }
    }
}
