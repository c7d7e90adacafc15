//! Edge property values that are in no snapshot yet.
//!
//! Each row is written once, before the version that names it is published, and never changes. So a row needs no epoch
//! and is read without a lock. Columns and rows are only appended, and never move. Arrow's builders do not suit: they
//! move their values as they grow, and cannot be read meanwhile.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use anden_graph::property::{ColumnBuilder, OwnedValue, PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use anden_snapshots::{ArcData, ChangedArc, Finder, RowOverlay};
use foldhash::{HashMap, HashMapExt};
use parking_lot::{Mutex, RwLock};

use super::records::{Chunks, Records};
use super::version::LiveVersion;
use crate::Result;

const WORD_BITS: u64 = u64::BITS as u64;

/// Bytes of a value of variable width besides its content: a slot and a heap block.
const SLOT_BYTES: usize = size_of::<OnceLock<Box<str>>>() + 16;
/// Approximate bytes of the entry of a later row.
const FIRST_ROW_BYTES: u64 = 32;
/// Distinct texts of a column that are stored once; later ones are stored for each row.
const MOST_KNOWN: usize = 1 << 16;

/// The rows from a number on, column by column.
#[derive(Debug)]
pub(crate) struct LiveRows {
    first: u64,
    columns: Records<LiveColumn>,
    /// Maps later rows of edges to the first rows of these edges.
    first_rows: RwLock<HashMap<u64, u64>>,
    num_bytes: AtomicU64,
}

/// The values of one property. A row without a value is null.
#[derive(Debug)]
enum LiveColumn {
    Fixed(Box<FixedColumn>),
    Text(Box<TextColumn>),
    Bytes(Box<Chunks<OnceLock<Box<[u8]>>>>),
}

/// The bits of each value, and a validity bit for each row.
#[derive(Debug)]
struct FixedColumn {
    property_type: PropertyType,
    values: Chunks<AtomicU64>,
    validity: Chunks<AtomicU64>,
}

impl LiveColumn {
    fn new(property_type: PropertyType) -> Self {
        match property_type.stored() {
            PropertyType::String => Self::Text(Box::default()),
            PropertyType::Bytes => Self::Bytes(Box::default()),
            _ => Self::Fixed(Box::new(FixedColumn {
                property_type,
                values: Chunks::default(),
                validity: Chunks::default(),
            })),
        }
    }

    /// Sets the value of a row; it has the column's type and is not null. Returns the bytes that it takes.
    fn set(&self, index: usize, value: PropertyValue<'_>) -> usize {
        match (self, value) {
            (Self::Text(values), PropertyValue::String(text)) => {
                let (code, num_bytes) = values.code(text);
                values.set(index, code);
                num_bytes + size_of::<u32>()
            }
            (Self::Bytes(values), PropertyValue::Bytes(bytes)) => {
                let is_new = values.get_or_default(index).set(bytes.into()).is_ok();
                debug_assert!(is_new, "a row is written once");
                SLOT_BYTES + bytes.len()
            }
            (Self::Fixed(column), value) => {
                let FixedColumn { values, validity, .. } = &**column;
                let bits = match value {
                    PropertyValue::Boolean(value) => value.into(),
                    PropertyValue::I64(value) | PropertyValue::Timestamp(value) => value as u64,
                    PropertyValue::U64(value) => value,
                    PropertyValue::F32(value) => value.to_bits().into(),
                    PropertyValue::F64(value) => value.to_bits(),
                    PropertyValue::Date(days) => days as u64,
                    PropertyValue::Null | PropertyValue::String(_) | PropertyValue::Bytes(_) => return 0,
                };
                // The later publication of the version orders both stores before its readers.
                values.get_or_default(index).store(bits, Ordering::Relaxed);
                let word = validity.get_or_default(index / WORD_BITS as usize);
                word.fetch_or(1 << (index as u64 % WORD_BITS), Ordering::Relaxed);
                size_of::<u64>()
            }
            _ => 0,
        }
    }

