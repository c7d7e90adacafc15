//! Automatic checkpoints and merges of a database while it changes and is read.

use std::collections::BTreeSet;
use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{
    AppendOptions, Changes, EdgeWeight, Engine, GraphOptions, Key, KeyScheme, MergeScope, Missing, Retention,
    SnapshotView, Update,
};
use anden_graph::{Direction, Graph, WeightType};
use anden_testkit::{FaultPlan, Random};

use crate::bounded_pieces::Shape;
use crate::hooked::HookedStorage;

const DB: &str = "db";
const NUM_VERTICES: u32 = 3000;
const LIMIT: u64 = 256 << 10;
/// The most batches that a test commits.
const MOST_COMMITS: usize = 100_000;

/// A database with a small checkpoint limit, and the thread that changes it.
struct Writer {
    database: Arc<Engine>,
    pool: Pool,
    random: Random,
    /// Pairs of vertices, each for the edges in both directions.
    pairs: BTreeSet<(u32, u32)>,
}

impl Writer {
    fn new(storage: &HookedStorage, seed: u64) -> Self {
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = Engine::create_in(Arc::new(storage.clone()), Path::new(DB), options).unwrap();
        database.set_checkpoint_bytes(Some(LIMIT));
        database.set_background_write_rate(None);
        let (database, pool) = (Arc::new(database), Pool::new(1).unwrap());
        Self { database, pool, random: Random::new(seed), pairs: BTreeSet::new() }
    }

    /// Adds and removes edges, each with its reverse.
    fn commit(&mut self) {
        let mut updates = Vec::new();
        for _ in 0..60 {
            let (u, v) = (self.random.below(NUM_VERTICES), self.random.below(NUM_VERTICES));
            let (u, v) = (u.min(v), u.max(v));
            let is_added = self.random.below(4) > 0;
            for (source, target) in [(u, v), (v, u)] {
                let (source, target) = (Key::Integer(source.into()), Key::Integer(target.into()));
                updates.push(match is_added {
                    true => Update::AddEdge { source, target, weight: None, properties: Vec::new() },
                    false => Update::RemoveEdge { source, target },
                });
            }
            if is_added {
                self.pairs.insert((u, v))
            } else {
                self.pairs.remove(&(u, v))
            };
        }
        self.database.apply(&updates, Missing::Lenient, &self.pool).unwrap();
    }

    /// Commits until `is_enough`.
    fn commit_until(&mut self, mut is_enough: impl FnMut(&Engine) -> bool) {
        for _ in 0..MOST_COMMITS {
            self.commit();
            if is_enough(&self.database) {
                return;
            }
        }
        panic!("{MOST_COMMITS} commits were not enough: {:?}", self.database.live_stats());
    }

    fn arcs(&self) -> BTreeSet<(u32, u32)> {
        self.pairs.iter().flat_map(|&(u, v)| [(u, v), (v, u)]).collect()
    }
}

/// The edges of a view. Each edge has its reverse.
fn arcs(view: &SnapshotView) -> BTreeSet<(u32, u32)> {
    let mut arcs = BTreeSet::new();
    for v in 0..view.vertex_bound() as VertexId {
        let mut shape = Shape::default();
        let _ = view.for_each_fragment(Direction::Out, v, |targets| {
            arcs.extend(targets.iter().map(|&target| (v, target)));
            shape.see(targets)
        });
        assert!(shape.num_parts <= 4, "{shape:?}");
    }
    view.check().unwrap();
    assert_eq!(arcs.len() as u64, view.num_edges());
    assert!(arcs.iter().all(|&(u, v)| arcs.contains(&(v, u))), "half a commit");
    arcs
}

/// Reads view after view until `is_done`.
fn read_on(database: &Engine, is_done: &AtomicBool) {
    while !is_done.load(Ordering::Relaxed) {
        let view = database.view().unwrap();
        let first = arcs(&view);
        if let Some(newest) = database.snapshots().last()
            && let Ok(snapshot) = database.snapshot(newest.number)
        {
            arcs(&snapshot);
        }
        assert_eq!(arcs(&view), first, "a view never changes");
    }
}

