//! The properties of edges: rows in the order of the input.
//!
//! While blocks are read, nobody knows how many edges come before them, so edges carry their places in their blocks;
//! once everything is read, the places become rows. The values of a block stay in memory while they take a quarter of
//! the budget, and wait in a scratch file beyond that.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use graph::property::{PropertyColumn, PropertySchema, PropertyType, TypedArray};
use lama::TempFile;

use super::Load;
use super::arcs::{KeyedArc, Payload};
use crate::{Error, Result};

/// The share of the memory for edges that values of properties may take.
const MEMORY_SHARE: u64 = 4;

/// The values of all edges while they are read.
pub(crate) struct RowStore {
    schema: PropertySchema,
    /// Bytes of values in memory.
    held: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: Vec<RowBlock>,
    /// Where values wait that memory has no room for, and how many bytes.
    spilled: Option<TempFile>,
    num_spilled: u64,
}

/// The rows of one block of the input.
struct RowBlock {
    sequence: u64,
    num_rows: usize,
    values: BlockValues,
}

enum BlockValues {
    Memory(Vec<PropertyColumn>),
    /// Where the bytes of the first column start in the scratch file, and where those of each end.
    File(u64, Vec<u64>),
}

/// The first row of each block, by their places in the input.
pub(crate) struct RowBases(Vec<(u64, u64)>);

impl RowStore {
    pub(crate) fn new(schema: &PropertySchema) -> Self {
        Self { schema: schema.clone(), held: AtomicU64::new(0), state: Mutex::default() }
    }

    /// Bytes of values in memory.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes the values of a block of so many edges; `room` is what the memory has for edges.
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
            return Err(Error::Option(format!("{num_rows} edges came with properties of another number of edges")));
        }
        // Here several threads look strings up, so that the one that writes the rows does not.
        let columns: Vec<_> = columns.into_iter().map(PropertyColumn::with_dictionary).collect();
        let num_bytes: usize = columns.iter().map(PropertyColumn::num_bytes).sum();
        let held = self.held.fetch_add(num_bytes as u64, Ordering::Relaxed) + num_bytes as u64;
        let values = if held <= room / MEMORY_SHARE {
            BlockValues::Memory(columns)
        } else {
            self.held.fetch_sub(num_bytes as u64, Ordering::Relaxed);
            self.spill(load, columns)?
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.blocks.push(RowBlock { sequence, num_rows, values });
        Ok(())
    }

    /// Puts values into the scratch file.
    fn spill(&self, load: &Load<'_>, columns: Vec<PropertyColumn>) -> Result<BlockValues> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for column in columns {
            encode(&column, &mut bytes);
            ends.push(bytes.len() as u64);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let start = state.num_spilled;
        let file = match &mut state.spilled {
            Some(file) => file,
            none => none.insert(load.builder.temp_file("rows")?),
        };
        file.write_at(start, &bytes)?;
        state.num_spilled += bytes.len() as u64;
        Ok(BlockValues::File(start, ends.into_iter().map(|end| start + end).collect()))
    }

    /// Writes all rows, in the order of the input.
    pub(crate) fn write(self, load: &Load<'_>) -> Result<RowBases> {
        load.progress.stage("properties", None);
        let State { mut blocks, spilled, .. } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        blocks.sort_unstable_by_key(|block| block.sequence);
        let mut num_rows = 0;
        let mut bases = Vec::with_capacity(blocks.len());
        for block in &blocks {
            bases.push((block.sequence, num_rows));
            num_rows += block.num_rows as u64;
        }
        let bytes = spilled.as_ref().map(TempFile::read).transpose()?;
        let types: Vec<PropertyType> = self.schema.iter().map(|(_, property_type)| property_type).collect();
        load.builder.write_edge_rows(&self.schema, num_rows, &|place, take| {
            for block in &blocks {
                load.progress.check()?;
                match &block.values {
                    BlockValues::Memory(columns) => take(&columns[place])?,
                    BlockValues::File(start, ends) => {
                        let start = if place == 0 { *start } else { ends[place - 1] };
                        let bytes = bytes.as_ref().and_then(|bytes| bytes.slice(start..ends[place]));
                        let column = bytes.and_then(|bytes| decode(types[place], block.num_rows, bytes.as_slice()));
                        let lost = || lama::Error::Input("a scratch file changed while it was read".into());
                        take(&column.ok_or_else(lost)?)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(RowBases(bases))
    }
}

impl RowBases {
    /// Turns the places of edges in the block at this place of the input into rows.
    pub(crate) fn apply<P: Payload>(&self, sequence: u64, edges: &mut [KeyedArc<P>]) {
        let place = self.0.binary_search_by_key(&sequence, |(known, _)| *known);
        let base = place.map_or(0, |place| self.0[place].1);
        for edge in edges {
            let payload = edge.payload();
            *edge = KeyedArc::from_key(edge.key(), payload.with_row(payload.data().row + base));
        }
    }
}

/// Appends a column: the bits of nulls, codes, offsets and bytes, each behind its length.
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

/// The reverse of [`encode`]; `None` where the bytes are no such column.
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
        len if 8 * len < num_rows => return None,
        _ => Some(NullBuffer::new(BooleanBuffer::new(Buffer::from(nulls), 0, num_rows))),
    };
    let pieces = |nulls: Option<NullBuffer>| {
        let offsets = bytemuck::pod_collect_to_vec(offsets);
        PropertyColumn::from_pieces(property_type, offsets, values.to_vec(), nulls).ok()
    };
    let column = match property_type {
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
    use graph::property::{ColumnBuilder, PropertyValue};

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
                        PropertyType::String => PropertyValue::String(&text),
                        PropertyType::Bytes => PropertyValue::Bytes(text.as_bytes()),
                    };
                    column.push(value).unwrap();
                }
                let column = column.finish();
                // Anywhere in a file, whatever its alignment.
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
