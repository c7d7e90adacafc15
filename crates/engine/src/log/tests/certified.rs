//! The certified end of the WAL: damage in its last durable records is refused, and never taken for the end.

use std::sync::atomic::AtomicBool;

use super::*;

const LATER: Durability = Durability::Batched(Duration::from_secs(3600));

impl Scene {
    /// The bytes of the only segment, and the end of its last record.
    fn segment(&self) -> (PathBuf, Vec<u8>, usize) {
        let path = self.segments().pop().unwrap();
        let bytes = self.disk.contents(&path).unwrap();
        let mut end = FIRST_GROUP as usize;
        while bytes.len() >= end + GROUP_HEADER_BYTES && bytes[end..][..8] != [0; 8] {
            end += group_bytes(format::u64_at(&bytes, end + 16) as usize);
        }
        (path, bytes, end)
    }

    /// Ends the process without a word to the WAL: what the thread has written counts.
    fn kill(self) -> FaultStorage {
        self.disk.duplicate()
    }
}

/// The number of records of a disk with these bytes in place of its segment; `None` if they are refused.
fn read_changed(disk: &FaultStorage, path: &Path, bytes: &[u8], place: &str) -> Option<usize> {
    let disk = disk.duplicate();
    disk.set_contents(path, bytes);
    match open(&disk, 0) {
        Ok((_, _, groups)) => Some(groups.len()),
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("wal-0000") && error.contains("damaged at byte"), "{place}: {error}");
            assert!(error.contains("which was durable"), "{place}: {error}");
            None
        }
    }
}

/// Requires that each flipped byte and each shorter length of the last segment is refused or harmless.
fn require_certified(disk: &FaultStorage, num_groups: usize, scene: &str) {
    let probe = Scene { disk: disk.duplicate(), ..Scene::new() };
    let (path, bytes, end) = probe.segment();
    let (mut num_flips, mut num_cuts) = (0, 0);
    // The bytes of the records, and some of the zeros behind them.
    for at in 0..bytes.len().min(end + 64) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        match read_changed(disk, &path, &damaged, &format!("{scene}, byte {at}")) {
            None => num_flips += 1,
            Some(found) => assert_eq!(found, num_groups, "{scene}, byte {at}"),
        }
    }
    for len in 0..bytes.len().min(end + 64) {
        match read_changed(disk, &path, &bytes[..len], &format!("{scene}, {len} bytes")) {
            None => num_cuts += 1,
            Some(found) => assert_eq!(found, num_groups, "{scene}, {len} bytes"),
        }
    }
    // No checksum covers the zeros that fill a record up.
    assert!(num_flips + 7 * num_groups >= end && num_cuts + 7 >= end, "{scene}: {num_flips}, {num_cuts} of {end}");
}

fn is_certified(disk: &FaultStorage, epoch: u64) -> bool {
    let mark = disk.contents(Path::new("db/LOG"));
    mark.is_some_and(|bytes| bytes.len() == 40 && format::u64_at(&bytes, 24) >= epoch)
}

#[test]
fn last_synced_records_are_certified_in_time() {
    for num_groups in [1, 2, 5] {
        let scene = Scene::new();
        for epoch in 1..=num_groups {
            scene.log.append(epoch, &vec![epoch as u8; 3 + 10 * epoch as usize], Durability::Sync).unwrap();
        }
        wait_until(|| is_certified(&scene.disk, num_groups));
        require_certified(&scene.kill(), num_groups as usize, &format!("{num_groups} records"));
    }
}

#[test]
fn certificate_survives_a_power_cut() {
    let scene = Scene::new();
    (1..=3).for_each(|epoch| scene.log.append(epoch, b"a commit", Durability::Sync).unwrap());
    wait_until(|| (0..20).all(|seed| is_certified(&scene.disk.after_crash(seed), 3)));
    require_certified(&scene.disk.after_crash(7), 3, "after a power cut");
}

