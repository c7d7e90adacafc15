//! Checkpoints with concurrent commits. Commits between any two calls to the disk are visible, and no disk failure
//! loses one.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, Changes, Engine, Error, GraphOptions, KeyScheme, MergeScope, Missing, Retention, SnapshotView,
    Update,
};
use anden_graph::{Graph, GraphKind, WeightType};
use anden_testkit::{FaultPlan, FaultStorage, Random, scaled};

use crate::hooked::HookedStorage;
use crate::live_model::{Model, NUM_KEYS, Truth, kinds, read};

const DB: &str = "db";

/// A database and its model.
struct World {
    database: Option<Arc<Engine>>,
    truth: Truth,
    random: Random,
    /// The model with the last failed commit, which may be on the disk.
    unknown: Option<Truth>,
    held: Vec<(SnapshotView, Model)>,
    pool: Pool,
    num_commits: usize,
}

impl World {
    fn new(storage: &HookedStorage, options: GraphOptions, seed: u64) -> Self {
        let database = Engine::create_in(Arc::new(storage.clone()), Path::new(DB), options).unwrap();
        Self {
            database: Some(Arc::new(database)),
            truth: Truth::new(options),
            random: Random::new(seed),
            unknown: None,
            held: Vec::new(),
            pool: Pool::new(1).unwrap(),
            num_commits: 0,
        }
    }

    fn database(&self) -> Arc<Engine> {
        Arc::clone(self.database.as_ref().unwrap())
    }

    /// Commits random updates.
    fn commit(&mut self, place: &str) {
        assert!(self.try_commit(place), "{place}: the disk is well");
    }

    /// Commits random updates; false if the disk failed. A failed commit is not in memory, but may be on the disk.
    fn try_commit(&mut self, place: &str) -> bool {
        let before = self.truth.clone();
        let num_updates = [1, 3, 20, 150][self.random.below(4) as usize];
        let updates: Vec<_> = (0..num_updates).map(|_| self.truth.update(&mut self.random)).collect();
        let missing = Missing::Lenient;
        let applied = match self.database().apply(&updates, missing, &self.pool) {
            Ok(applied) => applied,
            Err(error) => {
                let failed = std::mem::replace(&mut self.truth, before);
                if !error.to_string().contains("open the database again") {
                    assert!(error.to_string().contains("wal-") || error.to_string().contains(DB), "{place}: {error}");
                    self.unknown = Some(failed);
                }
                self.look(place);
                return false;
            }
        };
        self.unknown = None;
        let model = self.truth.model();
        assert_eq!((applied.vertices, applied.edges), (model.vertices.len() as u64, model.num_edges), "{place}");
        self.num_commits += 1;
        self.look(place);
        true
    }

    /// Whether a recovered database is right: it holds all answered commits, and the unanswered one completely or not
    /// at all.
    fn is_kept_in(&self, found: &Model) -> bool {
        self.truth.model() == *found || self.unknown.as_ref().is_some_and(|unknown| unknown.model() == *found)
    }

    /// The newest view and all held views are as in the model.
    fn look(&mut self, place: &str) {
        let (view, model) = (self.database().view().unwrap(), self.truth.model());
        assert_eq!(read(&view), model, "{place}");
        if self.random.below(3) == 0 {
            self.held.push((view, model));
        }
        if self.held.len() > 6 {
            let (view, model) = self.held.swap_remove(self.random.below(7) as usize);
            assert_eq!(read(&view), model, "{place}: a view of before");
        }
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap()
}

/// Commits before one in `one_in` calls to the disk.
fn commit_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>, one_in: u32) {
    let world = Arc::clone(world);
    storage.set_hook(move |path| {
        let mut world = lock(&world);
        if world.random.below(one_in) == 0 {
            world.try_commit(&format!("before {}", path.display()));
        }
    });
}