    fn get(&self, index: usize) -> PropertyValue<'_> {
        match self {
            Self::Text(values) => values.get(index).map_or(PropertyValue::Null, PropertyValue::String),
            Self::Bytes(values) => values
                .get(index)
                .and_then(OnceLock::get)
                .map_or(PropertyValue::Null, |bytes| PropertyValue::Bytes(bytes)),
            Self::Fixed(column) => {
                let FixedColumn { property_type, values, validity } = &**column;
                let word = validity.get(index / WORD_BITS as usize).map_or(0, |word| word.load(Ordering::Relaxed));
                if word >> (index as u64 % WORD_BITS) & 1 == 0 {
                    return PropertyValue::Null;
                }
                let bits = values.get(index).map_or(0, |bits| bits.load(Ordering::Relaxed));
                match property_type {
                    PropertyType::Boolean => PropertyValue::Boolean(bits != 0),
                    PropertyType::U64 => PropertyValue::U64(bits),
                    PropertyType::F32 => PropertyValue::F32(f32::from_bits(bits as u32)),
                    PropertyType::F64 => PropertyValue::F64(f64::from_bits(bits)),
                    PropertyType::Date => PropertyValue::Date(bits as i32),
                    PropertyType::Timestamp => PropertyValue::Timestamp(bits as i64),
                    _ => PropertyValue::I64(bits as i64),
                }
            }
        }
    }
}

/// A column of texts. Each distinct text is stored once, as long as there are few.
#[derive(Debug, Default)]
struct TextColumn {
    /// One more than the index of each row's text; 0 for null.
    codes: Chunks<AtomicU32>,
    texts: Records<Box<str>>,
    /// Codes of texts. The lock also serializes additions to `texts`.
    known: Mutex<HashMap<Box<str>, u32>>,
}

impl TextColumn {
    /// The code of a text, and the bytes that the text takes if it is new.
    fn code(&self, text: &str) -> (u32, usize) {
        // Looked up and added under one lock, so that each text gets one code.
        let mut known = self.known.lock();
        if let Some(&code) = known.get(text) {
            return (code, 0);
        }
        // No overflow: 2^32 texts take more memory than the changes up to a checkpoint.
        let code = self.texts.push(text.into()) as u32 + 1;
        // Beyond the limit, texts are stored for each row: the map must not grow with the data.
        if known.len() < MOST_KNOWN {
            known.insert(text.into(), code);
        }
        (code, SLOT_BYTES + text.len())
    }

    fn set(&self, index: usize, code: u32) {
        // Relaxed: the later publication of the version orders this store before its readers.
        self.codes.get_or_default(index).store(code, Ordering::Relaxed);
    }

    fn get(&self, index: usize) -> Option<&str> {
        // Code 0 is null, so a chunk that was never written reads as null.
        let code = self.codes.get(index)?.load(Ordering::Relaxed).checked_sub(1)?;
        self.texts.get(code as usize).map(|text| &**text)
    }
}

/// Stores rows, and caches the codes of texts between rows, without the column's lock.
#[derive(Debug)]
pub(crate) struct RowWriter<'a> {
    rows: &'a LiveRows,
    /// By property and text.
    codes: HashMap<(usize, &'a str), u32>,
    num_bytes: u64,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(rows: &'a LiveRows) -> Self {
        Self { rows, codes: HashMap::new(), num_bytes: 0 }
    }

    /// As [`LiveRows::set`].
    pub(crate) fn set(&mut self, row: u64, place: usize, value: PropertyValue<'a>) {
        let (Some(column), Some(index)) = (self.rows.columns.get(place), row.checked_sub(self.rows.first)) else {
            return;
        };
        let num_bytes = match (column, value) {
            (_, PropertyValue::Null) => 0,
            (LiveColumn::Text(texts), PropertyValue::String(text)) => {
                let mut num_bytes = size_of::<u32>();
                // A hit in the cache takes no lock of the column.
                let code = *self.codes.entry((place, text)).or_insert_with(|| {
                    let (code, new_bytes) = texts.code(text);
                    num_bytes += new_bytes;
                    code
                });
                texts.set(index as usize, code);
                num_bytes
            }
            (column, value) => column.set(index as usize, value),
        };
        self.num_bytes += num_bytes as u64;
    }
}

impl Drop for RowWriter<'_> {
    fn drop(&mut self) {
        // One addition for all values, because workers would contend for the counter.
        self.rows.num_bytes.fetch_add(self.num_bytes, Ordering::Relaxed);
    }
}

impl LiveRows {
    /// No rows; the first one will have the number `first`.
    pub(crate) fn new(first: u64) -> Self {
        let (columns, first_rows, num_bytes) = Default::default();
        Self { first, columns, first_rows, num_bytes }
    }

