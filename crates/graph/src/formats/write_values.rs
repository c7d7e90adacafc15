//! A value for each vertex, as a table: CSV, Parquet or JSON lines.
//!
//! The first column is `key`. A vertex without a value has nothing between the commas of CSV and null elsewhere.

use std::io::Write;

use base::VertexId;

use super::endings::OutputFormat;
use super::number::parse_u64;
use super::options::KeyKind;
use super::parquet::encode::{Cells, Field, FieldKind, Group};
use super::write::{Output, Style};
use super::write_parquet::{GROUP_ROWS, GroupWriter, WrittenKeys, dictionary};
use crate::property::{ColumnBuilder, PropertyType, PropertyValue};
use crate::{Error, Result};

/// The name of the column of keys.
const KEY: &str = "key";

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Whole numbers.
    Integer,
    /// Floating numbers.
    Real,
    /// Vertices, by their keys.
    Vertex,
}

/// The value of one vertex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VertexValue {
    /// It has none.
    Null,
    /// A whole number.
    Integer(u64),
    /// A floating number; one that is not finite is written as no value.
    Real(f64),
    /// A vertex.
    Vertex(VertexId),
}

/// A column of values and the vertices that have them.
#[derive(Clone, Copy, Debug)]
pub struct ValueColumn<'a, V> {
    /// Its name.
    pub name: &'a str,
    /// What its values are.
    pub kind: ValueKind,
    /// The rows, ascending by key.
    pub vertices: &'a [VertexId],
    /// The value of a vertex, of the column's kind or null.
    pub value: V,
}

/// Writes `key` and the column as CSV, Parquet or JSON lines; `keys` appends the key of a vertex, of this kind.
///
/// Keys and values in Parquet are signed where all of them fit.
///
/// # Errors
/// Those of `keys` and of the output; a format that is none of these.
pub fn write_values<E: From<Error>>(
    format: OutputFormat,
    column: &ValueColumn<'_, impl Fn(VertexId) -> VertexValue>,
    kind: KeyKind,
    keys: impl WrittenKeys<E>,
    output: &mut Output<'_>,
) -> Result<(), E> {
    match format {
        OutputFormat::Csv => write_csv(column, &keys, output),
        OutputFormat::JsonLines => write_json_lines(column, kind, &keys, output),
        OutputFormat::Parquet => write_parquet(column, kind, &keys, output),
        other => {
            Err(Error::Parameter(format!("values are written as CSV, Parquet and JSON lines, not {other:?}")).into())
        }
    }
}

fn write_csv<E: From<Error>>(
    column: &ValueColumn<'_, impl Fn(VertexId) -> VertexValue>,
    keys: &impl WrittenKeys<E>,
    output: &mut Output<'_>,
) -> Result<(), E> {
    output.write(format!("{KEY},{}\n", column.name).as_bytes())?;
    let mut line = Vec::new();
    for &vertex in column.vertices {
        line.clear();
        keys(vertex, &mut line)?;
        Style::CSV.fit_key(&mut line, 0, output)?;
        line.push(b',');
        match (column.value)(vertex) {
            VertexValue::Vertex(other) => {
                let start = line.len();
                keys(other, &mut line)?;
                Style::CSV.fit_key(&mut line, start, output)?;
            }
            value => push_number(value, "", &mut line),
        }
        line.push(b'\n');
        output.write(&line)?;
    }
    Ok(output.flush()?)
}

fn write_json_lines<E: From<Error>>(
    column: &ValueColumn<'_, impl Fn(VertexId) -> VertexValue>,
    kind: KeyKind,
    keys: &impl WrittenKeys<E>,
    output: &mut Output<'_>,
) -> Result<(), E> {
    let (mut line, mut text) = (Vec::new(), Vec::new());
    let mut push_key = |vertex, line: &mut Vec<u8>| -> Result<(), E> {
        if kind == KeyKind::Integer {
            return keys(vertex, line);
        }
        text.clear();
        keys(vertex, &mut text)?;
        push_json_text(&String::from_utf8_lossy(&text), line);
        Ok(())
    };
    for &vertex in column.vertices {
        line.clear();
        line.extend_from_slice(format!("{{\"{KEY}\":").as_bytes());
        push_key(vertex, &mut line)?;
        line.push(b',');
        push_json_text(column.name, &mut line);
        line.push(b':');
        match (column.value)(vertex) {
            VertexValue::Vertex(other) => push_key(other, &mut line)?,
            value => push_number(value, "null", &mut line),
        }
        line.extend_from_slice(b"}\n");
        output.write(&line)?;
    }
    Ok(output.flush()?)
}

