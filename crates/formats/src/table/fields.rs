//! Columns with delimiters.
//!
//! [The first line](super::head) decides where the columns are. A quoted field may hold delimiters, doubled
//! quotes and line ends: see [the ends of rows](super::rows).
//!
//! Blanks are part of a field (RFC 4180): `x ` and `x` are two keys. Numbers, booleans and times may have blanks around
//! them, which are ignored. A quoted field with blanks around it is an error; `--trim` reads such fields, which some
//! programs write.

use anden_base::message::shown;
use anden_graph::Weight;
use anden_graph::property::{ColumnBuilder, PropertyType};

use super::rows::{RowEnd, row_end};
use crate::array_text::ArrayForm;
use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::epoch::EpochUnit;
use crate::key::FieldKey;
use crate::lines::{ParsedBlock, is_comment, line_end, trimmed};
use crate::number::{parse_weight, weight_range};
use crate::options::{KeyKind, LoneKeys, SourceOptions};
use crate::outcome::unexpected;
use crate::part::PartProperties;
use crate::times::no_time;

/// The longest field in bytes.
const MAX_FIELD_BYTES: usize = 64 << 10;
/// The delimiter that stands for any number of spaces and tabs.
pub(crate) const BLANKS: u8 = b' ';

/// The columns that are not properties, and how to read fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CsvLayout {
    pub(crate) delimiter: u8,
    pub(crate) source: usize,
    /// `None` in a file of vertices.
    pub(crate) target: Option<usize>,
    pub(crate) weight: Option<usize>,
    /// The meaning of a row with one column.
    pub(crate) lone_keys: LoneKeys,
    /// The comment character. Blank-separated text has its own comments.
    pub(crate) comment: Option<u8>,
    /// Whether blanks around a field are removed.
    pub(crate) trim: bool,
    /// The largest number of columns of a row, if columns have names.
    pub(crate) num_columns: Option<usize>,
}

impl CsvLayout {
    /// Whether a line is a comment, if a row starts with it.
    #[inline]
    pub(crate) fn is_comment(&self, line: &[u8]) -> bool {
        match self.comment {
            _ if self.delimiter == BLANKS => !line.trim_ascii().is_empty() && is_comment(line.trim_ascii()),
            mark => mark.is_some() && line.first().copied() == mark,
        }
    }
}

/// The columns that are properties.
#[derive(Clone, Debug, Default)]
pub(crate) struct CsvProperties {
    /// By column, up to the last property: its property.
    properties: Vec<Option<usize>>,
    /// By property: its name for messages, its type, and whether the type is inferred.
    types: Vec<(String, PropertyType, bool)>,
    /// By property.
    forms: Vec<FieldForm>,
}

/// How the fields of a property hold its values.
#[derive(Clone, Copy, Debug)]
enum FieldForm {
    /// As the text of a value.
    Text,
    /// As numbers of this unit that become timestamps.
    Epoch(EpochUnit),
    /// As the items of a list.
    Array(ArrayForm),
}

impl CsvProperties {
    pub(crate) fn new(of: &PartProperties) -> Self {
        let mut properties = vec![None; of.places.iter().max().map_or(0, |&last| last + 1)];
        let mut types = Vec::new();
        for (property, (&place, (name, property_type))) in of.places.iter().zip(of.own.iter()).enumerate() {
            properties[place] = Some(property);
            types.push((name.to_owned(), property_type, of.inference(property).is_some()));
        }
        let form = |property| match (of.epoch(property), of.array(property)) {
            (Some(unit), _) => FieldForm::Epoch(unit),
            (None, Some(form)) => FieldForm::Array(form),
            (None, None) => FieldForm::Text,
        };
        let forms = (0..types.len()).map(form).collect();
        Self { properties, types, forms }
    }

    /// Columns without rows.
    fn columns(&self) -> Vec<ColumnBuilder> {
        self.types.iter().map(|&(_, property_type, _)| ColumnBuilder::new(property_type)).collect()
    }