#[test]
fn large_record_is_certified_with_its_answer() {
    let scene = Scene::new();
    scene.log.append(1, b"small", Durability::Sync).unwrap();
    scene.log.append(2, &vec![7; 64 << 10], Durability::Sync).unwrap();
    assert!(is_certified(&scene.disk, 2));
}

#[test]
fn thread_parks_once_the_end_is_certified() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    let is_parked = || {
        let state = scene.log.shared.state.lock();
        state.looks_at.is_none() && state.certify.is_none()
    };
    wait_until(is_parked);
    assert!(is_certified(&scene.disk, 1));
    let num_calls = scene.disk.num_calls();
    std::thread::sleep(Duration::from_millis(250));
    assert!(is_parked() && scene.disk.num_calls() == num_calls, "an idle WAL stays idle");
}

#[test]
fn synced_records_are_certified_on_drop() {
    let Scene { disk, log, .. } = Scene::new();
    (1..=2).for_each(|epoch| log.append(epoch, b"a commit", Durability::Sync).unwrap());
    drop(log);
    for seed in 0..20 {
        assert!(is_certified(&disk.after_crash(seed), 2), "disk {seed}");
    }
    require_certified(&disk, 2, "dropped");
}

#[test]
fn recovered_records_are_certified() {
    let scene = Scene::new();
    (1..=3).for_each(|epoch| scene.log.append(epoch, b"a commit", LATER).unwrap());
    let disk = scene.kill();
    assert!(!is_certified(&disk, 1));
    drop(open(&disk, 0).unwrap());
    for seed in 0..20 {
        assert!(is_certified(&disk.after_crash(seed), 3), "disk {seed}");
    }
    require_certified(&disk, 3, "recovered");
}

#[test]
fn commits_before_a_rollback_stay_certified() {
    let scene = Scene::new();
    (1..=3).for_each(|epoch| scene.log.append(epoch, b"a commit", Durability::Sync).unwrap());
    scene.log.shared.certify().unwrap();
    scene.log.take_back(3).unwrap();
    assert!(is_certified(&scene.disk, 2) && !is_certified(&scene.disk, 3));
    require_certified(&scene.kill(), 2, "after a rollback");
}

/// Records that no sync has covered must not be certified, or a power cut would make damage of them.
#[test]
fn unsynced_records_are_never_certified() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    (2..=4).for_each(|epoch| scene.log.append(epoch, &[epoch as u8; 700], LATER).unwrap());
    scene.log.shared.certify().unwrap();
    assert!(is_certified(&scene.disk, 1) && !is_certified(&scene.disk, 2));
    for seed in 0..100 {
        let found = open(&scene.disk.after_crash(seed), 0).map(|(_, _, groups)| groups.len());
        assert!(matches!(found, Ok(1..=4)), "disk {seed}: {found:?}");
    }
}

/// A write of the mark that failed is made again with the same mark.
#[test]
fn failed_mark_is_written_again() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    scene.log.shared.certify().unwrap();
    scene.disk.set_plan(FaultPlan::FailNext("LOG", IoKind::Other));
    scene.log.append(2, &vec![7; 64 << 10], Durability::Sync).unwrap();
    assert!(!is_certified(&scene.disk, 2), "the write failed, and the commit stands");
    scene.log.shared.certify().unwrap();
    assert!((0..20).all(|seed| is_certified(&scene.disk.after_crash(seed), 2)));
}

/// Buffered records give the thread work at each look. It certifies the synced ones all the same.
#[test]
fn certificates_come_beside_steady_commits() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    let mut epoch = 1;
    wait_until(|| {
        epoch += 1;
        scene.log.append(epoch, b"a buffered commit", Durability::None).unwrap();
        scene.log.shared.state.lock().certify.is_none()
    });
    wait_until(|| (0..5).all(|seed| is_certified(&scene.disk.after_crash(seed), 1)));
}

