//! Tests of columns and their builder.

use arrow_array::types::UInt32Type;
use arrow_array::{Int32Array, LargeStringArray, StringArray, TimestampMicrosecondArray, UInt32Array};

use super::*;

/// A column of `len` rows with nulls as `is_null` says.
fn column(property_type: PropertyType, len: usize, is_null: impl Fn(usize) -> bool) -> PropertyColumn {
    let mut column = ColumnBuilder::new(property_type);
    for row in 0..len {
        let text = format!("text {row}");
        let value = match property_type {
            _ if is_null(row) => PropertyValue::Null,
            PropertyType::Boolean => PropertyValue::Boolean(row % 3 == 0),
            PropertyType::I64 => PropertyValue::I64(row as i64 - 7),
            PropertyType::U64 => PropertyValue::U64(u64::MAX - row as u64),
            PropertyType::F32 => PropertyValue::F32(row as f32 / 8.0),
            PropertyType::F64 => PropertyValue::F64(row as f64 / 8.0),
            PropertyType::Date => PropertyValue::Date(row as i32 * 31),
            PropertyType::Timestamp => PropertyValue::Timestamp(row as i64 * 1_000_007),
            PropertyType::String | PropertyType::List(_) => PropertyValue::String(&text),
            PropertyType::Bytes => PropertyValue::Bytes(&text.as_bytes()[row % 5..]),
        };
        column.push(value).unwrap();
    }
    column.finish()
}

/// A dictionary column with `distinct` strings, one of them empty.
fn coded(distinct: usize, len: usize, is_null: impl Fn(usize) -> bool) -> PropertyColumn {
    let texts: LargeStringArray =
        (0..distinct).map(|i| Some(if i == 1 { String::new() } else { format!("ü{i}") })).collect();
    let codes = (0..len).map(|row| if is_null(row) { u32::MAX } else { (row * 7 % distinct) as u32 }).collect();
    let nulls = NullBuffer::from_iter((0..len).map(|row| !is_null(row)));
    PropertyColumn::from_codes(codes, &texts, Some(nulls)).unwrap()
}

/// The values in a column that is built row by row.
fn rebuilt(column: &PropertyColumn) -> PropertyColumn {
    let mut again = ColumnBuilder::new(column.property_type());
    column.iter().for_each(|value| again.push(value).unwrap());
    again.finish()
}

#[test]
fn rows_are_appended_gathered_sliced_and_cut() {
    for kind in 0..=PropertyType::ALL.len() {
        for len in [0, 1, 63, 64, 65, 200] {
            for every in [usize::MAX, 1, 3, 64] {
                let is_null = |row: usize| row % every == every - 1;
                let whole = match PropertyType::ALL.get(kind) {
                    Some(&(property_type, _)) => column(property_type, len, is_null),
                    None => coded(5, len, is_null),
                };
                let property_type = whole.property_type();
                assert_eq!(whole.num_nulls(), (0..len).filter(|&row| is_null(row)).count());
                assert_eq!(rebuilt(&whole), whole);
                assert_eq!(PropertyColumn::from_array(whole.array().clone()).unwrap(), whole);
                for cut in [0, 1, 5, 63, 64, 65, 130] {
                    let cut = cut.min(len);
                    let rows: Vec<u32> = (cut as u32..len as u32).collect();
                    let (rest, part) = (whole.gather(&rows), whole.slice(cut..len));
                    assert_eq!(rest, part, "{property_type} {len} {every} {cut}");
                    assert_eq!(rest.num_nulls(), part.num_nulls());
                    assert_eq!(rest.gather_or_null(&[u32::MAX]).get(0), PropertyValue::Null);
                    // A slice of a slice starts within a byte of the bitmap.
                    let third = part.slice(part.len() / 3..part.len());
                    assert_eq!(third, whole.slice(cut + part.len() / 3..len));
                    let mut joined = ColumnBuilder::new(property_type);
                    joined.append(&whole).unwrap();
                    joined.truncate(cut);
                    joined.append(&part).unwrap();
                    joined.push(PropertyValue::Null).unwrap();
                    let joined = joined.finish();
                    assert_eq!(joined, whole.clone().padded(len + 1), "{property_type} {len} {every} {cut}");
                    assert_eq!((joined.num_nulls(), joined.is_null(len)), (whole.num_nulls() + 1, true));
                    assert_eq!(joined.padded(len), whole);
                }
            }
        }
    }
}

