//! What the beginning of a table in text tells: where the rows begin, what the columns are, and what is in them.
//!
//! The first row tells the delimiter, and whether it is a header. A name in a header may carry a type, `NAME:TYPE`; the
//! types of other properties are told from the rows at the beginning, by the rule of
//! [`Inference`](crate::property::Inference). A later value of another type is an error, which says how to give the type.
//!
//! Any text can be a string key, so a first row without known names may be a header all the same. It is a row if a number
//! stands in it. Otherwise it is refused if it has columns that would be lost, and else it is taken as a row with a note.

use std::io::{Cursor, Read};
use std::path::Path;

use base::size::size;

use super::columns::{ColumnNames, EdgeRoles, is_unnamed};
use super::compression::decoded;
use super::csv::{BLANKS, CsvLayout, next_field};
use super::csv_comments::{FirstRow, first_row};
use super::csv_rows::{RowEnd, closing_quote, row_end};
use super::lines::line_end;
use super::message::shown;
use super::number::{parse_u64, parse_weight};
use super::options::{ColumnName, HeaderRule, KeyKind, LoneKeys, SourceOptions, WantedProperties};
use super::part::{HEAD_BYTES, PartProperties, TextKind, read_head};
use crate::property::{Inference, PropertyType};
use crate::{Error, Result};

/// The most columns of a header.
const MAX_COLUMNS: usize = 10_000;
/// What may delimit columns; the first where the first line has equally many.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];
/// Text of a file that types are told from.
pub(super) const SAMPLE_BYTES: u64 = 1 << 20;

/// A table in text, as far as its beginning tells.
#[derive(Clone, Debug)]
pub(super) struct TableHead {
    pub(super) layout: CsvLayout,
    /// Bytes before the first row that holds an edge or a vertex: comments and the header.
    pub(super) num_header_bytes: u64,
    /// Whether the table has a header.
    pub(super) has_header: bool,
    /// Whether options or names say so, and not only that no key stands there.
    is_known: bool,
    /// The names of the columns as the header or the caller gives them; empty where nothing does.
    names: Vec<String>,
    num_columns: usize,
    /// What users should know about the table.
    pub(super) notes: Vec<String>,
    /// Columns that are properties: their places, names, and the types that stand with the names.
    properties: Vec<(usize, String, Option<PropertyType>)>,
}

/// A table whose beginning is looked at.
#[derive(Clone, Copy)]
pub(super) struct TableText<'a> {
    pub(super) path: &'a Path,
    /// The first bytes, before decompression.
    pub(super) head: &'a [u8],
    /// Whether more can be read than that.
    pub(super) can_reopen: bool,
    pub(super) kind: TextKind,
    /// The table of the first input of this kind.
    pub(super) first: Option<&'a TableHead>,
}

/// The name of a column, and the type that it may carry.
fn name_and_type(name: &str) -> (&str, Option<PropertyType>) {
    let carried = name.rsplit_once(':').and_then(|(name, found)| Some((name, PropertyType::of_name(found)?)));
    carried.map_or((name, None), |(name, found)| (name, Some(found)))
}

/// The columns of these names, without their types.
pub(super) fn columns_of(names: &[String]) -> ColumnNames {
    ColumnNames::new(names.iter().map(|name| name_and_type(name).0))
}

/// The fields of a header or a row; blanks around them are no part of them.
pub(super) fn fields_of(line: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
    let (mut fields, mut at) = (Vec::new(), 0);
    while let Some(field) = next_field(line, &mut at, line.len(), delimiter, true)? {
        if fields.len() == MAX_COLUMNS {
            return Err(format!("expected at most {MAX_COLUMNS} columns, found more"));
        }
        fields.push(String::from_utf8_lossy(&field.bytes(line)).into_owned());
    }
    Ok(fields)
}

/// Whether the first row of a table is a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstLine {
    Header,
    /// A header, since neither end can be a key; its names are not known.
    NoKeys,
    Row,
    /// A row, or a header of names that are not known.
    Either,
}

