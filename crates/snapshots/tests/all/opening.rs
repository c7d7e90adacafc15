//! Creating and opening: locks, refused cases, and cleanup.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::storage::{DiskStorage, Storage};
use anden_graph::GraphKind;
use anden_snapshots::{DictionaryKeys, Direction, Error, GraphOptions, Key, KeyScheme, Store};
use anden_testkit::FaultStorage;

use crate::model;
use crate::model::past::Content;
use crate::model::samples;

fn path() -> &'static Path {
    Path::new("db")
}

fn disk_with_database() -> FaultStorage {
    let disk = FaultStorage::default();
    drop(samples::directed().write(Arc::new(disk.clone()), path()).unwrap());
    disk
}

fn open(disk: &FaultStorage) -> anden_snapshots::Result<Store> {
    Store::open(Arc::new(disk.clone()), path())
}

fn create(disk: &FaultStorage) -> anden_snapshots::Result<anden_snapshots::StoreBuilder> {
    Store::create(Arc::new(disk.clone()), path(), GraphOptions::default())
}

#[test]
fn there_is_one_writer_and_any_number_of_readers() {
    let disk = disk_with_database();
    let writer = open(&disk).unwrap();
    assert!(!writer.is_read_only());
    assert!(matches!(open(&disk), Err(Error::Base(anden_base::Error::Locked { .. }))));
    let reader = Store::open_read_only(Arc::new(disk.clone()), path()).unwrap();
    assert!(reader.is_read_only());
    drop(writer);
    open(&disk).unwrap();
}

/// Replaces a database with that of another disk.
fn replace(disk: &FaultStorage, other: &FaultStorage) {
    disk.list(path()).unwrap().iter().for_each(|name| disk.remove_file(&path().join(name)).unwrap());
    for name in other.list(path()).unwrap() {
        disk.set_contents(&path().join(&name), &other.contents(&path().join(name)).unwrap());
    }
}

/// Regression: a database that was loaded again, or restored from a backup, has files with the numbers of the open
/// ones. The reader showed the new manifest over the old files.
#[test]
fn reader_refuses_database_that_replaced_its_own() {
    let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let append = |disk: &FaultStorage, content: &mut Content, edge: (u32, u32)| {
        let before = content.clone();
        content.add_edge(edge.0, edge.1, 1);
        content.changes_from(&before).with(|changes| open(disk).unwrap().append(changes, None)).unwrap();
    };
    let write = |options: GraphOptions, edge: (u32, u32)| {
        let mut content = Content::new(options, 9);
        content.add_edge(edge.0, edge.1, 1);
        let disk = FaultStorage::default();
        drop(content.write(Arc::new(disk.clone()), path(), None).unwrap());
        (disk, content)
    };
    let (disk, mut content) = write(options, (1, 2));
    let first = disk.duplicate();
    append(&disk, &mut content, (3, 4));
    let reader = Store::open_read_only(Arc::new(disk.clone()), path()).unwrap();
    let (of_another_kind, _) = write(GraphOptions { in_edges: false, ..options }, (2, 1));
    // Here all databases have one identity.
    let (another, mut other_content) = write(options, (2, 1));
    append(&another, &mut other_content, (4, 3));
    let (backup, mut restored) = (first.duplicate(), Content::new(options, 9));
    restored.add_edge(1, 2, 1);
    append(&backup, &mut restored, (5, 6));
    append(&backup, &mut restored, (6, 7));
    let original = disk.duplicate();
    for (what, other) in [
        ("another kind", &of_another_kind),
        ("another", &another),
        ("an old copy", &first),
        ("an old copy that was changed", &backup),
    ] {
        replace(&disk, other);
        let error = reader.refresh().unwrap_err();
        assert!(matches!(error, Error::Replaced { .. }), "{what}: {error}");
        content.compare(&reader.view().unwrap()).unwrap_or_else(|error| panic!("{what}: {error}"));
        Store::open_read_only(Arc::new(disk.clone()), path()).unwrap().verify(&Pool::new(1).unwrap()).unwrap();
    }
    replace(&disk, &original);
    assert!(!reader.refresh().unwrap());
    append(&disk, &mut content, (7, 8));
    assert!(reader.refresh().unwrap());
    content.compare(&reader.view().unwrap()).unwrap();
}

