//! What the beginning of a file of columns tells: where the columns are, and what is in them.
//!
//! Delimiter and header are told by the first line. A name may carry a type, `NAME:TYPE`; the types
//! of other properties are told from the lines at the beginning, by the rule of
//! [`Inference`](crate::property::Inference), so a value further on may be none of that type: an
//! error then, which says how to give the type.
//!
//! Where any text is a key, a first line may be a header although nobody knows its names. It is a row if a number
//! stands in it. Otherwise it is refused where there are columns that would be lost, and else taken as a row, which is
//! told to the caller: a guess is never silent.

use std::io::{Cursor, Read};
use std::path::Path;

use super::compression::decoded;
use super::csv::{BLANKS, CsvLayout, next_field};
use super::csv_rows::{RowEnd, closing_quote, row_end};
use super::lines::{is_comment, line_end, trimmed};
use super::message::shown;
use super::number::{parse_u64, parse_weight};
use super::options::{KeyKind, LoneKeys, SourceOptions, WantedProperties};
use super::part::{HEAD_BYTES, PartProperties, TextKind, read_head};
use crate::property::{Inference, PropertyType};
use crate::{Error, Result};

/// The most columns of a header.
const MAX_COLUMNS: usize = 10_000;
/// What may delimit columns; the first where the first line has equally many.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];
/// Text of a file that types are told from.
const SAMPLE_BYTES: u64 = 1 << 20;

/// Names that a column may have, in lower case.
pub(super) const SOURCE_NAMES: [&str; 8] = ["source", "src", "from", "origin", "fromnodeid", "u", "start", "tail"];
pub(super) const TARGET_NAMES: [&str; 9] =
    ["target", "dst", "dest", "destination", "to", "tonodeid", "v", "end", "head"];
pub(super) const WEIGHT_NAMES: [&str; 4] = ["weight", "w", "cost", "distance"];
pub(super) const VERTEX_NAMES: [&str; 9] =
    ["id", "key", "name", "vertex", "node", "label", "vertexid", "nodeid", "~id"];

/// What the first line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) layout: CsvLayout,
    /// Whether the line is a header, and no row.
    pub(super) is_header: bool,
    /// Where the line is taken as a row and may be a header: what the caller is told.
    pub(super) guess: Option<String>,
    /// Columns that are properties: their places, names, and the types that stand with the names.
    pub(super) properties: Vec<(usize, String, Option<PropertyType>)>,
}

/// The name of a column, and the type that it may carry.
fn name_and_type(name: &str) -> (&str, Option<PropertyType>) {
    let carried = name.rsplit_once(':').and_then(|(name, found)| Some((name, PropertyType::of_name(found)?)));
    carried.map_or((name, None), |(name, found)| (name, Some(found)))
}

/// What the first line tells of a file of columns of this kind.
///
/// # Errors
/// The line has no such columns.
pub(super) fn header_of(line: &[u8], options: &SourceOptions, kind: TextKind) -> Result<Header, String> {
    let delimiter = if kind == TextKind::BlankColumns { BLANKS } else { delimiter_of(line) };
    let mut fields = Vec::new();
    let mut at = 0;
    while let Some(field) = next_field(line, &mut at, line.len(), delimiter)? {
        if fields.len() == MAX_COLUMNS {
            return Err(format!("expected at most {MAX_COLUMNS} columns, found more"));
        }
        fields.push(String::from_utf8_lossy(&field.bytes(line)).into_owned());
    }
    let is_edges = kind != TextKind::VertexCsv;
    let given = options.columns.as_deref().filter(|_| is_edges);
    if let Some(given) = given
        && given.len() > fields.len()
    {
        return Err(format!("expected {} columns, as their names are given, found {}", given.len(), shown(line)));
    }
    let columns = Columns::new(line, given.unwrap_or(&fields));
    let mut header = match is_edges {
        true => edge_header(&columns, options, &fields, delimiter, given.is_some()),
        false => vertex_header(&columns, options, &fields, delimiter),
    }?;
    let wanted = if is_edges { &options.edge_properties } else { &options.vertex_properties };
    if header.is_header || given.is_some() {
        let CsvLayout { source, target, weight, .. } = header.layout;
        for (place, &(name, carried)) in columns.names.iter().enumerate() {
            let is_taken = place == source || Some(place) == target || Some(place) == weight;
            // An index that was written without a name is of no use to anybody.
            if !is_taken && !name.is_empty() && wanted.wants(name) {
                header.properties.push((place, name.to_owned(), carried));
            }
        }
    }
    Ok(header)
}

