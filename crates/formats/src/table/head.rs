//! Reads the beginning of a table in text: the start of its rows, its columns and their types.
//!
//! The first row decides the delimiter, and whether it is a header. A name in a header may carry a type, `NAME:TYPE`.
//! Other types are inferred from the first rows by [`Inference`](anden_graph::property::Inference). A later value of another
//! type is an error that names the option to set the type.
//!
//! Any text can be a string key, so a first row without known names may still be a header. A first row with a number is
//! a row. Otherwise, a first row with columns that would be lost is refused. Without such columns it is taken as a row,
//! with a note.

use std::path::Path;

use anden_base::message::shown;
use anden_base::size::size;
use anden_graph::property::{Inference, PropertyType};

use super::comments::{FirstRow, first_row};
use super::fields::{BLANKS, CsvLayout, next_field};
use super::roles::RoleHeader;
use super::rows::{RowEnd, closing_quote, row_end};
use crate::columns::{EdgeRoles, TableColumnNames, is_unnamed};
use crate::compression::HEAD_BYTES;
use crate::epoch::StatedType;
use crate::labeled::Said;
use crate::lines::line_end;
use crate::number::{parse_u64, parse_weight};
use crate::options::{ColumnName, HeaderRule, KeyKind, LoneKeys, SourceOptions, WantedProperties};
use crate::part::PartProperties;
use crate::probe::{InputProbe, SAMPLE_BYTES};
use crate::{Error, Result};

/// The largest number of columns of a header.
const MAX_COLUMNS: usize = 10_000;
/// The possible delimiters. The first wins if several are equally frequent.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', BAR];
/// A delimiter only where there is no other one, because keys may contain it (`sp|P69905`).
const BAR: u8 = b'|';

/// The facts about a table that its beginning gives.
#[derive(Clone, Debug)]
pub(crate) struct TableHead {
    pub(crate) layout: CsvLayout,
    /// Bytes before the first edge or vertex: comments and the header.
    pub(crate) num_header_bytes: u64,
    /// Whether the table has a header.
    pub(crate) has_header: bool,
    /// Whether options or names identify the header, not only the lack of numeric keys.
    is_known: bool,
    /// The column names from the header or the caller; empty without names.
    names: Vec<String>,
    num_columns: usize,
    /// Notes for users about the table.
    pub(crate) notes: Vec<String>,
    /// The property columns: their positions, names, and the types that the names carry.
    properties: Vec<(usize, String, Option<StatedType>)>,
    /// The roles of the columns, if the header states them.
    roles: Option<RoleHeader>,
    /// Whether the header of these columns is alone in its file. The inputs behind it are parts of its table.
    pub(crate) is_header_alone: bool,
}

/// The kind of a table in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableKind {
    /// Whether blanks separate the columns, as in a list of keys without a header.
    pub(crate) has_blanks: bool,
    /// Whether each row is a vertex.
    pub(crate) is_of_vertices: bool,
}

/// Splits a column name from the type that it may carry.
pub(super) fn name_and_type(name: &str) -> (&str, Option<StatedType>) {
    let carried = name.rsplit_once(':').and_then(|(name, found)| Some((name, StatedType::of_name(found)?)));
    carried.map_or((name, None), |(name, found)| (name, Some(found)))
}

/// The columns with these names, without their types.
pub(crate) fn columns_of(names: &[String]) -> TableColumnNames {
    TableColumnNames::new(names.iter().map(|name| name_and_type(name).0))
}

/// The fields of a header or a row, without blanks around them.
pub(crate) fn fields_of(line: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
    let (mut fields, mut at) = (Vec::new(), 0);
    while let Some(field) = next_field(line, &mut at, line.len(), delimiter, true)? {
        if fields.len() == MAX_COLUMNS {
            return Err(format!("expected at most {MAX_COLUMNS} columns, found more"));
        }
        fields.push(String::from_utf8_lossy(&field.bytes(line)).into_owned());
    }
    Ok(fields)
}

/// The kind of the first row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstLine {
    Header,
    /// A header with unknown names, recognised because neither end can be a key.
    NoKeys,
    Row,
    /// A row, or a header with unknown names.
    Either,
}

