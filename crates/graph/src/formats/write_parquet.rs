//! Graphs as Parquet: a file of edges, and one of vertices.
//!
//! Row groups are laid out by several threads and written in order, so a file is the same at any number
//! of threads. Keys that are numbers are whole numbers of 64 bits, signed where all fit; weights have
//! the type that they have in the graph; properties may be null.

use std::collections::HashMap;
use std::ops::Range;

use base::VertexId;
use base::parallel::Pool;

use super::edge_rows::{EdgeRows, WrittenProperties, for_each_written, pieces_of};
use super::number::parse_u64;
use super::options::KeyKind;
use super::parquet::encode::{Cells, Field, FieldKind, Group, GroupPlace, footer};
use super::write::{Output, refuse_clash};
use crate::property::PropertySchema;
use crate::{Error, Graph, Result, Weight, WeightType, WeightedEdges};

/// Rows of a row group, about.
pub(super) const GROUP_ROWS: usize = 256 << 10;

/// A worker holds the rows of a group (8 bytes a row), their keys (16), and three encoded groups (30): the group that it
/// makes and two that wait to be written.
const ROW_BYTES: u64 = 54;
/// The same for a weight and for a property that is not text.
const CELL_BYTES: u64 = 48;

/// The bytes that each worker of [`write_parquet_edges`] holds; text of keys and of properties comes on top.
///
/// Cost: reads every degree.
pub fn parquet_worker_bytes(graph: &impl WeightedEdges, properties: &PropertySchema) -> u64 {
    let num_arcs = |piece: &Range<VertexId>| piece.clone().map(|vertex| graph.out_degree(vertex) as u64).sum();
    let most_rows = pieces_of(graph, GROUP_ROWS).iter().map(num_arcs).max().unwrap_or(0).max(GROUP_ROWS as u64);
    let num_cells = u64::from(graph.weight_type().is_some()) + properties.len() as u64;
    most_rows * (ROW_BYTES + num_cells * CELL_BYTES)
}

/// How the keys of vertices are got: as text, appended to what is given.
pub trait WrittenKeys<E>: Fn(VertexId, &mut Vec<u8>) -> Result<(), E> + Sync {}

impl<E, F: Fn(VertexId, &mut Vec<u8>) -> Result<(), E> + Sync> WrittenKeys<E> for F {}

/// Writes the edges: `source`, `target`, `weight` where there are weights, and their properties. Returns
/// how many edges. An undirected edge is written once, its lower id first.
///
/// Memory: [`parquet_worker_bytes`] a thread, and 8 bytes a vertex where keys are numbers other than the ids.
///
/// # Errors
/// Those of keys, properties and output; a property with the name of another column.
pub fn write_parquet_edges<E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    kind: KeyKind,
    keys: impl WrittenKeys<E>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    output: &mut Output<'_>,
) -> Result<u64, E> {
    let keys = ColumnKeys::new(graph, kind, keys, pool)?;
    match graph.weight_type() {
        None | Some(WeightType::U32) => write_edges::<u32, E>(graph, &keys, properties, pool, output),
        Some(WeightType::I64) => write_edges::<i64, E>(graph, &keys, properties, pool, output),
        Some(WeightType::F32) => write_edges::<f32, E>(graph, &keys, properties, pool, output),
        Some(WeightType::F64) => write_edges::<f64, E>(graph, &keys, properties, pool, output),
    }
}

/// Writes the vertices: `id`, and their properties. Returns how many.
///
/// # Errors
/// As [`write_parquet_edges`].
pub fn write_parquet_vertices<E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    kind: KeyKind,
    keys: impl WrittenKeys<E>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    output: &mut Output<'_>,
) -> Result<u64, E> {
    let keys = ColumnKeys::new(graph, kind, keys, pool)?;
    let fields = fields_of(&["id"], &keys, None, properties.vertex_schema(), output)?;
    let mut file = GroupWriter::new(output)?;
    pool.in_order(
        0..graph.vertex_bound().div_ceil(GROUP_ROWS),
        || (),
        |(), piece, made: &mut Option<Group>| -> Result<(), E> {
            let ids = (piece * GROUP_ROWS) as VertexId..graph.vertex_bound().min((piece + 1) * GROUP_ROWS) as VertexId;
            let vertices: Vec<VertexId> = ids.filter(|&vertex| graph.is_live(vertex)).collect();
            let mut columns = keys.cells(&[&vertices])?;
            columns.extend(
                properties.vertex_columns(&vertices)?.into_iter().map(|column| Cells::Property(Box::new(column))),
            );
            *made = Some(Group::new(&columns)?);
            Ok(())
        },
        |made| Ok(made.take().into_iter().try_for_each(|group| file.add(group))?),
    )?;
    graph.check().map_err(Error::from)?;
    Ok(file.finish(&fields)?)
}