/// Appends, merges and drops until `is_done`. Returns the appended edges, which connect vertices of its own.
fn work_beside(database: &Engine, is_done: &AtomicBool) -> BTreeSet<(u32, u32)> {
    let (pool, mut appended, mut round) = (Pool::new(1).unwrap(), BTreeSet::new(), 0);
    while !is_done.load(Ordering::Relaxed) {
        let (u, v) = (NUM_VERTICES + round % 50, NUM_VERTICES + round * 7 % 60);
        let mut changes = Changes::default();
        for (u, v) in [(u, v), (v, u)] {
            changes.added.push((Key::Integer(u.into()), Key::Integer(v.into()), None));
            appended.insert((u, v));
        }
        database.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap();
        if round.is_multiple_of(3) {
            database.merge(MergeScope::All, &pool, &Silent).unwrap();
        }
        let snapshots = database.snapshots();
        if snapshots.len() > 6 {
            let numbers: Vec<u32> = snapshots[..3].iter().map(|snapshot| snapshot.number).collect();
            database.drop_snapshots(&numbers, &Silent).unwrap();
        }
        round += 1;
    }
    appended
}

#[test]
fn snapshots_are_made_by_themselves_while_everything_goes_on() {
    let storage = HookedStorage::default();
    let mut writer = Writer::new(&storage, 11);
    let (database, is_done) = (Arc::clone(&writer.database), AtomicBool::new(false));
    let appended = std::thread::scope(|scope| {
        let readers = [0, 1].map(|_| scope.spawn(|| read_on(&database, &is_done)));
        let beside = scope.spawn(|| work_beside(&database, &is_done));
        let mut num_commits = 0;
        writer.commit_until(|database| {
            num_commits += 1;
            num_commits >= 100 && database.live_stats().automatic_checkpoints >= 4
        });
        is_done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        beside.join().unwrap()
    });
    let mut expected = writer.arcs();
    expected.extend(appended);
    assert_eq!(arcs(&database.view().unwrap()), expected);
    database.verify(&writer.pool).unwrap();
    assert_eq!(database.live_stats().background_error, None);
    drop((database, writer));
    let again = Engine::open_in(Arc::new(storage), Path::new(DB)).unwrap();
    assert_eq!(arcs(&again.view().unwrap()), expected);
}

/// Stalls the disk in the first checkpoint until the memtable holds three times the limit, and as long as it grows.
fn stand_still(storage: &HookedStorage, most_bytes: &Arc<AtomicU64>) {
    let (most_bytes, mut is_first) = (Arc::clone(most_bytes), true);
    storage.set_hook(move |path| {
        if path.to_string_lossy().contains("delta-") && std::mem::take(&mut is_first) {
            let (mut before, mut now) = (0, 0);
            while now < 3 * LIMIT || before < now {
                // The subject: the memtable does not grow within this time. No event says that it will not grow.
                std::thread::sleep(Duration::from_millis(300));
                (before, now) = (now, most_bytes.load(Ordering::Relaxed));
            }
        }
    });
}

#[test]
fn commits_wait_for_a_slow_checkpoint() {
    let storage = HookedStorage::default();
    let mut writer = Writer::new(&storage, 12);
    let most_bytes = Arc::new(AtomicU64::new(0));
    stand_still(&storage, &most_bytes);
    writer.commit_until(|database| {
        let stats = database.live_stats();
        let num_bytes = most_bytes.fetch_max(stats.delta_bytes, Ordering::Relaxed);
        // The immutable memtable may hold six times the limit, and the memtable three times. A batch may exceed either.
        assert!(num_bytes < 10 * LIMIT, "{num_bytes} bytes of changes in memory");
        stats.automatic_checkpoints >= 5
    });
    assert!(most_bytes.load(Ordering::Relaxed) >= 3 * LIMIT, "the disk did not stand still");
    assert_eq!(arcs(&writer.database.view().unwrap()), writer.arcs());
}

#[test]
fn merges_follow_and_nobody_waits_for_them() {
    let storage = HookedStorage::default();
    let mut writer = Writer::new(&storage, 13);
    writer.commit_until(|database| database.live_stats().automatic_merges >= 2);
    // The next merge never ends by itself. The hold waits for a merge in progress, which could end too early.
    let held = writer.database.hold_maintenance();
    writer.database.set_background_write_rate(Some(1));
    let is_merging = Arc::new(AtomicBool::new(false));
    let has_begun = Arc::clone(&is_merging);
    storage.set_hook(move |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        has_begun.fetch_or(name.starts_with("tmp-base-"), Ordering::Relaxed);
    });
    drop(held);
    writer.commit_until(|_| is_merging.load(Ordering::Relaxed));
    let before = writer.database.live_stats();
    writer.commit_until(|database| database.live_stats().automatic_checkpoints >= before.automatic_checkpoints + 2);
    assert_eq!(writer.database.live_stats().automatic_merges, before.automatic_merges);
    storage.clear_hook();
    let expected = writer.arcs();
    let database = Arc::into_inner(std::mem::replace(&mut writer.database, other_database())).unwrap();
    database.close().unwrap();
    let again = Engine::open_in(Arc::new(storage), Path::new(DB)).unwrap();
    assert_eq!(arcs(&again.view().unwrap()), expected);
    assert_eq!(again.verify(&writer.pool).unwrap().unknown_files, Vec::<String>::new(), "nothing is left of the merge");
}

