//! Arrow IPC: tables and adjacency lists as pyarrow and Polars write them, and as exports do.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_formats::{
    ExportFormat, ExportedGraph, InputPath, KeyKind, OnError, Source, SourceOptions, Span, WantedProperties, write_file,
};
use anden_graph::property::{PropertySchema, PropertyType};
use anden_graph::{Csr, CsrBuilder, GraphKind, VertexId, WeightType};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;

use crate::made::{Made, columns, edges_of};
use crate::reading::{Folder, Read, read_files};

fn all(keys: KeyKind, weights: WeightType) -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { keys, weights: Some(weights), edge_properties, vertex_properties, ..SourceOptions::default() }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrow").join(name)
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(source, target)| ((*source).to_owned(), (*target).to_owned())).collect()
}

#[test]
fn tables_of_other_libraries_become_edges() {
    let long = "bcdefghijklmnop";
    let edges = owned(&[("a", long), ("a", "c"), (long, "c"), ("c", "a")]);
    for name in ["lz4.feather", "zstd.arrow", "stream.arrows", "polars.arrow", "dictionary.arrow"] {
        let read = read_files::<Span, f32>(&[&fixture(name)], &all(KeyKind::String, WeightType::F32)).unwrap();
        assert_eq!((&read.edges, &read.weights[..]), (&edges, &[0.5, 1.5, 2.5, 3.5][..]), "{name}");
        let kinds: Vec<String> = read.properties[0].iter().map(|value| value.to_string()).collect();
        assert_eq!(kinds, ["x", "", "a text of more than twelve bytes", "x"], "{name}");
        assert!(read.notes.is_empty() && read.vertices.is_empty(), "{name}: {:?}", read.notes);
    }
}

/// The content tells the format; a compressed file is copied first.
#[test]
fn content_tells_files_under_other_names() {
    let folder = Folder::new();
    for (from, to) in [("polars.arrow", "table"), ("stream.arrows", "rows.dat")] {
        let path = folder.file(to, std::fs::read(fixture(from)).unwrap());
        let read = read_files::<Span, f32>(&[&path], &all(KeyKind::String, WeightType::F32)).unwrap();
        assert_eq!(read.edges.len(), 4);
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &std::fs::read(fixture("lz4.feather")).unwrap()).unwrap();
    let path = folder.file("edges.arrow.gz", packed.finish().unwrap());
    let read = read_files::<Span, f32>(&[&path], &all(KeyKind::String, WeightType::F32)).unwrap();
    assert_eq!(read.edges.len(), 4);
    let mut options = all(KeyKind::String, WeightType::F32);
    options.scratch_limit = Some(10);
    let error = read_files::<Span, f32>(&[&fixture("lz4.feather")], &options).unwrap_err();
    assert!(error.contains("needs more than 10 B of scratch space"), "{error}");
}

#[test]
fn lists_of_pyarrow_become_a_graph() {
    let path = fixture("lists.arrow");
    let inputs = [InputPath::File(path.clone())];
    let source = Source::open(&inputs, all(KeyKind::Integer, WeightType::U32)).unwrap();
    // The file does not say whether the graph is directed.
    assert_eq!((source.facts().graph_kind, source.facts().weight_type), (None, Some(WeightType::U32)));
    assert_eq!(SourceOptions::default().usual_keys(&inputs), KeyKind::Integer);
    let read = read_files::<u64, u32>(&[&path], &all(KeyKind::Integer, WeightType::U32)).unwrap();
    assert_eq!(read.pairs(), [(10, 20), (10, 30), (20, 40), (40, 10), (40, 30)]);
    assert_eq!(
        (&read.weights[..], &read.vertices[..]),
        (&[1, 2, 3, 4, 5][..], &["10", "20", "30", "40"].map(String::from)[..])
    );
    let names: Vec<String> = read.vertex_properties[0].iter().map(|value| value.to_string()).collect();
    assert_eq!(names, ["Ann", "", "Cid", "Dan"]);
    // Without weights, the member is a property, as a column of other tables is.
    let options = SourceOptions { weights: None, ..all(KeyKind::Integer, WeightType::U32) };
    let read = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!((read.properties.len(), read.weights.len()), (1, 0));
}

struct MadeGraph<'a> {
    graph: &'a Csr,
    properties: Made<'a>,
    keys: KeyKind,
    pool: Pool,
}

impl<'a> MadeGraph<'a> {
    fn new(graph: &'a Csr, properties: Made<'a>, keys: KeyKind) -> Self {
        Self { graph, properties, keys, pool: Pool::new(2).unwrap() }
    }
}

