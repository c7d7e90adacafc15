//! Properties of lists in exports of Arrow and Parquet, as Arrow's own readers and ours find them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_formats::{
    ExportFormat, ExportedGraph, InputPath, KeyKind, Source, SourceOptions, Span, WantedProperties, write_file,
    write_folder, write_parquet_edges, write_parquet_vertices,
};
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use anden_graph::{Csr, CsrBuilder, Graph, GraphKind, VertexId, WeightType};
use arrow_array::builder::{FixedSizeListBuilder, Int32Builder, ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::made::{Made, columns, edges_of};
use crate::reading::{Folder, read_files};

struct MadeGraph<'a> {
    graph: &'a Csr,
    properties: Made<'a>,
    pool: Pool,
}

impl<'a> MadeGraph<'a> {
    fn new(graph: &'a Csr, edges: PropertySchema, vertices: PropertySchema) -> Self {
        Self { graph, properties: Made::with(graph, edges, vertices), pool: Pool::new(2).unwrap() }
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
        Ok(KeyKind::String)
    }

    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Self::Error> {
        text.extend(format!("v:{vertex}").into_bytes());
        Ok(())
    }

    fn key_bytes(&self) -> u64 {
        0
    }

    fn first_row_key(&self) -> Option<u64> {
        None
    }
}

/// All types of lists but those without a place in a format.
fn lists(prefix: &str, without: &[&str]) -> PropertySchema {
    let names = PropertyType::ALL.iter().map(|(_, name)| format!("{name}[]"));
    let found = names.filter(|name| !without.contains(&&name[..]));
    let found = found.filter_map(|name| Some((format!("{prefix} {name}"), PropertyType::of_name(&name)?)));
    PropertySchema::new(found).unwrap()
}

fn graph(graph_kind: GraphKind) -> Csr {
    let mut builder = CsrBuilder::<f64>::new(graph_kind, 40);
    (0..120).for_each(|i: u32| builder.edge(i % 37, (i * i + 3) % 40, f64::from(i) / 4.0));
    builder.build_weighted().unwrap()
}

fn all() -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    let (keys, weights) = (KeyKind::String, Some(WeightType::F64));
    SourceOptions { keys, weights, edge_properties, vertex_properties, ..SourceOptions::default() }
}

/// The rows of a Parquet file.
fn parquet_rows(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    concat_batches(&schema, &reader.map(Result::unwrap).collect::<Vec<_>>()).unwrap()
}

/// Requires lists of these types and values in a table.
fn check_columns(rows: &RecordBatch, schema: &PropertySchema, expected: &[PropertyColumn], place: &str) {
    for ((name, property_type), expected) in schema.iter().zip(expected) {
        let array = rows.column_by_name(name).unwrap();
        assert!(array.data_type().is_list(), "{place}: {name} is {}", array.data_type());
        let array = cast(array, &property_type.arrow_type()).unwrap();
        assert_eq!(PropertyColumn::from_array(array).unwrap(), *expected, "{place}: {name}");
        assert!(expected.num_nulls() > 0 && expected.iter().any(|value| value == PropertyValue::String("[]")));
    }
}

/// Requires properties of these types and values in what is read. There may be others.
fn check_read(path: &Path, options: &SourceOptions, of_edges: Wanted<'_>, of_vertices: Wanted<'_>) {
    let source = Source::open(&[InputPath::File(path.to_owned())], options.clone()).unwrap();
    let read = read_files::<Span, f64>(&[path], options).unwrap();
    let facts = source.facts();
    for ((schema, columns), found, values) in [
        (of_edges, &facts.edge_properties, &read.properties),
        (of_vertices, &facts.vertex_properties, &read.vertex_properties),
    ] {
        for ((name, property_type), expected) in schema.iter().zip(columns) {
            let place = found.find(name).unwrap();
            assert_eq!(found.get(place).unwrap().1, property_type, "{name}");
            assert_eq!(values[place], *expected, "{name}");
        }
    }
}

type Wanted<'a> = (&'a PropertySchema, &'a [PropertyColumn]);