/// Makes a checkpoint with concurrent commits. It holds the commits from before its start. Returns whether it failed.
fn checkpoint_meanwhile(storage: &HookedStorage, world: &Arc<Mutex<World>>, fails: bool) -> bool {
    let database = lock(world).database();
    let immutable = lock(world).truth.model();
    if fails {
        let call = storage.disk.num_calls() + u64::from(lock(world).random.below(24));
        storage.disk.set_plan(FaultPlan::FailAt(call, IoKind::StorageFull));
    }
    commit_meanwhile(storage, world, 3);
    let made = database.checkpoint(None);
    storage.clear_hook();
    storage.disk.set_plan(FaultPlan::Never);
    if let Ok(made) = &made {
        assert_eq!(read(&database.snapshot(made.number).unwrap()), immutable, "the snapshot");
    }
    lock(world).look("after a checkpoint");
    made.is_err()
}

/// Reopens the database after a write with an unknown result.
fn reopen_poisoned(storage: &HookedStorage, world: &Arc<Mutex<World>>) {
    let world = &mut *lock(world);
    world.database = None;
    world.database = Some(Arc::new(Engine::open_in(Arc::new(storage.clone()), Path::new(DB)).unwrap()));
    let found = read(&world.database().view().unwrap());
    assert!(world.is_kept_in(&found), "what was answered is lost");
    if world.truth.model() != found {
        world.truth = world.unknown.take().unwrap();
    }
}

fn append(world: &mut World) {
    let (u, v) = (world.random.below(NUM_KEYS).into(), world.random.below(NUM_KEYS).into());
    let mut changes = Changes::default();
    changes.added.push((world.truth.key(u), world.truth.key(v), world.truth.weight(2)));
    world.truth.add_edge(u, v, 2);
    world.database().append_changes(&changes, &AppendOptions::default(), &world.pool, &Silent).unwrap();
}

/// One random step with concurrent commits.
fn step(storage: &HookedStorage, world: &Arc<Mutex<World>>) {
    let choice = lock(world).random.below(12);
    match choice {
        0..3 => {
            assert!(!checkpoint_meanwhile(storage, world, false));
        }
        3..5 => {
            checkpoint_meanwhile(storage, world, true);
            let is_sound = lock(world).try_commit("after a checkpoint that may have failed");
            let database = lock(world).database();
            if database.checkpoint(None).is_err() {
                drop(database);
                reopen_poisoned(storage, world);
            } else {
                assert!(is_sound, "a commit is refused, and a snapshot is not");
            }
        }
        5 => {
            let world = &mut *lock(world);
            append(world);
        }
        6 => {
            let world = &mut *lock(world);
            world.database().merge(MergeScope::All, &world.pool, &Silent).unwrap();
        }
        7 => {
            let world = lock(world);
            let database = world.database();
            let snapshots = database.snapshots();
            if let [.., before, newest] = &snapshots[..] {
                let dropped = if snapshots.len().is_multiple_of(2) { newest } else { before };
                database.drop_snapshots(&[dropped.number], &Silent).unwrap();
            }
        }
        8 => {
            let world = &mut *lock(world);
            world.database = None;
            world.database = Some(Arc::new(Engine::open_in(Arc::new(storage.clone()), Path::new(DB)).unwrap()));
            world.database().verify(&world.pool).unwrap();
        }
        _ => {}
    }
    let mut world = lock(world);
    world.commit("between two steps");
    world.look("after a step");
}

#[test]
fn commits_go_on_while_a_snapshot_is_written() {
    let mut num_commits = 0;
    for (seed, options) in kinds().into_iter().enumerate() {
        println!("seed {seed}: {options:?}");
        let storage = HookedStorage::default();
        let world = Arc::new(Mutex::new(World::new(&storage, options, seed as u64 + 4711)));
        for _ in 0..50 {
            step(&storage, &world);
        }
        let world = &mut *lock(&world);
        world.database().checkpoint(None).unwrap();
        world.database().verify(&world.pool).unwrap();
        world.look("at the end");
        for (view, model) in world.held.drain(..) {
            assert_eq!(read(&view), model);
        }
        num_commits += world.num_commits;
    }
    assert!(num_commits > 700, "{num_commits} commits, most of them between calls to the disk");
}

/// A graph with a snapshot and changes over it. Concurrent commits change some of the changed vertices.
fn prepared(storage: &HookedStorage, options: GraphOptions, seed: u64) -> Arc<Mutex<World>> {
    let mut world = World::new(storage, options, seed);
    for _ in 0..3 {
        world.commit("first");
    }
    world.database().checkpoint(None).unwrap();
    let before = world.truth.model();
    while world.truth.model() == before {
        world.commit("second");
    }
    Arc::new(Mutex::new(world))
}

