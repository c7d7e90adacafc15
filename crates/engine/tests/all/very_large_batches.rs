//! Batches that take more memory than is ever left waiting become snapshots, and are not logged.

use std::collections::BTreeSet;
use std::io::ErrorKind as IoKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anden_engine::{Database, Error, ErrorKind, Fate, GraphOptions, KeyScheme, Missing, Result, Update, View};
use base::VertexId;
use base::parallel::Pool;
use base::storage::{FaultPlan, FaultStorage};
use graph::Graph;

const DB: &str = "db";
/// With such a limit, batches of more than [`MOST`] updates are very large.
const LIMIT: u64 = 1 << 20;
const MOST: usize = 1 << 18;

type Arcs = BTreeSet<(u64, u64)>;

fn options() -> GraphOptions {
    GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }
}

/// With the edges 1 → 2 and 2 → 3, which are in the log.
fn create(disk: &FaultStorage) -> (Database, Pool) {
    let (pool, disk) = (Pool::new(2).unwrap(), Arc::new(disk.clone()));
    let db = Database::create_in(disk, Path::new(DB), options()).unwrap();
    db.set_checkpoint_bytes(Some(LIMIT));
    db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)], Missing::Lenient, &pool).unwrap();
    (db, pool)
}

fn open(disk: &FaultStorage) -> Database {
    Database::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap()
}

fn arcs(view: &View) -> Arcs {
    let mut arcs = Arcs::new();
    for source in 0..view.vertex_bound() as VertexId {
        let _ = view.for_each_out_fragment(source, |targets| {
            arcs.extend(targets.iter().map(|&target| (source.into(), target.into())));
            ControlFlow::Continue(())
        });
    }
    view.check().unwrap();
    assert_eq!(arcs.len() as u64, view.num_edges());
    arcs
}

/// Takes 1 → 2 away, adds 5 → 6 and, many times over, 7 → 8: more than `len` updates.
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
fn a_very_large_batch_becomes_a_snapshot_of_its_own() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    let (num_snapshots, view) = (db.snapshots().len(), db.view().unwrap());
    let applied = db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    assert_eq!((applied.epoch, applied.vertices, applied.edges), (2, 9, 3));
    // What was committed before has one, too.
    assert_eq!(db.snapshots().len(), num_snapshots + 2);
    let newest = db.snapshots().pop().unwrap();
    assert_eq!((newest.num_vertices, newest.num_edges), (9, 3));
    assert_eq!(db.live_stats().logged_commits, 1, "the batch is not in the log");
    assert_eq!((arcs(&view), arcs(&db.view().unwrap())), (before(), after()));
    // The next commits follow it.
    let applied = db.apply(&[Update::add_edge(8, 9)], Missing::Lenient, &pool).unwrap();
    assert_eq!((applied.epoch, db.snapshots().len()), (3, num_snapshots + 2));
    let left = disk.duplicate();
    drop(db);
    let mut expected = after();
    expected.insert((8, 9));
    assert_eq!(arcs(&open(&left).view().unwrap()), expected, "after a crash");
}

#[test]
fn a_batch_that_is_not_quite_as_large_is_logged() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    let pairs = vec![(7, 8); MOST];
    db.apply_edges(&pairs, Fate::Come, &pool).unwrap();
    assert_eq!(db.live_stats().logged_commits, 2);
}

#[test]
fn pairs_and_strict_updates_become_snapshots_too() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    db.apply_edges(&vec![(7, 8); MOST + 1], Fate::Come, &pool).unwrap();
    db.apply_edges(&vec![(1, 2); MOST + 1], Fate::Go, &pool).unwrap();
    let mut updates = vec![Update::add_edge(7, 3); MOST + 1];
    updates[MOST / 2] = Update::RemoveVertex(8_u64.into());
    db.apply(&updates, Missing::Strict, &pool).unwrap();
    assert_eq!(db.live_stats().logged_commits, 1);
    assert_eq!(arcs(&db.view().unwrap()), Arcs::from([(2, 3), (7, 3)]));
    assert_eq!(db.view().unwrap().num_vertices(), 8);
}

#[test]
fn what_was_read_before_a_very_large_batch_has_changed() {
    let disk = FaultStorage::default();
    let (db, pool) = create(&disk);
    let mut tx = db.begin(&pool).unwrap();
    assert!(tx.has_edge(&1_u64.into(), &2_u64.into()).unwrap());
    db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    tx.add_edge(&3_u64.into(), &4_u64.into(), None).unwrap();
    assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
    assert_eq!(arcs(&db.view().unwrap()), after());
}

/// Whoever lost power at any call finds all of it, or nothing, and what was durable before.
#[test]
fn a_crash_leaves_a_very_large_batch_whole_or_not_at_all() {
    let (mut call, mut num_whole, updates) = (0, 0, batch(MOST));
    loop {
        let disk = FaultStorage::default();
        let (db, pool) = create(&disk);
        let first = disk.num_calls();
        disk.set_plan(FaultPlan::CrashAt(first + call));
        let is_answered = db.apply(&updates, Missing::Lenient, &pool).is_ok();
        drop(db);
        for of_disk in 0..3 {
            let found = arcs(&open(&disk.after_crash(of_disk)).view().unwrap());
            assert!(found == after() || (found == before() && !is_answered), "call {call}, disk {of_disk}: {found:?}");
            num_whole += u32::from(found == after());
        }
        if disk.num_calls() <= first + call {
            break;
        }
        call += 1;
    }
    assert!(call > 10 && num_whole > 3, "{call} calls, {num_whole} disks with all of it");
}

#[test]
fn what_stops_a_very_large_batch_leaves_what_was() {
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
    let error = refuse(db.apply_edges(&pairs, Fate::Come, &pool), ErrorKind::InvalidInput);
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    db.set_memory(None);
    db.set_checkpoint_bytes(Some(LIMIT));

    disk.set_plan(FaultPlan::FailNext("level", IoKind::StorageFull));
    refuse(db.apply(&batch(MOST), Missing::Lenient, &pool), ErrorKind::Io);
    db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    assert_eq!(arcs(&db.view().unwrap()), after());
}

/// There is no log that it would spare, and nothing that a snapshot would make durable.
#[test]
fn in_memory_it_is_a_batch_like_any_other() {
    let pool = Pool::new(2).unwrap();
    let db = Database::in_memory(options()).unwrap();
    db.set_checkpoint_bytes(Some(LIMIT));
    let num_snapshots = db.snapshots().len();
    db.apply(&batch(MOST), Missing::Lenient, &pool).unwrap();
    assert_eq!(db.snapshots().len(), num_snapshots);
    assert_eq!(arcs(&db.view().unwrap()), Arcs::from([(5, 6), (7, 8)]));
}
