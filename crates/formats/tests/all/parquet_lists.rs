//! Parquet columns of lists.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_formats::{InputPath, KeyKind, Source, SourceOptions, WantedProperties};
use anden_graph::property::{OwnedValue, PropertyType, PropertyValue, push_list};
use anden_testkit::Random;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::parquet_files::{DATA_PAGE, PLAIN, page, plain, read_forged};
use crate::reading::{Folder, Read, assert_refused, read_files};

fn all() -> SourceOptions {
    SourceOptions { edge_properties: WantedProperties::All, ..SourceOptions::default() }
}

/// The texts of a property of lists; an empty one is null.
fn texts(read: &Read<u32>) -> Vec<String> {
    read.properties[0].iter().map(|value| value.to_string()).collect()
}

/// The JSON of a list.
fn json(items: &[Option<OwnedValue>]) -> String {
    let mut text = Vec::new();
    push_list(items.iter().map(|item| item.as_ref().map_or(PropertyValue::Null, OwnedValue::as_value)), &mut text);
    String::from_utf8(text).unwrap()
}

/// Rows of lists of values of a type, and of what is read.
type Lists<T> = Vec<Option<Vec<Option<(T, OwnedValue)>>>>;

/// Writes numbered edges with a column of lists, as rows of row groups.
fn write<T: DataType>(path: &Path, field: &str, lists: &Lists<T::T>, group_rows: usize, properties: WriterProperties) {
    let fields = format!("required int64 source; required int64 target; {field}");
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {fields} }}")).unwrap());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    for (number, rows) in lists.chunks(group_rows).enumerate() {
        let mut group = file.next_row_group().unwrap();
        for _ in 0..2 {
            let keys: Vec<i64> = (0..rows.len()).map(|row| (number * group_rows + row) as i64).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int64Type>().write_batch(&keys, None, None).unwrap();
            column.close().unwrap();
        }
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let items = row.as_deref().unwrap_or_default();
            for (place, item) in items.iter().enumerate() {
                repetitions.push(i16::from(place > 0));
                definitions.push(2 + i16::from(item.is_some()));
                values.extend(item.iter().map(|(value, _)| value.clone()));
            }
            if items.is_empty() {
                repetitions.push(0);
                definitions.push(i16::from(row.is_some()));
            }
        }
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(&values, Some(&definitions), Some(&repetitions)).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    file.close().unwrap();
}

/// Writes random lists in several forms, and requires that they are read back.
fn check<T: DataType>(item: &str, property_type: PropertyType, value: impl Fn(&mut Random) -> (T::T, OwnedValue)) {
    let field = format!("optional group tags (LIST) {{ repeated group list {{ optional {item}; }} }}");
    let (random, folder) = (&mut Random::new(7), Folder::new());
    for (version, page_rows, has_dictionary) in [
        (WriterVersion::PARQUET_1_0, 3, false),
        (WriterVersion::PARQUET_2_0, 5, true),
        (WriterVersion::PARQUET_1_0, 9, true),
    ] {
        let mut list =
            |len: u64| -> Vec<_> { (0..len).map(|_| (random.below(5) > 0).then(|| value(random))).collect() };
        let mut lists: Lists<T::T> = Vec::new();
        for row in 0..90 {
            lists.push(if row % 7 == 3 { None } else { Some(list([0, 1, 2, 5, 40][row % 5])) });
        }
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_data_page_row_count_limit(page_rows)
            .set_write_batch_size(2)
            .set_dictionary_enabled(has_dictionary)
            .build();
        let path = folder.path("lists.parquet");
        write::<T>(&path, &field, &lists, 50, properties);
        let source = Source::open(&[InputPath::File(path.clone())], all()).unwrap();
        let types: Vec<_> =
            source.facts().edge_properties.iter().map(|(name, found)| (name.to_owned(), found)).collect();
        assert_eq!(types, [("tags".to_owned(), property_type)]);
        let read = read_files::<u64, u32>(&[&path], &all()).unwrap();
        assert_eq!((read.edges.len(), &read.notes[..]), (lists.len(), &[][..]));
        let items = |row: &Vec<Option<(T::T, OwnedValue)>>| -> Vec<_> {
            row.iter().map(|item| item.as_ref().map(|(_, value)| value.clone())).collect()
        };
        let expected: Vec<_> =
            lists.iter().map(|row| row.as_ref().map_or(String::new(), |row| json(&items(row)))).collect();
        assert_eq!(texts(&read), expected, "{item}, {version:?}");
    }
}

