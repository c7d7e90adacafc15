//! Writes graphs as Parquet: a file of edges, and one of vertices.
//!
//! Several threads encode row groups, which are written in order. So the file does not depend on the number of threads.
//! Numeric keys are 64-bit integers, signed if all keys fit. Weights have their type in the graph. Properties may be
//! null, and lists are columns of lists.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{Direction, Graph, Weight, WeightType, WeightedEdges};
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float32Array, Float64Array, Int64Array, LargeStringArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use crate::edge_rows::{EdgeRows, WrittenProperties, for_each_written, pieces_of};
use crate::number::parse_u64;
use crate::options::KeyKind;
use crate::write::{Output, refuse_clash};
use crate::{Error, Result};

/// The approximate number of rows of a row group, and the largest number of rows of a page.
pub(crate) const GROUP_ROWS: usize = 256 << 10;
const PAGE_ROWS: usize = 64 << 10;

/// Bytes per row that a worker holds: the rows of a group (8), their keys (16), the positions of a column's values while
/// it is encoded (8), and three encoded groups (30). One group is in the making, two wait for the writer.
const ROW_BYTES: u64 = 62;
/// The additional bytes for a weight, or for a property that is not text.
const CELL_BYTES: u64 = 48;

/// The bytes that each worker of [`write_parquet_edges`] holds, without the text of keys, and without text and lists of
/// properties.
///
/// Cost: reads every degree.
pub fn parquet_worker_bytes(graph: &impl WeightedEdges, properties: &PropertySchema) -> u64 {
    let num_arcs =
        |piece: &Range<VertexId>| piece.clone().map(|vertex| graph.degree(Direction::Out, vertex) as u64).sum();
    let most_rows = pieces_of(graph, GROUP_ROWS).iter().map(num_arcs).max().unwrap_or(0).max(GROUP_ROWS as u64);
    let num_cells = u64::from(graph.weight_type().is_some()) + properties.len() as u64;
    most_rows * (ROW_BYTES + num_cells * CELL_BYTES)
}

/// A function that appends the key of a vertex as text to the given bytes.
pub trait WrittenKeys<E>: Fn(VertexId, &mut Vec<u8>) -> Result<(), E> + Sync {}

impl<E, F: Fn(VertexId, &mut Vec<u8>) -> Result<(), E> + Sync> WrittenKeys<E> for F {}

/// Writes the edges: `source`, `target`, `weight` if edges have weights, and their properties. Returns the number of
/// edges. An undirected edge is written once, with its lower id first.
///
/// Memory: [`parquet_worker_bytes`] per thread, and 8 bytes a vertex if keys are numbers other than the ids.
///
/// # Errors
/// Those of keys, properties and output. A property has the name of another column.
pub fn write_parquet_edges<E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    kind: KeyKind,
    keys: impl WrittenKeys<E>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    output: &mut Output<'_>,
) -> Result<u64, E> {
    let keys = ColumnKeys::new(graph, kind, keys, pool)?;
    write_edges_to(graph, &keys, properties, pool, ["source", "target"], output)
}

/// Writes the vertices: `id`, and their properties. Returns their number.
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
    write_vertices_to(graph, &ColumnKeys::new(graph, kind, keys, pool)?, properties, pool, output)
}

pub(crate) fn write_vertices_to<E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    keys: &ColumnKeys<impl WrittenKeys<E>>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    place: impl TablePlace,
) -> Result<u64, E> {
    let fields = fields_of(&["id"], keys, None, properties.vertex_schema(), &place.path())?;
    let (mut file, encoder) = place.begin(fields)?;
    pool.in_order(
        0..graph.vertex_bound().div_ceil(GROUP_ROWS),
        || (),
        |(), piece, made: &mut Option<EncodedRows>| -> Result<(), E> {
            let ids = (piece * GROUP_ROWS) as VertexId..graph.vertex_bound().min((piece + 1) * GROUP_ROWS) as VertexId;
            let vertices: Vec<VertexId> = ids.filter(|&vertex| graph.is_live(vertex)).collect();
            let mut columns = keys.arrays(&[&vertices])?;
            columns.extend(property_arrays(properties.vertex_schema(), &properties.vertex_columns(&vertices)?)?);
            *made = Some(encoder.encode(&columns)?);
            Ok(())
        },
        |made| Ok(made.take().map_or(Ok(()), |rows| file.add(rows))?),
    )?;
    graph.check().map_err(Error::from)?;
    Ok(file.finish()?)
}

