//! The Parquet tables of GraphFrames in folders: as pyarrow and Spark write them, and as exports do.

use std::path::{Path, PathBuf};

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_formats::{
    ExportFormat, ExportedGraph, InputPath, KeyKind, OutputFolder, SourceOptions, Span, WantedProperties, write_folder,
};
use anden_graph::{Csr, CsrBuilder, GraphKind, VertexId};

use crate::made::Made;
use crate::reading::{Folder, read_files};

fn all(keys: KeyKind) -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { keys, edge_properties, vertex_properties, ..SourceOptions::default() }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet/graphframes")
}

/// A copy of the fixture, which a test may spoil.
fn copy(folder: &Folder) -> PathBuf {
    let root = folder.path("graph");
    for table in ["edges", "vertices"] {
        std::fs::create_dir_all(root.join(table)).unwrap();
        for entry in std::fs::read_dir(fixture().join(table)).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, root.join(table).join(path.file_name().unwrap())).unwrap();
        }
    }
    root
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(source, target)| ((*source).to_owned(), (*target).to_owned())).collect()
}

const EDGES: [(&str, &str); 3] = [("a", "b"), ("b", "c"), ("c", "a")];

#[test]
fn tables_of_pyarrow_become_a_graph() {
    let root = fixture();
    let options = all(SourceOptions::default().usual_keys(&[InputPath::File(root.clone())]));
    assert_eq!(options.keys, KeyKind::String);
    let read = read_files::<Span, u32>(&[&root], &options).unwrap();
    assert_eq!((read.edges, read.vertices), (owned(&EDGES), ["a", "b", "c"].map(str::to_owned).to_vec()));
    let texts = |row| {
        [&read.properties[0], &read.vertex_properties[0], &read.vertex_properties[1]].map(|c| c.get(row).to_string())
    };
    assert_eq!([0, 1, 2].map(texts), [["friend", "Ann", "34"], ["follow", "Bob", ""], ["", "", "30"]]);
    assert!(read.notes.is_empty(), "{:?}", read.notes);
}

#[test]
fn tables_may_be_files_and_edges_suffice() {
    let folder = Folder::new();
    let root = copy(&folder);
    let part = |table: &str| root.join(table).join("part-00000-5a3c-c000.snappy.parquet");
    std::fs::rename(part("vertices"), root.join("vertices.parquet")).unwrap();
    std::fs::remove_dir_all(root.join("vertices")).unwrap();
    let read = read_files::<Span, u32>(&[&root], &all(KeyKind::String)).unwrap();
    assert_eq!((read.edges, read.vertices.len()), (owned(&EDGES), 3));
    std::fs::remove_file(root.join("vertices.parquet")).unwrap();
    let read = read_files::<Span, u32>(&[&root], &all(KeyKind::String)).unwrap();
    assert_eq!((read.edges, read.vertices.len()), (owned(&EDGES), 0));
}

#[test]
fn spoiled_folders_are_refused() {
    let spoil = |what: &dyn Fn(&Path)| {
        let folder = Folder::new();
        let root = copy(&folder);
        what(&root);
        read_files::<Span, u32>(&[&root], &all(KeyKind::String)).unwrap_err()
    };
    let part = |root: &Path, table: &str| root.join(table).join("part-00000-5a3c-c000.snappy.parquet");
    let error = spoil(&|root| std::fs::remove_dir_all(root.join("edges")).unwrap());
    assert!(error.ends_with("expected 'edges' or 'edges.parquet' beside the vertices, found neither"), "{error}");
    let error = spoil(&|root| std::fs::write(root.join("edges.parquet"), "").unwrap());
    assert!(error.ends_with("expected one of 'edges' and 'edges.parquet', found both"), "{error}");
    let error = spoil(&|root| std::fs::create_dir(root.join("edges/day=1")).unwrap());
    assert!(error.contains("edges/day=1: expected a part in Parquet, found a folder"), "{error}");
    let error = spoil(&|root| std::fs::write(root.join("edges/part.csv"), "").unwrap());
    assert!(error.contains("edges/part.csv: expected parts that end in .parquet, found another file"), "{error}");
    let error = spoil(&|root| std::fs::rename(part(root, "edges"), part(root, "vertices")).unwrap());
    let found = "expected the column 'id', found 'relationship', 'src' and 'dst'";
    assert!(error.contains("vertices/part-00000") && error.contains(found), "{error}");
    let error = spoil(&|root| std::fs::write(part(root, "edges"), "PAR1 cut").unwrap());
    assert!(error.contains("edges/part-00000") && error.contains("expected a Parquet file"), "{error}");
    let error = spoil(&|root| {
        std::fs::remove_dir_all(root.join("vertices")).unwrap();
        std::fs::create_dir(root.join("vertices")).unwrap();
    });
    assert!(error.contains("vertices: expected parts that end in .parquet, found none"), "{error}");
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
        text.extend(format!("v {vertex}").into_bytes());
        Ok(())
    }

    fn key_bytes(&self) -> u64 {
        0
    }

    fn first_row_key(&self) -> Option<u64> {
        None
    }
}

#[test]
fn exported_folder_keeps_vertices_weights_and_properties() {
    let mut builder = CsrBuilder::<f64>::new(GraphKind::Directed, 5);
    [(0, 1, 0.5), (0, 3, 1.5), (3, 3, 2.5)].iter().for_each(|&(s, t, w)| builder.edge(s, t, w));
    let graph = builder.build_weighted().unwrap();
    let exported = MadeGraph { graph: &graph, properties: Made::new(&graph), pool: Pool::new(2).unwrap() };
    let folder = Folder::new();
    let root = folder.path("out");
    let write = || write_folder(&root, &Silent, |folder| ExportFormat::GRAPHFRAMES.write_folder(&exported, folder));
    assert_eq!(write().unwrap(), 3);
    for table in ["vertices", "edges"] {
        assert!(root.join(table).join("part-00000.parquet").is_file());
    }
    let options = SourceOptions { weights: Some(anden_graph::WeightType::F64), ..all(KeyKind::String) };
    let read = read_files::<Span, f64>(&[&root], &options).unwrap();
    assert_eq!(read.edges, owned(&[("v 0", "v 1"), ("v 0", "v 3"), ("v 3", "v 3")]));
    assert_eq!((read.weights, read.vertices.len()), (vec![0.5, 1.5, 2.5], 5));
    let (edges, vertices) = (&exported.properties.edges, &exported.properties.vertices);
    assert_eq!((read.properties.len(), read.vertex_properties.len()), (edges.len(), vertices.len()));
    // A folder with files is never replaced.
    let error = write().unwrap_err().to_string();
    assert!(error.ends_with("expected a new or empty folder, found one with files"), "{error}");
    // An export that fails on the way leaves nothing.
    let failing = |folder: &OutputFolder<'_>| -> Result<u64, anden_formats::Error> {
        ExportFormat::GRAPHFRAMES.write_folder(&exported, folder)?;
        Err(anden_base::Error::Cancelled.into())
    };
    write_folder(&folder.path("cut"), &Silent, failing).unwrap_err();
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1);
}
