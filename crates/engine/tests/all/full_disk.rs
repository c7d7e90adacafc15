//! The reserve file of a database, and changes that free space on a full disk beside commits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{Engine, GraphOptions, MergeScope, Missing, Retention, Update};
use anden_graph::Graph;
use anden_testkit::FaultStorage;

use crate::log_recovery::{DB, kill, open, pool};

const RESERVE_BYTES: usize = 64 << 10;

fn reserve() -> PathBuf {
    Path::new(DB).join("RESERVE")
}

fn has_reserve(disk: &FaultStorage) -> bool {
    disk.contents(&reserve()).is_some_and(|bytes| bytes.len() == RESERVE_BYTES)
}

fn commit(database: &Engine, key: u64) -> anden_engine::Result<u64> {
    database.apply(&[Update::add_edge(key, key + 1)], Missing::Lenient, pool()).map(|applied| applied.edges)
}

#[test]
fn writers_of_disks_keep_a_reserve() {
    let disk = FaultStorage::default();
    let database = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), GraphOptions::default()).unwrap();
    assert!(has_reserve(&disk));
    let left = kill(&disk, database);
    left.remove_file(&reserve()).unwrap();
    drop(Engine::open_read_only_in(Arc::new(left.clone()), Path::new(DB)).unwrap());
    assert!(!has_reserve(&left), "a reader makes none");
    drop(open(&left).unwrap());
    assert!(has_reserve(&left));
    let in_memory = Engine::in_memory(GraphOptions::default()).unwrap();
    assert!(in_memory.disk_bytes().unwrap() < RESERVE_BYTES as u64);
}

#[test]
fn full_disk_frees_space_beside_commits() {
    type Free = fn(&Engine) -> anden_engine::Result<()>;
    let free: [Free; 3] = [
        |database| database.drop_snapshots(&[2, 3], &Silent),
        |database| database.retain(Retention::Last(2)).map(drop),
        |database| database.merge(MergeScope::All, pool(), &Silent).map(drop),
    ];
    for (place, free) in free.into_iter().enumerate() {
        let disk = FaultStorage::default();
        let database = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), GraphOptions::default()).unwrap();
        for key in 0..6 {
            commit(&database, 10 * key).unwrap();
            database.checkpoint(None).unwrap();
        }
        // In the WAL only.
        assert_eq!(commit(&database, 100).unwrap(), 7);
        let bytes = disk.num_bytes();
        disk.set_capacity(Some(bytes));
        let refused = database.checkpoint(None).unwrap_err().to_string();
        assert!(refused.contains("cannot write"), "{place}: {refused}");
        free(&database).unwrap_or_else(|error| panic!("{place}: {error}"));
        let left = kill(&disk, database);
        let database = open(&left).unwrap();
        database.verify(pool()).unwrap();
        assert_eq!(database.view().unwrap().num_edges(), 7, "{place}");
        assert!(has_reserve(&left), "{place}");
    }
}
