//! Bound on the parts of a list after any number of changes: the base, all deltas together, the memtable, and during a
//! checkpoint the immutable memtable.

use std::collections::BTreeSet;
use std::io::ErrorKind as IoKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{AppendOptions, Changes, Engine, GraphOptions, KeyScheme, MergeScope, Missing, Update};
use anden_graph::{Direction, Graph};
use anden_testkit::{FaultPlan, Random};

use crate::hooked::HookedStorage;

const DB: &str = "db";
const NUM_VERTICES: u32 = 150_000;
/// The hub has edges to all but one in this many vertices. Its page is too large to be rewritten for few changes, so
/// base and deltas stay apart.
const LEFT_OUT: u32 = 16;
/// The hub. Lower vertices of its page come first, because the first lists read of a page are merged on demand.
const HUB: u32 = 900;

/// The layout of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// The number of slices that readers get, without empty ones.
    pub num_slices: usize,
    /// The number of ascending sequences. Slices of one source ascend from one to the next.
    pub num_parts: usize,
    last: Option<VertexId>,
}

impl Shape {
    /// Takes the next slice.
    pub fn see(&mut self, slice: &[VertexId]) -> ControlFlow<()> {
        if let (Some(&first), Some(&last)) = (slice.first(), slice.last()) {
            self.num_slices += 1;
            self.num_parts += usize::from(self.last.is_none_or(|before| before >= first));
            self.last = Some(last);
        }
        ControlFlow::Continue(())
    }
}

/// A database and its model.
struct World {
    database: Arc<Engine>,
    pool: Pool,
    random: Random,
    arcs: BTreeSet<(u32, u32)>,
    /// Whether edges are removed too, which cuts slices in two.
    removes: bool,
    /// The maximum of parts.
    most_parts: usize,
    /// The most parts of any list since the last reset.
    seen_parts: usize,
}

impl World {
    fn new(storage: &HookedStorage, seed: u64) -> Self {
        println!("seed {seed}");
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = Engine::create_in(Arc::new(storage.clone()), Path::new(DB), options).unwrap();
        let (pool, random) = (Pool::new(1).unwrap(), Random::new(seed));
        let targets = (0..NUM_VERTICES).filter(|target| target % LEFT_OUT != 0);
        let arcs: BTreeSet<_> = targets.map(|target| (HUB, target)).collect();
        let base = arcs.iter().fold(Changes::default(), |base, &(u, v)| base.add_edge(u64::from(u), u64::from(v)));
        database.append_changes(&base, &AppendOptions::default(), &pool, &Silent).unwrap();
        database.merge(MergeScope::All, &pool, &Silent).unwrap();
        let database = Arc::new(database);
        Self { database, pool, random, arcs, removes: false, most_parts: 3, seen_parts: 0 }
    }

    /// Random removals and additions, already applied to the model.
    fn changes(&mut self) -> [Vec<(u32, u32)>; 2] {
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let vertex = |random: &mut Random| random.below(NUM_VERTICES);
        for i in 0..if self.removes { 6 } else { 0 } {
            let from = if i % 2 == 0 { (HUB, vertex(&mut self.random)) } else { (vertex(&mut self.random), 0) };
            let known = self.arcs.range(from..).next().copied();
            removed.extend(known.filter(|arc| self.arcs.remove(arc)));
        }
        for i in 0..12 {
            added.push(match i % 4 {
                0 => (HUB, LEFT_OUT * self.random.below(NUM_VERTICES / LEFT_OUT)),
                1 => (vertex(&mut self.random), HUB),
                2 => (self.random.below(HUB), vertex(&mut self.random)),
                _ => (vertex(&mut self.random), vertex(&mut self.random)),
            });
        }
        self.arcs.extend(&added);
        [removed, added]
    }

    fn commit(&mut self) {
        let [removed, added] = self.changes();
        let removed = removed.iter().map(|&(u, v)| Update::remove_edge(u64::from(u), u64::from(v)));
        let added = added.iter().map(|&(u, v)| Update::add_edge(u64::from(u), u64::from(v)));
        let updates: Vec<_> = removed.chain(added).collect();
        self.database.apply(&updates, Missing::Strict, &self.pool).unwrap();
    }

    fn append(&mut self) {
        let [removed, added] = self.changes();
        let mut changes = Changes::default();
        for (u, v) in removed {
            changes = changes.remove_edge(u64::from(u), u64::from(v));
        }
        for (u, v) in added {
            changes = changes.add_edge(u64::from(u), u64::from(v));
        }
        self.database.append_changes(&changes, &AppendOptions::default(), &self.pool, &Silent).unwrap();
    }

