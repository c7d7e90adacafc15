//! Vertex properties: from rows of the input to columns by id.
//!
//! Rows wait with their keys until the ids are known. Rows and keys must fit in memory. Columns are made and written
//! one after the other.

use anden_base::VertexId;
use anden_formats::{EdgeBlock, KeyKind};
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertySchema};

use super::Load;
use super::ingest::InputKey;
use super::keys::VertexKeys;
use crate::{Error, Result};

/// Copies of the rows: as they came, one column in input order, and one by id.
pub(crate) const ROW_FACTOR: u64 = 3;

/// Fixed memory of a vertex: the index of its row, a value of the current column, and its validity.
const VERTEX_BYTES: u64 = 4 + 8 + 1;

/// The index of a vertex without a row.
const NO_ROW: u32 = u32::MAX;

/// The rows of one block of the input.
#[derive(Debug)]
pub(crate) struct VertexRows {
    sequence: u64,
    keys: RowKeys,
    /// By property of the input.
    columns: Vec<PropertyColumn>,
}

/// The keys of rows.
#[derive(Debug)]
enum RowKeys {
    Numbers(Vec<u64>),
    Text { text: Vec<u8>, ends: Vec<usize> },
}

impl VertexRows {
    /// The rows of a block; `None` if it has none.
    pub(crate) fn of_block<K: InputKey, W>(block: &mut EdgeBlock<K, W>) -> Option<Self> {
        let columns = std::mem::take(&mut block.vertex_properties);
        if columns.is_empty() || block.vertices.is_empty() {
            return None;
        }
        let keys = match K::KIND {
            KeyKind::Integer => RowKeys::Numbers(block.vertices.iter().map(|key| key.as_u64()).collect()),
            KeyKind::String => {
                // The text of the block goes with the block, so the keys are copied.
                let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(block.vertices.len()));
                for key in &block.vertices {
                    text.extend_from_slice(key.as_text(&block.text));
                    ends.push(text.len());
                }
                RowKeys::Text { text, ends }
            }
        };
        Some(Self { sequence: block.sequence, keys, columns })
    }

    /// Approximate bytes of memory.
    pub(crate) fn num_bytes(&self) -> u64 {
        let keys = match &self.keys {
            RowKeys::Numbers(keys) => 8 * keys.len(),
            RowKeys::Text { text, ends } => text.len() + 8 * ends.len(),
        };
        (keys + self.columns.iter().map(PropertyColumn::num_bytes).sum::<usize>()) as u64
    }

    fn len(&self) -> usize {
        self.columns.first().map_or(0, PropertyColumn::len)
    }
}

/// Writes the properties of all vertices. If a vertex has several rows, the last one counts. Returns the number of
/// repeated rows.
pub(crate) fn write_properties(
    load: &Load<'_>,
    keys: &VertexKeys,
    mut rows: Vec<VertexRows>,
    schema: &PropertySchema,
) -> Result<u64> {
    if schema.is_empty() {
        return Ok(0);
    }
    load.progress.stage("properties", None);
    // In input order, because the last row of a vertex counts.
    rows.sort_unstable_by_key(|rows| rows.sequence);
    let num_rows: usize = rows.iter().map(VertexRows::len).sum();
    // Row numbers are 32 bits wide, and the largest stands for no row.
    if num_rows >= NO_ROW as usize {
        return Err(Error::too_many("rows of vertices", (NO_ROW - 1).into()));
    }
    let row_bytes: u64 = rows.iter().map(VertexRows::num_bytes).sum();
    // Checked again, because the number of vertices is known only now.
    load.budget.check_properties(ROW_FACTOR * row_bytes + VERTEX_BYTES * keys.len())?;
    let mut row_of_id = vec![NO_ROW; keys.len() as usize];
    let (mut row, mut num_repeated) = (0, 0);
    for block in &rows {
        for place in 0..block.len() {
            let id = match &block.keys {
                RowKeys::Numbers(numbers) => keys.find_number(numbers[place]),
                RowKeys::Text { text, ends } => {
                    let start = if place == 0 { 0 } else { ends[place - 1] };
                    keys.find_text(&text[start..ends[place]])
                }
            };
            if let Some(id) = id {
                let earlier = std::mem::replace(&mut row_of_id[id as usize], row);
                num_repeated += u64::from(earlier != NO_ROW);
            }
            row += 1;
        }
    }
    for (place, (name, property_type)) in schema.iter().enumerate() {
        load.progress.check()?;
        let mut column = ColumnBuilder::new(property_type);
        for block in &mut rows {
            // Parts are freed one by one, so that a column is in memory only once.
            let part = block.columns.get_mut(place);
            let part = part.map(|part| std::mem::replace(part, PropertyColumn::nulls(property_type, 0)));
            part.map_or(Ok(()), |part| column.append(&part))?;
        }
        load.builder.add_vertex_property(name, property_type, &column.finish().gather_or_null(&row_of_id))?;
    }
    Ok(num_repeated)
}

impl VertexKeys {
    /// The id of an integer key.
    fn find_number(&self, key: u64) -> Option<VertexId> {
        match self {
            Self::Dense(num_keys) => (key < *num_keys).then_some(key as VertexId),
            Self::Integers { by_id, sorted: None } => by_id.binary_search(&key).ok().map(|id| id as VertexId),
            Self::Integers { by_id, sorted: Some(sorted) } => {
                let rank = sorted.binary_search_by_key(&key, |&id| by_id[id as usize]).ok()?;
                Some(sorted[rank])
            }
            Self::Strings { .. } => None,
        }
    }

    /// The id of a string key.
    fn find_text(&self, key: &[u8]) -> Option<VertexId> {
        let Self::Strings { text, offsets, sorted } = self else { return None };
        let key_of = |id: usize| &text[offsets[id] as usize..offsets[id + 1] as usize];
        let (mut low, mut high) = (0, offsets.len() - 1);
        while low < high {
            let rank = low + (high - low) / 2;
            let id = sorted.as_ref().map_or(rank, |sorted| sorted[rank] as usize);
            match key_of(id).cmp(key) {
                std::cmp::Ordering::Less => low = rank + 1,
                std::cmp::Ordering::Equal => return Some(id as VertexId),
                std::cmp::Ordering::Greater => high = rank,
            }
        }
        None
    }
}