#[test]
fn lists_are_columns_of_lists_in_parquet() {
    let graph = graph(GraphKind::Directed);
    let exported = MadeGraph::new(&graph, lists("edge", &[]), lists("vertex", &[]));
    let (made, pool, folder) = (&exported.properties, &exported.pool, Folder::new());
    let key = |vertex, text: &mut Vec<u8>| exported.push_key(vertex, text);
    let (edges, vertices) = (folder.path("edges.parquet"), folder.path("vertices.parquet"));
    write_file(&edges, |output| write_parquet_edges(&graph, KeyKind::String, key, made, pool, output)).unwrap();
    write_file(&vertices, |output| write_parquet_vertices(&graph, KeyKind::String, key, made, pool, output)).unwrap();
    let root = folder.path("frames");
    write_folder(&root, &Silent, |folder| ExportFormat::GRAPHFRAMES.write_folder(&exported, folder)).unwrap();
    let of_edges = columns(&made.edges, edges_of::<f64>(&graph).iter().map(|&(.., row)| row));
    let of_vertices = columns(&made.vertices, 0..40);
    let options = SourceOptions { vertices: vec![vertices.clone().into()], ..all() };
    check_read(&edges, &options, (&made.edges, &of_edges), (&made.vertices, &of_vertices));
    check_read(&root, &all(), (&made.edges, &of_edges), (&made.vertices, &of_vertices));
    for path in [edges, root.join("edges/part-00000.parquet")] {
        check_columns(&parquet_rows(&path), &made.edges, &of_edges, "edges");
    }
    for path in [vertices, root.join("vertices/part-00000.parquet")] {
        check_columns(&parquet_rows(&path), &made.vertices, &of_vertices, "vertices");
        let file = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        let paths: Vec<String> = file.parquet_schema().columns().iter().map(|leaf| leaf.path().string()).collect();
        // The specification names the levels of a list so.
        assert!(paths.contains(&"vertex string[].list.element".to_owned()), "{paths:?}");
    }
}

#[test]
fn lists_keep_their_types_in_arrow() {
    for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
        let graph = graph(graph_kind);
        let exported = MadeGraph::new(&graph, lists("edge", &[]), lists("vertex", &[]));
        let (made, folder) = (&exported.properties, Folder::new());
        let path = folder.path("graph.arrow");
        write_file(&path, |output| ExportFormat::ARROW.write(&exported, output)).unwrap();
        let mut reader = FileReader::try_new(File::open(&path).unwrap(), None).unwrap();
        let batch = reader.next().unwrap().unwrap();
        let of_vertices = columns(&made.vertices, 0..40);
        check_columns(&batch, &made.vertices, &of_vertices, "vertices");
        let options = all();
        let source = Source::open(&[InputPath::File(path.clone())], options.clone()).unwrap();
        let types = |schema: &PropertySchema| {
            let mut found: Vec<_> = schema.iter().map(|(name, found)| (name.to_owned(), found)).collect();
            found.sort();
            found
        };
        assert_eq!(types(&source.facts().edge_properties), types(&made.edges));
        assert_eq!(types(&source.facts().vertex_properties), types(&made.vertices));
        let read = read_files::<Span, f64>(&[&path], &options).unwrap();
        let edges = edges_of::<f64>(&graph);
        assert_eq!(read.properties, columns(&made.edges, edges.iter().map(|&(.., row)| row)));
        assert_eq!(read.vertex_properties, of_vertices);
    }
}