impl TableHead {
    /// What the first row tells of a table of this kind.
    ///
    /// # Errors
    /// The row does not tell the columns, or has none that an option names.
    pub(super) fn of_row(
        line: &[u8],
        options: &SourceOptions,
        kind: TextKind,
        first: Option<&Self>,
    ) -> Result<Self, String> {
        let follows = first.filter(|_| options.header == HeaderRule::First);
        let delimiter = match follows {
            Some(first) => first.layout.delimiter,
            None if kind.has_blanks() => BLANKS,
            None => delimiter_of(line),
        };
        let fields = fields_of(line, delimiter)?;
        if let Some(first) = follows {
            return first.of_part(&fields);
        }
        let is_edges = !kind.is_of_vertices();
        let given = options.columns.as_deref().filter(|_| is_edges);
        if let Some(given) = given
            && given.len() > fields.len()
        {
            return Err(format!("expected {} columns, as their names are given, found {}", given.len(), shown(line)));
        }
        let names = given.unwrap_or(&fields);
        let rule = if is_edges { options.header } else { HeaderRule::Auto };
        // A line of one key names a vertex that is to go.
        let is_lone = is_edges && fields.len() == 1 && options.lone_keys == LoneKeys::Vertices;
        let is_of_vertices = !is_edges || is_lone;
        let line_kind = match (rule, given) {
            (HeaderRule::First, _) => FirstLine::Header,
            (HeaderRule::None, _) | (HeaderRule::Auto, Some(_)) => FirstLine::Row,
            (HeaderRule::Auto, None) => first_line(&fields, options, kind, is_of_vertices)?,
        };
        let has_header = matches!(line_kind, FirstLine::Header | FirstLine::NoKeys);
        let has_names = has_header || given.is_some();
        let roles = match is_of_vertices {
            true => vertex_roles(names, has_names, options)?,
            // A fault in the first line of a list is one of this line.
            false if !has_names && kind.is_list() => (0, Some(1), options.weights.map(|_| 2)),
            false => edge_roles(names, has_names, fields.len(), options, line)?,
        };
        let (source, target, weight) = roles;
        let target = if is_lone { Some(1) } else { target };
        let mut head = Self {
            layout: CsvLayout {
                delimiter,
                source,
                target,
                weight,
                lone_keys: if is_edges { options.lone_keys } else { LoneKeys::Refuse },
                comment: options.comment,
                trim: options.trim,
                num_columns: has_names.then_some(fields.len()),
            },
            num_header_bytes: 0,
            has_header,
            is_known: line_kind != FirstLine::NoKeys,
            names: if has_names { names.to_vec() } else { Vec::new() },
            num_columns: fields.len(),
            notes: Vec::new(),
            properties: Vec::new(),
        };
        if line_kind == FirstLine::Either {
            head.notes.push(unsure(line, fields.len(), options, is_of_vertices)?);
        }
        head.notes.extend(weak_note(line, &fields, has_header, options));
        head.take_properties(if is_edges { &options.edge_properties } else { &options.vertex_properties });
        Ok(head)
    }

    /// The same columns for a part without a header, whose first row is this.
    fn of_part(&self, fields: &[String]) -> Result<Self, String> {
        if fields.len() != self.num_columns {
            return Err(format!(
                "expected {} columns, as the first input has under --header first, found {}",
                self.num_columns,
                fields.len()
            ));
        }
        if fields == self.names {
            return Err(
                "expected a row, as --header first says, found the header of the first input again: leave the \
                        option out"
                    .into(),
            );
        }
        Ok(Self { num_header_bytes: 0, has_header: false, notes: Vec::new(), ..self.clone() })
    }

    /// Takes the wanted columns of those that have a name and no role.
    fn take_properties(&mut self, wanted: &WantedProperties) {
        for (place, name) in self.names.iter().enumerate() {
            let (name, carried) = name_and_type(name);
            if !self.is_taken(place) && !is_unnamed(name) && wanted.wants(name) {
                self.properties.push((place, name.to_owned(), carried));
            }
        }
    }

    fn is_taken(&self, place: usize) -> bool {
        let CsvLayout { source, target, weight, .. } = self.layout;
        place == source || Some(place) == target || Some(place) == weight
    }

