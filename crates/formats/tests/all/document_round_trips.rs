//! GEXF, GML, node-link JSON, JSON lines and Pajek: what is written comes back.

use anden_base::parallel::Pool;
use anden_formats::{
    Error, ExportFormat, ExportedGraph, KeyKind, SourceOptions, Span, VertexInput, WantedProperties, write_file,
};
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{Csr, CsrBuilder, Graph, GraphKind, VertexId, Weight};
use proptest::prelude::*;

use crate::made::{Made, columns, edges_of};
use crate::reading::{Folder, Read, read_files, read_once};

/// A graph with properties, and with numbers or texts as keys.
struct MadeGraph<'a> {
    graph: &'a Csr,
    made: &'a Made<'a>,
    kind: KeyKind,
    /// Whether keys have no quotes and line ends.
    is_plain: bool,
    pool: Pool,
}

/// Keys that need escapes in every format but Pajek, which holds no quotes and line ends.
fn name(vertex: VertexId, is_plain: bool) -> String {
    if is_plain { format!("<ü& ';{vertex}>") } else { format!("<ü&\"'{vertex}>\t\r\n]]>\\") }
}

impl MadeGraph<'_> {
    fn key(&self, vertex: VertexId) -> String {
        match self.kind {
            KeyKind::Integer => (3 * u64::from(vertex)).to_string(),
            KeyKind::String => name(vertex, self.is_plain),
        }
    }
}

impl<'a> ExportedGraph for MadeGraph<'a> {
    type Graph = Csr;
    type Properties = Made<'a>;
    type Error = Error;

    fn graph(&self) -> &Csr {
        self.graph
    }

