//! Tests of the WAL on its own: the content of its files after each operation.

mod certified;
mod failing;
mod reading;

use std::io::ErrorKind as IoKind;
use std::path::PathBuf;

use anden_testkit::{FaultPlan, FaultStorage, crash_every_call};

use super::*;
use crate::Error;

const ID: DatabaseId = DatabaseId([9; 16]);
const SECOND: Duration = Duration::from_secs(1);

/// A WAL on its own fault-injecting disk.
struct Scene {
    disk: FaultStorage,
    log: Log,
    lock: Arc<WriterLock>,
}

/// Epochs and payloads.
type Groups = Vec<(u64, Vec<u8>)>;

fn open(disk: &FaultStorage, after: u64) -> Result<(Log, Arc<WriterLock>, Groups)> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let lock = Arc::new(WriterLock::take(Arc::clone(&storage), Path::new("db"))?);
    let owner = LogOwner { storage, id: ID, lock: Arc::clone(&lock), keep_bytes: 0 };
    let mut groups = Vec::new();
    let log = Log::open(owner, Path::new("db"), after, &mut |group| {
        groups.push((group.epoch, group.payload.to_vec()));
        Ok(())
    })?;
    Ok((log, lock, groups))
}

impl Scene {
    fn new() -> Self {
        let disk = FaultStorage::default();
        disk.create_dir(Path::new("db")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        let (log, lock, _) = open(&disk, 0).unwrap();
        Self { disk, log, lock }
    }

    fn segments(&self) -> Vec<PathBuf> {
        LogPlace { storage: &self.disk, directory: Path::new("db"), id: ID }
            .segments()
            .unwrap()
            .into_iter()
            .map(|(_, path)| path)
            .collect()
    }

    /// The records in the files after `after`.
    fn groups(&self, after: u64) -> Groups {
        open(&self.disk.duplicate(), after).unwrap().2
    }

    fn epochs(&self, after: u64) -> Vec<u64> {
        self.groups(after).into_iter().map(|(epoch, _)| epoch).collect()
    }
}

/// Waits until another thread makes a condition true.
fn wait_until(mut has_happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !has_happened() {
        assert!(start.elapsed() < 30 * SECOND, "it does not happen");
        std::thread::yield_now();
    }
}

#[test]
fn unawaited_records_are_written_before_awaited_ones() {
    let scene = Scene::new();
    for epoch in 1..=9 {
        scene.log.append(epoch, &[epoch as u8], Durability::None).unwrap();
    }
    scene.log.append(10, b"waits", Durability::Batched(60 * SECOND)).unwrap();
    let groups = scene.groups(0);
    assert_eq!(groups.len(), 10);
    assert_eq!((&groups[0], &groups[9]), (&(1, vec![1]), &(10, b"waits".to_vec())));
    // No commit waits here at all.
    scene.log.append(11, &[], Durability::None).unwrap();
    wait_until(|| scene.epochs(0).len() == 11);
    // A commit that exceeds the buffer's limit writes it.
    let large = vec![7; MAX_PENDING_BYTES + 1];
    scene.log.append(12, &large, Durability::None).unwrap();
    assert_eq!(scene.groups(11), [(12, large)]);
    assert_eq!(scene.log.stats().num_groups, 12);
}

#[test]
fn batched_commits_are_synced_in_time() {
    let scene = Scene::new();
    scene.log.append(1, b"a", Durability::Batched(Duration::from_millis(1))).unwrap();
    wait_until(|| (0..20).all(|seed| open(&scene.disk.after_crash(seed), 0).unwrap().2.len() == 1));
    let num_syncs = scene.log.stats().num_syncs;
    scene.log.append(2, b"b", Durability::Batched(3600 * SECOND)).unwrap();
    assert_eq!(scene.log.stats().num_syncs, num_syncs, "an hour has not gone by");
    scene.log.append(3, b"c", Durability::Sync).unwrap();
    assert!((0..20).all(|seed| open(&scene.disk.after_crash(seed), 0).unwrap().2.len() == 3));
}

#[test]
fn a_group_that_is_refused_leaves_no_trace() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    let num_bytes = scene.disk.contents(&scene.segments()[0]).unwrap().len();
    scene.disk.set_plan(FaultPlan::FailNext("wal-", IoKind::StorageFull));
    let error = scene.log.append(2, &vec![1; 4096], Durability::Sync).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
    assert!(scene.disk.contents(&scene.segments()[0]).unwrap().len() <= num_bytes, "the file is cut back");
    scene.log.append(2, b"two", Durability::Sync).unwrap();
    assert_eq!(scene.groups(0), [(1, b"one".to_vec()), (2, b"two".to_vec())]);
}

