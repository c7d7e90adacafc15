//! The promises of every parser, and of opening a database, for any bytes: no panic, and from a parser one answer for
//! any block size.

#![forbid(unsafe_code)]

mod database;
mod log;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use anden_base::parallel::Pool;
use anden_formats::{
    Error, FieldKey, Format, InputPath, KeyKind, OnError, Source, SourceOptions, Span, WantedProperties, read_gapbs,
};
use anden_graph::WeightType;
use anden_graph::property::PropertyColumn;

pub use database::read_database;
pub use log::read_log;

/// The parsed input, in an order that does not depend on blocks.
#[derive(Debug, PartialEq)]
struct Answer {
    edges: Vec<(Vec<u8>, Vec<u8>)>,
    /// The bits of the weights, because NaN does not equal itself.
    weights: Vec<u64>,
    vertices: Vec<Vec<u8>>,
    /// The text of each value, by column.
    properties: Vec<Vec<String>>,
    vertex_properties: Vec<Vec<String>>,
    num_skipped: u64,
    first_skipped: Option<String>,
}

trait Shown: FieldKey {
    fn shown(&self, text: &[u8]) -> Vec<u8>;
}

impl Shown for u64 {
    fn shown(&self, _text: &[u8]) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

impl Shown for Span {
    fn shown(&self, text: &[u8]) -> Vec<u8> {
        self.of(text).to_vec()
    }
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(1).expect("a pool of one thread starts"))
}

/// Writes the input to a file of this process with this extension.
fn input_file(extension: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("anden-fuzz-{}.{extension}", std::process::id()));
    std::fs::write(&path, bytes).expect("the input can be written");
    path
}

fn read<K: Shown>(path: &Path, options: &SourceOptions) -> Result<Answer, Error> {
    let mut source = Source::open(&[InputPath::File(path.to_owned())], options.clone())?;
    let blocks = Mutex::new(Vec::new());
    let summary = source.for_each_block::<K, f64, Error>(pool(), |_, block| {
        blocks.lock().expect("nothing panics while it holds this").push(block);
        Ok(())
    })?;
    let mut blocks = blocks.into_inner().expect("nothing panicked");
    blocks.sort_by_key(|block| block.sequence);
    let mut answer = Answer {
        edges: Vec::new(),
        weights: Vec::new(),
        vertices: Vec::new(),
        properties: vec![Vec::new(); source.facts().edge_properties.len()],
        vertex_properties: vec![Vec::new(); source.facts().vertex_properties.len()],
        num_skipped: summary.num_skipped,
        first_skipped: summary.first_skipped,
    };
    for block in blocks {
        let shown = |key: &K| key.shown(&block.text);
        assert!(block.weights.is_empty() || block.weights.len() == block.edges.len());
        answer.edges.extend(block.edges.iter().map(|(source, target)| (shown(source), shown(target))));
        answer.weights.extend(block.weights.iter().map(|weight| weight.to_bits()));
        answer.vertices.extend(block.vertices.iter().map(shown));
        push_texts(&mut answer.properties, &block.properties, block.edges.len());
        if !block.vertex_properties.is_empty() {
            push_texts(&mut answer.vertex_properties, &block.vertex_properties, block.vertices.len());
        }
    }
    assert_eq!(summary.num_edges, answer.edges.len() as u64);
    Ok(answer)
}

/// Appends the values of a block's columns. Each column has one row for each edge or vertex.
fn push_texts(texts: &mut [Vec<String>], columns: &[PropertyColumn], num_rows: usize) {
    assert_eq!(texts.len(), columns.len());
    for (texts, column) in texts.iter_mut().zip(columns) {
        assert_eq!(column.len(), num_rows);
        texts.extend(column.iter().map(|value| value.to_string()));
    }
}

/// Reads the input as a file of this extension. Its first byte chooses the options.
pub fn read_text(extension: &str, input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let keys = if choice & 1 == 0 { KeyKind::Integer } else { KeyKind::String };
    let options = SourceOptions {
        weights: (choice & 2 != 0).then_some(WeightType::F64),
        keys,
        on_error: if choice & 4 == 0 { OnError::Stop } else { OnError::Skip },
        edge_properties: if choice & 8 == 0 { WantedProperties::None } else { WantedProperties::All },
        vertex_properties: if choice & 8 == 0 { WantedProperties::None } else { WantedProperties::All },
        trim: choice & 16 != 0,
        comment: (choice & 32 != 0).then_some(b'#'),
        empty_ids: choice & 65 == 65,
        ..SourceOptions::default()
    };
    let path = input_file(extension, bytes);
    let answer = |block_bytes: usize| {
        let options = SourceOptions { block_bytes, ..options.clone() };
        let answer = match keys {
            KeyKind::Integer => read::<u64>(&path, &options),
            KeyKind::String => read::<Span>(&path, &options),
        };
        answer.map_err(|error| error.to_string())
    };
    let is_columnar = matches!(extension, "parquet" | "arrow");
    let (large, small) = (answer(64 << 10), answer(if is_columnar { 4 } else { 64 }));
    // The output of a decoder before its failure depends on the size of the reads, and the longest accepted line on the
    // blocks.
    let depends = |answer: &Result<Answer, String>| matches!(answer, Err(e) if e.contains("cannot read") || e.contains("expected lines of at most"));
    // If a row group or batch is read in parts, later bytes are not read before the rows of earlier ones, so errors may
    // differ.
    if is_columnar && (large.is_err() || small.is_err()) {
        assert!(large.is_err() && small.is_err(), "{large:?} {small:?}");
    } else if !depends(&large) && !depends(&small) {
        assert_eq!(large, small);
    }
}

/// Reads the input as a serialized graph, both as edges and as a whole.
pub fn read_serialized(input: &[u8]) {
    let path = input_file("wsg", input);
    let edges = read::<u64>(&path, &SourceOptions::default());
    let graph = read_gapbs(&path, pool());
    if let (Ok(edges), Ok(graph)) = (edges, graph) {
        assert_eq!(edges.edges.len() as u64, anden_graph::Graph::num_edges(&graph));
    }
    let _ = read::<u64>(&path, &SourceOptions { weights: Some(WeightType::F64), ..SourceOptions::default() });
}

/// Reads a Graphalytics graph with the input as its properties.
pub fn read_properties(input: &[u8]) {
    let path = input_file("properties", input);
    std::fs::write(path.with_extension("e"), "1 2 0.5\n2 3 1\n").expect("the edges can be written");
    let _ = read::<u64>(&path, &SourceOptions::default());
}

/// Reads a BVGraph: the properties, a zero byte, and the bits of the lists.
pub fn read_bvgraph(input: &[u8]) {
    let Some(end) = input.iter().position(|&byte| byte == 0) else { return };
    let (properties, bits) = (&input[..end], &input[end + 1..]);
    // A few bits can state as many arcs as the properties promise, so longer numbers could exceed the memory.
    if properties.split(|byte| !byte.is_ascii_digit()).any(|number| number.len() > 4) {
        return;
    }
    let path = input_file("graph", bits);
    std::fs::write(path.with_extension("properties"), properties).expect("the properties can be written");
    let answer = |block_bytes| {
        let options = SourceOptions { format: Format::of_name("bvgraph"), block_bytes, ..SourceOptions::default() };
        read::<u64>(&path, &options).map_err(|error| error.to_string())
    };
    assert_eq!(answer(64 << 10), answer(64));
}