    fn properties(&self) -> &Made<'a> {
        self.made
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn key_kind(&self) -> Result<KeyKind, Error> {
        Ok(self.kind)
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Error> {
        text.extend(self.key(vertex).into_bytes());
        Ok(())
    }

    fn key_bytes(&self) -> u64 {
        0
    }

    fn first_row_key(&self) -> Option<u64> {
        (self.kind == KeyKind::Integer).then_some(0)
    }
}

/// Names that GML accepts as keys.
fn schema() -> PropertySchema {
    let types = PropertyType::ALL.iter().map(|&(property_type, name)| (format!("p_{name}"), property_type));
    PropertySchema::new(types).unwrap()
}

/// The columns as texts, each null as `null`; sorted, because untyped formats tell columns as their values occur.
fn texts(columns: &[PropertyColumn]) -> Vec<Vec<String>> {
    let text = |column: &PropertyColumn| -> Vec<String> {
        // GML has no booleans.
        let text = |value: String| match &value[..] {
            "true" => "1".into(),
            "false" => "0".into(),
            _ => value,
        };
        column.iter().map(|value| if value.is_null() { "null".into() } else { text(value.to_string()) }).collect()
    };
    let mut texts: Vec<_> = columns.iter().map(text).collect();
    // A column of nulls leaves no trace in an untyped document.
    texts.retain(|column| column.iter().any(|text| text != "null"));
    texts.sort_unstable();
    texts
}

fn read<W: Weight>(path: &std::path::Path, kind: KeyKind, weights: Option<Weights>) -> Read<W> {
    let options = SourceOptions {
        keys: kind,
        weights: weights.map(|Weights| W::TYPE),
        edge_properties: WantedProperties::All,
        vertex_properties: WantedProperties::All,
        ..SourceOptions::default()
    };
    let is_of_lines = path.extension().is_some_and(|ending| ending == "jsonl");
    match kind {
        // Lines must be shorter than blocks.
        KeyKind::Integer if is_of_lines => read_once::<u64, W>(&[path], &options, 2).unwrap(),
        KeyKind::String if is_of_lines => read_once::<Span, W>(&[path], &options, 2).unwrap(),
        KeyKind::Integer => read_files::<u64, W>(&[path], &options).unwrap(),
        KeyKind::String => read_files::<Span, W>(&[path], &options).unwrap(),
    }
}

/// Asks for weights.
#[derive(Clone, Copy)]
struct Weights;

fn check<W: Weight>(graph_kind: GraphKind, num_vertices: usize, edges: &[(u32, u32, W)]) {
    let mut builder = CsrBuilder::<W>::new(graph_kind, num_vertices).keep_parallel();
    edges.iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph: Csr = builder.build_weighted().unwrap();
    let expected = edges_of::<W>(&graph);
    let made = Made::with(&graph, schema(), schema());
    let folder = Folder::new();
    let of_edges = columns(&made.edges, expected.iter().map(|edge| edge.3));
    let of_vertices = columns(&made.vertices, 0..num_vertices as u64);
    for kind in [KeyKind::Integer, KeyKind::String] {
        for (format, file) in [
            (ExportFormat::GEXF, "a.gexf"),
            (ExportFormat::GML, "a.gml"),
            (ExportFormat::NODE_LINK, "a.json"),
            (ExportFormat::JSON_LINES, "a.jsonl"),
            (ExportFormat::PAJEK, "a.net"),
        ] {
            // XML 1.0 and Pajek cannot hold every text.
            let is_plain = format == ExportFormat::PAJEK;
            let exported = MadeGraph { graph: &graph, made: &made, kind, is_plain, pool: Pool::new(1).unwrap() };
            let path = folder.path(file);
            let num_edges = write_file(&path, |output| format.write(&exported, output)).unwrap();
            assert_eq!(num_edges, graph.num_edges());
            if format == ExportFormat::JSON_LINES && expected.is_empty() {
                continue;
            }
            // Weights are asked for only where there is an edge with one.
            let found = read::<W>(&path, kind, (!expected.is_empty()).then_some(Weights));
            let key = |vertex: VertexId| exported.key(vertex);
            let pairs: Vec<_> = expected.iter().map(|&(s, t, ..)| (key(s), key(t))).collect();
            assert_eq!(found.edges, pairs, "{file} {kind:?}");
            assert_eq!(found.weights, expected.iter().map(|edge| edge.2).collect::<Vec<_>>(), "{file}");
            if format.kept().edge_properties {
                assert_eq!(texts(&found.properties), texts(&of_edges), "{file}");
            }
            if format == ExportFormat::JSON_LINES {
                continue;
            }
            assert_eq!(found.vertices, (0..num_vertices as VertexId).map(key).collect::<Vec<_>>(), "{file} {kind:?}");
            if format.kept().vertex_properties {
                assert_eq!(texts(&found.vertex_properties), texts(&of_vertices), "{file}");
            }
            if format == ExportFormat::GEXF && !expected.is_empty() {
                assert_eq!((found.properties, found.vertex_properties), (of_edges.clone(), of_vertices.clone()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_comes_back(
        is_directed: bool,
        num_vertices in 1_u32..30,
        ends in prop::collection::vec((any::<u32>(), any::<u32>(), any::<i32>()), 0..60),
    ) {
        let graph_kind = if is_directed { GraphKind::Directed } else { GraphKind::Undirected };
        let ends: Vec<_> = ends.into_iter().map(|(s, t, w)| (s % num_vertices, t % num_vertices, w)).collect();
        let size = num_vertices as usize;
        check::<u32>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, w as u32)).collect::<Vec<_>>());
        check::<f64>(graph_kind, size, &ends.iter().map(|&(s, t, w)| (s, t, f64::from(w) / 7.0)).collect::<Vec<_>>());
    }
}

#[test]
fn infinite_weights_come_back() {
    let edges = [(0, 1, f64::INFINITY), (1, 2, 1e300), (2, 0, 5e-324), (2, 2, -0.5)];
    check::<f64>(GraphKind::Directed, 3, &edges);
    check::<f32>(GraphKind::Directed, 3, &edges.map(|(s, t, w)| (s, t, w as f32)));
    check::<i64>(GraphKind::Directed, 2, &[(0, 1, i64::MIN), (1, 0, i64::MAX)]);
}

#[test]
fn vertices_come_back_from_json_lines() {
    let graph = CsrBuilder::<u32>::new(GraphKind::Directed, 9).build().unwrap();
    let made = Made::with(&graph, schema(), schema());
    let folder = Folder::new();
    let path = folder.path("v.jsonl");
    for kind in [KeyKind::Integer, KeyKind::String] {
        let exported = MadeGraph { graph: &graph, made: &made, kind, is_plain: false, pool: Pool::new(1).unwrap() };
        write_file(&path, |output| ExportFormat::JSON_LINES.write_vertices(&exported, output)).unwrap();
        let options = SourceOptions {
            keys: kind,
            vertices: vec![VertexInput::from(path.clone())],
            vertex_properties: WantedProperties::All,
            ..SourceOptions::default()
        };
        let found = match kind {
            KeyKind::Integer => read_once::<u64, u32>(&[], &options, 2).unwrap(),
            KeyKind::String => read_once::<Span, u32>(&[], &options, 2).unwrap(),
        };
        assert_eq!(found.vertices, (0..9).map(|vertex| exported.key(vertex)).collect::<Vec<_>>());
        assert_eq!(texts(&found.vertex_properties), texts(&columns(&made.vertices, 0..9)));
    }
}

#[test]
fn names_that_a_format_lacks_are_refused() {
    let graph = CsrBuilder::<u32>::new(GraphKind::Directed, 2).build().unwrap();
    let named = |name: &str| PropertySchema::new([(name.to_owned(), PropertyType::String)]).unwrap();
    let refused = |format: ExportFormat, kind: KeyKind, vertices: &str, edges: &str| {
        let made = Made::with(&graph, named(edges), named(vertices));
        let exported = MadeGraph { graph: &graph, made: &made, kind, is_plain: false, pool: Pool::new(1).unwrap() };
        let mut output = anden_formats::Output::new("out".as_ref(), Vec::new());
        format.write(&exported, &mut output).map_err(|error| error.to_string())
    };
    let taken = |name: &str| Err(format!("out: the property '{name}' has the name of a key: rename it"));
    use KeyKind::{Integer, String};
    assert_eq!(refused(ExportFormat::NODE_LINK, Integer, "id", "x"), taken("id"));
    assert_eq!(refused(ExportFormat::JSON_LINES, Integer, "x", "source"), taken("source"));
    assert_eq!(refused(ExportFormat::GML, String, "label", "x"), taken("label"));
    assert_eq!(refused(ExportFormat::GML, Integer, "label", "x"), Ok(0));
    let blank =
        "out: the property \"a b\" is no key of GML, which has letters, digits and '_': rename it, or write GraphML";
    assert_eq!(refused(ExportFormat::GML, Integer, "x", "a b"), Err(blank.to_owned()));
    let quotes = refused(ExportFormat::PAJEK, String, "x", "x").unwrap_err();
    assert!(quotes.ends_with("does not fit in a Pajek network: write GraphML"), "{quotes}");
}
