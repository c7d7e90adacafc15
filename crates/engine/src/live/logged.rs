//! The bytes that a batch is in the log: what is done, by id.
//!
//! Records follow each other, each a byte that says what it is, a number of entries, and the entries. Keys stand in them
//! only where they are new; whoever reads them looks nothing up. Edges are as the user named them: what they change in
//! lists follows from the graph.

use base::VertexId;
use base::parallel::Pool;
use graph::property::{PropertySchema, PropertyType, PropertyValue};
use graph::{Direction, WeightType};
use lama::{ArcData, GraphOptions, Key, KeyScheme};
use terrace::Fate;

use super::apply::{BatchChanges, EdgeUpdate, Step};
use super::batch::{ArcUpdate, Batch};
use super::pairs::EdgePairs;

/// Edges that are there from now on, with their weights.
const ADD: u8 = 1;
/// Edges that are gone.
const REMOVE: u8 = 2;
/// Vertices that are there.
const ADD_VERTICES: u8 = 3;
/// Vertices that are gone, with their edges and values.
const REMOVE_VERTICES: u8 = 4;
/// The keys of the next vertices.
const KEYS: u8 = 5;
/// Without keys: the vertex bound, in the place of the number of entries.
const BOUND: u8 = 6;
/// Properties that are new.
const PROPERTIES: u8 = 7;
/// Values that vertices get.
const VALUES: u8 = 8;
/// Properties of edges that are new.
const EDGE_PROPERTIES: u8 = 9;
/// Rows of edges, with their numbers and values.
const ROWS: u8 = 10;
/// Rows of edges of a multigraph that are not the first of their edges, with the first ones.
const FIRST_ROWS: u8 = 11;

/// Says what a record is and how many entries it has.
const RECORD_HEADER_BYTES: usize = 1 + size_of::<u32>();
const ENDS_BYTES: usize = 2 * size_of::<VertexId>();
/// A batch is cut in records of so many edges, which are encoded on all workers, so many by one in a row.
const MOST_ENTRIES: usize = 1 << 30;
const GRAIN: usize = 1 << 15;

/// Appends records.
struct Recorder<'a> {
    bytes: &'a mut Vec<u8>,
    layout: DataLayout,
    /// What the last record is, and where.
    open: Option<(u8, usize)>,
}

