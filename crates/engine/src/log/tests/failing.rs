//! Contents of the files after errors of the disk, after a record is taken back, and after the WAL is dropped.

use super::*;

const LATER: Durability = Durability::Batched(Duration::from_secs(3600));

/// A WAL whose background thread is stopped.
fn without_thread() -> Scene {
    let scene = Scene::new();
    scene.log.append(1, b"one", LATER).unwrap();
    scene.log.thread.stop();
    scene
}

#[test]
fn too_much_is_written_by_whoever_adds_it() {
    let scene = without_thread();
    scene.log.append(2, b"two", Durability::None).unwrap();
    assert_eq!(scene.epochs(0), [1], "no caller waits for it");
    scene.log.append(3, &vec![7; MAX_PENDING_BYTES], Durability::None).unwrap();
    assert_eq!(scene.epochs(0), [1, 2, 3]);
}

#[test]
fn write_error_is_reported_until_a_write_succeeds() {
    let scene = without_thread();
    scene.log.append(2, b"two", Durability::None).unwrap();
    scene.disk.set_plan(FaultPlan::FailNext("wal-", IoKind::StorageFull));
    let error = scene.log.write().unwrap_err().to_string();
    assert_eq!(scene.log.stats().failure, Some(error));
    scene.log.write().unwrap();
    assert_eq!((scene.log.stats().failure, scene.epochs(0)), (None, vec![1, 2]));
}

#[test]
fn buffered_records_are_written_on_drop() {
    let Scene { disk, log, .. } = without_thread();
    log.append(2, b"two", Durability::None).unwrap();
    drop(log);
    assert_eq!(open(&disk, 0).unwrap().2, [(1, b"one".to_vec()), (2, b"two".to_vec())]);
}

#[test]
fn buffered_records_are_written_before_segment_rotation() {
    let scene = without_thread();
    scene.log.append(2, b"two", Durability::None).unwrap();
    scene.log.rotate();
    scene.log.append(3, b"three", Durability::Sync).unwrap();
    assert_eq!((scene.segments().len(), scene.epochs(0)), (2, vec![1, 2, 3]));
}

#[test]
fn a_sync_covers_the_segments_before() {
    let scene = Scene::new();
    for epoch in 1..=3 {
        scene.log.append(epoch, b"x", if epoch < 3 { LATER } else { Durability::Sync }).unwrap();
        scene.log.rotate();
    }
    for seed in 0..20 {
        let found = open(&scene.disk.after_crash(seed), 0).unwrap().2;
        assert_eq!(found.len(), 3, "disk {seed}");
    }
}

/// A failed write must not fill a full disk further.
#[test]
fn failed_group_write_truncates_the_segment() {
    let (mut num_refused, large) = (0, vec![5; 300 << 10]);
    for call in 0.. {
        let scene = Scene::new();
        scene.log.append(1, b"one", Durability::Sync).unwrap();
        let len = || scene.disk.contents(&scene.segments()[0]).unwrap().len();
        let before = len();
        scene.disk.set_plan(FaultPlan::FailAt(scene.disk.num_calls() + call, IoKind::StorageFull));
        let is_refused = scene.log.append(2, &large, Durability::Sync).is_err();
        if scene.lock.is_poisoned() {
            // All bytes were written, and the sync failed.
            break;
        }
        num_refused += u32::from(is_refused);
        assert!(!is_refused || len() <= before, "call {call}: {} bytes, {before} before", len());
        assert_eq!(scene.epochs(0).len(), if is_refused { 1 } else { 2 }, "call {call}");
    }
    assert!(num_refused > 0);
}

/// Half a header would count as damage, because later records are durable.
#[test]
fn segment_with_unwritten_header_is_ignored() {
    for call in 0..8 {
        let scene = Scene::new();
        scene.disk.set_plan(FaultPlan::FailAt(scene.disk.num_calls() + call, IoKind::StorageFull));
        let is_refused = scene.log.append(1, b"one", LATER).is_err();
        scene.disk.set_plan(FaultPlan::Never);
        if is_refused {
            scene.log.append(1, b"again", Durability::Sync).unwrap();
        }
        assert_eq!(scene.epochs(0), [1], "call {call}");
    }
}

