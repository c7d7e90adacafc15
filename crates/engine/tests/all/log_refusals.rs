//! A system that refuses to lock the database or to write its WAL: the writer gets an error, and readers work. Also a
//! WAL without one of its segments, or with damage in one.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anden_base::storage::Storage;
use anden_engine::{Durability, Engine, ErrorKind, Missing, Update};
use anden_graph::Graph;
use anden_testkit::{FaultPlan, FaultStorage};

use crate::log_recovery::{DB, edges_of, kill, log_of, log_with, open, pool, segments, small_log};

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

/// Calls `body` with each segment, its place and its bytes, and the end of the bytes that matter.
fn for_each_segment(disk: &FaultStorage, mut body: impl FnMut(usize, &Path, &[u8], usize)) {
    for (index, path) in segments(disk).iter().enumerate() {
        let bytes = disk.contents(path).unwrap();
        let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 16;
        body(index, path, &bytes, end.min(bytes.len()));
    }
}

#[test]
fn flipped_byte_is_refused_or_ends_the_wal() {
    for of_last in [Durability::Sync, Durability::Batched(Duration::from_secs(3600))] {
        let (disk, num_edges) = log_with(2, of_last);
        assert_eq!((edges_of(&disk.duplicate(), "whole"), segments(&disk).len()), (Some(num_edges), 2));
        let (mut num_refused, mut num_cut) = (0, 0);
        for_each_segment(&disk, |index, path, bytes, end| {
            for at in 0..end {
                let copy = disk.duplicate();
                let mut damaged = bytes.to_owned();
                damaged[at] ^= 0x10;
                copy.set_contents(path, &damaged);
                match edges_of(&copy, &format!("{of_last:?}, segment {index}, byte {at}")) {
                    None => num_refused += 1,
                    Some(found) if found == num_edges => {}
                    Some(found) => {
                        // Nothing certifies commits that no sync covers.
                        assert!(index == 1 && of_last != Durability::Sync, "segment {index}, byte {at}: {found} edges");
                        assert!(found >= num_edges / 2, "segment {index}, byte {at}: {found} edges");
                        num_cut += 1;
                    }
                }
            }
        });
        assert!(num_refused > 250 && (num_cut > 30) == (of_last != Durability::Sync), "{num_refused}, {num_cut} cut");
    }
}

#[test]
fn truncated_wal_ends_there_or_is_refused() {
    for of_last in [Durability::Sync, Durability::Batched(Duration::from_secs(3600))] {
        let (disk, num_edges) = log_with(2, of_last);
        let (mut found_before, mut num_refused) = (0, 0);
        for_each_segment(&disk, |index, path, bytes, end| {
            for len in 0..end {
                let copy = disk.duplicate();
                copy.set_contents(path, &bytes[..len]);
                let Some(found) = edges_of(&copy, &format!("{of_last:?}, segment {index}, {len} bytes")) else {
                    assert!(index == 0 || of_last == Durability::Sync, "no sync covered the second segment");
                    num_refused += 1;
                    continue;
                };
                if index == 0 || of_last == Durability::Sync {
                    assert_eq!(found, num_edges, "segment {index}, {len} bytes");
                    continue;
                }
                assert!(found >= found_before && found <= num_edges, "{len} bytes: {found} edges");
                assert!(found >= num_edges / 2, "{len} bytes: {found} edges, all of the first segment");
                // Records before a later commit are complete.
                let copy = disk.duplicate();
                copy.set_contents(path, &bytes[..len]);
                let database = open(&copy).unwrap();
                database.apply(&[Update::add_edge(70, 71)], Missing::Lenient, pool()).unwrap();
                let copy = kill(&copy, database);
                assert_eq!(edges_of(&copy, &format!("{len} bytes and a commit")), Some(found + 1));
                found_before = found;
            }
        });
        assert!(num_refused > 100 && (of_last == Durability::Sync || found_before == num_edges), "{num_refused}");
    }
}