impl TableHead {
    /// Decides from the first row of a table of this kind. `first` is the table that the input may be a part of.
    ///
    /// # Errors
    /// The row does not identify the columns, or lacks one that an option names.
    pub(crate) fn of_row(
        line: &[u8],
        options: &SourceOptions,
        kind: TableKind,
        first: Option<&Self>,
        path: &Path,
    ) -> Result<Self, String> {
        let delimiter = if kind.has_blanks { BLANKS } else { delimiter_of(line, options.delimiter) };
        let roles = stated_roles(line, delimiter, options, path)?;
        // Under `--header first`, later inputs are parts of one table. So are those behind a file of a header.
        let is_part = |first: &&Self| roles.is_none() && (first.is_header_alone || options.header == HeaderRule::First);
        if let Some(first) = first.filter(is_part) {
            return first.of_part(&fields_of(line, first.layout.delimiter)?);
        }
        let fields = fields_of(line, delimiter)?;
        match roles {
            Some(roles) => Self::of_roles(fields, roles, delimiter, options),
            None => Self::of_fields(line, &fields, delimiter, options, kind),
        }
    }

    /// The columns of a header that states their roles.
    fn of_roles(
        fields: Vec<String>,
        roles: RoleHeader,
        delimiter: u8,
        options: &SourceOptions,
    ) -> Result<Self, String> {
        let (source, target) = (roles.source(), roles.target());
        let weight = match (target, options.weights) {
            (Some(_), Some(_)) => {
                // A column with another role has no name here, so it is never the weight.
                let name = |place| roles.property(place).filter(|_| !roles.is_of_edge_names(place));
                let names = (0..fields.len()).map(|place| name(place).map_or("", |(name, _)| name));
                Some(TableColumnNames::new(names).weight_role(options)?)
            }
            _ => None,
        };
        let mut head = Self {
            layout: CsvLayout {
                delimiter,
                source,
                target,
                weight,
                lone_keys: if target.is_some() { options.lone_keys } else { LoneKeys::Refuse },
                comment: options.comment,
                trim: options.trim,
                num_columns: Some(fields.len()),
            },
            num_header_bytes: 0,
            has_header: true,
            is_known: true,
            num_columns: fields.len(),
            names: fields,
            notes: Vec::new(),
            properties: Vec::new(),
            roles: Some(roles),
            is_header_alone: false,
        };
        head.take_properties(if target.is_some() { &options.edge_properties } else { &options.vertex_properties });
        Ok(head)
    }

    /// Decides from the fields of a first row that states no roles.
    fn of_fields(
        line: &[u8],
        fields: &[String],
        delimiter: u8,
        options: &SourceOptions,
        kind: TableKind,
    ) -> Result<Self, String> {
        let is_edges = !kind.is_of_vertices;
        let given = options.columns.as_deref().filter(|_| is_edges);
        if let Some(given) = given
            && given.len() > fields.len()
        {
            return Err(format!("expected {} columns, as their names are given, found {}", given.len(), shown(line)));
        }
        let names = given.unwrap_or(fields);
        let rule = if is_edges { options.header } else { HeaderRule::Auto };
        // A line with one key names a vertex to remove.
        let is_lone = is_edges && fields.len() == 1 && options.lone_keys == LoneKeys::Vertices;
        let is_of_vertices = !is_edges || is_lone;
        let line_kind = match (rule, given) {
            (HeaderRule::First, _) => FirstLine::Header,
            (HeaderRule::None, _) | (HeaderRule::Auto, Some(_)) => FirstLine::Row,
            (HeaderRule::Auto, None) => first_line(fields, options, kind, is_of_vertices)?,
        };
        let has_header = matches!(line_kind, FirstLine::Header | FirstLine::NoKeys);
        let has_names = has_header || given.is_some();
        let roles = match is_of_vertices {
            true => vertex_roles(names, has_names, options)?,
            // A fault in the first line of a list is reported when that line is parsed.
            false if !has_names && kind.has_blanks => (0, Some(1), options.weights.map(|_| 2)),
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
            roles: None,
            is_header_alone: false,
        };
        if line_kind == FirstLine::Either {
            head.notes.push(unsure(line, fields.len(), options, is_of_vertices)?);
        }
        head.notes.extend(weak_note(line, fields, has_header, options));
        head.take_properties(if is_edges { &options.edge_properties } else { &options.vertex_properties });
        Ok(head)
    }