/// The columns by name.
struct Columns<'a> {
    line: &'a [u8],
    names: Vec<(&'a str, Option<PropertyType>)>,
    lower: Vec<String>,
}

impl<'a> Columns<'a> {
    fn new(line: &'a [u8], names: &'a [String]) -> Self {
        let names: Vec<_> = names.iter().map(|name| name_and_type(name)).collect();
        let lower = names.iter().map(|(name, _)| name.to_lowercase()).collect();
        Self { line, names, lower }
    }

    /// The first of these names that a column has.
    fn usual(&self, usual: &[&str]) -> Option<usize> {
        usual.iter().find_map(|name| self.lower.iter().position(|found| found == name))
    }

    /// The column that is asked for, if one is.
    fn named(&self, wanted: &Option<String>) -> Result<Option<usize>, String> {
        let Some(wanted) = wanted else { return Ok(None) };
        let found = self.names.iter().position(|(name, _)| name == wanted);
        match found.or_else(|| self.lower.iter().position(|name| *name == wanted.to_lowercase())) {
            Some(place) => Ok(Some(place)),
            None => Err(format!("expected a column {}, found {}", shown(wanted.as_bytes()), shown(self.line))),
        }
    }
}

fn vertex_header(
    columns: &Columns<'_>,
    options: &SourceOptions,
    fields: &[String],
    delimiter: u8,
) -> Result<Header, String> {
    let named = columns.named(&options.vertex_column)?;
    let usual = columns.usual(&VERTEX_NAMES);
    let is_no_key = is_no_key(options, fields, 1);
    let is_header = named.is_some() || is_no_key || (options.keys == KeyKind::String && usual == Some(0));
    let guess = (!is_header && may_be_header(options, fields)).then(|| {
        format!(
            "the first line {} is taken as a vertex: if it is a header, --vertex-column says so",
            shown(columns.line)
        )
    });
    if guess.is_some() && fields.len() > 1 && options.vertex_properties != WantedProperties::None {
        return Err(format!(
            "expected names of columns or a vertex, found {}, which may be either: --vertex-column names the column of \
             the keys in a header, --vertex-properties none leaves the other columns out",
            shown(columns.line)
        ));
    }
    let source = named.or(usual.filter(|_| is_header)).unwrap_or(0);
    let layout = CsvLayout { delimiter, source, target: None, weight: None, lone_keys: LoneKeys::Refuse };
    Ok(Header { layout, is_header, guess, properties: Vec::new() })
}