fn small_kinds() -> [GraphOptions; 2] {
    let directed = GraphOptions { weight_type: Some(WeightType::U32), ..GraphOptions::default() };
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, keys: KeyScheme::String, ..Default::default() };
    [directed, undirected]
}

#[test]
fn crash_during_checkpoint_leaves_old_or_new_snapshot() {
    for options in small_kinds() {
        let (mut num_before, mut num_after, mut call) = (0, 0, 0);
        loop {
            let storage = HookedStorage::default();
            let world = prepared(&storage, options, 5);
            let database = lock(&world).database();
            let num_before_it = database.snapshots().len();
            storage.disk.set_plan(FaultPlan::CrashAt(storage.disk.num_calls() + call));
            commit_meanwhile(&storage, &world, 4);
            let answer = database.checkpoint(None);
            storage.clear_hook();
            lock(&world).look("after the crash, in memory");
            for seed in 0..scaled(4) {
                let after = Engine::open_in(Arc::new(storage.disk.after_crash(seed)), Path::new(DB)).unwrap();
                after.verify(&Pool::new(1).unwrap()).unwrap();
                let found = read(&after.view().unwrap());
                let is_after = after.snapshots().len() > num_before_it;
                assert!(is_after || answer.is_err(), "call {call}, disk {seed}: the snapshot is gone");
                assert!(lock(&world).is_kept_in(&found), "call {call}, disk {seed}: a commit is gone");
                *if is_after { &mut num_after } else { &mut num_before } += 1;
            }
            if answer.is_ok() {
                break;
            }
            call += 1;
        }
        assert!(call > 10 && num_before > 0 && num_after > 0, "{call} calls, {num_before} before, {num_after} after");
    }
}

#[test]
fn a_snapshot_that_cannot_be_written_is_made_later() {
    for options in small_kinds() {
        let (mut num_later, mut call) = (0, 0);
        loop {
            let storage = HookedStorage::default();
            let world = prepared(&storage, options, 6);
            let database = lock(&world).database();
            let failing = storage.disk.num_calls() + call;
            storage.disk.set_plan(FaultPlan::FailAt(failing, IoKind::StorageFull));
            commit_meanwhile(&storage, &world, 4);
            let answer = database.checkpoint(Some("a name"));
            storage.clear_hook();
            storage.disk.set_plan(FaultPlan::Never);
            let world = &mut *lock(&world);
            world.look("after the failure");
            let is_sound = world.try_commit("then");
            call += 1;
            let Err(error) = answer else {
                if storage.disk.num_calls() <= failing {
                    break;
                }
                continue;
            };
            assert!(error.to_string().contains("MANIFEST") || error.to_string().contains(DB), "{error}");
            match database.checkpoint(Some("a name")) {
                Ok(made) => {
                    num_later += 1;
                    assert!(is_sound);
                    assert_eq!(read(&database.snapshot(made.number).unwrap()), world.truth.model());
                    world.look("later");
                    world.commit("and then");
                    database.verify(&world.pool).unwrap();
                }
                Err(error) => {
                    assert!(error.to_string().contains("open the database again"), "call {call}: {error}");
                    assert!(!is_sound, "call {call}: commits go on although the state of the disk is unknown");
                }
            }
        }
        assert!(num_later > 5, "of {call} calls that failed, {num_later} times it went well later");
    }
}

#[test]
fn failed_checkpoint_changes_nothing() {
    let storage = HookedStorage::default();
    let world = prepared(&storage, GraphOptions::default(), 7);
    let world = &mut *lock(&world);
    let database = world.database();
    assert!(database.checkpoint(Some("1")).unwrap_err().to_string().contains("cannot name a snapshot"));
    storage.disk.set_plan(FaultPlan::FailAt(storage.disk.num_calls() + 1, IoKind::StorageFull));
    database.checkpoint(None).unwrap_err();
    world.commit("after it");
    assert_eq!(database.checkpoint(None).unwrap().number, 3, "one snapshot of all");
    world.look("later");
}

