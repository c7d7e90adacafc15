//! Columns with delimiters.
//!
//! Delimiter and header are told by the first line. A quoted field may hold delimiters and doubled
//! quotes, but ends on its line: blocks are cut at line ends without looking for quotes.

use super::blocks::TextBlock;
use super::key::FieldKey;
use super::lines::{Parsed, line_end, trimmed};
use super::message::shown;
use super::number::{parse_u64, parse_weight, weight_range};
use super::options::{KeyKind, OnError, SourceOptions};
use super::outcome::unexpected;
use crate::Weight;

/// The most columns of a header.
const MAX_COLUMNS: usize = 10_000;
/// The longest field that is looked at.
const MAX_FIELD_BYTES: usize = 64 << 10;

/// Names that a column may have, in lower case.
const SOURCE_NAMES: [&str; 7] = ["source", "src", "from", "fromnodeid", "u", "start", "tail"];
const TARGET_NAMES: [&str; 9] = ["target", "dst", "dest", "destination", "to", "tonodeid", "v", "end", "head"];
const WEIGHT_NAMES: [&str; 4] = ["weight", "w", "cost", "distance"];
const VERTEX_NAMES: [&str; 9] = ["id", "key", "name", "vertex", "node", "label", "vertexid", "nodeid", "~id"];

/// Where the columns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CsvLayout {
    delimiter: u8,
    source: usize,
    /// Of a file of vertices: none.
    target: Option<usize>,
    weight: Option<usize>,
}

/// The layout that the first line tells, and whether that line is a header.
///
/// # Errors
/// The line has no such columns.
pub(super) fn layout_of(line: &[u8], options: &SourceOptions, is_edges: bool) -> Result<(CsvLayout, bool), String> {
    let delimiter = delimiter_of(line);
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(field) = next_field(line, &mut at, line.len(), delimiter)? {
        if names.len() == MAX_COLUMNS {
            return Err(format!("expected at most {MAX_COLUMNS} columns, found more"));
        }
        names.push(String::from_utf8_lossy(&field.bytes(line)).into_owned());
    }
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let usual = |usual: &[&str]| usual.iter().find_map(|name| lower.iter().position(|found| found == name));
    let named = |wanted: &Option<String>| -> Result<Option<usize>, String> {
        let Some(wanted) = wanted else { return Ok(None) };
        let found = names.iter().position(|name| name == wanted);
        match found.or_else(|| lower.iter().position(|name| *name == wanted.to_lowercase())) {
            Some(place) => Ok(Some(place)),
            None => Err(format!("expected a column {}, found {}", shown(wanted.as_bytes()), shown(line))),
        }
    };
    // A first line with one key in it is a faulty row rather than a header.
    let num_keys = if is_edges { 2 } else { 1 };
    let is_no_key = options.keys == KeyKind::Integer
        && names.iter().take(num_keys).all(|name| parse_u64(name.as_bytes()).is_none());
    if !is_edges {
        let column = usual(&VERTEX_NAMES);
        let has_header = is_no_key || (options.keys == KeyKind::String && column == Some(0));
        let source = column.filter(|_| has_header).unwrap_or(0);
        return Ok((CsvLayout { delimiter, source, target: None, weight: None }, has_header));
    }
    let (source, target) = (named(&options.source_column)?, named(&options.target_column)?);
    let weight = if options.weights.is_some() { named(&options.weight_column)? } else { None };
    let is_named = source.is_some() || target.is_some() || weight.is_some();
    let has_usual = usual(&SOURCE_NAMES).is_some() && usual(&TARGET_NAMES).is_some();
    let has_header = is_named || has_usual || is_no_key;
    let or_usual = |found: Option<usize>, names: &[&str]| found.or_else(|| usual(names).filter(|_| has_header));
    let source = or_usual(source, &SOURCE_NAMES).unwrap_or(0);
    let target = or_usual(target, &TARGET_NAMES).unwrap_or(1);
    if source == target || source.max(target) >= names.len() {
        return Err(format!("expected a column of sources and one of targets, found {}", shown(line)));
    }
    let weight = match (options.weights, or_usual(weight, &WEIGHT_NAMES)) {
        (None, _) => None,
        (Some(_), Some(place)) => Some(place),
        (Some(_), None) if names.len() > 2 && source.max(target) < 2 => Some(2),
        _ => return Err(format!("expected a column of weights, found {}", shown(line))),
    };
    Ok((CsvLayout { delimiter, source, target: Some(target), weight }, has_header))
}

/// The delimiter that the line has most of.
fn delimiter_of(line: &[u8]) -> u8 {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    let best = [b',', b';', b'\t'].into_iter().rev().max_by_key(|&delimiter| count(delimiter));
    best.unwrap_or(b',')
}

/// Where a field stands, without its quotes.
#[derive(Clone, Copy, Debug)]
struct Field {
    start: usize,
    end: usize,
    has_doubled_quotes: bool,
}

