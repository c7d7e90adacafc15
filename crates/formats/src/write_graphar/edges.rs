//! The edges: a list for each type between two types of vertices, in parts by source.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::PropertyValue;
use anden_graph::{Direction, Graph, GraphKind, Weight, WeightedEdges};
use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use arrow_select::take::take;

use super::info::edge_info;
use super::types::{TypeNames, VertexTypes, safe_name};
use super::{
    ChunkTable, EDGE_CHUNK, PROPERTIES, VERTEX_CHUNK, begin_table, edge_fields, signed, stored, stored_on_edges,
    write_bytes,
};
use crate::edge_rows::{EdgeRows, WrittenProperties, for_each_written};
use crate::graphar_layout::{ENDS, OFFSET};
use crate::options::TYPE_PROPERTY;
use crate::output_folder::OutputFolder;
use crate::output_format::ExportedGraph;
use crate::write_parquet::{GROUP_ROWS, weights_of};
use crate::{Error, Result};

/// The type of edges without one.
const NO_TYPE: &str = "edge";

/// Edges of one list, from a piece of the sources.
struct EdgePiece {
    edge_type: Option<String>,
    target_type: usize,
    /// The numbers of the sources.
    sources: Vec<u32>,
    /// Sources and targets, and then the properties.
    columns: Vec<ArrayRef>,
}

/// Writes all edges. Returns the names of their files in YAML.
pub(super) fn write_edges<W: Weight, G: ExportedGraph>(
    graph: &G,
    types: &VertexTypes,
    safe: &[String],
    folder: &OutputFolder<'_>,
) -> Result<Vec<String>, G::Error> {
    let (fields, is_directed) = (edge_fields(graph), graph.graph().graph_kind() == GraphKind::Directed);
    let mut names = TypeNames::new(graph.properties().edge_schema(), TYPE_PROPERTY, NO_TYPE);
    let column = names.column;
    let (mut files, mut taken) = (Vec::new(), HashSet::new());
    for (source, source_name) in types.names.iter().enumerate() {
        let vertices = types.vertices(source);
        let mut writers: HashMap<(usize, usize), EdgeWriter<'_>> = HashMap::new();
        for (part, ids) in vertices.chunks(VERTEX_CHUNK).enumerate() {
            graph.pool().in_order(
                pieces_of(graph.graph(), ids),
                EdgeRows::<W>::default,
                |rows, piece: Range<usize>, made: &mut Vec<EdgePiece>| -> Result<(), G::Error> {
                    read_piece(graph, types, &ids[piece], column, folder, rows, made)
                },
                |made| {
                    for piece in made.drain(..) {
                        let value = piece.edge_type.as_deref().map_or(PropertyValue::Null, PropertyValue::String);
                        let list = (names.place(value, folder)?, piece.target_type);
                        let writer = writers.entry(list).or_insert_with(|| {
                            let name = format!("{}_{}_{}", safe[source], names.names[list.0], safe[list.1]);
                            EdgeWriter::new(safe_name(&name, &mut taken), fields.clone())
                        });
                        writer.catch_up(part, vertices.len(), folder)?;
                        writer.append(piece, folder)?;
                    }
                    Ok(())
                },
            )?;
        }
        let mut lists: Vec<_> = writers.into_iter().collect();
        lists.sort_unstable_by_key(|&(list, _)| list);
        for ((edge_type, target), writer) in lists {
            let name = writer.finish(vertices.len(), folder)?;
            let stated = [&source_name[..], &names.names[edge_type], &types.names[target]];
            let text = edge_info(stated, &name, is_directed, &fields);
            write_bytes(folder, &format!("{name}.edge.yml"), text.as_bytes())?;
            files.push(name);
        }
    }
    Ok(files)
}

/// Ranges of vertices with about as many edges as a row group.
fn pieces_of(graph: &impl Graph, ids: &[VertexId]) -> Vec<Range<usize>> {
    let (mut pieces, mut start, mut num_arcs) = (Vec::new(), 0, 0);
    for (place, &vertex) in ids.iter().enumerate() {
        num_arcs += graph.degree(Direction::Out, vertex);
        if num_arcs >= GROUP_ROWS || place + 1 == ids.len() {
            pieces.push(start..place + 1);
            (start, num_arcs) = (place + 1, 0);
        }
    }
    pieces
}