#[test]
fn buffered_record_is_retried_after_full_disk() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    scene.disk.set_plan(FaultPlan::FailNext("wal-", IoKind::StorageFull));
    scene.log.append(2, b"two", Durability::None).unwrap();
    wait_until(|| scene.epochs(0) == [1, 2]);
    scene.log.append(3, b"three", Durability::Sync).unwrap();
    assert_eq!(scene.epochs(0), [1, 2, 3]);
}

#[test]
fn a_group_can_be_taken_back() {
    for durability in [Durability::Sync, Durability::None] {
        let scene = Scene::new();
        scene.log.append(1, b"one", durability).unwrap();
        let counts = || (scene.log.stats().num_groups, scene.log.kept_bytes());
        let before = counts();
        scene.log.append(2, b"two", durability).unwrap();
        assert_ne!(counts(), before);
        scene.log.take_back(2).unwrap();
        assert_eq!(counts(), before);
        scene.log.append(2, b"another", durability).unwrap();
        scene.log.append(3, b"three", Durability::Sync).unwrap();
        let groups = scene.groups(0);
        assert_eq!(groups, [(1, b"one".to_vec()), (2, b"another".to_vec()), (3, b"three".to_vec())]);
    }
}

#[test]
fn rolled_back_group_is_not_marked_durable() {
    for num_before in 0..3 {
        let scene = Scene::new();
        for epoch in 1..=num_before {
            scene.log.append(epoch, b"x", Durability::Sync).unwrap();
        }
        scene.log.rotate();
        // The first record of its segment.
        scene.log.append(num_before + 1, b"taken back", Durability::Sync).unwrap();
        scene.log.take_back(num_before + 1).unwrap();
        for seed in 0..20 {
            let found = open(&scene.disk.after_crash(seed), 0).unwrap().2;
            assert_eq!(found.len() as u64, num_before, "disk {seed}");
        }
        scene.log.append(num_before + 1, b"another", Durability::Sync).unwrap();
        let left = scene.disk.duplicate();
        left.remove_file(scene.segments().last().unwrap()).unwrap();
        let error = open(&left, 0).map(drop).unwrap_err().to_string();
        assert!(error.contains("is missing"), "{error}");
        assert!(open(&left, num_before + 1).is_ok(), "a snapshot has it");
    }
}

#[test]
fn group_of_another_chain_is_ignored() {
    let written = |second: &[u8]| {
        let scene = Scene::new();
        for (epoch, payload) in [(1, &b"one"[..]), (2, second)] {
            scene.log.append(epoch, payload, Durability::Sync).unwrap();
        }
        // Without a sync, nothing certifies the third.
        scene.log.append(3, b"three", Durability::Batched(3600 * SECOND)).unwrap();
        let bytes = scene.disk.contents(&scene.segments()[0]).unwrap();
        (scene, bytes)
    };
    let ((scene, mut bytes), (_, other)) = (written(b"right"), written(b"wrong"));
    // A record of the same database, opening, epoch and place, like one that was taken back and yet reached the disk.
    let third = FIRST_GROUP as usize + group_bytes(3) + group_bytes(5);
    assert_ne!(bytes[third..], other[third..]);
    bytes[third..].copy_from_slice(&other[third..]);
    scene.disk.set_contents(&scene.segments()[0], &bytes);
    assert_eq!(scene.groups(0), [(1, b"one".to_vec()), (2, b"right".to_vec())]);
}

#[test]
fn segments_go_when_a_snapshot_has_them() {
    let scene = Scene::new();
    for epoch in 1..=3 {
        scene.log.append(epoch, b"x", Durability::Sync).unwrap();
    }
    scene.log.rotate();
    assert_eq!(scene.segments().len(), 1, "the next group begins one");
    scene.log.append(4, b"y", Durability::Sync).unwrap();
    assert_eq!((scene.segments().len(), scene.epochs(0)), (2, vec![1, 2, 3, 4]));
    scene.log.remove_through(2, 0);
    assert_eq!(scene.segments().len(), 2, "the third is needed");
    scene.log.remove_through(3, 0);
    assert_eq!((scene.segments().len(), scene.epochs(3)), (1, vec![4]));
    scene.log.remove_through(5, 0);
    assert_eq!((scene.segments().len(), scene.log.stats().num_bytes), (0, 0));
    // The manifest has the fifth commit at once.
    scene.log.append(6, b"z", Durability::Sync).unwrap();
    assert_eq!(scene.epochs(5), [6]);
    assert!(scene.segments()[0].ends_with("wal-000003"), "no name is given twice");
}