    /// Appends a value to the property's column.
    fn push(
        &self,
        property: usize,
        mut field: CsvFieldRange,
        bytes: &[u8],
        options: &SourceOptions,
        to: &mut ColumnBuilder,
    ) -> Result<(), String> {
        // Blanks are part of texts and bytes, and of the first and last item of a list. Around other values they mean
        // nothing.
        if !matches!(self.types[property].1, PropertyType::String | PropertyType::Bytes | PropertyType::List(_)) {
            field = field.trimmed(bytes);
        }
        if field.is_null(bytes, options) {
            to.push_nulls(1);
            return Ok(());
        }
        let text = field.bytes(bytes);
        // Checked here, where the line is known.
        let pushed = match self.forms[property] {
            FieldForm::Text => to.push_text(&text),
            FieldForm::Epoch(unit) => unit.check(&text).and_then(|()| to.push_text(&text)),
            FieldForm::Array(form) => form.push(&text, to),
        };
        pushed.map_err(|what| {
            let (name, property_type, is_inferred) = &self.types[property];
            let name = shown(name.as_bytes());
            let is_number = text.iter().all(u8::is_ascii_digit);
            match is_inferred {
                false if *property_type == PropertyType::Timestamp && is_number => {
                    format!("column {name}: {what}: the types epoch_s and epoch_ms take numbers since 1970")
                }
                false => format!("column {name}: {what}"),
                true => format!(
                    "column {name}: {what}: the lines at the beginning have type {property_type}; --property-types {} \
                     or this name in the header gives another one",
                    shown(format!("{}:string", &self.types[property].0).as_bytes())
                ),
            }
        })
    }
}

/// The range of a field, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CsvFieldRange {
    start: usize,
    end: usize,
    is_quoted: bool,
    has_doubled_quotes: bool,
}

impl CsvFieldRange {
    /// Whether the field is empty and not quoted, or holds a word that means null. Quotes around nothing mean an empty
    /// text.
    #[inline]
    pub(crate) fn is_null(self, bytes: &[u8], options: &SourceOptions) -> bool {
        (self.start == self.end && !self.is_quoted)
            || (!options.null_words.is_empty() && options.is_null_word(&self.bytes(bytes)))
    }

    /// The field without blanks around it.
    #[inline]
    fn trimmed(mut self, bytes: &[u8]) -> Self {
        // Nearly all fields have no blanks around them, so this check is fast.
        let is_bare = self.start < self.end && bytes[self.start] > b' ' && bytes[self.end - 1] > b' ';
        if !is_bare {
            (self.start, self.end) = trimmed(bytes, self.start, self.end);
        }
        self
    }