    /// Reads every list of the newest view in both directions.
    fn look(&mut self, place: &str) {
        let view = self.database.view().unwrap();
        let (mut found, mut num_in_arcs) = (BTreeSet::new(), 0);
        for v in 0..view.vertex_bound() as VertexId {
            let (mut out, mut into) = (Shape::default(), Shape::default());
            let _ = view.for_each_fragment(Direction::Out, v, |targets| {
                found.extend(targets.iter().map(|&target| (v, target)));
                out.see(targets)
            });
            let _ = view.for_each_fragment(Direction::In, v, |sources| {
                num_in_arcs += sources.len();
                into.see(sources)
            });
            for shape in [out, into] {
                assert!(shape.num_parts <= self.most_parts, "{place}: vertex {v}: {shape:?}");
                assert!(self.removes || shape.num_slices <= self.most_parts, "{place}: vertex {v}: {shape:?}");
                self.seen_parts = self.seen_parts.max(shape.num_parts);
            }
        }
        view.check().unwrap();
        assert!(found == self.arcs && num_in_arcs == found.len(), "{place}: the parts are not the whole");
    }

    /// Requires that the list with the most parts has exactly `num_parts`.
    fn expect(&mut self, num_parts: usize, place: &str) {
        self.seen_parts = 0;
        self.look(place);
        assert_eq!(self.seen_parts, num_parts, "{place}");
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap()
}

/// Commits and reads everything before each call to the disk.
fn commit_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>, is_checkpoint: bool) {
    let world = Arc::clone(world);
    storage.set_hook(move |path| {
        let world = &mut *lock(&world);
        assert_eq!(world.database.live_stats().is_checkpoint_running, is_checkpoint);
        world.commit();
        world.look(&format!("before {}", path.display()));
    });
}

/// Makes a checkpoint with concurrent commits. Lists have at most four parts during it, and three after.
fn checkpoint_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>) {
    let database = Arc::clone(&lock(world).database);
    (lock(world).most_parts, lock(world).seen_parts) = (4, 0);
    commit_meanwhile(storage, world, true);
    let made = database.checkpoint(None);
    storage.clear_hook();
    made.unwrap();
    let world = &mut *lock(world);
    assert_eq!(world.seen_parts, 4, "base, deltas, immutable memtable, memtable");
    world.most_parts = 3;
    world.expect(3, "after a snapshot");
}

/// A delta that cannot be written leaves the immutable memtable, which the next checkpoint writes.
fn fail_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>) {
    let database = Arc::clone(&lock(world).database);
    lock(world).most_parts = 4;
    commit_meanwhile(storage, world, true);
    storage.disk.set_plan(FaultPlan::FailNext("delta-", IoKind::StorageFull));
    let made = database.checkpoint(None);
    storage.clear_hook();
    assert!(made.unwrap_err().to_string().contains("delta-"));
    let world = &mut *lock(world);
    world.commit();
    world.expect(4, "after a snapshot that could not be written");
    database.checkpoint(None).unwrap();
    world.most_parts = 3;
    world.expect(2, "once it was");
}

fn merge_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>) {
    let (database, pool) = (Arc::clone(&lock(world).database), Pool::new(1).unwrap());
    commit_meanwhile(storage, world, false);
    let merged = database.merge(MergeScope::All, &pool, &Silent);
    storage.clear_hook();
    merged.unwrap();
    assert_eq!((database.stats().bases, database.stats().deltas > 6), (1, true));
    let world = &mut *lock(world);
    world.look("after a merge");
    database.checkpoint(None).unwrap();
    world.expect(2, "a delta over a base");
}

#[test]
fn list_has_at_most_four_fragments() {
    let storage = HookedStorage::default();
    let world = Arc::new(Mutex::new(World::new(&storage, 3)));
    lock(&world).expect(1, "the base");
    for removes in [false, true] {
        lock(&world).removes = removes;
        for _ in 0..6 {
            lock(&world).append();
            lock(&world).expect(2, "over deltas");
        }
        let database = Arc::clone(&lock(&world).database);
        database.merge(MergeScope::Newest(4), &Pool::new(1).unwrap(), &Silent).unwrap();
        assert_eq!(database.stats().bases, 2, "a base and a merged delta");
        lock(&world).expect(2, "over a merged delta");
        lock(&world).commit();
        lock(&world).expect(3, "live");
        for _ in 0..3 {
            checkpoint_meanwhile(&storage, &world);
        }
        fail_meanwhile(&storage, &world);
        lock(&world).commit();
        merge_meanwhile(&storage, &world);
        database.merge(MergeScope::All, &Pool::new(1).unwrap(), &Silent).unwrap();
        lock(&world).expect(1, "merged");
    }
    lock(&world).database.verify(&Pool::new(1).unwrap()).unwrap();
}
