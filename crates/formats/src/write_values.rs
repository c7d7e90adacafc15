//! Writes a table with a value for each vertex: CSV, Parquet or JSON lines.
//!
//! The first column is `key`. A missing value is an empty field in CSV, and null elsewhere.

use std::io::Write;

use anden_base::VertexId;

use crate::number::parse_u64;
use crate::options::KeyKind;
use crate::write::{Output, Style};
use crate::write_parquet::{
    GROUP_ROWS, ParquetTable, RowFile, WrittenKeys, key_field, property_field, text_keys, whole_numbers,
};
use crate::{Error, Result};
use anden_graph::property::{ColumnBuilder, PropertyType, PropertyValue, push_json_text};

/// The name of the key column.
const KEY: &str = "key";

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Integers.
    Integer,
    /// Floating-point numbers.
    Real,
    /// Vertices, written as their keys.
    Vertex,
}

/// The value of one vertex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VertexValue {
    /// No value.
    Null,
    /// An integer.
    Integer(u64),
    /// A floating-point number. Infinities and NaN are written as no value.
    Real(f64),
    /// A vertex.
    Vertex(VertexId),
}

/// A column of values and the vertices that have them.
#[derive(Clone, Copy, Debug)]
pub struct ValueColumn<'a, V> {
    /// The name of the column.
    pub name: &'a str,
    /// The type of its values.
    pub kind: ValueKind,
    /// The rows, ascending by key.
    pub vertices: &'a [VertexId],
    /// Maps a vertex to its value, of the column's type or null.
    pub value: V,
}

/// Writes `key` and the column as CSV; `keys` appends the key of a vertex.
///
/// # Errors
/// Those of `keys` and of the output.
pub(crate) fn write_csv_values<E: From<Error>>(
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

/// Writes `key` and the column as JSON lines; `keys` appends the key of a vertex, of this `kind`.
///
/// # Errors
/// Those of `keys` and of the output.
pub(crate) fn write_json_values<E: From<Error>>(
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

/// Appends a number, or `null` for a missing value.
fn push_number(value: VertexValue, null: &str, line: &mut Vec<u8>) {
    // A write to memory cannot fail.
    let _ = match value {
        VertexValue::Integer(number) => write!(line, "{number}"),
        VertexValue::Real(number) if number.is_finite() => write!(line, "{number}"),
        _ => write!(line, "{null}"),
    };
}

/// Writes `key` and the column as Parquet; `keys` appends the key of a vertex, of this `kind`. Keys and values are signed
/// integers if all of them fit.
///
/// # Errors
/// Those of `keys` and of the output.
pub(crate) fn write_parquet_values<E: From<Error>>(
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
    // Rows ascend by key, so the last key is the largest.
    let has_large_keys = match (kind, column.vertices.last()) {
        (KeyKind::Integer, Some(&last)) => is_large(number(last)?),
        _ => false,
    };
    let is_large_value = |&vertex: &VertexId| matches!((column.value)(vertex), VertexValue::Integer(n) if is_large(n));
    let whole = |is_unsigned: bool| if is_unsigned { PropertyType::U64 } else { PropertyType::I64 };
    let value_type = match (kind, column.kind) {
        (_, ValueKind::Real) => PropertyType::F64,
        (KeyKind::String, ValueKind::Vertex) => PropertyType::String,
        (KeyKind::Integer, ValueKind::Vertex) => whole(has_large_keys),
        (_, ValueKind::Integer) => whole(column.vertices.iter().any(is_large_value)),
    };
    let fields = vec![key_field(KEY, kind, has_large_keys), property_field(column.name, value_type)];
    let (mut file, encoder) = ParquetTable::begin(output, fields)?;
    for vertices in column.vertices.chunks(GROUP_ROWS) {
        let key_cells = match kind {
            KeyKind::String => text_keys(vertices, keys)?,
            KeyKind::Integer => {
                let numbers = vertices.iter().map(|&vertex| number(vertex)).collect::<Result<Vec<_>, E>>()?;
                whole_numbers(numbers.into_iter(), has_large_keys)
            }
        };
        let mut cells = ColumnBuilder::new(value_type);
        let mut text = Vec::new();
        let whole = |number: u64| match value_type {
            PropertyType::U64 => PropertyValue::U64(number),
            _ => PropertyValue::I64(number as i64),
        };
        for &vertex in vertices {
            let cell = match (column.value)(vertex) {
                VertexValue::Integer(number) => whole(number),
                VertexValue::Real(number) if number.is_finite() => PropertyValue::F64(number),
                VertexValue::Vertex(other) if value_type == PropertyType::String => {
                    text.clear();
                    keys(other, &mut text)?;
                    PropertyValue::String(std::str::from_utf8(&text).unwrap_or_default())
                }
                VertexValue::Vertex(other) => whole(number(other)?),
                _ => PropertyValue::Null,
            };
            cells.push(cell).map_err(Error::from)?;
        }
        file.add(encoder.encode(&[key_cells, cells.finish().array().clone()])?)?;
    }
    file.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a\"b", "c,d", "é\n"];

    fn text(format: &str, kind: KeyKind, values: [VertexValue; 3]) -> String {
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
        match format {
            "csv" => write_csv_values::<Error>(&column, &keys, &mut output).unwrap(),
            _ => write_json_values::<Error>(&column, kind, &keys, &mut output).unwrap(),
        }
        drop(output);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn values_without_a_number_are_empty_or_null() {
        let hops = [VertexValue::Integer(0), VertexValue::Integer(u64::MAX), VertexValue::Null];
        let csv = text("csv", KeyKind::Integer, hops);
        assert_eq!(csv, "key,distance\n0,0\n10,18446744073709551615\n20,\n");
        let reals = [VertexValue::Real(0.5), VertexValue::Real(1e-9), VertexValue::Real(f64::INFINITY)];
        let csv = text("csv", KeyKind::Integer, reals);
        assert_eq!(csv, "key,distance\n0,0.5\n10,0.000000001\n20,\n");
        let lines = text("jsonl", KeyKind::Integer, hops);
        assert_eq!(lines.lines().last(), Some(r#"{"key":20,"distance":null}"#));
    }

    #[test]
    fn texts_are_quoted_as_their_format_asks() {
        let parents = [VertexValue::Vertex(1), VertexValue::Vertex(2), VertexValue::Null];
        let csv = text("csv", KeyKind::String, parents);
        assert_eq!(csv, "key,distance\n\"a\"\"b\",\"c,d\"\n\"c,d\",\"é\n\"\n\"é\n\",\n");
        let lines = text("jsonl", KeyKind::String, parents);
        let expected = [
            r#"{"key":"a\"b","distance":"c,d"}"#,
            r#"{"key":"c,d","distance":"é\u000a"}"#,
            r#"{"key":"é\u000a","distance":null}"#,
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }
}
