//! Edge properties during a load, and the file of their rows.
//!
//! While blocks are read, the number of edges in earlier blocks is unknown, so edges carry their indexes in their
//! blocks. After the last block, the indexes become rows in input order. Values stay in memory up to a quarter of the
//! budget for edges; further blocks go to a scratch file.
//!
//! If memory allows, the values wait for the lists and are written in the order of the out-lists ([`RowNumbers`]).
//! Otherwise they are written at once, in input order.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_graph::property::{ColumnBuilder, DistinctStrings, PropertyColumn, PropertySchema, PropertyType, TypedArray};
use anden_snapshots::TempFile;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder};
use parking_lot::Mutex;

use super::Load;
use super::arcs::{LoadArc, Payload};
use super::row_numbers::RowNumbers;
use crate::{Error, Result};

/// Property values may take one part in this many of the memory for edges.
const MEMORY_SHARE: u64 = 4;
/// Rows that one thread gathers at once: one column of them fits a second-level cache.
const GATHER_ROWS: usize = 64 << 10;
/// Memory of a row of a string column during gathering, beside its text: an old and a new code, and a slot in the table
/// of distinct strings.
const CODE_BYTES: u64 = 24;

/// The values of all edges while they are read.
pub(crate) struct RowStore {
    schema: PropertySchema,
    /// Bytes of values in memory.
    held: AtomicU64,
    state: Mutex<RowStoreState>,
}

#[derive(Default)]
struct RowStoreState {
    blocks: Vec<RowBlock>,
    /// The scratch file for values that do not fit in memory, and its bytes.
    spilled: Option<TempFile>,
    num_spilled: u64,
}

/// The values of all edges, after the input is read.
pub(crate) struct InputRows {
    schema: PropertySchema,
    /// Bytes of values in memory.
    held: u64,
    /// In input order.
    blocks: Vec<RowBlock>,
    spilled: Option<TempFile>,
}

/// The rows of one block of the input.
struct RowBlock {
    sequence: u64,
    num_rows: usize,
    values: RowBlockValues,
}

enum RowBlockValues {
    Memory(Vec<PropertyColumn>),
    /// The start of the first column in the scratch file, and the end of each column.
    File(u64, Vec<u64>),
}

/// The first row of each block, by the block's position in the input.
pub(crate) struct RowBases(Vec<(u64, u64)>);

impl RowStore {
    pub(crate) fn new(schema: &PropertySchema) -> Self {
        Self { schema: schema.clone(), held: AtomicU64::new(0), state: Mutex::default() }
    }

    /// Bytes of values in memory.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes the values of a block of `num_rows` edges. `room` is the memory for edges.
    pub(crate) fn add(
        &self,
        load: &Load<'_>,
        sequence: u64,
        num_rows: usize,
        columns: Vec<PropertyColumn>,
        room: u64,
    ) -> Result<()> {
        if num_rows == 0 {
            return Ok(());
        }
        let fits = columns.len() == self.schema.len() && columns.iter().all(|column| column.len() == num_rows);
        if !fits {
            return Err(Error::internal(format!("{num_rows} edges came with properties of another number of edges")));
        }
        // Strings are looked up here, by several threads, not by the one thread that writes the rows.
        let columns: Vec<_> = columns.into_iter().map(PropertyColumn::with_dictionary).collect();
        let num_bytes: usize = columns.iter().map(PropertyColumn::num_bytes).sum();
        // Added before the comparison, so that all workers together stay within the share.
        let held = self.held.fetch_add(num_bytes as u64, Ordering::Relaxed) + num_bytes as u64;
        let values = if held <= room / MEMORY_SHARE {
            RowBlockValues::Memory(columns)
        } else {
            self.held.fetch_sub(num_bytes as u64, Ordering::Relaxed);
            self.spill(load, columns)?
        };
        let mut state = self.state.lock();
        state.blocks.push(RowBlock { sequence, num_rows, values });
        Ok(())
    }

