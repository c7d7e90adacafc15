//! Reads small inputs with every number of threads and block size, which must not matter.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use anden_base::parallel::Pool;
use anden_formats::{
    EdgeBlock, Error, FieldKey, InputColumns, InputPath, KeyKind, Source, SourceOptions, SourceSummary, Span,
};
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertySchema};
use anden_graph::{Weight, WeightType};

/// The parsed input in input order, keys as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Read<W> {
    pub edges: Vec<(String, String)>,
    pub weights: Vec<W>,
    pub vertices: Vec<String>,
    pub properties: Vec<PropertyColumn>,
    pub vertex_properties: Vec<PropertyColumn>,
    pub summary: SourceSummary,
    pub columns: InputColumns,
    pub notes: Vec<String>,
}

impl<W> Read<W> {
    /// The edges as numbers.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        let number = |key: &String| key.parse().unwrap();
        self.edges.iter().map(|(source, target)| (number(source), number(target))).collect()
    }
}

/// Keys that can be shown.
pub trait ShownKey: FieldKey {
    fn shown(&self, text: &[u8]) -> String;
}

impl ShownKey for u64 {
    fn shown(&self, _text: &[u8]) -> String {
        self.to_string()
    }
}

impl ShownKey for Span {
    fn shown(&self, text: &[u8]) -> String {
        String::from_utf8(self.of(text).to_vec()).unwrap()
    }
}

/// A folder with files for one test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// The notes without the folder of the files.
pub fn names(folder: &Folder, notes: &[String]) -> Vec<String> {
    let prefix = format!("{}/", folder.path("").display().to_string().trim_end_matches('/'));
    notes.iter().map(|note| note.replace(&prefix, "")).collect()
}

/// A pool that all tests share.
fn pool(threads: usize) -> &'static Pool {
    static POOLS: [OnceLock<Pool>; 4] = [const { OnceLock::new() }; 4];
    POOLS[threads].get_or_init(|| Pool::new(threads).unwrap())
}

fn columns(schema: &PropertySchema) -> Vec<ColumnBuilder> {
    schema.iter().map(|(_, property_type)| ColumnBuilder::new(property_type)).collect()
}

fn append(columns: &mut [ColumnBuilder], block: &[PropertyColumn], num_rows: usize) {
    assert_eq!(columns.len(), block.len());
    for (column, more) in columns.iter_mut().zip(block) {
        assert_eq!(more.len(), num_rows);
        column.append(more).unwrap();
    }
}

/// Reads files once.
pub fn read_once<K: ShownKey, W: Weight>(
    paths: &[&Path],
    options: &SourceOptions,
    threads: usize,
) -> Result<Read<W>, Error> {
    let inputs: Vec<InputPath> = paths.iter().map(|path| InputPath::File(path.to_path_buf())).collect();
    let mut source = Source::open(&inputs, options.clone())?;
    let pool = pool(threads);
    let blocks: Mutex<Vec<EdgeBlock<K, W>>> = Mutex::new(Vec::new());
    let summary = source.for_each_block(pool, |worker, block| {
        assert!(worker < threads);
        blocks.lock().unwrap().push(block);
        Ok::<(), Error>(())
    })?;
    let mut blocks = blocks.into_inner().unwrap();
    blocks.sort_by_key(|block| block.sequence);
    let facts = source.facts();
    let (mut of_edges, mut of_vertices) = (columns(&facts.edge_properties), columns(&facts.vertex_properties));
    let (edges, weights, vertices) = (Vec::new(), Vec::new(), Vec::new());
    let (columns, notes) = (facts.columns.clone(), facts.notes.clone());
    let (properties, vertex_properties) = (Vec::new(), Vec::new());
    let mut read = Read { edges, weights, vertices, properties, vertex_properties, summary, columns, notes };
    for (i, block) in blocks.iter().enumerate() {
        assert_eq!(block.sequence, i as u64);
        let shown = |key: &K| key.shown(&block.text);
        read.edges.extend(block.edges.iter().map(|(source, target)| (shown(source), shown(target))));
        read.vertices.extend(block.vertices.iter().map(shown));
        read.weights.extend(&block.weights);
        append(&mut of_edges, &block.properties, block.edges.len());
        if !block.vertex_properties.is_empty() {
            append(&mut of_vertices, &block.vertex_properties, block.vertices.len());
        }
    }
    read.properties = of_edges.into_iter().map(ColumnBuilder::finish).collect();
    read.vertex_properties = of_vertices.into_iter().map(ColumnBuilder::finish).collect();
    Ok(read)
}

/// Reads files with one and several threads, in large and small blocks. Requires equal answers.
pub fn read_files<K: ShownKey, W: Weight>(paths: &[&Path], options: &SourceOptions) -> Result<Read<W>, String> {
    let first = read_once::<K, W>(paths, options, 1).map_err(|e| e.to_string());
    for (threads, block_bytes) in [(1, 120), (3, 131), (3, 300), (3, 4 << 20)] {
        let options = SourceOptions { block_bytes, ..options.clone() };
        let again = read_once::<K, W>(paths, &options, threads).map_err(|e| e.to_string());
        assert_eq!(first, again, "{threads} threads, blocks of {block_bytes} bytes, {paths:?}");
    }
    first
}

/// Reads one file with integer keys and no weights.
pub fn read(folder: &Folder, name: &str, text: impl AsRef<[u8]>) -> Result<Read<u32>, String> {
    read_files::<u64, u32>(&[&folder.file(name, text)], &SourceOptions::default())
}

/// Reads one file with integer keys and weights.
pub fn read_weighted<W: Weight>(folder: &Folder, name: &str, text: impl AsRef<[u8]>) -> Result<Read<W>, String> {
    let options = SourceOptions { weights: Some(W::TYPE), ..SourceOptions::default() };
    read_files::<u64, W>(&[&folder.file(name, text)], &options)
}

/// Reads one file with string keys.
pub fn read_strings(folder: &Folder, name: &str, text: impl AsRef<[u8]>) -> Result<Read<u32>, String> {
    let options = SourceOptions { keys: KeyKind::String, ..SourceOptions::default() };
    read_files::<Span, u32>(&[&folder.file(name, text)], &options)
}

/// Requires a failure with this message, without the folder.
#[track_caller]
pub fn assert_refused<T: std::fmt::Debug>(result: Result<T, String>, expected: &str) {
    let message = result.unwrap_err();
    assert!(message.ends_with(expected), "expected …{expected}\n   found {message}");
}

/// The weight type of most tests.
pub const U32: Option<WeightType> = Some(WeightType::U32);
