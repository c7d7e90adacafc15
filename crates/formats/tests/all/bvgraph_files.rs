//! BVGraph: what WebGraph wrote is read, what is written is what WebGraph writes, and damage is refused.

use std::path::Path;

use anden_base::parallel::Pool;
use anden_formats::{
    Error, ExportFormat, ExportedGraph, Format, InputPath, KeyKind, NoProperties, Output, Source, SourceOptions, Span,
    write_file,
};
use anden_graph::{Csr, CsrBuilder, GraphKind, VertexId};

use crate::reading::{Folder, Read, U32, assert_refused, read_files};

/// The files are described beside them.
const ARCS: &str = include_str!("../bvgraph/arcs.txt");
const DEFAULT: [&[u8]; 3] = [
    include_bytes!("../bvgraph/default.graph"),
    include_bytes!("../bvgraph/default.properties"),
    include_bytes!("../bvgraph/default.offsets"),
];
const CODES: [&[u8]; 2] = [include_bytes!("../bvgraph/codes.graph"), include_bytes!("../bvgraph/codes.properties")];

fn arcs() -> Vec<(u64, u64)> {
    let pair = |line: &str| line.split_once(' ').map(|(s, t)| (s.parse().unwrap(), t.parse().unwrap())).unwrap();
    ARCS.lines().skip(1).map(pair).collect()
}

fn files(graph: &[u8], properties: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.file("web.v1.graph", graph);
    folder.file("web.v1.properties", properties);
    folder
}

fn read(path: &Path) -> Result<Read<u32>, String> {
    read_files::<u64, u32>(&[path], &SourceOptions::default())
}

#[test]
fn graphs_of_webgraph_are_read() {
    for [graph, properties] in [[DEFAULT[0], DEFAULT[1]], CODES] {
        let folder = files(graph, properties);
        for name in ["web.v1.graph", "web.v1.properties", "web.v1"] {
            let path = folder.path(name);
            let source = Source::open(&[InputPath::File(path.clone())], SourceOptions::default()).unwrap();
            assert_eq!((source.facts().graph_kind, source.facts().num_edges), (None, Some(1966)), "{name}");
            let found = read(&path).unwrap();
            assert_eq!(found.pairs(), arcs(), "{name}");
            let vertices: Vec<String> = (0..200).map(|vertex: u64| vertex.to_string()).collect();
            assert_eq!(found.vertices, vertices, "{name}");
        }
        let both = [folder.path("web.v1.graph"), folder.path("web.v1.properties")];
        let found = read_files::<u64, u32>(&[&both[0], &both[1]], &SourceOptions::default()).unwrap();
        assert_eq!(found.edges.len(), 1966);
    }
    let folder = files(DEFAULT[0], DEFAULT[1]);
    let options = SourceOptions { keys: KeyKind::String, format: Format::of_name("bvgraph"), ..Default::default() };
    let found = read_files::<Span, u32>(&[&folder.path("web.v1.graph")], &options).unwrap();
    assert_eq!(found.pairs(), arcs());
}

#[test]
fn metis_keeps_its_ending() {
    let folder = Folder::new();
    let metis = folder.file("web.graph", "2 1\n2\n1\n");
    folder.file("web.properties", "graph.web.directed = false\n");
    assert_eq!(read(&metis).unwrap().pairs(), [(1, 2)]);
}

#[test]
fn damaged_files_are_refused() {
    let [graph, properties, _] = DEFAULT;
    let text = std::str::from_utf8(properties).unwrap();
    let refused = |graph: &[u8], text: &str, expected: &str| {
        let folder = files(graph, text.as_bytes());
        assert_refused(read(&folder.path("web.v1.graph")), expected);
    };
    let cut = "web.v1.graph: cannot read the list of vertex 66: the file ends within the list";
    refused(&graph[..300], text, cut);
    let replaced = |from: &str, to: &str| text.replace(from, to);
    refused(
        graph,
        &replaced("nodes=200", "nodes=-1"),
        "web.v1.properties:5: expected a number of nodes of at most 4294967294, found '-1'",
    );
    refused(graph, &replaced("nodes=200\n", ""), "web.v1.properties: expected a line 'nodes=', found none");
    refused(graph, &replaced("=big", "=little"), "web.v1.properties:4: expected the endianness 'big', found 'little'");
    let golomb = "expected OUTDEGREES_, REFERENCES_, BLOCKS_, INTERVALS_ or RESIDUALS_ with UNARY, GAMMA, DELTA or \
        ZETA, found 'RESIDUALS_GOLOMB'";
    let flags = replaced("compressionflags=", "compressionflags=RESIDUALS_GOLOMB");
    refused(graph, &flags, &format!("web.v1.properties:16: {golomb}"));
    refused(graph, &replaced("arcs=1966", "arcs=1967"), "web.v1.graph: the properties promise 1967 arcs, found 1966");
    refused(graph, &replaced("arcs=1966", "arcs=1960"), "web.v1.graph: the properties promise 1960 arcs, found more");
    let long = format!("{text}{}", "#\n".repeat(1 << 19));
    refused(graph, &long, "web.v1.properties: expected properties of at most 1048576 bytes, found more");
    let beyond = replaced("nodes=200", "nodes=150");
    refused(graph, &beyond, "is beyond the 150 vertices");
    let other = replaced(".BVGraph", ".EFGraph");
    let folder = files(graph, other.as_bytes());
    let options = SourceOptions { format: Format::of_name("bvgraph"), ..SourceOptions::default() };
    let unread = read_files::<u64, u32>(&[&folder.path("web.v1.graph")], &options);
    let class = "web.v1.properties:2: expected the graphclass BVGraph, found 'it.unimi.dsi.webgraph.EFGraph'";
    assert_refused(unread, class);
    let folder = files(graph, properties);
    let options = SourceOptions { weights: U32, ..SourceOptions::default() };
    let weighted = read_files::<u64, u32>(&[&folder.path("web.v1.graph")], &options);
    assert_refused(weighted, "the graph has none: leave out --weights and --weight-type");
}

