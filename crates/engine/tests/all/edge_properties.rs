//! Edge properties from files and programs: loads, appends, snapshots, and refused inputs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, AppendReport, Changes, DatabaseId, Duplicates, Engine, ErrorKind, GraphOptions, Identity, KeyScheme,
    LoadOptions, MergeScope, Result, SnapshotView, Spread,
};
use anden_formats::{InputPath, SourceOptions, WantedProperties};
use anden_graph::{Direction, Graph, GraphKind};
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

    fn load_on(&self, disk: &FaultStorage, edges: &str, options: &LoadOptions, threads: usize) -> Result<Engine> {
        let input = InputPath::File(self.file("edges.csv", edges));
        let (storage, pool) = (Arc::new(disk.clone()), Pool::new(threads).unwrap());
        Ok(Engine::load_in(storage, Path::new(DB), &[input], options, &pool, &Silent)?.0)
    }

    fn load(&self, edges: &str, graph: GraphOptions) -> Result<Engine> {
        self.load_on(&FaultStorage::default(), edges, &with(graph, Duplicates::Last), 2)
    }

    fn append(&self, db: &Engine, edges: &str, gone: &str) -> Result<AppendReport> {
        let options = AppendOptions {
            source: source(),
            remove: vec![InputPath::File(self.file("gone.txt", gone))],
            ..AppendOptions::default()
        };
        let report = db.append(&[InputPath::File(self.file("more.csv", edges))], &options, &self.pool, &Silent);
        db.verify(&self.pool).unwrap();
        report
    }

    fn change(&self, db: &Engine, changes: &Changes) -> Result<AppendReport> {
        db.append_changes(changes, &AppendOptions::default(), &self.pool, &Silent)
    }
}

fn source() -> SourceOptions {
    SourceOptions { edge_properties: WantedProperties::All, ..SourceOptions::default() }
}

fn with(graph: GraphOptions, duplicates: Duplicates) -> LoadOptions {
    LoadOptions { graph, duplicates, source: source(), ..LoadOptions::default() }
}

/// The edges with their values, nulls as a dash, in the order of the out-lists. Checks that in-lists name equal rows.
fn shown(view: &SnapshotView) -> Vec<String> {
    let properties = view.edge_properties();
    let (mut lines, mut out_rows, mut in_rows) = (Vec::new(), Vec::new(), Vec::new());
    for vertex in 0..view.vertex_bound() as u32 {
        let _ = view.for_each_row(Direction::Out, vertex, |targets, rows| {
            for (&target, &row) in targets.iter().zip(rows) {
                out_rows.push((vertex, target, row));
                let mut line = format!("{} {}", view.key(vertex).unwrap(), view.key(target).unwrap());
                for place in 0..properties.schema().len() {
                    let value = properties.value(place, row).unwrap();
                    let gathered = properties.gather(&[place], &[row]).unwrap();
                    assert_eq!(gathered[0].get(0), value);
                    line += &if value.is_null() { "|-".to_owned() } else { format!("|{value}") };
                }
                lines.push(line);
            }
            ControlFlow::Continue(())
        });
        let _ = view.for_each_row(Direction::In, vertex, |sources, rows| {
            in_rows.extend(sources.iter().zip(rows).map(|(&source, &row)| (source, vertex, row)));
            ControlFlow::Continue(())
        });
    }
    if Graph::has_lists(view, Direction::In) {
        out_rows.sort_unstable();
        in_rows.sort_unstable();
        assert_eq!(out_rows, in_rows);
    }
    assert_eq!(anden_graph::WeightedEdges::weight_type(view), None, "rows are no weights");
    view.check().unwrap();
    lines
}

const EDGES: &str = "\
source,target,delay,on,note
3,1,5,2024-02-29,late
1,2,,,\"\"
1,3,-7,1970-01-01,
1,2,8,,again
";

