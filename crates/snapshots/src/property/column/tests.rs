//! Column files: round trips, dictionaries, and forged files.

use std::collections::HashSet;

use anden_graph::property::ColumnBuilder;
use anden_testkit::{FaultPlan, FaultStorage};

use super::*;
use crate::file::{FileWriter, WrittenFile};
use crate::names;
use crate::options::DatabaseId;

const ID: DatabaseId = DatabaseId([7; 16]);

fn all_columns(rows: Range<usize>) -> Vec<PropertyColumn> {
    let mut columns: Vec<_> = PropertyType::ALL.iter().map(|&(of, _)| ColumnBuilder::new(of)).collect();
    for row in rows {
        let text = format!("ö{row}");
        for column in &mut columns {
            let value = match column.property_type() {
                PropertyType::Date => PropertyValue::Date(row as i32),
                _ if row % 5 == 3 => PropertyValue::Null,
                PropertyType::Boolean => PropertyValue::Boolean(row % 2 == 0),
                PropertyType::I64 => PropertyValue::I64(row as i64),
                PropertyType::U64 => PropertyValue::U64(row as u64),
                PropertyType::F32 => PropertyValue::F32(row as f32),
                PropertyType::F64 => PropertyValue::F64(row as f64),
                PropertyType::Timestamp => PropertyValue::Timestamp(-(row as i64)),
                PropertyType::String | PropertyType::List(_) => PropertyValue::String(&text),
                PropertyType::Bytes => PropertyValue::Bytes(text.as_bytes()),
            };
            column.push(value).unwrap();
        }
    }
    columns.into_iter().map(ColumnBuilder::finish).collect()
}

fn write(disk: &FaultStorage, number: u32, parts: &[Vec<PropertyColumn>]) -> Result<WrittenFile> {
    let columns: Vec<_> = parts[0].iter().zip(0..).map(|(column, i)| (3 * i, column.property_type())).collect();
    let num_rows = parts.iter().map(|part| part[0].len() as u64).sum();
    let runs = [RowRun { number: 77, position: 0 }];
    let runs = if num_rows > 0 { &runs[..] } else { &[] };
    let new = NewColumns { file_number: number, kind: FileKind::Rows, runs, num_rows, columns: &columns };
    write_columns(disk, "".as_ref(), ID, new, &|place, take| parts.iter().try_for_each(|part| take(&part[place])))
}

fn open(disk: &FaultStorage, number: u32) -> Result<ColumnFile> {
    let path = names::temporary(&names::rows(number));
    ColumnFile::open(&FramedFile::open(disk, path.as_ref(), FileKind::Rows, ID)?)
}

#[test]
fn columns_come_back_row_by_row_and_in_ranges() {
    let disk = FaultStorage::new(FaultPlan::Never);
    for (number, num_rows) in [(0, 0), (1, 1), (2, 64), (3, 200)] {
        let whole = all_columns(0..num_rows);
        let cuts = [0, num_rows / 7, num_rows / 7, num_rows / 2, num_rows];
        let parts: Vec<_> = cuts.windows(2).map(|pair| all_columns(pair[0]..pair[1])).collect();
        write(&disk, number, &parts).unwrap();
        let file = open(&disk, number).unwrap();
        let ends = (num_rows > 0).then(|| (77, 76 + num_rows as u64));
        assert_eq!((file.row_ends(), file.len(), file.columns().len()), (ends, num_rows, PropertyType::ALL.len()));
        for (column, (number, property_type)) in whole.iter().zip(file.columns()) {
            assert_eq!(&file.read(number, property_type, 0..num_rows).unwrap(), column);
            for row in 0..num_rows {
                assert_eq!(file.get(number, row).unwrap(), column.get(row));
            }
            assert!(file.get(number, num_rows).unwrap().is_null() && file.get(number + 1, 0).unwrap().is_null());
            assert_eq!(file.read(number + 1, property_type, 0..9).unwrap().num_nulls(), 9);
            for rows in [0..num_rows / 2, num_rows / 3..num_rows, num_rows / 2..num_rows + 70] {
                let read = file.read(number, property_type, rows.clone()).unwrap();
                let expected = rows.map(|row| if row < num_rows { column.get(row) } else { PropertyValue::Null });
                assert!(read.iter().eq(expected), "{property_type}");
            }
        }
    }
    let short = [all_columns(0..5)[..1].to_vec(), all_columns(0..4)[1..2].to_vec()].concat();
    assert!(write(&disk, 9, &[short]).is_err(), "columns of different lengths");
}

