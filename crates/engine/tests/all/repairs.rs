//! Repairs of databases with a WAL: what follows a damaged commit is lost and listed, what precedes it is saved.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::{CancelFlag, Progress, Silent};
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, Changes, Engine, ErrorKind, GraphOptions, Loss, Missing, RepairReport, Result, SnapshotView, Update,
    repair_in,
};
use anden_graph::{Direction, Graph};
use anden_testkit::{FaultStorage, crash_every_call, scaled};

const DB: &str = "db";
const NEW: &str = "new";

/// Edges in the snapshot. Each commit behind it adds the next one.
const NUM_APPENDED: u64 = 50;
const NUM_COMMITS: u64 = 20;

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

/// A database with commits behind its snapshot, and no process that has it open.
fn database() -> FaultStorage {
    let disk = FaultStorage::default();
    let db = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), GraphOptions::default()).unwrap();
    db.set_checkpoint_bytes(None);
    let changes = (0..NUM_APPENDED).fold(Changes::default(), |changes, v| changes.add_edge(v, v + 1));
    db.append_changes(&changes, &AppendOptions::default(), &pool(), &Silent).unwrap();
    for v in NUM_APPENDED..NUM_APPENDED + NUM_COMMITS {
        db.apply(&[Update::add_edge(v, v + 1)], Missing::Lenient, &pool()).unwrap();
    }
    // As a power cut leaves it: closing would make a snapshot of the commits.
    disk.after_crash(1)
}

fn repair(disk: &FaultStorage) -> Result<RepairReport> {
    repair_in(Arc::new(disk.clone()), Path::new(DB), Path::new(NEW), None, &pool(), &Silent)
}

fn edges(view: &SnapshotView) -> BTreeSet<(String, String)> {
    let mut edges = BTreeSet::new();
    let key = |id| view.key(id).unwrap().to_string();
    for v in 0..view.vertex_bound() as u32 {
        let _ = view.for_each_fragment(Direction::Out, v, |targets| {
            edges.extend(targets.iter().map(|&target| (key(v), key(target))));
            std::ops::ControlFlow::Continue(())
        });
    }
    edges
}

/// The edges of the repaired database, which is verified and written to.
fn repaired_edges(disk: &FaultStorage) -> BTreeSet<(String, String)> {
    let db = Engine::open_in(Arc::new(disk.clone()), Path::new(NEW)).unwrap();
    db.verify(&pool()).unwrap();
    let edges = edges(&db.view().unwrap());
    db.apply(&[Update::add_edge(1000, 1001)], Missing::Lenient, &pool()).unwrap();
    db.close().unwrap();
    edges
}

/// The first edges that were added.
fn first(num_edges: u64) -> BTreeSet<(String, String)> {
    (0..num_edges).map(|v| (v.to_string(), (v + 1).to_string())).collect()
}

#[test]
fn a_whole_wal_is_saved() {
    let disk = database();
    let report = repair(&disk).unwrap();
    assert_eq!((report.losses, report.saved.num_edges), (Vec::new(), NUM_APPENDED + NUM_COMMITS));
    assert_eq!(repaired_edges(&disk), first(NUM_APPENDED + NUM_COMMITS));
}

#[test]
fn the_valid_prefix_of_a_damaged_wal_is_saved() {
    let whole = database();
    let segment = whole.list(Path::new(DB)).unwrap().into_iter().rfind(|name| name.starts_with("wal-")).unwrap();
    let path = Path::new(DB).join(segment);
    let bytes = whole.contents(&path).unwrap();
    let len = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    let before = whole.duplicate();
    let (mut prefixes, expected) = (BTreeSet::new(), first(NUM_APPENDED + NUM_COMMITS));
    for place in (0..len).step_by(7) {
        for is_cut in [false, true] {
            let disk = before.duplicate();
            let mut damaged = bytes.clone();
            if is_cut {
                damaged.truncate(place)
            } else {
                damaged[place] ^= 4
            }
            disk.set_contents(&path, &damaged);
            let report = repair(&disk).unwrap();
            let found = repaired_edges(&disk);
            assert_eq!(disk.contents(&path).unwrap(), damaged, "the damaged database was changed");
            let num_saved = found.len() as u64 - NUM_APPENDED;
            assert_eq!(found, first(NUM_APPENDED + num_saved), "byte {place}: {report:?}");
            // Whatever is not saved is listed.
            let next = report.saved.epoch + 1;
            let listed = |loss: &Loss| matches!(loss, Loss::Commits { first, .. } if *first == next);
            // Damage in the last record, and a cut, are noticed only if something certifies what is missing.
            let is_listed = report.losses.iter().any(listed);
            assert!(is_listed || found == expected || is_cut, "byte {place}: {report:?}");
            prefixes.insert(num_saved);
        }
    }
    assert!(prefixes.len() as u64 > NUM_COMMITS / 2, "{prefixes:?}");
}