#[test]
fn values_reach_their_edges_whatever_the_graph_is() {
    let scene = Scene::new();
    let plain = GraphOptions::default();
    let last = ["1 2|8|-|again", "1 3|-7|1970-01-01|-", "3 1|5|2024-02-29|late"];
    for keys in [KeyScheme::Integer, KeyScheme::String, KeyScheme::Dense] {
        let db = scene.load(EDGES, GraphOptions { keys, ..plain }).unwrap();
        assert_eq!(shown(&db.view().unwrap()), last, "{keys:?}");
        assert!(db.options().edge_properties);
        let schema: Vec<_> = db.view().unwrap().edge_properties().schema().iter().map(|(_, of)| of.name()).collect();
        assert_eq!(schema, ["i64", "date", "string"]);
        db.verify(&scene.pool).unwrap();
    }
    let db = scene.load(EDGES, GraphOptions { in_edges: false, ..plain }).unwrap();
    assert_eq!(shown(&db.view().unwrap()), last);
    let db = scene.load_on(&FaultStorage::default(), EDGES, &with(plain, Duplicates::Keep), 2).unwrap();
    let all = ["1 2|-|-|", "1 2|8|-|again", "1 3|-7|1970-01-01|-", "3 1|5|2024-02-29|late"];
    assert_eq!(shown(&db.view().unwrap()), all);
    // For an undirected edge, the last line counts, in either direction.
    let db = scene.load(EDGES, GraphOptions { graph_kind: GraphKind::Undirected, ..plain }).unwrap();
    let both = ["1 2|8|-|again", "1 3|-7|1970-01-01|-", "2 1|8|-|again", "3 1|-7|1970-01-01|-"];
    assert_eq!(shown(&db.view().unwrap()), both);
    let db = scene.load(EDGES, GraphOptions { ordered: true, ..plain }).unwrap();
    assert_eq!(shown(&db.view().unwrap()), both[..2]);
    db.verify(&scene.pool).unwrap();
}

#[test]
fn the_same_bytes_whatever_the_number_of_threads() {
    let scene = Scene::new();
    let mut edges = String::from("source,target,text,n,x\n");
    for i in 0..60_000_u64 {
        let (u, v) = (i * i * 7919 % 5_003, i * 31 % 4_001);
        let text =
            if i % 11 == 0 { String::new() } else { format!("the text of edge {i}, {}", "x".repeat(i as usize % 90)) };
        edges += &format!("v{u},v{v},\"{text}\",{i},{}\n", i as f64 / 8.0);
    }
    for graph in [
        GraphOptions { keys: KeyScheme::String, ..GraphOptions::default() },
        GraphOptions { keys: KeyScheme::String, graph_kind: GraphKind::Undirected, ..GraphOptions::default() },
    ] {
        let mut first = BTreeMap::new();
        // The least memory holds neither the values nor the edges, so rows stay in input order.
        let (all, least) = ((None, None), (Some(36 << 20), Some(1 << 20)));
        for (threads, (memory, sort_memory)) in [(1, all), (3, all), (2, least), (1, least)] {
            let identity = Some(Identity { id: DatabaseId([7; 16]), unix_time: Some(1) });
            let options = LoadOptions { identity, memory, sort_memory, ..with(graph, Duplicates::Keep) };
            let disk = FaultStorage::default();
            let db = scene.load_on(&disk, &edges, &options, threads).unwrap();
            let view = db.view().unwrap();
            let properties = view.edge_properties();
            let mut num_edges = 0;
            for vertex in 0..view.vertex_bound() as u32 {
                let _ = view.for_each_row(Direction::Out, vertex, |targets, rows| {
                    for (&target, &row) in targets.iter().zip(rows) {
                        num_edges += 1;
                        let i: u64 = properties.value(1, row).unwrap().to_string().parse().unwrap();
                        assert!(memory.is_none() || i == row);
                        let text = properties.value(0, row).unwrap();
                        assert!(
                            i.is_multiple_of(11) || text.to_string().starts_with(&format!("the text of edge {i}, "))
                        );
                        let (u, v) = (format!("v{}", i * i * 7919 % 5_003), format!("v{}", i * 31 % 4_001));
                        let found = (view.key(vertex).unwrap().to_string(), view.key(target).unwrap().to_string());
                        let is_turned = graph.graph_kind == GraphKind::Undirected && found == (v.clone(), u.clone());
                        assert!(is_turned || found == (u, v), "row {i} at {found:?}");
                    }
                    ControlFlow::Continue(())
                });
            }
            assert_eq!(num_edges as u64, view.num_arcs());
            let names = disk.list(Path::new(DB)).unwrap();
            let files: Vec<_> = names.iter().map(|name| (name, disk.contents(&Path::new(DB).join(name)))).collect();
            let files = format!(
                "{:?}",
                files.iter().map(|(n, b)| (n, b.as_ref().map(|b| anden_base::checksum::crc32c(b)))).collect::<Vec<_>>()
            );
            let first = first.entry(memory).or_insert_with(|| files.clone());
            assert_eq!(*first, files, "{threads} threads, {memory:?}");
            db.verify(&scene.pool).unwrap();
        }
    }
}

