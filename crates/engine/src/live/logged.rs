//! The payload of a WAL record: the changes of a commit group, by id.
//!
//! A payload is a sequence of parts ([`LoggedOp`]): a byte for the kind, a number of entries, the entries. Keys appear
//! only for new vertices, so recovery looks nothing up. Edges appear as the user named them: their arcs follow from the
//! options of the graph.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::property::{PropertySchema, PropertyType, PropertyValue};
use anden_graph::{GraphKind, WeightType};
use anden_memtable::Op;
use anden_snapshots::{ArcData, GraphOptions, Key, KeyScheme};

use super::apply::{BatchChanges, BatchStep, EdgeUpdate};
use super::batch::{ArcBatch, ArcUpdate};
use super::pairs::EdgePairs;

mod net;

pub(crate) use net::encode_step;

/// Edges to insert, with rows and weights.
const ADD: u8 = 1;
/// Edges to delete.
const REMOVE: u8 = 2;
/// Vertices to add.
const ADD_VERTICES: u8 = 3;
/// Vertices to remove, with their edges and values.
const REMOVE_VERTICES: u8 = 4;
/// Keys of the next vertices.
const KEYS: u8 = 5;
/// Without keys: the vertex bound, in place of the number of entries.
const BOUND: u8 = 6;
/// New vertex properties.
const PROPERTIES: u8 = 7;
/// Values of vertices.
const VALUES: u8 = 8;
/// New edge properties.
const EDGE_PROPERTIES: u8 = 9;
/// Rows of edges, with their numbers and values.
const ROWS: u8 = 10;
/// Later rows of edges of a multigraph, with the first rows of these edges.
const FIRST_ROWS: u8 = 11;

/// Bytes of the kind and the number of entries.
const RECORD_HEADER_BYTES: usize = 1 + size_of::<u32>();
const ENDS_BYTES: usize = 2 * size_of::<VertexId>();
/// Edges in one part at most, and edges that a worker encodes in a row.
const MOST_ENTRIES: usize = 1 << 30;
const GRAIN: usize = 1 << 15;

/// Appends parts to a payload.
struct Recorder<'a> {
    bytes: &'a mut Vec<u8>,
    layout: DataLayout,
    /// Kind and offset of the last part.
    open: Option<(u8, usize)>,
}

impl Recorder<'_> {
    /// Begins an entry, in the last part if that has the same kind.
    #[inline]
    fn entry(&mut self, kind: u8) -> &mut Vec<u8> {
        let start = match self.open {
            // A full part would overflow its count.
            Some((last, start)) if last == kind && self.count_at(start) < u32::MAX => start,
            _ => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&[kind, 0, 0, 0, 0]);
                self.open = Some((kind, start));
                start
            }
        };
        let count = self.count_at(start) + 1;
        self.bytes[start + 1..start + RECORD_HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }

    fn count_at(&self, start: usize) -> u32 {
        self.bytes[start + 1..].first_chunk().copied().map_or(0, u32::from_le_bytes)
    }

    #[inline]
    fn edge(&mut self, source: VertexId, target: VertexId, addition: Option<ArcData>) {
        let DataLayout { row_bytes, weight_bytes } = self.layout;
        // Widths are runtime values: assembling the entry first makes one copy into the payload instead of four.
        let mut entry = [0; ENDS_BYTES + 2 * size_of::<u64>()];
        entry[..4].copy_from_slice(&source.to_le_bytes());
        entry[4..ENDS_BYTES].copy_from_slice(&target.to_le_bytes());
        let mut len = ENDS_BYTES;
        if let Some(ArcData { row, weight }) = addition {
            if row_bytes > 0 {
                entry[len..len + 8].copy_from_slice(&row.to_le_bytes());
                len += row_bytes;
            }
            // A store of eight bytes serves both widths, because `len` cuts the bytes behind a shorter weight.
            entry[len..len + 8].copy_from_slice(&weight.to_le_bytes());
            len += weight_bytes;
        }
        self.entry(if addition.is_some() { ADD } else { REMOVE }).extend_from_slice(&entry[..len]);
    }

    fn vertex(&mut self, kind: u8, vertex: VertexId) {
        self.entry(kind).extend_from_slice(&vertex.to_le_bytes());
    }

    fn text(bytes: &mut Vec<u8>, text: &str) {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
}

/// Widths of the fields behind the ends of an added edge: the number of its row, and its weight.
#[derive(Clone, Copy, Debug)]
struct DataLayout {
    row_bytes: usize,
    weight_bytes: usize,
}

impl DataLayout {
    const NONE: Self = Self { row_bytes: 0, weight_bytes: 0 };