impl Field {
    fn bytes(self, line: &[u8]) -> std::borrow::Cow<'_, [u8]> {
        let raw = &line[self.start..self.end];
        if !self.has_doubled_quotes {
            return raw.into();
        }
        let mut bytes = Vec::with_capacity(raw.len());
        let mut is_second = false;
        for &byte in raw {
            is_second = byte == b'"' && !is_second;
            if !is_second {
                bytes.push(byte);
            }
        }
        bytes.into()
    }
}

/// The field that begins at `at`, which moves behind its delimiter; none behind the last.
fn next_field(bytes: &[u8], at: &mut usize, end: usize, delimiter: u8) -> Result<Option<Field>, String> {
    // One past the end: the last field was taken.
    if *at > end {
        return Ok(None);
    }
    let blank = |byte: u8| (byte == b' ' || byte == b'\t' || byte == b'\r') && byte != delimiter;
    let mut start = *at;
    while start < end && blank(bytes[start]) {
        start += 1;
    }
    if start < end && bytes[start] == b'"' {
        start += 1;
        let mut has_doubled_quotes = false;
        let mut close = start;
        loop {
            let Some(len) = memchr::memchr(b'"', &bytes[close..end]) else {
                return Err(format!("expected a closing quote on the line, found {}", shown(&bytes[*at..end])));
            };
            close += len;
            if bytes[close + 1..end].first() != Some(&b'"') {
                break;
            }
            has_doubled_quotes = true;
            close += 2;
        }
        let mut next = close + 1;
        while next < end && blank(bytes[next]) {
            next += 1;
        }
        if next < end && bytes[next] != delimiter {
            return Err(format!("expected a delimiter after the quote, found {}", shown(&bytes[next..end])));
        }
        *at = next + 1;
        return Ok(Some(Field { start, end: close, has_doubled_quotes }));
    }
    let stop = memchr::memchr(delimiter, &bytes[start..end]).map_or(end, |len| start + len);
    *at = stop + 1;
    let mut last = stop;
    while last > start && blank(bytes[last - 1]) {
        last -= 1;
    }
    Ok(Some(Field { start, end: last, has_doubled_quotes: false }))
}

/// Parses the lines of a block. Empty lines are passed over.
pub(super) fn parse_columns<K: FieldKey, W: Weight>(
    block: &TextBlock,
    layout: &CsvLayout,
    on_error: OnError,
) -> Parsed<K, W> {
    let mut parsed = Parsed::of_block(block, on_error);
    let bytes = &block.bytes[..];
    let num_columns = 1 + layout.source.max(layout.target.unwrap_or(0)).max(layout.weight.unwrap_or(0));
    let mut at = block.start;
    while at < block.end {
        let end = line_end(bytes, at);
        let (first, last) = trimmed(bytes, at, end);
        if first < last {
            // Blanks at the ends may be delimiters: only the carriage return goes.
            let last = if bytes[end - 1] == b'\r' { end - 1 } else { end };
            if let Err(what) = row(bytes, at, last, layout, num_columns, &mut parsed, block.end)
                && parsed.faults.note(bytes, at, what)
            {
                break;
            }
        }
        at = end + 1;
    }
    parsed
}

fn row<K: FieldKey, W: Weight>(
    bytes: &[u8],
    start: usize,
    end: usize,
    layout: &CsvLayout,
    num_columns: usize,
    parsed: &mut Parsed<K, W>,
    base: usize,
) -> Result<(), String> {
    let (mut source, mut target, mut weight): (Option<K>, Option<K>, Option<W>) = (None, None, None);
    let mut at = start;
    for column in 0..num_columns {
        let Some(field) = next_field(bytes, &mut at, end, layout.delimiter)? else {
            return Err(format!("expected at least {num_columns} columns, found {column}"));
        };
        if field.end - field.start > MAX_FIELD_BYTES {
            return Err(format!(
                "column {}: expected at most {MAX_FIELD_BYTES} bytes, found {}",
                column + 1,
                field.end - field.start
            ));
        }
        let mut key = |name: &str| -> Result<Option<K>, String> {
            let key = if field.has_doubled_quotes {
                K::from_owned(&field.bytes(bytes), base, &mut parsed.extra)
            } else {
                K::from_text(bytes, field.start, field.end - field.start)
            };
            let wrong = || unexpected(&format!("a {name}, {}", K::RANGE), Some(&bytes[field.start..field.end]));
            key.ok_or_else(wrong).map(Some)
        };
        if column == layout.source {
            source = key(if layout.target.is_some() { "source" } else { "vertex" })?;
        } else if Some(column) == layout.target {
            target = key("target")?;
        }
        if Some(column) == layout.weight {
            let token = field.bytes(bytes);
            weight = Some(parse_weight(&token).ok_or_else(|| unexpected(weight_range(W::TYPE), Some(&token)))?);
        }
    }
    match (source, target) {
        (Some(source), Some(target)) => parsed.edges.push((source, target)),
        (Some(vertex), None) => parsed.vertices.push(vertex),
        _ => {}
    }
    parsed.weights.extend(weight);
    Ok(())
}