    /// Whether the columns have names, of a header or of the caller.
    pub(super) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// The name of the column at a place.
    pub(super) fn name(&self, place: usize) -> ColumnName {
        match self.names.get(place).map(|name| name_and_type(name).0).filter(|name| !is_unnamed(name)) {
            Some(name) => ColumnName::Name(name.to_owned()),
            None => ColumnName::Number(place + 1),
        }
    }

    /// The places of columns with names that are not read; the others are counted as they are read.
    pub(super) fn left_out(&self) -> Vec<usize> {
        if !self.has_names() {
            return Vec::new();
        }
        let is_property = |place: &usize| self.properties.iter().any(|(taken, ..)| taken == place);
        (0..self.num_columns).filter(|place| !self.is_taken(*place) && !is_property(place)).collect()
    }
}

/// The key of vertices.
fn vertex_roles(
    names: &[String],
    has_names: bool,
    options: &SourceOptions,
) -> Result<(usize, Option<usize>, Option<usize>), String> {
    let source = if has_names { columns_of(names).vertex_role(options)? } else { 0 };
    Ok((source, None, None))
}

/// The ends of edges and their weight; without names they come in this order.
fn edge_roles(
    names: &[String],
    has_names: bool,
    num_columns: usize,
    options: &SourceOptions,
    line: &[u8],
) -> Result<(usize, Option<usize>, Option<usize>), String> {
    if has_names {
        let EdgeRoles { source, target, weight } = columns_of(names).edge_roles(options, |_| true)?;
        return Ok((source, Some(target), weight));
    }
    if num_columns < 2 {
        return Err(format!("expected a column of sources and one of targets, found {}", shown(line)));
    }
    if options.weights.is_some() && num_columns < 3 {
        return Err(format!("expected a column of weights, found {}", shown(line)));
    }
    Ok((0, Some(1), options.weights.map(|_| 2)))
}

/// What the first line is, as its fields and the options tell.
///
/// # Errors
/// Names tell several columns.
fn first_line(
    fields: &[String],
    options: &SourceOptions,
    kind: TextKind,
    is_of_vertices: bool,
) -> Result<FirstLine, String> {
    let SourceOptions { source_column, target_column, weight_column, vertex_column, .. } = options;
    let is_named = match is_of_vertices {
        true => vertex_column.is_some(),
        false => {
            source_column.is_some() || target_column.is_some() || (options.weights.is_some() && weight_column.is_some())
        }
    };
    let num_keys = if is_of_vertices { 1 } else { 2 };
    // With one key in it, the line is a faulty row rather than a header.
    let is_no_key = |field: &String| parse_u64(field.as_bytes()).is_none();
    // A list may have one word on its first line by mistake.
    let is_whole = !kind.has_blanks() || fields.len() > 1;
    let has_no_key = is_whole && options.keys == KeyKind::Integer && fields.iter().take(num_keys).all(is_no_key);
    if is_named {
        return Ok(FirstLine::Header);
    }
    let columns = columns_of(fields);
    let is_known = match is_of_vertices {
        true => (kind.is_list() || options.keys == KeyKind::String) && columns.known_vertex() == Some(0),
        false => columns.known_ends()?.is_some(),
    };
    let is_number = |field: &String| parse_weight::<f64>(field.as_bytes()).is_some();
    Ok(match options.keys {
        // The word may well be a key: lists of vertices that are exported have no header.
        KeyKind::String if is_known && kind == TextKind::VertexList && fields.len() == 1 => FirstLine::Either,
        _ if is_known => FirstLine::Header,
        _ if has_no_key => FirstLine::NoKeys,
        // Lines of what is removed have no header, but for known names.
        _ if fields.len() == 1 && kind.is_list() => FirstLine::Row,
        KeyKind::String if options.lone_keys == LoneKeys::Refuse && !fields.iter().any(is_number) => FirstLine::Either,
        _ => FirstLine::Row,
    })
}

/// The note about a header that is known by names alone which may also be keys.
fn weak_note(line: &[u8], fields: &[String], has_header: bool, options: &SourceOptions) -> Option<String> {
    let can_be_row = has_header && options.keys == KeyKind::String && options.header == HeaderRule::Auto;
    let is_asked =
        options.source_column.is_some() || options.target_column.is_some() || options.weight_column.is_some();
    let ends = columns_of(fields).known_ends();
    let is_weak = can_be_row && !is_asked && ends.is_ok_and(|ends| ends.is_some_and(|ends| ends.is_weak));
    let note = || format!("the first line {} is taken as a header: --header none says that it is a row", shown(line));
    is_weak.then(note)
}

