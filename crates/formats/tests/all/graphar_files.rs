//! Folders of GraphAr: as its libraries write them, and as exports do.

use std::path::{Path, PathBuf};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_formats::{
    ExportFormat, ExportedGraph, InputPath, KeyKind, LABELS_PROPERTY, Source, SourceOptions, Span, TYPE_PROPERTY,
    WantedProperties, write_folder,
};
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{Csr, CsrBuilder, GraphKind, VertexId, WeightType};

use crate::made::{Made, columns, edges_of};
use crate::reading::{Folder, Read, read_files};

fn all(keys: KeyKind) -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { keys, edge_properties, vertex_properties, ..SourceOptions::default() }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphar/blog")
}

/// A copy of the fixture, which a test may spoil.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => assert!(std::fs::copy(&path, &target).is_ok()),
        }
    }
}

fn texts(columns: &[PropertyColumn], row: usize) -> Vec<String> {
    columns.iter().map(|column| column.get(row).to_string()).collect()
}

#[test]
fn types_become_labels_and_spaces() {
    let root = fixture();
    let weights = Some(WeightType::F64);
    for path in [root.clone(), root.join("blog.graph.yml")] {
        let inputs = [InputPath::File(path.clone())];
        // Numbers of two types may be equal, so the spaces are part of the keys.
        let keys = SourceOptions::default().usual_keys(&inputs);
        assert_eq!(keys, KeyKind::String);
        let source = Source::open(&inputs, all(keys)).unwrap();
        assert_eq!(source.facts().graph_kind, Some(GraphKind::Directed));
        let read = read_files::<Span, f64>(&[&path], &all(keys)).unwrap();
        let edges: Vec<String> = read.edges.iter().map(|(source, target)| format!("{source} {target}")).collect();
        let knows = ["person:7 person:8", "person:7 person:9", "person:8 person:7", "person:9 person:7"];
        assert_eq!((&edges[..4], &edges[4..]), (&knows.map(String::from)[..], &["person:9 post:1".to_owned()][..]));
        assert_eq!(read.vertices, ["person:7", "person:8", "person:9", "post:0", "post:1"]);
        assert_eq!(texts(&read.properties, 1), ["knows", "1.5", "1970-01-12"]);
        assert_eq!(texts(&read.properties, 4), ["likes", "", ""]);
        assert_eq!(texts(&read.vertex_properties, 2), ["person", "Cid", "[0.5]", ""]);
        assert_eq!(texts(&read.vertex_properties, 4), ["post", "", "", "280"]);
    }
    // Edges without a weight have none to read.
    let error = read_files::<Span, f64>(&[&root], &SourceOptions { weights, ..all(KeyKind::String) }).unwrap_err();
    assert!(error.contains("person_likes_post.edge.yml") && error.contains("the weight"), "{error}");
}

#[test]
fn keys_of_one_type_are_numbers() {
    let folder = Folder::new();
    let root = folder.path("blog");
    copy(&fixture(), &root);
    std::fs::write(
        root.join("blog.graph.yml"),
        "{name: blog, vertices: [person.vertex.yml], edges: [person_knows_person.edge.yml], version: gar/v1}\n",
    )
    .unwrap();
    let options = SourceOptions { weights: Some(WeightType::F64), ..all(KeyKind::Integer) };
    assert_eq!(SourceOptions::default().usual_keys(&[InputPath::File(root.clone())]), KeyKind::Integer);
    let read = read_files::<u64, f64>(&[&root], &options).unwrap();
    assert_eq!((read.pairs(), read.weights), (vec![(7, 8), (7, 9), (8, 7), (9, 7)], vec![0.5, 1.5, 2.5, 3.5]));
}