    /// The columns of this table for a part without a header; `fields` is its first row.
    fn of_part(&self, fields: &[String]) -> Result<Self, String> {
        if fields.len() != self.num_columns {
            let whole = match self.is_header_alone {
                true => "the header before it has",
                false => "the first input has under --header first",
            };
            return Err(format!("expected {} columns, as {whole}, found {}", self.num_columns, fields.len()));
        }
        // The header would become an edge, or a fault far from its cause.
        if fields == self.names {
            return Err(
                "expected a row, as --header first says, found the header of the first input again: leave the \
                        option out"
                    .into(),
            );
        }
        Ok(Self { num_header_bytes: 0, has_header: false, notes: Vec::new(), ..self.clone() })
    }

    /// Adds the wanted columns that have a name and no role as properties.
    fn take_properties(&mut self, wanted: &WantedProperties) {
        for (place, name) in self.names.iter().enumerate() {
            let (name, carried) = match &self.roles {
                Some(roles) => match roles.property(place) {
                    Some(property) => property,
                    None => continue,
                },
                None => name_and_type(name),
            };
            if !self.is_taken(place) && !is_unnamed(name) && wanted.wants(name) {
                self.properties.push((place, name.to_owned(), carried));
            }
        }
    }

    fn is_taken(&self, place: usize) -> bool {
        let CsvLayout { source, target, weight, .. } = self.layout;
        place == source || Some(place) == target || Some(place) == weight
    }

    /// Whether the columns have names, from a header or from the caller.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// The name of the column at a position.
    pub(crate) fn name(&self, place: usize) -> ColumnName {
        match self.names.get(place).map(|name| name_and_type(name).0).filter(|name| !is_unnamed(name)) {
            Some(name) => ColumnName::Name(name.to_owned()),
            None => ColumnName::Number(place + 1),
        }
    }

    /// The positions of unread columns with names. Unnamed columns are counted during the read.
    pub(crate) fn left_out(&self) -> Vec<usize> {
        if !self.has_names() {
            return Vec::new();
        }
        let is_property = |place: &usize| self.properties.iter().any(|(taken, ..)| taken == place);
        let is_ignored = |place: &usize| self.roles.as_ref().is_some_and(|roles| roles.is_ignored(*place));
        let is_left_out = |place: &usize| !self.is_taken(*place) && !is_property(place) && !is_ignored(place);
        (0..self.num_columns).filter(is_left_out).collect()
    }

    /// Whether a column has the names of edges.
    pub(crate) fn is_of_edge_names(&self, place: usize) -> bool {
        self.roles.as_ref().is_some_and(|roles| roles.is_of_edge_names(place))
    }

    /// Whether each row is a vertex, if the header says so.
    pub(crate) fn states_vertices(&self) -> Option<bool> {
        self.roles.as_ref().map(|roles| roles.target().is_none())
    }

    /// The type, the labels and the key spaces that the header or the name of the file gives all rows.
    pub(crate) fn said(&self, options: &SourceOptions) -> Said {
        self.roles.as_ref().map(|roles| roles.said.clone()).unwrap_or_default().wanted(options)
    }
}

/// The roles that a first row states as a header, unless options name the columns.
fn stated_roles(
    line: &[u8],
    delimiter: u8,
    options: &SourceOptions,
    path: &Path,
) -> Result<Option<RoleHeader>, String> {
    let SourceOptions { source_column, target_column, vertex_column, columns, header, .. } = options;
    let is_asked = source_column.is_some() || target_column.is_some() || vertex_column.is_some() || columns.is_some();
    if is_asked || *header == HeaderRule::None {
        return Ok(None);
    }
    // A faulty quote is reported with the row.
    let Ok(fields) = fields_of(line, delimiter) else { return Ok(None) };
    let roles = RoleHeader::of(&fields, delimiter, path)?;
    // Removals name edges, or one vertex on a line.
    Ok(roles.filter(|roles| options.lone_keys == LoneKeys::Refuse || roles.target().is_some()))
}