/// `ends` are the names of the columns of sources and targets.
pub(crate) fn write_edges_to<E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    keys: &ColumnKeys<impl WrittenKeys<E>>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    ends: [&str; 2],
    place: impl TablePlace,
) -> Result<u64, E> {
    let fields = fields_of(&ends, keys, graph.weight_type(), properties.edge_schema(), &place.path())?;
    let (file, encoder) = place.begin(fields)?;
    match graph.weight_type() {
        None | Some(WeightType::U32) => write_edges::<u32, E>(graph, keys, properties, pool, file, &encoder),
        Some(WeightType::I64) => write_edges::<i64, E>(graph, keys, properties, pool, file, &encoder),
        Some(WeightType::F32) => write_edges::<f32, E>(graph, keys, properties, pool, file, &encoder),
        Some(WeightType::F64) => write_edges::<f64, E>(graph, keys, properties, pool, file, &encoder),
    }
}

fn write_edges<W: Weight, E: From<Error> + Send>(
    graph: &impl WeightedEdges,
    keys: &ColumnKeys<impl WrittenKeys<E>>,
    properties: &impl WrittenProperties<E>,
    pool: &Pool,
    mut file: impl RowFile,
    encoder: &RowEncoder,
) -> Result<u64, E> {
    let has_rows = !properties.edge_schema().is_empty();
    pool.in_order(
        pieces_of(graph, GROUP_ROWS),
        EdgeRows::<W>::default,
        |rows, piece, made: &mut Option<EncodedRows>| -> Result<(), E> {
            for_each_written(graph, piece, has_rows, |vertex| rows.push(graph, properties, vertex))?;
            let mut columns = keys.arrays(&[&rows.sources, &rows.targets])?;
            if graph.weight_type().is_some() {
                columns.push(weights_of(std::mem::take(&mut rows.weights)));
            }
            if has_rows {
                columns.extend(property_arrays(properties.edge_schema(), &properties.edge_columns(&rows.rows)?)?);
            }
            rows.clear();
            *made = Some(encoder.encode(&columns)?);
            Ok(())
        },
        |made| Ok(made.take().map_or(Ok(()), |rows| file.add(rows))?),
    )?;
    graph.check().map_err(Error::from)?;
    Ok(file.finish()?)
}

/// Receives row groups in order.
pub(crate) trait RowFile: Send {
    /// Appends a row group, unless it has no rows.
    fn add(&mut self, rows: EncodedRows) -> Result<()>;

    /// Completes the file or files. Returns the number of rows.
    fn finish(self) -> Result<u64>;
}

/// The place of a table: a file, or a folder of parts.
pub(crate) trait TablePlace {
    type File: RowFile;

    /// The path, for messages.
    fn path(&self) -> PathBuf;

    /// Begins a table with these columns.
    fn begin(self, fields: Vec<Field>) -> Result<(Self::File, RowEncoder)>;
}

impl<'a, 'o> TablePlace for &'a mut Output<'o> {
    type File = ParquetTable<&'a mut Output<'o>>;

    fn path(&self) -> PathBuf {
        Output::path(self).to_owned()
    }

    fn begin(self, fields: Vec<Field>) -> Result<(Self::File, RowEncoder)> {
        ParquetTable::begin(self, fields)
    }
}

/// The bytes of a file.
pub(crate) trait ByteOutput: Send {
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Ends the output after its last byte.
    fn complete(&mut self) -> Result<()>;
}

impl ByteOutput for &mut Output<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)
    }

    fn complete(&mut self) -> Result<()> {
        self.flush()
    }
}

