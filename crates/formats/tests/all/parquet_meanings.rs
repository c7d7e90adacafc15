//! Parquet columns with a meaning of their own: UUIDs, and those of LDBC's social network.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anden_formats::{InputPath, KeyKind, SourceOptions, Span, WantedProperties};
use parquet::data_type::{DataType, FixedLenByteArray, FixedLenByteArrayType, Int64Type};
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

#[test]
fn ldbc_names_tell_what_parquet_files_hold() {
    let folder = Folder::new();
    let file = |name: &str, columns: &[(&str, [i64; 2])]| {
        let path = folder.path(name);
        let fields: String = columns.iter().map(|(name, _)| format!("required int64 {name};")).collect();
        let values: Vec<_> = columns.iter().map(|(_, values)| (values.to_vec(), None)).collect();
        write::<Int64Type>(&path, &fields, &values);
        path
    };
    let knows = file("Person_knows_Person.parquet", &[("x", [8, 9]), ("Person1Id", [1, 2]), ("Person2Id", [2, 3])]);
    let people = file("Person.parquet", &[("age", [40, 50]), ("id", [1, 7])]);
    let work = file("Person_workAt_Company.parquet", &[("PersonId", [1, 2]), ("CompanyId", [1, 1])]);
    let usual = |paths: &[&Path]| {
        let inputs: Vec<_> = paths.iter().map(|path| InputPath::File(path.to_path_buf())).collect();
        SourceOptions::default().usual_keys(&inputs)
    };
    let numbers = [&*knows, &*people];
    assert_eq!(usual(&numbers), KeyKind::Integer);
    let read = read_files::<u64, f64>(&numbers, &all(KeyKind::Integer)).unwrap();
    assert_eq!((read.pairs(), &read.vertices[..]), (vec![(1, 2), (2, 3)], &["1".to_owned(), "7".to_owned()][..]));
    let column = |columns: &[anden_graph::property::PropertyColumn], place: usize| columns[place].get(1).to_string();
    assert_eq!((column(&read.properties, 0), column(&read.properties, 1)), ("knows".to_owned(), "9".to_owned()));
    assert_eq!(column(&read.vertex_properties, 0), "Person");
    let several = [&*people, &*work, &*knows];
    assert_eq!(usual(&several), KeyKind::String);
    let read = read_files::<Span, f64>(&several, &all(KeyKind::String)).unwrap();
    assert_eq!(read.edges[0], ("Person:1".to_owned(), "Organisation:1".to_owned()));
    assert_eq!(read.vertices, ["Person:1", "Person:7"]);
    assert!(read.notes.is_empty(), "{:?}", read.notes);
    // A file of vertices alone stays what options say.
    let alone = read_files::<u64, f64>(&[&people], &all(KeyKind::Integer)).unwrap();
    assert_eq!(alone.pairs(), [(40, 1), (50, 7)]);
}