    pub(crate) fn bytes(self, line: &[u8]) -> std::borrow::Cow<'_, [u8]> {
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

/// Parses the field that begins at `at`, and moves `at` behind its delimiter. `None` after the last field. `trim`
/// removes blanks around the field.
pub(crate) fn next_field(
    bytes: &[u8],
    at: &mut usize,
    end: usize,
    delimiter: u8,
    trim: bool,
) -> Result<Option<CsvFieldRange>, String> {
    // One past the end means that the last field was taken.
    if *at > end {
        return Ok(None);
    }
    let are_blanks = delimiter == BLANKS;
    let blank = |byte: u8| (byte == b' ' || byte == b'\t' || byte == b'\r') && (are_blanks || byte != delimiter);
    let mut start = *at;
    while start < end && blank(bytes[start]) {
        start += 1;
    }
    if are_blanks && start == end {
        return Ok(None);
    }
    if start < end && bytes[start] == b'"' {
        if start > *at && !trim && !are_blanks {
            return Err(blanks_at_quotes("before", &bytes[*at..end]));
        }
        start += 1;
        let mut has_doubled_quotes = false;
        let mut close = start;
        loop {
            let Some(len) = memchr::memchr(b'"', &bytes[close..end]) else {
                return Err(no_closing_quote(&bytes[*at..end]));
            };
            close += len;
            if bytes[close + 1..end].first() != Some(&b'"') {
                break;
            }
            has_doubled_quotes = true; // They stand for one quote.
            close += 2;
        }
        let mut next = close + 1;
        while next < end && blank(bytes[next]) {
            next += 1;
        }
        if next > close + 1 && !trim && !are_blanks {
            return Err(blanks_at_quotes("behind", &bytes[*at..end]));
        }
        if are_blanks && next > close + 1 {
            next -= 1; // Keeps one blank as the delimiter before the next field.
        }
        if next < end && bytes[next] != delimiter && !(are_blanks && blank(bytes[next])) {
            return Err(no_delimiter(&bytes[next..end]));
        }
        *at = next + 1;
        return Ok(Some(CsvFieldRange { start, end: close, is_quoted: true, has_doubled_quotes }));
    }
    let stop = if are_blanks {
        bytes[start..end].iter().position(|&byte| blank(byte)).map_or(end, |len| start + len)
    } else {
        memchr::memchr(delimiter, &bytes[start..end]).map_or(end, |len| start + len)
    };
    // Past the last field, this is one past the end.
    let first = std::mem::replace(at, stop + 1);
    if !trim && !are_blanks {
        return Ok(Some(CsvFieldRange { start: first, end: stop, is_quoted: false, has_doubled_quotes: false }));
    }
    let mut last = stop;
    while last > start && blank(bytes[last - 1]) {
        last -= 1;
    }
    Ok(Some(CsvFieldRange { start, end: last, is_quoted: false, has_doubled_quotes: false }))
}

/// Parses the lines of a block. Skips empty lines and comments.
pub(crate) fn parse_columns<K: FieldKey, W: Weight>(
    block: &TextBlock,
    layout: &CsvLayout,
    properties: &CsvProperties,
    context: &ParseContext<'_>,
) -> ParsedBlock<K, W> {
    let mut parsed = ParsedBlock::of_block(block, context.on_error());
    let mut columns = properties.columns();
    let bytes = &block.bytes[..];
    let last_key = layout.source.max(layout.target.unwrap_or(0)).max(layout.weight.unwrap_or(0));
    let num_columns = (1 + last_key).max(properties.properties.len());
    // One search for a quote spares most blocks the search in each row.
    let has_quotes = memchr::memchr(b'"', &bytes[block.start..block.end]).is_some();
    let options = context.options;
    let is_time = |(name, ..): &(String, PropertyType, bool)| options.time_column.as_ref() == Some(name);
    let time = layout.target.and_then(|_| properties.types.iter().position(is_time));
    let row = CsvRowContext { bytes, layout, properties, options, num_columns, time, has_quotes, base: block.end };
    let mut at = block.start;
    while at < block.end {
        let mut end = line_end(bytes, at);
        if layout.is_comment(&bytes[at..end]) {
            parsed.num_comments += 1;
            at = end + 1;
            continue;
        }
        let mut fault = None;
        // Only a quote can make a row longer than its line.
        if has_quotes && memchr::memchr(b'"', &bytes[at..end]).is_some() {
            let line_from = |place: usize| &bytes[place..line_end(bytes, place)];
            match row_end(bytes, at, block.end, layout.delimiter) {
                RowEnd::Line(row_end) => end = row_end,
                RowEnd::Unclosed(quote) => fault = Some((quote, no_closing_quote(line_from(quote)))),
                RowEnd::Stray(place) => fault = Some((place, no_delimiter(line_from(place)))),
            }
        }
        let (first, last) = trimmed(bytes, at, end);
        if fault.is_none() && first < last {
            // Blanks at the ends may be delimiters, so only a carriage return is removed.
            let last = if bytes[end - 1] == b'\r' { end - 1 } else { end };
            fault = row.parse(at, last, &mut parsed, &mut columns).err().map(|what| (at, what));
        }
        if let Some((place, what)) = fault {
            // A faulty row may have appended some of its values already.
            let num_rows = if layout.target.is_some() { parsed.edges.len() } else { parsed.vertices.len() };
            columns.iter_mut().for_each(|column| column.truncate(num_rows));
            if parsed.faults.note(bytes, place, what) {
                break;
            }
        }
        at = end + 1;
    }
    let columns = columns.into_iter().map(ColumnBuilder::finish).collect();
    match layout.target {
        Some(_) => parsed.properties = columns,
        None => parsed.vertex_properties = columns,
    }
    parsed
}

fn no_closing_quote(from: &[u8]) -> String {
    format!("expected a closing quote, found none behind {}", shown(from.trim_ascii_end()))
}

fn blanks_at_quotes(place: &str, from: &[u8]) -> String {
    format!("expected no blanks {place} a quoted field, found {}: --trim accepts them", shown(from.trim_ascii_end()))
}

fn no_delimiter(found: &[u8]) -> String {
    format!("expected a delimiter after the quote, found {}", shown(found.trim_ascii_end()))
}

/// Facts about every row of a block.
struct CsvRowContext<'a> {
    bytes: &'a [u8],
    layout: &'a CsvLayout,
    properties: &'a CsvProperties,
    options: &'a SourceOptions,
    num_columns: usize,
    /// The property that must not be null.
    time: Option<usize>,
    /// Whether the block contains a quote, so that most blocks skip quote handling.
    has_quotes: bool,
    /// The start of text outside the block.
    base: usize,
}