/// What the beginning of a table states about its keys by its header. `before` is what the file before states, whose
/// header counts if it has no rows.
pub(crate) fn stated_keys(
    text: &[u8],
    has_blanks: bool,
    options: &SourceOptions,
    path: &Path,
    before: Option<&StatedKeys>,
) -> Option<StatedKeys> {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let mut line = lines.find(|line| !line.starts_with(b"#"))?;
    let delimiter = if has_blanks { BLANKS } else { delimiter_of(line, options.delimiter) };
    let (delimiter, roles) = match stated_roles(line, delimiter, options, path).ok()? {
        Some(roles) => {
            let Some(row) = lines.next() else { return Some(StatedKeys { delimiter, roles, has_text: None }) };
            line = row;
            (delimiter, roles)
        }
        None => {
            let before = before.filter(|before| before.has_text.is_none())?;
            (before.delimiter, before.roles.clone())
        }
    };
    let fields = fields_of(line, delimiter).unwrap_or_default();
    let keys = [Some(roles.source()), roles.target()].into_iter().flatten().filter_map(|place| fields.get(place));
    let has_text = keys.map(|key| parse_u64(key.as_bytes())).any(|number| number.is_none());
    Some(StatedKeys { delimiter, roles, has_text: Some(has_text) })
}

/// What the beginning of a table states about its keys.
pub(crate) struct StatedKeys {
    delimiter: u8,
    pub(crate) roles: RoleHeader,
    /// Whether a key of the first row is not a number; `None` without a row.
    pub(crate) has_text: Option<bool>,
}

/// The column of vertex keys.
fn vertex_roles(
    names: &[String],
    has_names: bool,
    options: &SourceOptions,
) -> Result<(usize, Option<usize>, Option<usize>), String> {
    let source = if has_names { columns_of(names).vertex_role(options)? } else { 0 };
    Ok((source, None, None))
}

/// The columns of sources, targets and weights. Without names, they are the first columns in this order.
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

/// Decides whether the first line is a header.
///
/// # Errors
/// The names match several columns.
fn first_line(
    fields: &[String],
    options: &SourceOptions,
    kind: TableKind,
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
    // A line with a key in it is a faulty row rather than a header.
    let is_no_key = |field: &String| parse_u64(field.as_bytes()).is_none();
    // A single word on the first line of a list may be a mistake.
    let is_whole = !kind.has_blanks || fields.len() > 1;
    let has_no_key = is_whole && options.keys == KeyKind::Integer && fields.iter().take(num_keys).all(is_no_key);
    if is_named {
        return Ok(FirstLine::Header);
    }
    let columns = columns_of(fields);
    let is_known = match is_of_vertices {
        true => (kind.has_blanks || options.keys == KeyKind::String) && columns.known_vertex() == Some(0),
        false => columns.known_ends()?.is_some(),
    };
    let is_number = |field: &String| parse_weight::<f64>(field.as_bytes()).is_some();
    Ok(match options.keys {
        // The word may also be a key: exported lists of vertices have no header.
        KeyKind::String if is_known && kind.is_of_vertices && kind.has_blanks && fields.len() == 1 => FirstLine::Either,
        _ if is_known => FirstLine::Header,
        _ if has_no_key => FirstLine::NoKeys,
        // Lists of removals have no header, except with known names.
        _ if fields.len() == 1 && kind.has_blanks => FirstLine::Row,
        KeyKind::String if options.lone_keys == LoneKeys::Refuse && !fields.iter().any(is_number) => FirstLine::Either,
        _ => FirstLine::Row,
    })
}

/// The note about a header that only weak names identify, which may also be keys.
fn weak_note(line: &[u8], fields: &[String], has_header: bool, options: &SourceOptions) -> Option<String> {
    let can_be_row = has_header && options.keys == KeyKind::String && options.header == HeaderRule::Auto;
    let is_asked =
        options.source_column.is_some() || options.target_column.is_some() || options.weight_column.is_some();
    let ends = columns_of(fields).known_ends();
    let is_weak = can_be_row && !is_asked && ends.is_ok_and(|ends| ends.is_some_and(|ends| ends.is_weak));
    let note = || format!("the first line {} is taken as a header: --header none says that it is a row", shown(line));
    is_weak.then(note)
}