/// Appends a number; `null` where there is none.
fn push_number(value: VertexValue, null: &str, line: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = match value {
        VertexValue::Integer(number) => write!(line, "{number}"),
        VertexValue::Real(number) if number.is_finite() => write!(line, "{number}"),
        _ => write!(line, "{null}"),
    };
}

/// Appends a text in quotes, with the escapes of JSON.
fn push_json_text(text: &str, line: &mut Vec<u8>) {
    line.push(b'"');
    for character in text.chars() {
        // Writing to memory does not fail.
        let _ = match character {
            '"' | '\\' => write!(line, "\\{character}"),
            '\0'..='\x1f' | '\x7f' => write!(line, "\\u{:04x}", character as u32),
            _ => write!(line, "{character}"),
        };
    }
    line.push(b'"');
}

fn write_parquet<E: From<Error>>(
    column: &ValueColumn<'_, impl Fn(VertexId) -> VertexValue>,
    kind: KeyKind,
    keys: &impl WrittenKeys<E>,
    output: &mut Output<'_>,
) -> Result<(), E> {
    let number = |vertex: VertexId| -> Result<u64, E> {
        let mut text = Vec::with_capacity(20);
        keys(vertex, &mut text)?;
        let number = parse_u64(&text);
        Ok(number.ok_or_else(|| Error::Parameter(format!("the key of vertex {vertex} is no number")))?)
    };
    let is_large = |number: u64| i64::try_from(number).is_err();
    // The last key is the largest.
    let has_large_keys = match (kind, column.vertices.last()) {
        (KeyKind::Integer, Some(&last)) => is_large(number(last)?),
        _ => false,
    };
    let is_large_value = |&vertex: &VertexId| matches!((column.value)(vertex), VertexValue::Integer(n) if is_large(n));
    let (key_field, value_field) = match (kind, column.kind) {
        (KeyKind::String, ValueKind::Vertex) => (FieldKind::Text, FieldKind::Property(PropertyType::String)),
        (_, ValueKind::Real) => (key_field(kind, has_large_keys), FieldKind::Property(PropertyType::F64)),
        (_, ValueKind::Vertex) => (key_field(kind, has_large_keys), whole_field(has_large_keys)),
        (_, ValueKind::Integer) => {
            (key_field(kind, has_large_keys), whole_field(column.vertices.iter().any(is_large_value)))
        }
    };
    let fields = [(KEY, key_field), (column.name, value_field)];
    let fields = fields.map(|(name, kind)| Field { name: name.to_owned(), kind });
    let mut file = GroupWriter::new(output)?;
    for vertices in column.vertices.chunks(GROUP_ROWS) {
        let key_cells = match kind {
            KeyKind::String => dictionary(vertices, keys)?,
            KeyKind::Integer => {
                let numbers = vertices.iter().map(|&vertex| Ok(number(vertex)? as i64));
                Cells::Integers(numbers.collect::<Result<_, E>>()?)
            }
        };
        let is_text = value_field == FieldKind::Property(PropertyType::String);
        let mut cells = ColumnBuilder::new(match value_field {
            FieldKind::Property(property_type) => property_type,
            _ => PropertyType::I64,
        });
        let mut text = Vec::new();
        for &vertex in vertices {
            let cell = match (column.value)(vertex) {
                VertexValue::Integer(number) => PropertyValue::I64(number as i64),
                VertexValue::Real(number) if number.is_finite() => PropertyValue::F64(number),
                VertexValue::Vertex(other) if is_text => {
                    text.clear();
                    keys(other, &mut text)?;
                    PropertyValue::String(std::str::from_utf8(&text).unwrap_or_default())
                }
                VertexValue::Vertex(other) => PropertyValue::I64(number(other)? as i64),
                _ => PropertyValue::Null,
            };
            cells.push(cell)?;
        }
        file.add(Group::new(&[key_cells, Cells::Property(Box::new(cells.finish()))])?)?;
    }
    file.finish(&fields)?;
    Ok(())
}