#[test]
fn on_a_real_disk_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let disk: Arc<dyn Storage> = Arc::new(DiskStorage);
    let builder = Store::create(Arc::clone(&disk), &path, GraphOptions::default()).unwrap();
    let second = Store::create(Arc::clone(&disk), &path, GraphOptions::default());
    assert!(matches!(second, Err(Error::Base(anden_base::Error::Locked { .. }))), "{second:?}");
    assert!(matches!(Store::open(Arc::clone(&disk), &path), Err(Error::NotFound { .. })));
    drop(builder);
    assert!(!path.exists());
    let model = samples::undirected();
    let writer = model.write(Arc::clone(&disk), &path).unwrap();
    assert!(matches!(Store::open(Arc::clone(&disk), &path), Err(Error::Base(anden_base::Error::Locked { .. }))));
    drop(writer);
    model.compare(&Store::open(disk, &path).unwrap().view().unwrap()).unwrap();
}

#[test]
fn existing_files_are_never_overwritten() {
    let disk = disk_with_database();
    assert!(matches!(create(&disk), Err(Error::Exists { .. })));
    samples::directed().compare(&open(&disk).unwrap().view().unwrap()).unwrap();

    // An unreadable manifest still marks a database.
    disk.set_contents("db/MANIFEST".as_ref(), b"");
    assert!(matches!(create(&disk), Err(Error::Exists { .. })));

    let disk = FaultStorage::default();
    disk.set_contents(path(), b"a file");
    assert!(matches!(create(&disk), Err(Error::Exists { .. })));
    assert_eq!(disk.contents(path()).unwrap(), b"a file");

    let disk = FaultStorage::default();
    disk.create_dir(path()).unwrap();
    disk.set_contents("db/thesis.txt".as_ref(), b"precious");
    assert!(matches!(create(&disk), Err(Error::Exists { .. })));
    assert_eq!(disk.list(path()).unwrap(), ["thesis.txt"]);

    // Without our lock file, files with names like ours belong to others.
    let disk = FaultStorage::default();
    disk.create_dir(path()).unwrap();
    disk.set_contents("db/base-000001-out".as_ref(), b"precious");
    assert!(matches!(create(&disk), Err(Error::Exists { .. })));
    disk.set_contents("db/LOCK".as_ref(), b"");
    drop(create(&disk).unwrap());
    assert!(!disk.exists(path()).unwrap());
}

#[test]
fn a_builder_that_is_dropped_leaves_nothing() {
    let disk = FaultStorage::default();
    let builder = create(&disk).unwrap();
    let writer = builder.base_writer(3).unwrap();
    writer.append::<u32>(Direction::Out, &[1, 0], &[2], &[], &[]).unwrap();
    let scratch = builder.temp_file("a").unwrap();
    scratch.write_at(0, b"text").unwrap();
    assert_eq!(scratch.read().unwrap().as_slice(), b"text");
    assert!(disk.list(path()).unwrap().len() > 3);
    drop(builder);
    assert!(!disk.exists(path()).unwrap());
}

#[test]
fn only_the_writer_removes_unreferenced_files() {
    let disk = disk_with_database();
    for name in [
        "tmp-MANIFEST",
        "tmp-base-000002-out",
        "delta-000009",
        "tmp-diary",
        "base-000009-out",
        "dict-000007",
        "notes.txt",
    ] {
        disk.set_contents(&path().join(name), b"left");
    }
    let (names, num_calls) = (disk.list(path()).unwrap(), disk.num_calls());
    let reader = Store::open_read_only(Arc::new(disk.clone()), path()).unwrap();
    samples::directed().compare(&reader.view().unwrap()).unwrap();
    let report = reader.verify(&Pool::new(1).unwrap()).unwrap();
    assert_eq!(
        report.unknown_files,
        [
            "base-000009-out",
            "delta-000009",
            "dict-000007",
            "notes.txt",
            "tmp-MANIFEST",
            "tmp-base-000002-out",
            "tmp-diary",
        ]
    );
    assert_eq!((disk.list(path()).unwrap(), disk.num_calls()), (names, num_calls));

    let writer = open(&disk).unwrap();
    assert_eq!(writer.verify(&Pool::new(1).unwrap()).unwrap().unknown_files, ["notes.txt", "tmp-diary"]);
}

#[test]
fn a_missing_database_is_named() {
    let disk = FaultStorage::default();
    let error = open(&disk).unwrap_err();
    assert_eq!(error.to_string(), "db: is no database (there is no MANIFEST in it)");
    assert!(!disk.exists(path()).unwrap());
}