#[test]
fn spoiled_folders_are_refused() {
    let spoil = |what: &dyn Fn(&Path)| {
        let folder = Folder::new();
        let root = folder.path("blog");
        copy(&fixture(), &root);
        what(&root);
        read_files::<Span, u32>(&[&root], &all(KeyKind::String)).unwrap_err()
    };
    let edit = |root: &Path, file: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(from));
        std::fs::write(root.join(file), text.replace(from, to)).unwrap();
    };
    for path in ["../secret/", "/etc/", "a/../../b", "s3://bucket/"] {
        let error = spoil(&|root| edit(root, "person.vertex.yml", "vertex/person/", path));
        let expected = format!("person.vertex.yml: expected a path below the folder of the graph, found '{path}'");
        assert!(error.contains(&expected), "{error}");
    }
    let error = spoil(&|root| edit(root, "blog.graph.yml", "- post.vertex.yml", "- ../post.vertex.yml"));
    assert!(error.contains("blog.graph.yml: expected a path below the folder"), "{error}");
    let error = spoil(&|root| edit(root, "post.vertex.yml", "parquet", "orc"));
    assert!(error.contains("post.vertex.yml: expected chunks in Parquet or CSV, found 'orc'"), "{error}");
    let error = spoil(&|root| edit(root, "post.vertex.yml", "version: gar/v1", "version: gar/v2"));
    assert!(error.contains("expected the version gar/v1, found 'gar/v2'"), "{error}");
    let error = spoil(&|root| edit(root, "post.vertex.yml", "int64", "string"));
    assert!(error.contains("column 'length': expected string, as the YAML says, found i64"), "{error}");
    let error = spoil(&|root| edit(root, "blog.graph.yml", "vertices:", "vertices: &a [*a]\nmore:"));
    assert!(error.contains("blog.graph.yml: the YAML cannot be read"), "{error}");
    let error = spoil(&|root| std::fs::remove_file(root.join("vertex/person/id/chunk1")).unwrap());
    assert!(error.contains("vertex/person/id/chunk1"), "{error}");
    let error = spoil(&|root| std::fs::write(root.join("vertex/post/vertex_count"), i64::MAX.to_le_bytes()).unwrap());
    assert!(error.contains("expected fewer than 4294967295 vertices"), "{error}");
    let count = 5_i64.to_le_bytes();
    let error = spoil(&|root| std::fs::write(root.join("vertex/post/vertex_count"), count).unwrap());
    assert!(error.contains("chunk1"), "{error}");
    let error = spoil(&|root| std::fs::write(root.join("vertex/post/vertex_count"), 1_i64.to_le_bytes()).unwrap());
    assert!(error.contains("expected 1 rows, as the counts beside the chunks say, found 2"), "{error}");
    let likes = "edge/person_likes_post/unordered_by_source/adj_list/part1/chunk0";
    let knows = "edge/person_knows_person/ordered_by_source/adj_list/part0/chunk0";
    let error = spoil(&|root| assert!(std::fs::copy(root.join(knows), root.join(likes)).is_ok()));
    assert!(error.contains("column '_graphArDstIndex': expected a number below 2, found 2"), "{error}");
    let error = spoil(&|root| assert!(std::fs::copy(root.join("blog.graph.yml"), root.join("b.graph.yml")).is_ok()));
    assert!(error.contains("expected one .graph.yml file in the folder, found several"), "{error}");
}

/// The chunks of the fixture as CSV, as Arrow writes it.
const CSV_CHUNKS: [(&str, &str); 10] = [
    ("vertex/person/id/chunk0", "\"_graphArVertexIndex\",\"id\"\n0,7\n1,8\n"),
    ("vertex/person/id/chunk1", "\"_graphArVertexIndex\",\"id\"\n2,9\n"),
    ("vertex/person/names/chunk0", "\"_graphArVertexIndex\",\"name\"\n0,\"Ann\"\n1,\n"),
    ("vertex/person/names/chunk1", "\"name\"\n\"Cid\"\n"),
    ("vertex/post/length/chunk0", "_graphArVertexIndex,length\n0,140\n1,280\n"),
    (
        "edge/person_knows_person/ordered_by_source/adj_list/part0/chunk0",
        "_graphArSrcIndex,_graphArDstIndex\n0,1\n0,2\n",
    ),
    ("edge/person_knows_person/ordered_by_source/adj_list/part0/chunk1", "_graphArDstIndex,_graphArSrcIndex\n0,1\n"),
    (
        "edge/person_knows_person/ordered_by_source/weight_since/part0/chunk0",
        "weight,since\n0.5,1970-01-11\n1.5,1970-01-12\n",
    ),
    ("edge/person_knows_person/ordered_by_source/weight_since/part0/chunk1", "weight,since\n2.5,\n"),
    ("edge/person_likes_post/unordered_by_source/adj_list/part1/chunk0", "_graphArSrcIndex,_graphArDstIndex\n2,1\n"),
];