#[test]
fn dictionaries_make_no_difference() {
    let with = coded(4, 100, |row| row % 9 == 0);
    let without = rebuilt(&with);
    assert!(matches!((with.values(), without.values()), (TypedArray::Coded { .. }, TypedArray::String(_))));
    assert_eq!(with, without);
    assert_ne!(with, coded(4, 100, |row| row % 9 == 1));
    assert_eq!(with.property_type(), PropertyType::String);
    // Slices, gathered rows and padded columns share the dictionary.
    for other in [with.slice(3..50), with.gather(&[7, 7, 0]), with.clone().padded(101)] {
        assert!(matches!(other.values(), TypedArray::Coded { texts, .. } if texts.len() == 4));
    }
    assert!(matches!(with.without_dictionary().values(), TypedArray::String(_)));
    // Columns with few distinct strings get a dictionary.
    let rarer = rebuilt(&coded(20, 320, |row| row % 9 == 0));
    assert_eq!(rarer.clone().with_dictionary(), rarer);
    assert!(matches!(rarer.with_dictionary().values(), TypedArray::Coded { texts, .. } if texts.len() == 20));
    assert!(matches!(rebuilt(&coded(23, 320, |_| false)).with_dictionary().values(), TypedArray::String(_)));
    // A code that names a null of the dictionary is null.
    let texts: LargeStringArray = [Some("a"), None].into_iter().collect();
    let array = DictionaryArray::<UInt32Type>::new(UInt32Array::from(vec![0, 1, 0]), Arc::new(texts));
    let column = PropertyColumn::from_array(Arc::new(array)).unwrap();
    assert_eq!(
        (column.num_nulls(), column.get(1), column.get(2)),
        (1, PropertyValue::Null, PropertyValue::String("a"))
    );
    let texts: LargeStringArray = [Some("a")].into_iter().collect();
    assert!(PropertyColumn::from_codes(vec![1], &texts, None).is_err());
}

#[test]
fn values_of_another_type_are_refused() {
    let mut numbers = ColumnBuilder::new(PropertyType::I64);
    numbers.append(&column(PropertyType::I64, 3, |_| false)).unwrap();
    let error = numbers.push(PropertyValue::String("4")).unwrap_err().to_string();
    assert_eq!(error, "expected a value of type i64, found one of type string");
    let error = numbers.push_text(b"x\x1b").unwrap_err();
    assert_eq!(error, r"expected a whole number of type i64, found 'x\u{1b}'");
    let error = numbers.append(&column(PropertyType::Date, 1, |_| false)).unwrap_err().to_string();
    assert_eq!(error, "a column of type date cannot be appended to one of type i64");
    assert_eq!(numbers.finish(), column(PropertyType::I64, 3, |_| false));
    let mut bytes = ColumnBuilder::new(PropertyType::Bytes);
    bytes.push_text(b"0xFF00").unwrap();
    assert_eq!(bytes.finish().get(0), PropertyValue::Bytes(&[255, 0]));
}

#[test]
fn arrays_of_other_types_are_refused() {
    let refused = |array: ArrayRef| PropertyColumn::from_array(array).unwrap_err().to_string();
    assert_eq!(refused(Arc::new(Int32Array::from(vec![1]))), "no property has the Arrow type Int32");
    assert_eq!(refused(Arc::new(StringArray::from(vec!["a"]))), "no property has the Arrow type Utf8");
    let without_zone = TimestampMicrosecondArray::from(vec![1]);
    assert!(refused(Arc::new(without_zone)).starts_with("no property has the Arrow type Timestamp"));
}

