//! An exported graph equals its original when loaded again, in every format.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anden::export::{ExportFormat, Output, write_file};
use anden::load::{Duplicates, InputPath, KeyKind, SourceOptions, WantedProperties};
use anden::{Database, GraphKind, Key, KeyScheme, LoadOptions, Options, Session, View, WeightType};
use anden_graph::{Direction, Graph, WeightedEdges};
use proptest::prelude::*;

/// Edges with keys and bits of weights, and keys of vertices; both sorted.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    edges: Vec<(Key, Key, u64)>,
    vertices: Vec<Key>,
}

impl Content {
    fn of(view: &View) -> Self {
        let graph = view.graph();
        let ids = (0..view.vertex_bound() as u32).filter(|&vertex| view.is_live(vertex));
        let mut content =
            Self { edges: Vec::new(), vertices: ids.clone().map(|vertex| view.key(vertex).unwrap()).collect() };
        for source in ids {
            let mut push = |target: u32, bits: u64| {
                let mut ends = [view.key(source).unwrap(), view.key(target).unwrap()];
                if !view.is_directed() {
                    ends.sort();
                }
                let [source, target] = ends;
                content.edges.push((source, target, bits));
            };
            let _ = match view.weight_type() {
                None => graph.for_each_fragment(Direction::Out, source, |targets| {
                    targets.iter().for_each(|&target| push(target, 0));
                    ControlFlow::Continue(())
                }),
                Some(WeightType::I64) => {
                    graph.for_each_weighted_fragment::<i64>(Direction::Out, source, |targets, weights| {
                        targets.iter().zip(weights).for_each(|(&target, &weight)| push(target, weight as u64));
                        ControlFlow::Continue(())
                    })
                }
                _ => graph.for_each_weighted_fragment::<f64>(Direction::Out, source, |targets, weights| {
                    targets.iter().zip(weights).for_each(|(&target, &weight)| push(target, weight.to_bits()));
                    ControlFlow::Continue(())
                }),
            };
        }
        content.edges.sort();
        content.vertices.sort();
        content
    }

    /// The graph with other keys.
    fn renamed(&self, key: impl Fn(&Key) -> Key, is_directed: bool) -> Self {
        let edge = |(source, target, bits): &(Key, Key, u64)| {
            let mut ends = [key(source), key(target)];
            if !is_directed {
                ends.sort();
            }
            let [source, target] = ends;
            (source, target, *bits)
        };
        let mut renamed =
            Self { edges: self.edges.iter().map(edge).collect(), vertices: self.vertices.iter().map(&key).collect() };
        renamed.edges.sort();
        renamed.vertices.sort();
        renamed
    }
}