/// A copy of the fixture with chunks in CSV, but for those of one part of edges.
fn in_csv(to: &Path) {
    copy(&fixture(), to);
    let lists = "edge/person_knows_person/ordered_by_source";
    let last = [
        ("adj_list/part1/chunk0", "_graphArSrcIndex,_graphArDstIndex\n2,0"),
        ("weight_since/part1/chunk0", "weight,since\n3.5,1970-01-13"),
    ];
    let last = last.map(|(name, text)| (format!("{lists}/{name}"), text));
    let chunks = CSV_CHUNKS.iter().map(|&(name, text)| (name.to_owned(), text)).chain(last);
    chunks.for_each(|(name, text)| std::fs::write(to.join(name), text).unwrap());
    for name in ["person.vertex.yml", "post.vertex.yml", "person_knows_person.edge.yml", "person_likes_post.edge.yml"] {
        let text = std::fs::read_to_string(to.join(name)).unwrap();
        std::fs::write(to.join(name), text.replace("file_type: parquet", "file_type: csv")).unwrap();
    }
}

#[test]
fn chunks_in_csv_are_those_in_parquet() {
    let folder = Folder::new();
    let root = folder.path("blog");
    in_csv(&root);
    let both = |options: &SourceOptions| {
        [fixture(), root.clone()].map(|root| {
            let mut read = read_files::<Span, f64>(&[&root], options).unwrap();
            let rows =
                |columns: &[PropertyColumn], len: usize| (0..len).map(|row| texts(columns, row)).collect::<Vec<_>>();
            let values = (rows(&read.properties, read.edges.len()), rows(&read.vertex_properties, read.vertices.len()));
            read.notes.iter_mut().for_each(|note| *note = note.rsplit('/').next().unwrap().to_owned());
            (read.edges, read.weights, read.vertices, values, read.notes)
        })
    };
    let [mut parquet, csv] = both(&all(KeyKind::String));
    // CSV has no form for lists.
    parquet.3.1.iter_mut().for_each(|row| drop(row.remove(2)));
    parquet.4.push("person.vertex.yml: 'scores' is left out: it holds lists".to_owned());
    assert_eq!(csv, parquet);
    // Without a count of edges, the chunks themselves tell.
    let list = "edge/person_knows_person/ordered_by_source";
    for part in [0, 1] {
        std::fs::remove_file(root.join(format!("{list}/edge_count{part}"))).unwrap();
    }
    let only_knows =
        "{name: blog, vertices: [person.vertex.yml], edges: [person_knows_person.edge.yml], version: gar/v1}\n";
    std::fs::write(root.join("blog.graph.yml"), only_knows).unwrap();
    let options = SourceOptions { weights: Some(WeightType::F64), ..all(KeyKind::Integer) };
    let read = read_files::<u64, f64>(&[&root], &options).unwrap();
    assert_eq!((read.pairs(), read.weights), (vec![(7, 8), (7, 9), (8, 7), (9, 7)], vec![0.5, 1.5, 2.5, 3.5]));
}

