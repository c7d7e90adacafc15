//! A written graph equals its original when read again.

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_formats::{
    CsvDialect, Error, ExportFormat, ExportedGraph, Format, KeyKind, NoProperties, Output, SerializedWeights,
    SourceOptions, Span, ValueColumn, ValueKind, ValueOfVertex, VertexValue, read_gapbs, write_csv, write_edge_list,
    write_file, write_folder, write_gapbs,
};
use anden_graph::{Csr, CsrBuilder, Direction, Graph, GraphKind, VertexId, Weight, WeightedEdges};
use proptest::prelude::*;

use crate::reading::{Folder, read_files};

fn numbers(vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
    text.extend(vertex.to_string().into_bytes());
    Ok(())
}

/// Keys that need every kind of quoting.
fn names(vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
    let name = ["plain", "with blank", "comma,", "semi;", "quo\"te", "line\r\n\"end\"\n", "#hash", "\"\"", " ", "ü"];
    let prefix = name[vertex as usize % name.len()];
    text.extend(format!("{prefix}{vertex}").into_bytes());
    Ok(())
}

fn named(vertex: VertexId) -> String {
    let mut text = Vec::new();
    names(vertex, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The expected edges of a graph.
fn edges_of<W: Weight>(graph: &Csr) -> Vec<(VertexId, VertexId, W)> {
    let mut edges = Vec::new();
    for source in 0..graph.vertex_bound() as VertexId {
        let _ = graph.for_each_weighted_fragment::<W>(Direction::Out, source, |targets, weights| {
            let pairs = targets.iter().zip(weights);
            let pairs = pairs.filter(|(t, _)| **t >= source || graph.graph_kind() == GraphKind::Directed);
            edges.extend(pairs.map(|(&target, &weight)| (source, target, weight)));
            std::ops::ControlFlow::Continue(())
        });
    }
    edges
}

fn check<W: Weight>(graph_kind: GraphKind, num_vertices: usize, edges: &[(u32, u32, W)], keep_parallel: bool) {
    let mut builder = CsrBuilder::<W>::new(graph_kind, num_vertices);
    edges.iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let builder = if keep_parallel { builder.keep_parallel() } else { builder };
    let plain = builder.clone().build().unwrap();
    let graph = builder.build_weighted().unwrap();
    let expected = edges_of::<W>(&graph);
    let folder = Folder::new();

    let path = folder.path("a.txt");
    let num_written = write_file(&path, |output| write_edge_list(&graph, numbers, output)).unwrap();
    assert_eq!(num_written, graph.num_edges());
    let options = SourceOptions { weights: Some(W::TYPE), ..SourceOptions::default() };
    let read = read_files::<u64, W>(&[&path], &options).unwrap();
    let pairs: Vec<_> = expected.iter().map(|&(s, t, _)| (u64::from(s), u64::from(t))).collect();
    let weights: Vec<_> = expected.iter().map(|&(_, _, w)| w).collect();
    assert_eq!((read.pairs(), &read.weights), (pairs.clone(), &weights));

    let path = folder.path("a.csv");
    write_file(&path, |output| write_csv(&graph, names, &NoProperties, CsvDialect::Plain, output)).unwrap();
    let options = SourceOptions { weights: Some(W::TYPE), keys: KeyKind::String, ..SourceOptions::default() };
    let read = read_files::<Span, W>(&[&path], &options).unwrap();
    let keys: Vec<_> = expected.iter().map(|&(s, t, _)| (named(s), named(t))).collect();
    assert_eq!((read.edges, read.weights), (keys, weights));

    let path = folder.path("a.sg");
    write_file(&path, |output| write_gapbs(&plain, SerializedWeights::Leave, output)).unwrap();
    let back = read_gapbs(&path, &Pool::new(2).unwrap()).unwrap();
    assert_same::<W>(&plain, &back);
    let read = read_files::<u64, u32>(&[&path], &SourceOptions::default()).unwrap();
    assert_eq!(read.pairs(), pairs);
}

fn assert_same<W: Weight>(a: &Csr, b: &Csr) {
    assert_eq!((a.graph_kind(), a.num_edges(), a.vertex_bound()), (b.graph_kind(), b.num_edges(), b.vertex_bound()));
    for (a, b) in [(Some(a.out_lists()), Some(b.out_lists())), (a.in_lists(), b.in_lists())] {
        let arrays = |lists: &anden_graph::Adjacency| (lists.offsets().to_vec(), lists.targets().to_vec());
        assert_eq!(a.map(arrays), b.map(arrays));
        let weights = |lists: &anden_graph::Adjacency| lists.weights().and_then(W::of).map(<[W]>::to_vec);
        assert_eq!(a.map(weights), b.map(weights));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_survives_every_format(
        is_directed: bool,
        keep_parallel: bool,
        num_vertices in 1_u32..40,
        ends in prop::collection::vec((any::<u32>(), any::<u32>(), any::<i32>()), 0..120),
    ) {
        let graph_kind = if is_directed { GraphKind::Directed } else { GraphKind::Undirected };
        let ends: Vec<_> = ends.into_iter().map(|(s, t, w)| (s % num_vertices, t % num_vertices, w)).collect();
        let size = num_vertices as usize;
        let edges: Vec<_> = ends.iter().map(|&(s, t, w)| (s, t, w as u32)).collect();
        check::<u32>(graph_kind, size, &edges, keep_parallel);
        let edges: Vec<_> = ends.iter().map(|&(s, t, w)| (s, t, f64::from(w) / 7.0)).collect();
        check::<f64>(graph_kind, size, &edges, keep_parallel);
        let edges: Vec<_> = ends.iter().map(|&(s, t, w)| (s, t, w as f32 / 7.0)).collect();
        check::<f32>(graph_kind, size, &edges, keep_parallel);
        let mut builder = CsrBuilder::<i64>::new(graph_kind, size);
        ends.iter().for_each(|&(s, t, w)| builder.edge(s, t, i64::from(w).abs().min(i64::from(i32::MAX))));
        let graph = if keep_parallel { builder.keep_parallel() } else { builder }.build_weighted().unwrap();
        let folder = Folder::new();
        let path = folder.path("a.wsg");
        write_file(&path, |output| write_gapbs(&graph, SerializedWeights::Write, output)).unwrap();
        let back = read_gapbs(&path, &Pool::new(2).unwrap()).unwrap();
        let weights = |graph: &Csr| edges_of::<i64>(graph).into_iter().map(|(_, _, w)| w as u32).collect::<Vec<_>>();
        let back_weights: Vec<u32> = edges_of::<u32>(&back).into_iter().map(|(_, _, w)| w).collect();
        prop_assert_eq!(weights(&graph), back_weights);
    }
}

/// A graph whose keys are its ids.
struct NumberedGraph<'a> {
    graph: &'a Csr,
    pool: Pool,
}

impl ExportedGraph for NumberedGraph<'_> {
    type Graph = Csr;
    type Properties = NoProperties;
    type Error = Error;

    fn graph(&self) -> &Csr {
        self.graph
    }

    fn properties(&self) -> &NoProperties {
        &NoProperties
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn key_kind(&self) -> Result<KeyKind, Error> {
        Ok(KeyKind::Integer)
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
        numbers(vertex, text)
    }

    fn key_bytes(&self) -> u64 {
        0
    }

    fn first_row_key(&self) -> Option<u64> {
        Some(0)
    }
}

#[test]
fn reader_of_each_format_reads_its_output() {
    let mut builder = CsrBuilder::<i64>::new(GraphKind::Directed, 7);
    [(0, 1, 5), (0, 6, 7), (3, 3, 1), (6, 0, 9)].iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph = builder.build_weighted().unwrap();
    let exported = NumberedGraph { graph: &graph, pool: Pool::new(2).unwrap() };
    let folder = Folder::new();
    // The forms of a format are told by their ending.
    let forms = [("gapbs", "a.wsg"), ("gapbs", "a.wel")];
    // WebGraph tells the files of a graph by their endings.
    let file_of = |name| if name == "bvgraph" { "a.graph" } else { "a.out" };
    for (name, file) in ExportFormat::names().map(|name| (name, file_of(name))).chain(forms) {
        let path = folder.path(file);
        let format = ExportFormat::of_name(name).unwrap().for_path(&path);
        let num_edges = match format.is_folder() {
            true => write_folder(&folder.path(name), &Silent, |folder| format.write_folder(&exported, folder)).unwrap(),
            false => write_file(&path, |output| format.write(&exported, output)).unwrap(),
        };
        let path = if format.is_folder() { folder.path(name) } else { path };
        assert_eq!(num_edges, graph.num_edges(), "{format:?}");
        let weights = format.kept().weights.then_some(i64::TYPE);
        let options = SourceOptions { format: Format::of_name(name), weights, ..SourceOptions::default() };
        let read = read_files::<u64, i64>(&[&path], &options).unwrap();
        // Rows of a matrix count from 1.
        let first = u64::from(format.has_matrix_rows());
        let expected = edges_of::<i64>(&graph);
        let pairs: Vec<_> = expected.iter().map(|&(s, t, _)| (first + u64::from(s), first + u64::from(t))).collect();
        let values: Vec<_> = expected.iter().map(|&(.., w)| w).filter(|_| weights.is_some()).collect();
        assert_eq!((read.pairs(), read.weights), (pairs, values), "{format:?}");
    }
}

#[test]
fn content_that_a_format_lacks_is_refused() {
    let graph = one_edge(1_u32);
    let exported = NumberedGraph { graph: &graph, pool: Pool::new(1).unwrap() };
    let mut output = Output::new("out".as_ref(), Vec::new());
    let error = ExportFormat::PAJEK.write_vertices(&exported, &mut output).unwrap_err();
    assert_eq!(error.to_string(), "cannot write vertices: the format pajek does not hold them");
    let error = ExportFormat::GRAPHML.write_vertices(&exported, &mut output).unwrap_err();
    assert_eq!(error.to_string(), "cannot write vertices: the format graphml does not hold them");
    let value: &ValueOfVertex<'_> = &|_| VertexValue::Null;
    let column = ValueColumn { name: "x", kind: ValueKind::Real, vertices: &[], value };
    let error = ExportFormat::MTX.write_values(&exported, &column, &mut output).unwrap_err();
    assert_eq!(error.to_string(), "cannot write values of vertices: the format mtx does not hold them");
}

fn one_edge<W: Weight>(weight: W) -> Csr {
    let mut builder = CsrBuilder::<W>::new(GraphKind::Directed, 2);
    builder.edge(0, 1, weight);
    builder.build_weighted().unwrap()
}

#[test]
fn graph_unfit_for_format_is_refused() {
    let mut bytes = Vec::new();
    let mut output = Output::new("out".as_ref(), &mut bytes);
    let error = write_edge_list(
        &one_edge(1_u32),
        |v, text| {
            text.extend(format!("a {v}").into_bytes());
            Ok::<(), Error>(())
        },
        &mut output,
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "out: the key \"a 0\" does not fit in an edge list: write CSV");
    let mut refused = |graph: &Csr, expected: &str| {
        let error = write_gapbs(graph, SerializedWeights::Write, &mut output).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&one_edge(1.5_f64), "expected weights of type u32 or i64, found f64");
    refused(&one_edge(u32::MAX), "expected whole weights of 31 bits and a sign, found 4294967295");
    let lists = one_edge(1_u32).out_lists().clone();
    refused(&Csr::directed(lists, None).unwrap(), "needs in-lists");
}

/// Regression: an edge list with a comma in its first line was detected as CSV, and read as another graph.
#[test]
fn keys_that_make_a_list_csv_are_refused() {
    let graph = one_edge(7_u32);
    let folder = Folder::new();
    let options = SourceOptions { weights: Some(u32::TYPE), keys: KeyKind::String, ..SourceOptions::default() };
    for mark in [',', ';'] {
        let key = |vertex: VertexId, text: &mut Vec<u8>| {
            text.extend(format!("a{mark}{vertex}").into_bytes());
            Ok::<(), Error>(())
        };
        let path = folder.path("a.txt");
        let error = write_file(&path, |output| write_edge_list(&graph, key, output)).unwrap_err().to_string();
        assert!(error.ends_with(&format!("the key \"a{mark}0\" does not fit in an edge list: write CSV")), "{error}");
        // These endings state the format.
        for name in ["a.el", "a.wel", "a.e"] {
            let path = folder.path(name);
            write_file(&path, |output| write_edge_list(&graph, key, output)).unwrap();
            let read = read_files::<Span, u32>(&[&path], &options).unwrap();
            assert_eq!((read.edges, read.weights), (vec![(format!("a{mark}0"), format!("a{mark}1"))], vec![7]));
        }
    }
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = Folder::new();
    let path = folder.file("kept.txt", "before");
    let failed = write_file::<(), Error>(&path, |output| {
        output.write(b"half")?;
        Err(Error::Parameter("stop".into()))
    });
    assert_eq!(failed.unwrap_err().to_string(), "stop");
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1);
    write_file::<_, Error>(&path, |output| output.write(b"after")).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"after");
    let missing = write_file::<_, Error>(&folder.path("no/such"), |output| output.write(b"x"));
    assert!(missing.unwrap_err().to_string().contains("no/such: cannot create"));
}