#[test]
fn lists_are_read_from_pages_of_every_form() {
    let list = |item: PropertyType| item.list().unwrap();
    check::<Int64Type>("int64 element", list(PropertyType::I64), |random| {
        let number = random.below(1 << 30) as i64 - (1 << 29);
        (number, OwnedValue::I64(number))
    });
    check::<Int64Type>("int64 element (UINT_64)", list(PropertyType::U64), |random| {
        let number = u64::MAX - u64::from(random.below(9));
        (number as i64, OwnedValue::U64(number))
    });
    check::<ByteArrayType>("binary element (UTF8)", list(PropertyType::String), |random| {
        let text = format!("ü\"{}", "x".repeat(random.below(4) as usize));
        (ByteArray::from(&text[..]), OwnedValue::String(text))
    });
    check::<FloatType>("float element", list(PropertyType::F32), |random| {
        let number = random.below(1000) as f32 / 8.0;
        (number, OwnedValue::F32(number))
    });
    check::<DoubleType>("double element", list(PropertyType::F64), |random| {
        let number = f64::from(random.below(1000)) / 8.0;
        (number, OwnedValue::F64(number))
    });
    check::<BoolType>("boolean element", list(PropertyType::Boolean), |random| {
        let value = random.below(2) > 0;
        (value, OwnedValue::Boolean(value))
    });
    check::<Int32Type>("int32 element (DATE)", list(PropertyType::Date), |random| {
        let day = random.below(20_000) as i32;
        (day, OwnedValue::Date(day))
    });
    check::<Int64Type>("int64 element (TIMESTAMP_MILLIS)", list(PropertyType::Timestamp), |random| {
        let millis = i64::from(random.below(1 << 30));
        (millis, OwnedValue::Timestamp(millis * 1000))
    });
    // Bytes are no items, so these lists are text.
    check::<ByteArrayType>("binary element", PropertyType::String, |random| {
        let bytes = vec![random.below(256) as u8];
        (ByteArray::from(bytes.clone()), OwnedValue::Bytes(bytes))
    });
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet/lists").join(name)
}

