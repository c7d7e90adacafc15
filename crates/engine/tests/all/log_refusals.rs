//! A system that refuses to lock the database or to write its WAL: the writer gets an error, and readers work. Also a
//! WAL without one of its segments.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;

use anden_base::storage::Storage;
use anden_engine::{Engine, ErrorKind, Missing, Update};
use anden_graph::Graph;
use anden_testkit::{FaultPlan, FaultStorage};

use crate::log_recovery::{DB, edges_of, kill, log_of, open, pool, segments, small_log};

/// The errors of a read-only directory or disk.
#[test]
fn unlockable_database_remains_readable() {
    for kind in [IoKind::PermissionDenied, IoKind::ReadOnlyFilesystem] {
        let (disk, num_edges) = small_log();
        let num_calls = disk.num_calls();
        disk.set_plan(FaultPlan::FailNext("LOCK", kind));
        let read = || {
            let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
            reader.verify(pool()).unwrap();
            assert_eq!(reader.view().unwrap().num_edges(), num_edges, "{kind}");
        };
        read();
        assert_eq!(disk.num_calls(), num_calls, "a reader changes nothing");
        require_refused(open(&disk), "LOCK: cannot lock", kind);
        assert_eq!(disk.num_calls(), num_calls + 1, "without the lock nothing is changed");
        read();
        assert_eq!(open(&disk).unwrap().view().unwrap().num_edges(), num_edges, "{kind}");
    }
}

#[test]
fn read_only_wal_refuses_writers_and_serves_readers() {
    for kind in [IoKind::PermissionDenied, IoKind::ReadOnlyFilesystem] {
        let (disk, num_edges) = small_log();
        let read = || {
            let reader = Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).unwrap();
            assert_eq!(reader.view().unwrap().num_edges(), num_edges, "{kind}");
        };
        // Recovery syncs the WAL before new commits follow.
        disk.set_plan(FaultPlan::FailNext("wal-", kind));
        require_refused(open(&disk), "wal-000001: cannot", kind);
        read();
        let database = open(&disk).unwrap();
        let add = || database.apply(&[Update::add_edge(70, 71)], Missing::Lenient, pool());
        disk.set_plan(FaultPlan::FailNext("wal-", kind));
        require_refused(add(), "wal-000003: cannot create", kind);
        assert_eq!(database.view().unwrap().num_edges(), num_edges, "what is refused has not happened");
        read();
        assert_eq!(add().unwrap().edges, num_edges + 1, "{kind}");
        let left = kill(&disk, database);
        assert_eq!(edges_of(&left, "once it may be written"), Some(num_edges + 1));
    }
}

/// Requires an error with the place, the operation and the reason.
#[track_caller]
fn require_refused<T: std::fmt::Debug>(answer: anden_engine::Result<T>, attempted: &str, kind: IoKind) {
    let error = answer.unwrap_err();
    let said = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Io, "{said}");
    assert!(said.contains(attempted) && said.contains(&kind.to_string()), "{said}");
}

#[test]
fn missing_middle_segment_is_refused_without_loss() {
    let (disk, num_edges) = log_of(3);
    let paths = segments(&disk);
    assert_eq!(paths.len(), 3);
    let contents = |disk: &FaultStorage| paths.iter().map(|path| disk.contents(path)).collect::<Vec<_>>();
    let mut left = contents(&disk);
    disk.remove_file(&paths[1]).unwrap();
    let middle = left[1].take().unwrap();
    assert_eq!(edges_of(&disk, "without the middle"), None);
    let error = open(&disk).unwrap_err().to_string();
    assert!(error.contains("wal-000003") && error.contains("commits before this segment are missing"), "{error}");
    assert!(contents(&disk) == left, "what is there stays as it is");
    disk.set_contents(&paths[1], &middle);
    assert_eq!(edges_of(&disk, "put back"), Some(num_edges));
}
