//! Vertex properties from files and programs: loads, appends, snapshots, and refused inputs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, Changes, DatabaseId, Engine, ErrorKind, GraphOptions, IdOrder, Identity, KeyScheme, LoadOptions,
    MergeScope, Result, SnapshotView, Spread,
};
use anden_formats::{InputPath, SourceOptions, WantedProperties};
use anden_graph::property::{OwnedValue, PropertyType};
use anden_testkit::FaultStorage;

const DB: &str = "db";

struct Scene {
    dir: tempfile::TempDir,
    pool: Pool,
}

impl Scene {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), pool: Pool::new(2).unwrap() }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn source(&self, vertices: &str) -> SourceOptions {
        let vertices = vec![self.file("vertices.csv", vertices).into()];
        SourceOptions { vertices, vertex_properties: WantedProperties::All, ..SourceOptions::default() }
    }

    fn load_with(&self, disk: &FaultStorage, edges: &str, options: &LoadOptions, threads: usize) -> Result<Engine> {
        let input = InputPath::File(self.file("edges.csv", edges));
        let (storage, pool) = (Arc::new(disk.clone()), Pool::new(threads).unwrap());
        Ok(Engine::load_in(storage, Path::new(DB), &[input], options, &pool, &Silent)?.0)
    }

    fn load(&self, edges: &str, vertices: &str, keys: KeyScheme) -> Result<Engine> {
        let graph = GraphOptions { keys, ..GraphOptions::default() };
        let options = LoadOptions { graph, source: self.source(vertices), ..LoadOptions::default() };
        self.load_with(&FaultStorage::default(), edges, &options, 2)
    }

    fn append(&self, db: &Engine, vertices: &str) -> Result<u64> {
        let options = AppendOptions { source: self.source(vertices), ..AppendOptions::default() };
        Ok(db.append(&[], &options, &self.pool, &Silent)?.changed_properties)
    }

    fn change(&self, db: &Engine, changes: &Changes) -> Result<u64> {
        Ok(db.append_changes(changes, &AppendOptions::default(), &self.pool, &Silent)?.changed_properties)
    }
}

/// The schema, and a line for each vertex: key and values, nulls as a dash.
fn shown(view: &SnapshotView) -> (String, Vec<String>) {
    let properties = view.properties();
    let schema: Vec<_> = properties.schema().iter().map(|(name, of)| format!("{name}:{of}")).collect();
    let line = |vertex: u32| {
        let mut line = view.key(vertex).unwrap().to_string();
        for place in 0..properties.schema().len() {
            let value = properties.value(place, vertex).unwrap();
            assert_eq!(properties.column(place).unwrap().unwrap().get(vertex as usize), value);
            line += &if value.is_null() { "|-".to_owned() } else { format!("|{value}") };
        }
        line
    };
    (schema.join(" "), (0..anden_graph::Graph::vertex_bound(view) as u32).map(line).collect())
}

#[test]
fn rows_reach_their_vertices_whatever_keys_are() {
    let scene = Scene::new();
    let vertices = "id,size,name,seen\n7,1,seven,2024-02-29\n9,,nine,\n1,-5,,2000-01-01\n7,2,\"again, seven\",\n";
    for (keys, expected) in [
        (KeyScheme::Integer, &["1|-5|-|2000-01-01", "2|-|-|-", "7|2|again, seven|-", "9|-|nine|-"][..]),
        (KeyScheme::String, &["1|-5|-|2000-01-01", "2|-|-|-", "7|2|again, seven|-", "9|-|nine|-"][..]),
        (KeyScheme::Dense, &["0|-|-|-", "1|-5|-|2000-01-01", "2|-|-|-", "3|-|-|-"][..]),
    ] {
        let db = scene.load("source,target\n1,2\n2,7\n", vertices, keys).unwrap();
        let (schema, lines) = shown(&db.view().unwrap());
        assert_eq!(schema, "size:i64 name:string seen:date");
        assert_eq!(lines[..4], *expected, "{keys:?}");
        db.verify(&scene.pool).unwrap();
    }
}

