//! Columns of a table in memory, by name.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use anden_base::message::shown;
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};

use super::fields::{CsvLayout, CsvProperties, parse_columns};
use super::head::fields_of;
use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::key::Span;
use crate::lines::line_end;
use crate::number::PADDING;
use crate::options::{KeyKind, LoneKeys, SourceOptions};
use crate::part::PartProperties;
use crate::{Error, Result};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads columns of CSV with a header, and counts the rows. The columns are in the order of `wanted`, with its types.
///
/// # Errors
/// A column is missing; a row lacks a column, or has a value of another type.
pub(crate) fn read_columns(
    path: &Path,
    mut bytes: Vec<u8>,
    wanted: Vec<(String, PropertyType)>,
) -> Result<(Vec<PropertyColumn>, u64)> {
    let bad = |what: String| Error::Input { path: path.to_owned(), what };
    if bytes.last().is_some_and(|&last| last != b'\n') {
        bytes.push(b'\n');
    }
    let end = bytes.len();
    // Parsers read whole words, also beyond the end.
    bytes.extend([b'\n'; PADDING]);
    let mark = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let header = line_end(&bytes, mark);
    let names = fields_of(bytes[mark..header].trim_ascii_end(), b',').map_err(bad)?;
    let places = wanted.iter().map(|(name, _)| {
        let place = names.iter().position(|known| known == name);
        let missing = || bad(format!("expected a column {}, found {}", shown(name.as_bytes()), names.join(", ")));
        place.ok_or_else(missing)
    });
    let places = places.collect::<Result<Vec<_>>>()?;
    let own = PropertySchema::new(wanted).map_err(|error| bad(error.to_string()))?;
    let properties = CsvProperties::new(&PartProperties { own, places, ..PartProperties::default() });
    let layout = CsvLayout {
        delimiter: b',',
        // Every row has some first column, whose text serves as a key that is not used.
        source: 0,
        target: None,
        weight: None,
        lone_keys: LoneKeys::Refuse,
        comment: None,
        trim: false,
        num_columns: Some(names.len()),
    };
    let options = SourceOptions { keys: KeyKind::String, empty_ids: true, ..SourceOptions::default() };
    let block = TextBlock { bytes, start: end.min(header + 1), end };
    let num_read = AtomicU64::new(0);
    let mut parsed = parse_columns::<Span, u32>(&block, &layout, &properties, &ParseContext::new(&options, &num_read));
    match parsed.faults.fatal() {
        Some(fault) => Err(Error::Line { path: path.to_owned(), line: fault.line + 1, what: fault.what }),
        None => Ok((parsed.vertex_properties, parsed.vertices.len() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, wanted: &[(&str, PropertyType)]) -> Result<(Vec<Vec<String>>, u64), String> {
        let wanted = wanted.iter().map(|&(name, property_type)| (name.to_owned(), property_type)).collect();
        let (columns, num_rows) =
            read_columns("chunk0".as_ref(), text.as_bytes().to_vec(), wanted).map_err(|error| error.to_string())?;
        let texts = |column: &PropertyColumn| column.iter().map(|value| value.to_string()).collect();
        Ok((columns.iter().map(texts).collect(), num_rows))
    }

    #[test]
    fn wanted_columns_have_their_order_and_types() {
        let text = "\u{feff}\"_index\",\"name\",\"size\",day\r\n0,\"a, \"\"b\"\"\",7,2012-05-03\r\n1,,8,\r\n";
        let wanted = [("day", PropertyType::Date), ("name", PropertyType::String), ("size", PropertyType::I64)];
        let (columns, num_rows) = read(text, &wanted).unwrap();
        assert_eq!(num_rows, 2);
        assert_eq!(columns, [vec!["2012-05-03", ""], vec!["a, \"b\"", ""], vec!["7", "8"]]);
        assert_eq!(read("a,b\n1,2", &[("b", PropertyType::I64)]), Ok((vec![vec!["2".to_owned()]], 1)));
        assert_eq!(read("a,b", &[("a", PropertyType::I64)]), Ok((vec![vec![]], 0)));
    }

    #[test]
    fn faults_name_the_line_or_the_column() {
        for (text, expected) in [
            ("a,b\n1,x\n", "chunk0:2: column 'b': expected a whole number"),
            ("a,b\n1,2\n3\n", "chunk0:3: expected at least 2 columns, found 1"),
            ("a,b\n1,2,3\n", "chunk0:2: expected at most 2 columns"),
            ("a,c\n1,2\n", "chunk0: expected a column 'b', found a, c"),
            ("", "chunk0: expected a column 'b', found"),
        ] {
            let error = read(text, &[("b", PropertyType::I64)]).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