/// Writes a file of one column with these entries and sections.
fn forge(disk: &FaultStorage, number: u32, rows: u64, entry: ColumnEntry, sections: [&[u8]; 4]) {
    let name = names::temporary(&names::rows(number));
    let mut writer = FileWriter::create(disk, name.as_ref()).unwrap();
    let kinds =
        [SectionKind::ColumnValidity, SectionKind::ColumnValues, SectionKind::ColumnOffsets, SectionKind::ColumnBytes];
    for (kind, bytes) in kinds.into_iter().zip(sections) {
        writer.begin_section(kind).unwrap();
        writer.append(bytes).unwrap();
    }
    writer.begin_section(SectionKind::ColumnFacts).unwrap();
    writer.append(bytemuck::cast_slice(&[0, rows])).unwrap();
    writer.begin_section(SectionKind::ColumnEntries).unwrap();
    writer.append(bytemuck::bytes_of(&entry)).unwrap();
    writer.begin_section(SectionKind::RowRuns).unwrap();
    writer.finish(FileKind::Rows, ID).unwrap();
}

#[test]
fn rows_with_gaps_are_found_by_number() {
    let disk = FaultStorage::default();
    let numbers: Vec<u64> = (5..2000).filter(|number| number % 7 > 1 && !(300..400).contains(number)).collect();
    let column = PropertyColumn::from_fixed_bytes(PropertyType::I64, bytemuck::cast_slice(&numbers), None).unwrap();
    let mut runs = Vec::new();
    RowRun::push_numbers(&mut runs, &numbers, 0);
    let new = NewColumns {
        file_number: 1,
        kind: FileKind::Rows,
        runs: &runs,
        num_rows: numbers.len() as u64,
        columns: &[(0, PropertyType::I64)],
    };
    write_columns(&disk, "".as_ref(), ID, new, &|_, take| take(&column)).unwrap();
    let file = open(&disk, 1).unwrap();
    assert_eq!((file.runs().unwrap(), file.row_ends()), (&runs[..], Some((5, 1999))));
    for number in 0..2_100 {
        let position = file.position(number).unwrap();
        assert_eq!(position, numbers.binary_search(&number).ok());
        if let Some(position) = position {
            assert_eq!(file.get(0, position).unwrap(), PropertyValue::I64(number as i64));
        }
    }
}

#[test]
fn runs_of_rows_that_lie_are_refused() {
    let disk = FaultStorage::default();
    let column = PropertyColumn::nulls(PropertyType::I64, 9);
    let bad: [(&[u64], bool); 7] = [
        (&[3, 1], false),
        (&[3, 0, 9, 9], false),
        (&[3, 0, u64::MAX, 4], false),
        (&[3, 0, 2, 4], true),
        (&[3, 0, 5, 4], true),
        (&[3, 0, 9, 4, 20, 4], true),
        (&[3, 0, 9, 4, 8, 6, 30, 8], true),
    ];
    for (number, (runs, opens)) in (0..).zip(bad) {
        let runs: Vec<RowRun> = runs.chunks(2).map(|run| RowRun { number: run[0], position: run[1] }).collect();
        let columns = [(0, PropertyType::I64)];
        let new = NewColumns { file_number: number, kind: FileKind::Rows, runs: &runs, num_rows: 9, columns: &columns };
        write_columns(&disk, "".as_ref(), ID, new, &|_, take| take(&column)).unwrap();
        let file = open(&disk, number);
        assert_eq!(file.is_ok(), opens, "{runs:?}");
        if let Ok(file) = file {
            assert!(file.runs().is_err(), "{runs:?}");
            (0..40).for_each(|row| drop(file.position(row)));
        }
    }
}