fn other_database() -> Arc<Engine> {
    let storage = HookedStorage::default();
    Arc::new(Engine::create_in(Arc::new(storage), Path::new(DB), GraphOptions::default()).unwrap())
}

/// A writer with a checkpoint in progress that never ends, unless another thread waits for it.
fn with_slow_snapshot(storage: &HookedStorage, seed: u64) -> Writer {
    let mut writer = Writer::new(storage, seed);
    writer.database.set_checkpoint_bytes(None);
    writer.commit_until(|database| database.live_stats().delta_bytes > LIMIT);
    writer.database.set_background_write_rate(Some(1));
    writer.database.set_checkpoint_bytes(Some(LIMIT));
    writer.commit();
    loop {
        let stats = writer.database.live_stats();
        assert_eq!(stats.automatic_checkpoints, 0, "it did not wait: {stats:?}");
        if stats.background_pauses > 0 {
            assert!(stats.is_checkpoint_running && stats.background_bytes > 0, "{stats:?}");
            assert_eq!(stats.background_write_rate, Some(1));
            return writer;
        }
        std::thread::yield_now();
    }
}

#[test]
fn throttled_checkpoint_hurries_once_awaited() {
    type Waiter = fn(&mut Writer);
    let waiters: [(&str, Waiter); 5] = [
        ("commits", |writer| writer.commit_until(|database| database.live_stats().automatic_checkpoints >= 3)),
        ("a snapshot", |writer| drop(writer.database.checkpoint(None).unwrap())),
        ("an append", |writer| {
            let (changes, options) = (Changes::default(), AppendOptions::default());
            writer.database.append_changes(&changes, &options, &writer.pool, &Silent).unwrap();
        }),
        ("a rule", |writer| drop(writer.database.retain(Retention::All).unwrap())),
        ("a higher budget", |writer| {
            writer.database.set_background_write_rate(None);
            while writer.database.live_stats().automatic_checkpoints == 0 {
                std::thread::yield_now();
            }
        }),
    ];
    for (seed, (name, wait)) in (20..).zip(waiters) {
        println!("{name}, seed {seed}");
        let storage = HookedStorage::default();
        let mut writer = with_slow_snapshot(&storage, seed);
        assert_eq!(arcs(&writer.database.view().unwrap()), writer.arcs());
        wait(&mut writer);
        assert_eq!(writer.database.live_stats().background_error, None);
        assert_eq!(arcs(&writer.database.view().unwrap()), writer.arcs(), "{name}");
    }
}

#[test]
fn a_slow_snapshot_does_not_hold_up_the_end() {
    let storage = HookedStorage::default();
    let mut writer = with_slow_snapshot(&storage, 30);
    let expected = writer.arcs();
    let database = Arc::into_inner(std::mem::replace(&mut writer.database, other_database())).unwrap();
    database.close().unwrap();
    let again = Engine::open_in(Arc::new(storage), Path::new(DB)).unwrap();
    assert_eq!(arcs(&again.view().unwrap()), expected);
    assert_eq!(again.log_bytes().unwrap(), 0);
}

#[test]
fn failed_background_checkpoint_is_retried() {
    let storage = HookedStorage::default();
    let mut writer = Writer::new(&storage, 14);
    storage.disk.set_plan(FaultPlan::FailNext("delta-", IoKind::StorageFull));
    let error = Mutex::new(None);
    writer.commit_until(|database| {
        let stats = database.live_stats();
        assert_eq!(stats.automatic_checkpoints, 0);
        *error.lock().unwrap() = stats.background_error;
        error.lock().unwrap().is_some()
    });
    let error = error.into_inner().unwrap().unwrap();
    assert!(error.contains("delta-"), "{error}");
    assert_eq!(arcs(&writer.database.view().unwrap()), writer.arcs());
    writer.commit_until(|database| database.live_stats().automatic_checkpoints > 0);
    assert_eq!(writer.database.live_stats().background_error, None);
    assert_eq!(arcs(&writer.database.view().unwrap()), writer.arcs());
    writer.database.set_checkpoint_bytes(None);
    let num_before = writer.database.live_stats().automatic_checkpoints;
    writer.commit_until(|database| database.live_stats().delta_bytes > 4 * LIMIT);
    assert!(writer.database.live_stats().automatic_checkpoints <= num_before + 1, "none is made any more");
}