#[test]
fn loaded_bytes_ignore_threads_and_memory() {
    let scene = Scene::new();
    let mut vertices = String::from("id,name,n\n");
    let mut edges = String::from("source,target\n");
    for i in 0..30_000_u32 {
        vertices += &format!("v{},name of {i},{}\n", i * 7919 % 20_011, i % 97);
        edges += &format!("v{},v{}\n", i * i % 20_011, i % 9_973);
    }
    for (order, _) in IdOrder::ALL {
        let mut first = None;
        for (threads, memory) in [(1, None), (3, None), (2, Some(48 << 20))] {
            let options = LoadOptions {
                graph: GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() },
                identity: Some(Identity { id: DatabaseId([7; 16]), unix_time: Some(1) }),
                source: scene.source(&vertices),
                memory,
                order,
                ..LoadOptions::default()
            };
            let disk = FaultStorage::default();
            let db = scene.load_with(&disk, &edges, &options, threads).unwrap();
            let view = db.view().unwrap();
            let vertex = view.vertex(&"v7919".into()).unwrap().unwrap();
            assert_eq!(view.properties().value(0, vertex).unwrap().to_string(), "name of 20012");
            let names = disk.list(Path::new(DB)).unwrap();
            assert_eq!(names.iter().filter(|name| name.starts_with("column-")).count(), 2);
            let files: Vec<_> = names.iter().map(|name| disk.contents(&Path::new(DB).join(name))).collect();
            let first = first.get_or_insert_with(|| files.clone());
            assert!(*first == files, "{order:?}, {threads} threads, {memory:?}");
        }
    }
}

#[test]
fn appended_rows_leave_old_snapshot_values_intact() {
    let scene = Scene::new();
    let vertices = "id,size,name\n1,10,one\n2,20,two\n";
    let db = scene.load("source,target\n1,2\n2,3\n", vertices, KeyScheme::Integer).unwrap();
    // Two values change, one is removed, a vertex and a property are new.
    let changed = scene.append(&db, "id,size,rate\n1,11,.5\n2,,\n3,30,\n3,31,\n9,90,1\n2,20,\n").unwrap();
    assert_eq!(changed, 5);
    let (first, second) = (
        ["1|10|one", "2|20|two", "3|-|-"].map(str::to_owned),
        ["1|11|one|0.5", "2|20|two|-", "3|31|-|-", "9|90|-|1.0"].map(str::to_owned),
    );
    let check = |db: &Engine| {
        assert_eq!(shown(&db.snapshot(1).unwrap()), ("size:i64 name:string".into(), first.to_vec()));
        assert_eq!(shown(&db.snapshot(2).unwrap()), ("size:i64 name:string rate:f64".into(), second.to_vec()));
        db.verify(&scene.pool).unwrap();
    };
    check(&db);
    let removed = Changes::default().remove_vertex(2).remove_vertex(1).add_edge(1, 3).set_vertex(1, "name", "uno");
    assert_eq!(scene.change(&db, &removed).unwrap(), 5);
    let third = ["1|-|uno|-", "2|-|-|-", "3|31|-|-", "9|90|-|1.0"].map(str::to_owned);
    check(&db);
    assert_eq!(shown(&db.view().unwrap()).1, third);
    // A vertex that returns has none of its old values.
    let returned = Changes::default().add_vertex(2).set_vertex(9, "size", OwnedValue::Null).set_vertex(9, "new", true);
    assert_eq!(scene.change(&db, &returned).unwrap(), 2);
    db.merge(MergeScope::All, &scene.pool, &Silent).unwrap();
    check(&db);
    let fourth = ["1|-|uno|-|-", "2|-|-|-|-", "3|31|-|-|-", "9|-|-|1.0|true"].map(str::to_owned);
    assert_eq!(shown(&db.view().unwrap()).1, fourth);
    let diff = db.diff(1, 4).unwrap();
    let counts: Vec<_> = diff.properties.iter().map(|(name, changes)| (&name[..], changes.len())).collect();
    assert_eq!(counts, [("size", 3), ("name", 2), ("rate", 1), ("new", 1)]);
    db.drop_snapshots(&[2], &Silent).unwrap();
    assert_eq!(shown(&db.snapshot(3).unwrap()).1, third);
    assert_eq!(shown(&db.window(3..=4).unwrap()).1, fourth);
    db.verify(&scene.pool).unwrap();
}

