//! The properties of vertices, from rows of the input to columns by id.
//!
//! Rows wait with their keys until the ids are known. They must be in memory, as the keys must; columns are made and
//! written one after the other.

use base::VertexId;
use graph::formats::{EdgeBlock, KeyKind};
use graph::property::{ColumnBuilder, PropertyColumn, PropertySchema};

use super::Load;
use super::ingest::InputKey;
use super::keys::VertexKeys;
use crate::{Error, Result};

/// Rows are held as they came, then one column of them in input order, then by id.
pub(crate) const ROW_FACTOR: u64 = 3;

/// What a vertex takes, whether it has a row or not, beside what is of any length: the place of its row, a value of the
/// column that is written, and whether it is null.
const VERTEX_BYTES: u64 = 4 + 8 + 1;

/// A row of no vertex.
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
    /// The rows of a block; none where it has none.
    pub(crate) fn of_block<K: InputKey, W>(block: &mut EdgeBlock<K, W>) -> Option<Self> {
        let columns = std::mem::take(&mut block.vertex_properties);
        if columns.is_empty() || block.vertices.is_empty() {
            return None;
        }
        let keys = match K::KIND {
            KeyKind::Integer => RowKeys::Numbers(block.vertices.iter().map(|key| key.as_u64()).collect()),
            KeyKind::String => {
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

    /// Bytes of memory, about.
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

/// Writes the properties of all vertices. Of several rows of a vertex, the last one counts.
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
    rows.sort_unstable_by_key(|rows| rows.sequence);
    let num_rows: usize = rows.iter().map(VertexRows::len).sum();
    if num_rows >= NO_ROW as usize {
        return Err(Error::Option(format!("{num_rows} rows of vertices, at most {} are possible", NO_ROW - 1)));
    }
    let row_bytes: u64 = rows.iter().map(VertexRows::num_bytes).sum();
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
            // Parts are given up one by one, so that the values of a column are there once.
            let part = block.columns.get_mut(place);
            let part = part.map(|part| std::mem::replace(part, PropertyColumn::nulls(property_type, 0)));
            part.map_or(Ok(()), |part| column.append(&part))?;
        }
        load.builder.add_vertex_property(name, &column.finish().gather_or_null(&row_of_id))?;
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