/// The note about a first line that is taken as a row and may be a header.
///
/// # Errors
/// The line has further columns, whose names would be lost.
fn unsure(line: &[u8], num_columns: usize, options: &SourceOptions, is_of_vertices: bool) -> Result<String, String> {
    let line = shown(line);
    if is_of_vertices {
        if num_columns > 1 && !options.vertex_properties.is_empty() {
            return Err(format!(
                "expected names of columns or a vertex, found {line}, which may be either: --vertex-column names the \
                 column of the keys in a header, --vertex-properties none leaves the other columns out"
            ));
        }
        return Ok(format!("the first line {line} is taken as a vertex: if it is a header, --vertex-column says so"));
    }
    if num_columns > 2 {
        return Err(format!(
            "expected names of columns or an edge, found {line}, which may be either: --source-column and \
             --target-column name the columns of a header, --columns those of a file without one, --header none says \
             that there is none"
        ));
    }
    Ok(format!(
        "the first line {line} is taken as an edge: if it is a header, --source-column and --target-column say so; \
         --header none says that it is none"
    ))
}

/// Where the row ends that tells where the columns are. Quotes that are not closed end with their line.
pub(super) fn first_row_end(bytes: &[u8], start: usize, kind: TextKind) -> usize {
    let line = line_end(bytes, start);
    let delimiter = if kind.has_blanks() { BLANKS } else { delimiter_of(&bytes[start..line]) };
    match row_end(bytes, start, bytes.len(), delimiter) {
        RowEnd::Line(end) => end,
        // What is wrong with a row is told when its fields are read.
        _ => line,
    }
}