fn edge_header(
    columns: &Columns<'_>,
    options: &SourceOptions,
    fields: &[String],
    delimiter: u8,
    are_given: bool,
) -> Result<Header, String> {
    let line = columns.line;
    if fields.len() == 1 && options.lone_keys == LoneKeys::Vertices {
        let mut header = vertex_header(columns, options, fields, delimiter)?;
        (header.layout.target, header.layout.lone_keys) = (Some(1), LoneKeys::Vertices);
        return Ok(header);
    }
    let (source, target) = (columns.named(&options.source_column)?, columns.named(&options.target_column)?);
    let weight = if options.weights.is_some() { columns.named(&options.weight_column)? } else { None };
    let is_named = source.is_some() || target.is_some() || weight.is_some();
    let has_usual = columns.usual(&SOURCE_NAMES).is_some() && columns.usual(&TARGET_NAMES).is_some();
    let has_names = is_named || has_usual || is_no_key(options, fields, 2) || are_given;
    let or_usual = |found: Option<usize>, names: &[&str]| found.or_else(|| columns.usual(names).filter(|_| has_names));
    let source = or_usual(source, &SOURCE_NAMES).unwrap_or(0);
    let target = or_usual(target, &TARGET_NAMES).unwrap_or(1);
    if source == target || source.max(target) >= fields.len() {
        return Err(format!("expected a column of sources and one of targets, found {}", shown(line)));
    }
    let guess = (!has_names && may_be_header(options, fields)).then(|| {
        format!(
            "the first line {} is taken as an edge: if it is a header, --source-column and --target-column say so; \
             --columns says that it is none",
            shown(line)
        )
    });
    if guess.is_some() && fields.len() > 2 {
        return Err(format!(
            "expected names of columns or an edge, found {}, which may be either: --source-column and --target-column \
             name the columns of a header, --columns those of a file without one",
            shown(line)
        ));
    }
    let weight = match (options.weights, or_usual(weight, &WEIGHT_NAMES)) {
        (None, _) => None,
        (Some(_), Some(place)) => Some(place),
        (Some(_), None) if fields.len() > 2 && source.max(target) < 2 => Some(2),
        _ => return Err(format!("expected a column of weights, found {}", shown(line))),
    };
    let layout = CsvLayout { delimiter, source, target: Some(target), weight, lone_keys: options.lone_keys };
    Ok(Header { layout, is_header: has_names && !are_given, guess, properties: Vec::new() })
}

/// Whether none of the first fields can be a key: a first line with one key in it is a faulty row
/// rather than a header.
fn is_no_key(options: &SourceOptions, fields: &[String], num_keys: usize) -> bool {
    options.keys == KeyKind::Integer && fields.iter().take(num_keys).all(|field| parse_u64(field.as_bytes()).is_none())
}

/// Whether a first line without usual names may be a header all the same: any text is a key, and no number stands in
/// it. What is removed is told by lines without a header.
fn may_be_header(options: &SourceOptions, fields: &[String]) -> bool {
    let is_number = |field: &String| parse_weight::<f64>(field.trim().as_bytes()).is_some();
    options.keys == KeyKind::String && options.lone_keys == LoneKeys::Refuse && !fields.iter().any(is_number)
}

/// Where the row ends that tells where the columns are. Quotes that are not closed end with their line.
pub(super) fn header_end(bytes: &[u8], start: usize, end: usize, kind: TextKind) -> RowEnd {
    let line = &bytes[start..line_end(bytes, start)];
    let delimiter = if kind == TextKind::BlankColumns { BLANKS } else { delimiter_of(line) };
    row_end(bytes, start, end, delimiter)
}

/// The delimiter that the first line of a row has most of, outside of quotes.
fn delimiter_of(row: &[u8]) -> u8 {
    let line = &row[..line_end(row, 0)];
    let mut counts = [0_usize; DELIMITERS.len()];
    let (mut at, mut begins_field) = (0, true);
    while at < line.len() {
        let found = DELIMITERS.iter().position(|&delimiter| delimiter == line[at]);
        if let Some(place) = found {
            counts[place] += 1;
        } else if begins_field && line[at] == b'"' {
            // A quote that is not closed here holds the rest of the line.
            let Some(close) = closing_quote(line, at + 1, line.len()) else { break };
            at = close;
        }
        begins_field = found.is_some() || begins_field && line[at] == b' ';
        at += 1;
    }
    let best = DELIMITERS.into_iter().zip(counts).rev().max_by_key(|&(_, count)| count);
    best.map_or(b',', |(delimiter, _)| delimiter)
}

/// Whether a line, trimmed, is neither header nor row.
pub(super) fn is_passed_over(line: &[u8], kind: TextKind) -> bool {
    line.is_empty() || line[0] == b'#' || (kind == TextKind::BlankColumns && is_comment(line))
}