/// Files of pyarrow and DuckDB.
#[test]
fn lists_of_other_libraries_are_read() {
    for name in ["pyarrow_1", "pyarrow_2", "older_names", "duckdb"] {
        let read = read_files::<u64, u32>(&[&fixture(&format!("{name}.parquet"))], &all()).unwrap();
        let row = |row: usize| read.properties.iter().map(|column| column.get(row).to_string()).collect::<Vec<_>>();
        assert_eq!(read.edges.len(), 40, "{name}");
        assert_eq!(row(0), [r#"["a","ü"]"#, "[1,null]", "[0.5]", r#"["2024-02-29"]"#], "{name}");
        assert_eq!(row(1), ["[]", "", "[null]", "[]"], "{name}");
        assert_eq!(row(38), row(0), "{name}");
        assert_eq!(row(39), row(1), "{name}");
    }
}

/// The forms of lists that the format knows, and those of other content.
#[test]
fn only_lists_of_values_are_read() {
    let leaf = "optional int64 x;";
    let list = |inner: &str| format!("optional group tags (LIST) {{ repeated {inner} }}");
    for (field, is_read) in [
        ("repeated int64 tags;".to_owned(), true),
        (list("int64 array;"), true),
        (list(&format!("group bag {{ {leaf} }}")), true),
        (list(&format!("group array {{ {leaf} }}")), false),
        (list(&format!("group tags_tuple {{ {leaf} }}")), false),
        (list(&format!("group list {{ {leaf} optional int64 y; }}")), false),
        (list("group list { optional group element { optional int64 x; } }"), false),
        (list("group list { optional group element (LIST) { repeated group list { optional int64 x; } } }"), false),
        (format!("optional group tags (MAP) {{ repeated group key_value {{ required int64 key; {leaf} }} }}"), false),
    ] {
        let folder = Folder::new();
        let path = folder.path("forms.parquet");
        let fields = format!("required int64 source; required int64 target; {field}");
        let schema = Arc::new(parse_message_type(&format!("message rows {{ {fields} }}")).unwrap());
        let file = File::create(&path).unwrap();
        SerializedFileWriter::new(file, schema, Default::default()).unwrap().close().unwrap();
        let source = Source::open(&[InputPath::File(path)], all()).unwrap();
        let found: Vec<_> = source.facts().edge_properties.iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(found, if is_read { vec!["tags"] } else { vec![] }, "{field}");
        let notes = &source.facts().notes;
        assert_eq!(notes.len(), usize::from(!is_read), "{field}: {notes:?}");
        assert!(notes.iter().all(|note| note.contains("column 'tags' is left out: it holds ")), "{notes:?}");
    }
}

#[test]
fn columns_of_lists_are_no_keys_or_weights() {
    let folder = Folder::new();
    let path = folder.path("roles.parquet");
    write::<Int64Type>(
        &path,
        "optional group w (LIST) { repeated group list { optional int64 x; } }",
        &vec![None],
        9,
        WriterProperties::new(),
    );
    let column = |name: &str| Some(name.to_owned());
    for options in [
        SourceOptions { source_column: column("w"), ..all() },
        SourceOptions { weights: Some(anden_graph::WeightType::I64), weight_column: column("w"), ..all() },
    ] {
        let error = read_files::<u64, i64>(&[&path], &options).unwrap_err();
        assert!(error.contains("roles.parquet: ") && error.contains("'w'"), "{error}");
    }
    let unwanted = SourceOptions { keys: KeyKind::Integer, ..SourceOptions::default() };
    assert!(read_files::<u64, u32>(&[&path], &unwanted).unwrap().properties.is_empty());
}

const TAGS: &str = "group tags (LIST) { repeated group list { optional int32 element; } }";

/// Levels as a page of version 1 holds them, packed.
fn levels(of_values: &[u8], width: u32) -> Vec<u8> {
    let num_groups = of_values.len().div_ceil(8);
    let mut bits = vec![0; num_groups * width as usize];
    for (place, &level) in of_values.iter().enumerate() {
        let at = place * width as usize;
        (0..width as usize).for_each(|bit| bits[(at + bit) / 8] |= (level >> bit & 1) << ((at + bit) % 8));
    }
    let packed = [&[(num_groups << 1 | 1) as u8][..], &bits].concat();
    [&(packed.len() as u32).to_le_bytes()[..], &packed].concat()
}

/// A page of lists of numbers: the repetition level of each value.
fn list_page(repetitions: &[u8], numbers: std::ops::Range<i32>) -> Vec<u8> {
    let body = [levels(repetitions, 1), levels(&vec![2; repetitions.len()], 2), plain(numbers)].concat();
    page(DATA_PAGE, repetitions.len() as u64, PLAIN, &body)
}

/// The format allows this in pages of version 1.
#[test]
fn lists_over_several_pages_are_read() {
    let pages = vec![
        list_page(&[0, 0, 1], 0..3),
        list_page(&[1, 0], 3..5),
        list_page(&[1, 1], 5..7),
        list_page(&[0, 1, 0], 7..10),
        list_page(&[0], 10..11),
        list_page(&[0], 11..12),
    ];
    let read = read_forged(7, (TAGS, pages)).unwrap();
    assert_eq!(texts(&read), ["[0]", "[1,2,3]", "[4,5,6]", "[7,8]", "[9]", "[10]", "[11]"]);
    let error = |pages| read_forged(3, (TAGS, pages)).map(drop);
    let few = error(vec![list_page(&[0, 1, 0], 0..3)]);
    assert_refused(few, "forged.parquet: column 'tags': row group 0: expected 3 rows, as the footer says, found 2");
    let late = error(vec![list_page(&[1, 0, 0, 0], 0..4)]);
    assert_refused(late, "column 'tags': row group 0: the first value of a list does not begin a row");
    let many = error(vec![list_page(&[0, 0], 0..2), list_page(&[0, 0], 2..4)]);
    assert_refused(many, "column 'tags': row group 0: a column has more rows than the footer says");
}

/// A few bytes may stand for any number of values without content.
#[test]
fn claims_of_endless_lists_are_refused() {
    let run = |level: u8| [&[6, 0, 0, 0][..], &[0xfe, 0xff, 0xff, 0xff, 15], &[level]].concat();
    let nulls = page(DATA_PAGE, i32::MAX as u64, PLAIN, &[run(1), run(1)].concat());
    let what = "the lists of a few rows have more than 67,108,864 items";
    let refused = |pages| {
        assert_refused(read_forged(1, (TAGS, pages)).map(drop), &format!("column 'tags': row group 0: {what}"));
    };
    refused(vec![nulls]);
    let half = page(DATA_PAGE, 40 << 20, PLAIN, &[run(1), run(1)].concat());
    refused(vec![list_page(&[0], 0..1), half.clone(), half]);
    let short = page(DATA_PAGE, 9, PLAIN, &[&[2, 0, 0, 0, 4, 0][..], &run(1)].concat());
    assert_refused(read_forged(1, (TAGS, vec![short])).map(drop), "row group 0: it ends too early");
}
