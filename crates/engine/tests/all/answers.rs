//! Known answers, and refused inputs.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    Duplicates, Engine, Error, ErrorKind, GraphOptions, IdOrder, KeyScheme, LoadOptions, LoadReport, Result,
};
use anden_formats::{InputPath, OnError};
use anden_graph::{Direction, Graph, GraphKind, WeightType};
use anden_testkit::FaultStorage;

use crate::loading::{DB, Input, InputEdge, Model};

fn load_paths(inputs: &[InputPath], options: &LoadOptions) -> Result<(Engine, LoadReport)> {
    let disk = FaultStorage::default();
    let loaded =
        Engine::load_in(Arc::new(disk.clone()), Path::new(DB), inputs, options, &Pool::new(2).unwrap(), &Silent);
    assert_eq!(loaded.is_ok(), disk.exists(Path::new(DB)).unwrap());
    loaded
}

fn load(text: &str, options: &LoadOptions) -> Result<(Engine, LoadReport)> {
    load_paths(&Input::text(text).paths(), options)
}

/// The error of a load, and its category.
fn refusal(text: &str, options: &LoadOptions) -> (ErrorKind, String) {
    let error = load(text, options).map(|(_, report)| report).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn an_empty_file_is_a_graph_without_vertices() {
    for keys in [KeyScheme::Integer, KeyScheme::Dense, KeyScheme::String] {
        let graph = GraphOptions { keys, ..GraphOptions::default() };
        let (db, report) = load("", &LoadOptions { graph, ..LoadOptions::default() }).unwrap();
        assert_eq!((report.vertices, report.edges, report.snapshot), (0, 0, 1));
        assert_eq!(db.view().unwrap().vertex_bound(), 0);
        let created = Engine::create_in(Arc::new(FaultStorage::default()), Path::new(DB), graph).unwrap();
        assert_eq!(created.view().unwrap().num_edges(), 0);
    }
}

#[test]
fn a_loop_is_an_edge_of_one_vertex() {
    for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
        let graph = GraphOptions { graph_kind, ..GraphOptions::default() };
        let (db, report) = load("7 7\n7 7\n", &LoadOptions { graph, ..LoadOptions::default() }).unwrap();
        assert_eq!((report.vertices, report.edges), (1, 1));
        let view = db.view().unwrap();
        assert_eq!((view.degree(Direction::Out, 0), view.degree(Direction::In, 0), view.num_arcs()), (1, 1, 1));
    }
}

#[test]
fn order_beyond_budget_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("wide.mtx");
    std::fs::write(&input, "%%MatrixMarket matrix coordinate pattern general\n1000000 1000000 1\n1 2\n").unwrap();
    let load = |order| {
        let options = LoadOptions { order, memory: Some(64 << 20), ..LoadOptions::default() };
        load_paths(&[InputPath::File(input.clone())], &options)
    };
    assert_eq!(load(IdOrder::Auto).unwrap().1.vertices, 1_000_000);
    for (order, name) in [(IdOrder::Degree, "degree"), (IdOrder::Hub, "hub"), (IdOrder::Bfs, "bfs")] {
        let error = load(order).map(|(_, report)| report).unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
        assert!(error.to_string().contains(&format!("--order {name}")), "{error}");
    }
}

/// Regression: edges that were spread while they were read took the vertex of a dropped loop with them.
#[test]
fn ordered_load_drops_loop_and_keeps_vertex() {
    let text: String = (0..1000).map(|i| format!("{} {}\n", 4000 - 3 * i, 3996 - 3 * i)).collect();
    let graph = GraphOptions { ordered: true, ..GraphOptions::default() };
    let (db, report) = load(&(text + "5002 5002\n"), &LoadOptions { graph, ..LoadOptions::default() }).unwrap();
    assert_eq!((report.vertices, report.edges), (2001, 1000));
    assert!(db.view().unwrap().vertex(&5002.into()).unwrap().is_some());
}

