//! In how many parts a list lies, however often it was changed: what the base run has of it, what all levels together
//! add, what is live, and, while a snapshot is written, what is frozen for it.

use std::collections::BTreeSet;
use std::io::ErrorKind as IoKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use anden_engine::{AppendOptions, Changes, Database, GraphOptions, KeyScheme, MergeScope, Missing, Update};
use base::VertexId;
use base::parallel::Pool;
use base::progress::Silent;
use base::storage::FaultPlan;
use graph::{Graph, InEdges};
use testkit::Random;

use crate::hooked::HookedStorage;

const DB: &str = "db";
const NUM_VERTICES: u32 = 150_000;
/// One vertex leads to all but one in so many: its page has more entries than one that is written anew where little of
/// it changes, so that base run and levels stay apart.
const LEFT_OUT: u32 = 16;
/// That vertex, behind others of its page: the first lists that are read of a page are made one by one.
const HUB: u32 = 900;

/// How a list lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// What readers get, empty slices left out.
    pub num_slices: usize,
    /// The places where the entries begin anew: what comes from one source ascends from slice to slice.
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

/// A database, and what it should hold.
struct World {
    database: Arc<Database>,
    pool: Pool,
    random: Random,
    arcs: BTreeSet<(u32, u32)>,
    /// Whether edges go as well, which cuts slices in two.
    removes: bool,
    /// The bound.
    most_parts: usize,
    /// The most parts that any list had since somebody set it back.
    seen_parts: usize,
}

impl World {
    fn new(storage: &HookedStorage, seed: u64) -> Self {
        println!("seed {seed}");
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = Database::create_in(Arc::new(storage.clone()), Path::new(DB), options).unwrap();
        let (pool, random) = (Pool::new(1).unwrap(), Random::new(seed));
        let targets = (0..NUM_VERTICES).filter(|target| target % LEFT_OUT != 0);
        let arcs: BTreeSet<_> = targets.map(|target| (HUB, target)).collect();
        let base = arcs.iter().fold(Changes::default(), |base, &(u, v)| base.add_edge(u64::from(u), u64::from(v)));
        database.append_changes(&base, &AppendOptions::default(), &pool, &Silent).unwrap();
        database.merge(MergeScope::All, &pool, &Silent).unwrap();
        let database = Arc::new(database);
        Self { database, pool, random, arcs, removes: false, most_parts: 3, seen_parts: 0 }
    }

    /// Random edges that go, and then some that come, done here already.
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

    /// Reads every list of the newest view on both sides.
    fn look(&mut self, place: &str) {
        let view = self.database.view().unwrap();
        let (mut found, mut num_in_arcs) = (BTreeSet::new(), 0);
        for v in 0..view.vertex_bound() as VertexId {
            let (mut out, mut into) = (Shape::default(), Shape::default());
            let _ = view.for_each_out_fragment(v, |targets| {
                found.extend(targets.iter().map(|&target| (v, target)));
                out.see(targets)
            });
            let _ = view.for_each_in_fragment(v, |sources| {
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

    /// The most parts that any list has, and no fewer.
    fn expect(&mut self, num_parts: usize, place: &str) {
        self.seen_parts = 0;
        self.look(place);
        assert_eq!(self.seen_parts, num_parts, "{place}");
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap()
}

/// Before every call to the disk something is committed and all is read.
fn commit_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>, is_checkpoint: bool) {
    let world = Arc::clone(world);
    storage.set_hook(move |path| {
        let world = &mut *lock(&world);
        assert_eq!(world.database.live_stats().is_checkpoint_running, is_checkpoint);
        world.commit();
        world.look(&format!("before {}", path.display()));
    });
}

/// Makes a snapshot, while it is written of what is committed then.
fn checkpoint_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>) {
    let database = Arc::clone(&lock(world).database);
    (lock(world).most_parts, lock(world).seen_parts) = (4, 0);
    commit_meanwhile(storage, world, true);
    let made = database.checkpoint(None);
    storage.clear_hook();
    made.unwrap();
    let world = &mut *lock(world);
    assert_eq!(world.seen_parts, 4, "base run, levels, what is frozen, what is live");
    world.most_parts = 3;
    world.expect(3, "after a snapshot");
}

/// A level that cannot be written leaves what is frozen, and the next snapshot has it.
fn fail_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>) {
    let database = Arc::clone(&lock(world).database);
    lock(world).most_parts = 4;
    commit_meanwhile(storage, world, true);
    storage.disk.set_plan(FaultPlan::FailNext("level-", IoKind::StorageFull));
    let made = database.checkpoint(None);
    storage.clear_hook();
    assert!(made.unwrap_err().to_string().contains("level-"));
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
    assert_eq!((database.stats().runs, database.stats().levels > 6), (1, true));
    let world = &mut *lock(world);
    world.look("after a merge");
    database.checkpoint(None).unwrap();
    world.expect(2, "a level over a base run");
}

#[test]
fn a_list_lies_in_three_parts_and_in_four_while_a_snapshot_is_written() {
    let storage = HookedStorage::default();
    let world = Arc::new(Mutex::new(World::new(&storage, 3)));
    lock(&world).expect(1, "the base run");
    for removes in [false, true] {
        lock(&world).removes = removes;
        for _ in 0..6 {
            lock(&world).append();
            lock(&world).expect(2, "over levels");
        }
        let database = Arc::clone(&lock(&world).database);
        database.merge(MergeScope::Newest(4), &Pool::new(1).unwrap(), &Silent).unwrap();
        assert_eq!(database.stats().runs, 2, "a base run and a delta run");
        lock(&world).expect(2, "over a delta run");
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
