//! Changes that free space, on a full disk: they get the space of the reserve file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_snapshots::{Error, GraphOptions, KeyScheme, MergeScope, Result, Retention, Store};
use anden_testkit::{FaultPlan, FaultStorage, Random};

use crate::model;
use crate::model::past::{Content, Past};

/// The smallest reserve, which a small database has.
const RESERVE_BYTES: usize = 64 << 10;

fn path() -> &'static Path {
    Path::new("db")
}

fn reserve() -> PathBuf {
    path().join("RESERVE")
}

fn open(disk: &FaultStorage) -> Store {
    let store = Store::open(Arc::new(disk.clone()), path()).unwrap();
    store.with_unix_time(model::IDENTITY.unix_time)
}

/// A database with eight snapshots.
fn database() -> (FaultStorage, Past) {
    let random = &mut Random::new(5);
    let mut content = Content::new(GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }, 24);
    for i in 0..50_u32 {
        content.add_edge(i * i % 23, i * 7 % 24, i);
    }
    let disk = FaultStorage::default();
    let store = content.write(Arc::new(disk.clone()), path(), None).unwrap();
    let mut past = Past::new(content, None);
    for _ in 1..8 {
        let mut next = past.newest.clone();
        next.evolve_all(random);
        next.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap();
        past.append(next, None);
    }
    (disk, past)
}

type Verb = (&'static str, &'static [u32], fn(&Store) -> Result<()>);

/// The changes that free space, with the snapshots that they drop.
const VERBS: [Verb; 5] = [
    ("drop", &[2, 5], |store| store.drop_snapshots(&[2, 5], &Silent)),
    ("retain", &[1, 2, 3, 4, 5], |store| store.retain(Retention::Last(3)).map(drop)),
    ("retain by force", &[1, 2, 3, 4, 5, 6, 7], |store| store.retain_by_force(Retention::Last(1)).map(drop)),
    ("merge", &[], |store| store.merge(MergeScope::All, &Pool::new(1).unwrap(), &Silent).map(drop)),
    ("merge the newest", &[], |store| store.merge(MergeScope::Newest(5), &Pool::new(1).unwrap(), &Silent).map(drop)),
];

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Base(error) if error.io_kind() == Some(ErrorKind::StorageFull))
}

#[test]
fn freeing_changes_work_on_a_full_disk() {
    for (name, dropped, act) in VERBS {
        let (disk, before) = database();
        open(&disk).keep_reserve();
        assert_eq!(disk.contents(&reserve()).unwrap().len(), RESERVE_BYTES, "{name}");
        // Without the reserve, the change fails and leaves everything as it was.
        let bare = disk.duplicate();
        bare.remove_file(&reserve()).unwrap();
        bare.set_capacity(Some(bare.num_bytes()));
        let store = open(&bare);
        store.keep_reserve();
        let error = act(&store).unwrap_err();
        assert!(is_full(&error), "{name}: {error}");
        assert_eq!((bare.contents(&reserve()), store.verify(&Pool::new(1).unwrap()).is_ok()), (None, true), "{name}");
        before.compare(&store).unwrap();
        // With it, the change succeeds.
        disk.set_capacity(Some(disk.num_bytes()));
        let store = open(&disk);
        store.keep_reserve();
        act(&store).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut after = before.clone();
        after.forget(dropped);
        after.compare(&store).unwrap();
        assert!(disk.num_bytes() <= bare.num_bytes() + RESERVE_BYTES, "{name}");
        drop(store);
        let store = open(&disk);
        after.compare(&store).unwrap();
        // There is space again, so the next opening makes the reserve.
        disk.set_capacity(None);
        store.keep_reserve();
        let len = disk.contents(&reserve()).unwrap().len();
        assert!((RESERVE_BYTES..=2 * RESERVE_BYTES).contains(&len), "{name}: {len} bytes");
        let report = store.verify(&Pool::new(1).unwrap()).unwrap();
        assert!(report.unknown_files.is_empty(), "{name}: {:?}", report.unknown_files);
    }
}