#[test]
fn skipped_lines_are_counted() {
    let mut options = LoadOptions::default();
    options.source.on_error = OnError::Skip;
    let (_, report) = load("1 2\nthree 4\n5 6\n", &options).unwrap();
    assert_eq!((report.vertices, report.edges, report.skipped), (4, 2, 1));
    assert!(report.first_skipped.unwrap().contains("edges.txt:2"));
    assert!(report.seconds > 0.0 && report.bytes > 0 && report.peak_bytes > 0);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let (kind, text) = refusal("1 2\nthree 4\n", &LoadOptions::default());
    assert!(kind == ErrorKind::InvalidInput && text.contains("edges.txt:2"), "{text}");
    let dense = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let dense = LoadOptions { graph: dense, ..LoadOptions::default() };
    for id in ["4294967294", "4294967295", "99999999999"] {
        let (kind, text) = refusal(&format!("1 2\n3 {id}\n"), &dense);
        assert!(kind == ErrorKind::InvalidInput, "{text}");
        assert!(text.contains("edges.txt:2") && text.contains(id), "{text}");
    }
    let weighted = GraphOptions { weight_type: Some(WeightType::F64), ..GraphOptions::default() };
    let weighted = LoadOptions { graph: weighted, ..LoadOptions::default() };
    for text in ["1 2 NaN\n", "1 2\n"] {
        let (kind, text) = refusal(text, &weighted);
        assert!(kind == ErrorKind::InvalidInput, "{text}");
    }
    let both = GraphOptions { graph_kind: GraphKind::Undirected, ordered: true, ..GraphOptions::default() };
    assert_eq!(refusal("1 2\n", &LoadOptions { graph: both, ..LoadOptions::default() }).0, ErrorKind::InvalidInput);
    let (kind, text) = refusal("1 2\n", &LoadOptions { memory: Some(1 << 20), ..LoadOptions::default() });
    assert!(kind == ErrorKind::InvalidInput && text.contains("needs at least"), "{text}");
    let missing = [InputPath::File("missing.txt".into())];
    let error = load_paths(&missing, &LoadOptions::default()).map(|(_, report)| report).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("missing.txt"), "{error}");
}

#[test]
fn paths_are_neither_replaced_nor_invented() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new.anden");
    for error in [Engine::open(&path), Engine::open_read_only(&path)].map(|opened| opened.map(|_| ()).unwrap_err()) {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("new.anden") && error.to_string().contains("anden load"), "{error}");
    }
    let (input, pool) = (Input::text("1 2\n"), Pool::new(1).unwrap());
    let load = || Engine::load(&path, &input.paths(), &LoadOptions::default(), &pool, &Silent);
    let (db, _) = load().unwrap();
    assert_eq!(load().map(|(_, report)| report).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(Engine::create(&path, GraphOptions::default()).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(Engine::open(&path).unwrap_err().kind(), ErrorKind::Locked);
    let reader = Engine::open_read_only(&path).unwrap();
    assert!(reader.is_read_only() && !db.is_read_only());
    assert_eq!((reader.path(), reader.snapshots().len(), reader.dictionary().len()), (&*path, 1, 2));
    drop(db);
    assert_eq!(*Engine::open(&path).unwrap().options(), GraphOptions::default());
}

/// A serialized graph without weights: the lists of both directions.
fn serialized(is_directed: bool, directions: &[&[&[i32]]]) -> Vec<u8> {
    let mut bytes = vec![u8::from(is_directed)];
    let num_arcs: usize = directions[0].iter().map(|list| list.len()).sum();
    bytes.extend((num_arcs as i64).to_le_bytes());
    bytes.extend((directions[0].len() as i64).to_le_bytes());
    for lists in directions {
        let mut offset = 0_i64;
        bytes.extend(offset.to_le_bytes());
        for list in *lists {
            offset += list.len() as i64;
            bytes.extend(offset.to_le_bytes());
        }
        bytes.extend(lists.iter().flat_map(|list| list.iter()).flat_map(|v| v.to_le_bytes()));
    }
    bytes
}

fn load_serialized(bytes: &[u8], graph: GraphOptions, duplicates: Duplicates) -> Result<Model<u32>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph.sg");
    std::fs::write(&path, bytes).unwrap();
    let multigraph = duplicates == Duplicates::Keep;
    let graph = GraphOptions { multigraph, ..graph };
    let (db, report) =
        load_paths(&[InputPath::File(path)], &LoadOptions { graph, duplicates, ..LoadOptions::default() })?;
    db.verify(&Pool::new(2).unwrap())?;
    assert_eq!(report.edges, db.view()?.num_edges());
    Ok(Model::of(&db.view()?))
}