/// Reads the edges of some sources, and splits them by their lists.
fn read_piece<W: Weight, G: ExportedGraph>(
    graph: &G,
    types: &VertexTypes,
    ids: &[VertexId],
    type_column: Option<usize>,
    folder: &OutputFolder<'_>,
    rows: &mut EdgeRows<W>,
    made: &mut Vec<EdgePiece>,
) -> Result<(), G::Error> {
    let (lists, properties) = (graph.graph(), graph.properties());
    rows.clear();
    match ids {
        // Consecutive vertices are walked, which reads ahead.
        [first, .., last] if (last - first) as usize + 1 == ids.len() => {
            let has_rows = !properties.edge_schema().is_empty();
            for_each_written(lists, *first..last + 1, has_rows, |vertex| rows.push(lists, properties, vertex))?;
        }
        _ => ids.iter().try_for_each(|&vertex| rows.push(lists, properties, vertex))?,
    }
    let schema = properties.edge_schema();
    let values = if schema.is_empty() { Vec::new() } else { properties.edge_columns(&rows.rows)? };
    let mut columns = Vec::new();
    if lists.weight_type().is_some() {
        let weights = weights_of(std::mem::take(&mut rows.weights));
        columns.push(if *weights.data_type() == DataType::UInt32 {
            signed(&weights, "weight", folder)?
        } else {
            weights
        });
    }
    for ((name, found), column) in schema.iter().zip(&values) {
        columns.push(stored(column, stored_on_edges(found), name, folder)?);
    }
    let mut split: HashMap<(Option<&str>, usize), Vec<u32>> = HashMap::new();
    for (row, &target) in rows.targets.iter().enumerate() {
        let edge_type = match type_column.map(|column| values[column].get(row)) {
            Some(PropertyValue::String(edge_type)) => Some(edge_type),
            _ => None,
        };
        split.entry((edge_type, types.type_of(target))).or_default().push(row as u32);
    }
    // The order of a map is arbitrary, and types are numbered as they occur.
    let mut split: Vec<_> = split.into_iter().collect();
    split.sort_unstable_by_key(|(_, rows)| rows[0]);
    for ((edge_type, target_type), places) in split {
        let numbers =
            |ends: &[VertexId]| -> Vec<u32> { places.iter().map(|&row| types.number_of(ends[row as usize])).collect() };
        let (sources, targets) = (numbers(&rows.sources), numbers(&rows.targets));
        let ends = [&sources, &targets].map(|numbers| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(numbers.iter().map(|&number| number.into())))
        });
        let places = arrow_array::UInt32Array::from(places);
        let taken = columns.iter().map(|column| take(column, &places, None).map_err(|error| failed(&error)));
        let columns = ends.into_iter().map(Ok).chain(taken).collect::<Result<_>>()?;
        made.push(EdgePiece { edge_type: edge_type.map(str::to_owned), target_type, sources, columns });
    }
    Ok(())
}

fn failed(error: &arrow_schema::ArrowError) -> Error {
    Error::Parameter(format!("cannot write GraphAr: {error}"))
}

/// Writes one list.
pub(super) struct EdgeWriter<'a> {
    name: String,
    fields: Vec<Field>,
    /// The part in the making, and its edges until now.
    part: usize,
    num_edges: usize,
    /// For each source of the part the number of its edges.
    degrees: Vec<u32>,
    /// Rows that are not written yet.
    waiting: Vec<Vec<ArrayRef>>,
    num_waiting: usize,
    /// The open tables of the ends and of the properties.
    tables: Vec<ChunkTable<'a>>,
}

impl<'a> EdgeWriter<'a> {
    fn new(name: String, fields: Vec<Field>) -> Self {
        let (waiting, tables) = (Vec::new(), Vec::new());
        Self { name, fields, part: 0, num_edges: 0, degrees: Vec::new(), waiting, num_waiting: 0, tables }
    }

    fn folder(&self) -> String {
        format!("edge/{}/ordered_by_source", self.name)
    }

    /// Ends the parts before this one.
    fn catch_up(&mut self, part: usize, num_sources: usize, folder: &OutputFolder<'a>) -> Result<()> {
        while self.part < part {
            self.end_part(num_sources, folder)?;
        }
        Ok(())
    }