/// The disk is full at one call, whichever that is.
#[test]
fn freeing_change_survives_one_full_write() {
    for (name, dropped, act) in VERBS {
        let (disk, before) = database();
        open(&disk).keep_reserve();
        let mut after = before.clone();
        after.forget(dropped);
        let (mut num_released, mut num_unknown) = (0, 0);
        for call in 0.. {
            let disk = disk.duplicate();
            let store = open(&disk);
            store.keep_reserve();
            let first = disk.num_calls();
            disk.set_plan(FaultPlan::FailAt(first + call, ErrorKind::StorageFull));
            let answer = act(&store);
            let was_reached = disk.num_calls() > first + call;
            disk.set_plan(FaultPlan::Never);
            match answer {
                Ok(()) => after.compare(&store).unwrap(),
                // Which manifest the disk holds is unknown: then nothing more is written.
                Err(error) => {
                    assert!(store.require_sound().is_err(), "{name}, call {call}: {error}");
                    num_unknown += 1;
                }
            }
            num_released += usize::from(was_reached);
            drop(store);
            let store = open(&disk);
            let found = if store.snapshots().len() == after.numbers().len() { &after } else { &before };
            found.compare(&store).unwrap();
            store.verify(&Pool::new(1).unwrap()).unwrap();
            if !was_reached {
                break;
            }
        }
        assert!(num_released > 5 && num_unknown <= 2, "{name}: {num_released} calls, {num_unknown} unknown");
    }
}

#[test]
fn reserve_is_left_alone_by_other_changes() {
    let (disk, past) = database();
    let store = open(&disk);
    store.keep_reserve();
    disk.set_capacity(Some(disk.num_bytes()));
    let mut next = past.newest.clone();
    next.evolve_all(&mut Random::new(8));
    let refused = next.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap_err();
    assert!(is_full(&refused), "{refused}");
    assert_eq!(disk.contents(&reserve()).unwrap().len(), RESERVE_BYTES);
    past.compare(&store).unwrap();
}

#[test]
fn a_reserve_is_made_on_request_only() {
    let (disk, _) = database();
    let store = open(&disk);
    store.drop_snapshots(&[3], &Silent).unwrap();
    assert_eq!(disk.contents(&reserve()), None);
    // Another kind of file in its place stays, and is no error.
    disk.create_dir(&reserve()).unwrap();
    store.keep_reserve();
    store.drop_snapshots(&[4], &Silent).unwrap();
    assert!(disk.open_dir(&reserve()).is_ok());
}

/// A merge writes the whole graph. Where the reserve cannot hold it, a second attempt would take time for nothing.
#[test]
fn reserve_stays_if_a_merge_needs_more() {
    let (disk, past) = database();
    disk.set_contents(&reserve(), &[1; 100]);
    disk.set_capacity(Some(disk.num_bytes()));
    let store = open(&disk);
    store.keep_reserve();
    let pool = Pool::new(1).unwrap();
    let refused = store.merge(MergeScope::All, &pool, &Silent).unwrap_err();
    assert!(is_full(&refused), "{refused}");
    assert_eq!(disk.contents(&reserve()).unwrap(), [1; 100]);
    past.compare(&store).unwrap();
}

#[test]
fn short_reserve_is_extended_or_kept() {
    let (disk, _) = database();
    disk.set_contents(&reserve(), &[1; 20_000]);
    let full = disk.duplicate();
    full.set_capacity(Some(full.num_bytes() + 1000));
    open(&full).keep_reserve();
    assert_eq!(full.contents(&reserve()).unwrap(), [1; 20_000], "the last bytes of the disk are left to others");
    open(&disk).keep_reserve();
    assert_eq!(disk.contents(&reserve()).unwrap().len(), RESERVE_BYTES);
    // A power cut may leave the name alone, because the file is not synced.
    disk.set_contents(&reserve(), &[]);
    open(&disk).keep_reserve();
    assert_eq!(disk.contents(&reserve()).unwrap().len(), RESERVE_BYTES);
}

#[test]
fn reserve_takes_a_quarter_of_a_nearly_full_disk() {
    let mut content = Content::new(GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }, 1000);
    for i in 0..60_000_u32 {
        content.add_edge(i % 1000, i * 7 % 997, i);
    }
    let disk = FaultStorage::default();
    drop(content.write(Arc::new(disk.clone()), path(), None).unwrap());
    let database = disk.num_bytes();
    assert!(database > 6 * RESERVE_BYTES, "the reserve is to be larger than the free space: {database} bytes");
    for (free, expected) in [(5 * RESERVE_BYTES, Some(RESERVE_BYTES)), (3 * RESERVE_BYTES, None)] {
        let disk = disk.duplicate();
        disk.set_capacity(Some(database + free));
        open(&disk).keep_reserve();
        assert_eq!(disk.contents(&reserve()).map(|bytes| bytes.len()), expected, "{free} bytes are free");
        // Each opening would otherwise take a quarter of the rest.
        open(&disk).keep_reserve();
        assert_eq!(disk.contents(&reserve()).map(|bytes| bytes.len()), expected, "{free} bytes are free");
    }
}