/// A file to which row groups are appended in order.
pub(crate) struct ParquetTable<O: ByteOutput> {
    writer: SerializedFileWriter<ParquetSink<O>>,
    num_rows: u64,
}

/// Encodes row groups, on any thread.
pub(crate) struct RowEncoder {
    fields: Vec<Field>,
    columns: ArrowRowGroupWriterFactory,
}

/// The columns of a row group, encoded.
pub(crate) struct EncodedRows {
    num_rows: usize,
    columns: Vec<ArrowColumnChunk>,
}

/// An output as the crate writes to it. An error of the output passes through the crate.
struct ParquetSink<O>(O);

impl<O: ByteOutput> Write for ParquetSink<O> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.append(bytes).map(|()| bytes.len()).map_err(std::io::Error::other)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        // The output has a buffer of its own, which `finish` empties.
        Ok(())
    }
}

fn failed(error: ParquetError) -> Error {
    let refused = |error: &dyn std::fmt::Display| Error::Parameter(format!("cannot write Parquet: {error}"));
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>().map(|error| error.downcast()) {
            Ok(Ok(error)) => error,
            Ok(Err(error)) => refused(&error),
            Err(error) => refused(&error),
        },
        error => refused(&error),
    }
}

impl<O: ByteOutput> ParquetTable<O> {
    /// Begins a file with these columns.
    pub(crate) fn begin(output: O, fields: Vec<Field>) -> Result<(Self, RowEncoder)> {
        let options = ArrowWriterOptions::new()
            .with_properties(properties_of(&fields))
            .with_schema_root("schema".into())
            .with_skip_arrow_metadata(true);
        let schema = Arc::new(Schema::new(fields.clone()));
        let writer = ArrowWriter::try_new_with_options(ParquetSink(output), schema, options);
        let (writer, columns) = writer.and_then(ArrowWriter::into_serialized_writer).map_err(failed)?;
        Ok((Self { writer, num_rows: 0 }, RowEncoder { fields, columns }))
    }

    /// The number of rows until now.
    pub(crate) fn num_rows(&self) -> u64 {
        self.num_rows
    }
}

impl<O: ByteOutput> RowFile for ParquetTable<O> {
    fn add(&mut self, rows: EncodedRows) -> Result<()> {
        if rows.num_rows == 0 {
            return Ok(());
        }
        self.num_rows += rows.num_rows as u64;
        let mut group = self.writer.next_row_group().map_err(failed)?;
        rows.columns.into_iter().try_for_each(|column| column.append_to_row_group(&mut group)).map_err(failed)?;
        group.close().map(|_| ()).map_err(failed)
    }

    fn finish(self) -> Result<u64> {
        self.writer.into_inner().map_err(failed)?.0.complete()?;
        Ok(self.num_rows)
    }
}

impl RowEncoder {
    /// Encodes the columns of a row group.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<EncodedRows> {
        let num_rows = columns.first().map_or(0, |column| column.len());
        let writers = self.columns.create_column_writers(0).map_err(failed)?;
        let encoded = writers.into_iter().zip(&self.fields).zip(columns).map(|((mut writer, field), column)| {
            compute_leaves(field, column)?.iter().try_for_each(|leaf| writer.write(leaf))?;
            writer.close()
        });
        Ok(EncodedRows { num_rows, columns: encoded.collect::<Result<_, _>>().map_err(failed)? })
    }
}

