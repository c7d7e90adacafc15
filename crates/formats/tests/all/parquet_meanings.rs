//! Parquet columns with a meaning of their own.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anden_formats::{KeyKind, SourceOptions, Span, WantedProperties};
use parquet::data_type::{DataType, FixedLenByteArray, FixedLenByteArrayType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::reading::{Folder, read_files};

/// The values of a column, and their definition levels if it is optional.
type ColumnValues<T> = (Vec<T>, Option<Vec<i16>>);

/// Writes one row group.
fn write<T: DataType>(path: &Path, fields: &str, columns: &[ColumnValues<T::T>]) {
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {fields} }}")).unwrap());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, Default::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for (values, levels) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, levels.as_deref(), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
}

fn all(keys: KeyKind) -> SourceOptions {
    let (edge_properties, vertex_properties) = (WantedProperties::All, WantedProperties::All);
    SourceOptions { keys, edge_properties, vertex_properties, ..SourceOptions::default() }
}

#[test]
fn uuids_are_text() {
    let folder = Folder::new();
    let path = folder.path("uuids.parquet");
    let field = |repetition: &str, name: &str| format!("{repetition} fixed_len_byte_array(16) {name} (UUID);");
    let fields = [field("required", "source"), field("required", "target"), field("optional", "trace")].concat();
    let uuid = |byte: u8| FixedLenByteArray::from((0..16).map(|place| byte + place).collect::<Vec<u8>>());
    let columns =
        [(vec![uuid(0), uuid(0x10)], None), (vec![uuid(0x10), uuid(0xe0)], None), (vec![uuid(0xa0)], Some(vec![0, 1]))];
    write::<FixedLenByteArrayType>(&path, &fields, &columns);
    let read = read_files::<Span, f64>(&[&path], &all(KeyKind::String)).unwrap();
    let [first, second, third] = [
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "10111213-1415-1617-1819-1a1b1c1d1e1f",
        "e0e1e2e3-e4e5-e6e7-e8e9-eaebecedeeef",
    ];
    let expected = [(first, second), (second, third)].map(|(source, target)| (source.to_owned(), target.to_owned()));
    assert_eq!((&read.edges[..], read.notes.len()), (&expected[..], 0));
    let traces = [0, 1].map(|row| read.properties[0].get(row).to_string());
    assert_eq!(traces, ["", "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"]);
}
