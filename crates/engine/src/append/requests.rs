//! Requested changes, before their keys are ids.
//!
//! As in a load, each worker numbers its keys, and the tables of the workers are joined into one ascending list of
//! distinct keys. The result does not depend on the number of workers.

use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_formats::{EdgeBlock, FieldKey, Source, SourceFacts, SourceSummary, Span};
use anden_graph::property::{PropertyColumn, PropertySchema};
use anden_graph::{Weight, WeightType};
use anden_snapshots::{GraphOptions, Key, KeyScheme, SnapshotView};
use parking_lot::Mutex;

use super::changes::Changes;
use super::properties::{ValueRows, edge_values, value_rows};
use crate::fitting::{fitting_key, weight_bits};
use crate::load::{Duplicates, InputKey, InputReport, Joined, KeyTable, LoadBudget, VertexKeys, require_accepted};
use crate::{Error, Result};

/// Peak memory of an edge between text and delta: its numbers, its arcs in the lists of both ends, room to sort them,
/// and the effective arcs.
const EDGE_BYTES: u64 = 160;
/// Tables of keys exist twice, and more, while they are joined.
const JOIN_FACTOR: u64 = 3;
/// Edges of a program in one block, so that the text of their keys stays small.
const EDGES_AT_ONCE: usize = 1 << 16;

/// Requested edges and vertices, in input order.
pub(crate) struct Requests {
    /// All distinct keys, ascending or in input order. Dense keys are ids and not listed.
    pub(crate) keys: VertexKeys,
    /// By block; ends are indexes in `keys`.
    pub(crate) blocks: Vec<RequestBlock>,
    /// The vertex properties of the blocks.
    pub(crate) schema: PropertySchema,
    /// The edge properties of the blocks.
    pub(crate) edge_schema: PropertySchema,
    pub(crate) summary: SourceSummary,
    pub(crate) input: InputReport,
    /// Notes for users on the inputs.
    pub(crate) notes: Vec<String>,
}

/// One block of the input.
#[derive(Debug, Default)]
pub(crate) struct RequestBlock {
    sequence: u64,
    worker: usize,
    /// Ends of edges: numbers of the worker, then indexes among all keys, then ids.
    pub(crate) edges: Vec<(u32, u32)>,
    /// The bits of each edge's weight; empty without weights.
    pub(crate) weights: Vec<u64>,
    /// The row of the first edge, if edges have rows; the other rows follow.
    pub(crate) first_row: Option<u64>,
    pub(crate) vertices: Vec<u32>,
    /// By edge property, with a row for each edge; no columns without values.
    pub(crate) edge_columns: Vec<PropertyColumn>,
    /// Vertex property columns with their indexes in the schema, with a row for each of `vertices`.
    pub(crate) properties: Vec<(usize, PropertyColumn)>,
}

/// The state that reading shares with the rest of an append.
#[derive(Clone, Copy)]
pub(crate) struct AppendContext<'a> {
    pub(crate) graph: &'a GraphOptions,
    pub(crate) io_order: bool,
    pub(crate) budget: &'a LoadBudget,
    pub(crate) pool: &'a Pool,
    pub(crate) progress: &'a dyn Progress,
}

/// Reads files.
pub(crate) fn read_source(reading: AppendContext<'_>, source: &mut Source) -> Result<Requests> {
    match reading.graph.keys {
        KeyScheme::Integer => read_keys::<u64>(reading, source),
        KeyScheme::String => read_keys::<Span>(reading, source),
        KeyScheme::Dense => read_keys::<u32>(reading, source),
    }
}

fn read_keys<K: InputKey>(reading: AppendContext<'_>, source: &mut Source) -> Result<Requests> {
    match reading.graph.weight_type {
        // Without weights, the weight type of the parser does not matter.
        None | Some(WeightType::U32) => read_blocks::<K, u32>(reading, source),
        Some(WeightType::I64) => read_blocks::<K, i64>(reading, source),
        Some(WeightType::F32) => read_blocks::<K, f32>(reading, source),
        Some(WeightType::F64) => read_blocks::<K, f64>(reading, source),
    }
}