#[test]
fn lists_that_break_the_rules_are_refused() {
    let refused =
        |options: GraphOptions, direction, degrees: &[u32], targets: &[u32], weights: &[u32], expected: &str| {
            let builder = Store::create(Arc::new(FaultStorage::default()), path(), options).unwrap();
            let writer = builder.base_writer(3).unwrap();
            let error = writer.append(direction, degrees, targets, weights, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
    let plain = GraphOptions::default();
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..plain };
    refused(plain, Direction::Out, &[1], &[1, 2], &[], "degrees add up to 1, there are 2 targets");
    refused(plain, Direction::Out, &[1], &[3], &[], "a target below 3 expected, 3 found");
    refused(plain, Direction::Out, &[2], &[2, 1], &[], "1 pairs out of order");
    refused(plain, Direction::In, &[2], &[1, 1], &[], "1 pairs out of order");
    refused(plain, Direction::Out, &[1], &[1], &[5], "0 no weights expected, 1 u32 found");
    refused(plain, Direction::Out, &[0, 0, 0, 0], &[], &[], "4 lists for 3 vertices");
    refused(undirected, Direction::In, &[0], &[], &[], "no in-lists");
    let weighted = GraphOptions { weight_type: Some(anden_graph::WeightType::F32), ..plain };
    refused(weighted, Direction::Out, &[1], &[1], &[5], "1 f32 weights expected, 1 u32 found");
    let with_rows = GraphOptions { edge_properties: true, ..plain };
    refused(with_rows, Direction::Out, &[1], &[1], &[], "1 rows expected, 0 found");
    let builder = Store::create(Arc::new(FaultStorage::default()), path(), plain).unwrap();
    let error = builder.base_writer(3).unwrap().append::<u32>(Direction::Out, &[1], &[1], &[], &[5]).unwrap_err();
    assert!(error.to_string().contains("0 rows expected, 1 found"), "{error}");
}

#[test]
fn mismatched_base_and_keys_are_refused() {
    let disk = FaultStorage::default();
    let publish = |num_keys, num_edges, name| {
        let builder = create(&disk).unwrap();
        let writer = builder.base_writer(2).unwrap();
        for direction in [Direction::Out, Direction::In] {
            writer.append::<u32>(direction, &[1, 1], &[1, 0], &[], &[]).unwrap();
        }
        let by_id: Vec<u64> = (0..num_keys).collect();
        let keys = builder.write_dictionary(DictionaryKeys::Integers { by_id: &by_id, sorted: None }).unwrap();
        builder.publish(writer.finish().unwrap(), keys, num_edges, name).map(|_| ()).unwrap_err().to_string()
    };
    assert!(publish(3, 2, None).contains("3 keys for 2 vertices"));
    assert!(publish(2, 1, None).contains("1 edges cannot have 2 entries"));
    assert!(publish(2, 2, Some("17")).contains("\"17\" cannot name a snapshot"));
    assert!(publish(2, 2, Some("")).contains("cannot name a snapshot"));
    assert!(publish(2, 2, Some("a\nb")).contains("cannot name a snapshot"));
    assert!(!disk.exists(path()).unwrap());

    let builder = create(&disk).unwrap();
    let writer = builder.base_writer(2).unwrap();
    writer.append::<u32>(Direction::Out, &[1], &[1], &[], &[]).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("1 edges in out-lists, 0 in in-lists"));
}

#[test]
fn a_run_that_failed_cannot_be_finished() {
    let builder = create(&FaultStorage::default()).unwrap();
    let writer = builder.base_writer(1).unwrap();
    writer.append::<u32>(Direction::Out, &[0, 0], &[], &[], &[]).unwrap_err();
    assert!(
        writer.append::<u32>(Direction::Out, &[0], &[], &[], &[]).unwrap_err().to_string().contains("failed before")
    );
    assert!(writer.finish().unwrap_err().to_string().contains("failed before"));
}

