//! Thousands of tiny snapshots have few files and open quickly. Also refused operations.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::{CancelFlag, Silent};
use anden_base::storage::{DiskStorage, Storage};
use anden_graph::WeightType;
use anden_snapshots::{
    ArcData, ChangedArc, DeltaChanges, Error, GraphOptions, KeyScheme, MergeScope, Retention, Store,
};
use anden_testkit::{FaultStorage, Random};

use crate::model;
use crate::model::past::{Content, Past};

fn path() -> &'static Path {
    Path::new("db")
}

fn dense() -> GraphOptions {
    GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }
}

/// Appends the edge from 0 to `target`.
fn append_edge(store: &Store, target: u32, vertex_bound: usize, name: Option<&str>) -> anden_snapshots::Result<u32> {
    let out = [ChangedArc { list: 0, neighbor: target, data: ArcData::default() }];
    let inward = [ChangedArc { list: target, neighbor: 0, data: ArcData::default() }];
    let changes = DeltaChanges {
        vertex_bound,
        out_added: &out,
        in_added: &inward,
        num_edges_added: 1,
        ..DeltaChanges::default()
    };
    store.append(&changes, name).map(|info| info.number)
}

#[test]
fn thousands_of_one_edge_snapshots_are_few_files() {
    const NUM_SNAPSHOTS: u32 = 2000;
    // On a disk in memory if there is one, because every append syncs five times.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = dir.path().join("db");
    let bound = NUM_SNAPSHOTS as usize + 1;
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    let store = Content::new(dense(), bound).write(Arc::clone(&storage), &path, None).unwrap();
    for target in 1..=NUM_SNAPSHOTS {
        append_edge(&store, target, bound, None).unwrap();
    }
    let num_files = storage.list(&path).unwrap().len();
    drop(store);
    let store = Store::open(Arc::clone(&storage), &path).unwrap();
    let view = store.view().unwrap();
    assert_eq!(
        (store.snapshots().len(), anden_graph::Graph::degree(&view, anden_graph::Direction::Out, 0)),
        (2001, 2000)
    );
    assert!(num_files < 200, "{num_files} files");
    for number in [1, 2, 1000, 2001] {
        let view = store.snapshot(number).unwrap();
        assert_eq!(anden_graph::Graph::degree(&view, anden_graph::Direction::Out, 0), number as usize - 1);
    }
}

#[test]
fn dropping_and_merging_leaves_one_base() {
    let random = &mut Random::new(5);
    let mut content = Content::new(GraphOptions::default(), 3000);
    let disk = FaultStorage::default();
    let store = content.write(Arc::new(disk.clone()), path(), None).unwrap();
    let mut past = Past::new(content.clone(), None);
    for _ in 0..40 {
        for _ in 0..20 {
            content.evolve(random);
        }
        content.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap();
        past.append(content.clone(), None);
    }
    let pool = Pool::new(2).unwrap();
    let bytes = store.stats().bytes;
    assert_eq!(store.retain(Retention::Last(1)).unwrap(), (1..=40).collect::<Vec<u32>>());
    past.forget(&(1..=40).collect::<Vec<u32>>());
    past.compare(&store).unwrap();
    store.merge(MergeScope::All, &pool, &Silent).unwrap();
    past.compare(&store).unwrap();
    let stats = store.stats();
    assert!(stats.bytes < bytes && (stats.deltas, stats.bases) == (0, 1), "{stats:?}");
    content.revive();
    let plain = content.write(Arc::new(FaultStorage::default()), path(), None).unwrap().stats().bytes;
    assert!(stats.bytes <= plain + 5 * 4096, "{} bytes, as one snapshot {plain}", stats.bytes);
    store.verify(&pool).unwrap();
}

#[test]
fn maintenance_writes_a_run_once_enough_has_changed() {
    let mut content = Content::new(dense(), 5000);
    for i in 0..30_000_u32 {
        content.add_edge(i % 5000, i * 7919 % 4999, 0);
    }
    let disk = FaultStorage::default();
    let store = content.write(Arc::new(disk.clone()), path(), None).unwrap();
    let (pool, mut num_merges) = (Pool::new(2).unwrap(), 0);
    let mut past = Past::new(content.clone(), None);
    for round in 0..24_u32 {
        for i in 0..1500_u32 {
            content.add_edge((i * 31 + round) % 5000, (i * i + round * 1777) % 5000, 0);
        }
        content.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap();
        past.append(content.clone(), None);
        num_merges += u32::from(store.maintain(&pool, &Silent).unwrap().is_some());
    }
    assert!((2..=8).contains(&num_merges), "{num_merges} merges");
    content.compare(&store.view().unwrap()).unwrap();
    past.snapshots[3].2.compare(&store.snapshot(4).unwrap()).unwrap();
    assert_eq!(store.snapshots().len(), 25);
}