/// Lists with narrow offsets and of a fixed size, as other libraries write them, in tables of edges.
#[test]
fn other_lists_of_arrow_files_are_read() {
    let mut narrow = ListBuilder::new(StringBuilder::new());
    let mut fixed = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    for row in 0..50 {
        (0..row % 3).for_each(|item| narrow.values().append_value("x".repeat(item)));
        narrow.append(row % 7 != 6);
        fixed.values().append_slice(&[row as i32, -1]);
        fixed.append(row % 5 != 4);
    }
    let ends: ArrayRef = Arc::new(Int64Array::from_iter_values(0..50));
    let columns: [(&str, ArrayRef); 4] = [
        ("source", Arc::clone(&ends)),
        ("target", ends),
        ("names", Arc::new(narrow.finish())),
        ("pairs", Arc::new(fixed.finish())),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let folder = Folder::new();
    let path = folder.path("edges.arrow");
    let mut writer = FileWriter::try_new(File::create(&path).unwrap(), &batch.schema()).unwrap();
    // The second batch begins within the first columns, and has no whole bytes of validity.
    [batch.clone(), batch.slice(13, 29)].iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let options = SourceOptions { edge_properties: WantedProperties::All, ..SourceOptions::default() };
    let read = read_files::<u64, u32>(&[&path], &options).unwrap();
    let text = |column: usize, row| read.properties[column].get(row).to_string();
    assert_eq!((read.edges.len(), text(0, 5), text(1, 5)), (79, r#"["","x"]"#.to_owned(), "[5,-1]".to_owned()));
    assert_eq!((text(0, 3), text(0, 6), text(1, 4)), ("[]".to_owned(), String::new(), String::new()));
    for row in 0..29 {
        assert_eq!((text(0, 50 + row), text(1, 50 + row)), (text(0, 13 + row), text(1, 13 + row)));
    }
}

#[test]
fn lists_have_a_cardinality_in_graphar() {
    let graph = graph(GraphKind::Directed);
    // Numbers of `u64` lists of this graph need 64 bits.
    let exported = MadeGraph::new(&graph, lists("edge", &["u64[]"]), lists("vertex", &["u64[]"]));
    let (made, folder) = (&exported.properties, Folder::new());
    let root = folder.path("out");
    let write = |exported: &MadeGraph<'_>, root: &Path| {
        write_folder(root, &Silent, |folder| ExportFormat::GRAPHAR.write_folder(exported, folder))
    };
    assert_eq!(write(&exported, &root).unwrap(), graph.num_edges());
    let vertices = parquet_rows(&root.join("vertex/vertex/properties/chunk0"));
    let of_vertices = columns(&made.vertices, 0..40);
    check_columns(&vertices, &made.vertices, &of_vertices, "vertices");
    let of_lists = lists("edge", &["boolean[]", "u64[]", "date[]", "timestamp[]"]);
    let of_edges = columns(&of_lists, edges_of::<f64>(&graph).iter().map(|&(.., row)| row));
    check_read(&root, &all(), (&of_lists, &of_edges), (&made.vertices, &of_vertices));
    let edges = parquet_rows(&root.join("edge/vertex_edge_vertex/ordered_by_source/properties/part0/chunk0"));
    let of_edges = columns(&made.edges, edges_of::<f64>(&graph).iter().map(|&(.., row)| row));
    for ((name, property_type), expected) in made.edges.iter().zip(&of_edges) {
        // The library of the format has no lists of other types for edges.
        let is_list = ["i64[]", "f32[]", "f64[]", "string[]"].contains(&property_type.name());
        let array = edges.column_by_name(name).unwrap();
        assert_eq!(array.data_type().is_list(), is_list, "{name}");
        let to = if is_list { property_type } else { PropertyType::String };
        assert_eq!(PropertyColumn::from_array(cast(array, &to.arrow_type()).unwrap()).unwrap(), *expected, "{name}");
    }
    let info = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let of_vertices = info("vertex.vertex.yml");
    for (name, data_type) in [("boolean[]", "bool"), ("string[]", "string"), ("timestamp[]", "timestamp")] {
        let stated = format!("name: \"vertex {name}\"\n        data_type: {data_type}\n");
        assert!(of_vertices.contains(&stated), "{of_vertices}");
    }
    assert_eq!(of_vertices.matches("        cardinality: list\n").count(), made.vertices.len());
    let of_edges = info("vertex_edge_vertex.edge.yml");
    for (name, data_type) in [("boolean[]", "string"), ("f32[]", "list<float>"), ("string[]", "list<string>")] {
        assert!(of_edges.contains(&format!("\"edge {name}\"\n        data_type: {data_type}\n")), "{of_edges}");
    }
    assert!(!of_edges.contains("cardinality"));
    let unsigned = PropertySchema::new([("big".to_owned(), PropertyType::of_name("u64[]").unwrap())]).unwrap();
    let exported = MadeGraph::new(&graph, PropertySchema::EMPTY, unsigned);
    let error = write(&exported, &folder.path("big")).unwrap_err().to_string();
    assert!(error.contains("GraphAr has no unsigned numbers, and 'big' has one of 64 bits"), "{error}");
}