/// The note about a first line that is taken as a row but may be a header.
///
/// # Errors
/// The line has further columns, and the names of those would be lost.
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

/// The end of the row that decides the columns. If a quote is not closed, the row ends with its line.
pub(crate) fn first_row_end(bytes: &[u8], start: usize, kind: TableKind, given: Option<u8>) -> usize {
    let line = line_end(bytes, start);
    let delimiter = if kind.has_blanks { BLANKS } else { delimiter_of(&bytes[start..line], given) };
    match row_end(bytes, start, bytes.len(), delimiter) {
        RowEnd::Line(end) => end,
        // Faults of a row are reported when its fields are read.
        _ => line,
    }
}

/// The most frequent delimiter of a row's first line, outside of quotes.
pub(crate) fn delimiter_of(row: &[u8], given: Option<u8>) -> u8 {
    if let Some(given) = given {
        return given;
    }
    let line = &row[..line_end(row, 0)];
    let mut counts = [0_usize; DELIMITERS.len()];
    let (mut at, mut begins_field) = (0, true);
    while at < line.len() {
        let found = DELIMITERS.iter().position(|&delimiter| delimiter == line[at]);
        if let Some(place) = found {
            counts[place] += 1;
        } else if begins_field && line[at] == b'"' {
            // A quote that is not closed in this line hides the rest of the line.
            let Some(close) = closing_quote(line, at + 1, line.len()) else { break };
            at = close;
        }
        begins_field = found.is_some() || begins_field && line[at] == b' ';
        at += 1;
    }
    // `max_by_key` takes the last maximum, so the reversed order lets the first delimiter win.
    let weigh = |&(delimiter, count): &(u8, usize)| if delimiter == BAR { count.min(1) } else { 2 * count };
    let best = DELIMITERS.into_iter().zip(counts).rev().max_by_key(weigh);
    best.map_or(b',', |(delimiter, _)| delimiter)
}

