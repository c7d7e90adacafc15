//! The bytes of the format: today's code writes the kept databases byte for byte, and reads them.
//!
//! When the format changes on purpose, increment its version and rewrite the directories with `ANDEN_GOLDEN=write cargo
//! test -p anden-snapshots --test all golden::`. A database of an older version is refused with the number of
//! that version.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::storage::{DiskStorage, Storage};
use anden_snapshots::{BackupFile, BackupId, BackupList, Store, log_name};
use anden_testkit::FaultStorage;

use crate::model;
use crate::model::samples;

/// The golden databases with several snapshots.
const VERSIONS: &str = "versions";
const ROWS: &str = "rows";
const WEIGHTED_ROWS: &str = "weighted-rows";
const INDEXED: &str = "indexed";
const PREPARED: &str = "prepared";

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn the_same_graph_gives_the_same_bytes() {
    let write = |(name, model): (&'static str, model::Model)| {
        let disk = FaultStorage::default();
        drop(model.write(Arc::new(disk.clone()), name.as_ref()).unwrap());
        (name, disk)
    };
    let versions = [
        (VERSIONS, samples::versions_at(VERSIONS).0),
        (ROWS, samples::rows_at(ROWS).0),
        (WEIGHTED_ROWS, samples::weighted_rows_at(WEIGHTED_ROWS).0),
        (INDEXED, samples::indexed_at(INDEXED).0),
        (PREPARED, samples::prepared_at(PREPARED).0),
    ];
    for (name, disk) in samples::all().into_iter().map(write).chain(versions) {
        let directory = golden(name);
        let mut names = disk.list(name.as_ref()).unwrap();
        names.retain(|name| name != "LOCK");
        if std::env::var_os("ANDEN_GOLDEN").is_some() {
            std::fs::create_dir_all(&directory).unwrap();
            for file in &names {
                std::fs::write(directory.join(file), disk.contents(&Path::new(name).join(file)).unwrap()).unwrap();
            }
        }
        assert_eq!(DiskStorage.list(&directory).unwrap(), names, "{name}");
        for file in &names {
            let (kept, now) =
                (std::fs::read(directory.join(file)).unwrap(), disk.contents(&Path::new(name).join(file)));
            let difference = kept.iter().zip(now.as_ref().unwrap()).position(|(a, b)| a != b);
            assert!(now.as_ref() == Some(&kept), "{name}/{file}: first difference at {difference:?}");
        }
    }
}

/// The list of an incremental backup with a WAL.
#[test]
fn the_list_of_a_backup_keeps_its_bytes() {
    let store = Store::open_read_only(Arc::new(DiskStorage), &golden(VERSIONS)).unwrap();
    let manifest = store.pin_files().unwrap().manifest().clone();
    let mut list = BackupList::new(manifest, Some(BackupId([5; 16])));
    (list.id, list.unix_time, list.epoch) = (BackupId([7; 16]), 1_700_000_000, list.epoch + 3);
    list.copied = list.manifest.files().map(|file| file.name).take(2).collect();
    list.log.push(BackupFile { name: log_name(1), len: 64, crc: 9 });
    let path = golden("backup").join(BackupList::NAME);
    if std::env::var_os("ANDEN_GOLDEN").is_some() {
        std::fs::create_dir_all(golden("backup")).unwrap();
        std::fs::write(&path, list.encode()).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    assert!(kept == list.encode(), "other bytes than {}", path.display());
    assert_eq!(BackupList::decode(&kept, &path).unwrap(), list);
}

#[test]
fn kept_databases_are_read() {
    for (name, model) in samples::all() {
        let store = Store::open_read_only(Arc::new(DiskStorage), &golden(name)).unwrap();
        assert_eq!(*store.options(), model.options, "{name}");
        assert_eq!(store.snapshots()[0].unix_time, 1_700_000_000, "{name}");
        model.compare(&store.view().unwrap()).unwrap();
        store.verify(&Pool::new(1).unwrap()).unwrap();
    }
    let versions = [
        (VERSIONS, samples::versions().1),
        (ROWS, samples::rows().1),
        (WEIGHTED_ROWS, samples::weighted_rows().1),
        (INDEXED, samples::indexed().1),
        (PREPARED, samples::prepared().1),
    ];
    for (name, past) in versions {
        let store = Store::open_read_only(Arc::new(DiskStorage), &golden(name)).unwrap();
        past.compare(&store).unwrap();
        store.verify(&Pool::new(1).unwrap()).unwrap();
    }
}