/// A graph whose keys are these numbers, or its ids.
struct Numbered {
    graph: Csr,
    keys: Vec<u64>,
    pool: Pool,
}

impl ExportedGraph for Numbered {
    type Graph = Csr;
    type Properties = NoProperties;
    type Error = Error;

    fn graph(&self) -> &Csr {
        &self.graph
    }

    fn properties(&self) -> &NoProperties {
        &NoProperties
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn key_kind(&self) -> Result<KeyKind, Self::Error> {
        Ok(KeyKind::Integer)
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Self::Error> {
        text.extend_from_slice(self.keys[vertex as usize].to_string().as_bytes());
        Ok(())
    }

    fn key_bytes(&self) -> u64 {
        0
    }

    fn first_row_key(&self) -> Option<u64> {
        Some(1)
    }
}

fn numbered(kind: GraphKind, keys: Vec<u64>, arcs: &[(u64, u64)]) -> Numbered {
    let places: std::collections::HashMap<u64, u32> = keys.iter().copied().zip(0..).collect();
    let id = |key: u64| places[&key];
    let mut builder = CsrBuilder::<u32>::new(kind, keys.len()).keep_parallel();
    arcs.iter().for_each(|&(source, target)| builder.edge(id(source), id(target), 1));
    Numbered { graph: builder.build_weighted().unwrap(), keys, pool: Pool::new(1).unwrap() }
}

#[test]
fn written_files_are_those_of_webgraph() {
    let orders: [Vec<u64>; 2] = [(0..200).collect(), (0..200).rev().collect()];
    for keys in orders {
        let (graph, folder) = (numbered(GraphKind::Directed, keys, &arcs()), Folder::new());
        let path = folder.path("web.v1.graph");
        let num_edges = write_file(&path, |output| ExportFormat::BVGRAPH.write(&graph, output)).unwrap();
        assert_eq!(num_edges, 1966);
        assert_eq!(std::fs::read(&path).unwrap(), DEFAULT[0]);
        assert_eq!(std::fs::read(folder.path("web.v1.offsets")).unwrap(), DEFAULT[2]);
        assert_eq!(read(&path).unwrap().pairs(), arcs());
    }
}

#[test]
fn undirected_edges_stand_at_both_ends() {
    let graph = numbered(GraphKind::Undirected, vec![30, 10, 20], &[(30, 10), (10, 10)]);
    let folder = Folder::new();
    let path = folder.path("a.graph");
    write_file(&path, |output| ExportFormat::BVGRAPH.write(&graph, output)).unwrap();
    // Keys that are no numbers of vertices leave the order of the ids.
    let found = read(&path).unwrap();
    assert_eq!((found.pairs(), found.vertices.len()), (vec![(0, 1), (1, 0), (1, 1)], 3));
}

/// A fault after the lists, such as a failed sync, leaves no file of a new set beside one of an old set.
#[test]
fn files_appear_together() {
    let (graph, folder) = (numbered(GraphKind::Directed, vec![0, 1], &[(0, 1)]), Folder::new());
    let path = folder.path("web.graph");
    let stopped: Result<(), Error> = write_file(&path, |output| {
        ExportFormat::BVGRAPH.write(&graph, output)?;
        Err(Error::Parameter("stopped".into()))
    });
    assert_refused(stopped.map_err(|error| error.to_string()), "stopped");
    let names = || std::fs::read_dir(folder.path("")).unwrap().count();
    assert_eq!(names(), 0);
    write_file(&path, |output| ExportFormat::BVGRAPH.write(&graph, output)).unwrap();
    assert_eq!(names(), 3);
    // An output that is visible already has the other files at once.
    let mut output = Output::new(&folder.path("other.graph"), Vec::new());
    ExportFormat::BVGRAPH.write(&graph, &mut output).unwrap();
    assert_eq!(names(), 5);
}

#[test]
fn graphs_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let written = |graph: &Numbered, name: &str| {
        write_file(&folder.path(name), |output| ExportFormat::BVGRAPH.write(graph, output)).unwrap_err().to_string()
    };
    let parallel = numbered(GraphKind::Directed, vec![0, 1], &[(0, 1), (0, 1)]);
    let expected = "a BVGraph has no parallel edges, and the arc 0 -> 1 is repeated: write Parquet";
    assert!(written(&parallel, "a.graph").ends_with(expected));
    let other_name = written(&parallel, "a.bv");
    assert!(other_name.ends_with("expected a name that ends in .graph, with .properties beside it"), "{other_name}");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 0);
}