#[test]
fn damaged_records_covered_by_snapshot_are_ignored() {
    let scene = Scene::new();
    for epoch in 1..=6 {
        scene.log.append(epoch, &[epoch as u8; 20], Durability::Sync).unwrap();
    }
    let path = &scene.segments()[0];
    let mut bytes = scene.disk.contents(path).unwrap();
    let second = FIRST_GROUP as usize + group_bytes(20);
    bytes[second + 3] ^= 1;
    bytes[second + group_bytes(20) + GROUP_HEADER_BYTES] ^= 1;
    scene.disk.set_contents(path, &bytes);
    for after in 0..=2 {
        let error = open(&scene.disk.duplicate(), after).unwrap_err().to_string();
        let number = if after < 2 { 2 } else { 3 };
        assert!(error.contains(&format!("commit {number}, which was durable")), "after {after}: {error}");
    }
    for after in 3..=6 {
        assert_eq!(scene.epochs(after), (after + 1..=6).collect::<Vec<_>>());
    }
}

#[test]
fn a_sync_that_fails_is_the_last() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    scene.log.append(2, b"two", Durability::Batched(3600 * SECOND)).unwrap();
    // Only the sync may fail.
    scene.disk.set_plan(FaultPlan::FailNext("wal-", IoKind::Other));
    scene.log.shared.sync_until(Instant::now());
    wait_until(|| scene.lock.is_poisoned());
    for durability in [Durability::None, Durability::Batched(SECOND), Durability::Sync] {
        let error = scene.log.append(3, b"three", durability).unwrap_err();
        assert!(matches!(error, Error::Snapshots(anden_snapshots::Error::Poisoned { .. })), "{error}");
    }
    assert_eq!(scene.epochs(0), [1, 2]);
}

/// The page cache goes on showing the bytes that were not written, and a further sync does not write them.
#[test]
fn records_of_failed_sync_are_written_again() {
    for num_calls in 0..8 {
        let Scene { disk, log, lock } = Scene::new();
        // A different number of calls makes the disk lose other bytes.
        (0..num_calls).for_each(|_| disk.sync_dir(Path::new("db")).unwrap());
        log.append(1, b"one", Durability::Sync).unwrap();
        for epoch in 2..=9 {
            log.append(epoch, &[epoch as u8; 700], Durability::Batched(3600 * SECOND)).unwrap();
        }
        disk.set_plan(FaultPlan::FailNext("wal-", IoKind::Other));
        log.shared.sync_until(Instant::now());
        wait_until(|| lock.is_poisoned());
        drop((log, lock));
        let (log, _, groups) = open(&disk, 0).unwrap();
        assert_eq!(groups.len(), 9);
        log.append(10, b"ten", Durability::Sync).unwrap();
        for seed in 0..8 {
            let groups = open(&disk.after_crash(seed), 0).map(|(_, _, groups)| groups.len());
            assert_eq!(groups.unwrap_or_else(|error| panic!("disk {seed}: {error}")), 10, "disk {seed}");
        }
    }
}

#[test]
fn a_time_that_never_comes_is_none() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Batched(Duration::MAX)).unwrap();
    assert_eq!((scene.epochs(0), scene.log.stats().num_syncs), (vec![1], 0));
    scene.log.append(2, b"two", Durability::Sync).unwrap();
    assert_eq!(scene.epochs(0), [1, 2]);
}

#[test]
fn a_large_log_goes_on_in_another_segment() {
    let scene = Scene::new();
    let payload = vec![3; 5 << 20];
    let num_groups = 2 * SEGMENT_BYTES / payload.len() as u64;
    for epoch in 1..=num_groups {
        scene.log.append(epoch, &payload, Durability::Batched(3600 * SECOND)).unwrap();
    }
    assert_eq!(scene.segments().len(), 2);
    assert_eq!(scene.epochs(0).len() as u64, num_groups);
}