fn edges(pairs: &[(u32, u32)]) -> Vec<InputEdge> {
    pairs.iter().map(|(u, v)| (u.to_string(), v.to_string(), "1".into())).collect()
}

#[test]
fn serialized_graphs_are_taken_as_they_are() {
    let options = |graph_kind, ordered| GraphOptions { graph_kind, ordered, ..GraphOptions::default() };
    let (directed, undirected) = (options(GraphKind::Directed, false), options(GraphKind::Undirected, false));
    let expect = |pairs: &[(u32, u32)], graph: GraphOptions, duplicates| {
        let graph = GraphOptions { keys: KeyScheme::Dense, ..graph };
        Model::<u32>::new(&edges(pairs), &LoadOptions { graph, duplicates, ..LoadOptions::default() })
    };

    // Unsorted lists, a parallel edge, a loop.
    let pairs = [(0, 2), (0, 1), (0, 2), (1, 1), (3, 0)];
    let bytes = serialized(true, &[&[&[2, 1, 2], &[1], &[], &[0]], &[&[3], &[1, 0], &[0, 0], &[]]]);
    for (graph, duplicates) in [
        (directed, Duplicates::Min),
        (directed, Duplicates::Keep),
        (undirected, Duplicates::Min),
        (options(GraphKind::Directed, true), Duplicates::Min),
    ] {
        assert_eq!(load_serialized(&bytes, graph, duplicates).unwrap(), expect(&pairs, graph, duplicates));
        let dense = GraphOptions { keys: KeyScheme::Dense, ..graph };
        assert_eq!(load_serialized(&bytes, dense, duplicates).unwrap(), expect(&pairs, graph, duplicates));
    }

    let pairs = [(0, 1), (0, 2), (2, 3), (3, 3)];
    let bytes = serialized(false, &[&[&[1, 2], &[0], &[0, 3], &[2, 3]]]);
    let found = load_serialized(&bytes, undirected, Duplicates::Min).unwrap();
    assert_eq!(found, expect(&pairs, undirected, Duplicates::Min));
    let both_ways = [(0, 1), (1, 0), (0, 2), (2, 0), (2, 3), (3, 2), (3, 3)];
    let found = load_serialized(&bytes, directed, Duplicates::Min).unwrap();
    assert_eq!(found, expect(&both_ways, directed, Duplicates::Min));
    let io_order = LoadOptions { graph: directed, order: IdOrder::Input, ..LoadOptions::default() };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("g.sg"), serialized(false, &[&[&[], &[2], &[1], &[]]])).unwrap();
    let (db, _) = load_paths(&[InputPath::File(dir.path().join("g.sg"))], &io_order).unwrap();
    assert_eq!(Model::<u32>::of(&db.view().unwrap()).keys, ["1", "2", "0", "3"]);
}

#[test]
fn serialized_graphs_that_contradict_themselves_are_refused() {
    let directed = GraphOptions::default();
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..directed };
    for (bytes, graph, what) in [
        (serialized(false, &[&[&[1, 2], &[0], &[]]]), undirected, "one end only"),
        (serialized(false, &[&[&[1, 2], &[0], &[1]]]), directed, "one end only"),
        (serialized(true, &[&[&[1], &[], &[0]], &[&[1], &[0], &[]]]), directed, "different edges"),
    ] {
        let error = load_serialized(&bytes, graph, Duplicates::Min).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(what), "{error}");
        assert!(error.to_string().contains("graph.sg"), "{error}");
    }
}