/// A file without a header would count as damage once later records are durable.
#[test]
fn failed_segment_start_leaves_no_file() {
    let mut num_refused = 0;
    for call in 0..8 {
        let scene = Scene::new();
        scene.log.append(1, b"one", Durability::Sync).unwrap();
        scene.log.rotate();
        scene.disk.set_plan(FaultPlan::FailAt(scene.disk.num_calls() + call, IoKind::StorageFull));
        num_refused += u32::from(scene.log.append(2, b"two", LATER).is_err());
        scene.disk.set_plan(FaultPlan::Never);
        for path in scene.segments() {
            let bytes = scene.disk.contents(&path).unwrap();
            assert!(bytes.starts_with(b"ANDW"), "call {call}: {} has no header", path.display());
        }
    }
    assert!(num_refused > 1, "the file, then its header: {num_refused}");
}

/// An older copy in its place would lose records that count as durable.
#[test]
fn segment_sealed_during_sync_is_checked() {
    let scene = without_thread();
    let unsynced = scene.log.shared.files.lock().unsynced();
    scene.log.rotate();
    scene.log.append(2, b"two", LATER).unwrap();
    let files = scene.log.shared.files.lock();
    let names: Vec<PathBuf> = files.names(&unsynced).map(|(path, _)| path.to_owned()).collect();
    assert_eq!(names, scene.segments());
    assert!(scene.lock.check_synced(files.names(&unsynced)).is_ok());
    scene.disk.set_contents(&names[0], b"an older copy");
    assert!(scene.lock.check_synced(files.names(&unsynced)).is_err());
}

/// An unsynced record follows in place of a durable one.
#[test]
fn rolled_back_record_is_never_claimed_durable() {
    let scene = Scene::new();
    for epoch in 1..=2 {
        scene.log.append(epoch, &[epoch as u8; 700], Durability::Sync).unwrap();
    }
    scene.log.take_back(2).unwrap();
    for epoch in 2..=4 {
        scene.log.append(epoch, &[7; 700], LATER).unwrap();
    }
    for seed in 0..200 {
        let found = open(&scene.disk.after_crash(seed), 0).map(|(_, _, groups)| groups.len());
        let num_groups = found.unwrap_or_else(|error| panic!("disk {seed}: {error}"));
        assert!((1..=4).contains(&num_groups), "disk {seed}: {num_groups} groups");
    }
}

#[test]
fn failed_rollback_poisons_the_wal() {
    // The mark names the first record only.
    for (epoch, file) in [(1, "LOG"), (2, "wal-")] {
        let scene = Scene::new();
        (1..=epoch).for_each(|epoch| scene.log.append(epoch, b"x", Durability::Sync).unwrap());
        scene.disk.set_plan(FaultPlan::FailNext(file, IoKind::Other));
        scene.log.take_back(epoch).unwrap_err();
        assert!(scene.lock.is_poisoned(), "{file}");
        let error = scene.log.append(epoch, b"y", Durability::Sync).unwrap_err();
        assert!(matches!(error, Error::Snapshots(anden_snapshots::Error::Poisoned { .. })), "{error}");
    }
}

#[test]
fn records_that_fail_are_not_counted() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    let counts = || (scene.log.stats().num_groups, scene.log.kept_bytes());
    let before = counts();
    scene.disk.set_plan(FaultPlan::FailNext("wal-", IoKind::StorageFull));
    scene.log.append(2, b"two", Durability::Sync).unwrap_err();
    assert_eq!(counts(), before);
    scene.log.append(2, b"two", Durability::Sync).unwrap();
    assert_eq!((scene.log.stats().num_groups, scene.epochs(0)), (2, vec![1, 2]));
}