    /// Bytes that the values take.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.num_bytes.load(Ordering::Relaxed)
    }

    /// Adds a column for each property of the schema that has none.
    pub(crate) fn add_columns(&self, schema: &PropertySchema) {
        for (_, property_type) in schema.iter().skip(self.columns.len()) {
            self.columns.push(LiveColumn::new(property_type));
        }
    }

    /// Sets a value of a row, by the index of its property; null does nothing.
    pub(crate) fn set(&self, row: u64, place: usize, value: PropertyValue<'_>) {
        if value.is_null() {
            return;
        }
        if let (Some(column), Some(index)) = (self.columns.get(place), row.checked_sub(self.first)) {
            let num_bytes = column.set(index as usize, value);
            self.num_bytes.fetch_add(num_bytes as u64, Ordering::Relaxed);
        }
    }

    /// Notes that `row` is a later row of the edge whose first row is `first`. Does nothing if the row is older than
    /// these.
    pub(crate) fn set_first(&self, row: u64, first: u64) {
        // What is below these rows knows the older ones. A record names them for its readers.
        if row < self.first {
            return;
        }
        let mut first_rows = self.first_rows.write();
        if first_rows.insert(row, first).is_none() {
            self.num_bytes.fetch_add(FIRST_ROW_BYTES, Ordering::Relaxed);
        }
    }

    /// The first row of the edge that has a row; `None` if the row is older than these.
    pub(crate) fn first_row(&self, row: u64) -> Option<u64> {
        row.checked_sub(self.first)?;
        let first_rows = self.first_rows.read();
        Some(first_rows.get(&row).copied().unwrap_or(row))
    }

    /// The value of a row; `None` if the row is older than these.
    pub(crate) fn value(&self, place: usize, row: u64) -> Option<PropertyValue<'_>> {
        let index = row.checked_sub(self.first)?;
        // Rows of an immutable memtable lack the columns of newer properties.
        Some(self.columns.get(place).map_or(PropertyValue::Null, |column| column.get(index as usize)))
    }
}

/// The rows of a version.
#[derive(Clone, Debug)]
pub(crate) struct RowVersion {
    pub(crate) rows: Arc<LiveRows>,
    /// The snapshot's edge properties, then new ones.
    pub(crate) schema: Arc<PropertySchema>,
    /// The number of the next row.
    pub(crate) next: u64,
}

impl RowVersion {
    /// No rows yet.
    pub(crate) fn new(schema: Arc<PropertySchema>, next: u64) -> Self {
        let rows = Arc::new(LiveRows::new(next));
        rows.add_columns(&schema);
        Self { rows, schema, next }
    }

    /// Replaces the schema by one that begins with it.
    pub(crate) fn extend_schema(&mut self, schema: PropertySchema) {
        self.rows.add_columns(&schema);
        self.schema = Arc::new(schema);
    }
}

impl LiveVersion {
    /// The values of a row, by property.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn row_values(&self, row: u64) -> Result<Vec<OwnedValue>> {
        let stored = self.snapshot().edge_properties();
        let value = |place| match self.row_value(place, row) {
            Some(value) => Ok(value.into()),
            None => Ok(stored.value(place, row)?.into()),
        };
        (0..self.edges.schema.len()).map(value).collect()
    }

    /// The number of the edge of a multigraph that has a row.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn edge_number(&self, row: u64) -> Result<u64> {
        match self.first_row(row) {
            Some(number) => Ok(number),
            None => Ok(self.snapshot().edge_properties().number(row)?),
        }
    }

    /// Row and weight of each edge from one vertex to another.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn edges(&self, source: u32, target: u32, finder: &mut Finder<'_>) -> Result<Vec<ArcData>> {
        let mut edges = Vec::new();
        // A new vertex has no edges yet.
        if (source.max(target) as usize) < self.vertex_bound {
            finder.find(source, [target], |_, data| edges.push(data))?;
            self.lay_edges_over(source, target, &mut edges);
        }
        Ok(edges)
    }
}

impl RowOverlay for LiveVersion {
    fn edge_schema(&self) -> &PropertySchema {
        &self.edges.schema
    }

    fn first_new_row(&self) -> u64 {
        self.immutable.as_ref().map_or(self.edges.rows.first, |immutable| immutable.edges.rows.first)
    }