impl<'a> ExportedGraph for MadeGraph<'a> {
    type Graph = Csr;
    type Properties = Made<'a>;
    type Error = anden_formats::Error;

    fn graph(&self) -> &Csr {
        self.graph
    }

    fn properties(&self) -> &Made<'a> {
        &self.properties
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn key_kind(&self) -> Result<KeyKind, Self::Error> {
        Ok(self.keys)
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Self::Error> {
        let key = if self.keys == KeyKind::String { format!("v {vertex}") } else { (vertex * 3).to_string() };
        text.extend(key.into_bytes());
        Ok(())
    }

    fn key_bytes(&self) -> u64 {
        0
    }

    fn first_row_key(&self) -> Option<u64> {
        None
    }
}

fn graph(graph_kind: GraphKind) -> Csr {
    let mut builder = CsrBuilder::<f64>::new(graph_kind, 70);
    let mut edge = |source, target, weight| builder.edge(source, target, weight);
    (0..60).for_each(|i| edge(i, (i * i + 7) % 64, f64::from(i) / 2.0));
    (1..50).for_each(|i| edge(3, 10 + i, f64::from(i)));
    edge(9, 9, -1.5);
    builder.build_weighted().unwrap()
}

fn write(folder: &Folder, exported: &MadeGraph<'_>) -> PathBuf {
    let path = folder.path("graph.arrow");
    let num_edges = write_file(&path, |output| ExportFormat::ARROW.write(exported, output)).unwrap();
    assert_eq!(num_edges, anden_graph::Graph::num_edges(exported.graph));
    path
}

#[test]
fn exported_lists_keep_keys_weights_and_properties() {
    for (graph_kind, keys) in [(GraphKind::Directed, KeyKind::String), (GraphKind::Undirected, KeyKind::Integer)] {
        let graph = graph(graph_kind);
        let exported = MadeGraph::new(&graph, Made::new(&graph), keys);
        let folder = Folder::new();
        let path = write(&folder, &exported);
        let inputs = [InputPath::File(path.clone())];
        assert_eq!(SourceOptions::default().usual_keys(&inputs), keys);
        let options = all(keys, WeightType::F64);
        let source = Source::open(&inputs, options.clone()).unwrap();
        assert_eq!((source.facts().graph_kind, source.facts().weight_type), (Some(graph_kind), Some(WeightType::F64)));
        let read: Read<f64> = match keys {
            KeyKind::String => read_files::<Span, f64>(&[&path], &options).unwrap(),
            KeyKind::Integer => read_files::<u64, f64>(&[&path], &options).unwrap(),
        };
        let key = |vertex: VertexId| {
            let mut text = Vec::new();
            exported.push_key(vertex, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let edges = edges_of::<f64>(&graph);
        let pairs: Vec<_> = edges.iter().map(|&(source, target, ..)| (key(source), key(target))).collect();
        let weights: Vec<f64> = edges.iter().map(|&(.., weight, _)| weight).collect();
        assert_eq!((&read.edges, &read.weights), (&pairs, &weights));
        assert_eq!(read.vertices, (0..70).map(key).collect::<Vec<_>>());
        assert_eq!(read.properties, columns(&exported.properties.edges, edges.iter().map(|&(.., row)| row)));
        assert_eq!(read.vertex_properties, columns(&exported.properties.vertices, 0..70));
    }
}

/// Arrow's own reader finds one batch whose buffers are those of a CSR.
#[test]
fn exported_lists_are_the_buffers_of_a_csr() {
    let mut builder = CsrBuilder::<f64>::new(GraphKind::Undirected, 4);
    [(0, 1, 0.5), (0, 3, 1.5), (3, 3, 2.5)].iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph = builder.build_weighted().unwrap();
    let since = PropertySchema::new([("since".to_owned(), PropertyType::I64)]).unwrap();
    let exported = MadeGraph::new(&graph, Made::with(&graph, since, PropertySchema::EMPTY), KeyKind::Integer);
    let folder = Folder::new();
    let reader = FileReader::try_new(File::open(write(&folder, &exported)).unwrap(), None).unwrap();
    assert_eq!((reader.num_batches(), &reader.schema().metadata()["directed"][..]), (1, "false"));
    let batch: RecordBatch = reader.into_iter().next().unwrap().unwrap();
    assert_eq!(batch.schema().fields().iter().map(|field| field.name()).collect::<Vec<_>>(), ["id", "arcs"]);
    let lists = batch.column(1).as_list::<i32>();
    let arcs = lists.values().as_struct();
    assert_eq!(&lists.offsets()[..], [0, 2, 3, 3, 5]);
    assert_eq!(arcs.column_by_name("index").unwrap().as_primitive::<Int32Type>().values()[..], [1, 3, 0, 0, 3]);
    let weights = arcs.column_by_name("weight").unwrap().as_primitive::<Float64Type>();
    assert_eq!(weights.values()[..], [0.5, 1.5, 0.5, 1.5, 2.5]);
    assert_eq!(arcs.column_by_name("since").unwrap().len(), 5);
}

/// A copy of the fixture of lists with one change to its rows.
fn changed(folder: &Folder, change: impl Fn(RecordBatch) -> RecordBatch) -> PathBuf {
    let mut reader = FileReader::try_new(File::open(fixture("lists.arrow")).unwrap(), None).unwrap();
    let batches: Vec<RecordBatch> = reader.by_ref().map(|batch| change(batch.unwrap())).collect();
    let path = folder.path("changed.arrow");
    let mut writer = FileWriter::try_new(File::create(&path).unwrap(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    path
}

#[test]
fn faulty_lists_are_refused() {
    let folder = Folder::new();
    let refused = |path: &Path, expected: &str| {
        let error = read_files::<u64, u32>(&[path], &all(KeyKind::Integer, WeightType::U32)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    let path = changed(&folder, |batch| batch.project(&[1, 2]).unwrap());
    refused(&path, "expected the column 'id' beside 'arcs', found 'name' and 'arcs'");
    let path = changed(&folder, |batch| {
        let mut columns = batch.columns().to_vec();
        columns[0] = columns[1].clone();
        let names = ["id", "name", "arcs"].into_iter().zip(columns);
        RecordBatch::try_from_iter_with_nullable(names.map(|(name, column)| (name, column, true))).unwrap()
    });
    refused(&path, "expected a vertex, an integer from 0 to");
    // The first batch alone has three rows, and refers to the fourth.
    let path = changed(&folder, |batch| if batch.num_rows() == 1 { batch.slice(0, 0) } else { batch });
    refused(&path, "expected an index below 3, found 3");
    let path = changed(&folder, |batch| {
        let directed: HashMap<_, _> = [("directed".to_owned(), "false".to_owned())].into();
        let schema = batch.schema().as_ref().clone().with_metadata(directed);
        batch.with_schema(schema.into()).unwrap()
    });
    refused(&path, "not every edge stands in the lists of both its ends");
    let whole = std::fs::read(fixture("lists.arrow")).unwrap();
    refused(&folder.file("cut.arrow", &whole[..whole.len() - 20]), "damaged or unknown Arrow file: expected a footer");
    refused(&folder.file("empty.arrow", "ARROW1\0\0"), "damaged or unknown Arrow file: expected a footer");
    refused(&folder.file("text.arrow", "1 2\n"), "expected an Arrow IPC file or stream");
}

/// A vertex without a key is skipped with its arcs and their properties, if the caller says so.
#[test]
fn faulty_arcs_are_skipped_on_demand() {
    let folder = Folder::new();
    let path = changed(&folder, |batch| {
        let ids = batch.column(0).as_primitive::<UInt64Type>();
        let ids: UInt64Array = ids.iter().map(|id| id.filter(|&id| id != 20)).collect();
        let columns: [ArrayRef; 2] = [Arc::new(ids), batch.column(2).clone()];
        let names = ["id", "arcs"].into_iter().zip(columns);
        RecordBatch::try_from_iter_with_nullable(names.map(|(name, column)| (name, column, true))).unwrap()
    });
    let options = all(KeyKind::Integer, WeightType::U32);
    let options = SourceOptions { on_error: OnError::Skip, weights: None, ..options };
    let read = read_files::<u64, u32>(&[&path], &options).unwrap();
    assert_eq!((read.pairs(), read.vertices.len()), (vec![(10, 30), (40, 10), (40, 30)], 3));
    let weights: Vec<String> = read.properties[0].iter().map(|value| value.to_string()).collect();
    assert_eq!((weights, read.summary.num_skipped), (["2", "4", "5"].map(String::from).to_vec(), 3));
}

#[test]
fn vertices_are_read_from_tables() {
    let options =
        SourceOptions { vertices: vec![fixture("lists.arrow").into()], ..all(KeyKind::Integer, WeightType::U32) };
    let folder = Folder::new();
    let edges = folder.file("edges.csv", "source,target,weight\n10,20,5\n");
    let read = read_files::<u64, u32>(&[&edges], &options).unwrap();
    assert_eq!((read.vertices.len(), read.vertex_properties.len(), read.edges.len()), (4, 1, 1));
}