#[test]
fn spread_load_keeps_properties_in_every_snapshot() {
    let scene = Scene::new();
    let options = LoadOptions {
        spread: Spread { num_snapshots: 3, ..Spread::default() },
        source: scene.source("id,n\n1,1\n4,4\n8,8\n"),
        ..LoadOptions::default()
    };
    let disk = FaultStorage::default();
    let db = scene.load_with(&disk, "1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n", &options, 2).unwrap();
    assert_eq!(db.snapshots().len(), 3);
    for info in db.snapshots() {
        let (schema, lines) = shown(&db.snapshot(info.number).unwrap());
        assert_eq!((schema, &lines[0]), ("n:i64".into(), &"1|1".to_owned()));
    }
    db.verify(&scene.pool).unwrap();
}

#[test]
fn unfit_vertex_properties_are_refused_without_change() {
    let scene = Scene::new();
    let refused = |answer: Result<u64>, expected: &str| {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
    };
    let vertices = "id,size,rate\n1,10,.5\n";
    let db = scene.load("1,2\n", vertices, KeyScheme::Integer).unwrap();
    refused(
        scene.append(&db, "id,size\n1,ten\n"),
        "vertices.csv:2: column 'size': expected a whole number of type i64",
    );
    refused(scene.append(&db, "id,size:string\n1,ten\n"), "column 'size': expected type i64, found string");
    let change = |changes: Changes| scene.change(&db, &changes);
    refused(
        change(Changes::default().set_vertex(1, "size", "ten")),
        "vertex 1: property \"size\": expected a value of type i64, found 'ten'",
    );
    let error = change(Changes::default().set_vertex(1, "none", OwnedValue::Null)).unwrap_err();
    let none = "there is no property \"none\" of vertices";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, none));
    let mixed = Changes::default().set_vertex(1, "new", 5).set_vertex(2, "new", "x");
    refused(change(mixed), "vertex 2: property \"new\": expected a value of type i64, found 'x'");
    refused(change(Changes::default().set_vertex(1, "", 5)), "a name of a property");
    assert_eq!(db.snapshots().len(), 1);
    // A property takes values of another type that fit.
    assert_eq!(scene.append(&db, "id,rate\n1,7\n2,8\n").unwrap(), 2);
    assert_eq!(change(Changes::default().set_vertex(2, "rate", 9)).unwrap(), 1);
    assert_eq!(shown(&db.view().unwrap()).1, ["1|10|7.0", "2|-|9.0"]);
    let schema = db.view().unwrap().properties().schema().get(1).map(|(_, found)| found);
    assert_eq!(schema, Some(PropertyType::F64));

    let small = LoadOptions {
        memory: Some(40 << 20),
        source: scene.source(&format!("id,text\n{}", format!("1,{}\n", "x".repeat(60_000)).repeat(300))),
        ..LoadOptions::default()
    };
    let disk = FaultStorage::default();
    let error = scene.load_with(&disk, "1,2\n", &small, 2).unwrap_err().to_string();
    assert!(error.contains("the properties of the vertices, which must be in memory, needs"), "{error}");
    assert!(!disk.exists(Path::new(DB)).unwrap(), "nothing is left behind");
}
