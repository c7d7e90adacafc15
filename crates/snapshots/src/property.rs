//! Properties of vertices and edges: columns of values, versioned with the graph.
//!
//! A vertex property has one name and one type in the whole database. A file holds the values at the version of the
//! base, by vertex id. A delta holds the new and the old values that its version changed, so that it reads in both
//! directions. A view asks the deltas between the base and its version, nearest to the version first, and then the
//! file. Nothing is read before the first question.
//!
//! For edge properties, see [`edges`].

mod changes;
mod column;
mod edges;
mod index;
mod rows;
mod value;

pub use changes::PropertyChanges;
pub(crate) use changes::{ChangesRef, compose_properties};
pub use column::MAX_ROWS;
pub use column::RowParts;
pub(crate) use column::{ColumnFile, NewColumns, RowRun, write_columns};
pub(crate) use edges::{EdgeColumns, EdgeRecord, FIRST_ROWS, StoredRows};
pub use edges::{EdgeProperties, RowOverlay};
pub use index::{IndexKind, value_hash};
pub(crate) use index::{IndexPart, IndexRecord, VertexIndex, entry_of, push_changes, push_column, split, write_index};
pub(crate) use rows::RowSetReader;
pub use rows::{RowSet, RowTest};
pub use value::{decode_first as decode_value, encode as encode_value};

use anden_graph::property::{PropertySchema, PropertyType};

use crate::encoding::{Decoder, Encoder};

/// A vertex property in the manifest. Deltas name it by its index there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PropertyRecord {
    pub name: String,
    pub property_type: PropertyType,
    /// The first version with this property.
    pub since: u32,
    /// Number of the file with the values at the version of the base; `None` if all are null.
    pub file: Option<u32>,
    pub index: Option<IndexRecord>,
}

impl PropertyRecord {
    pub fn encode(&self, body: &mut Encoder) {
        body.string(&self.name);
        body.u8(type_number(self.property_type) as u8);
        body.u32(self.since);
        body.u8(self.file.is_some().into());
        body.u32(self.file.unwrap_or(0));
        IndexRecord::encode(self.index.as_ref(), body);
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (name, property_type) = (decoder.string()?, type_of_number(decoder.u8()?.into())?);
        let (since, has_file) = (decoder.u32()?, decoder.flag()?);
        let file = Some(decoder.u32()?).filter(|_| has_file);
        let index = IndexRecord::decode(decoder)?;
        Some(Self { name, property_type, since, file, index })
    }
}

/// Names and types of all vertex properties, whatever version they begin in.
pub(crate) fn schema_of(records: &[PropertyRecord]) -> Result<PropertySchema, anden_graph::Error> {
    PropertySchema::new(records.iter().map(|record| (record.name.clone(), record.property_type)))
}

/// Number of a type on disk.
fn type_number(property_type: PropertyType) -> u32 {
    match property_type {
        PropertyType::Boolean => 1,
        PropertyType::I64 => 2,
        PropertyType::F64 => 3,
        PropertyType::Date => 4,
        PropertyType::Timestamp => 5,
        PropertyType::String => 6,
        PropertyType::Bytes => 7,
        PropertyType::U64 => 8,
        PropertyType::F32 => 9,
    }
}

fn type_of_number(number: u32) -> Option<PropertyType> {
    PropertyType::ALL.into_iter().map(|(found, _)| found).find(|&found| type_number(found) == number)
}