fn read_blocks<K: InputKey, W: Weight>(reading: AppendContext<'_>, source: &mut Source) -> Result<Requests> {
    let AppendContext { pool, progress, .. } = reading;
    progress.stage("read", source.facts().input_bytes);
    let num_vertices = source.facts().num_vertices.unwrap_or(0);
    let (bytes_read, bytes_told) = (source.bytes_read(), AtomicU64::new(0));
    let collector = Collector::<K>::new(reading);
    let summary = source.for_each_block(pool, |worker, mut block: EdgeBlock<K, W>| -> Result<()> {
        progress.check()?;
        let now = bytes_read.load(Ordering::Relaxed);
        // Workers read the counter in any order, so each reports only bytes beyond the largest count.
        progress.advance(now.saturating_sub(bytes_told.fetch_max(now, Ordering::Relaxed)));
        require_accepted(&block)?;
        let values = RequestValues {
            weights: block.weights.iter().map(|weight| weight.bits()).collect(),
            of_edges: std::mem::take(&mut block.properties),
            of_vertices: std::mem::take(&mut block.vertex_properties).into_iter().enumerate().collect(),
        };
        collector.take(worker, block.sequence, &block, values)
    })?;
    collector.name_below(num_vertices)?;
    collector.finish(summary, source.facts().clone())
}

/// Takes the additions of a program: edges, vertices and properties; `view` has the existing properties.
pub(crate) fn added_by(reading: AppendContext<'_>, changes: &Changes, view: &SnapshotView) -> Result<Requests> {
    let edges: Vec<_> = changes.added.iter().map(|(source, target, _)| (source, target)).collect();
    let weights = changes
        .added
        .iter()
        .map(|(source, target, weight)| weight_bits((source, target), *weight, reading.graph))
        .collect::<Result<Vec<_>>>()?;
    // The check above refuses weights in a graph without them. Such a graph keeps none.
    let weights = if reading.graph.weight_type.is_some() { weights } else { Vec::new() };
    let (schema, of_vertices) = value_rows(&changes.vertex_properties, view.properties().schema())?;
    let (edge_schema, of_edges) = edge_values(changes, view.edge_properties().schema())?;
    let values = GivenValues { schema, of_vertices, edge_schema, of_edges };
    take_keys(reading, &edges, &weights, &changes.added_vertices, values)
}

/// Takes the removals of a program: edges and vertices.
pub(crate) fn removed_by(reading: AppendContext<'_>, changes: &Changes) -> Result<Requests> {
    let edges: Vec<_> = changes.removed.iter().map(|(source, target)| (source, target)).collect();
    take_keys(reading, &edges, &[], &changes.removed_vertices, Default::default())
}

fn take_keys(
    reading: AppendContext<'_>,
    edges: &[(&Key, &Key)],
    weights: &[u64],
    vertices: &[Key],
    values: GivenValues<'_>,
) -> Result<Requests> {
    match reading.graph.keys {
        KeyScheme::Integer => take_as::<u64>(reading, edges, weights, vertices, values),
        KeyScheme::String => take_as::<Span>(reading, edges, weights, vertices, values),
        KeyScheme::Dense => take_as::<u32>(reading, edges, weights, vertices, values),
    }
}