#[test]
fn columns_that_lie_are_refused() {
    let disk = FaultStorage::new(FaultPlan::Never);
    let entry = |property_type, num_bytes| ColumnEntry { property_type, num_bytes, ..ColumnEntry::default() };
    let text = |offsets: [u64; 3], bytes: &[u8], number: u32| {
        let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        forge(&disk, number, 2, entry(6, bytes.len() as u64), [&[], &[], &offsets, bytes]);
        let file = open(&disk, number).unwrap();
        let read = file.read(0, PropertyType::String, 0..2);
        assert!(read.is_err() && (0..2).any(|row| file.get(0, row).is_err()), "{number}");
    };
    text([0, 2, 1], b"ab", 1);
    text([0, 1, u64::MAX], b"ab", 2);
    text([0, 1, 2], "é".as_bytes(), 3);
    forge(&disk, 4, 2, entry(1, 0), [&[], &[0, 2, 0, 0, 0, 0, 0, 0], &[], &[]]);
    let booleans = open(&disk, 4).unwrap();
    assert!(booleans.get(0, 0).is_ok() && booleans.get(0, 1).is_err());
    assert!(booleans.read(0, PropertyType::Boolean, 0..2).is_err());
    for (number, rows, entry, sections) in [
        (5, 3, entry(2, 0), [&[][..], &[0; 16][..], &[], &[]]),
        (6, 2, ColumnEntry { has_nulls: 1, ..entry(2, 0) }, [&[], &[0; 16], &[], &[]]),
        (7, 0, ColumnEntry { has_nulls: 2, ..entry(2, 0) }, [&[], &[], &[], &[]]),
        (8, 0, entry(6, 0), [&[], &[], &[], &[]]),
        (9, 0, entry(10, 0), [&[], &[], &[], &[]]),
        (10, 2, entry(2, 5), [&[], &[0; 16], &[], &[]]),
        (11, u64::MAX, entry(2, 0), [&[], &[0; 16], &[], &[]]),
        (12, 1 << 61, entry(2, 0), [&[], &[0; 16], &[], &[]]),
    ] {
        forge(&disk, number, rows, entry, sections);
        assert!(open(&disk, number).is_err(), "{number}");
    }
}

/// Rows of strings in parts, about `num_distinct` of them distinct; every ninth is null.
fn strings(num_distinct: usize, num_rows: usize) -> Vec<PropertyColumn> {
    let mut parts = vec![ColumnBuilder::new(PropertyType::String)];
    for row in 0..num_rows {
        if row % 4_001 == 4_000 {
            parts.push(ColumnBuilder::new(PropertyType::String));
        }
        let text = if row == 0 { String::new() } else { format!("é{}", row % num_distinct.max(1)) };
        let value = if row % 9 == 1 || num_distinct == 0 { PropertyValue::Null } else { PropertyValue::String(&text) };
        parts.last_mut().unwrap().push(value).unwrap();
    }
    parts.into_iter().map(ColumnBuilder::finish).collect()
}

fn joined(parts: &[PropertyColumn]) -> PropertyColumn {
    let mut whole = ColumnBuilder::new(PropertyType::String);
    parts.iter().for_each(|part| whole.append(part).unwrap());
    whole.finish()
}

fn num_distinct(column: &PropertyColumn) -> u64 {
    let values = column.iter().filter(|value| !value.is_null()).map(|value| value.to_string());
    values.collect::<HashSet<_>>().len() as u64
}