    /// Writes values to the scratch file.
    fn spill(&self, load: &Load<'_>, columns: Vec<PropertyColumn>) -> Result<RowBlockValues> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for column in columns {
            encode(&column, &mut bytes);
            ends.push(bytes.len() as u64);
        }
        // Encoded before the lock, so that workers wait for the write only.
        let mut state = self.state.lock();
        let start = state.num_spilled;
        let file = match &mut state.spilled {
            Some(file) => file,
            none => none.insert(load.builder.temp_file("rows")?),
        };
        file.write_at(start, &bytes)?;
        state.num_spilled += bytes.len() as u64;
        Ok(RowBlockValues::File(start, ends.into_iter().map(|end| start + end).collect()))
    }

    /// Ends the input.
    pub(crate) fn finish(self) -> InputRows {
        let RowStoreState { mut blocks, spilled, .. } = self.state.into_inner();
        // The order of the input makes rows independent of the number of workers.
        blocks.sort_unstable_by_key(|block| block.sequence);
        InputRows { schema: self.schema, held: self.held.into_inner(), blocks, spilled }
    }
}

impl InputRows {
    fn num_rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.num_rows as u64).sum()
    }

    /// The first row of each block.
    pub(crate) fn bases(&self) -> RowBases {
        let mut end = 0;
        let base = |block: &RowBlock| {
            let base = end;
            end += block.num_rows as u64;
            (block.sequence, base)
        };
        RowBases(self.blocks.iter().map(base).collect())
    }

    /// New row numbers in the order of the out-lists. `None` if the values cannot wait in memory: first beside
    /// `arc_bytes` of arcs, later with one column in two orders. `room` is the memory for edges.
    pub(crate) fn numbers(&self, arc_bytes: u64, room: u64) -> Option<RowNumbers> {
        let num_rows = self.num_rows();
        // Values in a scratch file are read in input order only.
        if self.schema.is_empty() || self.spilled.is_some() || num_rows > RowNumbers::MAX_ROWS {
            return None;
        }
        let number_bytes = num_rows * RowNumbers::ROW_BYTES;
        let largest = (0..).zip(self.schema.iter()).map(|(place, (_, property_type))| {
            let code_bytes = if property_type.stored() == PropertyType::String { CODE_BYTES } else { 0 };
            let values = self.blocks.iter().filter_map(|block| block.values.in_memory()?.get(place));
            values.map(PropertyColumn::num_bytes).sum::<usize>() as u64 + num_rows * code_bytes
        });
        // Only one column is gathered at a time, so the largest one decides.
        let gather_bytes = largest.max().unwrap_or(0) + number_bytes;
        let needed = self.held + number_bytes + arc_bytes.max(gather_bytes);
        (needed <= room).then(|| RowNumbers::new(num_rows as usize))
    }

    /// Writes the rows in the order of `numbers`, without rows that have none; otherwise in input order.
    pub(crate) fn write(mut self, load: &Load<'_>, numbers: Option<RowNumbers>) -> Result<()> {
        // A split by time needs rows during the load, also in a graph without rows.
        if !load.options.graph.has_rows() {
            return Ok(());
        }
        load.progress.stage("properties", None);
        if let Some(numbers) = numbers {
            self.arrange(load, &numbers.into_order())?;
        }
        let num_rows = self.num_rows();
        let Self { schema, blocks, spilled, .. } = self;
        let bytes = spilled.as_ref().map(TempFile::read).transpose()?;
        let types: Vec<PropertyType> = schema.iter().map(|(_, property_type)| property_type).collect();
        load.builder.write_edge_rows(&schema, num_rows, &|place, take| {
            for block in &blocks {
                load.progress.check()?;
                match &block.values {
                    RowBlockValues::Memory(columns) => take(&columns[place])?,
                    RowBlockValues::File(start, ends) => {
                        let start = if place == 0 { *start } else { ends[place - 1] };
                        let bytes = bytes.as_ref().and_then(|bytes| bytes.slice(start..ends[place]));
                        let column = bytes.and_then(|bytes| decode(types[place], block.num_rows, bytes.as_slice()));
                        let lost = || anden_snapshots::Error::Input("a scratch file changed while it was read".into());
                        take(&column.ok_or_else(lost)?)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Replaces the blocks, all in memory, by blocks of the input rows `order`.
    ///
    /// Cost: copies each value twice, the second time in random order.
    fn arrange(&mut self, load: &Load<'_>, order: &[u32]) -> Result<()> {
        let mut arranged: Vec<Vec<PropertyColumn>> = vec![Vec::new(); order.len().div_ceil(GATHER_ROWS)];
        // Column by column, so that only one column is in memory twice.
        for (place, (_, property_type)) in self.schema.iter().enumerate() {
            load.progress.check()?;
            let column = joined(property_type, &mut self.blocks, place)?;
            let parts = load.pool.map_chunks(0..order.len(), GATHER_ROWS, |_, rows| column.gather(&order[rows]));
            arranged.iter_mut().zip(parts).for_each(|(columns, part)| columns.push(part));
        }
        let block = |(sequence, columns): (u64, Vec<PropertyColumn>)| {
            let num_rows = columns.first().map_or(0, PropertyColumn::len);
            RowBlock { sequence, num_rows, values: RowBlockValues::Memory(columns) }
        };
        self.blocks = (0..).zip(arranged).map(block).collect();
        Ok(())
    }
}

impl RowBlockValues {
    fn in_memory(&self) -> Option<&Vec<PropertyColumn>> {
        match self {
            Self::Memory(columns) => Some(columns),
            Self::File(..) => None,
        }
    }

    /// Takes a column out of the block.
    fn take(&mut self, place: usize, property_type: PropertyType) -> PropertyColumn {
        let none = PropertyColumn::nulls(property_type, 0);
        match self {
            Self::Memory(columns) => std::mem::replace(&mut columns[place], none),
            Self::File(..) => none,
        }
    }
}

/// One column of all blocks. Each block's part is freed after its copy, so that the values are in memory once.
fn joined(property_type: PropertyType, blocks: &mut [RowBlock], place: usize) -> Result<PropertyColumn> {
    let is_coded = |block: &RowBlock| {
        let column = block.values.in_memory().map(|columns| columns[place].values());
        matches!(column, Some(TypedArray::Coded { .. }))
    };
    let has_codes = blocks.iter().any(is_coded);
    let parts = blocks.iter_mut().map(|block| block.values.take(place, property_type));
    if !has_codes {
        let mut column = ColumnBuilder::new(property_type);
        for part in parts {
            column.append(&part)?;
        }
        return Ok(column.finish());
    }
    // Each block has its own dictionary. Without a common one, the strings would take more memory than now.
    let mut distinct = DistinctStrings::new(u32::MAX as usize, usize::MAX);
    let (mut codes, mut nulls, mut part_codes) = (Vec::new(), NullBufferBuilder::new(0), Vec::new());
    for part in parts {
        if !distinct.codes(&part, &mut part_codes) {
            return Err(Error::too_many("distinct strings of a property", u32::MAX.into()));
        }
        codes.extend_from_slice(&part_codes);
        match part.validity() {
            Some(part_nulls) => nulls.append_buffer(part_nulls),
            None => nulls.append_n_non_nulls(part.len()),
        }
    }
    Ok(PropertyColumn::from_codes(codes, &distinct.into_texts()?, nulls.finish())?)
}

impl RowBases {
    /// Turns the block indexes of edges into rows; `sequence` is the position of the block.
    pub(crate) fn apply<P: Payload>(&self, sequence: u64, edges: &mut [LoadArc<P>]) {
        let place = self.0.binary_search_by_key(&sequence, |(known, _)| *known);
        // A block without edges has no base, and no edge asks for it.
        let base = place.map_or(0, |place| self.0[place].1);
        for edge in edges {
            let payload = edge.payload();
            *edge = LoadArc::from_key(edge.key(), payload.with_row(payload.data().row + base));
        }
    }
}

/// Appends a column: validity bits, codes, offsets and bytes, each after its length.
fn encode(column: &PropertyColumn, to: &mut Vec<u8>) {
    let nulls = column.validity().map_or(Vec::new(), |nulls| nulls.inner().sliced().to_vec());
    let (codes, (offsets, bytes)): (&[u32], _) = match column.values() {
        TypedArray::Coded { codes, texts } => (codes.values(), (texts.value_offsets(), texts.value_data())),
        _ => (&[], column.pieces().unwrap_or_default()),
    };
    let bytes = column.fixed_bytes().unwrap_or(Cow::Borrowed(bytes));
    for part in [&nulls, bytemuck::cast_slice(codes), bytemuck::cast_slice(offsets), &bytes] {
        to.extend_from_slice(&(part.len() as u64).to_le_bytes());
        to.extend_from_slice(part);
    }
}

/// The inverse of [`encode`]; `None` if the bytes are malformed.
fn decode(property_type: PropertyType, num_rows: usize, mut bytes: &[u8]) -> Option<PropertyColumn> {
    let mut part = || -> Option<&[u8]> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        bytes = rest;
        Some(part)
    };
    let (nulls, codes, offsets, values) = (part()?, part()?, part()?, part()?);
    let nulls = match nulls.len() {
        0 => None,
        // Arrow's buffer panics if it is shorter than its length in bits.
        len if 8 * len < num_rows => return None,
        _ => Some(NullBuffer::new(BooleanBuffer::new(Buffer::from(nulls), 0, num_rows))),
    };
    let pieces = |nulls: Option<NullBuffer>| {
        let offsets = bytemuck::pod_collect_to_vec(offsets);
        PropertyColumn::from_buffers(property_type, offsets, values.to_vec(), nulls).ok()
    };
    let column = match property_type.stored() {
        // A column with codes went to the file with its dictionary.
        PropertyType::String if !codes.is_empty() => {
            let strings = pieces(None)?;
            let TypedArray::String(texts) = strings.values() else { return None };
            PropertyColumn::from_codes(bytemuck::pod_collect_to_vec(codes), texts, nulls).ok()
        }
        PropertyType::String | PropertyType::Bytes => pieces(nulls),
        _ => PropertyColumn::from_fixed_bytes(property_type, values, nulls).ok(),
    };
    column.filter(|column| column.len() == num_rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_graph::property::{ColumnBuilder, PropertyValue};

    #[test]
    fn columns_come_back_from_bytes() {
        for (property_type, _) in PropertyType::ALL {
            for num_rows in [0_usize, 1, 70] {
                let mut column = ColumnBuilder::new(property_type);
                for row in 0..num_rows {
                    let text = format!("{row}ü");
                    let value = match property_type {
                        _ if row % 3 == 1 => PropertyValue::Null,
                        PropertyType::Boolean => PropertyValue::Boolean(row % 2 == 0),
                        PropertyType::I64 => PropertyValue::I64(row as i64),
                        PropertyType::U64 => PropertyValue::U64(row as u64),
                        PropertyType::F32 => PropertyValue::F32(row as f32),
                        PropertyType::F64 => PropertyValue::F64(row as f64),
                        PropertyType::Date => PropertyValue::Date(row as i32),
                        PropertyType::Timestamp => PropertyValue::Timestamp(row as i64),
                        PropertyType::String | PropertyType::List(_) => PropertyValue::String(&text),
                        PropertyType::Bytes => PropertyValue::Bytes(text.as_bytes()),
                    };
                    column.push(value).unwrap();
                }
                let column = column.finish();
                // At any alignment in a file.
                let mut bytes = vec![7];
                encode(&column, &mut bytes);
                assert_eq!(
                    decode(property_type, num_rows, &bytes[1..]),
                    Some(column.clone()),
                    "{property_type} {num_rows}"
                );
                assert_eq!(decode(property_type, num_rows + 1, &bytes[1..]), None);
                let twice: Vec<u32> = (0..1_000).map(|row| row % num_rows.max(1) as u32).collect();
                let twice = column.gather_or_null(&twice).with_dictionary();
                let is_coded = matches!(twice.values(), TypedArray::Coded { .. });
                assert_eq!(is_coded, property_type == PropertyType::String);
                bytes.clear();
                encode(&twice, &mut bytes);
                assert_eq!(decode(property_type, 1_000, &bytes), Some(twice));
            }
        }
    }
}