#[test]
fn resumed_read_yields_only_new_groups() {
    let scene = Scene::new();
    let append = |epoch: u64| scene.log.append(epoch, &epoch.to_le_bytes(), Durability::Sync).unwrap();
    let place = LogPlace { storage: &scene.disk, directory: Path::new("db"), id: ID };
    let read_on = |after: u64, lsn: Option<Lsn>| {
        let mut epochs = Vec::new();
        let read = place.hold(0).unwrap().read_on(after, lsn, &mut |group| {
            assert_eq!(group.payload, group.epoch.to_le_bytes());
            epochs.push(group.epoch);
            Ok(())
        });
        read.map(|lsn| (lsn, epochs))
    };
    let (none, nothing) = read_on(0, None).unwrap();
    assert!(none.is_none() && nothing.is_empty());
    (1..=3).for_each(append);
    let (first, epochs) = read_on(0, None).unwrap();
    assert_eq!(epochs, [1, 2, 3]);
    let (same, nothing) = read_on(3, first).unwrap();
    assert!(same.is_some() && nothing.is_empty());
    (4..=5).for_each(append);
    // Another segment, and an empty one.
    scene.log.rotate();
    (6..=7).for_each(append);
    scene.log.rotate();
    let path = &scene.segments()[0];
    let whole = scene.disk.contents(path).unwrap();
    let mut bytes = whole.clone();
    bytes[FIRST_GROUP as usize + 1] ^= 1;
    scene.disk.set_contents(path, &bytes);
    // The bytes before the LSN are not checked.
    let (second, epochs) = read_on(3, first).unwrap();
    assert_eq!(epochs, [4, 5, 6, 7]);
    assert!(read_on(0, None).is_err(), "that it was durable is known");
    // An LSN that does not fit, or is gone, counts as none.
    assert!(read_on(4, first).is_ok_and(|(_, epochs)| epochs == [5, 6, 7]));
    scene.disk.set_contents(path, &whole);
    scene.disk.set_contents(&scene.segments()[1], b"");
    let error = read_on(7, second).map(drop).unwrap_err().to_string();
    assert!(error.contains("commit 7, which was read before, was taken back"), "{error}");
}

#[test]
fn resumed_read_stops_at_a_torn_group() {
    let scene = Scene::new();
    let append = |epoch: u64| scene.log.append(epoch, &epoch.to_le_bytes(), Durability::Sync).unwrap();
    (1..=2).for_each(append);
    let place = LogPlace { storage: &scene.disk, directory: Path::new("db"), id: ID };
    let read_on = |after: u64, lsn: Option<Lsn>| {
        let mut epochs = Vec::new();
        let lsn = place.hold(0).unwrap().read_on(after, lsn, &mut |group| {
            epochs.push(group.epoch);
            Ok(())
        });
        (lsn.unwrap(), epochs)
    };
    let (lsn, _) = read_on(0, None);
    append(3);
    // Without a sync, nothing certifies the fourth.
    scene.log.append(4, &4_u64.to_le_bytes(), Durability::Batched(3600 * SECOND)).unwrap();
    let whole = scene.disk.contents(&scene.segments()[0]).unwrap();
    let fourth = FIRST_GROUP as usize + 3 * group_bytes(8);
    let mut torn = whole.clone();
    torn[fourth + 20..].fill(0);
    scene.disk.set_contents(&scene.segments()[0], &torn);
    let (lsn, epochs) = read_on(2, lsn);
    assert_eq!(epochs, [3]);
    scene.disk.set_contents(&scene.segments()[0], &whole);
    assert_eq!(read_on(3, lsn).1, [4]);
}

/// The bytes of a WAL of two commits, and of its mark. A deliberate change of them must raise the format version.
const KEPT: [(&str, &str); 2] = [
    (
        "wal-000001",
        "414e44570f0000000909090909090909090909090909090901000000000000000000000000000000010000000000\
         00000000000000000000000000005f3e3021378dbbb250a13e8a0100000000000000050000000000000000000000\
         000000005f3e30210100000066697273740000005dafdbfdf1ea868202000000000000000a000000000000000100\
         000000000000378dbbb201000000746865207365636f6e64",
    ),
    ("LOG", "414e444c0f00000009090909090909090909090909090909020000000000000001000000f3019b15"),
];

#[test]
fn the_same_commits_give_the_same_bytes() {
    let scene = Scene::new();
    scene.log.append(1, b"first", Durability::Sync).unwrap();
    scene.log.append(2, b"the second", Durability::Sync).unwrap();
    let Scene { disk, log, .. } = scene;
    // The end of a WAL is certified when it is closed.
    drop(log);
    for (name, kept) in KEPT {
        let mut bytes = disk.contents(&Path::new("db").join(name)).unwrap();
        // Zeros follow the records of a segment.
        bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
        let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hexadecimal, kept, "{name}");
    }
}

#[test]
fn kept_logs_are_read() {
    let disk = FaultStorage::default();
    disk.create_dir(Path::new("db")).unwrap();
    for (name, kept) in KEPT {
        let byte = |place| u8::from_str_radix(&kept[place..place + 2], 16).unwrap();
        let path = Path::new("db").join(name);
        disk.create(&path).unwrap();
        disk.set_contents(&path, &(0..kept.len()).step_by(2).map(byte).chain([0; 64]).collect::<Vec<_>>());
    }
    assert_eq!(open(&disk, 0).unwrap().2, [(1, b"first".to_vec()), (2, b"the second".to_vec())]);
}