impl CsvRowContext<'_> {
    fn parse<K: FieldKey, W: Weight>(
        &self,
        start: usize,
        end: usize,
        parsed: &mut ParsedBlock<K, W>,
        columns: &mut [ColumnBuilder],
    ) -> Result<(), String> {
        let Self { bytes, layout, num_columns, .. } = *self;
        let CsvLayout { delimiter, trim, .. } = *layout;
        let (mut source, mut target, mut weight): (Option<K>, Option<K>, Option<W>) = (None, None, None);
        let mut at = start;
        // Columns after the last one that is read need no parse.
        for column in 0..num_columns {
            let Some(field) = next_field(bytes, &mut at, end, delimiter, trim)? else {
                if column == 1 && layout.lone_keys == LoneKeys::Vertices {
                    // The row has no edge, so properties appended for it are dropped.
                    columns.iter_mut().for_each(|properties| properties.truncate(parsed.edges.len()));
                    parsed.vertices.push(self.lone_key(start, end, &mut parsed.extra)?);
                    return Ok(());
                }
                return Err(format!("expected at least {num_columns} columns, found {column}"));
            };
            // A quote that was left open would otherwise make one huge value of many rows.
            if field.end - field.start > MAX_FIELD_BYTES {
                return Err(format!(
                    "column {}: expected at most {}, found {}",
                    column + 1,
                    anden_base::size::size(MAX_FIELD_BYTES as u64),
                    anden_base::size::size_at_least((field.end - field.start) as u64)
                ));
            }
            if column == layout.source {
                let name = if layout.target.is_some() { "source" } else { "vertex" };
                source = Some(self.key(field, name, &mut parsed.extra)?);
            } else if Some(column) == layout.target {
                target = Some(self.key(field, "target", &mut parsed.extra)?);
            }
            if Some(column) == layout.weight {
                let token = field.trimmed(bytes).bytes(bytes);
                weight = Some(parse_weight(&token).ok_or_else(|| unexpected(weight_range(W::TYPE), Some(&token)))?);
            }
            if let Some(&Some(property)) = self.properties.properties.get(column) {
                // Checked here, where the line is known.
                if self.time == Some(property) && field.trimmed(bytes).is_null(bytes, self.options) {
                    return Err(no_time(&self.properties.types[property].0));
                }
                self.properties.push(property, field, bytes, self.options, &mut columns[property])?;
            }
        }
        match layout.num_columns {
            Some(most) => self.check_rest(most, at, end)?,
            None if at <= end => {
                parsed.num_columns = parsed.num_columns.max(num_columns + self.num_rest(at, end));
            }
            None => {}
        }
        // Appended last, because the caller takes back only the properties of a faulty row.
        match (source, target) {
            (Some(source), Some(target)) => parsed.edges.push((source, target)),
            (Some(vertex), None) => parsed.vertices.push(vertex),
            _ => {}
        }
        parsed.weights.extend(weight);
        Ok(())
    }

    /// Refuses values after `most` columns: a delimiter within an earlier value has shifted the later ones. The columns
    /// that are read end before `at`; left-out columns are counted too.
    fn check_rest(&self, most: usize, mut at: usize, end: usize) -> Result<(), String> {
        let CsvLayout { delimiter, trim, .. } = *self.layout;
        for _ in self.num_columns..most {
            if next_field(self.bytes, &mut at, end, delimiter, trim)?.is_none() {
                return Ok(());
            }
        }
        let rest = self.bytes.get(at..end).unwrap_or_default();
        match rest.iter().all(|&byte| byte == delimiter || byte.is_ascii_whitespace()) {
            true => Ok(()),
            false => Err(format!("expected at most {most} columns, found another one: {}", shown(rest))),
        }
    }

    /// The number of columns from `at` on.
    fn num_rest(&self, mut at: usize, end: usize) -> usize {
        let CsvLayout { delimiter, trim, .. } = *self.layout;
        let rest = &self.bytes[at..end];
        // Without quotes, every delimiter separates two columns.
        if !self.has_quotes || memchr::memchr(b'"', rest).is_none() {
            return 1 + rest.iter().filter(|&&byte| byte == delimiter).count();
        }
        let mut num_fields = 0;
        // A fault in a column that is not read does not fail the row.
        while let Ok(Some(_)) = next_field(self.bytes, &mut at, end, delimiter, trim) {
            num_fields += 1;
        }
        num_fields.max(1)
    }

    /// The vertex that a row with one column names.
    fn lone_key<K: FieldKey>(&self, start: usize, end: usize, extra: &mut Vec<u8>) -> Result<K, String> {
        let mut at = start;
        let field = next_field(self.bytes, &mut at, end, self.layout.delimiter, self.layout.trim)?;
        field.map_or_else(
            || Err(unexpected(&format!("a vertex, {}", K::RANGE), None)),
            |field| self.key(field, "vertex", extra),
        )
    }

    /// The key in a field; `name` is its role in messages.
    fn key<K: FieldKey>(&self, field: CsvFieldRange, name: &str, extra: &mut Vec<u8>) -> Result<K, String> {
        // Blanks around a number mean nothing, but blanks may be part of a text.
        let field = if K::KIND == KeyKind::Integer { field.trimmed(self.bytes) } else { field };
        let options = self.options;
        if !options.null_words.is_empty() && options.is_null_word(&field.bytes(self.bytes)) {
            let found = shown(&field.bytes(self.bytes));
            return Err(format!("expected a {name}, {}, found {found}, which means null", K::RANGE));
        }
        // Only a text with doubled quotes differs from its bytes in the block, so only such a text is copied.
        let key = if field.has_doubled_quotes {
            K::from_owned(&field.bytes(self.bytes), self.base, extra)
        } else {
            K::from_text(self.bytes, field.start, field.end - field.start)
        };
        let text = &self.bytes[field.start..field.end];
        let wrong = || unexpected(&format!("a {name}, {}", K::RANGE), Some(text));
        key.filter(|_| options.may_be_key(text)).ok_or_else(wrong)
    }
}