/// Reads the beginning of a table; `first` is the table of the first input of this kind. Returns `None` if the text has
/// no row, and the number of comments before the first row.
///
/// # Errors
/// The input cannot be read, its first row does not identify the columns, or two properties have one name.
pub(crate) fn head_of(
    input: &InputProbe,
    kind: TableKind,
    first: Option<&TableHead>,
    options: &SourceOptions,
) -> Result<(Option<(TableHead, PartProperties)>, u64)> {
    // The first row of an edge list is enough. A small sample keeps opening thousands of files cheap.
    let limit = if kind.has_blanks && options.columns.is_none() { HEAD_BYTES as u64 } else { SAMPLE_BYTES };
    let (text, is_cut) = input.sample(limit)?;
    let bad = |at: usize, what: String| {
        let line = memchr::memchr_iter(b'\n', &text[..at]).count() as u64 + 1;
        Error::Line { path: input.path.clone(), line, what }
    };
    let (found, num_comments) = first_row(&text, kind, options).map_err(|(at, what)| bad(at, what))?;
    let Some(FirstRow { start, end, fields_start }) = found else {
        // Without a row, the columns are unknown. A list needs no row to know its columns.
        if is_cut && !kind.has_blanks {
            let what = format!("expected a row of columns in the first {}, found only comments", size(limit));
            return Err(input.bad(&what));
        }
        return Ok((None, num_comments));
    };
    // The first row may continue behind the sample.
    if is_cut && end + 1 >= text.len() {
        if kind.has_blanks {
            return Ok((None, 0));
        }
        return Err(bad(start, format!("expected a first row of less than {}, found a longer one", size(limit))));
    }
    let line = text[fields_start..end].strip_suffix(b"\r").unwrap_or(&text[fields_start..end]);
    let SourceOptions { columns, source_column, target_column, .. } = options;
    let are_named = columns.is_some() || source_column.is_some() || target_column.is_some();
    if kind.has_blanks && !are_named && fields_of(line, BLANKS).is_err() {
        // Quotes are part of the keys of a list, so this line is not a header.
        return Ok((None, 0));
    }
    let head = TableHead::of_row(line, options, kind, first, &input.path);
    let mut head = head.map_err(|what| bad(start, what))?;
    if fields_start > start {
        head.notes.push(format!("the comment {} is taken as the header", shown(text[start..end].trim_ascii())));
    }
    let is_behind_header = first.is_some_and(|first| first.has_header) && !head.has_header;
    // The columns of an input without its header would be a guess.
    let takes_header = head.is_header_alone || options.columns.is_some();
    if is_behind_header && options.header == HeaderRule::Auto && !takes_header {
        let what = format!(
            "expected a header, as the inputs before have one, found {}: --header first reads this one with the columns \
             of the first",
            shown(line)
        );
        return Err(bad(start, what));
    }
    // A header in the last line may lack its line end.
    let rows_start = if head.has_header { (end + 1).min(text.len()) } else { start };
    head.num_header_bytes = rows_start as u64;
    let has_rows = is_cut || !text[rows_start..].trim_ascii().is_empty();
    head.is_header_alone |= head.roles.is_some() && head.has_header && !has_rows;
    if kind.has_blanks && !head.is_known && !has_rows {
        // A list of one faulty line.
        return Ok((None, 0));
    }
    // Numbers of the rows say nothing, and would cost a property.
    if options.edge_properties == WantedProperties::All
        && let Some(numbers) = head.row_numbers(&text[rows_start..])
    {
        head.properties.retain(|(place, ..)| *place != numbers);
    }
    let properties = head.infer(&text[rows_start..], options);
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
                // Faults of a row are reported when the row is parsed.
                if let RowEnd::Line(row_end) = row_end(text, at, text.len(), self.layout.delimiter) {
                    end = row_end;
                }
                body(text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]));
            }
            at = end + 1;
        }
    }

    /// The column of the names of edges, if they only count the rows of `text` from 1, as `export` writes them.
    fn row_numbers(&self, text: &[u8]) -> Option<usize> {
        let place = (0..self.num_columns).find(|&place| self.is_of_edge_names(place))?;
        let (mut num_rows, mut is_count) = (0, true);
        self.for_each_row(text, |row| {
            if !is_count || row.trim_ascii().is_empty() {
                return;
            }
            num_rows += 1;
            let fields = fields_of(row, self.layout.delimiter).unwrap_or_default();
            is_count = fields.get(place).and_then(|name| parse_u64(name.as_bytes())) == Some(num_rows);
        });
        (is_count && num_rows > 0).then_some(place)
    }

    /// The properties with types inferred from the rows of `text`.
    ///
    /// # Errors
    /// Two properties have one name.
    fn infer(&self, text: &[u8], options: &SourceOptions) -> Result<PartProperties, String> {
        let mut found = PartProperties::default();
        let mut inferences = vec![Inference::default(); self.properties.len()];
        for (_, name, carried) in &self.properties {
            let added = found.own.add(name.clone(), carried.map_or(PropertyType::String, StatedType::of_input));
            added.map_err(|error| error.to_string())?;
            found.epochs.push(carried.and_then(StatedType::epoch));
            found.arrays.push(carried.and_then(StatedType::array));
        }
        // Without properties, no row needs a look.
        if !inferences.is_empty() {
            self.for_each_row(text, |row| self.infer_row(row, options, &mut inferences));
        }
        for (column, ((place, _, carried), inference)) in self.properties.iter().zip(&inferences).enumerate() {
            found.places.push(*place);
            found.inferred.push(carried.is_none().then_some(*inference));
            // A type in the header wins over the rows.
            if carried.is_none() {
                found.own.set_type(column, inference.property_type());
            }
        }
        Ok(found)
    }

    /// Adds one row to the inferences, up to its first faulty field.
    fn infer_row(&self, row: &[u8], options: &SourceOptions, inferences: &mut [Inference]) {
        let mut at = 0;
        let mut properties = self.properties.iter().zip(inferences).peekable();
        for column in 0.. {
            let Some(((place, ..), _)) = properties.peek() else { return };
            let Ok(Some(field)) = next_field(row, &mut at, row.len(), self.layout.delimiter, true) else { return };
            if *place == column
                && let Some((_, inference)) = properties.next()
                && !field.is_null(row, options)
            {
                // The type of a quoted value is that of its content, because many writers quote everything.
                inference.add(&field.bytes(row));
            }
        }
    }
}