#[test]
fn keys_that_break_the_rules_are_refused() {
    let refused = |keys: DictionaryKeys<'_>, scheme, expected: &str| {
        let options = GraphOptions { keys: scheme, ..GraphOptions::default() };
        let builder = Store::create(Arc::new(FaultStorage::default()), path(), options).unwrap();
        let error = builder.write_dictionary(keys).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let integers = |by_id, sorted| DictionaryKeys::Integers { by_id, sorted };
    refused(integers(&[2, 1], None), KeyScheme::Integer, "rank 0 and the next");
    refused(integers(&[1, 1], None), KeyScheme::Integer, "keys must ascend and differ");
    refused(integers(&[2, 1], Some(&[0, 1])), KeyScheme::Integer, "rank 0");
    refused(integers(&[2, 1], Some(&[1])), KeyScheme::Integer, "as many sorted ids");
    refused(integers(&[2, 1], Some(&[1, 7])), KeyScheme::Integer, "rank 0");
    refused(integers(&[1], None), KeyScheme::String, "String keys expected, Integer keys found");
    let strings = |text, offsets| DictionaryKeys::Strings { text, offsets, sorted: None };
    refused(strings(b"ab", &[0, 1]), KeyScheme::String, "must ascend from 0 to 2");
    refused(strings(b"ab", &[]), KeyScheme::String, "must ascend from 0 to 2");
    refused(strings(b"\xff", &[0, 1]), KeyScheme::String, "the key of vertex 0 is not UTF-8");
    refused(strings(b"ba", &[0, 1, 2]), KeyScheme::String, "rank 0");
}

#[test]
fn an_ordered_graph_is_verified_to_be_ordered() {
    let options = GraphOptions { ordered: true, in_edges: false, keys: KeyScheme::Dense, ..GraphOptions::default() };
    let write = |targets: &[u32]| {
        let disk = FaultStorage::default();
        let builder = Store::create(Arc::new(disk), path(), options).unwrap();
        let writer = builder.base_writer(3).unwrap();
        writer.append::<u32>(Direction::Out, &[1, 1], targets, &[], &[]).unwrap();
        let keys = builder.write_dictionary(DictionaryKeys::Dense(3)).unwrap();
        builder.publish(writer.finish().unwrap(), keys, 2, None).unwrap()
    };
    let pool = Pool::new(1).unwrap();
    write(&[1, 2]).verify(&pool).unwrap();
    let error = write(&[1, 0]).verify(&pool).unwrap_err().to_string();
    assert!(error.contains("leads to its smaller end"), "{error}");
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..options };
    assert!(Store::create(Arc::new(FaultStorage::default()), path(), undirected).is_err());
}

#[test]
fn a_wrong_count_or_asymmetry_is_found_by_verify() {
    let write = |graph_kind, lists: [(&[u32], &[u32]); 2], num_edges| {
        let options = GraphOptions { graph_kind, keys: KeyScheme::Dense, ..GraphOptions::default() };
        let builder = Store::create(Arc::new(FaultStorage::default()), path(), options).unwrap();
        let writer = builder.base_writer(3).unwrap();
        writer.append::<u32>(Direction::Out, lists[0].0, lists[0].1, &[], &[]).unwrap();
        if graph_kind == GraphKind::Directed {
            writer.append::<u32>(Direction::In, lists[1].0, lists[1].1, &[], &[]).unwrap();
        }
        let keys = builder.write_dictionary(DictionaryKeys::Dense(3)).unwrap();
        let store = builder.publish(writer.finish().unwrap(), keys, num_edges, None).unwrap();
        store.verify(&Pool::new(2).unwrap()).map(drop).map_err(|e| e.to_string())
    };
    let none: (&[u32], &[u32]) = (&[], &[]);
    let directed = |in_lists| write(GraphKind::Directed, [(&[2], &[0, 2]), in_lists], 2);
    directed((&[1, 0, 1], &[0, 0])).unwrap();
    assert!(directed((&[1, 1], &[0, 0])).unwrap_err().contains("not the reverse"));
    let undirected = |lists, num_edges| write(GraphKind::Undirected, [lists, none], num_edges);
    undirected((&[2, 0, 1], &[0, 2, 0]), 2).unwrap();
    assert!(undirected((&[2, 0, 1], &[0, 2, 0]), 3).unwrap_err().contains("number of edges"));
    assert!(undirected((&[2, 1], &[0, 2, 0]), 2).unwrap_err().contains("not symmetric"));
}

#[test]
fn a_graph_of_nothing_is_a_graph() {
    for options in [GraphOptions::default(), GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }] {
        let model = model::Model::new::<u32>(options, Vec::new(), &[]);
        let store = model.write(Arc::new(FaultStorage::default()), path()).unwrap();
        model.compare(&store.view().unwrap()).unwrap();
        store.verify(&Pool::new(1).unwrap()).unwrap();
        assert_eq!(store.view().unwrap().vertex(&Key::Integer(0)).unwrap(), None);
        assert_eq!(store.stats().bytes_per_edge, 0.0);
    }
}