#[test]
fn few_distinct_strings_become_a_dictionary() {
    let disk = FaultStorage::new(FaultPlan::Never);
    let counts = [0, 1, 255, 256, 257, 65_534, 65_535, 65_536, 65_537, 65_538];
    for (number, wanted) in (0..).zip(counts) {
        let parts = strings(wanted, 150_000);
        let whole = joined(&parts);
        let written: Vec<_> = parts.into_iter().map(|part| vec![part]).collect();
        let len = write(&disk, number, &written).unwrap().len;
        let file = open(&disk, number).unwrap();
        let read = file.read(0, PropertyType::String, 0..150_000).unwrap();
        assert_eq!(read, whole, "{wanted}");
        let num_distinct = num_distinct(&whole);
        let is_coded = matches!(read.values(), TypedArray::Coded { .. });
        assert_eq!(is_coded, num_distinct <= 1 << 16, "{num_distinct}");
        let width = match num_distinct {
            0..=256 => 1,
            _ if is_coded => 2,
            _ => 8,
        };
        assert!(len >= 150_000 * width && (width == 8 || len < 150_000 * width + (2 << 20)), "{num_distinct}: {len}");
        for row in (0..150_000).step_by(999) {
            assert_eq!(file.get(0, row).unwrap(), whole.get(row));
        }
        let part = file.read(0, PropertyType::String, 70_001..70_100).unwrap();
        assert_eq!(part, whole.slice(70_001..70_100));
        // Read values are written again as before, with or without the dictionary that they were read with.
        let again = write(&disk, 100 + number, &[vec![read.slice(0..9_999)], vec![read.slice(9_999..150_000)]]);
        assert_eq!(again.unwrap().len, len);
        assert_eq!(open(&disk, 100 + number).unwrap().read(0, PropertyType::String, 0..150_000).unwrap(), whole);
        if let (TypedArray::Coded { texts: a, .. }, TypedArray::Coded { texts: b, .. }) = (read.values(), part.values())
        {
            assert!(std::ptr::eq(a.value_data(), b.value_data()), "reads of a file share its strings");
        }
    }
}

#[test]
fn dictionaries_are_used_where_they_pay() {
    let disk = FaultStorage::new(FaultPlan::Never);
    let is_coded = |number: u32, texts: &[&str]| {
        let mut column = ColumnBuilder::new(PropertyType::String);
        texts.iter().for_each(|text| column.push(PropertyValue::String(text)).unwrap());
        let column = column.finish();
        write(&disk, number, &[vec![column.clone()]]).unwrap();
        let read = open(&disk, number).unwrap().read(0, PropertyType::String, 0..texts.len()).unwrap();
        assert_eq!(read, column);
        matches!(read.values(), TypedArray::Coded { .. })
    };
    assert!(!is_coded(1, &[]) && !is_coded(2, &["a"]) && !is_coded(3, &["a", "b", "c"]));
    assert!(is_coded(4, &["a", "a"]) && is_coded(5, &["", ""]));
    // Many bytes in few strings.
    let long = "x".repeat(600 << 10);
    assert!(is_coded(6, &[&long, &long]) && !is_coded(7, &[&long, &long, &format!("{long}y")]));
    // Joining a part with few distinct strings and one with many uses neither dictionary.
    let (few, many) = (joined(&strings(3, 70_000)), joined(&strings(90_000, 90_000)));
    write(&disk, 8, &[vec![few.clone()]]).unwrap();
    let read = open(&disk, 8).unwrap().read(0, PropertyType::String, 0..70_000).unwrap();
    write(&disk, 9, &[vec![read], vec![many.clone()]]).unwrap();
    let merged = open(&disk, 9).unwrap().read(0, PropertyType::String, 0..160_000).unwrap();
    assert!(matches!(merged.values(), TypedArray::String(_)));
    assert_eq!(merged, joined(&[few, many]));
}