#[test]
fn an_edge_with_other_values_is_another_edge() {
    let scene = Scene::new();
    let db = scene.load(EDGES, GraphOptions::default()).unwrap();
    let first = ["1 2|8|-|again", "1 3|-7|1970-01-01|-", "3 1|5|2024-02-29|late"];
    // Equal values, other values, no values, a new edge and a new property.
    let more = "source,target,delay,on,note,rate\n1,2,8,,again,\n1,3,-7,,,\n3,1,,,,\n2,3,1,,,0.5\n";
    let report = scene.append(&db, more, "").unwrap();
    assert_eq!((report.added, report.removed, report.edges), (2, 1, 4));
    let second = ["1 2|8|-|again|-", "1 3|-7|-|-|-", "2 3|1|-|-|0.5", "3 1|5|2024-02-29|late|-"];
    let check = |db: &Engine| {
        assert_eq!(shown(&db.snapshot(1).unwrap()), first);
        assert_eq!(shown(&db.snapshot(2).unwrap()), second);
        db.verify(&scene.pool).unwrap();
    };
    check(&db);
    // Removed and added again: without values, the values are gone; with equal values, nothing changed.
    let report = scene.append(&db, "source,target,delay,note\n1,2,,\n1,3,-7,\n", "1 2\n1 3\n2 3\n").unwrap();
    assert_eq!((report.added, report.removed), (1, 2));
    let third = ["1 2|-|-|-|-", "1 3|-7|-|-|-", "3 1|5|2024-02-29|late|-"];
    assert_eq!(shown(&db.view().unwrap()), third);
    check(&db);
    let changes = Changes::default().add_edge(3, 9).with("rate", 2).with("note", "new").add_edge(3, 1).add_edge(9, 9);
    let report = scene.change(&db, &changes).unwrap();
    assert_eq!((report.added, report.removed), (2, 0));
    let fourth = [&third[..], &["3 9|-|-|new|2.0", "9 9|-|-|-|-"]].concat();
    assert_eq!(shown(&db.view().unwrap()), fourth);
    db.merge(MergeScope::All, &scene.pool, &Silent).unwrap();
    check(&db);
    db.drop_snapshots(&[1, 2], &Silent).unwrap();
    assert_eq!(shown(&db.snapshot(3).unwrap()), third);
    assert_eq!(shown(&db.view().unwrap()), fourth);
    assert_eq!(shown(&db.window(4..=4).unwrap()), fourth[3..]);
    db.verify(&scene.pool).unwrap();
}

#[test]
fn multigraph_removal_takes_all_parallel_edges() {
    let scene = Scene::new();
    let multigraph = with(GraphOptions::default(), Duplicates::Keep);
    let db = scene.load_on(&FaultStorage::default(), EDGES, &multigraph, 2).unwrap();
    assert_eq!(scene.append(&db, "source,target,delay\n1,2,8\n1,2,9\n", "").unwrap().added, 2);
    let parallel = ["1 2|-|-|", "1 2|8|-|again", "1 2|8|-|-", "1 2|9|-|-"];
    assert_eq!(shown(&db.view().unwrap())[..4], parallel);
    let report = scene.append(&db, "source,target,delay\n1,2,7\n", "1 2\n").unwrap();
    assert_eq!((report.added, report.removed), (1, 4));
    assert_eq!(shown(&db.view().unwrap())[0], "1 2|7|-|-");
    assert_eq!(shown(&db.snapshot(2).unwrap())[..4], parallel);
}