#[test]
fn bytes_of_files_are_checked() {
    let text = |offsets: &[i64], bytes: &[u8]| {
        PropertyColumn::from_buffers(PropertyType::String, offsets.to_vec(), bytes.to_vec(), None)
    };
    assert_eq!(text(&[0, 2, 2], "ü".as_bytes()).unwrap().get(0), PropertyValue::String("ü"));
    for (offsets, bytes) in [
        (&[][..], &b""[..]),
        (&[-1, 1], b"x"),
        (&[0, 2, 1], b"x"),
        (&[0, 2], b"x"),
        (&[0, 1], b"\xff"),
        (&[0, 1, 2], "ü".as_bytes()),
    ] {
        assert!(text(offsets, bytes).is_err(), "{offsets:?} {bytes:?}");
    }
    let fixed = PropertyColumn::from_fixed_bytes;
    let nulls = |bits: &[bool]| Some(NullBuffer::from_iter(bits.iter().copied()));
    assert!(fixed(PropertyType::Boolean, &[2], None).is_err());
    assert!(fixed(PropertyType::Boolean, &[0, 1], nulls(&[true])).is_err());
    assert!(fixed(PropertyType::I64, &[0; 15], None).is_err());
    assert!(fixed(PropertyType::I64, &[0; 16], nulls(&[true])).is_err());
    assert!(fixed(PropertyType::String, &[0; 16], None).is_err());
    let column = fixed(PropertyType::Date, &[1, 0, 0, 0, 2, 0, 0, 0], nulls(&[false, true])).unwrap();
    assert_eq!(column.iter().collect::<Vec<_>>(), [PropertyValue::Null, PropertyValue::Date(2)]);
}

#[test]
fn columns_come_back_from_bytes() {
    for (property_type, _) in PropertyType::ALL {
        for len in [0, 1, 70] {
            let column = column(property_type, len, |row| row % 3 == 1);
            let nulls = column.validity().cloned();
            let again = match (column.fixed_bytes(), column.pieces()) {
                (Some(bytes), _) => PropertyColumn::from_fixed_bytes(property_type, &bytes, nulls),
                (None, Some((offsets, bytes))) => {
                    PropertyColumn::from_buffers(property_type, offsets.to_vec(), bytes.to_vec(), nulls)
                }
                (None, None) => panic!("{property_type}"),
            };
            let again = again.unwrap();
            assert_eq!((&again, again.array().data_type()), (&column, column.array().data_type()));
        }
    }
}

#[test]
fn wider_types_take_the_values_over() {
    let converted = column(PropertyType::I64, 9, |row| row == 4).converted(PropertyType::F64).unwrap();
    assert_eq!((converted.get(0), converted.get(4)), (PropertyValue::F64(-7.0), PropertyValue::Null));
    let mut large = ColumnBuilder::new(PropertyType::I64);
    large.push(PropertyValue::I64((1 << 53) + 1)).unwrap();
    let error = large.finish().converted(PropertyType::F64).unwrap_err().to_string();
    assert_eq!(error, "9007199254740993 of type i64 is no value of type f64");
    let days = column(PropertyType::Date, 2, |_| false).converted(PropertyType::Timestamp).unwrap();
    assert_eq!(days.get(1).to_string(), "1970-02-01T00:00:00Z");
    assert!(column(PropertyType::String, 1, |_| false).converted(PropertyType::I64).is_err());
}

/// `converts_to` predicts from the types alone whether `converted` succeeds if every value fits.
#[test]
fn types_convert_as_their_columns_do() {
    for (from, _) in PropertyType::ALL {
        for (to, _) in PropertyType::ALL {
            let converted = PropertyColumn::nulls(from, 3).converted(to);
            assert_eq!(converted.is_ok(), from.converts_to(to), "{from} to {to}");
            assert!(converted.is_err() || converted.is_ok_and(|column| column.property_type() == to));
        }
    }
    for (value, to, expected) in [
        (PropertyValue::U64(7), PropertyType::I64, Some(PropertyValue::I64(7))),
        (PropertyValue::I64(-7), PropertyType::U64, None),
        (PropertyValue::U64(u64::MAX), PropertyType::I64, None),
        (PropertyValue::U64(1 << 24), PropertyType::F32, Some(PropertyValue::F32(16_777_216.0))),
        (PropertyValue::I64(-(1 << 24) - 1), PropertyType::F32, None),
        (PropertyValue::F64(0.1), PropertyType::F32, Some(PropertyValue::F32(0.1))),
        (PropertyValue::F64(1e39), PropertyType::F32, None),
        (PropertyValue::F64(f64::INFINITY), PropertyType::F32, Some(PropertyValue::F32(f32::INFINITY))),
        (PropertyValue::Date(i32::MAX), PropertyType::Timestamp, None),
    ] {
        let mut column = ColumnBuilder::new(value.property_type().unwrap());
        column.push(value).unwrap();
        let converted = column.finish().converted(to).ok();
        assert_eq!(converted.as_ref().map(|column| column.get(0)), expected, "{value} to {to}");
    }
}