fn key_field(kind: KeyKind, is_unsigned: bool) -> FieldKind {
    match kind {
        KeyKind::Integer => FieldKind::Integer { is_unsigned },
        KeyKind::String => FieldKind::Text,
    }
}

/// A column of whole numbers that may be null.
fn whole_field(is_unsigned: bool) -> FieldKind {
    if is_unsigned { FieldKind::OptionalUnsigned } else { FieldKind::Property(PropertyType::I64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a\"b", "c,d", "é\n"];

    fn written(format: OutputFormat, kind: KeyKind, values: [VertexValue; 3]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let value_kind = match values[0] {
            VertexValue::Real(_) => ValueKind::Real,
            VertexValue::Vertex(_) => ValueKind::Vertex,
            _ => ValueKind::Integer,
        };
        let column = ValueColumn {
            name: "distance",
            kind: value_kind,
            vertices: &[0, 1, 2],
            value: |vertex: VertexId| values[vertex as usize],
        };
        let keys = |vertex: VertexId, text: &mut Vec<u8>| -> Result<()> {
            match kind {
                KeyKind::Integer => text.extend(format!("{}", 10 * vertex).into_bytes()),
                KeyKind::String => text.extend(NAMES[vertex as usize].as_bytes()),
            }
            Ok(())
        };
        let mut output = Output::new("x".as_ref(), &mut bytes);
        write_values::<Error>(format, &column, kind, keys, &mut output).unwrap();
        drop(output);
        bytes
    }

    fn text(format: OutputFormat, kind: KeyKind, values: [VertexValue; 3]) -> String {
        String::from_utf8(written(format, kind, values)).unwrap()
    }

    #[test]
    fn values_without_a_number_are_empty_or_null() {
        let hops = [VertexValue::Integer(0), VertexValue::Integer(u64::MAX), VertexValue::Null];
        let csv = text(OutputFormat::Csv, KeyKind::Integer, hops);
        assert_eq!(csv, "key,distance\n0,0\n10,18446744073709551615\n20,\n");
        let reals = [VertexValue::Real(0.5), VertexValue::Real(1e-9), VertexValue::Real(f64::INFINITY)];
        let csv = text(OutputFormat::Csv, KeyKind::Integer, reals);
        assert_eq!(csv, "key,distance\n0,0.5\n10,0.000000001\n20,\n");
        let lines = text(OutputFormat::JsonLines, KeyKind::Integer, hops);
        assert_eq!(lines.lines().last(), Some(r#"{"key":20,"distance":null}"#));
    }

    #[test]
    fn texts_are_quoted_as_their_format_asks() {
        let parents = [VertexValue::Vertex(1), VertexValue::Vertex(2), VertexValue::Null];
        let csv = text(OutputFormat::Csv, KeyKind::String, parents);
        assert_eq!(csv, "key,distance\n\"a\"\"b\",\"c,d\"\n\"c,d\",\"é\n\"\n\"é\n\",\n");
        let lines = text(OutputFormat::JsonLines, KeyKind::String, parents);
        let expected = [
            r#"{"key":"a\"b","distance":"c,d"}"#,
            r#"{"key":"c,d","distance":"é\u000a"}"#,
            r#"{"key":"é\u000a","distance":null}"#,
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn other_formats_are_refused() {
        let column =
            ValueColumn { name: "x", kind: ValueKind::Real, vertices: &[], value: |_: VertexId| VertexValue::Null };
        let keys = |_: VertexId, _: &mut Vec<u8>| -> Result<()> { Ok(()) };
        let mut output = Output::new("x".as_ref(), Vec::new());
        let error = write_values::<Error>(OutputFormat::Mtx, &column, KeyKind::Integer, keys, &mut output).unwrap_err();
        assert!(error.to_string().contains("not Mtx"), "{error}");
    }
}