#[test]
fn many_appends_leave_few_files_of_rows() {
    let scene = Scene::new();
    let disk = FaultStorage::default();
    let db =
        scene.load_on(&disk, "source,target,n\n0,0,0\n", &with(GraphOptions::default(), Duplicates::Last), 1).unwrap();
    for i in 1..200_u64 {
        scene.change(&db, &Changes::default().add_edge(i % 20, i / 20).with("n", i as i64)).unwrap();
    }
    let num_files = disk.list(Path::new(DB)).unwrap().iter().filter(|name| name.starts_with("rows-")).count();
    assert!(num_files <= 8, "{num_files} files of rows");
    let mut lines = shown(&db.view().unwrap());
    lines.sort_by_key(|line| line.split('|').nth(1).unwrap().parse::<u32>().unwrap());
    assert_eq!((lines.len(), &lines[199][..]), (200, "19 9|199"));
    assert_eq!(shown(&db.snapshot(1).unwrap()), ["0 0|0"]);
    db.verify(&scene.pool).unwrap();
}

#[test]
fn snapshots_of_one_load_share_the_values() {
    let scene = Scene::new();
    let mut edges = String::from("source,target,n\n");
    (0..400).for_each(|i| edges += &format!("{},{},{i}\n", i % 20, i / 20));
    let spread = Spread { num_snapshots: 4, ..Spread::default() };
    let options = LoadOptions { spread, ..with(GraphOptions::default(), Duplicates::Last) };
    let db = scene.load_on(&FaultStorage::default(), &edges, &options, 2).unwrap();
    for info in db.snapshots() {
        for line in shown(&db.snapshot(info.number).unwrap()) {
            let numbers: Vec<u32> = line.split([' ', '|']).map(|number| number.parse().unwrap()).collect();
            assert_eq!(numbers[2], numbers[1] * 20 + numbers[0]);
        }
    }
    assert_eq!(db.view().unwrap().num_edges(), 400);
    db.verify(&scene.pool).unwrap();
}

#[test]
fn unfit_edge_properties_are_refused_without_change() {
    let scene = Scene::new();
    let disk = FaultStorage::default();
    let plain = GraphOptions::default();
    let refused = |options: &LoadOptions, expected: &str| {
        let error = scene.load_on(&disk, EDGES, options, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!disk.exists(Path::new(DB)).unwrap(), "nothing is left behind");
    };
    let columns = "the columns 'delay', 'on' and 'note' would be properties of edges";
    refused(
        &with(plain, Duplicates::Min),
        &format!("{columns}; properties of parallel edges cannot be merged: --duplicates last keeps"),
    );
    refused(&with(plain, Duplicates::Sum), "--duplicates keep all edges");
    refused(
        &with(plain, Duplicates::Auto),
        "edges 2 and 4 of the input are parallel; properties of parallel edges cannot be merged",
    );
    let weighted = GraphOptions { weight_type: Some(anden_graph::WeightType::I64), ..plain };
    refused(
        &LoadOptions {
            source: SourceOptions { weight_column: Some("delay".into()), ..source() },
            ..with(weighted, Duplicates::Last)
        },
        "edges.csv:3: expected a weight of type i64, a whole number",
    );

    let db = scene.load(EDGES, plain).unwrap();
    let appended = |edges: &str| scene.append(&db, edges, "").unwrap_err().to_string();
    assert!(
        appended("source,target,delay\n1,2,soon\n").contains("column 'delay': expected a whole number of type i64")
    );
    assert!(appended("source,target,delay:f64\n1,2,1\n").contains("column 'delay': expected type i64, found f64"));
    let changed = |changes: Changes| scene.change(&db, &changes).unwrap_err().to_string();
    assert_eq!(
        changed(Changes::default().add_edge(1, 2).with("delay", "x")),
        "the edge from 1 to 2: property \"delay\": expected a value of type i64, found 'x'"
    );
    let mut beyond = Changes::default().add_edge(1, 2);
    beyond.edge_properties.push((1, "delay".into(), 5.into()));
    assert!(changed(beyond).contains("there is no edge 1 to be added"));
    let min = AppendOptions { duplicates: Some(Duplicates::Min), ..AppendOptions::default() };
    let error = db.append_changes(&Changes::default(), &min, &scene.pool, &Silent).unwrap_err().to_string();
    assert!(error.contains("of parallel edges, the last line's are kept"), "{error}");
    assert_eq!(db.snapshots().len(), 1);

    let without = scene.load("1,2\n", plain).unwrap();
    let error = scene.append(&without, "source,target,n\n1,2,3\n", "").unwrap_err().to_string();
    assert!(error.contains("the graph was loaded without properties of edges"), "{error}");
    let error = scene.change(&without, &Changes::default().add_edge(1, 2).with("n", 1)).unwrap_err().to_string();
    assert!(error.contains("the graph was loaded without properties of edges"), "{error}");
    assert_eq!(without.snapshots().len(), 1);
}