fn write_edges<W: Weight, E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    keys: &ColumnKeys<impl WrittenKeys<E>>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    output: &mut Output<'_>,
) -> Result<u64, E> {
    let fields = fields_of(&["source", "target"], keys, graph.weight_type(), properties.edge_schema(), output)?;
    let mut file = GroupWriter::new(output)?;
    let group_of = |rows: &mut EdgeRows<W>| -> Result<Group, E> {
        let mut columns = keys.cells(&[&rows.sources, &rows.targets])?;
        if graph.weight_type().is_some() {
            columns.push(weight_cells(std::mem::take(&mut rows.weights)));
        }
        if !properties.edge_schema().is_empty() {
            let found = properties.edge_columns(&rows.rows)?;
            columns.extend(found.into_iter().map(|column| Cells::Property(Box::new(column))));
        }
        rows.clear();
        Ok(Group::new(&columns)?)
    };
    pool.in_order(
        pieces_of(graph, GROUP_ROWS),
        EdgeRows::<W>::default,
        |rows, piece, made: &mut Option<Group>| -> Result<(), E> {
            let has_rows = !properties.edge_schema().is_empty();
            for_each_written(graph, piece, has_rows, |vertex| rows.push(graph, properties, vertex))?;
            if rows.len() > 0 {
                *made = Some(group_of(rows)?);
            }
            Ok(())
        },
        |made| Ok(made.take().into_iter().try_for_each(|group| file.add(group))?),
    )?;
    graph.check().map_err(Error::from)?;
    Ok(file.finish(&fields)?)
}

/// Appends row groups to a file.
pub(super) struct GroupWriter<'a, 'o> {
    output: &'a mut Output<'o>,
    at: u64,
    num_rows: u64,
    groups: Vec<GroupPlace>,
}

impl<'a, 'o> GroupWriter<'a, 'o> {
    /// Begins the file.
    pub(super) fn new(output: &'a mut Output<'o>) -> Result<Self> {
        output.write(super::parquet::MAGIC)?;
        Ok(Self { output, at: super::parquet::MAGIC.len() as u64, num_rows: 0, groups: Vec::new() })
    }

    /// Appends a group, if it has rows.
    pub(super) fn add(&mut self, group: Group) -> Result<()> {
        if group.num_rows == 0 {
            return Ok(());
        }
        self.output.write(&group.bytes)?;
        let start = self.at;
        self.at += group.bytes.len() as u64;
        self.num_rows += group.num_rows as u64;
        self.groups.push(group.placed(start));
        Ok(())
    }

    /// Appends the footer. Returns how many rows there are.
    pub(super) fn finish(self, fields: &[Field]) -> Result<u64> {
        self.output.write(&footer(fields, &self.groups))?;
        self.output.flush()?;
        Ok(self.num_rows)
    }
}

fn fields_of<F>(
    names: &[&str],
    keys: &ColumnKeys<F>,
    weight_type: Option<WeightType>,
    properties: &PropertySchema,
    output: &Output<'_>,
) -> Result<Vec<Field>> {
    let field = |name: &str, kind| Field { name: name.to_owned(), kind };
    let mut fields: Vec<Field> = names.iter().map(|name| field(name, keys.kind())).collect();
    fields.extend(weight_type.map(|weight_type| {
        let kind = match weight_type {
            WeightType::U32 => FieldKind::Unsigned32,
            WeightType::I64 => FieldKind::Integer { is_unsigned: false },
            WeightType::F32 => FieldKind::Float32,
            WeightType::F64 => FieldKind::Float64,
        };
        field("weight", kind)
    }));
    let taken: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    refuse_clash(&taken, properties, output)?;
    for (name, property_type) in properties.iter() {
        fields.push(field(name, FieldKind::Property(property_type)));
    }
    Ok(fields)
}

fn weight_cells<W: Weight>(weights: Vec<W>) -> Cells {
    match W::TYPE {
        WeightType::U32 => Cells::Unsigned32(bytemuck::cast_vec(weights)),
        WeightType::I64 => Cells::Integers(bytemuck::cast_vec(weights)),
        WeightType::F32 => Cells::Float32(bytemuck::cast_vec(weights)),
        WeightType::F64 => Cells::Float64(bytemuck::cast_vec(weights)),
    }
}