#[test]
fn many_snapshots_are_made_at_once() {
    let random = &mut Random::new(9);
    let strings = GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() };
    let weighted_rows = GraphOptions { weight_type: Some(WeightType::I64), edge_properties: true, ..strings };
    for options in [dense(), strings, weighted_rows, GraphOptions { multigraph: true, ..weighted_rows }] {
        let mut content = Content::new(options, 50);
        let mut past = Past::new(content.clone(), Some("first"));
        let mut deltas = Vec::new();
        for number in 2..=30_u32 {
            content.evolve(random);
            let returning = content.dead();
            content.revive();
            returning.into_iter().for_each(|vertex| content.add_edge(vertex, 0, number));
            deltas.push(content.changes_from(&past.newest));
            past.append(content.clone(), (number == 30).then_some("last"));
        }
        let mut names = vec![None; 30];
        (names[0], names[29]) = (Some("first"), Some("last"));
        let disk = FaultStorage::default();
        let publish = |deltas: &[model::past::Changes], names: &[Option<&str>], first_bound: usize| {
            content.write_many(Arc::new(disk.clone()), path(), deltas, names, first_bound)
        };
        assert!(publish(&deltas, &names[1..], 50).unwrap_err().to_string().contains("29 tags for 30 snapshots"));
        assert!(publish(&deltas, &names, deltas[0].vertex_bound + 1).is_err());
        let store = publish(&deltas, &names, 50).unwrap();
        past.compare(&store).unwrap();
        past.compare_window(&store, 4, 20).unwrap();
        let pool = Pool::new(1).unwrap();
        store.verify(&pool).unwrap();
        store.drop_snapshots(&[1, 7, 30], &Silent).unwrap();
        past.forget(&[1, 7, 30]);
        content.evolve(random);
        content.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap();
        past.append(content.clone(), None);
        drop(store);
        past.compare(&Store::open(Arc::new(disk), path()).unwrap()).unwrap();
    }
}

#[test]
fn rolling_retention_writes_each_change_few_times() {
    let mut content = Content::new(GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() }, 2000);
    let disk = FaultStorage::default();
    let store = content.write(Arc::new(disk.clone()), path(), None).unwrap();
    store.retain(Retention::Last(3)).unwrap();
    let loaded = store.stats();
    let mut past = Past::new(content.clone(), None);
    for round in 0..100_u32 {
        let first = content.keys.len() as u32;
        content.add_vertices(40);
        for i in 0..600_u32 {
            content.add_edge(first + i % 40, (i * 7919 + round) % first, 0);
        }
        content.changes_from(&past.newest).with(|changes| store.append(changes, None)).unwrap();
        past.append(content.clone(), None);
        let numbers = past.numbers();
        past.forget(&numbers[..numbers.len().saturating_sub(3)]);
    }
    past.compare(&store).unwrap();
    let stats = store.stats();
    let amplification =
        (stats.bytes_written - loaded.bytes_written) as f64 / (stats.bytes_loaded - loaded.bytes_loaded) as f64;
    let num_parts = stats.files.iter().filter(|(name, _)| name.starts_with("dict-")).count();
    println!("100 appends, 3 snapshots kept: {amplification:.2} bytes written for each, {} deltas", stats.deltas);
    assert!(amplification < 6.0 && stats.deltas < 30 && num_parts < 9, "{amplification} {stats:?}");
    store.verify(&Pool::new(1).unwrap()).unwrap();
}

#[test]
fn impossible_requests_are_refused() {
    let disk = FaultStorage::default();
    let store = Content::new(dense(), 9).write(Arc::new(disk.clone()), path(), Some("one")).unwrap();
    append_edge(&store, 1, 9, Some("two")).unwrap();
    append_edge(&store, 2, 9, None).unwrap();
    let pool = Pool::new(1).unwrap();
    let text = |error: Error| error.to_string();
    let name = |name: &str| text(append_edge(&store, 3, 9, Some(name)).unwrap_err());
    assert_eq!(name("two"), "snapshot 2 has the name \"two\" already");
    assert!(name("17").contains("cannot name a snapshot") && name("").contains("cannot name a snapshot"));
    assert!(name(&"x".repeat(256)).contains("255 bytes"));
    assert!(text(append_edge(&store, 9, 9, None).unwrap_err()).contains("an end that is no vertex"));
    assert!(text(append_edge(&store, 3, 8, None).unwrap_err()).contains("a vertex bound from 9"));
    assert_eq!(text(store.snapshot(7).unwrap_err()), "there is no snapshot 7: there are 1 to 3");
    assert!(text(store.window(3, 2).unwrap_err()).starts_with("the window 3..2 is reversed: "));
    assert!(matches!(store.window(0, 2), Err(Error::NoSnapshot { number: 0, .. })));
    assert!(matches!(store.diff(1, 9), Err(Error::NoSnapshot { number: 9, .. })));
    let nothing_left = text(store.drop_snapshots(&[1, 2, 3], &Silent).unwrap_err());
    assert!(nothing_left.starts_with("no snapshot would be left; "), "{nothing_left}");
    assert!(matches!(store.drop_snapshots(&[1, 8], &Silent), Err(Error::NoSnapshot { number: 8, .. })));
    assert!(text(store.retain(Retention::Last(0)).unwrap_err()).contains("at least its last"));
    let stop = CancelFlag::default();
    stop.cancel();
    assert!(matches!(store.merge(MergeScope::All, &pool, &stop), Err(Error::Base(anden_base::Error::Cancelled))));
    assert!(store.verify(&pool).unwrap().unknown_files.is_empty());
    assert_eq!((store.snapshots().len(), store.number_of("two"), store.number_of("three")), (3, Some(2), None));

    // Numbers of snapshots are not reused; names may be.
    store.drop_snapshots(&[2, 3], &Silent).unwrap();
    assert_eq!(text(store.snapshot(2).unwrap_err()), "there is no snapshot 2: there are 1");
    assert_eq!(append_edge(&store, 3, 9, Some("two")).unwrap(), 4);
    assert_eq!((store.number_of("two"), store.snapshots()[1].added), (Some(4), 3));

    let reader = Store::open_read_only(Arc::new(disk.clone()), path()).unwrap();
    assert!(matches!(append_edge(&reader, 4, 9, None), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.maintain(&pool, &Silent), Err(Error::ReadOnly { .. })));
    append_edge(&store, 5, 9, None).unwrap();
    assert_eq!((reader.snapshots().len(), reader.refresh().unwrap(), reader.snapshots().len()), (2, true, 3));
}