/// A panic in one checkpoint does not stop later ones.
#[test]
fn snapshots_go_on_after_one_that_panicked() {
    let storage = HookedStorage::default();
    let mut writer = Writer::new(&storage, 15);
    storage.set_hook(|path| assert!(!path.to_string_lossy().contains("delta-"), "as it should"));
    let mut has_failed = false;
    writer.commit_until(|database| {
        let stats = database.live_stats();
        has_failed |= stats.background_error.is_some_and(|error| error.contains("panicked"));
        // A hook that panicked is removed.
        has_failed && stats.automatic_checkpoints > 0
    });
    assert_eq!(writer.database.live_stats().background_error, None);
    assert_eq!(arcs(&writer.database.view().unwrap()), writer.arcs());
}

/// Edges that are added and removed in turn hardly take memory, but the WAL holds all changes.
#[test]
fn a_snapshot_is_made_when_the_log_is_long() {
    let options =
        GraphOptions { keys: KeyScheme::Dense, weight_type: Some(WeightType::U32), ..GraphOptions::default() };
    let database = Engine::create_in(Arc::new(HookedStorage::default()), Path::new(DB), options).unwrap();
    database.set_checkpoint_bytes(Some(LIMIT));
    let pool = Pool::new(1).unwrap();
    let mut is_only_log_long = false;
    for weight in 0..MOST_COMMITS as i64 {
        let key = |i: u32| Key::Integer(i.into());
        let update =
            |i: u32| Update::SetWeight { source: key(i), target: key(i + 1), weight: EdgeWeight::Integer(weight) };
        let add = |i: u32| Update::add_weighted_edge(key(i), key(i + 1), EdgeWeight::Integer(0));
        let updates: Vec<_> = (0..500).map(|i| if weight == 0 { add(i) } else { update(i) }).collect();
        database.apply(&updates, Missing::Lenient, &pool).unwrap();
        let stats = database.live_stats();
        is_only_log_long |= stats.log_bytes > 10 * LIMIT && stats.delta_bytes < LIMIT;
        if stats.automatic_checkpoints > 0 {
            assert!(is_only_log_long, "{stats:?}");
            return;
        }
    }
    panic!("{:?}", database.live_stats());
}

/// Epochs of added and removed vertices take memory until a snapshot holds them.
#[test]
fn repeated_vertex_updates_trigger_a_checkpoint() {
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let database = Engine::create_in(Arc::new(HookedStorage::default()), Path::new(DB), options).unwrap();
    database.set_checkpoint_bytes(Some(LIMIT));
    let pool = Pool::new(1).unwrap();
    database.apply(&[Update::AddVertex(7_u64.into())], Missing::Strict, &pool).unwrap();
    database.checkpoint(None).unwrap();
    for _ in 0..MOST_COMMITS {
        for update in [Update::RemoveVertex(7_u64.into()), Update::AddVertex(7_u64.into())] {
            database.apply(&[update], Missing::Strict, &pool).unwrap();
        }
        if database.live_stats().automatic_checkpoints > 0 {
            return;
        }
    }
    panic!("{:?}", database.live_stats());
}

/// The caller repeats an append that returned an error.
#[test]
fn failed_merge_does_not_fail_the_append() {
    let storage = HookedStorage::default();
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let database = Engine::create_in(Arc::new(storage.clone()), Path::new(DB), options).unwrap();
    let pool = Pool::new(1).unwrap();
    let append = |target: u64| {
        let changes = (0..6_000_u64).fold(Changes::default(), |changes, v| changes.add_edge(v, target));
        database.append_changes(&changes, &AppendOptions::default(), &pool, &Silent).unwrap()
    };
    storage.disk.set_plan(FaultPlan::FailNext("base-", IoKind::StorageFull));
    let report = append(1);
    assert!(report.maintenance_error.is_some_and(|error| error.contains("base-")));
    assert_eq!((report.added, report.edges, database.view().unwrap().num_edges()), (6_000, 6_000, 6_000));
    let report = append(2);
    assert_eq!((report.maintenance_error, report.edges), (None, 12_000));
    assert!(report.maintenance_bytes > 0);
    database.verify(&pool).unwrap();
}