#[test]
fn dictionaries_that_lie_are_refused() {
    let disk = FaultStorage::new(FaultPlan::Never);
    let entry = |num_distinct, num_bytes| {
        let (property_type, encoding) = (6, CODED);
        ColumnEntry { property_type, encoding, num_distinct, num_bytes, ..ColumnEntry::default() }
    };
    let offsets = |offsets: &[u64]| bytemuck::cast_slice(offsets).to_vec();
    let good: Vec<u8> = offsets(&[0, 1, 2]);
    let codes = |codes: [u8; 3]| [codes[0], codes[1], codes[2], 0, 0, 0, 0, 0];
    forge(&disk, 0, 3, entry(2, 2), [&[], &codes([0, 1, 0]), &good, b"ab"]);
    let read = open(&disk, 0).unwrap().read(0, PropertyType::String, 0..3).unwrap();
    assert!(read.iter().eq(["a", "b", "a"].map(PropertyValue::String)));
    // Codes without a string; the code of a null row is not checked.
    let validity = 0b101_u64.to_le_bytes();
    let nulls = ColumnEntry { has_nulls: 1, ..entry(2, 2) };
    for (number, entry, validity, codes, bad) in [
        (1, entry(2, 2), &[][..], codes([0, 2, 0]), Some(1)),
        (2, entry(2, 2), &[], codes([0, 1, 255]), Some(2)),
        (3, nulls, &validity, codes([0, 9, 1]), None),
        (4, nulls, &validity, codes([0, 0, 2]), Some(2)),
    ] {
        forge(&disk, number, 3, entry, [validity, &codes, &good, b"ab"]);
        let file = open(&disk, number).unwrap();
        let read = file.read(0, PropertyType::String, 0..3);
        assert_eq!(read.is_err(), bad.is_some(), "{number}");
        for row in 0..3 {
            assert_eq!(file.get(0, row).is_err(), bad == Some(row), "{number} {row}");
        }
        if let Err(error) = read {
            assert!(error.to_string().contains("of 2 strings"), "{error}");
        }
    }
    // Invalid strings.
    for (number, offsets, bytes) in [
        (10, offsets(&[0, 2, 1]), &b"ab"[..]),
        (11, offsets(&[0, 1, 3]), b"ab"),
        (12, offsets(&[0, 1, u64::MAX]), b"ab"),
        (13, offsets(&[0, 1, 2]), "é".as_bytes()),
        (14, offsets(&[0, 1, 2]), b"a\xff"),
    ] {
        forge(&disk, number, 3, entry(2, 2), [&[], &codes([0, 1, 0]), &offsets, bytes]);
        let file = open(&disk, number).unwrap();
        assert!(file.read(0, PropertyType::String, 0..3).is_err() && file.get(0, 0).is_err(), "{number}");
    }
    // Another number of strings, which changes the lengths of sections; other encodings; other types.
    for (number, entry) in [
        (20, entry(1, 2)),
        (21, entry(3, 2)),
        (22, entry(257, 2)),
        (23, entry(u64::MAX, 2)),
        (24, entry(2, 3)),
        (25, entry(2, u64::MAX)),
        (26, ColumnEntry { encoding: 2, ..entry(2, 2) }),
        (27, ColumnEntry { encoding: PLAIN, ..entry(2, 2) }),
        (28, ColumnEntry { property_type: 7, ..entry(2, 2) }),
        (29, ColumnEntry { property_type: 2, ..entry(2, 2) }),
    ] {
        forge(&disk, number, 3, entry, [&[], &codes([0, 1, 0]), &good, b"ab"]);
        assert!(open(&disk, number).is_err(), "{number}");
    }
}

/// A dictionary with more strings than the writer allows is still read.
#[test]
fn codes_of_four_bytes_are_read() {
    let disk = FaultStorage::new(FaultPlan::Never);
    let num_distinct = 65_537_u64;
    let offsets: Vec<u64> = (0..=num_distinct).map(|i| i.min(1)).collect();
    let (property_type, encoding, num_bytes) = (6, CODED, 1);
    let entry = ColumnEntry { property_type, encoding, num_distinct, num_bytes, ..ColumnEntry::default() };
    let codes = [0_u32, 65_536, 1, 0];
    forge(&disk, 0, 3, entry, [&[], bytemuck::cast_slice(&codes), bytemuck::cast_slice(&offsets), b"a"]);
    let file = open(&disk, 0).unwrap();
    assert!(file.read(0, PropertyType::String, 0..3).unwrap().iter().eq(["a", "", ""].map(PropertyValue::String)));
    assert_eq!(file.get(0, 1).unwrap(), PropertyValue::String(""));
}

/// A million rows of 40 distinct strings of 9 to 20 bytes take 1 MB instead of 22 MB.
#[test]
fn few_distinct_strings_take_a_byte_a_row() {
    let disk = FaultStorage::new(FaultPlan::Never);
    let num_rows = 1_000_000;
    let kinds: Vec<String> = (0..40).map(|kind| format!("merchant{:0width$}", kind, width = 1 + kind % 12)).collect();
    let mut column = ColumnBuilder::new(PropertyType::String);
    (0..num_rows).for_each(|row| column.push(PropertyValue::String(&kinds[row * 7 % 40])).unwrap());
    let column = column.finish();
    let (offsets, bytes) = column.pieces().unwrap();
    let plain = 8 * offsets.len() + bytes.len();
    let coded = write(&disk, 0, &[vec![column]]).unwrap().len as usize;
    assert!(plain > 22_000_000 && coded < 1_010_000, "{plain} {coded}");
}