    fn of(options: &GraphOptions) -> Self {
        let weight_bytes = options.weight_type.map_or(0, WeightType::num_bytes);
        Self { row_bytes: options.data_bytes() - weight_bytes, weight_bytes }
    }

    /// Bytes of an entry.
    fn edge_bytes(self) -> usize {
        ENDS_BYTES + self.row_bytes + self.weight_bytes
    }

    fn decode(self, bytes: &[u8]) -> ArcData {
        let number = |bytes: &[u8]| {
            let mut number = [0; 8];
            number[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(number)
        };
        let (row, weight) = bytes.split_at(self.row_bytes);
        ArcData { row: number(row), weight: number(weight) }
    }
}

/// Appends the changes to a payload. The graph before has ids below `vertex_bound` and `num_properties` properties of
/// vertices and of edges.
pub(super) fn encode(
    BatchChanges { plan, batch, rows }: &BatchChanges<'_, '_>,
    options: &GraphOptions,
    (vertex_bound, num_properties): (usize, [usize; 2]),
    bytes: &mut Vec<u8>,
) {
    let mut recorder = Recorder { bytes, layout: DataLayout::of(options), open: None };
    if options.keys == KeyScheme::Dense && plan.vertex_bound > vertex_bound {
        recorder.bytes.push(BOUND);
        recorder.bytes.extend_from_slice(&(plan.vertex_bound as u32).to_le_bytes());
    }
    // Keys and bounds come first: the ids of later parts must exist.
    for key in &plan.new_keys {
        let bytes = recorder.entry(KEYS);
        match key {
            Key::Integer(key) => bytes.extend_from_slice(&key.to_le_bytes()),
            Key::String(key) => Recorder::text(bytes, key),
        }
    }
    let of_edges = plan.edge_properties.schema();
    for (kind, schema, num_known) in
        [(PROPERTIES, plan.properties.schema(), num_properties[0]), (EDGE_PROPERTIES, of_edges, num_properties[1])]
    {
        // The snapshot or earlier records have the known properties.
        for (name, property_type) in schema.iter().skip(num_known) {
            let bytes = recorder.entry(kind);
            Recorder::text(bytes, property_type.name());
            Recorder::text(bytes, name);
        }
    }
    // Rows come before the edges that name them, so that recovery can check the names.
    for (row, values) in rows.numbered() {
        let bytes = recorder.entry(ROWS);
        bytes.extend_from_slice(&row.to_le_bytes());
        encode_row(values, bytes);
    }
    // Without edge properties rows have no values, and the edges name them.
    for (row, values) in plan.edges.numbered_rows().filter(|_| options.edge_properties) {
        let bytes = recorder.entry(ROWS);
        bytes.extend_from_slice(&row.to_le_bytes());
        bytes.extend_from_slice(&(values.len() as u32).to_le_bytes());
        values.iter().for_each(|value| anden_snapshots::encode_value(value.as_value(), bytes));
    }
    for (row, first) in plan.edges.first_rows() {
        let bytes = recorder.entry(FIRST_ROWS);
        bytes.extend_from_slice(&row.to_le_bytes());
        bytes.extend_from_slice(&first.to_le_bytes());
    }
    // As in the memtable, the arcs of the batch come before the steps.
    encode_arcs(batch, options, &mut recorder);
    for step in &plan.steps {
        match *step {
            BatchStep::Edge(EdgeUpdate { source, target, addition }) => recorder.edge(source, target, addition),
            BatchStep::AddVertex(vertex) => recorder.vertex(ADD_VERTICES, vertex),
            BatchStep::RemoveVertex(vertex) => recorder.vertex(REMOVE_VERTICES, vertex),
            BatchStep::SetValue(place) => {
                let planned = &plan.values[place];
                let bytes = recorder.entry(VALUES);
                bytes.extend_from_slice(&planned.vertex.to_le_bytes());
                bytes.extend_from_slice(&(planned.place as u32).to_le_bytes());
                anden_snapshots::encode_value(planned.value.as_value(), bytes);
            }
        }
    }
}

/// Appends the values of a row, given with the indexes of their properties.
fn encode_row(values: &[(usize, PropertyValue<'_>)], bytes: &mut Vec<u8>) {
    let len = values.iter().map(|(place, _)| place + 1).max().unwrap_or(0);
    bytes.extend_from_slice(&(len as u32).to_le_bytes());
    let is_dense = values.iter().enumerate().all(|(index, (place, _))| index == *place);
    // The usual case needs no search for each property.
    if is_dense {
        return values.iter().for_each(|&(_, value)| anden_snapshots::encode_value(value, bytes));
    }
    for place in 0..len {
        let value = values.iter().find(|(other, _)| *other == place);
        anden_snapshots::encode_value(value.map_or(PropertyValue::Null, |&(_, value)| value), bytes);
    }
}

/// Appends edges that are all inserted or all deleted, and the vertex bound if it grows.
pub(super) fn encode_pairs(
    edges: EdgePairs<'_>,
    (bound_before, bound): (usize, usize),
    pool: &Pool,
    bytes: &mut Vec<u8>,
) {
    if bound > bound_before {
        bytes.push(BOUND);
        bytes.extend_from_slice(&(bound as u32).to_le_bytes());
    }
    let kind = if edges.op == Op::Insert { ADD } else { REMOVE };
    for pairs in edges.pairs.chunks(MOST_ENTRIES) {
        bytes.push(kind);
        bytes.extend_from_slice(&(pairs.len() as u32).to_le_bytes());
        let start = bytes.len();
        // Room first, so that all workers can copy pairs into it.
        bytes.resize(start + pairs.len() * ENDS_BYTES, 0);
        pool.for_each_part_mut(&mut bytes[start..], GRAIN * ENDS_BYTES, |at, part| {
            let first = at / ENDS_BYTES;
            for (entry, &(source, target)) in part.as_chunks_mut::<ENDS_BYTES>().0.iter_mut().zip(&pairs[first..]) {
                // One store of eight bytes for both ends.
                *entry = (u64::from(source) | u64::from(target) << u32::BITS).to_le_bytes();
            }
        });
    }
}

/// An undirected edge has two arcs in succession, one of which is encoded.
fn encode_arcs(batch: &ArcBatch, options: &GraphOptions, recorder: &mut Recorder<'_>) {
    recorder.bytes.reserve(batch.len() * recorder.layout.edge_bytes());
    let is_doubled = options.graph_kind == GraphKind::Undirected && !options.ordered;
    let mut is_second = false;
    batch.for_each(options, |ArcUpdate { list, neighbor, addition }| {
        if is_doubled && list != neighbor {
            is_second = !is_second;
            if !is_second {
                return;
            }
        }
        recorder.edge(list, neighbor, addition);
    });
}

/// One operation of a payload.
#[derive(Debug)]
pub(super) enum LoggedOp<'a> {
    /// Edges with their data, to insert.
    Add(LoggedEdges<'a>),
    /// Edges to delete.
    Remove(LoggedEdges<'a>),
    AddVertex(VertexId),
    RemoveVertex(VertexId),
    Key(LoggedKey<'a>),
    Bound(u32),
    Property(&'a str, PropertyType),
    EdgeProperty(&'a str, PropertyType),
    Row(u64, RowValues<'a>),
    /// A later row of an edge, and the edge's first row.
    FirstRow(u64, u64),
    Value {
        vertex: VertexId,
        place: usize,
        value: PropertyValue<'a>,
    },
}

/// The key of the next vertex.
#[derive(Debug)]
pub(super) enum LoggedKey<'a> {
    Integer(u64),
    String(&'a str),
}

impl From<LoggedKey<'_>> for Key {
    fn from(key: LoggedKey<'_>) -> Self {
        match key {
            LoggedKey::Integer(key) => Self::Integer(key),
            LoggedKey::String(key) => Self::String(key.to_owned()),
        }
    }
}

/// The values of a row, by property; missing ones at the end are null.
#[derive(Debug)]
pub(super) struct RowValues<'a> {
    len: usize,
    bytes: &'a [u8],
}

impl<'a> RowValues<'a> {
    /// Takes the values of one row; `None` if the payload ends before.
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let len = take_u32(rest)? as usize;
        let mut behind = *rest;
        // Validated here, so that `iter` meets no bad bytes later.
        for _ in 0..len {
            behind = anden_snapshots::decode_value(behind)?.1;
        }
        let bytes = &rest[..rest.len() - behind.len()];
        *rest = behind;
        Some(Self { len, bytes })
    }

    /// Iterates over the values.
    pub(super) fn iter(&self) -> impl Iterator<Item = PropertyValue<'a>> {
        let mut rest = self.bytes;
        (0..self.len).map_while(move |_| {
            let (value, behind) = anden_snapshots::decode_value(rest)?;
            rest = behind;
            Some(value)
        })
    }
}

/// The edges of one part.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedEdges<'a> {
    bytes: &'a [u8],
    layout: DataLayout,
    is_added: bool,
}

impl<'a> LoggedEdges<'a> {
    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = EdgeUpdate> + 'a {
        let Self { bytes, layout, is_added } = self;
        bytes.chunks_exact(layout.edge_bytes()).map(move |entry| EdgeUpdate {
            source: u32_of(entry),
            target: u32_of(&entry[size_of::<VertexId>()..]),
            addition: is_added.then(|| layout.decode(&entry[ENDS_BYTES..])),
        })
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    bytes.first_chunk().copied().map_or(0, u32::from_le_bytes)
}

/// Calls `body` with the operations of a payload, in order. The payload may hold any bytes.
///
/// # Errors
/// The payload is malformed; errors of `body`.
pub(super) fn decode<E: From<&'static str>>(
    payload: &[u8],
    options: &GraphOptions,
    mut body: impl FnMut(LoggedOp<'_>) -> Result<(), E>,
) -> Result<(), E> {
    const CUT: &str = "a record is longer than its commit";
    let mut rest = payload;
    while !rest.is_empty() {
        let (header, entries) = rest.split_at_checked(RECORD_HEADER_BYTES).ok_or(CUT)?;
        let (kind, count) = (header[0], u32_of(&header[1..]));
        rest = entries;
        match kind {
            BOUND => body(LoggedOp::Bound(count))?,
            ADD | REMOVE => {
                let is_added = kind == ADD;
                let layout = if is_added { DataLayout::of(options) } else { DataLayout::NONE };
                // `count` is not trusted: the product must not overflow, nor the slice exceed the payload.
                let bytes = take(&mut rest, layout.edge_bytes().checked_mul(count as usize)).ok_or(CUT)?;
                let edges = LoggedEdges { bytes, layout, is_added };
                body(if is_added { LoggedOp::Add(edges) } else { LoggedOp::Remove(edges) })?;
            }
            ADD_VERTICES | REMOVE_VERTICES | KEYS | PROPERTIES | VALUES | EDGE_PROPERTIES | ROWS | FIRST_ROWS => {
                for _ in 0..count {
                    let record = entry(kind, &mut rest, options).ok_or("a record does not mean anything")?;
                    body(record)?;
                }
            }
            _ => return Err("there is no such record".into()),
        }
    }
    Ok(())
}

fn take<'a>(rest: &mut &'a [u8], len: Option<usize>) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(len?)?;
    *rest = behind;
    Some(taken)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest, Some(size_of::<u32>())).map(u32_of)
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest, Some(size_of::<u64>()))?.first_chunk().copied().map(u64::from_le_bytes)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let len = usize::try_from(take_u64(rest)?).ok();
    std::str::from_utf8(take(rest, len)?).ok()
}