/// The delimiter that the first line of a row has most of, outside of quotes.
pub(super) fn delimiter_of(row: &[u8]) -> u8 {
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

/// Looks at the beginning of a table; none if the text has no row. Gives the number of comments before the first, too.
///
/// # Errors
/// The input cannot be read, its first row does not tell the columns, or two properties have one name.
pub(super) fn head_of(
    table: TableText<'_>,
    options: &SourceOptions,
) -> Result<(Option<(TableHead, PartProperties)>, u64)> {
    let TableText { path, kind, first, .. } = table;
    // The first row of a list of edges tells all: there may be thousands of them.
    let limit = if kind.has_blanks() && options.columns.is_none() { HEAD_BYTES as u64 } else { SAMPLE_BYTES };
    let (text, is_cut) = sample(&table, limit)?;
    let bad = |at: usize, what: String| {
        let line = memchr::memchr_iter(b'\n', &text[..at]).count() as u64 + 1;
        Error::Line { path: path.to_owned(), line, what }
    };
    let (found, num_comments) = first_row(&text, kind, options).map_err(|(at, what)| bad(at, what))?;
    let Some(FirstRow { start, end, fields_start }) = found else {
        if is_cut && !kind.is_list() {
            let what = format!("expected a row of columns in the first {}, found only comments", size(limit));
            return Err(Error::Input { path: path.to_owned(), what });
        }
        return Ok((None, num_comments));
    };
    if is_cut && end + 1 >= text.len() {
        if kind.is_list() {
            return Ok((None, 0));
        }
        return Err(bad(start, format!("expected a first row of less than {}, found a longer one", size(limit))));
    }
    let line = text[fields_start..end].strip_suffix(b"\r").unwrap_or(&text[fields_start..end]);
    let SourceOptions { columns, source_column, target_column, .. } = options;
    let are_named = columns.is_some() || source_column.is_some() || target_column.is_some();
    if kind.is_list() && !are_named && fields_of(line, BLANKS).is_err() {
        // Quotes are part of the keys of a list, so this line is no header.
        return Ok((None, 0));
    }
    let head = TableHead::of_row(line, options, kind, first);
    let mut head = head.map_err(|what| bad(start, what))?;
    if fields_start > start {
        head.notes.push(format!("the comment {} is taken as the header", shown(text[start..end].trim_ascii())));
    }
    let is_behind_header = first.is_some_and(|first| first.has_header) && !head.has_header;
    if is_behind_header && options.header == HeaderRule::Auto && options.columns.is_none() {
        let what = format!(
            "expected a header, as the inputs before have one, found {}: --header first reads this one with the columns \
             of the first",
            shown(line)
        );
        return Err(bad(start, what));
    }
    let rows_start = if head.has_header { (end + 1).min(text.len()) } else { start };
    head.num_header_bytes = rows_start as u64;
    let has_rows = is_cut || !text[rows_start..].trim_ascii().is_empty();
    if kind.is_list() && !head.is_known && !has_rows {
        // A list of one line that is no edge.
        return Ok((None, 0));
    }
    let properties = head.infer(&text[rows_start..]);
    Ok((Some((head, properties.map_err(|what| bad(start, what))?)), num_comments))
}

impl TableHead {
    /// Calls `body` with each row of a text of whole lines.
    fn for_each_row(&self, text: &[u8], mut body: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < text.len() {
            let mut end = line_end(text, at);
            let is_comment = self.layout.is_comment(&text[at..end]);
            if !is_comment {
                // What is wrong with a row is told when it is read.
                if let RowEnd::Line(row_end) = row_end(text, at, text.len(), self.layout.delimiter) {
                    end = row_end;
                }
                body(text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]));
            }
            at = end + 1;
        }
    }

    /// The properties, with types that the rows of a text tell.
    ///
    /// # Errors
    /// Two properties have one name.
    fn infer(&self, text: &[u8]) -> Result<PartProperties, String> {
        let mut found = PartProperties::default();
        let mut inferences = vec![Inference::default(); self.properties.len()];
        for (_, name, carried) in &self.properties {
            let added = found.own.add(name.clone(), carried.unwrap_or(PropertyType::String));
            added.map_err(|error| error.to_string())?;
        }
        if !inferences.is_empty() {
            self.for_each_row(text, |row| self.infer_row(row, &mut inferences));
        }
        for (column, ((place, _, carried), inference)) in self.properties.iter().zip(&inferences).enumerate() {
            found.places.push(*place);
            found.inferred.push(carried.is_none().then_some(*inference));
            if carried.is_none() {
                found.own.set_type(column, inference.property_type());
            }
        }
        Ok(found)
    }

    /// Takes one row into account, as far as its fields can be told.
    fn infer_row(&self, row: &[u8], inferences: &mut [Inference]) {
        let mut at = 0;
        let mut properties = self.properties.iter().zip(inferences).peekable();
        for column in 0.. {
            let Some(((place, ..), _)) = properties.peek() else { return };
            let Ok(Some(field)) = next_field(row, &mut at, row.len(), self.layout.delimiter, true) else { return };
            if *place == column
                && let Some((_, inference)) = properties.next()
                && !field.is_null()
            {
                // A quoted value is of the type that it would be of without its quotes: many writers
                // quote everything.
                inference.add(&field.bytes(row));
            }
        }
    }
}

/// The text at the beginning of an input, and whether more follows: whole lines, but for a first one that is longer.
fn sample(table: &TableText<'_>, limit: u64) -> Result<(Vec<u8>, bool)> {
    let TableText { path, head, can_reopen, .. } = *table;
    let mut text = Vec::new();
    let decoder = if can_reopen {
        let mut file = std::fs::File::open(path).map_err(|e| base::Error::io("open", path, e))?;
        let head = read_head(path, &mut file, HEAD_BYTES)?;
        decoded(path, &head, Cursor::new(head.clone()).chain(file))?
    } else {
        decoded(path, head, Cursor::new(head.to_vec()))?
    };
    // Where a decoder fails, what came out until then counts; reading it all will say so.
    let _ = decoder.take(limit).read_to_end(&mut text);
    if text.starts_with(b"\xef\xbb\xbf") {
        text.drain(..3);
    }
    let is_cut = text.len() as u64 + 3 >= limit || (!can_reopen && head.len() as u64 >= SAMPLE_BYTES);
    if is_cut && let Some(last) = memchr::memrchr(b'\n', &text) {
        text.truncate(last);
    }
    text.push(b'\n');
    Ok((text, is_cut))
}