/// Keys as cells.
enum ColumnKeys<F> {
    /// The ids are the keys.
    Ids,
    /// By vertex; by their bits, if one needs all 64.
    Integers {
        by_vertex: Vec<i64>,
        is_unsigned: bool,
    },
    Text(F),
}

impl<F> ColumnKeys<F> {
    fn kind(&self) -> FieldKind {
        match self {
            Self::Ids => FieldKind::Integer { is_unsigned: false },
            Self::Integers { is_unsigned, .. } => FieldKind::Integer { is_unsigned: *is_unsigned },
            Self::Text(_) => FieldKind::Text,
        }
    }
}

impl<F> ColumnKeys<F> {
    fn new<E: From<Error> + Send>(graph: &impl Graph, kind: KeyKind, keys: F, pool: &Pool) -> Result<Self, E>
    where
        F: WrittenKeys<E>,
    {
        if kind == KeyKind::String {
            return Ok(Self::Text(keys));
        }
        // No table is made while the keys are the ids, as dense keys are.
        let (mut by_vertex, mut num_ids) = (Vec::new(), 0_i64);
        pool.in_order(
            0..graph.vertex_bound().div_ceil(GROUP_ROWS),
            Vec::new,
            |text, piece, made: &mut Vec<i64>| -> Result<(), E> {
                let end = graph.vertex_bound().min((piece + 1) * GROUP_ROWS);
                let vertices = (piece * GROUP_ROWS) as VertexId..end as VertexId;
                let mut key = |vertex: VertexId| -> Result<i64, E> {
                    if !graph.is_live(vertex) {
                        return Ok(vertex.into());
                    }
                    text.clear();
                    keys(vertex, text)?;
                    let key = parse_u64(text).map(|key| key as i64);
                    key.ok_or_else(|| Error::Parameter(format!("the key of vertex {vertex} is no number")).into())
                };
                for vertex in vertices {
                    made.push(key(vertex)?);
                }
                Ok(())
            },
            |keys| {
                if by_vertex.is_empty() && keys.iter().copied().eq(num_ids..num_ids + keys.len() as i64) {
                    num_ids += keys.len() as i64;
                    keys.clear();
                    return Ok(());
                }
                if by_vertex.is_empty() {
                    by_vertex.reserve_exact(graph.vertex_bound());
                    by_vertex.extend(0..num_ids);
                }
                by_vertex.append(keys);
                Ok(())
            },
        )?;
        if by_vertex.is_empty() {
            return Ok(Self::Ids);
        }
        let is_unsigned = by_vertex.iter().any(|&key| key < 0);
        Ok(Self::Integers { by_vertex, is_unsigned })
    }

    /// The keys of columns of vertices, which share a dictionary's memory but not the dictionary.
    fn cells<E: From<Error>>(&self, columns: &[&[VertexId]]) -> Result<Vec<Cells>, E>
    where
        F: WrittenKeys<E>,
    {
        let cells = columns.iter().map(|vertices| match self {
            Self::Ids => Ok(Cells::Integers(vertices.iter().map(|&vertex| vertex.into()).collect())),
            Self::Integers { by_vertex, .. } => {
                Ok(Cells::Integers(vertices.iter().map(|&vertex| by_vertex[vertex as usize]).collect()))
            }
            Self::Text(keys) => dictionary(vertices, keys),
        });
        cells.collect()
    }
}

/// The keys of vertices as a dictionary and places in it.
pub(super) fn dictionary<E: From<Error>>(vertices: &[VertexId], keys: &impl WrittenKeys<E>) -> Result<Cells, E> {
    let (mut entries, mut num_entries) = (Vec::new(), 0_u32);
    let mut places: HashMap<VertexId, u32> = HashMap::new();
    let mut indices = Vec::with_capacity(vertices.len());
    let mut last = None;
    for &vertex in vertices {
        if let Some((known, index)) = last
            && known == vertex
        {
            indices.push(index);
            continue;
        }
        let index = match places.get(&vertex) {
            Some(&index) => index,
            None => {
                let start = entries.len();
                entries.extend([0; 4]);
                keys(vertex, &mut entries)?;
                let len = (entries.len() - start - 4) as u32;
                entries[start..start + 4].copy_from_slice(&len.to_le_bytes());
                places.insert(vertex, num_entries);
                num_entries += 1;
                num_entries - 1
            }
        };
        last = Some((vertex, index));
        indices.push(index);
    }
    Ok(Cells::Indexed { entries, num_entries: num_entries as usize, indices })
}