/// A folder with databases.
struct Scene {
    folder: tempfile::TempDir,
    session: Session,
    options: Options,
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self, name: &str, input: &Path, vertices: Option<PathBuf>) -> View {
        let keys = if self.options.keys == KeyScheme::String { KeyKind::String } else { KeyKind::Integer };
        let vertices = vertices.map(Into::into).into_iter().collect();
        let source = SourceOptions { weights: self.options.weight_type, keys, vertices, ..SourceOptions::default() };
        let duplicates = if self.options.multigraph { Duplicates::Keep } else { Duplicates::Min };
        let options = LoadOptions { graph: self.options, duplicates, source, ..LoadOptions::default() };
        let inputs = [InputPath::File(input.to_owned())];
        let (database, _) = Database::load(self.path(name), &inputs, &options, &self.session).unwrap();
        database.view().unwrap()
    }

    fn export(&self, view: &View, format: ExportFormat, name: &str) -> PathBuf {
        let path = self.path(name);
        let num_edges = write_file(&path, |output| view.export(format, output)).unwrap();
        assert_eq!(num_edges, view.num_edges());
        path
    }

    fn check(&self, view: &View, expected: &Content) {
        let vertices = |format, name: &str| {
            let path = self.path(name);
            write_file(&path, |output| view.export_vertices(format, output)).unwrap();
            Some(path)
        };
        // Keys with commas do not fit on lines of a list.
        let fits_lines = !expected.vertices.iter().any(|key| matches!(key, Key::String(key) if key.contains(',')));
        let list = if fits_lines { vertices(ExportFormat::EDGE_LIST, "vertices.txt") } else { None };
        let csv = vertices(ExportFormat::CSV, "vertices.csv");
        let parquet = vertices(ExportFormat::PARQUET, "vertices.parquet");
        for (format, file, vertices) in [
            (ExportFormat::EDGE_LIST, "a.txt", list),
            (ExportFormat::CSV, "a.csv", csv),
            (ExportFormat::PARQUET, "a.parquet", parquet),
            (ExportFormat::GRAPHML, "a.graphml", None),
        ] {
            if format == ExportFormat::EDGE_LIST && !fits_lines {
                continue;
            }
            let path = self.export(view, format, file);
            let again = self.load(&format!("{file}.anden"), &path, vertices);
            assert_eq!(&Content::of(&again), expected, "{file}");
            let second = self.export(&again, format, &format!("again.{file}"));
            assert!(std::fs::read(&path).unwrap() == std::fs::read(second).unwrap(), "{file}");
        }
        if fits_lines {
            self.check_matrix(view, expected);
        }
    }

    /// A matrix has numbers for vertices, so the file of vertices maps them to keys.
    fn check_matrix(&self, view: &View, expected: &Content) {
        let path = self.export(view, ExportFormat::MTX, "a.mtx");
        let names = std::fs::read_to_string(self.path("vertices.txt")).unwrap();
        let names: Vec<&str> = names.lines().collect();
        let options = Options { keys: KeyScheme::Integer, ..self.options };
        let scene = Scene { folder: tempfile::tempdir().unwrap(), session: self.session.clone(), options };
        let again = scene.load("db", &path, None);
        let name = |row: &Key| {
            let Key::Integer(row) = row else { panic!("row {row}") };
            let name = names[*row as usize - 1];
            if self.options.keys == KeyScheme::String {
                Key::from(name)
            } else {
                Key::from(name.parse::<u64>().unwrap())
            }
        };
        let found = Content::of(&again);
        assert_eq!(&found.renamed(name, view.is_directed()), expected);
        assert!(again.has_keys_of_matrix().unwrap());
        let second = scene.export(&again, ExportFormat::MTX, "again.mtx");
        let third = scene.load("third", &second, None);
        assert_eq!(Content::of(&third), found);
        if self.options.keys == KeyScheme::Dense {
            assert!(view.has_keys_of_matrix().unwrap());
            assert_eq!(&Content::of(&self.load("dense", &path, None)), expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_comes_back(
        is_directed: bool,
        multigraph: bool,
        weights in 0_usize..3,
        keys in 0_usize..4,
        ends in prop::collection::vec((0_u64..25, 0_u64..25, -1000_i32..1000), 0..80),
        lone in prop::collection::vec(0_u64..40, 0..6),
    ) {
        let key = |number: u64| match keys {
            0 => (number * 1_000_000_007).to_string(),
            1 => number.to_string(),
            2 => format!("ü{number}\"x"),
            _ => format!("ü, {number}\"x"),
        };
        let quoted = |number: u64| format!("\"{}\"", key(number).replace('"', "\"\""));
        let weight = |weight: i32| if weights == 2 { (f64::from(weight) / 7.0).to_string() } else { weight.to_string() };
        let line = |&(source, target, value): &(u64, u64, i32)| {
            format!("{},{},{}\n", quoted(source), quoted(target), weight(value))
        };
        let options = Options {
            graph_kind: if is_directed { GraphKind::Directed } else { GraphKind::Undirected },
            multigraph,
            keys: [KeyScheme::Integer, KeyScheme::Dense, KeyScheme::String, KeyScheme::String][keys],
            weight_type: [None, Some(WeightType::I64), Some(WeightType::F64)][weights],
            ..Options::default()
        };
        let scene = Scene { folder: tempfile::tempdir().unwrap(), session: Session::new(2).unwrap(), options };
        let (edges, vertices) = (scene.path("edges.csv"), scene.path("lone.csv"));
        let text = |header: &str, lines: Vec<String>| format!("{header}\n{}", lines.concat());
        std::fs::write(&edges, text("source,target,weight", ends.iter().map(line).collect())).unwrap();
        let lines = lone.iter().map(|&number| quoted(number) + "\n").collect();
        std::fs::write(&vertices, text("id", lines)).unwrap();
        let view = scene.load("db", &edges, Some(vertices));
        scene.check(&view, &Content::of(&view));
    }
}

#[test]
fn properties_of_vertices_come_back() {
    let options = Options { keys: KeyScheme::String, ..Options::default() };
    let scene = Scene { folder: tempfile::tempdir().unwrap(), session: Session::new(1).unwrap(), options };
    let (edges, vertices) = (scene.path("edges.txt"), scene.path("vertices.csv"));
    std::fs::write(&edges, "a b\nb c\n").unwrap();
    let text = "id,name:string,size:i64,share:f64,on:boolean,day:date,at:timestamp,code:bytes\n\
                a,\"x, \"\"y\"\"\",-7,0.5,true,1969-12-31,2024-02-29T12:30:00.5Z,0x00ff\n\
                b,\"\",,,,,,\nlone,<&>,9007199254740993,-1e300,false,2024-02-29,1960-01-01T00:00:00Z,0x\n";
    std::fs::write(&vertices, text).unwrap();
    let load = |name: &str, input: &Path, vertices: Option<PathBuf>| {
        let source = SourceOptions {
            keys: KeyKind::String,
            vertices: vertices.map(Into::into).into_iter().collect(),
            vertex_properties: WantedProperties::All,
            ..SourceOptions::default()
        };
        let options = LoadOptions { graph: scene.options, source, ..LoadOptions::default() };
        let inputs = [InputPath::File(input.to_owned())];
        Database::load(scene.path(name), &inputs, &options, &scene.session).unwrap().0.view().unwrap()
    };
    let view = load("db", &edges, Some(vertices));
    assert_eq!((view.num_vertices(), view.vertex_schema().len()), (4, 7));
    let graphml = scene.export(&view, ExportFormat::GRAPHML, "a.graphml");
    let mut again = vec![load("graphml", &graphml, None)];
    for (format, file) in [(ExportFormat::CSV, "again.csv"), (ExportFormat::PARQUET, "again.parquet")] {
        let path = scene.path(file);
        write_file(&path, |output| view.export_vertices(format, output)).unwrap();
        again.push(load(&format!("{file}.anden"), &edges, Some(path)));
    }
    for again in again {
        assert_eq!(again.vertex_schema(), view.vertex_schema());
        for (name, _) in view.vertex_schema().iter() {
            assert_eq!(again.vertex_property(name).unwrap(), view.vertex_property(name).unwrap(), "{name}");
        }
        assert_eq!(Content::of(&again), Content::of(&view));
    }
}

#[test]
fn keys_that_are_the_rows_of_a_matrix_stay() {
    let scene =
        Scene { folder: tempfile::tempdir().unwrap(), session: Session::new(1).unwrap(), options: Options::default() };
    let path = scene.path("a.mtx");
    std::fs::write(&path, "%%MatrixMarket matrix coordinate pattern general\n5 5 2\n4 2\n2 5\n").unwrap();
    let view = scene.load("db", &path, None);
    assert_eq!((view.num_vertices(), view.num_edges()), (5, 2));
    assert!(view.has_keys_of_matrix().unwrap());
    let expected = "%%MatrixMarket matrix coordinate pattern general\n5 5 2\n2 5\n4 2\n";
    let check = |view: &View| {
        let again = scene.export(view, ExportFormat::MTX, "b.mtx");
        assert_eq!(std::fs::read_to_string(again).unwrap(), expected);
    };
    check(&view);
    // Dense ids count from 0, and come back too.
    let graph = Options { keys: KeyScheme::Dense, ..Options::default() };
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let (dense, _) = Database::load(scene.path("dense"), &[InputPath::File(path)], &options, &scene.session).unwrap();
    let dense = dense.view().unwrap();
    assert_eq!((dense.num_vertices(), dense.has_edge(3, 1).unwrap()), (5, true));
    assert!(dense.has_keys_of_matrix().unwrap());
    check(&dense);
}

/// Ends all work at once.
struct Interrupted;

impl anden::Progress for Interrupted {
    fn is_cancelled(&self) -> bool {
        true
    }
}

/// Regression: the walk over all lists went on after a cancellation, because it writes nothing.
#[test]
fn an_arrow_export_stops_during_its_walk() {
    let db = Database::in_memory(Options::default()).unwrap();
    db.apply(&[anden::Update::add_edge(1, 2)]).unwrap();
    let mut bytes = Vec::new();
    let mut output = Output::stopping("graph.arrow".as_ref(), &mut bytes, &Interrupted);
    let error = db.view().unwrap().export(ExportFormat::ARROW, &mut output).unwrap_err();
    assert!(matches!(error, anden::Error::Cancelled), "{error}");
    drop(output);
    assert!(bytes.is_empty());
}