#[test]
fn commits_follow_a_snapshot_with_lost_edges() {
    let disk = database();
    for name in disk.list(Path::new(DB)).unwrap().into_iter().filter(|name| name.starts_with("delta-")) {
        disk.remove_file(&Path::new(DB).join(name)).unwrap();
    }
    // The delta held all vertices of the snapshot, so the commits have nothing to follow.
    let report = repair(&disk).unwrap();
    assert!(report.losses.iter().any(|loss| matches!(loss, Loss::Commits { .. })), "{report:?}");
    assert!(report.losses.iter().any(|loss| matches!(loss, Loss::Snapshot { .. })), "{report:?}");
    assert_eq!(repaired_edges(&disk), first(0));

    // Both copies of the lists are damaged in the base, and the commits follow.
    let disk = database();
    let db = Engine::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    db.merge(anden_engine::MergeScope::All, &pool(), &Silent).unwrap();
    db.set_checkpoint_bytes(None);
    db.apply(&[Update::add_edge(1, 70)], Missing::Lenient, &pool()).unwrap();
    let disk = disk.after_crash(2);
    drop(db);
    for name in disk.list(Path::new(DB)).unwrap() {
        if name.starts_with("base-") && (name.ends_with("-out") || name.ends_with("-in")) {
            let path = Path::new(DB).join(name);
            let mut bytes = disk.contents(&path).unwrap();
            bytes[4096] ^= 1;
            disk.set_contents(&path, &bytes);
        }
    }
    let report = repair(&disk).unwrap();
    assert!(report.losses.iter().any(|loss| matches!(loss, Loss::Edges { .. })), "{report:?}");
    assert!(!report.losses.iter().any(|loss| matches!(loss, Loss::Commits { .. })), "{report:?}");
    let found = repaired_edges(&disk);
    assert!(found.contains(&("1".to_owned(), "70".to_owned())), "{found:?}");
}

#[test]
fn taken_and_missing_paths_are_refused() {
    let disk = database();
    let refused = |from: &str, to: &str| {
        repair_in(Arc::new(disk.clone()), Path::new(from), Path::new(to), None, &pool(), &Silent).unwrap_err()
    };
    assert!(refused(DB, DB).to_string().contains("exists already"));
    assert!(refused(DB, "db/new").to_string().contains("db is a database"));
    assert_eq!(refused("absent", NEW).kind(), ErrorKind::NotFound);
    let cancelled = CancelFlag::default();
    cancelled.cancel();
    let result = repair_in(Arc::new(disk.clone()), Path::new(DB), Path::new(NEW), None, &pool(), &cancelled);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(disk.list(Path::new("")).unwrap(), [DB]);
}

/// A writer that commits while the database is repaired.
struct WritesMeanwhile<'a>(&'a Engine);

impl Progress for WritesMeanwhile<'_> {
    fn stage(&self, name: &str, _total: Option<u64>) {
        if name == "saving the WAL" {
            self.0.checkpoint(None).unwrap();
        }
    }
}

#[test]
fn a_writer_meanwhile_is_noticed() {
    let disk = database();
    let db = Engine::open_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
    let progress = WritesMeanwhile(&db);
    let result = repair_in(Arc::new(disk.clone()), Path::new(DB), Path::new(NEW), None, &pool(), &progress);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("another process wrote it meanwhile"), "{error}");
    assert!(!disk.exists(Path::new(NEW)).unwrap());
}

#[test]
fn an_interrupted_repair_leaves_nothing_or_all() {
    let whole = database();
    let act = |disk: &FaultStorage, ()| repair(disk);
    crash_every_call(
        scaled(3),
        || (whole.duplicate(), ()),
        act,
        |result, disk, place| {
            let disk = Arc::new(disk.clone());
            match Engine::open_in(disk.clone(), Path::new(NEW)) {
                Ok(db) => assert_eq!(db.view().unwrap().num_edges(), NUM_APPENDED + NUM_COMMITS),
                Err(error) => assert!(result.is_err() && error.kind() == ErrorKind::NotFound, "{place}: {error}"),
            }
            let db = Engine::open_read_only_in(disk, Path::new(DB)).unwrap();
            assert_eq!(db.view().unwrap().num_edges(), NUM_APPENDED + NUM_COMMITS);
        },
    );
}