#[test]
fn faults_in_csv_chunks_name_file_and_line() {
    for (chunk, text, expected) in [
        ("vertex/person/id/chunk0", "id\n7\nx\n", "vertex/person/id/chunk0:3: column 'id': expected a whole number"),
        ("vertex/person/id/chunk1", "key\n9\n", "vertex/person/id/chunk1: expected a column 'id', found key"),
        ("vertex/person/id/chunk1", "id\n9\n9\n", "expected 1 rows, as the counts beside the chunks say, found 2"),
        ("vertex/post/length/chunk0", "length\n140\n\"280\n", "vertex/post/length/chunk0:3: expected a closing quote"),
        (
            "edge/person_likes_post/unordered_by_source/adj_list/part1/chunk0",
            "_graphArSrcIndex,_graphArDstIndex\n2,2\n",
            "column '_graphArDstIndex': expected a number below 2, found 2",
        ),
    ] {
        let folder = Folder::new();
        let root = folder.path("blog");
        in_csv(&root);
        std::fs::write(root.join(chunk), text).unwrap();
        let error = read_files::<Span, u32>(&[&root], &all(KeyKind::String)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

struct MadeGraph<'a> {
    graph: &'a Csr,
    properties: Made<'a>,
    pool: Pool,
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

fn schema(types: &[(&str, PropertyType)]) -> PropertySchema {
    PropertySchema::new(types.iter().map(|&(name, found)| (name.to_owned(), found))).unwrap()
}

fn graph(graph_kind: GraphKind) -> Csr {
    let mut builder = CsrBuilder::<f64>::new(graph_kind, 40);
    (0..120).for_each(|i: u32| builder.edge(i % 37, (i * i + 3) % 40, f64::from(i) / 4.0));
    builder.build_weighted().unwrap()
}

/// The rows of a read, in an order that does not depend on types.
fn rows(read: &Read<f64>) -> Vec<(String, String, String, Vec<String>)> {
    let row = |row: usize| {
        let (source, target) = read.edges[row].clone();
        (source, target, read.weights[row].to_string(), texts(&read.properties, row))
    };
    let mut rows: Vec<_> = (0..read.edges.len()).map(row).collect();
    rows.sort();
    rows
}

#[test]
fn exported_folder_keeps_labels_types_and_properties() {
    for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
        let graph = graph(graph_kind);
        let edges = schema(&[
            (TYPE_PROPERTY, PropertyType::String),
            ("at", PropertyType::Timestamp),
            ("is", PropertyType::Boolean),
        ]);
        let vertices =
            schema(&[("age", PropertyType::I64), (LABELS_PROPERTY, PropertyType::String), ("on", PropertyType::Date)]);
        let properties = Made::with(&graph, edges, vertices);
        let exported = MadeGraph { graph: &graph, properties, pool: Pool::new(2).unwrap() };
        let folder = Folder::new();
        let root = folder.path("out");
        let written = write_folder(&root, &Silent, |folder| ExportFormat::GRAPHAR.write_folder(&exported, folder));
        assert_eq!(written.unwrap(), anden_graph::Graph::num_edges(&graph));
        let inputs = [InputPath::File(root.clone())];
        assert_eq!(SourceOptions::default().usual_keys(&inputs), KeyKind::String);
        let options = SourceOptions { weights: Some(WeightType::F64), ..all(KeyKind::String) };
        assert_eq!(Source::open(&inputs, options.clone()).unwrap().facts().graph_kind, Some(graph_kind));
        let read = read_files::<Span, f64>(&[&root], &options).unwrap();
        let expected = edges_of::<f64>(&graph);
        let made = columns(&exported.properties.edges, expected.iter().map(|&(.., row)| row));
        let mut expected: Vec<_> = expected
            .iter()
            .enumerate()
            .map(|(row, &(s, t, weight, _))| {
                (format!("v:{s}"), format!("v:{t}"), weight.to_string(), texts(&made, row))
            })
            .collect();
        expected.sort();
        assert_eq!(rows(&read), expected);
        // Vertices stand by type; each has its own properties.
        let made = columns(&exported.properties.vertices, 0..40);
        assert_eq!(read.vertices.len(), 40);
        for (row, key) in read.vertices.iter().enumerate() {
            let vertex: usize = key.trim_start_matches("v:").parse().unwrap();
            assert_eq!(texts(&read.vertex_properties, row), texts(&made, vertex));
        }
        let info = std::fs::read_to_string(root.join("xx.vertex.yml")).unwrap();
        assert!(info.starts_with("type: \"xx\"\nchunk_size: 262144\nprefix: vertex/xx/\n"), "{info}");
        assert!(std::fs::read_dir(root.join("edge")).unwrap().count() > 3);
    }
}

#[test]
fn numbers_that_the_format_lacks_are_refused() {
    let graph = graph(GraphKind::Directed);
    let properties = Made::with(&graph, PropertySchema::EMPTY, schema(&[("big", PropertyType::U64)]));
    let exported = MadeGraph { graph: &graph, properties, pool: Pool::new(1).unwrap() };
    let folder = Folder::new();
    let root = folder.path("out");
    let written = write_folder(&root, &Silent, |folder| ExportFormat::GRAPHAR.write_folder(&exported, folder));
    let error = written.unwrap_err().to_string();
    assert!(error.contains("GraphAr has no unsigned numbers, and 'big' has one of 64 bits"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 0);
}