/// The lowered mark must be durable. Only one of two concurrent syncs of a file may hear of a lost write.
#[test]
fn rollback_waits_for_a_sync_of_the_mark() {
    let scene = Scene::new();
    (1..=2).for_each(|epoch| scene.log.append(epoch, b"a commit", Durability::Sync).unwrap());
    scene.log.shared.certify().unwrap();
    let is_back = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let syncing = scene.log.shared.syncing_mark.lock();
        scope.spawn(|| {
            scene.log.take_back(2).unwrap();
            is_back.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(!is_back.load(Ordering::SeqCst) && is_certified(&scene.disk, 2));
        drop(syncing);
    });
    assert!(is_back.load(Ordering::SeqCst) && !is_certified(&scene.disk, 2));
}

/// An operator has put an older copy in the place of the files. It must not get a mark beyond its records.
#[test]
fn replaced_segment_gets_no_mark() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    scene.log.shared.certify().unwrap();
    let (path, bytes, _) = scene.segment();
    scene.log.append(2, b"two", LATER).unwrap();
    scene.log.shared.state.lock().synced_through = 2;
    scene.disk.set_contents(&path, &bytes);
    scene.log.shared.certify().unwrap_err();
    assert!(!is_certified(&scene.disk, 2));
}

/// A power cut at every call of commits, certificates, rollbacks and a new segment.
#[test]
fn crash_around_certificates_loses_no_synced_record() {
    let act = |disk: &FaultStorage, ()| -> (u64, u64) {
        let (mut answered, mut asked) = (0, 0);
        let mut run = || -> Result<()> {
            let (log, _, _) = open(disk, 0)?;
            for epoch in 1..=9 {
                asked = epoch;
                let durability = if epoch % 3 == 2 { LATER } else { Durability::Sync };
                log.append(epoch, &vec![epoch as u8; 300 * epoch as usize], durability)?;
                if durability == Durability::Sync {
                    answered = epoch;
                }
                if epoch % 2 == 0 {
                    log.shared.certify()?;
                }
                if epoch == 4 {
                    answered = 3;
                    log.take_back(4)?;
                    log.append(4, b"another", Durability::Sync)?;
                    answered = 4;
                }
                if epoch == 6 {
                    log.rotate();
                }
            }
            Ok(())
        };
        // After the power cut, every call fails.
        let _ = run();
        (answered, asked)
    };
    let (mut num_states, mut num_whole) = (0, 0);
    let start = || (Scene::new().disk.duplicate(), ());
    crash_every_call(24, start, act, |&(answered, asked), after, place| {
        // The first opening cuts and certifies; the second must find the same.
        for round in 0..2 {
            let found = open(after, 0).map(|(_, _, groups)| groups.len() as u64);
            let found = found.unwrap_or_else(|error| panic!("{place}, round {round}: {error}"));
            assert!((answered..=asked).contains(&found), "{place}: {found} of {answered}");
            num_whole += u64::from(found == 9);
        }
        num_states += 1;
    });
    println!("crash_every_call[certificates]: {num_states} disks");
    assert!(num_states > 500 && num_whole > 0, "{num_states} states, {num_whole} whole");
}

/// A crash while a recovery cuts, rewrites and certifies.
#[test]
fn crash_during_recovery_keeps_the_answered_prefix() {
    let scene = Scene::new();
    scene.log.append(1, b"one", Durability::Sync).unwrap();
    scene.log.shared.certify().unwrap();
    scene.log.append(2, &[2; 900], Durability::Sync).unwrap();
    (3..=5).for_each(|epoch| scene.log.append(epoch, &[epoch as u8; 900], LATER).unwrap());
    for first in 0..30 {
        let crashed = scene.disk.after_crash(first);
        // The power cut loses the answer.
        let act = |disk: &FaultStorage, ()| drop(open(disk, 0));
        crash_every_call(
            6,
            || (crashed.duplicate(), ()),
            act,
            |(), after, place| {
                let found = open(after, 0).map(|(_, _, groups)| groups.len());
                assert!(matches!(found, Ok(2..=5)), "disk {first}, {place}: {found:?}");
            },
        );
    }
}