#[test]
fn without_a_choice_no_two_edges_may_be_parallel() {
    let scene = Scene::new();
    let once = "source,target,n\n1,2,10\n2,2,20\n3,1,30\n2,1,40\n";
    let auto = |graph| with(graph, Duplicates::Auto);
    let plain = GraphOptions::default();
    let db = scene.load_on(&FaultStorage::default(), once, &auto(plain), 2).unwrap();
    assert_eq!(shown(&db.view().unwrap()), ["1 2|10", "2 1|40", "2 2|20", "3 1|30"]);
    // Edges in both directions are parallel if the graph ignores directions.
    for graph in [GraphOptions { graph_kind: GraphKind::Undirected, ..plain }, GraphOptions { ordered: true, ..plain }]
    {
        let error = scene.load_on(&FaultStorage::default(), once, &auto(graph), 2).unwrap_err();
        assert!(error.to_string().starts_with("edges 1 and 4 of the input are parallel; "), "{error}");
    }
    // The result does not depend on sorting, in memory or on disk.
    let edge = |i: u64| format!("{},{},{i}\n", i * 7_919 % 60_013, i % 4_001);
    let (mut shuffled, mut sorted) = (String::from("source,target,n\n"), String::from("source,target,n\n"));
    (0..60_000).for_each(|i| shuffled += &edge(i));
    (0..60_000).for_each(|i| sorted += &format!("{i},{i},{i}\n"));
    for (edges, first) in [(&mut shuffled, 41_235), (&mut sorted, 60_000)] {
        for (threads, memory, sort_memory) in [(1, None, None), (2, Some(36 << 20), Some(1 << 20))] {
            let options = |duplicates| LoadOptions { memory, sort_memory, ..with(plain, duplicates) };
            let load =
                |edges: &str, duplicates| scene.load_on(&FaultStorage::default(), edges, &options(duplicates), threads);
            assert_eq!(load(edges, Duplicates::Auto).unwrap().view().unwrap().num_edges(), 60_000);
            let again = edges.lines().nth(first).unwrap().to_owned();
            let error = load(&format!("{edges}{again}\n"), Duplicates::Auto).unwrap_err().to_string();
            assert!(error.starts_with(&format!("edges {first} and 60001 of the input")), "{error}");
            assert_eq!(
                load(&format!("{edges}{again}\n"), Duplicates::Last).unwrap().view().unwrap().num_edges(),
                60_000
            );
        }
    }
}

#[test]
fn an_empty_database_takes_properties_of_edges() {
    let scene = Scene::new();
    let graph = GraphOptions { edge_properties: true, ..GraphOptions::default() };
    let db = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), graph).unwrap();
    scene.change(&db, &Changes::default().add_edge(1, 2)).unwrap();
    scene.change(&db, &Changes::default().add_edge(2, 3).with("kind", "x").add_edge(1, 2).with("n", 1)).unwrap();
    assert_eq!(shown(&db.snapshot(2).unwrap()), ["1 2"]);
    assert_eq!(shown(&db.view().unwrap()), ["1 2|-|1", "2 3|x|-"]);
    db.verify(&scene.pool).unwrap();
}