impl Recorder<'_> {
    /// Begins an entry, in the last record if that is of the same kind.
    #[inline]
    fn entry(&mut self, kind: u8) -> &mut Vec<u8> {
        let start = match self.open {
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
        // Widths are known only here, so the parts are put together first: one copy into the record instead of four.
        let mut entry = [0; ENDS_BYTES + 2 * size_of::<u64>()];
        entry[..4].copy_from_slice(&source.to_le_bytes());
        entry[4..ENDS_BYTES].copy_from_slice(&target.to_le_bytes());
        let mut len = ENDS_BYTES;
        if let Some(ArcData { row, weight }) = addition {
            if row_bytes > 0 {
                entry[len..len + 8].copy_from_slice(&row.to_le_bytes());
                len += row_bytes;
            }
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

/// What stands behind the ends of an edge that is added: the number of its row, and its weight.
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

    /// The bytes of an edge.
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

/// Appends what is changed in a graph that has ids below `vertex_bound`, and this many properties of vertices and of
/// edges.
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
        for (name, property_type) in schema.iter().skip(num_known) {
            let bytes = recorder.entry(kind);
            Recorder::text(bytes, property_type.name());
            Recorder::text(bytes, name);
        }
    }
    for (row, values) in rows.numbered() {
        let bytes = recorder.entry(ROWS);
        bytes.extend_from_slice(&row.to_le_bytes());
        encode_row(values, bytes);
    }
    for (row, values) in plan.edges.numbered_rows().filter(|_| options.edge_properties) {
        let bytes = recorder.entry(ROWS);
        bytes.extend_from_slice(&row.to_le_bytes());
        bytes.extend_from_slice(&(values.len() as u32).to_le_bytes());
        values.iter().for_each(|value| lama::encode_value(value.as_value(), bytes));
    }
    for (row, first) in plan.edges.first_rows() {
        let bytes = recorder.entry(FIRST_ROWS);
        bytes.extend_from_slice(&row.to_le_bytes());
        bytes.extend_from_slice(&first.to_le_bytes());
    }
    encode_arcs(batch, options, &mut recorder);
    for step in &plan.steps {
        match *step {
            Step::Edge(EdgeUpdate { source, target, addition }) => recorder.edge(source, target, addition),
            Step::AddVertex(vertex) => recorder.vertex(ADD_VERTICES, vertex),
            Step::RemoveVertex(vertex) => recorder.vertex(REMOVE_VERTICES, vertex),
            Step::SetValue(place) => {
                let planned = &plan.values[place];
                let bytes = recorder.entry(VALUES);
                bytes.extend_from_slice(&planned.vertex.to_le_bytes());
                bytes.extend_from_slice(&(planned.place as u32).to_le_bytes());
                lama::encode_value(planned.value.as_value(), bytes);
            }
        }
    }
}

/// Appends the values of a row, which stand with the places of their properties.
fn encode_row(values: &[(usize, PropertyValue<'_>)], bytes: &mut Vec<u8>) {
    let len = values.iter().map(|(place, _)| place + 1).max().unwrap_or(0);
    bytes.extend_from_slice(&(len as u32).to_le_bytes());
    let is_dense = values.iter().enumerate().all(|(index, (place, _))| index == *place);
    if is_dense {
        return values.iter().for_each(|&(_, value)| lama::encode_value(value, bytes));
    }
    for place in 0..len {
        let value = values.iter().find(|(other, _)| *other == place);
        lama::encode_value(value.map_or(PropertyValue::Null, |&(_, value)| value), bytes);
    }
}

/// Appends edges, all of which come or go, and the vertex bound where that becomes another.
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
    let kind = if edges.fate == Fate::Come { ADD } else { REMOVE };
    for pairs in edges.pairs.chunks(MOST_ENTRIES) {
        bytes.push(kind);
        bytes.extend_from_slice(&(pairs.len() as u32).to_le_bytes());
        let start = bytes.len();
        bytes.resize(start + pairs.len() * ENDS_BYTES, 0);
        pool.for_each_part_mut(&mut bytes[start..], GRAIN * ENDS_BYTES, |at, part| {
            let first = at / ENDS_BYTES;
            for (entry, &(source, target)) in part.as_chunks_mut::<ENDS_BYTES>().0.iter_mut().zip(&pairs[first..]) {
                *entry = (u64::from(source) | u64::from(target) << u32::BITS).to_le_bytes();
            }
        });
    }
}

/// Of an undirected edge, both arcs are in a batch, one behind the other: the second follows from the first.
fn encode_arcs(batch: &Batch, options: &GraphOptions, recorder: &mut Recorder<'_>) {
    recorder.bytes.reserve(batch.len() * recorder.layout.edge_bytes());
    let is_doubled = options.direction == Direction::Undirected && !options.ordered;
    let mut is_second = false;
    batch.for_each(options, |ArcUpdate { list, neighbour, addition }| {
        if is_doubled && list != neighbour {
            is_second = !is_second;
            if !is_second {
                return;
            }
        }
        recorder.edge(list, neighbour, addition);
    });
}

/// What a record of the log does.
#[derive(Debug)]
pub(super) enum Record<'a> {
    /// Edges with weights, to be there.
    Add(Edges<'a>),
    /// Edges to be gone.
    Remove(Edges<'a>),
    AddVertex(VertexId),
    RemoveVertex(VertexId),
    Key(LoggedKey<'a>),
    Bound(u32),
    Property(&'a str, PropertyType),
    EdgeProperty(&'a str, PropertyType),
    Row(u64, RowValues<'a>),
    /// A row of an edge, and its first one.
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

/// The values of a row, by property; behind the last one, all are null.
#[derive(Debug)]
pub(super) struct RowValues<'a> {
    len: usize,
    bytes: &'a [u8],
}

impl<'a> RowValues<'a> {
    /// Takes as many values as the record says; `None` where there are fewer.
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let len = take_u32(rest)? as usize;
        let mut behind = *rest;
        for _ in 0..len {
            behind = lama::decode_value(behind)?.1;
        }
        let bytes = &rest[..rest.len() - behind.len()];
        *rest = behind;
        Some(Self { len, bytes })
    }

    /// The values.
    pub(super) fn iter(&self) -> impl Iterator<Item = PropertyValue<'a>> {
        let mut rest = self.bytes;
        (0..self.len).map_while(move |_| {
            let (value, behind) = lama::decode_value(rest)?;
            rest = behind;
            Some(value)
        })
    }
}

/// Edges of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges<'a> {
    bytes: &'a [u8],
    layout: DataLayout,
    is_added: bool,
}

impl<'a> Edges<'a> {
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

/// Calls `body` with what the records of a payload do, in their order. The payload may hold anything.
///
/// # Errors
/// It is no payload; what `body` returns.
pub(super) fn decode<E: From<&'static str>>(
    payload: &[u8],
    options: &GraphOptions,
    mut body: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<(), E> {
    const CUT: &str = "a record is longer than its commit";
    let mut rest = payload;
    while !rest.is_empty() {
        let (header, entries) = rest.split_at_checked(RECORD_HEADER_BYTES).ok_or(CUT)?;
        let (kind, count) = (header[0], u32_of(&header[1..]));
        rest = entries;
        match kind {
            BOUND => body(Record::Bound(count))?,
            ADD | REMOVE => {
                let is_added = kind == ADD;
                let layout = if is_added { DataLayout::of(options) } else { DataLayout::NONE };
                let bytes = take(&mut rest, layout.edge_bytes().checked_mul(count as usize)).ok_or(CUT)?;
                let edges = Edges { bytes, layout, is_added };
                body(if is_added { Record::Add(edges) } else { Record::Remove(edges) })?;
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

fn entry<'a>(kind: u8, rest: &mut &'a [u8], options: &GraphOptions) -> Option<Record<'a>> {
    Some(match kind {
        ADD_VERTICES => Record::AddVertex(take_u32(rest)?),
        REMOVE_VERTICES => Record::RemoveVertex(take_u32(rest)?),
        KEYS => Record::Key(match options.keys {
            KeyScheme::Integer => LoggedKey::Integer(take_u64(rest)?),
            KeyScheme::String => LoggedKey::String(take_text(rest)?),
            KeyScheme::Dense => return None,
        }),
        PROPERTIES | EDGE_PROPERTIES => {
            let property_type = PropertyType::of_name(take_text(rest)?)?;
            let name = take_text(rest)?;
            if kind == PROPERTIES {
                Record::Property(name, property_type)
            } else {
                Record::EdgeProperty(name, property_type)
            }
        }
        ROWS => Record::Row(take_u64(rest)?, RowValues::take(rest)?),
        FIRST_ROWS => Record::FirstRow(take_u64(rest)?, take_u64(rest)?),
        _ => {
            let (vertex, place) = (take_u32(rest)?, take_u32(rest)? as usize);
            let (value, behind) = lama::decode_value(rest)?;
            *rest = behind;
            Record::Value { vertex, place, value }
        }
    })
}

/// Whether the bits of a weight are those of a number.
pub(super) fn is_number(bits: u64, weight_type: Option<WeightType>) -> bool {
    match weight_type {
        Some(WeightType::F32) => !f32::from_bits(bits as u32).is_nan(),
        Some(WeightType::F64) => !f64::from_bits(bits).is_nan(),
        None | Some(WeightType::U32 | WeightType::I64) => true,
    }
}

/// Whether a property at a place can have a value.
pub(super) fn fits(schema: &PropertySchema, place: usize, value: PropertyValue<'_>) -> bool {
    let property_type = schema.get(place).map(|(_, property_type)| property_type);
    property_type.is_some() && (value.is_null() || value.property_type() == property_type)
}