/// The properties that the columns of an input are. `head` are its first bytes; more is read of a file
/// that `can_reopen`.
///
/// # Errors
/// The input cannot be read, its first line lacks a column that is asked for, or two properties have
/// one name.
pub(super) fn properties_of(
    path: &Path,
    head: &[u8],
    can_reopen: bool,
    options: &SourceOptions,
    kind: TextKind,
) -> Result<PartProperties> {
    let wanted = if kind == TextKind::VertexCsv { &options.vertex_properties } else { &options.edge_properties };
    let mut found = PartProperties::default();
    if *wanted == WantedProperties::None {
        return Ok(found);
    }
    let text = sample(path, head, can_reopen)?;
    let bad = |line: usize, what: String| Error::Line { path: path.to_owned(), line: line as u64 + 1, what };
    let (mut at, mut num_lines) = (0, 0);
    let mut header: Option<Header> = None;
    let mut inferences = Vec::new();
    while at < text.len() {
        let mut end = line_end(&text, at);
        let (first, last) = trimmed(&text, at, end);
        if !is_passed_over(&text[first..last], kind) {
            let row = match &header {
                None => header_end(&text, at, text.len(), kind),
                Some(header) => row_end(&text, at, text.len(), header.layout.delimiter),
            };
            // What is wrong with a row is told when it is read.
            if let RowEnd::Line(row_end) = row {
                end = row_end;
            }
            let line = text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]);
            let is_first = header.is_none();
            let header = match &header {
                Some(header) => header,
                None => {
                    let told = header_of(line, options, kind).map_err(|what| bad(num_lines, what))?;
                    for (_, name, carried) in &told.properties {
                        let added = found.own.add(name.clone(), carried.unwrap_or(PropertyType::String));
                        added.map_err(|error| bad(num_lines, error.to_string()))?;
                    }
                    inferences = vec![Inference::default(); told.properties.len()];
                    header.insert(told)
                }
            };
            if inferences.is_empty() {
                break;
            }
            if !(is_first && header.is_header) {
                infer(line, header, &mut inferences);
            }
        }
        num_lines += 1 + memchr::memchr_iter(b'\n', &text[at..end]).count();
        at = end + 1;
    }
    if header.is_none() && text.len() as u64 >= SAMPLE_BYTES {
        let what =
            format!("expected a line of columns in the first {}, found only comments", base::size::size(SAMPLE_BYTES));
        return Err(Error::Input { path: path.to_owned(), what });
    }
    let properties = header.map(|header| header.properties).unwrap_or_default();
    for (column, ((place, _, carried), inference)) in properties.into_iter().zip(&inferences).enumerate() {
        found.places.push(place);
        found.inferred.push(carried.is_none().then_some(*inference));
        if carried.is_none() {
            found.own.set_type(column, inference.property_type());
        }
    }
    Ok(found)
}

/// Takes one row into account, as far as its fields can be told.
fn infer(line: &[u8], header: &Header, inferences: &mut [Inference]) {
    let mut at = 0;
    let mut properties = header.properties.iter().zip(inferences).peekable();
    for column in 0.. {
        let Some(((place, ..), _)) = properties.peek() else { return };
        let Ok(Some(field)) = next_field(line, &mut at, line.len(), header.layout.delimiter) else { return };
        if *place == column
            && let Some((_, inference)) = properties.next()
            && !field.is_null()
        {
            // A quoted value is of the type that it would be of without its quotes: many writers
            // quote everything.
            inference.add(&field.bytes(line));
        }
    }
}

/// The text at the beginning of an input: whole lines, but for a first one that is longer.
fn sample(path: &Path, head: &[u8], can_reopen: bool) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let decoder = if can_reopen {
        let mut file = std::fs::File::open(path).map_err(|e| base::Error::io("open", path, e))?;
        let head = read_head(path, &mut file, HEAD_BYTES)?;
        decoded(path, &head, Cursor::new(head.clone()).chain(file))?
    } else {
        decoded(path, head, Cursor::new(head.to_vec()))?
    };
    // Where a decoder fails, what came out until then counts; reading it all will say so.
    let _ = decoder.take(SAMPLE_BYTES).read_to_end(&mut text);
    if text.starts_with(b"\xef\xbb\xbf") {
        text.drain(..3);
    }
    let is_cut = text.len() as u64 + 3 >= SAMPLE_BYTES || (!can_reopen && head.len() >= HEAD_BYTES);
    if is_cut && let Some(last) = memchr::memrchr(b'\n', &text) {
        text.truncate(last);
    }
    text.push(b'\n');
    Ok(text)
}
