//! Reads of a changed WAL, from its beginning and from an LSN.

use super::super::format::u32_at;
use super::*;

const LATER: Durability = Durability::Batched(Duration::from_secs(3600));
const PAYLOAD_BYTES: usize = 20;
const GROUP_BYTES: usize = GROUP_HEADER_BYTES + PAYLOAD_BYTES + 4;

fn payload(epoch: u64) -> Vec<u8> {
    vec![epoch as u8; PAYLOAD_BYTES]
}

/// The offset of the record at an index of its segment.
fn offset(index: usize) -> usize {
    FIRST_GROUP as usize + index * GROUP_BYTES
}

/// The epochs read from an LSN on, and the new LSN.
fn read_on(disk: &FaultStorage, after: u64, from: Option<Lsn>) -> Result<(Option<Lsn>, Vec<u64>)> {
    let place = LogPlace { storage: disk, directory: Path::new("db"), id: ID };
    let mut epochs = Vec::new();
    let lsn = place.hold(0)?.read_on(after, from, &mut |group| {
        epochs.push(group.epoch);
        Ok(())
    })?;
    Ok((lsn, epochs))
}

impl Scene {
    fn append(&self, epoch: u64, durability: Durability) {
        self.log.append(epoch, &payload(epoch), durability).unwrap();
    }

    /// Changes the bytes of a segment.
    fn change(&self, segment: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let path = &self.segments()[segment];
        let mut bytes = self.disk.contents(path).unwrap();
        change(&mut bytes);
        self.disk.set_contents(path, &bytes);
    }

    /// Damages the record at an index of its segment.
    fn damage(&self, segment: usize, index: usize) {
        self.change(segment, |bytes| bytes[offset(index) + GROUP_HEADER_BYTES] ^= 1);
    }

    fn refused(&self) -> String {
        open(&self.disk.duplicate(), 0).map(drop).unwrap_err().to_string()
    }
}

#[test]
fn damage_below_durable_mark_is_refused() {
    let scene = Scene::new();
    scene.append(1, Durability::Sync);
    scene.damage(0, 0);
    let error = scene.refused();
    assert!(error.contains("commit 1, which was durable, cannot be read"), "{error}");
}

#[test]
fn later_segment_proves_durability_without_mark() {
    let scene = Scene::new();
    (1..=3).for_each(|epoch| scene.append(epoch, Durability::Sync));
    scene.log.rotate();
    scene.append(4, Durability::Sync);
    scene.disk.remove_file(Path::new("db/LOG")).unwrap();
    scene.damage(0, 2);
    let error = scene.refused();
    assert!(error.contains("wal-000001") && error.contains("commit 3, which was durable, cannot be read"), "{error}");
}

/// A copied file leaves this state.
#[test]
fn a_commit_that_is_there_twice_is_named() {
    let scene = Scene::new();
    (1..=2).for_each(|epoch| scene.append(epoch, Durability::Sync));
    let bytes = scene.disk.contents(&scene.segments()[0]).unwrap();
    scene.disk.set_contents(Path::new("db/wal-000002"), &bytes);
    let error = scene.refused();
    assert!(error.contains("wal-000002") && error.contains("commit 1 is in the log twice"), "{error}");
}

/// Checksum and chain are valid.
#[test]
fn group_of_other_epoch_or_opening_is_ignored() {
    for (epoch, generation, expected) in [(2, 1, vec![1, 2]), (3, 1, vec![1]), (2, 2, vec![1])] {
        let scene = Scene::new();
        scene.append(1, LATER);
        let (lsn, _) = read_on(&scene.disk, 0, None).unwrap();
        scene.change(0, |bytes| {
            let (payload, chain) = (payload(2), u32_at(bytes, offset(0)));
            let (payload_crc, len) = (crc32c(&payload), payload.len() as u64);
            let header = GroupHeader { payload_crc, epoch, len, synced_through: 0, chain, generation };
            let group = [&header.encode(seed_of(ID), offset(1) as u64).0[..], &payload].concat();
            bytes[offset(1)..][..group.len()].copy_from_slice(&group);
        });
        assert_eq!(scene.epochs(0), expected, "commit {epoch} of opening {generation}");
        let (_, read) = read_on(&scene.disk, 1, lsn).unwrap();
        assert_eq!(read, expected[1..], "commit {epoch} of opening {generation}");
    }
}

/// A record could not be written, and its bytes in the file could not be cut off.
#[test]
fn garbage_after_sealed_segment_is_ignored() {
    let scene = Scene::new();
    (1..=2).for_each(|epoch| scene.append(epoch, Durability::Sync));
    scene.log.rotate();
    (3..=4).for_each(|epoch| scene.append(epoch, Durability::Sync));
    scene.change(0, |bytes| bytes[offset(2)..][..9].fill(7));
    assert_eq!(scene.epochs(0), [1, 2, 3, 4]);
}