    fn append(&mut self, piece: EdgePiece, folder: &OutputFolder<'a>) -> Result<()> {
        self.degrees.resize(VERTEX_CHUNK, 0);
        for source in &piece.sources {
            self.degrees[*source as usize % VERTEX_CHUNK] += 1;
        }
        self.num_waiting += piece.sources.len();
        self.waiting.push(piece.columns);
        // Small pieces wait for others, so that row groups are large.
        if self.num_waiting >= GROUP_ROWS { self.write_waiting(folder) } else { Ok(()) }
    }

    /// Writes the rows that wait, and begins a chunk where the one before is full.
    fn write_waiting(&mut self, folder: &OutputFolder<'a>) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let num_rows = std::mem::take(&mut self.num_waiting);
        let Some(first) = waiting.first() else { return Ok(()) };
        let joined = (0..first.len()).map(|column| {
            let parts: Vec<&dyn arrow_array::Array> = waiting.iter().map(|columns| &*columns[column]).collect();
            concat(&parts).map_err(|error| failed(&error))
        });
        let columns: Vec<ArrayRef> = joined.collect::<Result<_>>()?;
        let (ends, properties) = columns.split_at(ENDS.len());
        let mut start = 0;
        while start < num_rows {
            if self.num_edges.is_multiple_of(EDGE_CHUNK) {
                self.begin_chunk(folder)?;
            }
            let rows = start..num_rows.min(start + EDGE_CHUNK - self.num_edges % EDGE_CHUNK);
            for (table, columns) in self.tables.iter_mut().zip([ends, properties]) {
                table.append(columns, rows.clone())?;
            }
            self.num_edges += rows.len();
            start = rows.end;
        }
        Ok(())
    }

    fn begin_chunk(&mut self, folder: &OutputFolder<'a>) -> Result<()> {
        self.tables.drain(..).try_for_each(ChunkTable::finish)?;
        let (part, chunk) = (self.part, self.num_edges / EDGE_CHUNK);
        let ends = ENDS.map(|name| Field::new(name, DataType::Int64, false)).to_vec();
        for (group, fields) in [("adj_list", ends), (PROPERTIES, self.fields.clone())] {
            if !fields.is_empty() {
                let place = format!("{}/{group}/part{part}", self.folder());
                folder.create_folder(&place)?;
                self.tables.push(begin_table(folder, &format!("{place}/chunk{chunk}"), fields)?);
            }
        }
        Ok(())
    }

    /// Ends the part: writes its rows, its number of edges, and where the edges of each source begin.
    fn end_part(&mut self, num_sources: usize, folder: &OutputFolder<'a>) -> Result<()> {
        self.write_waiting(folder)?;
        self.tables.drain(..).try_for_each(ChunkTable::finish)?;
        let place = self.folder();
        folder.create_folder(&format!("{place}/offset"))?;
        let count = (self.num_edges as i64).to_le_bytes();
        write_bytes(folder, &format!("{place}/edge_count{}", self.part), &count)?;
        let size = VERTEX_CHUNK.min(num_sources - self.part * VERTEX_CHUNK);
        self.degrees.resize(VERTEX_CHUNK, 0);
        let mut end = 0;
        let offsets = std::iter::once(0).chain(self.degrees[..size].iter().map(|&degree| {
            end += i64::from(degree);
            end
        }));
        let offsets: ArrayRef = Arc::new(Int64Array::from_iter_values(offsets));
        let fields = vec![Field::new(OFFSET, DataType::Int64, false)];
        let mut table = begin_table(folder, &format!("{place}/offset/chunk{}", self.part), fields)?;
        table.append(&[offsets], 0..size + 1)?;
        table.finish()?;
        self.degrees.clear();
        (self.part, self.num_edges) = (self.part + 1, 0);
        Ok(())
    }

    /// Ends all parts of these sources. Returns the name of the list.
    fn finish(mut self, num_sources: usize, folder: &OutputFolder<'a>) -> Result<String> {
        self.catch_up(num_sources.div_ceil(VERTEX_CHUNK), num_sources, folder)?;
        let count = (num_sources as i64).to_le_bytes();
        write_bytes(folder, &format!("{}/vertex_count", self.folder()), &count)?;
        Ok(self.name)
    }
}
