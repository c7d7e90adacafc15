//! Batches that exceed the memory allowed for pending changes become snapshots, and are not logged.

use std::collections::BTreeSet;
use std::io::ErrorKind as IoKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_engine::{Engine, Error, ErrorKind, GraphOptions, KeyScheme, Missing, Op, Result, SnapshotView, Update};
use anden_graph::{Direction, Graph};
use anden_testkit::{FaultPlan, FaultStorage, crash_every_call};

const DB: &str = "db";
/// The checkpoint limit. With it, batches of more than [`MOST`] updates are very large.
const LIMIT: u64 = 1 << 20;
const MOST: usize = 1 << 18;

type Arcs = BTreeSet<(u64, u64)>;

fn options() -> GraphOptions {
    GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }
}

/// A database with the edges 1 → 2 and 2 → 3 in the WAL.
fn create(disk: &FaultStorage) -> (Engine, Pool) {
    let (pool, disk) = (Pool::new(2).unwrap(), Arc::new(disk.clone()));
    let db = Engine::create_in(disk, Path::new(DB), options()).unwrap();
    db.set_checkpoint_bytes(Some(LIMIT));
    db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)], Missing::Lenient, &pool).unwrap();
    (db, pool)
}

fn open(disk: &FaultStorage) -> Engine {
    Engine::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap()
}

fn arcs(view: &SnapshotView) -> Arcs {
    let mut arcs = Arcs::new();
    for source in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_fragment(Direction::Out, source, |targets| {
            arcs.extend(targets.iter().map(|&target| (source.into(), target.into())));
            ControlFlow::Continue(())
        });
    }
    view.check().unwrap();
    assert_eq!(arcs.len() as u64, view.num_edges());
    arcs
}

/// A batch of more than `len` updates: removes 1 → 2, adds 5 → 6, and adds 7 → 8 many times.
fn batch(len: usize) -> Vec<Update> {
    let mut updates = vec![Update::add_edge(7, 8); len + 1];
    updates[len / 2] = Update::remove_edge(1, 2);
    updates[len / 3] = Update::add_edge(5, 6);
    updates
}

fn before() -> Arcs {
    Arcs::from([(1, 2), (2, 3)])
}

fn after() -> Arcs {
    Arcs::from([(2, 3), (5, 6), (7, 8)])
}

#[test]
fn very_large_batch_becomes_its_own_snapshot() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    let (num_snapshots, view) = (db.snapshots().len(), db.view().unwrap());
    let applied = db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    assert_eq!((applied.epoch, applied.vertices, applied.edges), (2, 9, 3));
    // Earlier commits have a snapshot too.
    assert_eq!(db.snapshots().len(), num_snapshots + 2);
    let newest = db.snapshots().pop().unwrap();
    assert_eq!((newest.num_vertices, newest.num_edges), (9, 3));
    assert_eq!(db.live_stats().logged_commits, 1, "the batch is not in the log");
    assert_eq!((arcs(&view), arcs(&db.view().unwrap())), (before(), after()));
    // The next commits follow the batch.
    let applied = db.apply(&[Update::add_edge(8, 9)], Missing::Lenient, &pool).unwrap();
    assert_eq!((applied.epoch, db.snapshots().len()), (3, num_snapshots + 2));
    let left = disk.duplicate();
    drop(db);
    let mut expected = after();
    expected.insert((8, 9));
    assert_eq!(arcs(&open(&left).view().unwrap()), expected, "after a crash");
}

#[test]
fn batch_below_the_size_limit_is_logged() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    let pairs = vec![(7, 8); MOST];
    db.apply_edges(&pairs, Op::Insert, &pool).unwrap();
    assert_eq!(db.live_stats().logged_commits, 2);
}

#[test]
fn pairs_and_strict_updates_become_snapshots_too() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    db.apply_edges(&vec![(7, 8); MOST + 1], Op::Insert, &pool).unwrap();
    db.apply_edges(&vec![(1, 2); MOST + 1], Op::Delete, &pool).unwrap();
    let mut updates = vec![Update::add_edge(7, 3); MOST + 1];
    updates[MOST / 2] = Update::RemoveVertex(8_u64.into());
    db.apply(&updates, Missing::Strict, &pool).unwrap();
    assert_eq!(db.live_stats().logged_commits, 1);
    assert_eq!(arcs(&db.view().unwrap()), Arcs::from([(2, 3), (7, 3)]));
    assert_eq!(db.view().unwrap().num_vertices(), 8);
}

#[test]
fn very_large_batch_conflicts_with_earlier_reads() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    let mut tx = db.begin(&pool).unwrap();
    assert!(tx.has_edge(&1_u64.into(), &2_u64.into()).unwrap());
    db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    tx.add_edge(&3_u64.into(), &4_u64.into(), None).unwrap();
    assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
    assert_eq!(arcs(&db.view().unwrap()), after());
}

/// A power cut at any call leaves the batch completely or not at all, and all earlier durable commits.
#[test]
fn crash_leaves_very_large_batch_whole_or_absent() {
    let (mut num_whole, updates) = (0, batch(MOST));
    let start = || {
        let disk = FaultStorage::default();
        let created = create(&disk);
        (disk, created)
    };
    let apply = |_: &FaultStorage, (db, pool): (Engine, Pool)| db.apply(&updates, Missing::Lenient, &pool).is_ok();
    let num_calls = crash_every_call(3, start, apply, |&is_answered, disk, place| {
        let found = arcs(&open(disk).view().unwrap());
        assert!(found == after() || (found == before() && !is_answered), "{place}: {found:?}");
        num_whole += u32::from(found == after());
    });
    assert!(num_calls > 10 && num_whole > 3, "{num_calls} calls, {num_whole} disks with all of it");
}

#[test]
fn failed_very_large_batch_changes_nothing() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    let refuse = |result: Result<_>, kind| {
        let error = result.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(arcs(&db.view().unwrap()), before(), "{error}");
        error
    };
    let mut updates = batch(MOST);
    updates[MOST - 5] = Update::add_edge("x", 3);
    let error = refuse(db.apply(&updates, Missing::Lenient, &pool), ErrorKind::InvalidInput);
    assert!(matches!(error, Error::Update { index, .. } if index == MOST - 5), "{error}");

    db.set_memory(Some(25 << 20));
    db.set_checkpoint_bytes(Some(LIMIT));
    let pairs: Vec<_> = (0..=MOST as VertexId).map(|i| (i % 999, i / 999)).collect();
    let error = refuse(db.apply_edges(&pairs, Op::Insert, &pool), ErrorKind::InvalidInput);
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    db.set_memory(None);
    db.set_checkpoint_bytes(Some(LIMIT));

    disk.set_plan(FaultPlan::FailNext("delta", IoKind::StorageFull));
    refuse(db.apply(&batch(MOST), Missing::Lenient, &pool), ErrorKind::Io);
    db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    assert_eq!(arcs(&db.view().unwrap()), after());
}

/// Without a WAL, a snapshot would save nothing and make nothing durable.
#[test]
fn in_memory_it_is_a_batch_like_any_other() {
    let pool = Pool::new(2).unwrap();
    let db = Engine::in_memory(options()).unwrap();
    db.set_checkpoint_bytes(Some(LIMIT));
    let num_snapshots = db.snapshots().len();
    db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    assert_eq!(db.snapshots().len(), num_snapshots);
    assert_eq!(arcs(&db.view().unwrap()), Arcs::from([(5, 6), (7, 8)]));
}