fn entry<'a>(kind: u8, rest: &mut &'a [u8], options: &GraphOptions) -> Option<LoggedOp<'a>> {
    Some(match kind {
        ADD_VERTICES => LoggedOp::AddVertex(take_u32(rest)?),
        REMOVE_VERTICES => LoggedOp::RemoveVertex(take_u32(rest)?),
        KEYS => LoggedOp::Key(match options.keys {
            KeyScheme::Integer => LoggedKey::Integer(take_u64(rest)?),
            KeyScheme::String => LoggedKey::String(take_text(rest)?),
            // With dense keys, a bound is logged in place of keys.
            KeyScheme::Dense => return None,
        }),
        PROPERTIES | EDGE_PROPERTIES => {
            let property_type = PropertyType::of_name(take_text(rest)?)?;
            let name = take_text(rest)?;
            if kind == PROPERTIES {
                LoggedOp::Property(name, property_type)
            } else {
                LoggedOp::EdgeProperty(name, property_type)
            }
        }
        ROWS => LoggedOp::Row(take_u64(rest)?, RowValues::take(rest)?),
        FIRST_ROWS => LoggedOp::FirstRow(take_u64(rest)?, take_u64(rest)?),
        _ => {
            let (vertex, place) = (take_u32(rest)?, take_u32(rest)? as usize);
            let (value, behind) = anden_snapshots::decode_value(rest)?;
            *rest = behind;
            LoggedOp::Value { vertex, place, value }
        }
    })
}

/// Whether the bits of a weight are not NaN.
pub(super) fn is_number(bits: u64, weight_type: Option<WeightType>) -> bool {
    match weight_type {
        Some(WeightType::F32) => !f32::from_bits(bits as u32).is_nan(),
        Some(WeightType::F64) => !f64::from_bits(bits).is_nan(),
        None | Some(WeightType::U32 | WeightType::I64) => true,
    }
}

/// Whether the property at an index can have a value.
pub(super) fn fits(schema: &PropertySchema, place: usize, value: PropertyValue<'_>) -> bool {
    let property_type = schema.get(place).map(|(_, property_type)| property_type);
    property_type.is_some_and(|found| value.property_type().is_none_or(|of_value| of_value == found.stored()))
}
