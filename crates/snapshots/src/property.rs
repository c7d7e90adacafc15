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

use anden_graph::property::{ItemType, PropertySchema, PropertyType};

use crate::encoding::{Decoder, Encoder};

/// A vertex property in the manifest. Deltas name it by its index there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PropertyRecord {
    pub name: String,
    /// The type of the stored values.
    pub property_type: PropertyType,
    /// The type of the items, if the values are lists.
    pub items: Option<ItemType>,
    /// The first version with this property.
    pub since: u32,
    /// Number of the file with the values at the version of the base; `None` if all are null.
    pub file: Option<u32>,
    pub index: Option<IndexRecord>,
}

impl PropertyRecord {
    /// A property without values and without an index.
    pub fn new(name: &str, declared: PropertyType, since: u32) -> Self {
        let (property_type, items) = (declared.stored(), declared.items());
        Self { name: name.to_owned(), property_type, items, since, file: None, index: None }
    }

    /// The type in the schema.
    pub fn declared(&self) -> PropertyType {
        self.items.map_or(self.property_type, PropertyType::List)
    }

    pub fn encode(&self, body: &mut Encoder) {
        body.string(&self.name);
        body.u8(type_byte(self.declared()));
        body.u32(self.since);
        body.u8(self.file.is_some().into());
        body.u32(self.file.unwrap_or(0));
        IndexRecord::encode(self.index.as_ref(), body);
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (name, declared) = (decoder.string()?, type_of_byte(decoder.u8()?)?);
        let (since, has_file) = (decoder.u32()?, decoder.flag()?);
        let file = Some(decoder.u32()?).filter(|_| has_file);
        let index = IndexRecord::decode(decoder)?;
        Some(Self { file, index, ..Self::new(&name, declared, since) })
    }
}

/// Names and types of all vertex properties, whatever version they begin in.
pub(crate) fn schema_of(records: &[PropertyRecord]) -> Result<PropertySchema, anden_graph::Error> {
    PropertySchema::new(records.iter().map(|record| (record.name.clone(), record.declared())))
}

/// A declared type as a byte of the manifest: the number of the stored type in the lower four bits. The upper ones have
/// the number of the type of a list's items, or 0.
fn type_byte(declared: PropertyType) -> u8 {
    let items = declared.items().map_or(0, |item| type_number(item.property_type()));
    (items << 4 | type_number(declared.stored())) as u8
}

fn type_of_byte(byte: u8) -> Option<PropertyType> {
    let stored = type_of_number((byte & 0xf).into())?;
    match byte >> 4 {
        0 => Some(stored),
        items => type_of_number(items.into())?.list().filter(|list| list.stored() == stored),
    }
}

/// Number of the type of stored values.
fn type_number(property_type: PropertyType) -> u32 {
    match property_type {
        PropertyType::Boolean => 1,
        PropertyType::I64 => 2,
        PropertyType::F64 => 3,
        PropertyType::Date => 4,
        PropertyType::Timestamp => 5,
        PropertyType::String | PropertyType::List(_) => 6,
        PropertyType::Bytes => 7,
        PropertyType::U64 => 8,
        PropertyType::F32 => 9,
    }
}

fn type_of_number(number: u32) -> Option<PropertyType> {
    PropertyType::ALL.into_iter().map(|(found, _)| found).find(|&found| type_number(found) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_byte() {
        let lists = PropertyType::ALL.into_iter().filter_map(|(found, _)| found.list());
        let declared: Vec<_> = PropertyType::ALL.into_iter().map(|(found, _)| found).chain(lists).collect();
        for &found in &declared {
            assert_eq!(type_of_byte(type_byte(found)), Some(found));
        }
        let num_known = (0..=u8::MAX).filter(|&byte| type_of_byte(byte).is_some()).count();
        assert_eq!((num_known, declared.len()), (17, 17));
        // Bytes are no items, and lists are stored as text.
        for damaged in [0, 0x0a, 0x76, 0xa6, 0xf6, 0x62, 0x60] {
            assert_eq!(type_of_byte(damaged), None, "{damaged:#x}");
        }
    }
}