fn take_as<K: InputKey>(
    reading: AppendContext<'_>,
    edges: &[(&Key, &Key)],
    weights: &[u64],
    vertices: &[Key],
    given: GivenValues<'_>,
) -> Result<Requests> {
    let collector = Collector::<K>::new(reading);
    let scheme = reading.graph.keys;
    let mut sequence = 0;
    let mut take = |edges: &[(&Key, &Key)], vertices: &[&Key], values: RequestValues| -> Result<()> {
        reading.progress.check()?;
        let mut block = EdgeBlock::<K, u32> {
            sequence,
            edges: Vec::with_capacity(edges.len()),
            weights: Vec::new(),
            vertices: Vec::with_capacity(vertices.len()),
            properties: Vec::new(),
            vertex_properties: Vec::new(),
            text: Vec::new(),
        };
        for (source, target) in edges {
            let source = key_in_text(source, scheme, &mut block.text)?;
            block.edges.push((source, key_in_text(target, scheme, &mut block.text)?));
        }
        for vertex in vertices {
            block.vertices.push(key_in_text(vertex, scheme, &mut block.text)?);
        }
        sequence += 1;
        // One worker takes all, because a program's changes are in memory already.
        collector.take(0, block.sequence, &block, values)
    };
    for (i, edges) in edges.chunks(EDGES_AT_ONCE).enumerate() {
        let first = i * EDGES_AT_ONCE;
        let values = RequestValues {
            weights: weights.get(first..first + edges.len()).unwrap_or_default().to_vec(),
            of_edges: given.of_edges.iter().map(|column| column.slice(first..first + edges.len())).collect(),
            ..RequestValues::default()
        };
        take(edges, &[], values)?;
    }
    for vertices in vertices.chunks(EDGES_AT_ONCE) {
        take(&[], &vertices.iter().collect::<Vec<_>>(), RequestValues::default())?;
    }
    for rows in given.of_vertices {
        let of_vertices = vec![(rows.place, rows.column)];
        take(&[], &rows.vertices, RequestValues { of_vertices, ..RequestValues::default() })?;
    }
    let summary = SourceSummary { num_edges: edges.len() as u64, ..SourceSummary::default() };
    let facts =
        SourceFacts { vertex_properties: given.schema, edge_properties: given.edge_schema, ..SourceFacts::default() };
    collector.finish(summary, facts)
}

/// A key in the form of a block.
fn key_in_text<K: FieldKey>(key: &Key, scheme: KeyScheme, text: &mut Vec<u8>) -> Result<K> {
    let found = match fitting_key(key, scheme)? {
        Key::Integer(number) => K::from_digits(number),
        Key::String(key) => K::from_owned(key.as_bytes(), 0, text),
    };
    found.ok_or_else(|| Error::invalid_vertex(key, format!("expected {}", K::RANGE)))
}

/// The values of the edges and vertices of a block.
#[derive(Default)]
struct RequestValues {
    weights: Vec<u64>,
    of_edges: Vec<PropertyColumn>,
    of_vertices: Vec<(usize, PropertyColumn)>,
}

/// The properties that a program sets.
#[derive(Default)]
struct GivenValues<'a> {
    schema: PropertySchema,
    of_vertices: Vec<ValueRows<'a>>,
    edge_schema: PropertySchema,
    /// With a row for each added edge.
    of_edges: Vec<PropertyColumn>,
}

/// Collects blocks and their keys from several workers.
struct Collector<'a, K: InputKey> {
    reading: AppendContext<'a>,
    workers: Vec<Mutex<RequestWorker<K::Table>>>,
    key_bytes: AtomicU64,
    num_edges: AtomicU64,
    num_loops: AtomicU64,
}

struct RequestWorker<T> {
    table: T,
    table_bytes: u64,
    blocks: Vec<RequestBlock>,
}

impl<'a, K: InputKey> Collector<'a, K> {
    fn new(reading: AppendContext<'a>) -> Self {
        let worker = |_| {
            // First positions are needed only if ids follow the input.
            Mutex::new(RequestWorker { table: K::Table::new(reading.io_order), table_bytes: 0, blocks: Vec::new() })
        };
        Self {
            reading,
            workers: (0..reading.pool.num_threads()).map(worker).collect(),
            key_bytes: AtomicU64::new(0),
            num_edges: AtomicU64::new(0),
            num_loops: AtomicU64::new(0),
        }
    }