/// Keys and `i64` weights are stored as differences, which are smaller than compressed values. Text has a dictionary.
/// There are no statistics.
fn properties_of(fields: &[Field]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("anden version ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        // The items of lists are called `element`, as the specification asks. No other type of ours changes.
        .set_coerce_types(true);
    for field in fields {
        let path = ColumnPath::new(vec![field.name().clone()]);
        properties = match field.data_type() {
            DataType::Int64 | DataType::UInt64 if !field.is_nullable() => properties
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_compression(path, Compression::UNCOMPRESSED),
            // Keys of vertices repeat, however many there are.
            DataType::Dictionary(..) => properties
                .set_column_dictionary_enabled(path.clone(), true)
                .set_column_dictionary_page_size_limit(path, i32::MAX as usize),
            DataType::LargeUtf8 => properties.set_column_dictionary_enabled(path, true),
            DataType::LargeList(item) if *item.data_type() == DataType::LargeUtf8 => {
                let path = [field.name(), "list", "element"].map(str::to_owned);
                properties.set_column_dictionary_enabled(ColumnPath::new(path.to_vec()), true)
            }
            _ => properties,
        };
    }
    properties.build()
}

/// A column of a property.
pub(crate) fn property_field(name: &str, property_type: PropertyType) -> Field {
    Field::new(name, property_type.arrow_type(), true)
}

/// The values of properties: lists as lists, and text perhaps with a dictionary.
fn property_arrays(schema: &PropertySchema, columns: &[PropertyColumn]) -> Result<Vec<ArrayRef>> {
    schema.iter().zip(columns).map(|((_, property_type), column)| Ok(column.array_of(property_type)?)).collect()
}

/// A column of keys.
pub(crate) fn key_field(name: &str, kind: KeyKind, is_unsigned: bool) -> Field {
    let data_type = match (kind, is_unsigned) {
        (KeyKind::Integer, false) => DataType::Int64,
        (KeyKind::Integer, true) => DataType::UInt64,
        (KeyKind::String, _) => DataType::Dictionary(DataType::UInt32.into(), DataType::LargeUtf8.into()),
    };
    Field::new(name, data_type, false)
}

fn fields_of<F>(
    names: &[&str],
    keys: &ColumnKeys<F>,
    weight_type: Option<WeightType>,
    properties: &PropertySchema,
    path: &Path,
) -> Result<Vec<Field>> {
    let (kind, is_unsigned) = keys.kind();
    let mut fields: Vec<Field> = names.iter().map(|name| key_field(name, kind, is_unsigned)).collect();
    fields.extend(weight_type.map(weight_field));
    let taken: Vec<&str> = fields.iter().map(|field| &field.name()[..]).collect();
    refuse_clash(&taken, properties, path)?;
    fields.extend(properties.iter().map(|(name, property_type)| property_field(name, property_type)));
    Ok(fields)
}

/// A column of weights.
pub(crate) fn weight_field(weight_type: WeightType) -> Field {
    let data_type = match weight_type {
        WeightType::U32 => DataType::UInt32,
        WeightType::I64 => DataType::Int64,
        WeightType::F32 => DataType::Float32,
        WeightType::F64 => DataType::Float64,
    };
    Field::new("weight", data_type, false)
}

pub(crate) fn weights_of<W: Weight>(weights: Vec<W>) -> ArrayRef {
    match W::TYPE {
        WeightType::U32 => Arc::new(UInt32Array::from(bytemuck::cast_vec::<W, u32>(weights))),
        WeightType::I64 => Arc::new(Int64Array::from(bytemuck::cast_vec::<W, i64>(weights))),
        WeightType::F32 => Arc::new(Float32Array::from(bytemuck::cast_vec::<W, f32>(weights))),
        WeightType::F64 => Arc::new(Float64Array::from(bytemuck::cast_vec::<W, f64>(weights))),
    }
}

/// The keys of vertices.
pub(crate) enum ColumnKeys<F> {
    /// The ids are the keys.
    Ids,
    /// The keys by vertex, and whether one needs all 64 bits.
    Integers {
        by_vertex: Vec<u64>,
        is_unsigned: bool,
    },
    Text(F),
}

impl<F> ColumnKeys<F> {
    pub(crate) fn new<E: From<Error> + Send>(graph: &impl Graph, kind: KeyKind, keys: F, pool: &Pool) -> Result<Self, E>
    where
        F: WrittenKeys<E>,
    {
        if kind == KeyKind::String {
            return Ok(Self::Text(keys));
        }
        // Builds no table as long as keys equal the ids, as dense keys do.
        let (mut by_vertex, mut num_ids) = (Vec::new(), 0_u64);
        pool.in_order(
            0..graph.vertex_bound().div_ceil(GROUP_ROWS),
            Vec::new,
            |text, piece, made: &mut Vec<u64>| -> Result<(), E> {
                let end = graph.vertex_bound().min((piece + 1) * GROUP_ROWS);
                let vertices = (piece * GROUP_ROWS) as VertexId..end as VertexId;
                let mut key = |vertex: VertexId| -> Result<u64, E> {
                    // Ids without a vertex count as their own keys, so that gaps need no table.
                    if !graph.is_live(vertex) {
                        return Ok(vertex.into());
                    }
                    text.clear();
                    keys(vertex, text)?;
                    let key = parse_u64(text);
                    key.ok_or_else(|| Error::Parameter(format!("the key of vertex {vertex} is no number")).into())
                };
                for vertex in vertices {
                    made.push(key(vertex)?);
                }
                Ok(())
            },
            |keys| {
                if by_vertex.is_empty() && keys.iter().copied().eq(num_ids..num_ids + keys.len() as u64) {
                    num_ids += keys.len() as u64;
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
        let is_unsigned = by_vertex.iter().any(|&key| i64::try_from(key).is_err());
        Ok(Self::Integers { by_vertex, is_unsigned })
    }

    /// The type of the keys, and whether numbers need all 64 bits.
    pub(crate) fn kind(&self) -> (KeyKind, bool) {
        match self {
            Self::Ids => (KeyKind::Integer, false),
            Self::Integers { is_unsigned, .. } => (KeyKind::Integer, *is_unsigned),
            Self::Text(_) => (KeyKind::String, false),
        }
    }

    /// The keys of columns of vertices.
    pub(crate) fn arrays<E: From<Error>>(&self, columns: &[&[VertexId]]) -> Result<Vec<ArrayRef>, E>
    where
        F: WrittenKeys<E>,
    {
        let array = |vertices: &&[VertexId]| match self {
            Self::Ids => Ok(whole_numbers(vertices.iter().map(|&vertex| vertex.into()), false)),
            Self::Integers { by_vertex, is_unsigned } => {
                Ok(whole_numbers(vertices.iter().map(|&vertex| by_vertex[vertex as usize]), *is_unsigned))
            }
            Self::Text(keys) => text_keys(vertices, keys),
        };
        columns.iter().map(array).collect()
    }
}

/// Keys that are numbers. All fit 63 bits unless they are unsigned.
pub(crate) fn whole_numbers(numbers: impl Iterator<Item = u64>, is_unsigned: bool) -> ArrayRef {
    match is_unsigned {
        true => Arc::new(UInt64Array::from_iter_values(numbers)),
        false => Arc::new(Int64Array::from_iter_values(numbers.map(|number| number as i64))),
    }
}

/// The keys of vertices as a dictionary and indices into it.
pub(crate) fn text_keys<E: From<Error>>(vertices: &[VertexId], keys: &impl WrittenKeys<E>) -> Result<ArrayRef, E> {
    let (mut offsets, mut bytes) = (vec![0], Vec::new());
    let mut places: HashMap<VertexId, u32> = HashMap::new();
    let mut indices = Vec::with_capacity(vertices.len());
    let mut last = None;
    for &vertex in vertices {
        // Sources repeat in edge order, so the last key is compared before the lookup.
        let index = match last.filter(|&(known, _)| known == vertex).map(|(_, index)| index) {
            Some(index) => index,
            None => match places.get(&vertex) {
                Some(&index) => index,
                None => {
                    keys(vertex, &mut bytes)?;
                    offsets.push(bytes.len() as i64);
                    places.insert(vertex, places.len() as u32);
                    places.len() as u32 - 1
                }
            },
        };
        last = Some((vertex, index));
        indices.push(index);
    }
    let texts = LargeStringArray::try_new(OffsetBuffer::new(offsets.into()), bytes.into(), None);
    let texts = texts.map_err(|error| Error::Parameter(error.to_string()))?;
    let made = DictionaryArray::<UInt32Type>::try_new(indices.into(), Arc::new(texts));
    Ok(Arc::new(made.map_err(|error| Error::Parameter(error.to_string()))?))
}