    fn row_value(&self, place: usize, row: u64) -> Option<PropertyValue<'_>> {
        let immutable = || self.immutable.as_ref().and_then(|immutable| immutable.row_value(place, row));
        self.edges.rows.value(place, row).or_else(immutable)
    }

    fn first_row(&self, row: u64) -> Option<u64> {
        let immutable = || self.immutable.as_ref().and_then(|immutable| immutable.first_row(row));
        self.edges.rows.first_row(row).or_else(immutable)
    }
}

/// The rows that a delta adds.
#[derive(Debug, Default)]
pub(super) struct DeltaRows {
    pub(super) new: Vec<(String, PropertyType)>,
    pub(super) numbers: Vec<u64>,
    pub(super) columns: Vec<PropertyColumn>,
    /// Null if a row is the first of its edge; `None` if all are.
    pub(super) first_rows: Option<PropertyColumn>,
    pub(super) next: u64,
}

impl DeltaRows {
    /// The rows of a version that the arcs name; other rows belong to edges that were added and removed since.
    ///
    /// # Errors
    /// A value is not of the type of its property.
    pub(super) fn new(version: &LiveVersion, added: &[ChangedArc]) -> Result<Self> {
        let below = version.snapshot();
        let RowVersion { rows, schema, next } = &version.edges;
        if !below.options().has_rows() {
            return Ok(Self::default());
        }
        let is_first = |&row: &u64| rows.first_row(row).is_none_or(|first| first == row);
        let mut numbers: Vec<u64> = added.iter().map(|arc| arc.data.row).collect();
        numbers.sort_unstable();
        // Both arcs of an undirected edge name its row.
        numbers.dedup();
        if !below.options().edge_properties {
            // A first row without values needs no entry.
            numbers.retain(|row| !is_first(row));
        }
        let mut first_rows = None;
        if below.options().multigraph && !numbers.iter().all(is_first) {
            let mut column = ColumnBuilder::new(PropertyType::I64);
            for &row in &numbers {
                let first = rows.first_row(row).filter(|&first| first != row);
                column.push(first.map_or(PropertyValue::Null, |first| PropertyValue::I64(first as i64)))?;
            }
            first_rows = Some(column.finish());
        }
        let mut columns = Vec::with_capacity(schema.len());
        for (place, (_, property_type)) in schema.iter().enumerate() {
            let mut column = ColumnBuilder::new(property_type);
            for &row in &numbers {
                column.push(rows.value(place, row).unwrap_or(PropertyValue::Null))?;
            }
            columns.push(column.finish());
        }
        let known = below.edge_properties().schema().len();
        let new = schema.iter().skip(known).map(|(name, property_type)| (name.to_owned(), property_type)).collect();
        Ok(Self { new, numbers, columns, first_rows, next: *next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_by_row() {
        let rows = LiveRows::new(70);
        let columns = PropertyType::ALL.iter().map(|&(property_type, name)| (name.to_owned(), property_type));
        let schema = PropertySchema::new(columns).unwrap();
        rows.add_columns(&schema);
        let texts: Vec<String> = (0..3_000).map(|row| format!("t{row}")).collect();
        let value = |row: u64, property_type: PropertyType| {
            let number = row as i64 - 1_000;
            match property_type {
                _ if (row + property_type.name().len() as u64).is_multiple_of(3) => PropertyValue::Null,
                PropertyType::Boolean => PropertyValue::Boolean(row.is_multiple_of(2)),
                PropertyType::I64 => PropertyValue::I64(number),
                PropertyType::U64 => PropertyValue::U64(number as u64),
                PropertyType::F32 => PropertyValue::F32(number as f32),
                PropertyType::F64 => PropertyValue::F64(number as f64),
                PropertyType::Date => PropertyValue::Date(number as i32),
                PropertyType::Timestamp => PropertyValue::Timestamp(number),
                PropertyType::String | PropertyType::List(_) => PropertyValue::String(&texts[row as usize]),
                PropertyType::Bytes => PropertyValue::Bytes(texts[row as usize].as_bytes()),
            }
        };
        let all =
            || (70..3_000).flat_map(|row| schema.iter().enumerate().map(move |(place, (_, of))| (row, place, of)));
        all().for_each(|(row, place, of)| rows.set(row, place, value(row, of)));
        for (row, place, of) in all() {
            assert_eq!(rows.value(place, row), Some(value(row, of)), "row {row} of type {of}");
        }
        assert_eq!((rows.value(0, 69), rows.value(99, 70)), (None, Some(PropertyValue::Null)));
        assert!(rows.num_bytes() > 3_000 * 5 * 8 / 2);
    }
}