    fn take<W>(&self, worker: usize, sequence: u64, block: &EdgeBlock<K, W>, values: RequestValues) -> Result<()> {
        let mut state = self.workers[worker].lock();
        let RequestWorker { table, table_bytes, blocks } = &mut *state;
        let mut edges = Vec::with_capacity(block.edges.len());
        // The position in the input: a block has far fewer than 2^32 keys.
        let mut position = sequence << 32;
        let mut num_loops = 0;
        table.intern_edges(&block.edges, &block.text, position, |_, source, target| {
            edges.push((source, target));
            num_loops += u64::from(source == target);
        });
        self.num_loops.fetch_add(num_loops, Ordering::Relaxed);
        position += 2 * block.edges.len() as u64;
        let vertices = (position..).zip(&block.vertices);
        let vertices = vertices.map(|(position, &key)| table.intern(key, &block.text, position)).collect();
        let RequestValues { weights, of_edges: edge_columns, of_vertices: properties } = values;
        let columns = properties.iter().map(|(_, column)| column).chain(&edge_columns);
        let column_bytes: usize = columns.map(PropertyColumn::num_bytes).sum();
        blocks.push(RequestBlock {
            sequence,
            worker,
            edges,
            weights,
            first_row: None,
            vertices,
            edge_columns,
            properties,
        });

        let grown = table.num_bytes() as u64 - *table_bytes;
        *table_bytes += grown;
        // Checked while reading, so that a too large append is refused before memory runs out.
        self.check_room(grown + column_bytes as u64, (block.edges.len() + block.vertices.len()) as u64)
    }

    /// Refuses changes that do not fit the memory budget.
    fn check_room(&self, key_bytes: u64, num_edges: u64) -> Result<()> {
        let key_bytes = self.key_bytes.fetch_add(key_bytes, Ordering::Relaxed) + key_bytes;
        let num_edges = self.num_edges.fetch_add(num_edges, Ordering::Relaxed) + num_edges;
        let needed = JOIN_FACTOR * key_bytes + EDGE_BYTES * num_edges;
        self.reading.budget.check("the changes of one snapshot, which must be in memory,", needed)
    }

    /// Names all vertices below `num_vertices`, for an input whose keys are the numbers below it.
    fn name_below(&self, num_vertices: u64) -> Result<()> {
        let mut vertices = Vec::new();
        let mut text = Vec::new();
        for number in 0..num_vertices {
            // In a graph with string keys, the text of the number is the key.
            let key = K::from_digits(number).or_else(|| K::from_owned(number.to_string().as_bytes(), 0, &mut text));
            vertices.extend(key);
        }
        if vertices.is_empty() {
            return Ok(());
        }
        // After all blocks of the input.
        let sequence = u64::from(u32::MAX);
        let (edges, weights, properties, vertex_properties) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let block = EdgeBlock::<K, u32> { sequence, edges, weights, vertices, properties, vertex_properties, text };
        self.take(0, sequence, &block, RequestValues::default())
    }

    /// Joins the tables of all workers.
    fn finish(self, summary: SourceSummary, facts: SourceFacts) -> Result<Requests> {
        let num_loops = self.num_loops.load(Ordering::Relaxed);
        let input = InputReport::new(&facts, &facts.edge_properties, &summary, num_loops, Duplicates::Auto);
        let SourceFacts { vertex_properties: schema, edge_properties: edge_schema, notes, .. } = facts;
        let AppendContext { pool, graph, .. } = self.reading;
        let (mut tables, mut blocks) = (Vec::new(), Vec::new());
        for worker in self.workers {
            let mut worker = worker.into_inner();
            tables.push(worker.table);
            blocks.append(&mut worker.blocks);
        }
        // Workers finish their blocks in any order, and input order decides among parallel edges.
        blocks.sort_unstable_by_key(|block| block.sequence);
        let (keys, places) = K::Table::join(tables, pool)?;
        // Dense keys are ids, and no table has numbered them.
        if graph.keys != KeyScheme::Dense {
            pool.for_each_item(blocks.iter_mut().collect(), |_, block: &mut RequestBlock| {
                let places = &*places[block.worker];
                block.map(|number| places[number as usize]);
            });
        }
        Ok(Requests { keys, blocks, schema, edge_schema, summary, input, notes })
    }
}

impl RequestBlock {
    /// Replaces all ends of edges, and all vertices.
    pub(crate) fn map(&mut self, to: impl Fn(u32) -> VertexId) {
        self.edges.iter_mut().for_each(|(source, target)| (*source, *target) = (to(*source), to(*target)));
        self.vertices.iter_mut().for_each(|vertex| *vertex = to(*vertex));
    }
}