#[test]
fn close_makes_snapshot_or_reports_failure() {
    let storage = HookedStorage::default();
    let open = || Engine::open_in(Arc::new(storage.clone()), Path::new(DB)).unwrap();
    let pool = Pool::new(1).unwrap();
    drop(Engine::create_in(Arc::new(storage.clone()), Path::new(DB), GraphOptions::default()).unwrap());
    assert_eq!(open().snapshots().len(), 1, "nothing was committed");
    let commit = |database: &Engine, edge: (u64, u64)| {
        let added = Update::add_edge(edge.0, edge.1);
        database.apply(&[added], Missing::Lenient, &pool).unwrap().edges
    };
    let database = open();
    assert_eq!(commit(&database, (1, 2)), 1);
    let stats = database.live_stats();
    assert!(stats.delta_bytes > 0 && (stats.added, stats.removed, stats.is_checkpoint_running) == (1, 0, false));
    database.close().unwrap();
    let database = open();
    assert_eq!(commit(&database, (2, 3)), 2);
    drop(database);
    let database = open();
    assert_eq!((commit(&database, (3, 4)), database.snapshots().len()), (3, 3));
    storage.disk.set_plan(FaultPlan::CrashAt(storage.disk.num_calls()));
    assert!(database.close().is_err());
    let after = Engine::open_in(Arc::new(storage.disk.after_crash(1)), Path::new(DB)).unwrap();
    assert_eq!(after.view().unwrap().num_edges(), 3, "the log has what no snapshot has");
}

#[test]
fn retention_gives_up_snapshots_without_names() {
    let storage = HookedStorage::default();
    let world = prepared(&storage, GraphOptions::default(), 8);
    let database = lock(&world).database();
    database.retain(Retention::Last(2)).unwrap();
    for _ in 0..6 {
        assert!(!checkpoint_meanwhile(&storage, &world, false));
        lock(&world).commit("after it");
    }
    assert_eq!(database.snapshots().len(), 2);
}

#[test]
fn checkpoint_beyond_memory_is_refused_before_starting() {
    let (disk, pool, missing) = (FaultStorage::default(), Pool::new(1).unwrap(), Missing::Lenient);
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let database = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), options).unwrap();
    let edges: Vec<_> = (0..1000_u64).map(|v| Update::add_edge(v, (v + 1) % 1000)).collect();
    database.apply(&edges, missing, &pool).unwrap();
    let refused_with = |database: &Engine, memory: u64| {
        database.set_memory(Some(memory));
        let before = (disk.list(Path::new(DB)).unwrap(), database.snapshots().len());
        let error = database.checkpoint(Some("named")).unwrap_err();
        assert_eq!((disk.list(Path::new(DB)).unwrap(), database.snapshots().len()), before, "{memory} bytes");
        let text = error.to_string();
        assert!(text.contains("a snapshot of what was committed, which must be in memory,"), "{text}");
        let Error::Memory { needed, budget, .. } = error else { panic!("{text}") };
        assert!(
            budget == memory && text.contains(&format!("needs at least {}", anden_base::size::size_at_least(needed))),
            "{text}"
        );
        needed
    };
    let needed = refused_with(&database, 1000);
    // Both directions count an arc.
    assert!(needed > 1000 * 48, "{needed} bytes");
    assert_eq!(refused_with(&database, needed - 1), needed);
    // The commits are readable, the graph can grow, and it survives.
    database.apply(&[Update::add_edge(7_u64, 9_u64)], missing, &pool).unwrap();
    assert_eq!(database.view().unwrap().num_edges(), 1001);
    let needed = refused_with(&database, 1000);
    let after = Engine::open_in(Arc::new(disk.after_crash(1)), Path::new(DB)).unwrap();
    assert_eq!((after.view().unwrap().num_edges(), after.snapshots().len()), (1001, 1));
    database.set_memory(Some(needed));
    assert_eq!(database.checkpoint(Some("named")).unwrap().name.as_deref(), Some("named"));
    assert_eq!((database.view().unwrap().num_edges(), database.live_stats().delta_bytes), (1001, 0));
    database.close().unwrap();
    let database = Engine::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    assert_eq!(database.snapshots().last().unwrap().name.as_deref(), Some("named"));
    assert_eq!(database.view().unwrap().num_edges(), 1001);
    database.verify(&pool).unwrap();
}