#[test]
fn trailing_segments_are_removed_without_name_reuse() {
    let scene = Scene::new();
    for epoch in 1..=3 {
        scene.append(epoch, LATER);
        if epoch == 2 {
            scene.log.rotate();
        }
    }
    scene.append(4, LATER);
    scene.damage(0, 1);
    let disk = scene.disk.duplicate();
    let (log, _, groups) = open(&disk, 0).unwrap();
    assert_eq!(groups, [(1, payload(1))]);
    log.append(2, b"another", Durability::Sync).unwrap();
    let names = disk.list(Path::new("db")).unwrap();
    assert_eq!(names, ["LOCK", "LOG", "wal-000001", "wal-000003"]);
    assert_eq!(open(&disk.duplicate(), 0).unwrap().2, [(1, payload(1)), (2, b"another".to_vec())]);
}

/// A snapshot has the replacements, and the process ended before the segments were removed.
#[test]
fn truncated_records_do_not_come_back() {
    let scene = Scene::new();
    (1..=5).for_each(|epoch| scene.append(epoch, LATER));
    scene.damage(0, 1);
    let disk = scene.disk.duplicate();
    let (log, _, groups) = open(&disk, 0).unwrap();
    assert_eq!(groups, [(1, payload(1))]);
    (2..=4).for_each(|epoch| log.append(epoch, b"another", Durability::Sync).unwrap());
    assert_eq!(open(&disk.duplicate(), 3).unwrap().2, [(4, b"another".to_vec())]);
}

#[test]
fn a_bad_record_is_met_by_who_reads_on() {
    let scene = Scene::new();
    (1..=2).for_each(|epoch| scene.append(epoch, Durability::Sync));
    let (lsn, _) = read_on(&scene.disk, 0, None).unwrap();
    (3..=5).for_each(|epoch| scene.append(epoch, Durability::Sync));
    scene.damage(0, 2);
    let error = read_on(&scene.disk, 2, lsn).unwrap_err().to_string();
    assert!(error.contains("commit 3, which was durable, cannot be read"), "{error}");
    scene.damage(0, 2);
    assert_eq!(read_on(&scene.disk, 2, lsn).unwrap().1, [3, 4, 5]);
}

#[test]
fn resumed_read_skips_group_of_another_chain() {
    let third = |second: &[u8]| {
        let scene = Scene::new();
        scene.append(1, LATER);
        scene.log.append(2, second, LATER).unwrap();
        let (lsn, _) = read_on(&scene.disk, 0, None).unwrap();
        scene.append(3, LATER);
        (scene, lsn)
    };
    let ((scene, lsn), (other, _)) = (third(&payload(2)), third(&payload(9)));
    assert_eq!(read_on(&scene.disk, 2, lsn).unwrap().1, [3]);
    let bytes = other.disk.contents(&other.segments()[0]).unwrap();
    scene.change(0, |here| here[offset(2)..].copy_from_slice(&bytes[offset(2)..]));
    assert!(read_on(&scene.disk, 2, lsn).unwrap().1.is_empty());
}

#[test]
fn resumed_read_reports_missing_durable_group() {
    let scene = Scene::new();
    (1..=2).for_each(|epoch| scene.append(epoch, Durability::Sync));
    let (lsn, _) = read_on(&scene.disk, 0, None).unwrap();
    scene.log.rotate();
    scene.append(3, Durability::Sync);
    scene.disk.remove_file(&scene.segments()[1]).unwrap();
    let error = read_on(&scene.disk, 2, lsn).unwrap_err().to_string();
    assert!(error.contains("commit 3, which was durable, is missing"), "{error}");
}

#[test]
fn resumed_read_with_stale_lsn_starts_over() {
    let scene = Scene::new();
    (1..=3).for_each(|epoch| scene.append(epoch, LATER));
    let (third, _) = read_on(&scene.disk, 0, None).unwrap();
    assert_eq!(read_on(&scene.disk, 2, third).unwrap().1, [3], "the place is that of another group");
    scene.log.rotate();
    (4..=5).for_each(|epoch| scene.append(epoch, LATER));
    scene.change(0, |bytes| bytes.truncate(offset(2)));
    assert_eq!(read_on(&scene.disk, 3, third).unwrap().1, [4, 5], "the segment has become shorter");
}

/// A reader that went on behind the old record would miss its replacement.
#[test]
fn resumed_read_reports_rolled_back_group() {
    let scene = Scene::new();
    (1..=3).for_each(|epoch| scene.append(epoch, LATER));
    let (third, _) = read_on(&scene.disk, 0, None).unwrap();
    let told = || {
        let error = read_on(&scene.disk, 3, third).unwrap_err().to_string();
        assert!(error.contains("commit 3, which was read before, was taken back"), "{error}");
    };
    scene.log.take_back(3).unwrap();
    told();
    assert!(read_on(&scene.disk, 2, None).unwrap().1.is_empty());
    scene.log.append(3, &payload(9), LATER).unwrap();
    told();
    scene.append(4, LATER);
    told();
    // In a segment of its own, as after a reopening.
    let scene = Scene::new();
    (1..=3).for_each(|epoch| scene.append(epoch, LATER));
    let (third, _) = read_on(&scene.disk, 0, None).unwrap();
    scene.log.take_back(3).unwrap();
    scene.log.rotate();
    scene.log.append(3, &payload(9), LATER).unwrap();
    assert!(read_on(&scene.disk, 3, third).is_err());
    assert_eq!(read_on(&scene.disk, 2, None).unwrap().1, [3]);
}
